"""Headrace: models from anywhere on ggml."""

from ._core import DeviceInfo, devices, num_threads, set_num_threads
from .model import Model, load

__all__ = ["DeviceInfo", "Model", "devices", "load", "num_threads", "set_num_threads"]
