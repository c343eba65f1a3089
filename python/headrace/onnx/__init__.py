"""ONNX models (https://onnx.ai) as graphs. The package onnx is not needed."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace._core import Graph, OnnxModel, graph_to_bytes, open_onnx, save_graph

__all__ = ["convert", "graph_bytes", "import_graph", "open_model"]

Dimensions = Mapping[str, Any]


def open_model(source: Any) -> OnnxModel:
    """What a model declares, and graphs of it.

    source: a path, a file's bytes or an onnx.ModelProto. Errors: OSError for a file that cannot be read,
    FileNotFoundError where there is none; ValueError for what is no valid model.
    """
    if isinstance(source, OnnxModel):
        return source
    if hasattr(source, "SerializeToString"):
        return open_onnx(_serialised(source))
    if isinstance(source, (str, os.PathLike)) and not os.path.exists(source):
        raise FileNotFoundError(errno.ENOENT, "there is no such ONNX model", os.fspath(source))
    return open_onnx(source)


def _serialised(model: Any) -> bytes:
    try:
        return model.SerializeToString()
    except Exception as error:  # of the package protobuf, which need not be there
        raise ValueError(
            f"the ONNX model is no single message: {error}. Save it with onnx.save(..., "
            "save_as_external_data=True), and load it from its path"
        ) from error


def import_graph(source: Any, dimensions: Dimensions | None = None) -> Graph:
    """A model as a graph that headrace.compile takes.

    source: open_model's. dimensions: numbers for named dimensions of inputs, or an input's whole shape by its
    name. Errors: open_model's; ValueError, too, for what cannot be expressed, with the node, its operator and
    what to do; MemoryError where the machine has not enough.
    """
    return open_model(source).read(dict(dimensions or {}))[0]


def graph_bytes(source: Any, dimensions: Dimensions | None = None) -> bytes:
    """A model as the content of a graph file (`.hrg`). Parameters and errors are import_graph's."""
    return graph_to_bytes(import_graph(source, dimensions))


def convert(source: Any, path: str | Path, dimensions: Dimensions | None = None) -> None:
    """Writes a model as a graph file; the extension chooses the form (docs/graph-files.md)."""
    save_graph(import_graph(source, dimensions), path)
