"""headrace.load: a model file as something that is called with arrays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._core import view

if TYPE_CHECKING:
    import webnn


@dataclass(frozen=True)
class Tensor:
    """An input or output: a name in the shape is a dimension that is known only at run time."""

    name: str
    shape: list[int | str]
    dtype: np.dtype


class Model:
    """A compiled graph; load() makes it.

    model(a, b) takes arrays in the order of `inputs`, model(x=a) and model({"x": a}) by name. The result is a
    dict of arrays by name, in the order of `outputs`.
    """

    def __init__(self, context: webnn.MLContext, graph: webnn.MLGraph, title: str) -> None:
        self.context, self.graph, self._title = context, graph, title
        seen = view(graph)
        self.inputs = [_tensor(seen.values[i], seen.values[i].name) for i in seen.inputs]
        self.outputs = [_tensor(seen.values[i], name) for name, i in seen.outputs]

    def __call__(self, *arrays: Any, **named: Any) -> dict[str, np.ndarray]:
        """Runs the model. Errors: ValueError for missing, unknown or unfit inputs."""
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            named = {**arrays[0], **named}
            arrays = ()
        names = [tensor.name for tensor in self.inputs]
        if len(arrays) > len(names):
            raise ValueError(f"{self._title} has {len(names)} inputs, {names}; {len(arrays)} are given")
        given = dict(zip(names, arrays, strict=False))
        twice, unknown = sorted(set(given) & set(named)), sorted(set(named) - set(names))
        missing = [name for name in names if name not in given and name not in named]
        for found, what in ((twice, "is given twice"), (unknown, "is no input"), (missing, "is missing")):
            if found:
                raise ValueError(f"{self._title}: input '{found[0]}' {what}; there are {names}")
        feeds = {**given, **named}
        results = self.context.compute(self.graph, {t.name: _fit(feeds[t.name], t) for t in self.inputs})
        return {tensor.name: results[tensor.name] for tensor in self.outputs}

    def save(self, path: str | Path) -> None:
        """Writes a graph file; the extension chooses the form (docs/graph-files.md)."""
        self.graph.save(str(path))

    def __repr__(self) -> str:
        def listed(tensors: list[Tensor]) -> str:
            return ", ".join(f"{t.name}: {t.dtype.name}{t.shape}".replace("'", "") for t in tensors)

        return f"Model({self._title}: {listed(self.inputs)} -> {listed(self.outputs)})"


def _tensor(value: Any, name: str) -> Tensor:
    """Views call WebNN's dtypes by their long names, and the others by the catalog's."""
    from webnn._arrays import dtype_of

    try:
        dtype = dtype_of({"int4": "i4", "uint4": "u4"}.get(value.data_type, value.data_type))
    except KeyError:
        dtype = np.dtype(value.data_type)
    return Tensor(name, [d if isinstance(d, int) else d[0] for d in value.shape], dtype)


def _fit(value: Any, tensor: Tensor) -> Any:
    """The array, unless its elements would change their meaning on the way to the input's dtype."""
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__"):
            return value
        value = np.asarray(value)
    if value.dtype == tensor.dtype or value.dtype == bool:
        return value
    if value.dtype.kind not in "fiubV":
        raise ValueError(f"input '{tensor.name}' is {value.dtype.name}; it must be {tensor.dtype.name}")
    if tensor.dtype.kind in "iu" and value.dtype.kind in "fiu":
        fitting = value.astype(tensor.dtype) if value.dtype.kind != "f" else None
        if fitting is None or not np.array_equal(fitting, value):
            raise ValueError(
                f"input '{tensor.name}' is {value.dtype.name}, with values that {tensor.dtype.name} does not "
                "hold; convert it first"
            )
        return fitting
    return value


def load(
    path: Any,
    *,
    device: str | None = None,
    dimensions: Mapping[str, int | list[int]] | None = None,
    **options: Any,
) -> Model:
    """A model that can be called: an ONNX model (`.onnx`) or a graph file (`.hrg`, `.webnn`, `.json`).

    path: the file; of ONNX models also its bytes or an onnx.ModelProto. device: a name of headrace.devices();
    None takes the best GPU, or else the CPU. dimensions: numbers for an ONNX model's named dimensions, which
    otherwise stay open until the model is called, or an input's whole shape by its name. options: those of
    webnn.ML().create_context, such as threads=2 or weights="q8_0".

    Errors: OSError for a file that cannot be read, FileNotFoundError where there is none; ImportError without
    the package onnx; ValueError for what is no valid model, or for what it has that cannot be expressed, with
    the node, its operator and what to do; MemoryError where the machine has not enough.
    """
    import webnn

    if device is not None:
        options |= {"accelerated": False} if device.lower() == "cpu" else {"device": device}
    context = webnn.ML().create_context(**options)
    is_path = isinstance(path, (str, os.PathLike))
    title = os.path.basename(os.fspath(path)) if is_path else "the ONNX model"
    return Model(context, open_graph(context, path, dimensions), title)


def is_onnx(path: Any) -> bool:
    """Whether load() reads it as an ONNX model."""
    return not isinstance(path, (str, os.PathLike)) or Path(path).suffix.lower() == ".onnx"


def open_graph(
    context: webnn.MLContext, path: Any, dimensions: Mapping[str, int | list[int]] | None = None
) -> webnn.MLGraph:
    """load()'s graph, compiled for a context."""
    if not is_onnx(path):
        if dimensions:
            raise ValueError(
                f"{path}: dimensions are for ONNX models; a graph file keeps those it was saved with"
            )
        if not os.path.exists(path):
            raise FileNotFoundError(f"{path} does not exist")
        return context.load_graph(str(path))
    from .onnx import graph_bytes

    content = graph_bytes(path, dimensions)
    number, own = tempfile.mkstemp(".hrg", "headrace-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        return context.load_graph(own)  # which keeps the file's pages, also without its name
    finally:
        os.unlink(own)
