"""NumPy arrays of a graph's constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import dtype_of, unpack_nibbles

_SHORT_NAMES = {
    "float32": "f32",
    "float16": "f16",
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "int4": "i4",
    "uint4": "u4",
}


def constant_array(value: Any) -> np.ndarray:
    """A constant of a GraphView, where it lies; 4-bit ones are unpacked copies."""
    name = _SHORT_NAMES.get(value.data_type, value.data_type)
    if name in ("i4", "u4"):
        return unpack_nibbles(value.bytes, tuple(value.shape), name)
    return value.bytes.view(dtype_of(name)).reshape(value.shape)
