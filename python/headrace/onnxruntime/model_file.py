"""What an ONNX file says about its model: inputs, outputs and metadata. Nodes and weights are skipped.

The fields are those of onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NO_VERSION = 2**63 - 1  # what ONNX Runtime says of a model without one
_FIRST_WITH_OVERRIDES = 4  # IR version from which an initializer that is listed as an input is a default
_KINDS = {1: "tensor", 4: "seq", 5: "map", 7: "opaque", 8: "sparse_tensor", 9: "optional"}


class DamagedError(ValueError):
    """The bytes are no message of Protocol Buffers."""


class NoGraphError(ValueError):
    """The message has no graph."""


@dataclass
class Declared:
    """An input or output. kinds: from the outside in, ("optional", "seq", "tensor")."""

    name: str
    kinds: tuple[str, ...] = ("tensor",)
    element_type: int = 0
    shape: list[int | str | None] | None = None  # None: the model gives none; of an extent: it has no name
    denotations: list[str] = field(default_factory=list)

    @property
    def is_tensor(self) -> bool:
        return self.kinds == ("tensor",)

    @property
    def is_optional(self) -> bool:
        return self.kinds[0] == "optional"

    @property
    def is_sequence(self) -> bool:
        return "seq" in self.kinds


@dataclass
class ModelFile:
    inputs: list[Declared] = field(default_factory=list)  # what a caller has to give
    overridable: list[Declared] = field(default_factory=list)  # initializers that are listed as inputs
    outputs: list[Declared] = field(default_factory=list)
    producer_name: str = ""
    domain: str = ""
    description: str = ""
    domains: set[str] = field(default_factory=set)  # of which operator sets are imported
    graph_name: str = ""
    graph_description: str = ""
    version: int = _NO_VERSION
    metadata: dict[str, str] = field(default_factory=dict)


def read_model_file(source: str | bytes) -> ModelFile:
    """Of a path or a file's bytes. Errors: OSError, DamagedError, NoGraphError."""
    if isinstance(source, bytes):
        return _model(memoryview(source))
    with Path(source).open("rb") as file:
        if file.seek(0, 2) == 0:
            raise NoGraphError
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            return _model(view)


def _model(view: memoryview) -> ModelFile:
    made, texts, graph, ir_version = ModelFile(), {2: "producer_name", 4: "domain", 6: "description"}, None, 0
    for number, value in _fields(view):
        if number == 1:
            ir_version = value
        elif number in texts:
            setattr(made, texts[number], _text(value))
        elif number == 5:
            made.version = value
        elif number == 7:
            graph = value
        elif number == 8:
            made.domains.add(_text(dict(_fields(_message(value))).get(1, b"")))
        elif number == 14:
            entry = dict(_fields(_message(value)))
            made.metadata[_text(entry.get(1, b""))] = _text(entry.get(2, b""))
    if graph is None:
        raise NoGraphError
    _read_graph(made, _message(graph), ir_version)
    return made


def _read_graph(made: ModelFile, view: memoryview, ir_version: int) -> None:
    listed, initializers = [], set()
    for number, value in _fields(view):
        if number == 2:
            made.graph_name = _text(value)
        elif number == 10:
            made.graph_description = _text(value)
        elif number == 5:
            initializers.add(_tensor_name(value))
        elif number == 15:
            initializers.update(_tensor_name(part) for n, part in _fields(_message(value)) if n == 1)
        elif number == 11:
            listed.append(_declared(value))
        elif number == 12:
            made.outputs.append(_declared(value))
    made.inputs = [info for info in listed if info.name not in initializers]
    if ir_version >= _FIRST_WITH_OVERRIDES:
        made.overridable = [info for info in listed if info.name in initializers]


def _tensor_name(value: Any) -> str:
    return next((_text(part) for number, part in _fields(_message(value)) if number == 8), "")


def _declared(value: Any) -> Declared:
    made = Declared("")
    for number, part in _fields(_message(value)):
        if number == 1:
            made.name = _text(part)
        elif number == 2:
            _read_type(made, _message(part))
    return made


def _read_type(made: Declared, view: memoryview) -> None:
    kinds = []
    while True:
        kind, inner = next(((n, v) for n, v in _fields(view) if n in _KINDS), (0, b""))
        kinds.append(_KINDS.get(kind, "without a type"))
        if kinds[-1] not in ("seq", "optional"):
            break
        view = _message(dict(_fields(_message(inner))).get(1, b""))
    made.kinds = tuple(kinds)
    if kinds[-1] != "tensor":
        return
    for number, part in _fields(_message(inner)):
        if number == 1:
            made.element_type = part
        elif number == 2:
            dims = [dict(_fields(_message(d))) for n, d in _fields(_message(part)) if n == 1]
            made.shape = [_extent(dim) for dim in dims]
            made.denotations = [_text(dim.get(3, b"")) for dim in dims]


def _extent(dim: dict[int, Any]) -> int | str | None:
    size = dim.get(1)
    if size is not None:
        return size if size < 2**63 else None  # -1 is what some exporters write for an open extent
    return _text(dim.get(2, b"")) or None


def _text(value: Any) -> str:
    try:
        return bytes(_message(value)).decode()
    except UnicodeDecodeError as error:
        raise DamagedError(str(error)) from None


def _message(value: Any) -> memoryview:
    if isinstance(value, int):
        raise DamagedError("a number stands where a message or a text is due")
    return memoryview(value)


def _fields(view: memoryview) -> Iterator[tuple[int, Any]]:
    """Numbers of fields with their values: integers, or the bytes of what is longer."""
    at, end = 0, len(view)
    while at < end:
        key, at = _varint(view, at)
        number, wire = key >> 3, key & 7
        if number == 0 or wire not in (0, 1, 2, 5):
            raise DamagedError(f"a field begins with {key}")
        if wire == 0:
            value, at = _varint(view, at)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(wire)
        if size is None:
            size, at = _varint(view, at)
        if size > end - at:
            raise DamagedError(f"{size} bytes are due and {end - at} are there")
        yield number, view[at : at + size]
        at += size


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at >= len(view):
            raise DamagedError("it is cut off")
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7
    raise DamagedError("a number is longer than 10 bytes")
