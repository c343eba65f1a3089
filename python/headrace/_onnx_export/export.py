"""A graph's view as an ONNX model, and the model as files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from .constants import constant_array
from .registry import Node, lower
from .writer import IR_VERSION, OPSET, Writer, value_info

# Protocol buffers end at 2 GiB; what nodes and small tensors take stays well below the difference.
LARGEST_FILE = 2**31 - 2**24
_ALIGNMENT = 4096  # of weights in the external file, so that they can be mapped

Weights = list[tuple[TensorProto, np.ndarray]]


def export(view: Any) -> tuple[onnx.ModelProto, Weights]:
    """The model without its weights, and those."""
    writer = Writer()
    names: dict[int, str] = {}
    outputs = _claim_outputs(view)
    for name in [view.values[i].name for i in view.inputs] + [name for name, _ in view.outputs]:
        writer.reserve(name)
    for i in view.inputs:
        value = view.values[i]
        names[i] = value.name
        writer.note_extents(value.name, value.shape)
    for i, value in enumerate(view.values):
        if value.kind == "state":
            raise ValueError(
                f"convert_to_onnx: ONNX has no states such as '{value.name}'; make it an input and an output"
            )
        if value.kind == "constant":
            name = writer.name(value.name or f"constant_{i}")
            names[i] = writer.initializer(name, value.data_type, value.shape, value.bytes)
    for node in view.nodes:
        _write_node(writer, view, node, names, outputs)
    for name, i in view.outputs:
        if names[i] != name:
            writer.nodes.append(helper.make_node("Identity", [names[i]], [name], name=name))
    graph = helper.make_graph(
        writer.nodes,
        "webnn",
        [value_info(names[i], view.values[i].data_type, view.values[i].shape) for i in view.inputs],
        [value_info(name, view.values[i].data_type, view.values[i].shape) for name, i in view.outputs],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="headrace",
    )
    return model, _used(writer)


def _claim_outputs(view: Any) -> dict[int, str]:
    """The name under which each output value is computed; further names become copies."""
    inputs = {view.values[i].name for i in view.inputs}
    claimed: dict[int, str] = {}
    for name, i in view.outputs:
        if name in inputs:
            raise ValueError(
                f"convert_to_onnx: '{name}' is an input and an output; ONNX needs different names"
            )
        claimed.setdefault(i, name)
    return claimed


def _write_node(writer: Writer, view: Any, node: Any, names: dict[int, str], outputs: dict[int, str]) -> None:
    operands = [None if i is None else view.values[i] for i in node.inputs]
    results = [view.values[i] for i in node.outputs]
    described = Node(
        op=node.op,
        label=node.label,
        attributes=node.attributes,
        inputs=[None if i is None else names[i] for i in node.inputs],
        shapes=[v and v.shape for v in operands],
        dtypes=[v and v.data_type for v in operands],
        out_shapes=[v.shape for v in results],
        out_dtypes=[v.data_type for v in results],
        constants=[_reader(v) for v in operands],
    )
    writer.scope = node.label or node.op
    first = len(writer.nodes)
    for i, name in zip(node.outputs, lower(writer, described), strict=True):
        wanted = outputs.get(i)
        names[i] = wanted if wanted and writer.rename(first, name, wanted) else name
        writer.note_extents(names[i], view.values[i].shape)


def _reader(value: Any) -> Callable[[], np.ndarray] | None:
    if value is None or value.kind != "constant":
        return None
    return lambda: constant_array(value)


def _used(writer: Writer) -> Weights:
    """Constants that some node still reads: clamped indices, for one, replace the given ones."""
    read: set[str] = set()

    def visit(nodes: Any) -> None:
        for node in nodes:
            read.update(node.input)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    visit(attribute.g.node)

    visit(writer.nodes)
    return [(tensor, data) for tensor, data in writer.initializers if tensor.name in read]


def write_model(model: onnx.ModelProto, weights: Weights, path: str, largest: int = LARGEST_FILE) -> None:
    """Writes path, and the weights inside it or, if they are too many, beside it in path.data."""
    path = os.fspath(path)
    external = model.ByteSize() + sum(data.nbytes for _, data in weights) > largest
    if external:
        _write_external(weights, path + ".data")
    else:
        for tensor, data in weights:
            tensor.raw_data = data.tobytes()
    model.graph.initializer.extend(tensor for tensor, _ in weights)
    with open(path, "wb") as file:
        file.write(model.SerializeToString())


def _write_external(weights: Weights, path: str) -> None:
    location = os.path.basename(path)
    with open(path, "wb") as file:
        for tensor, data in weights:
            if data.nbytes < 1024:  # shape inference wants to see axes and sizes
                tensor.raw_data = data.tobytes()
                continue
            file.seek(-file.tell() % _ALIGNMENT, os.SEEK_CUR)
            entries = {"location": location, "offset": str(file.tell()), "length": str(data.nbytes)}
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=value)
            tensor.data_location = TensorProto.EXTERNAL
            file.write(data.data)
