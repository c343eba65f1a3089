"""ONNX models (https://onnx.ai) as graphs. The package onnx is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace._core import Graph, graph_to_bytes, save_graph
from headrace.loading import open_model

__all__ = ["convert", "graph_bytes", "import_graph", "open_model"]

Dimensions = Mapping[str, Any]


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
