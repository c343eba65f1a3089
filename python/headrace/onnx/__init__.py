"""Reads ONNX models (https://onnx.ai) into graphs. Needs the package onnx.

Every operator is read by one function, registered by its name in `registry.OPERATORS`.
"""

from __future__ import annotations

try:
    import onnx as _onnx  # noqa: F401
except ImportError:
    raise ImportError(
        "reading ONNX models needs the package onnx: pip install onnx (or 'headrace[onnx]')"
    ) from None

from . import ops
from .convert import convert, graph_bytes, import_graph
from .registry import OPERATORS

__all__ = ["OPERATORS", "convert", "graph_bytes", "import_graph", "ops"]
