"""What is resident at most while a model is loaded and runs once: its weights, in one form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

WIDTH = 4096
LOAD = """
import sys
import headrace
import numpy as np

def kib(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

x = np.ones((4, int(sys.argv[2])), np.float32)
shapes = [np.array([4] + [1] * i) for i in range(int(sys.argv[3]))]
before = kib("VmRSS")
model = headrace.load(sys.argv[1], device="cpu")
for shape in shapes:
    model(x=x, shape=shape)
if not shapes:
    model(x)
print((kib("VmHWM") - before) / 1024)
"""


def matrix(dtype: type, columns: int) -> np.ndarray:
    random = np.random.default_rng(0)
    return (random.random((WIDTH, columns), np.float32) / WIDTH).astype(dtype)


def product(weights: np.ndarray, nodes: list[onnx.NodeProto]) -> bytes:
    """y = x times a matrix m that the nodes make of w."""
    nodes = [*nodes, helper.make_node("MatMul", ["x", "m"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w" if nodes[:-1] else "m")],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    ).SerializeToString()


def in_f32() -> bytes:
    return product(matrix(np.float32, WIDTH), [])


def gates() -> bytes:
    """The weights of an LSTM of one step, whose cells and sequence are as wide as x."""
    weights = [matrix(np.float32, WIDTH // 4).reshape(1, WIDTH, WIDTH // 4) for _ in range(2)]
    nodes = [
        helper.make_node("Reshape", ["x", "four"], ["steps"]),
        helper.make_node("LSTM", ["steps", "w", "r"], ["y"], hidden_size=WIDTH // 4),
    ]
    graph = helper.make_graph(
        nodes,
        "gates",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            *(numpy_helper.from_array(w, name) for w, name in zip(weights, "wr", strict=True)),
            numpy_helper.from_array(np.array([-1, 1, WIDTH // 4]), "four"),
        ],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    ).SerializeToString()


def in_f16_and_cast() -> bytes:
    return product(matrix(np.float16, 2 * WIDTH), [helper.make_node("Cast", ["w"], ["m"], to=1)])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("made", [in_f32, in_f16_and_cast, gates])
def test_a_large_matrix_is_in_memory_once(tmp_path: Path, made) -> None:
    assert peak_of(tmp_path, made()) < limit_of(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_readings_of_a_model_for_several_shapes_have_one_packed_matrix(tmp_path: Path) -> None:
    model = onnx.load_from_string(in_f32())
    model.graph.input.append(helper.make_tensor_value_info("shape", TensorProto.INT64, ["rank"]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    model.graph.node.append(helper.make_node("Expand", ["one", "shape"], ["z"]))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "one"))
    assert peak_of(tmp_path, model.SerializeToString(), shapes=6) < limit_of(tmp_path)


def peak_of(folder: Path, model: bytes, shapes: int = 0) -> float:
    """MiB beyond the process with the library and the input."""
    (folder / "model.onnx").write_bytes(model)
    command = [sys.executable, "-c", LOAD, folder / "model.onnx", str(WIDTH), str(shapes)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def limit_of(folder: Path) -> float:
    return 1.15 * (folder / "model.onnx").stat().st_size / 2**20 + 32
