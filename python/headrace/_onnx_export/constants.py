"""NumPy arrays of a graph's constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import dtype_of, short_name, unpack_nibbles


def constant_array(value: Any) -> np.ndarray:
    """A constant of a GraphView, where it lies; 4-bit ones are unpacked copies."""
    name = short_name(value.data_type)
    if name in ("i4", "u4"):
        return unpack_nibbles(value.bytes, tuple(value.shape), name)
    return value.bytes.view(dtype_of(name)).reshape(value.shape)
