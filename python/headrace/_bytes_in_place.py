"""Changes the binary of a component so that lists of bytes pass between it and its host where they lie:
wasmtime makes a value of 32 bytes of each byte of a list.

In the canonical ABI a list that a component passes is two numbers, where it lies and how long it is: the
imports that take one get two numbers in its place, and nothing else changes. A list that it gets lies in
memory that its own `realloc` gives: a small core module asks for that, and has the host write there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeVar

from ._wasm_binary import HEADER, contents_of, read_number, sections

Item = TypeVar("Item")
#: Sections of a component.
_MODULE, _INSTANCES, _ALIASES, _TYPES, _CANON, _IMPORTS, _EXPORTS = 1, 2, 6, 7, 8, 10, 11
#: Sorts, of components a function and an instance; those of core modules are a second byte behind _CORE.
_CORE, _FUNCTION, _INSTANCE = 0x00, 0x01, 0x05
_CORE_FUNCTION, _CORE_MEMORY, _CORE_MODULE, _CORE_INSTANCE = 0x00, 0x02, 0x11, 0x12

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
_DATA = b"[method]tensor.data"
#: The function that gives one, behind which its type is exported: it gets an address, and gives the size.
_GIVING = re.compile(
    rb"\x40\x01\x04self" + _TYPE + rb"\x00" + _TYPE + rb"(\x04[\x00\x01]\x13" + re.escape(_DATA) + rb"\x01)"
)
_GIVEN = b"\x40\x02\x04self\\1\x02at\x77\x00\x79\\3"
#: In place of the import: what it is given for an address that is none is the size alone.
_GETTING = """(module
  (import "" "memory" (memory 0))
  (import "" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "" "data" (func $data (param i32 i64) (result i32)))
  (func (export "data") (param $self i32) (param $result i32) (local $at i32) (local $size i32)
    (local.set $size (call $data (local.get $self) (i64.const -1)))
    (local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (local.get $size)))
    (drop (call $data (local.get $self) (i64.extend_i32_u (local.get $at))))
    (i32.store (local.get $result) (local.get $at))
    (i32.store offset=4 (local.get $result) (local.get $size))))"""


class _UnknownError(ValueError):
    """What is not known here: the component stays as it is."""


def with_bytes_in_place(component: bytes) -> bytes:
    """The component with its imports of `tensor` and `load` taking where bytes lie and how many they are, and
    that of `tensor.data` taking where they shall lie, in place of lists.

    What the binary has beyond what wit-component makes leaves `tensor.data` as it is; so does what is broken,
    of which wasmtime says more.
    """
    taking = bytearray(component[:HEADER])
    for kind, section in sections(component):
        for wanted, given in _TAKING if kind == _TYPES else ():
            section = wanted.sub(given, section)
        taking += _section(kind, section)
    try:
        return _Rewriting(bytes(taking)).made()
    except ValueError:
        return bytes(taking)


def has_one_memory(component: bytes) -> bool:
    """Whether all its bytes lie in one memory: several may be of one core module, instantiated again."""
    return contents_of(component).memories == 1 and not _instantiates_again(component)


def _instantiates_again(component: bytes) -> bool:
    found: set[int] = set()
    for kind, section in sections(component):
        given = _Reader(section)
        for _ in range(given.number() if kind == _INSTANCES else 0):
            if given.byte() == 0:
                module = given.number()
                if module in found:
                    return True
                found.add(module)
            for _ in range(given.number()):  # what it gets, or what an instance of items has
                given.name()
                given.byte()
                given.number()
    return False


def _leb(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + _leb(len(content)) + content


def _name(text: bytes) -> bytes:
    return _leb(len(text)) + text


@dataclass
class _Reader:
    """Numbers and names of a section, one behind the other."""

    content: bytes
    at: int = 0

    def number(self) -> int:
        value, self.at = read_number(self.content, self.at)
        return value

    def byte(self) -> int:
        if self.at >= len(self.content):
            raise ValueError("the binary ends within a section")
        self.at += 1
        return self.content[self.at - 1]

    def name(self) -> bytes:
        size = self.number()
        self.at += size
        return self.content[self.at - size : self.at]

    def known(self, *bytes_: int) -> int:
        found = self.byte()
        if found not in bytes_:
            raise _UnknownError(f"{found} at {self.at - 1} of a section")
        return found


@dataclass
class _Rewriting:
    """Puts a module of _GETTING behind each `tensor.data` that is lowered. Old core functions, modules and
    instances have the new numbers that the lists give; functions of components keep theirs."""

    component: bytes
    functions: list[int] = field(default_factory=list)
    modules: list[int] = field(default_factory=list)
    instances: list[int] = field(default_factory=list)
    #: How many there are of each in what is made.
    made_functions: int = 0
    made_modules: int = 0
    made_instances: int = 0
    #: Of the functions of components: which one is tensor.data.
    is_data: list[bool] = field(default_factory=list)

    def made(self) -> bytes:
        made = bytearray(self.component[:HEADER])
        readers = {
            _INSTANCES: self._core_instances,
            _ALIASES: self._aliases,
            _CANON: self._canon,
            _IMPORTS: self._imports,
            _EXPORTS: self._exports,
        }
        for kind, section in sections(self.component):
            if kind == _TYPES:
                section = _GIVING.sub(_GIVEN, section)
            if kind == _MODULE:
                self._new_module()
            if kind in readers:
                made += readers[kind](section)
            else:
                made += _section(kind, section)
        return bytes(made)

    def _new_function(self) -> None:
        self.functions.append(self.made_functions)
        self.made_functions += 1

    def _new_module(self) -> None:
        self.modules.append(self.made_modules)
        self.made_modules += 1

    def _new_instance(self) -> None:
        self.instances.append(self.made_instances)
        self.made_instances += 1

    def _function(self, number: int) -> bytes:
        return _leb(_at(self.functions, number))

    def _core_instances(self, section: bytes) -> bytes:
        given = _Reader(section)
        count = given.number()
        made = bytearray(_leb(count))
        for _ in range(count):
            if given.known(0, 1) == 0:
                made += b"\0" + _leb(_at(self.modules, given.number()))
                arguments = given.number()
                made += _leb(arguments)
                for _ in range(arguments):
                    made += _name(given.name()) + bytes([given.known(_CORE_INSTANCE)])
                    made += _leb(_at(self.instances, given.number()))
            else:
                exports = given.number()
                made += b"\1" + _leb(exports)
                for _ in range(exports):
                    made += _name(given.name())
                    sort = given.known(*range(5))
                    made.append(sort)
                    number = given.number()
                    made += self._function(number) if sort == _CORE_FUNCTION else _leb(number)
            self._new_instance()
        return _section(_INSTANCES, bytes(made))

    def _aliases(self, section: bytes) -> bytes:
        given = _Reader(section)
        count = given.number()
        made = bytearray(_leb(count))
        for _ in range(count):
            sort = given.known(*range(6))
            core = given.byte() if sort == _CORE else None
            made += bytes([sort]) + (b"" if core is None else bytes([core]))
            target = given.known(0, 1, 2)
            made.append(target)
            number = given.number()
            name = None
            if target == 2:  # of what is around: a type mostly
                made += _leb(number) + _leb(given.number())
            else:
                made += _leb(_at(self.instances, number) if target == 1 else number)
                name = given.name()
                made += _name(name)
            if core == _CORE_FUNCTION:
                self._new_function()
            elif core in (_CORE_MODULE, _CORE_INSTANCE):
                raise _UnknownError("an alias of a core module")
            elif sort == _FUNCTION:
                self.is_data.append(name == _DATA)
        return _section(_ALIASES, bytes(made))

    def _options(self, given: _Reader) -> tuple[bytes, int | None, int | None]:
        """As they are now, and the memory and realloc among them."""
        count = given.number()
        made, memory, realloc = bytearray(_leb(count)), None, None
        for _ in range(count):
            kind = given.known(0, 1, 2, 3, 4, 5)
            made.append(kind)
            if kind == 3:
                memory = given.number()
                made += _leb(memory)
            elif kind > 3:
                number = given.number()
                made += self._function(number)
                realloc = number if kind == 4 else realloc
        return bytes(made), memory, realloc

    def _canon(self, section: bytes) -> bytes:
        given = _Reader(section)
        made, entries = bytearray(), []
        for _ in range(given.number()):
            kind = given.known(0, 1, 2, 3, 4)
            if kind > 1:  # resource.new, drop and rep
                entries.append(bytes([kind]) + _leb(given.number()))
                self._new_function()
                continue
            given.known(0)
            number = given.number()
            target = self._function(number) if kind == 0 else _leb(number)
            options, memory, realloc = self._options(given)
            if kind == 0:
                entries.append(b"\0\0" + target + options + _leb(given.number()))
                self.is_data.append(False)
            elif _at(self.is_data, number) and memory is not None and realloc is not None:
                entries.append(b"\1\0" + target + b"\0")
                made += _canon_section(entries)
                entries = []
                made += self._getting(memory, realloc)
            else:
                entries.append(b"\1\0" + target + options)
                self._new_function()
        return bytes(made) + (_canon_section(entries) if entries else b"")

    def _getting(self, memory: int, realloc: int) -> bytes:
        """The module behind the core function that was lowered last, an instance of it, and its function,
        which has that one's place."""
        import wasmtime

        exports = (
            (b"memory", _CORE_MEMORY, _leb(memory)),
            (b"realloc", _CORE_FUNCTION, self._function(realloc)),
            (b"data", _CORE_FUNCTION, _leb(self.made_functions)),
        )
        imported = b"\1" + _leb(len(exports))
        for name, sort, number in exports:
            imported += _name(name) + bytes([sort]) + number
        instance = b"\0" + _leb(self.made_modules) + b"\1" + _name(b"") + bytes([_CORE_INSTANCE])
        instance += _leb(self.made_instances)
        alias = bytes([_CORE, _CORE_FUNCTION, 1]) + _leb(self.made_instances + 1) + _name(b"data")
        self.made_modules += 1
        self.made_instances += 2
        self.made_functions += 1
        self._new_function()
        return (
            _section(_MODULE, bytes(wasmtime.wat2wasm(_GETTING)))
            + _section(_INSTANCES, b"\2" + imported + instance)
            + _section(_ALIASES, b"\1" + alias)
        )

    def _imports(self, section: bytes) -> bytes:
        """Functions and instances; others are of no component that is a command."""
        given = _Reader(section)
        for _ in range(given.number()):
            given.known(0, 1)
            given.name()
            sort = given.known(_FUNCTION, 3, _INSTANCE)
            if sort == _FUNCTION:
                self.is_data.append(False)
            if sort != 3 or given.known(0, 1) == 0:  # a type that equals another, or is a resource
                given.number()
        return _section(_IMPORTS, section)

    def _exports(self, section: bytes) -> bytes:
        """An export is one more of its sort."""
        given = _Reader(section)
        for _ in range(given.number()):
            given.known(0, 1)
            given.name()
            sort = given.known(_FUNCTION, 3, 4, _INSTANCE)
            number = given.number()
            if sort == _FUNCTION:
                self.is_data.append(_at(self.is_data, number))
            given.known(0)  # no type is given
        return _section(_EXPORTS, section)


def _canon_section(entries: list[bytes]) -> bytes:
    return _section(_CANON, _leb(len(entries)) + b"".join(entries))


def _at(items: list[Item], number: int) -> Item:
    if number >= len(items):
        raise _UnknownError(f"there is no {number} yet")
    return items[number]
