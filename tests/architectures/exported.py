"""An architecture as an ONNX file with open dimensions, by either exporter of PyTorch."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from architecture import Architecture

warnings.filterwarnings("ignore")


def export(a: Architecture, path: Path, dynamo: bool) -> None:
    """Writes the model. Errors: whatever the exporter raises."""
    options: dict[str, Any] = {"input_names": a.names, "output_names": a.outputs or None}
    with torch.no_grad():
        if dynamo:
            shapes = grouped(a, [{axis: _named(n) for axis, n in d.items()} for d in a.dimensions])
            program = torch.onnx.export(
                a.module, a.inputs(0), dynamo=True, verbose=False, dynamic_shapes=shapes, **options
            )
            program.save(str(path))
        else:
            axes = {n: dict(d) for n, d in zip(a.names, a.dimensions, strict=True)}
            torch.onnx.export(
                a.module, a.inputs(0), str(path), dynamo=False, opset_version=18, dynamic_axes=axes, **options
            )


def _named(name: str) -> Any:
    """The sum of two others is left to the exporter."""
    return torch.export.Dim.AUTO if "+" in name else name


def grouped(a: Architecture, dims: list) -> Any:
    """As torch.export wants them: what becomes *arguments is one tuple."""
    parameters = list(inspect.signature(a.module.forward).parameters.values())
    plain = [p for p in parameters if p.kind != p.VAR_POSITIONAL]
    if len(plain) == len(parameters):
        return tuple(dims)
    return (*dims[: len(plain)], tuple(dims[len(plain) :]))


def session_of(path: Path, threads: int = 2) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
