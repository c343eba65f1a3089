"""libwasi_nn_llamacpp.so for ctypes: where it is, and what headrace/wasi_nn_llamacpp.h declares."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

from ._built import built_file

TOO_LARGE = 7
END_OF_SEQUENCE = 100


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


@functools.cache
def load_library(path: Path) -> ctypes.CDLL:
    """The library with its signatures declared. Calls release the interpreter's lock."""
    library = ctypes.CDLL(os.fspath(path))
    backend, number, text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p
    number_out = ctypes.POINTER(number)
    signatures = {
        "init_backend_with_config": (ctypes.POINTER(backend), text, number),
        "deinit_backend": (backend,),
        "load_by_name_with_config": (backend, text, number, text, number, number_out),
        "unload": (backend, number),
        "init_execution_context": (backend, number, number_out),
        "close_execution_context": (backend, number),
        "set_input": (backend, number, number, ctypes.POINTER(Tensor)),
        "compute": (backend, number),
        "compute_single": (backend, number),
        "get_output": (backend, number, number, ctypes.POINTER(Bytes), number_out),
        "get_output_single": (backend, number, number, ctypes.POINTER(Bytes), number_out),
        "cancel_inference": (backend, number),
        "get_statistics": (backend, ctypes.POINTER(Bytes), number_out),
    }
    for name, parameters in signatures.items():
        getattr(library, name).argtypes = parameters
    return library
