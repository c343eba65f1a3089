"""Reads ONNX models (https://onnx.ai) into graphs. Needs the package onnx.

Every operator is read by one function, registered by its name in `registry.OPERATORS`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    import onnx as _onnx  # noqa: F401
except ImportError:
    raise ImportError(
        "reading ONNX models needs the package onnx: pip install onnx (or 'headrace[onnx]')"
    ) from None

from headrace._core import Graph, graph_to_bytes, save_graph

from . import ops
from .importer import Dimensions, read
from .registry import OPERATORS
from .source import Source, read_model

__all__ = ["OPERATORS", "Source", "convert", "graph_bytes", "import_graph", "ops", "read", "read_model"]


def import_graph(source: Any, dimensions: Dimensions | None = None) -> Graph:
    """A model as a graph that headrace.compile takes.

    source: a path, a file's bytes or an onnx.ModelProto. dimensions: numbers for named dimensions of inputs,
    or an input's whole shape by its name. Errors: OSError for a file that cannot be read; ValueError for what
    is no valid model or cannot be expressed, with the node, its operator and what to do.
    """
    return read(source, dimensions)[0]


def graph_bytes(source: Any, dimensions: Dimensions | None = None) -> bytes:
    """A model as the content of a graph file (`.hrg`). Parameters and errors are import_graph's."""
    return graph_to_bytes(import_graph(source, dimensions))


def convert(source: Any, path: str | Path, dimensions: Dimensions | None = None) -> None:
    """Writes a model as a graph file; the extension chooses the form (docs/graph-files.md)."""
    save_graph(import_graph(source, dimensions), path)
