"""Programs written for ONNX Runtime, by Headrace: `import headrace.onnxruntime as onnxruntime`.

`python -m headrace.onnxruntime -m PROGRAM` runs a program whose own `import onnxruntime` gets this package.
docs/onnxruntime.md says what is here and what is not.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from .binding import IOBinding
from .environment import (
    __version__,
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
)
from .options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .providers import get_all_providers, get_available_providers, get_device
from .session import InferenceSession, ModelMetadata, NodeArg
from .values import OrtDevice, OrtMemoryInfo, OrtValue, copy_tensors

if TYPE_CHECKING:
    from types import ModuleType

SessionIOBinding = IOBinding
_ABSENT = frozenset(
    (
        *("AdapterFormat", "LoraAdapter", "ModelCompiler", "OrtCompileApiFlags", "OrtEpDevice"),
        *("SparseTensor", "create_and_register_allocator", "create_and_register_allocator_v2"),
        *("get_ep_devices", "register_execution_provider_library", "training"),
        "unregister_execution_provider_library",
    )
)


def __getattr__(name: str) -> ModuleType:
    if name == "capi":  # programs name exceptions by it without another import
        for module in ("_pybind_state", "onnxruntime_inference_collection"):
            importlib.import_module(f".capi.{module}", __name__)
        return sys.modules[f"{__name__}.capi"]
    if name in _ABSENT:
        raise AttributeError(
            f"headrace.onnxruntime has no {name}: docs/onnxruntime.md says what is there. Run this part of "
            "the program on ONNX Runtime, without headrace.onnxruntime"
        )
    raise AttributeError(f"module 'onnxruntime' (headrace.onnxruntime) has no attribute {name!r}")


__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtMemoryInfo",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "__version__",
    "copy_tensors",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]
