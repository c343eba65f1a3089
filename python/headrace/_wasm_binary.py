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
#: Of a component, those that its functions are numbered in.
_ALIASES, _CANONICAL, _IMPORTS, _EXPORTS = 6, 8, 10, 11
#: How strings are encoded, as options of a function; the last one is Latin-1 where that has all characters.
_ENCODINGS, _LATIN_1 = (0, 1, 2), 2


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
#: Functions of wasi:nn that take a list of bytes, as types of components, and with two numbers in its place.
_TAKING = (
    (
        re.compile(rb"\x40\x03\x0adimensions" + _TYPE + rb"\x02ty" + _TYPE + rb"\x04data" + _TYPE),
        b"\x40\x04\x0adimensions\\1\x02ty\\2\x04data\x79\x04size\x79",
    ),
    (
        re.compile(rb"\x40\x03\x07builder" + _TYPE + rb"\x08encoding" + _TYPE + rb"\x06target" + _TYPE),
        b"\x40\x04\x07builder\x79\x05count\x79\x08encoding\\2\x06target\\3",
    ),
)
#: The one that gives such a list, with its name; and with a string in its place.
_GIVES = b"[method]tensor.data"
_GIVING = (
    re.compile(rb"\x40\x01\x04self" + _TYPE + rb"\x00" + _TYPE + rb"\x04\x00\x13" + re.escape(_GIVES)),
    b"\x40\x01\x04self\\1\x00\x73\x04\x00\x13" + _GIVES,
)


def with_bytes_in_place(component: bytes) -> bytes | None:
    """The component with its imports of `tensor` and `load` taking where bytes lie and how many they are, in
    place of a list of them, for which wasmtime makes a value of 32 bytes for each; and with `data` giving a
    string of a character for each byte, in Latin-1, in place of such a list.

    In the canonical ABI each is the same two numbers: nothing else of the component changes. None where that
    is not certain.
    """
    made, functions = bytearray(component[:_HEADER]), _Functions()
    try:
        for kind, section in _sections(component):
            if kind == _TYPES:
                for wanted, given in _TAKING:
                    section = wanted.sub(given, section)
                section, count = _GIVING[0].subn(_GIVING[1], section)
                if count != section.count(_GIVES):
                    return None
            section = functions.read(kind, section)
            made += bytes([kind]) + _leb(len(section)) + section
    except (IndexError, ValueError):
        return None  # of what is not known here
    return bytes(made)


class _Functions:
    """Reads the sections of a component in their order, for the numbers of its functions; where `data` of
    tensors is lowered, its string is to be in Latin-1."""

    def __init__(self) -> None:
        self._count = 0
        self._giving: set[int] = set()
        self._section, self._at = b"", 0

    def read(self, kind: int, section: bytes) -> bytes:
        """The section as it is to be."""
        readers = {
            _IMPORTS: self._import,
            _EXPORTS: self._export,
            _ALIASES: self._alias,
            _CANONICAL: self._canonical,
        }
        if kind not in readers:
            return section
        self._section, self._at = section, 0
        count = self._number()
        made = section[: self._at]
        for _ in range(count):
            start = self._at
            made += readers[kind]() or section[start : self._at]
        if self._at != len(section):
            raise ValueError("a section is longer than what is in it")
        return made

    def _number(self) -> int:
        value, self._at = _number(self._section, self._at)
        return value

    def _byte(self, *known: int) -> int:
        byte = self._section[self._at]
        if byte not in known:
            raise ValueError(f"{byte} is not known here")
        self._at += 1
        return byte

    def _name(self) -> bytes:
        size = self._number()
        self._at += size
        return self._section[self._at - size : self._at]

    def _sort(self) -> bool:
        """Whether it is that of functions of components."""
        sort = self._byte(0, 1, 2, 3, 4, 5)
        if sort == 0:
            self._at += 1
        return sort == 1

    def _import(self) -> None:
        self._byte(0, 1)
        self._name()
        kind = self._byte(1, 3, 4, 5)
        if kind == 3 and self._byte(0, 1) == 1:
            return  # a type of its own
        self._number()
        self._count += kind == 1

    def _export(self) -> None:
        self._byte(0, 1)
        self._name()
        self._count += self._sort()
        self._number()
        self._byte(0)

    def _alias(self) -> None:
        is_function, target = self._sort(), self._byte(0, 1, 2)
        self._number()
        if target == 2:
            self._number()
        elif self._name() == _GIVES and is_function:
            self._giving.add(self._count)
        self._count += is_function

    def _canonical(self) -> bytes | None:
        start, kind = self._at, self._byte(0, 1, 2, 3, 4)
        if kind > 1:
            self._number()
            return None
        self._byte(0)
        function = self._number()
        head, options = self._section[start : self._at], self._options()
        if kind == 0:
            self._count += 1
            self._number()
            return None
        if function not in self._giving:
            return None
        kept = [option for option in options if option[0] not in _ENCODINGS]
        return head + _leb(len(kept) + 1) + bytes([_LATIN_1]) + b"".join(kept)

    def _options(self) -> list[bytes]:
        found = []
        for _ in range(self._number()):
            start = self._at
            if self._byte(*_ENCODINGS, 3, 4, 5) not in _ENCODINGS:
                self._number()
            found.append(self._section[start : self._at])
        return found
