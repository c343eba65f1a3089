"""The specification's descriptors (dictionaries) and spellings, by the names of Python's parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from headrace._arrays import as_array, unpack_nibbles

# The IDL's, in its order, and two that are ahead of it: two elements a byte.
DATA_TYPES = ["float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8", "int4", "uint4"]
OPERAND = {"shape": "shape", "dataType": "data_type"}
TENSOR = OPERAND | {"readable": "readable", "writable": "writable", "exportableToGPU": "exportable_to_gpu"}


def by_our_names(call: str, given: Mapping[str, Any], members: Mapping[str, str]) -> dict[str, Any]:
    """A dictionary of `members`, the specification's names or ours, by ours; TypeError for any other."""
    known = {**members, **{name: name for name in members.values()}}
    for name in given:
        if name not in known:
            import difflib  # for a mistake alone: it takes a millisecond

            near = difflib.get_close_matches(str(name), known, 1, cutoff=0.75)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{call}: unknown option {name!r}; it takes {', '.join(members)}{meant}")
    return {known[name]: value for name, value in given.items()}


def operand(call: str, descriptor: Mapping[str, Any]) -> tuple[Any, str]:
    """Shape and data type of a descriptor; a scalar's shape may be left out, as the specification has it."""
    given = by_our_names(call, descriptor, OPERAND)
    if given.get("data_type") is None:
        raise TypeError(f"{call}: the descriptor {dict(descriptor)!r} lacks dataType")
    return dimensions(call, given.get("shape", [])), given["data_type"]


def dimensions(call: str, shape: Any) -> Any:
    """shape, which must be a list."""
    if isinstance(shape, (str, Mapping)) or not isinstance(shape, Iterable):
        raise TypeError(f"{call}: shape is {shape!r}; it must be a list of dimensions")
    return shape


def is_data_type(value: object) -> bool:
    """Whether `value` is the name of a data type, as in constant("float32", 1.0)."""
    return isinstance(value, str) and value in DATA_TYPES


def elements(call: str, data: Any, shape: Any, data_type: str) -> np.ndarray:
    """The array of a descriptor's shape that `data` has: an array or nested lists with as many elements, or
    a buffer (bytes, bytearray, memoryview) of exactly their bytes, 4-bit elements packed."""
    if not is_data_type(data_type):
        raise ValueError(f"{call}: unknown data type {data_type!r}; known: {', '.join(DATA_TYPES)}")
    extents = [_extent(call, extent) for extent in shape]
    count = math.prod(extents)
    if isinstance(data, (bytes, bytearray, memoryview)):
        bits = 4 if data_type in ("int4", "uint4") else 8 * np.dtype(data_type).itemsize
        needed, given = (count * bits + 7) // 8, memoryview(data).nbytes
        if given != needed:
            raise ValueError(f"{call}: {given} bytes, but {data_type}{extents} has {needed}")
        if bits == 4:
            return unpack_nibbles(np.frombuffer(data, np.uint8), tuple(extents), f"{data_type[0]}4")
        return np.frombuffer(data, data_type).reshape(extents)
    array = as_array(data)
    if array.size != count:
        raise ValueError(f"{call}: {array.size} elements, but {data_type}{extents} has {count}")
    return array.reshape(extents)


def _extent(call: str, extent: Any) -> int:
    if not hasattr(extent, "__index__") or extent < 0:
        raise ValueError(f"{call}: the shape has {extent!r}; a constant's extents are numbers of at least 0")
    return int(extent)
