"""Small ONNX models, as bytes, that both runtimes load."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

tensor = helper.make_tensor_value_info
sequence = helper.make_tensor_sequence_value_info
node = helper.make_node
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def optional(name: str, inner: Any) -> Any:
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


def tensor_type(shape: list[Any] | None, element_type: int = FLOAT) -> Any:
    return helper.make_tensor_type_proto(element_type, shape)


def made(
    nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: Any = (), **options: Any
) -> bytes:
    """options: opset, sets of other domains, ir_version, and fields of ModelProto."""
    graph = helper.make_graph(nodes, "small", inputs, outputs, list(constants))
    sets = [helper.make_opsetid("", options.pop("opset", 18)), *options.pop("sets", [])]
    options.setdefault("ir_version", 10)
    return helper.make_model(graph, opset_imports=sets, **options).SerializeToString()


def constant(name: str, values: Any, dtype: Any = np.float32) -> Any:
    return numpy_helper.from_array(np.array(values, dtype), name)


#: z = x + y of float [n, 3] and [1, 3]
ADD = made(
    [node("Add", ["x", "y"], ["z"])],
    [tensor("x", FLOAT, ["n", 3]), tensor("y", FLOAT, [1, 3])],
    [tensor("z", FLOAT, ["n", 3])],
)
#: Two products and an activation, with names
NETWORK = made(
    [
        node("MatMul", ["x", "w"], ["h"], name="first"),
        node("Relu", ["h"], ["r"], name="kink"),
        node("MatMul", ["r", "w"], ["y"], name="second"),
    ],
    [tensor("x", FLOAT, ["batch", 4])],
    [tensor("y", FLOAT, ["batch", 4]), tensor("h", FLOAT, ["batch", 4])],
    [constant("w", np.random.default_rng(1).normal(size=(4, 4)))],
)
