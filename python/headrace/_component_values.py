"""Values of WebAssembly components as wasmtime's C interface has them, in both directions.

wasmtime's own Python classes read a list of bytes one element at a time, some microseconds each. Here the
bytes of a list are cut out of its values at once; a function's signature is known, and not asked for anew in
each call.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from wasmtime import WasmtimeError
from wasmtime import _ffi as ffi

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Write = Callable[[Any, Any], None]

VALUE = ffi.wasmtime_component_val_t
SIZE = ctypes.sizeof(VALUE)
#: Of every kind of content in its value.
CONTENT = VALUE.of.offset
UNUSED = ffi.WASMTIME_COMPONENT_BOOL.value


class Store:
    """The store of a call, and the resources that pass in it."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def number_of(self, value: Any) -> int:
        """The host's number for a resource that the guest lends."""
        host = ctypes.POINTER(ffi.wasmtime_component_resource_host_t)()
        _raise(
            ffi.wasmtime_component_resource_any_to_host(self._context, value.of.resource, ctypes.byref(host))
        )
        try:
            return ffi.wasmtime_component_resource_host_rep(host)
        finally:
            ffi.wasmtime_component_resource_host_delete(host)

    def give(self, value: Any, number: int, kind: int) -> None:
        """Makes the guest own a resource of the host."""
        host = ffi.wasmtime_component_resource_host_new(True, number, kind)
        resource = ctypes.POINTER(ffi.wasmtime_component_resource_any_t)()
        try:
            _raise(ffi.wasmtime_component_resource_host_to_any(self._context, host, ctypes.byref(resource)))
        finally:
            ffi.wasmtime_component_resource_host_delete(host)
        value.kind = ffi.WASMTIME_COMPONENT_RESOURCE.value
        value.of.resource = resource


def _raise(error: Any) -> None:
    if error:
        raise WasmtimeError._from_ptr(error)


# What guests pass.


def text_of(value: Any) -> str:
    text = value.of.string
    return ctypes.string_at(text.data, text.size).decode() if text.size else ""


def name_of(value: Any) -> str:
    """The name of an enumeration's case."""
    name = value.of.enumeration
    return ctypes.string_at(name.data, name.size).decode()


def items_of(value: Any) -> list[Any]:
    """The values of a list or a tuple, which are valid as long as it."""
    return [value.of.list.data[i] for i in range(value.of.list.size)]


def bytes_of(value: Any) -> bytes:
    """A list of bytes."""
    elements = value.of.list
    return ctypes.string_at(elements.data, elements.size * SIZE)[CONTENT::SIZE] if elements.size else b""


def words_of(value: Any) -> list[int]:
    """A list of unsigned numbers of 32 bits."""
    return [item.of.u32 for item in items_of(value)]


def option_of(value: Any) -> Any | None:
    return value.of.option.contents if value.of.option else None


# What guests get: functions that write into a value.


def put_text(value: Any, text: str) -> None:
    value.kind = ffi.WASMTIME_COMPONENT_STRING.value
    value.of.string = ffi.bytes_to_capi(text.encode(errors="replace"))


def put_name(value: Any, name: str) -> None:
    value.kind = ffi.WASMTIME_COMPONENT_ENUM.value
    value.of.enumeration = ffi.bytes_to_capi(name.encode())


def put_bytes(value: Any, data: bytes) -> None:
    elements = ffi.wasmtime_component_vallist_t()
    ffi.wasmtime_component_vallist_new_uninit(ctypes.byref(elements), len(data))
    if data:
        values = bytearray(SIZE * len(data))
        values[VALUE.kind.offset :: SIZE] = bytes([ffi.WASMTIME_COMPONENT_U8.value]) * len(data)
        values[CONTENT::SIZE] = data
        ctypes.memmove(elements.data, (ctypes.c_char * len(values)).from_buffer(values), len(values))
    value.kind = ffi.WASMTIME_COMPONENT_LIST.value
    value.of.list = elements


def put_list(value: Any, writers: Sequence[Callable[[Any], None]]) -> None:
    value.of.list = _filled(
        ffi.wasmtime_component_vallist_t, ffi.wasmtime_component_vallist_new_uninit, writers
    )
    value.kind = ffi.WASMTIME_COMPONENT_LIST.value


def put_tuple(value: Any, writers: Sequence[Callable[[Any], None]]) -> None:
    value.of.tuple = _filled(
        ffi.wasmtime_component_valtuple_t, ffi.wasmtime_component_valtuple_new_uninit, writers
    )
    value.kind = ffi.WASMTIME_COMPONENT_TUPLE.value


def _filled(
    of: Callable[[], Any], allocate: Callable[[Any, int], None], writers: Sequence[Callable[[Any], None]]
) -> Any:
    """Values of a list or a tuple, as the writers fill them."""
    elements = of()
    allocate(ctypes.byref(elements), len(writers))
    for i in range(elements.size):  # so that all may be freed when a writer fails
        elements.data[i].kind = UNUSED
    for i, write in enumerate(writers):
        write(elements.data[i])
    return elements


def put_words(value: Any, numbers: Sequence[int]) -> None:
    def writer(number: int) -> Callable[[Any], None]:
        def write(item: Any) -> None:
            item.kind = ffi.WASMTIME_COMPONENT_U32.value
            item.of.u32 = number

        return write

    put_list(value, [writer(number) for number in numbers])


def _boxed(write: Callable[[Any], None]) -> Any:
    content = VALUE()
    content.kind = UNUSED
    write(content)
    return ffi.wasmtime_component_val_new(ctypes.byref(content))


def put_result(value: Any, write: Callable[[Any], None], *, is_ok: bool = True) -> None:
    content = _boxed(write)
    value.kind = ffi.WASMTIME_COMPONENT_RESULT.value
    value.of.result.is_ok = is_ok
    value.of.result.val = content


def put_option(value: Any, write: Callable[[Any], None] | None) -> None:
    content = _boxed(write) if write else None
    value.kind = ffi.WASMTIME_COMPONENT_OPTION.value
    value.of.option = content


class Functions:
    """Functions for a linker, which live as long as this."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._finalizer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(0)
        self.failure: BaseException | None = None  #: what ended the guest

    def add(self, instance: Any, name: str, function: Callable[[Store, Sequence[Any], Any], None]) -> None:
        """function: gets the store, the parameters' values and the value of the result, if there is one."""

        def call(
            _data: Any, context: Any, _type: Any, given: Any, count: int, results: Any, wanted: int
        ) -> int:
            try:
                function(Store(context), [given[i] for i in range(count)], results[0] if wanted else None)
            except BaseException as error:
                self.failure = error
                trap = WasmtimeError(str(error) or type(error).__name__)
                return ctypes.cast(trap._consume(), ctypes.c_void_p).value or 0
            return 0

        callback = ffi.wasmtime_component_func_callback_t(call)
        self._kept.append(callback)
        text = name.encode()
        _raise(
            ffi.wasmtime_component_linker_instance_add_func(
                instance.ptr(), ctypes.create_string_buffer(text), len(text), callback, None, self._finalizer
            )
        )
