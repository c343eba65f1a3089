"""Element types that the catalog does not have: their values lie in wider types that hold them exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from headrace._arrays import dtype_of

if TYPE_CHECKING:
    from .graph import Graph, Operand

SMALL_FLOATS = {
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e8m0": ml_dtypes.float8_e8m0fnu,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
}
SMALL_INTEGERS = {"u16": np.uint16, "i2": ml_dtypes.int2, "u2": ml_dtypes.uint2}
CARRIERS = dict.fromkeys(SMALL_FLOATS, "f32") | {"u16": "u32", "i2": "i8", "u2": "u8"}
RANGES = {"u16": (0, 65535), "i2": (-2, 1), "u2": (0, 3)}
PACKED = {"i4": 4, "u4": 4, "f4e2m1": 4, "i2": 2, "u2": 2}  # bits, where several share a byte


def element_type(dtype: str) -> np.dtype:
    """NumPy's, or ml_dtypes'."""
    found = SMALL_FLOATS.get(dtype) or SMALL_INTEGERS.get(dtype)
    return dtype_of(dtype) if found is None else np.dtype(found)


def narrowed(g: Graph, x: Operand, dtype: str, saturate: bool = True, direction: str = "up") -> Operand:
    """x as one of these types. Integers keep their low bits, of floats those of the integer of 32 bits.

    saturate, direction: as Cast has them, for floats; direction is for f8e8m0.
    """
    carrier = CARRIERS[dtype]
    if dtype in SMALL_FLOATS:
        options = {"direction": direction} if dtype == "f8e8m0" else {}
        y = g.op("round_to", g.cast(x, "f32"), format=dtype, saturate=saturate, **options)
        return as_type(g, y, dtype)
    y = g.cast(g.cast(x, "i32") if x.is_float else x, carrier)
    return as_type(g, low_bits(g, y, dtype), dtype)


def low_bits(g: Graph, y: Operand, dtype: str) -> Operand:
    """Of a carrier's integers, those that an integer type of these has."""
    from .graph import known

    low, high = RANGES[dtype]
    y = g.op("bitwise_and", y, known(high - low, y.dtype))
    if low == 0:
        return y
    return g.op("sub", g.op("bitwise_xor", y, known(-low, y.dtype)), known(-low, y.dtype))


def as_type(g: Graph, x: Operand, dtype: str) -> Operand:
    """A carrier whose elements are known to be numbers of the type."""
    return g.retyped(x, dtype)


def carried(g: Graph, x: Operand) -> Operand:
    """The elements in the type that holds them."""
    from .graph import Operand

    carrier = CARRIERS[x.dtype]
    if x.value is not None or x.array is None:
        return g.retyped(x, carrier)
    return Operand(carrier, array=x.array.astype(dtype_of(carrier)))
