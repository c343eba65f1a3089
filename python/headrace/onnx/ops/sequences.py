"""Sequences of tensors, and values that may be missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Dim, Extent, Graph, Operand, is_number, known, product
from ..numbers import Numbers, is_known
from ..registry import Node, invalid_if, reads
from ..sequences import (
    Optional,
    Sequence,
    Table,
    TensorLists,
    erased,
    inserted,
    item_at,
    joined,
    length,
    owners,
)
from ..source import dtype_named


def _sequence(node: Node, index: int = 0) -> Sequence | Table:
    x = node.operand(index)
    invalid_if(not isinstance(x, TensorLists), f"input {index} is no sequence")
    return x


@reads("SequenceConstruct")
def construct(g: Graph, node: Node) -> Sequence:
    invalid_if(any(not isinstance(x, Operand) for x in node.inputs), "its inputs are tensors")
    return Sequence(list(node.inputs))


@reads("SequenceEmpty")
def empty(g: Graph, node: Node) -> Sequence:
    return Sequence([], dtype_named(node.get("dtype", 1), "dtype"))


@reads("SequenceAt")
def at(g: Graph, node: Node) -> Operand:
    return item_at(g, _sequence(node), node.operand(1))


@reads("SequenceInsert")
def insert(g: Graph, node: Node) -> Sequence | Table:
    return inserted(g, _sequence(node), node.operand(1), node.optional(2))


@reads("SequenceErase")
def erase(g: Graph, node: Node) -> Sequence | Table:
    return erased(g, _sequence(node), node.optional(1))


@reads("SequenceLength")
def count(g: Graph, node: Node) -> Operand:
    return known(length(g, _sequence(node)), "i64")


@reads("ConcatFromSequence")
def concat(g: Graph, node: Node) -> Operand:
    return joined(g, _sequence(node), int(node.get("axis", 0)), bool(node.get("new_axis", 0)))


@reads("SplitToSequence")
def split(g: Graph, node: Node) -> Sequence | Table:
    """Into parts of a size, the last perhaps smaller; of sizes; or into single slices."""
    x, sizes, parts = node.x, g.shape(node.x), node.optional(1)
    axis = g.axis(x, node.get("axis", 0))
    extent = sizes[axis]
    if parts is None:
        drops = not node.get("keepdims", 1)
        if isinstance(extent, Extent):
            return _singles(g, x, axis, drops)
        slices = [g.cut(x, axis, i, 1) for i in range(extent)]
        rest = [*sizes[:axis], *sizes[axis + 1 :]]
        return Sequence([g.reshape(y, rest) for y in slices] if drops else slices, x.dtype)
    if is_known(parts) and not isinstance(extent, Extent) and parts.array.dtype != object:
        return _split(g, x, axis, _sizes(parts.array, extent))
    if parts.fill == 1:  # PyTorch's repeat_interleave
        return _singles(
            g, g.op("reshape", x, new_shape=[*sizes[:axis], *g.shape(parts), *sizes[axis + 1 :]]), axis, False
        )
    if g.rank(parts) == 0:
        if is_known(parts) and is_number(parts.array.item(), 1):
            return _singles(g, x, axis, False)
        size = Numbers(g, parts)
        number = ((Numbers(g, extent) + size - 1) // size).extents()[0]
        places = Numbers(g, g.positions(number)) * size
        return _table(g, x, axis, (Numbers(g, extent) - places).at_most(size), number, False)
    return _table(g, x, axis, Numbers(g, parts), g.shape(parts)[0], False)


def _sizes(parts: np.ndarray, extent: int) -> list[int]:
    if parts.ndim:
        return [int(size) for size in parts]
    size = int(parts)
    invalid_if(size < 1, f"the parts have the size {size}; it is at least 1")
    return [min(size, extent - begin) for begin in range(0, extent, size)]


def _split(g: Graph, x: Operand, axis: int, sizes: list[int]) -> Sequence:
    extent = g.shape(x)[axis]
    invalid_if(
        sum(sizes) != extent or min(sizes, default=0) < 0,
        f"parts of {sizes} do not add up to {extent}, extent {axis} of the input",
    )
    begins = np.cumsum([0, *sizes]).tolist()
    return Sequence([g.cut(x, axis, begins[i], size) for i, size in enumerate(sizes)], x.dtype)


def _singles(g: Graph, x: Operand, axis: int, drops: bool) -> Table:
    """Parts of one element along an axis whose extent is open."""
    sizes = g.shape(x)
    table = _table(g, x, axis, Numbers(g, g.filled(1, "i64", [sizes[axis]])), sizes[axis], drops)
    table.common = [*sizes[:axis], *([] if drops else [1]), *sizes[axis + 1 :]]
    return table


def _table(g: Graph, x: Operand, axis: int, sizes: Numbers, count: Dim, drops: bool) -> Table:
    """Parts of these sizes along an axis, whose number is known only at run time."""
    whole = g.shape(x)
    before, after = product(whole[:axis]), product(whole[axis + 1 :])
    sizes = sizes.shaped([count])
    part, within = owners(g, sizes * Numbers(g, before * after), product(whole))
    # Of an element of a part [before, size, after] its place in [before, extent, after].
    size = sizes.at(part)
    begin = Numbers(g, g.op("cumulative_sum", sizes.x, axis=0, exclusive=True)).at(part)
    rows = within // after
    places = (rows // size * whole[axis] + begin + rows % size) * after + within % after
    flat = g.op("gather", g.reshape(x, [product(whole)]), places.x, axis=0)
    columns = [
        g.reshape(sizes.x, [count, 1]) if i == axis else g.expand(known(d, "i64"), [count, 1])
        for i, d in enumerate(whole)
        if not (drops and i == axis)
    ]
    return Table(flat, g.concat(columns, 1) if columns else g.filled(0, "i64", [count, 0]))


# --- optionals ----------------------------------------------------------------------------------------------


@reads("Optional")
def optional(g: Graph, node: Node) -> Optional:
    return Optional(node.optional(0))


@reads("OptionalHasElement")
def has_element(g: Graph, node: Node) -> Operand:
    x = node.optional(0)
    if isinstance(x, Optional):
        return x.is_there if x.is_there is not None else known(x.item is not None, "bool")
    return known(x is not None, "bool")


@reads("OptionalGetElement")
def get_element(g: Graph, node: Node) -> Any:
    x = node.operand(0)
    if not isinstance(x, Optional):
        return x
    invalid_if(x.item is None, "the optional is empty")
    return x.item
