"""An ONNX model whose time its input decides."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper


def counting(path: Path) -> Path:
    """An ONNX model of one loop, which adds 1 to y as often as its input n says."""
    scalar = {"n": TensorProto.INT64, "i": TensorProto.INT64, "go": TensorProto.BOOL, "on": TensorProto.BOOL}

    def value(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, scalar.get(name, TensorProto.FLOAT), [])

    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["before", "one"], ["after"])],
        "body",
        [value("i"), value("go"), value("before")],
        [value("on"), value("after")],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "zero"], ["y"], body=body)],
        "g",
        [value("n")],
        [value("y")],
        [
            helper.make_tensor(name, TensorProto.FLOAT, [], [number])
            for name, number in (("zero", 0), ("one", 1))
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path
