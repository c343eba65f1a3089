"""libwasi_nn_llamacpp.so for ctypes: where it is, headrace/wasi_nn_llamacpp.h's structures, its calls."""

from __future__ import annotations

import ctypes
import json
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._built import built_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INVALID_ENCODING, TOO_LARGE, END_OF_SEQUENCE = 2, 7, 100
#: The number of an output that tells what a context's inputs and outputs are.
DESCRIPTION = 0xFFFFFFFF


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


@lru_cache(maxsize=16)
def _read_description(text: bytes) -> dict[str, Any]:
    """Each run of a graph asks, and most often hears the same. Nobody may change what this gives."""
    return json.loads(text)


class BackendError(Exception):
    """A call failed. code: headrace::Code's name, or that of a number which is none of its."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Backend:
    """One backend of the library, whose calls raise BackendError."""

    def __init__(self, library: Path, config: Mapping[str, object]) -> None:
        self.library = ctypes.CDLL(os.fspath(library))
        self.handle = ctypes.c_void_p()
        self._closing, self._is_open = threading.Lock(), True
        text = json.dumps(config).encode()
        code = self.library.init_backend_with_config(ctypes.byref(self.handle), text, len(text))
        if code:
            raise ValueError(f"the configuration {text.decode()} was refused with {code}; the log says why")

    def close(self) -> None:
        """Ends what runs in it. From any thread, and again."""
        with self._closing:
            if self._is_open:
                self.library.deinit_backend(self.handle)
            self._is_open = False

    def _call(self, name: str, *arguments: Any) -> None:
        number = getattr(self.library, name)(self.handle, *arguments)
        if number:
            raise self._error(number)

    def _error(self, number: int) -> BackendError:
        """The library's last failure, unless another thread's came between."""
        told = json.loads(self.output(0, 1))["error"]
        code = {INVALID_ENCODING: "invalid_encoding", TOO_LARGE: "too_large"}.get(number, told["code"])
        return BackendError(code, told["message"])

    def _number(self, name: str, *arguments: Any) -> int:
        number = ctypes.c_uint32()
        self._call(name, *arguments, ctypes.byref(number))
        return number.value

    def load(self, model: bytes, encoding: int, target: int) -> int:
        part = Bytes(ctypes.cast(ctypes.c_char_p(model), ctypes.c_void_p), len(model))
        array = Array(ctypes.pointer(part), 1)
        return self._number("load", ctypes.byref(array), ctypes.c_uint32(encoding), ctypes.c_uint32(target))

    def load_by_name(self, name: str, config: str = "") -> int:
        texts = (name.encode(), config.encode())
        return self._number(
            "load_by_name_with_config",
            *(item for text in texts for item in (text, ctypes.c_uint32(len(text)))),
        )

    def unload(self, graph: int) -> None:
        self._call("unload", ctypes.c_uint32(graph))

    def open_context(self, graph: int, session: str | None = None) -> int:
        if session is None:
            return self._number("init_execution_context", ctypes.c_uint32(graph))
        return self._number("headrace_init_execution_context", ctypes.c_uint32(graph), session.encode())

    def close_context(self, context: int) -> None:
        self._call("close_execution_context", ctypes.c_uint32(context))

    def set_input(self, context: int, index: int, kind: int, dimensions: Sequence[int], data: bytes) -> None:
        """data is copied. kind: the interface's number of the type."""
        extents = (ctypes.c_uint32 * len(dimensions))(*dimensions)
        shape = Bytes(ctypes.addressof(extents), len(dimensions))
        content = Bytes(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))
        value = Tensor(ctypes.pointer(shape), kind, content)
        self._call("set_input", ctypes.c_uint32(context), ctypes.c_uint32(index), ctypes.byref(value))

    def set_text(self, context: int, index: int, text: bytes) -> None:
        self.set_input(context, index, 3, [len(text)], text)

    def compute(self, context: int) -> None:
        self._call("compute", ctypes.c_uint32(context))

    def output(self, context: int, index: int, expected: int = 4096) -> bytes:
        """expected: bytes for which there is room at first."""
        return self._output("get_output", context, index, expected)

    def _output(self, name: str, context: int, index: int, capacity: int) -> bytes:
        numbers = (ctypes.c_uint32(context), ctypes.c_uint32(index))
        while True:
            room, size = ctypes.create_string_buffer(max(capacity, 1)), ctypes.c_uint32()
            buffer = Bytes(ctypes.addressof(room), capacity)
            code = getattr(self.library, name)(
                self.handle, *numbers, ctypes.byref(buffer), ctypes.byref(size)
            )
            if code == 0:
                return ctypes.string_at(room, size.value)
            if code != TOO_LARGE or size.value <= capacity:
                raise self._error(code) if context else BackendError("backend_failure", f"error {code}")
            capacity = size.value

    def description(self, context: int) -> dict[str, Any]:
        """{"kind": "graph", "inputs": [...], "outputs": [...]}, or {"kind": "language_model", ...}."""
        return _read_description(self.output(context, DESCRIPTION))

    def next_piece(self, context: int) -> str | None:
        """The next piece of an answer; None behind the last one."""
        code = self.library.compute_single(self.handle, ctypes.c_uint32(context))
        if code == END_OF_SEQUENCE:
            return None
        if code:
            raise self._error(code)
        return self._output("get_output_single", context, 0, 4096).decode(errors="replace")

    def end_pieces(self, context: int) -> None:
        self._call("fini_single", ctypes.c_uint32(context))
