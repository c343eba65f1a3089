"""Models as the C++ reader reads them, beside the Python reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import headrace
import numpy as np
import onnx
from headrace import _core
from headrace.onnx import read
from headrace.onnx.source import DTYPES, Source, read_model
from headrace.onnx.stored import CARRIERS, element_type

OPERATORS = {(domain, name) for domain, name, _ in _core.onnx_operators()}
_WIDER = {number: element_type(name) for number, name in DTYPES.items() if name in CARRIERS or name == "bf16"}


def operators_of(nodes: Any) -> Iterator[tuple[str, str]]:
    """Of a graph's nodes, also those of branches."""
    for node in nodes:
        yield ("" if node.domain == "ai.onnx" else node.domain), node.op_type
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from operators_of(graph.node)


def unread_operators(model: onnx.ModelProto) -> set[tuple[str, str]]:
    """Those that the C++ reader lacks, functions of the model apart."""
    functions = {(f.domain, f.name) for f in model.functions}
    nodes = [*model.graph.node, *(node for f in model.functions for node in f.node)]
    return set(operators_of(nodes)) - functions - OPERATORS


def graph_of(model: onnx.ModelProto | bytes | str | Path, dimensions: Any = None) -> headrace.Graph:
    content = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    return _core.load_onnx(content, dict(dimensions or {}))


def on_native(model: onnx.ModelProto, feeds: dict[str, Any], dimensions: Any = None) -> dict[str, np.ndarray]:
    """What headrace computes of a model that C++ has read, in the outputs' own dtypes."""
    executable = headrace.compile(graph_of(model, dimensions), device="cpu")
    results = headrace.Session(executable).run(feeds)
    for info in model.graph.output:
        declared = info.type.tensor_type.elem_type
        if declared in _WIDER:
            results[info.name] = results[info.name].astype(_WIDER[declared])
    return results


def on_native_file(path: Path, feeds: dict[str, Any]) -> dict[str, np.ndarray]:
    """A model's file with what lies beside it."""
    return headrace.Session(headrace.compile(graph_of(path), device="cpu")).run(feeds)


def on_python(model: onnx.ModelProto, feeds: dict[str, Any], dimensions: Any = None) -> dict[str, np.ndarray]:
    """The same, read by Python."""
    graph, interface = read(model, dimensions)
    results = headrace.Session(headrace.compile(graph, device="cpu")).run(feeds)
    for name, dtype in interface.declared.items():
        results[name] = results[name].astype(dtype)
    return results


def whole(source: Any) -> onnx.ModelProto:
    """The model that headrace.onnx.source took apart."""
    model = onnx.ModelProto()
    model.CopyFrom(source.model)
    model.graph.initializer.extend(source.tensors)
    return model


def read_by_cpp(source: Any, dimensions: Any = None) -> tuple[headrace.Graph, Any]:
    """headrace.onnx.read with the graph that C++ makes, where it has the model's operators.

    What Python reads it has to read. Python says what is wrong, and what the outputs are.
    """
    found = source if isinstance(source, Source) else read_model(source)
    graph, interface = read(found, dimensions)
    model = whole(found)
    is_of_tensors = all(v.type.HasField("tensor_type") for v in [*model.graph.input, *model.graph.output])
    is_external = any(t.data_location == onnx.TensorProto.EXTERNAL for t in model.graph.initializer)
    if unread_operators(model) or is_external or not is_of_tensors:
        return graph, interface
    READ.append(found.title)
    return graph_of(model, dimensions), interface


READ: list[str] = []  # titles of what C++ has read
