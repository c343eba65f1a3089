"""What components import, wasi:nn 0.2 and headrace:nn: wasmtime calls the WASI-NN library itself, with no
Python between.

The functions are those of headrace/wasi_nn_guests.h; the library knows how wasmtime lays out values.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any

from wasmtime import WasmtimeError
from wasmtime import _ffi as ffi

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import wasmtime

    from ._wasi_nn import Backend

_FunctionOf = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
_OnFailedLoad = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)

#: As src/doors/wasi_nn/component_values.h has them.
_KINDS = {
    "BOOL": 0, "U8": 2, "U32": 6, "U64": 8, "STRING": 12, "LIST": 13, "TUPLE": 15, "ENUM": 17, "OPTION": 18,
    "RESULT": 19, "RESOURCE": 21,
}  # fmt: skip
_VALUE_SIZE, _CONTENT, _RESULTS_VALUE = 32, 8, 8
_MEMORY_SIZE, _CREATOR_SIZE = 32, 24


def _check_layout() -> None:
    """Another wasmtime may lay out its values in another way; they would be misread in silence."""
    value = ffi.wasmtime_component_val_t
    found = (ctypes.sizeof(value), value.of.offset, ffi.wasmtime_component_valresult_t.val.offset)
    memory = (ctypes.sizeof(ffi.wasmtime_linear_memory_t), ctypes.sizeof(ffi.wasmtime_memory_creator_t))
    kinds = {name: getattr(ffi, f"WASMTIME_COMPONENT_{name}").value for name in _KINDS}
    is_known = found == (_VALUE_SIZE, _CONTENT, _RESULTS_VALUE) and memory == (_MEMORY_SIZE, _CREATOR_SIZE)
    if not is_known or kinds != _KINDS:
        raise RuntimeError("this wasmtime lays out the values of components in a way that is not known")


def _function_of(name: bytes) -> int | None:
    function = getattr(ffi.dll, name.decode(), None)
    return ctypes.cast(function, ctypes.c_void_p).value if function else None


class Memories:
    """Where wasmtime makes the memories of one guest, all of which together are bounded."""

    def __init__(self, library: Path, most_bytes: int | None = None) -> None:
        _check_layout()
        self._library = ctypes.CDLL(os.fspath(library))
        self._library.headrace_memories_new.restype = ctypes.c_void_p
        self._library.headrace_memories_define.restype = ctypes.c_bool
        self._find = _FunctionOf(_function_of)
        self.handle = ctypes.c_void_p(
            self._library.headrace_memories_new(self._find, ctypes.c_uint64(most_bytes or 0))
        )

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.headrace_memories_delete(self.handle)

    def define(self, config: wasmtime.Config) -> None:
        """For one engine."""
        config.memory_init_cow = False  # which is for memories of wasmtime's own alone
        if not self.handle or not self._library.headrace_memories_define(
            self.handle, self._find, config.ptr()
        ):
            raise RuntimeError("this wasmtime lets no host make memories")


class Components:
    """The functions that components import, for one guest, which needs them as long as it lives."""

    def __init__(
        self,
        backend: Backend,
        on_failed_load: Callable[[str], None] | None = None,
        most_bytes: int | None = None,
        memories: Memories | None = None,
    ) -> None:
        """on_failed_load: gets the name that a guest could not load; most_bytes: of its tensors; memories:
        the guest's, where it may pass bytes in place."""
        _check_layout()

        def told(name: int, size: int) -> None:
            if on_failed_load:
                on_failed_load(ctypes.string_at(name, min(size, 200)).decode(errors="replace"))

        self._library = backend.library
        self._library.headrace_components_new.restype = ctypes.c_void_p
        self._library.headrace_components_define.restype = ctypes.POINTER(ffi.wasmtime_error_t)
        self._library.headrace_components_failure.restype = ctypes.c_char_p
        self._told = _OnFailedLoad(told)
        self._handle = ctypes.c_void_p(
            self._library.headrace_components_new(
                backend.handle,
                _FunctionOf(_function_of),
                ctypes.c_uint64(most_bytes or 0),
                self._told,
                memories.handle if memories else None,
            )
        )
        if not self._handle:
            raise RuntimeError("the backend is closed, or this wasmtime lacks functions of components")

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.headrace_components_delete(self._handle)

    @property
    def failure(self) -> str | None:
        """What ended the guest, if a function of ours did."""
        text: bytes | None = self._library.headrace_components_failure(self._handle)
        return text.decode(errors="replace") if text else None

    def define(self, linker: Any) -> None:
        """Gives the imports to a component linker."""
        error = self._library.headrace_components_define(self._handle, linker.ptr())
        if error:
            raise WasmtimeError._from_ptr(error)
