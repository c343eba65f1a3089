"""Headrace: models from anywhere on ggml."""

from ._core import DeviceInfo, devices, num_threads, set_num_threads

__all__ = ["DeviceInfo", "devices", "num_threads", "set_num_threads"]
