"""Functions that core modules import, by wasmtime's C interface: wasmtime calls the WASI-NN library itself,
with no Python between, and the library reads and writes the module's memory where it is.

The structures are those of headrace/wasi_nn_guests.h.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import TYPE_CHECKING, Any

from wasmtime import FuncType, ValType, WasmtimeError
from wasmtime import _ffi as ffi

if TYPE_CHECKING:
    from collections.abc import Callable

    import wasmtime

    from ._wasi_nn import Backend

MODULE = b"wasi_ephemeral_nn"
#: Bytes of a wasmtime_extern_t for which the library has room.
MOST_ITEM_SIZE = 64

_OnFailedLoad = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)


class _Declared(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("parameters", ctypes.c_uint32))


class _Wasmtime(ctypes.Structure):
    _fields_ = (
        ("caller_export_get", ctypes.c_void_p),
        ("caller_context", ctypes.c_void_p),
        ("memory_data", ctypes.c_void_p),
        ("memory_data_size", ctypes.c_void_p),
        ("extern_delete", ctypes.c_void_p),
        ("item_size", ctypes.c_uint32),
        ("item_content", ctypes.c_uint32),
        ("memory_kind", ctypes.c_uint32),
        ("value_size", ctypes.c_uint32),
        ("on_failed_load", _OnFailedLoad),
        ("store", ctypes.c_void_p),
    )


class _Import(ctypes.Structure):
    _fields_ = (
        ("wasmtime", ctypes.POINTER(_Wasmtime)),
        ("backend", ctypes.c_void_p),
        ("number", ctypes.c_uint32),
    )


def _address(name: str) -> int:
    return ctypes.cast(getattr(ffi.dll, f"wasmtime_{name}"), ctypes.c_void_p).value or 0


class Functions:
    """The imports of `wasi_ephemeral_nn` for a guest's linker, which needs them as long as this lives."""

    def __init__(self, backend: Backend, on_failed_load: Callable[[str], None] | None = None) -> None:
        """on_failed_load: gets the name that a guest could not load."""
        extern = ffi.wasmtime_extern_t
        if ctypes.sizeof(extern) > MOST_ITEM_SIZE:
            raise RuntimeError(
                f"wasmtime's exports have {ctypes.sizeof(extern)} bytes; {MOST_ITEM_SIZE} are known"
            )

        def told(name: int, size: int) -> None:
            if on_failed_load:
                on_failed_load(ctypes.string_at(name, min(size, 200)).decode(errors="replace"))

        self._backend = backend
        self._wasmtime = _Wasmtime(
            _address("caller_export_get"),
            _address("caller_context"),
            _address("memory_data"),
            _address("memory_data_size"),
            _address("extern_delete"),
            ctypes.sizeof(extern),
            extern.of.offset,
            ffi.WASMTIME_EXTERN_MEMORY.value,
            ctypes.sizeof(ffi.wasmtime_val_raw_t),
            _OnFailedLoad(told),
            None,
        )
        self._imports: list[_Import] = []
        self._no_finalizer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(0)

    def define(self, linker: wasmtime.Linker) -> None:
        library = self._backend.library
        library.headrace_guest_import_of.restype = ctypes.POINTER(_Declared)
        for number in itertools.count():
            declared = library.headrace_guest_import_of(ctypes.c_uint32(number))
            if not declared:
                return
            made = _Import(ctypes.pointer(self._wasmtime), self._backend.handle, number)
            self._imports.append(made)
            self._define(linker, declared.contents.name, declared.contents.parameters, made)

    def _define(self, linker: wasmtime.Linker, name: bytes, parameters: int, made: _Import) -> None:
        i32 = ValType.i32()
        kind = FuncType([i32] * parameters, [i32])
        named: list[Any] = []
        for text in (MODULE, name):
            named += [ctypes.create_string_buffer(text), len(text)]
        call = ctypes.cast(
            self._backend.library.headrace_wasmtime_call, ffi.wasmtime_func_unchecked_callback_t
        )
        environment = ctypes.cast(ctypes.pointer(made), ctypes.c_void_p)
        error = ffi.wasmtime_linker_define_func_unchecked(
            linker.ptr(), *named, kind.ptr(), call, environment, self._no_finalizer
        )
        if error:
            raise WasmtimeError._from_ptr(error)
