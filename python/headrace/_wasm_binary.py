"""What hosts read in the binary of a WebAssembly guest, a core module or a component, before they compile it.

Errors: ValueError for what is no binary, of which wasmtime says more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = 8
_COMPONENT = b"\0asm\x0d\0\1\0"
#: Sections of a component that hold a core module, a component, and types; of a core module.
_CORE_MODULE, _NESTED, _TYPES = 1, 4, 7
_TABLES, _MEMORIES = 4, 5


def is_component(binary: bytes) -> bool:
    """Whether it begins as a component; else it is a core module, or none of both."""
    return binary.startswith(_COMPONENT)


def _number(binary: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and what is behind it."""
    value = shift = 0
    while at < len(binary) and shift < 70:
        byte = binary[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("the binary ends within a number")


def _leb(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _sections(binary: bytes) -> Iterator[tuple[int, bytes]]:
    at = _HEADER
    while at < len(binary):
        kind = binary[at]
        size, at = _number(binary, at + 1)
        if at + size > len(binary):
            raise ValueError("the binary ends within a section")
        yield kind, binary[at : at + size]
        at += size


@dataclass
class Contents:
    """What a guest defines: how many memories, and the least and the most elements of each table."""

    memories: int = 0
    tables: list[tuple[int, int | None]] = field(default_factory=list)


def contents_of(binary: bytes) -> Contents:
    """Of a core module, or of all that a component has."""
    found = Contents()
    _add(binary, found)
    return found


def _add(binary: bytes, found: Contents) -> None:
    nested = (_CORE_MODULE, _NESTED) if is_component(binary) else ()
    for kind, section in _sections(binary):
        if kind in nested:
            _add(section, found)
        elif nested:
            continue
        elif kind == _MEMORIES:
            found.memories += _number(section, 0)[0]
        elif kind == _TABLES:
            found.tables += _tables(section)


def _tables(section: bytes) -> Iterator[tuple[int, int | None]]:
    count, at = _number(section, 0)
    for _ in range(count):
        has_value = section.startswith(b"\x40\x00", at)
        at += 2 if has_value else 0
        at += 2 if section.startswith((b"\x63", b"\x64"), at) else 1  # the type of its elements
        flags, at = _number(section, at)
        least, at = _number(section, at)
        most = None
        if flags & 1:
            most, at = _number(section, at)
        if has_value:
            at = _behind_constant(section, at)
        yield least, most


def _behind_constant(section: bytes, at: int) -> int:
    """Behind an expression of null, a function or a global, which each have one number."""
    while section.startswith((b"\xd0", b"\xd2", b"\x23"), at):
        at = _number(section, at + 1)[1]
    if not section.startswith(b"\x0b", at):
        raise ValueError("a table's first value is none that is known")
    return at + 1


_TYPE = rb"([\x80-\xff]*[\x00-\x7f])"
#: Functions of wasi:nn with a list of bytes, as types of components, and with two numbers in its place.
_LISTS = (
    (
        re.compile(rb"\x40\x03\x0adimensions" + _TYPE + rb"\x02ty" + _TYPE + rb"\x04data" + _TYPE),
        b"\x40\x04\x0adimensions\\1\x02ty\\2\x04data\x79\x04size\x79",
    ),
    (
        re.compile(rb"\x40\x03\x07builder" + _TYPE + rb"\x08encoding" + _TYPE + rb"\x06target" + _TYPE),
        b"\x40\x04\x07builder\x79\x05count\x79\x08encoding\\2\x06target\\3",
    ),
)


def with_bytes_in_place(component: bytes) -> bytes:
    """The component with its imports of `tensor` and `load` taking where bytes lie and how many they are, in
    place of a list of them, for which wasmtime makes a value of 32 bytes for each.

    In the canonical ABI both are the same two numbers: nothing else of the component changes.
    """
    made = bytearray(component[:_HEADER])
    for kind, section in _sections(component):
        for wanted, given in _LISTS if kind == _TYPES else ():
            section = wanted.sub(given, section)
        made += bytes([kind]) + _leb(len(section)) + section
    return bytes(made)
