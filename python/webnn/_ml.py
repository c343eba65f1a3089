"""Entry points: ML, and the devices a context can run on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace._core import DeviceInfo, MLContext
from headrace._core import devices as _devices

from ._descriptors import by_our_names

_OPTIONS = {  # of the specification, and deviceType, which it had
    "powerPreference": "power_preference",
    "accelerated": "accelerated",
    "deviceType": "device_type",
}
_OURS = ("device", "host_timeout_ms", "threads", "weights", "packed_cache", "precision")


def devices() -> list[DeviceInfo]:
    """Every device that ggml found: name, description, type, free and total memory in bytes."""
    return _devices()


class ML:
    """The namespace object (`navigator.ml`) that creates contexts."""

    def create_context(
        self,
        power_preference: str | Mapping[str, Any] = "default",
        accelerated: bool = True,
        device_type: str = "auto",
        *,
        device: str = "",
        host_timeout_ms: int = 60000,
        threads: int = 0,
        weights: str = "",
        packed_cache: str = "",
        precision: str = "exact",
        **options: Any,
    ) -> MLContext:
        """A context for ggml's CPU (`accelerated=False`, or no GPU found) or the best local GPU.

        `device_type` may be "cpu", "gpu", "npu" or "auto"; hints other than "cpu" fall back to the CPU.
        `device` names a device exactly, e.g. "CUDA0" or "rpc://127.0.0.1:50052", or several remote ones with
        commas between them; one that is silent for `host_timeout_ms` is lost. `threads` 0 means
        headrace.num_threads(). `weights` is how graphs store the constant matrices of products: "as-given",
        "q8_0" or "q4_0" (blocks of 32), with which products round their other operand to 8 bits, too, as
        ggml's own do; by default "as-given", or for the power preference "low-power" "q8_0" and products in
        float32.
        `packed_cache` is where weights packed for the CPU are kept, so that later starts map them: "on"
        (~/.cache/headrace/packed), a folder or "off"; by default what HEADRACE_PACKED_CACHE says, else off.
        `precision` "fast" lets products of float32 be rounded where that is faster: a CPU that multiplies
        bfloat16 rounds to three digits what it multiplies, a GPU multiplies in its own way.
        The specification's options are taken as it has them, too: create_context({"powerPreference":
        "low-power"}) or powerPreference="low-power"; likewise deviceType. The dictionary may have the others,
        too.
        """
        if isinstance(power_preference, Mapping):
            options = {**power_preference, **options}
            power_preference = "default"
        given = {
            "power_preference": power_preference,
            "accelerated": accelerated,
            "device_type": device_type,
            "device": device,
            "host_timeout_ms": host_timeout_ms,
            "threads": threads,
            "weights": weights,
            "packed_cache": packed_cache,
            "precision": precision,
        }
        members = _OPTIONS | {name: name for name in _OURS}
        return MLContext(**given | by_our_names("create_context", options, members))

    createContext = create_context
