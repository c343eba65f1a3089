"""Execution providers: there is one, Headrace on the CPU; others are warned about, as ONNX Runtime does."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

CPU = "CPUExecutionProvider"
# All that ONNX Runtime knows, in the order in which it would prefer them.
_KNOWN = (
    "NvTensorRTRTXExecutionProvider", "TensorrtExecutionProvider", "CUDAExecutionProvider",
    "MIGraphXExecutionProvider", "OpenVINOExecutionProvider", "DnnlExecutionProvider",
    "VitisAIExecutionProvider", "QNNExecutionProvider", "NnapiExecutionProvider", "VSINPUExecutionProvider",
    "JsExecutionProvider", "CoreMLExecutionProvider", "ACLExecutionProvider", "DmlExecutionProvider",
    "RknpuExecutionProvider", "WebNNExecutionProvider", "WebGpuExecutionProvider", "XnnpackExecutionProvider",
    "CANNExecutionProvider", "AzureExecutionProvider", CPU,
)  # fmt: skip


def get_all_providers() -> list[str]:
    return list(_KNOWN)


def get_available_providers() -> list[str]:
    return [CPU]


def get_device() -> str:
    return "CPU"


def chosen_providers(providers: Any, options: Any) -> list[str]:
    """Those that a session has, of what it was given. Warns about others.

    Errors: RuntimeError for a provider that is not known, ValueError for what is no list of providers,
    TypeError for what is no list at all.
    """
    names = _names(providers, options)
    available = get_available_providers()
    seen: list[str] = []
    for name in names:
        if name not in available:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names."
                f"Available providers: '{', '.join(available)}'",
                stacklevel=4,
            )
        if name in seen:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
        else:
            seen.append(name)
    for name in seen:
        if name not in _KNOWN:
            raise RuntimeError(f"Unknown Provider Type: {name}")
    return [CPU]


def _names(providers: Any, options: Any) -> list[str]:
    if providers is None:
        return []
    iter(providers)
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if options is not None:
        _check_options(providers, options)
        return list(providers)
    names = []
    for entry in providers:
        is_pair = isinstance(entry, tuple) and [type(part) for part in entry] == [str, dict]
        if not isinstance(entry, str) and not is_pair:
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        names.append(entry if isinstance(entry, str) else entry[0])
    return names


def _check_options(providers: Sequence[Any], options: Any) -> None:
    if not isinstance(options, Sequence):
        raise ValueError("'provider_options' should be a sequence.")
    if len(providers) != len(options):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    if not all(isinstance(name, str) for name in providers):
        raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not all(isinstance(entry, dict) for entry in options):
        raise ValueError("'provider_options' values must be dicts.")
