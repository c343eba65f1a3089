"""What pywebnn has besides the specification: host tensors, backend_info, MLGraph.load."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace._core import MLContext, MLGraph, MLTensor
from headrace._core import devices as _devices

from . import _descriptors


def backend_info(self: MLContext) -> dict[str, Any]:
    """Which backend this context runs on, and what is there."""
    return {
        "backend": "ggml",
        "device": self.device,
        "backend_available": True,
        "accelerated_available": any(d.type in ("gpu", "igpu") for d in _devices()),
        "compiled_features": {
            "ggml": True,
            "onnx_runtime": False,
            "coreml_runtime": False,
            "trtx_runtime": False,
        },
    }


def create_tensor(
    self: MLContext,
    shape: Sequence[int] | Mapping[str, Any],
    data_type: str | None = None,
    readable: bool = False,
    writable: bool = False,
    exportable_to_gpu: bool = False,
    **options: Any,
) -> MLTensor:
    """A tensor of zeros: create_tensor([2, 3], "float32", readable=True).

    shape: the extents, or the specification's descriptor, a dict with "dataType", "shape" and what is wanted
    of "readable", "writable" and "exportableToGPU". options: the specification's spelling of the parameters.
    exportable_to_gpu is kept and changes nothing else: tensors lie with the CPU.
    """
    given = {
        "data_type": data_type,
        "readable": readable,
        "writable": writable,
        "exportable_to_gpu": exportable_to_gpu,
    }
    named = functools.partial(_descriptors.by_our_names, "create_tensor", members=_descriptors.TENSOR)
    given |= named(shape) if isinstance(shape, Mapping) else {"shape": shape}
    given |= named(options)
    missing = [name for name in ("shape", "data_type") if given.get(name) is None]
    if missing:
        raise TypeError(f"create_tensor: {missing[0]} is missing")
    for name in ("readable", "writable", "exportable_to_gpu"):
        if not isinstance(given[name], bool):
            raise TypeError(f"create_tensor: {name} is {given[name]!r}; it must be True or False")
    extents = given["shape"]
    if not isinstance(extents, Iterable) or not all(hasattr(d, "__index__") for d in extents):
        raise TypeError(f"create_tensor: shape is {extents!r}; it must be a list of integers")
    return self._create_tensor(**given)


def create_constant_tensor(self: MLContext, data: Any, data_type: Any = None) -> MLTensor:
    """A tensor for MLGraphBuilder.constant, with a copy of the array; nobody can read or write it.

    data: an array, nested lists or a number, and data_type its type if another is wanted; or, as in the
    specification, a descriptor (a dict with "dataType" and "shape") and then the data.
    """
    if not isinstance(data, Mapping):
        return self._create_constant_tensor(data, data_type)
    call = "create_constant_tensor"
    if data_type is None:
        raise TypeError(f"{call}: data is missing after the descriptor")
    shape, dtype = _descriptors.operand(call, data)
    array = _descriptors.elements(call, data_type, shape, dtype)
    return self._create_constant_tensor(array, dtype)


def create_host_tensor(self: MLContext, shape: list[int], data_type: str) -> MLTensor:
    """A tensor that can be read and written."""
    return self.create_tensor(shape, data_type, readable=True, writable=True)


def load(
    path: str | os.PathLike[str],
    manifest_path: str | os.PathLike[str] | None = None,
    weights_path: str | os.PathLike[str] | None = None,
) -> MLGraph:
    """A graph file for the CPU, which any context may run; MLContext.load_graph loads for one.

    path: what save() wrote, or `.webnn` text or JSON of the WebNN graph tools.
    manifest_path, weights_path: where the weights of text and JSON are, if not beside it as
    <stem>.manifest.json and <stem>.weights.
    """
    paths = (os.fspath(given or "") for given in (path, manifest_path, weights_path))
    return MLContext(accelerated=False)._load_shared(*paths)


def install() -> None:
    """Adds the methods above."""
    MLContext.backend_info = backend_info
    MLContext.create_tensor = create_tensor
    MLContext._create_constant_tensor = MLContext.create_constant_tensor
    MLContext.create_constant_tensor = create_constant_tensor
    MLContext.create_host_tensor = create_host_tensor
    MLContext.dispatch_with_host_tensors = MLContext.dispatch
    MLContext.dispatch_with_device_tensors = MLContext.dispatch
    for name in (
        "create_tensor",
        "create_constant_tensor",
        "create_graph_builder",
        "read_tensor",
        "write_tensor",
        "op_support_limits",
    ):
        head, *tail = name.split("_")
        setattr(MLContext, head + "".join(part.capitalize() for part in tail), getattr(MLContext, name))
    MLGraph.load = staticmethod(load)
