"""Operands of the graph in the making: values at run time, or known already, and the extents in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._arrays import dtype_of, pack_nibbles, unpack_nibbles
from headrace._core import Extent, cast_elements

from .ratios import Ratio
from .stored import element_type
from .told import Told

if TYPE_CHECKING:
    from .graph import Graph

Dim = Extent | int  # of a shape
Number = Extent | Ratio | float  # also one that follows from shapes
FLOATS = ("f32", "f16", "bf16", "f64")


def is_same(a: Dim, b: Dim) -> bool:
    """Equal whatever the dimensions are; False also where that is open."""
    if isinstance(a, Extent):
        return a.equals(b) is True
    return b.equals(a) is True if isinstance(b, Extent) else a == b


def is_number(a: Number, number: int) -> bool:
    """Whether it is that number; False where it is open."""
    return not isinstance(a, (Extent, Ratio)) and a == number


def is_other(a: Dim, b: Dim) -> bool:
    """Whether they differ for all values."""
    difference = a - b
    return difference.equals(0) is False if isinstance(difference, Extent) else difference != 0


def product(extents: Iterable[Dim]) -> Dim:
    total: Dim = 1
    for extent in extents:
        total = total * extent
    return total


@dataclass(eq=False)
class Operand:
    """A value of the graph. dtype: the catalog's short name, "bool" for truth values, which are u8 there.

    array: its elements where they are known; they are extents in an array of objects.
    fill: what they all are, where their number is open.
    """

    dtype: str
    value: int | None = None
    array: np.ndarray | None = None
    home: Graph | None = None  # whose value it is
    fill: float | None = None

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


def known(array: Any, dtype: str) -> Operand:
    """An operand of known elements; extents among them stay what they are."""
    array = np.asarray(array)
    if array.dtype != object:
        array = array.astype(element_type(dtype), copy=False)
    elif not any(isinstance(item, (Extent, Told)) for item in _wholes(array)):
        result = np.empty(array.shape, object)
        result.reshape(-1)[:] = [x.above / x.below if isinstance(x, Ratio) else x for x in array.flat]
        array = result.astype(element_type(dtype))
    return Operand(dtype, array=array)


def _wholes(array: np.ndarray) -> Iterable[Any]:
    """What an array of objects is made of."""
    for item in array.flat:
        yield from (item.above, item.below) if isinstance(item, Ratio) else (item,)


def converted(x: Operand, dtype: str) -> Operand:
    """An operand of known elements, no extents among them, as the op cast would convert it."""
    if dtype == "bool":
        return known(x.array != 0, dtype)
    source, raw = ("u8" if x.dtype == "bool" else x.dtype), as_stored(x.array, x.dtype)
    result = np.frombuffer(cast_elements(source, raw, x.array.size, dtype), np.uint8)
    if dtype in ("i4", "u4"):
        return Operand(dtype, array=unpack_nibbles(result, x.array.shape, dtype))
    return Operand(dtype, array=result.view(dtype_of(dtype)).reshape(x.array.shape))


def as_stored(array: np.ndarray, dtype: str) -> np.ndarray:
    """The bytes of known elements."""
    dense = np.ascontiguousarray(array)
    return pack_nibbles(dense) if dtype in ("i4", "u4") else dense.reshape(-1).view(np.uint8)
