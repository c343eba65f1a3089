"""What pywebnn has besides the specification: host and device tensors, backend_info, MLGraph.load."""

from __future__ import annotations

from typing import Any

import numpy as np
from headrace._core import MLContext, MLGraph, MLTensor
from headrace._core import devices as _devices

_native_save = MLGraph.save


class MLDeviceTensor:
    """Memory that a graph reads or writes in place, made by create_device_tensor; it lies with the CPU."""

    def __init__(self, context: MLContext, tensor: MLTensor) -> None:
        self._context, self._tensor = context, tensor
        self.shape, self.data_type, self.size = tensor.shape, tensor.data_type, tensor.size
        self.device, self.backend = "cpu", "ggml"

    def read(self) -> np.ndarray:
        """The content, with the tensor's dtype and shape."""
        return self._context.read_tensor(self._tensor)

    def write(self, data: Any) -> None:
        """Replaces the content; ValueError when the shape is another."""
        self._context.write_tensor(self._tensor, data)

    def destroy(self) -> None:
        """Frees the memory; RuntimeError the second time."""
        self._tensor.destroy()

    def __repr__(self) -> str:
        return f"MLDeviceTensor({self.data_type}{self.shape}, device={self.device!r})"


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


def create_host_tensor(self: MLContext, shape: list[int], data_type: str) -> MLTensor:
    """A tensor that can be read and written."""
    return self.create_tensor(shape, data_type, readable=True, writable=True)


def create_device_tensor(
    self: MLContext, graph: MLGraph, shape: list[int], data_type: str, device: str | None = None
) -> MLDeviceTensor:
    """A tensor where `graph` runs. device: "cpu"; RuntimeError for what is not built in, else ValueError."""
    if device in ("cuda", "directml", "coreml"):
        raise RuntimeError(
            f"create_device_tensor: device '{device}' is not available in this build; use 'cpu'"
        )
    if device not in (None, "cpu"):
        raise ValueError(
            f"create_device_tensor: unknown device '{device}'; known: cpu, cuda, directml, coreml"
        )
    return MLDeviceTensor(self, create_host_tensor(self, shape, data_type))


def dispatch_with_device_tensors(
    self: MLContext, graph: MLGraph, inputs: dict[str, MLDeviceTensor], outputs: dict[str, MLDeviceTensor]
) -> None:
    """dispatch() on device tensors."""
    self.dispatch(
        graph, {k: t._tensor for k, t in inputs.items()}, {k: t._tensor for k, t in outputs.items()}
    )


def load(path: str, manifest_path: str | None = None, weights_path: str | None = None) -> MLGraph:
    """A graph file for the CPU, which any context may run; MLContext.load_graph loads for one.

    path: what save() wrote, or `.webnn` text or JSON of the WebNN graph tools.
    manifest_path, weights_path: where the weights of text and JSON are, if not beside it as
    <stem>.manifest.json and <stem>.weights.
    """
    return MLContext(accelerated=False)._load_shared(path, manifest_path or "", weights_path or "")


def save(self: MLGraph, path: str, quantized: bool = False) -> None:
    """Writes the graph and its weights, as .webnn, .json or, for any other extension, one file of our own.

    quantized=True is not supported: ValueError.
    """
    if quantized:
        raise ValueError(
            "MLGraph.save: quantized=True is not supported; graphs of low-power contexts are saved quantised"
        )
    _native_save(self, path)


def install() -> None:
    """Adds the methods above."""
    MLContext.backend_info = backend_info
    MLContext.create_host_tensor = create_host_tensor
    MLContext.create_device_tensor = create_device_tensor
    MLContext.dispatch_with_host_tensors = MLContext.dispatch
    MLContext.dispatch_with_device_tensors = dispatch_with_device_tensors
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
    MLGraph.save = save
