"""`headrace bench` of an ONNX model times ONNX Runtime on that model, as it is."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

HEADRACE = Path(__file__).parents[2] / "build" / "bin" / "headrace"
FAST = ("--peer", "onnxruntime", "--rounds", "2", "--seconds", "0.005", "--threads", "1", "--json", "-")


def saved(path, nodes, inputs, outputs, constants=(), opset=17):
    tensors = [numpy_helper.from_array(array, name) for name, array in dict(constants).items()]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        tensors,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)
    return path


def embedding(path):
    """Indices have to be checked here, and a slice of them has a computed extent."""
    table = np.arange(40, dtype=np.float32).reshape(10, 4)
    ends = {"zero": np.array([0]), "three": np.array([3]), "one": np.array([1])}
    nodes = [
        helper.make_node("Slice", ["ids", "zero", "three", "one"], ["some"]),
        helper.make_node("Gather", ["table", "some"], ["y"]),
    ]
    return saved(
        path,
        nodes,
        [("ids", TensorProto.INT64, ["b", "s"])],
        [("y", TensorProto.FLOAT, None)],
        {"table": table, **ends},
    )


def truths(path):
    return saved(
        path,
        [helper.make_node("Not", ["x"], ["n"]), helper.make_node("And", ["n", "x"], ["y"])],
        [("x", TensorProto.BOOL, [2, "n"])],
        [("y", TensorProto.BOOL, [2, "n"])],
    )


def quantized(path):
    scale, zero = {"s": np.float32(0.05)}, {"z": np.int8(0)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    return saved(
        path,
        nodes,
        [("x", TensorProto.FLOAT, ["n", 4])],
        [("y", TensorProto.FLOAT, ["n", 4])],
        {**scale, **zero},
    )


@pytest.mark.parametrize("make", [embedding, truths, quantized])
def test_models_are_timed_beside_onnx_runtime_as_they_are(make, tmp_path):
    model = make(tmp_path / "model.onnx")
    done = subprocess.run([HEADRACE, "bench", model, *FAST], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["results"]
    assert row["peer_us"] > 0 and row["difference"] <= 0.05


def test_what_onnx_runtime_does_not_open_is_told_in_one_line(tmp_path):
    model = saved(
        tmp_path / "model.onnx",
        [helper.make_node("Relu", ["x"], ["y"])],
        [("x", TensorProto.BFLOAT16, [2])],
        [("y", TensorProto.BFLOAT16, [2])],
    )
    command = [sys.executable, "-m", "headrace._cli.compare_onnxruntime", model, "--threads", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        done.stderr.startswith("no comparison: ONNX Runtime does not open it")
        and "Traceback" not in done.stderr
    )
