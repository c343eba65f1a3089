"""What hosts read in the binary of a WebAssembly guest, a core module or a component, before they compile it.

Errors: ValueError for what is no binary, of which wasmtime says more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = 8
_MAGIC = b"\0asm"
_COMPONENT = _MAGIC + b"\x0d\0\1\0"
#: Sections of a component that hold a core module and a component; of a core module.
_CORE_MODULE, _NESTED = 1, 4
_TABLES, _MEMORIES = 4, 5


def is_component(binary: bytes) -> bool:
    """Whether it begins as a component; else it is a core module, or none of both."""
    return binary.startswith(_COMPONENT)


def check_is_guest(binary: bytes) -> None:
    """Raises ValueError for what is neither WebAssembly nor its text form."""
    if not binary.startswith(_MAGIC) and not re.match(rb"\s*(\(|;;)", binary):
        raise ValueError(f"it begins with {binary[:4]!r}; a WebAssembly guest begins with {_MAGIC!r}")


def read_number(binary: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and what is behind it."""
    value = shift = 0
    while at < len(binary) and shift < 70:
        byte = binary[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("the binary ends within a number")


def sections(binary: bytes) -> Iterator[tuple[int, bytes]]:
    """Each one's number and content."""
    at = HEADER
    while at < len(binary):
        kind = binary[at]
        size, at = read_number(binary, at + 1)
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
    """What a core module has, or all that a component has."""
    found = Contents()
    _add(binary, found)
    return found


def _add(binary: bytes, found: Contents) -> None:
    nested = (_CORE_MODULE, _NESTED) if is_component(binary) else ()
    for kind, section in sections(binary):
        if kind in nested:
            _add(section, found)
        elif nested:
            continue
        elif kind == _MEMORIES:
            found.memories += read_number(section, 0)[0]
        elif kind == _TABLES:
            found.tables += _tables(section)


def _tables(section: bytes) -> Iterator[tuple[int, int | None]]:
    count, at = read_number(section, 0)
    for _ in range(count):
        has_value = section.startswith(b"\x40\x00", at)
        at += 2 if has_value else 0
        is_of_type = section.startswith((b"\x63", b"\x64"), at)  # its elements; else that is all
        at = read_number(section, at + 1)[1] if is_of_type else at + 1
        flags, at = read_number(section, at)
        least, at = read_number(section, at)
        most = None
        if flags & 1:
            most, at = read_number(section, at)
        if has_value:
            at = _behind_constant(section, at)
        yield least, most


def _behind_constant(section: bytes, at: int) -> int:
    """Behind an expression of null, a function or a global, which each have one number."""
    while section.startswith((b"\xd0", b"\xd2", b"\x23"), at):
        at = read_number(section, at + 1)[1]
    if not section.startswith(b"\x0b", at):
        raise ValueError("a table's first value is none that is known")
    return at + 1
