"""An architecture as an ONNX file with open dimensions, by either exporter, and what ONNX Runtime makes of it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from architecture import Architecture

warnings.filterwarnings("ignore")


def export(a: Architecture, path: Path, dynamo: bool) -> None:
    """Writes the model. Errors: whatever the exporter raises."""
    inputs = a.inputs(0)
    options: dict[str, Any] = {"input_names": a.names, "output_names": a.outputs or None}
    if dynamo:
        dims = tuple(dict(d) for d in a.dimensions)
        options["dynamic_shapes"] = _grouped(a, dims)
        with torch.no_grad():
            program = torch.onnx.export(
                a.module, inputs, dynamo=True, verbose=False, optimize=True, **options
            )
        program.save(str(path))
    else:
        options["dynamic_axes"] = {n: dict(d) for n, d in zip(a.names, a.dimensions, strict=True)}
        with torch.no_grad():
            torch.onnx.export(a.module, inputs, str(path), dynamo=False, opset_version=18, **options)


def _grouped(a: Architecture, dims: tuple) -> Any:
    """As torch.export wants them: arguments of *args are one tuple. The sum of two is left to the exporter."""
    import inspect

    auto = torch.export.Dim.AUTO
    dims = tuple({axis: auto if "+" in n else n for axis, n in d.items()} for d in dims)
    parameters = list(inspect.signature(a.module.forward).parameters.values())
    plain = [p for p in parameters if p.kind != p.VAR_POSITIONAL]
    if len(plain) == len(parameters):
        return dims
    return (*dims[: len(plain)], dims[len(plain) :])


def reference(path: Path, inputs: tuple, threads: int = 2) -> tuple[list[np.ndarray], list[str]]:
    """ONNX Runtime's results, and the names of the model's inputs, some of which the exporter may leave out."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session
