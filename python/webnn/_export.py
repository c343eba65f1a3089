"""Conversion of graphs to other formats."""

from __future__ import annotations

import os
from typing import Any

from headrace._core import MLContext, MLGraph, view


def convert_to_onnx(self: MLContext, graph: MLGraph, output_path: str | os.PathLike[str]) -> None:
    """Writes the graph as built as an ONNX model (operator set 21) with its weights.

    Models above 2 GiB keep their weights beside the file, in `output_path` + ".data". Needs the package onnx.
    ValueError names the operation that ONNX cannot express; OSError: the file cannot be written.
    """
    try:
        from headrace._onnx_export import export, write_model
    except ImportError as error:
        if error.name != "onnx":
            raise
        raise ImportError("convert_to_onnx needs the package onnx: pip install onnx", name="onnx") from None
    model, weights = export(view(graph))
    write_model(model, weights, os.fspath(output_path))


def convert_to_coreml(self: MLContext, graph: MLGraph, output_path: str) -> None:
    """RuntimeError: Core ML is not part of Headrace."""
    raise RuntimeError("convert_to_coreml: Core ML is not available; use convert_to_onnx")


def execute_with_coreml(self: MLContext, graph: MLGraph, *args: Any, **kwargs: Any) -> Any:
    """RuntimeError: Core ML is not part of Headrace."""
    raise RuntimeError("execute_with_coreml: Core ML is not available; use compute")


def install() -> None:
    """Adds the methods above."""
    MLContext.convert_to_onnx = convert_to_onnx
    MLContext.convert_to_coreml = convert_to_coreml
    MLContext.execute_with_coreml = execute_with_coreml
