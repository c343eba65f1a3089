"""libwasi_nn_llamacpp.so for ctypes: where it is, and the structures of headrace/wasi_nn_llamacpp.h."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ._built import built_file


class Bytes(ctypes.Structure):
    """A `tensor_data`, `tensor_dimensions` or `graph_builder`."""

    _fields_ = (("buf", ctypes.c_void_p), ("size", ctypes.c_uint32))


class Array(ctypes.Structure):
    """A `graph_builder_array`."""

    _fields_ = (("buf", ctypes.POINTER(Bytes)), ("size", ctypes.c_uint32))


class Tensor(ctypes.Structure):
    _fields_ = (("dimensions", ctypes.POINTER(Bytes)), ("type", ctypes.c_uint8), ("data", Bytes))


def find_library() -> Path:
    """libwasi_nn_llamacpp.so of the installation, or of the checkout's build."""
    try:
        return built_file("lib/libwasi_nn_llamacpp.so")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error} where llama.cpp is set up") from None
