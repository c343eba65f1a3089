"""Models of all kinds on the device that HEADRACE_TEST_DEVICE names, beside other runtimes."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DEVICE = os.environ.get("HEADRACE_TEST_DEVICE")
if not DEVICE:
    pytest.skip("no device is named: make test-vulkan names one", allow_module_level=True)

import headrace  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "architectures"))
OPEN = (
    *("an encoder of text", "segmentation of any height and width", "windows that are shifted"),
    *("an encoder of speech", "a decoder whose cache grows"),
)
HEAD = '<ir_version: 9, opset_import: ["" : 21]>\n'


def on_onnx_runtime(model: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)


def nodes_there(model: headrace.Model) -> set[str]:
    """Ops that the last run computed on the device."""
    return {n["title"].split()[0] for n in model.session.stats["nodes"] if n["device"] == DEVICE}


def agree(actual: Any, expected: Any, tolerance: float) -> None:
    for a, b in zip(actual, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(
            a.astype(np.float64), b.astype(np.float64), rtol=0, atol=tolerance * max(1, np.abs(b).max())
        )


@pytest.mark.parametrize("name", OPEN)
def test_a_model_with_open_dimensions_is_called_there_at_two_shapes(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make executorch installs it")
    pytest.importorskip("transformers", reason="transformers is not installed: make executorch installs it")
    from check import errors_at_both_shapes
    from exported import export, session_of
    from tiny import TINY

    torch.manual_seed(0)
    a, path = TINY[name](), tmp_path / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export(a, path, dynamo=False)
    session, model = session_of(path), headrace.load(path, device=DEVICE)
    for error in errors_at_both_shapes(a, model, session):
        assert not isinstance(error, str) and error < a.tolerance, error
    assert nodes_there(model)


def test_branches_and_loops_compute_their_bodies_there() -> None:
    model = parser.parse_model(
        HEAD
        + """
    counted (float[n] x, int64 most) => (float[n] y, float[k] sums, float[n] z) {
      yes = Constant <value_int = 1> ()
      go = Cast <to = 9> (yes)
      y, sums = Loop <body = once (int64 i, bool c, float[n] now) => (bool more, float[n] next, float sum) {
        half = Constant <value_float = 0.5> ()
        scaled = Mul (now, half)
        next = Tanh (scaled)
        sum = ReduceSum <keepdims = 0> (next)
        least = Constant <value_float = 0.01> ()
        more = Greater (sum, least)
      }> (most, go, x)
      largest = ReduceMax <keepdims = 0> (x)
      one = Constant <value_float = 1.0> ()
      big = Greater (largest, one)
      z = If <then_branch = a () => (float[n] t) { t = Exp (x) },
              else_branch = b () => (float[n] e) { e = Sub (one, x) }> (big)
    }
    """
    ).SerializeToString()
    there = headrace.load(model, device=DEVICE)
    for x in (np.float32([3, 1, 0.5]), np.float32([0.01, 0.02])):
        feeds = {"x": x, "most": np.array(5)}
        agree(there(feeds).values(), on_onnx_runtime(model, feeds), 1e-5)


def dense(element_type: int) -> bytes:
    """y = softmax(layer_norm(x) w + b) of [rows, 32]."""
    rng, of = np.random.default_rng(3), helper.tensor_dtype_to_np_dtype(element_type)
    constants = {
        "scale": rng.uniform(0.5, 1.5, 32),
        "shift": rng.normal(size=32),
        "w": rng.normal(size=(32, 24)) / 5,
        "b": rng.normal(size=24),
    }
    nodes = [
        helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["n"]),
        helper.make_node("MatMul", ["n", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "dense",
        [value("x", element_type, ["rows", 32])],
        [value("y", element_type, ["rows", 24])],
        [numpy_helper.from_array(v.astype(of), k) for k, v in constants.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()


def test_a_model_of_half_floats_computes_there() -> None:
    model = dense(TensorProto.FLOAT16)
    there = headrace.load(model, device=DEVICE)
    for rows in (1, 20):
        feeds = {"x": np.random.default_rng(rows).normal(size=(rows, 32)).astype(np.float16)}
        agree(there(feeds).values(), on_onnx_runtime(model, feeds), 4e-3)
    assert {"layer_normalization", "softmax"} <= nodes_there(there)


def test_a_quantized_model_is_right_and_its_integers_are_the_cpus(tmp_path: Path) -> None:
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Rows(CalibrationDataReader):
        left = 3

        def get_next(self) -> dict[str, np.ndarray] | None:
            self.left -= 1
            if self.left < 0:
                return None
            return {"x": np.random.default_rng(self.left).normal(size=(20, 32)).astype(np.float32)}

    path = tmp_path / "quantized.onnx"
    quantize_static(onnx.load_from_string(dense(TensorProto.FLOAT)), str(path), Rows(), QuantFormat.QDQ)
    model = path.read_bytes()
    there, here = headrace.load(model, device=DEVICE), headrace.load(model, device="cpu")
    feeds = {"x": np.random.default_rng(9).normal(size=(20, 32)).astype(np.float32)}
    agree(there(feeds).values(), on_onnx_runtime(model, feeds), 1e-2)
    agree(there(feeds).values(), here(feeds).values(), 1e-2)
    on_the_cpu = {n["title"].split()[0] for n in there.session.stats["nodes"] if n["device"] != DEVICE}
    assert on_the_cpu and "softmax" in nodes_there(there)


def test_two_processes_use_the_device_at_once(tmp_path: Path) -> None:
    path = tmp_path / "dense.onnx"
    path.write_bytes(dense(TensorProto.FLOAT))
    code = (
        "import sys, headrace, numpy as np\n"
        "x = np.random.default_rng(4).normal(size=(20, 32)).astype(np.float32)\n"
        "here = headrace.load(sys.argv[1], device='cpu')(x)['y']\n"
        "for _ in range(20):\n"
        "    there = headrace.load(sys.argv[1], device=sys.argv[2])\n"
        "    for _ in range(5): assert np.abs(there(x)['y'] - here).max() < 1e-5\n"
        "print('right')\n"
    )
    command = [sys.executable, "-c", code, str(path), DEVICE]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        assert [process.communicate(timeout=200)[0].strip() for process in running] == ["right"] * 2
    finally:
        for process in running:
            process.kill()


def test_a_program_of_executorch_computes_there(tmp_path: Path) -> None:
    pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
    import executorch_ggml
    import torch
    from executorch.exir import to_edge_transform_and_lower
    from executorch.runtime import Runtime

    if executorch_ggml._runtime.runtime_path() is None:
        pytest.skip("libexecutorch_ggml_runtime.so is not built: make build")
    torch.manual_seed(0)
    layer, x = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval(), torch.randn(2, 9, 32)
    partitioner = executorch_ggml.GgmlPartitioner(strict=True)
    edge = to_edge_transform_and_lower(torch.export.export(layer, (x,)), partitioner=[partitioner])
    path = tmp_path / "layer.pte"
    path.write_bytes(edge.to_executorch().buffer)
    executorch_ggml.set_options(device=DEVICE)
    try:
        (y,) = Runtime.get().load_program(path).load_method("forward").execute([x])
    finally:
        executorch_ggml.set_options(device="cpu")
    torch.testing.assert_close(y, layer(x), atol=1e-5, rtol=1e-5)
