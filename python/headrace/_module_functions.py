"""Functions that core modules import, and the memory of the module that calls, by wasmtime's C interface.

Through wasmtime's own Python classes a call takes ten times as long, most of it in checks of types, which are
all i32 here.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

from wasmtime import FuncType, ValType, WasmtimeError
from wasmtime import _ffi as ffi

if TYPE_CHECKING:
    from collections.abc import Callable

    import wasmtime

_EXTERN = ffi.wasmtime_extern_t


class OutOfBoundsError(Exception):
    """A guest's pointer and size reach outside its memory."""


class GuestMemory:
    """The linear memory of the guest that calls, for the length of one call; looked for when it is needed."""

    def __init__(self, caller: Any) -> None:
        self._caller = caller
        self._size = -1
        self._address = 0

    def _find(self) -> None:
        found = _EXTERN()
        if not ffi.wasmtime_caller_export_get(self._caller, b"memory", 6, ctypes.byref(found)):
            raise OutOfBoundsError("the guest exports no memory")
        try:
            if found.kind != ffi.WASMTIME_EXTERN_MEMORY.value:
                raise OutOfBoundsError("what the guest exports as its memory is none")
            context = ffi.wasmtime_caller_context(self._caller)
            memory = ctypes.byref(found.of.memory)
            self._size = ffi.wasmtime_memory_data_size(context, memory)
            if self._size:
                self._address = ctypes.addressof(ffi.wasmtime_memory_data(context, memory).contents)
        finally:
            ffi.wasmtime_extern_delete(ctypes.byref(found))

    def at(self, pointer: int, size: int) -> int:
        """The address of `size` bytes."""
        if self._size < 0:
            self._find()
        if pointer + size > self._size:
            raise OutOfBoundsError(f"{size} bytes at {pointer} of {self._size}")
        return self._address + pointer

    def words(self, pointer: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", ctypes.string_at(self.at(pointer, 4 * count), 4 * count))

    def put_word(self, address: int, value: ctypes.c_uint32) -> None:
        ctypes.memmove(address, ctypes.byref(value), 4)


class Functions:
    """Functions for linkers, which live as long as this."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._finalizer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(0)

    def add(
        self, linker: wasmtime.Linker, module: str, name: str, parameters: int, function: Callable[..., int]
    ) -> None:
        """function: gets a GuestMemory and as many unsigned numbers, and returns one; it throws nothing."""
        places = range(parameters)

        def call(_data: Any, caller: Any, values: Any, _count: int) -> int:
            numbers = [values[i].i32 & 0xFFFFFFFF for i in places]  # WebAssembly's i32 has no sign
            values[0].i32 = function(GuestMemory(caller), *numbers)
            return 0

        callback = ffi.wasmtime_func_unchecked_callback_t(call)
        self._kept.append(callback)
        i32 = ValType.i32()
        kind = FuncType([i32] * parameters, [i32])
        texts = (module.encode(), name.encode())
        named = [item for text in texts for item in (ctypes.create_string_buffer(text), len(text))]
        error = ffi.wasmtime_linker_define_func_unchecked(
            linker.ptr(), *named, kind.ptr(), callback, None, self._finalizer
        )
        if error:
            raise WasmtimeError._from_ptr(error)
