"""Sequences and optionals, which the graph knows as tensors.

A sequence whose length is known is a list of operands. Any other, whose tensors all have the same number of
dimensions, is a table: all elements one after the other, and the shapes, a row each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .graph import Dim, Extent, Graph, Operand, known, product
from .numbers import Numbers, extents_among, extents_of
from .registry import Refused, invalid_if, refuse_if


@dataclass(eq=False)
class Sequence:
    """A list of tensors. element: their dtype where it is known without any."""

    items: list[Operand]
    element: str = "f32"
    dtype: str = field(default="sequence", init=False)
    value: None = field(default=None, init=False)
    array: None = field(default=None, init=False)


@dataclass(eq=False)
class Table:
    """A sequence of unknown length. flat: all elements; shapes: [length, dimensions].

    ranks: how many of the dimensions each tensor has, where they are not all of one number; the others are 1.
    common: extents that all tensors have, and None for the others, where something of them is known.
    """

    flat: Operand
    shapes: Operand
    ranks: Operand | None = None
    common: list[Dim | None] | None = None
    dtype: str = field(default="sequence", init=False)
    value: None = field(default=None, init=False)
    array: None = field(default=None, init=False)


@dataclass(eq=False)
class Optional:
    """item: None where it is empty. is_there: a truth value where only a run knows."""

    item: Any
    is_there: Operand | None = None
    dtype: str = field(default="optional", init=False)
    value: None = field(default=None, init=False)
    array: None = field(default=None, init=False)


TensorLists = (Sequence, Table)


def as_table(g: Graph, x: Sequence | Table, rank: int | None = None) -> Table:
    """rank: dimensions of the tensors, where there are none to tell."""
    if isinstance(x, Table):
        return x
    ranks = {g.rank(item) for item in x.items} or {rank}
    dtypes = {item.dtype for item in x.items} or {x.element}
    refuse_if(
        len(dtypes) > 1 or ranks == {None},
        f"a sequence of tensors of {sorted(dtypes)} is used where its length or a place in it is known only"
        " at run time; its tensors must have one dtype, and the first of them be known",
    )
    rank, dtype = max(ranks), dtypes.pop()
    if not x.items:
        return Table(known(np.zeros(0), dtype), known(np.zeros([0, rank]), "i64"))
    rows = np.empty([len(x.items), rank], object)
    for i, item in enumerate(x.items):
        rows[i, :] = [*g.shape(item), *[1] * (rank - g.rank(item))]
    own = None if len(ranks) == 1 else known([g.rank(item) for item in x.items], "i64")
    return Table(g.concat([_flat(g, item) for item in x.items], 0), known(rows, "i64"), own)


def _of_ranks(g: Graph, x: Table, rank: int) -> Table:
    """A table whose tensors may have so many dimensions, or fewer."""
    count, own = g.shape(x.shapes)
    ranks = x.ranks or g.expand(known(own, "i64"), [count])
    if own < rank:
        more = g.filled(1, "i64", [count, rank - own])
        return Table(x.flat, g.concat([x.shapes, more], 1), ranks)
    return Table(x.flat, x.shapes, ranks)


def _check_one_rank(x: Table) -> None:
    refuse_if(
        x.ranks is not None,
        "the sequence has tensors of several numbers of dimensions, and which one is taken is known only at"
        " run time",
    )


def _flat(g: Graph, x: Operand) -> Operand:
    return g.reshape(x, [g.size(x)])


def rank_of(g: Graph, x: Sequence | Table) -> int | None:
    """Dimensions of the tensors; None where there are none to tell."""
    if isinstance(x, Table):
        return int(g.shape(x.shapes)[1])
    return max((g.rank(item) for item in x.items), default=None)


def length(g: Graph, x: Sequence | Table) -> Dim:
    return len(x.items) if isinstance(x, Sequence) else g.shape(x.shapes)[0]


def position(g: Graph, at: Operand, count: Dim) -> Numbers:
    """Counted from the front; a place outside is an error of the run."""
    checked = g.op("checked_indices", g.reshape(g.cast(at, "i64"), [1]), extents=[count])
    at = Numbers(g, checked)
    return (at < 0).choose(at + count, at)


def is_number(x: Operand) -> bool:
    return x.array is not None and x.array.dtype != object


def place_in(x: Sequence, at: Operand, count: int) -> int:
    number = int(at.array.reshape(-1)[0])
    invalid_if(
        not -count <= number < count, f"position {number} is outside the sequence of {len(x.items)} tensors"
    )
    return number % max(count, 1)


def item_at(g: Graph, x: Sequence | Table, at: Operand) -> Operand:
    if isinstance(x, Sequence) and is_number(at):
        return x.items[place_in(x, at, len(x.items))]
    table = as_table(g, x)
    _check_one_rank(table)
    place = position(g, at, length(g, table))
    sizes = Numbers(g, table.shapes).reduced("product", 1)
    begin = Numbers(g, g.op("cumulative_sum", sizes.x, axis=0, exclusive=True)).at(place)
    row = g.reshape(g.op("gather", table.shapes, place.x, axis=0), [rank_of(g, table)])
    shape = extents_among(g, Numbers(g, row), table.common or [None] * rank_of(g, table))
    places = Numbers(g, g.positions(product(shape))) + begin
    return g.reshape(g.op("gather", table.flat, places.x, axis=0), shape)


def inserted(g: Graph, x: Sequence | Table, tensor: Operand, at: Operand | None) -> Sequence | Table:
    """At a place, or behind the others."""
    if isinstance(x, Sequence) and (at is None or is_number(at)):
        place = len(x.items) if at is None else place_in(x, at, len(x.items) + 1)
        if at is not None and int(at.array.reshape(-1)[0]) < 0:
            place = int(at.array.reshape(-1)[0]) + len(x.items)
            invalid_if(place < 0, f"position {place - len(x.items)} is outside {len(x.items)} tensors")
        return Sequence([*x.items[:place], tensor, *x.items[place:]], x.element)
    table = as_table(g, x, g.rank(tensor))
    invalid_if(
        table.flat.dtype != tensor.dtype,
        f"a tensor of {tensor.dtype} is inserted into a sequence of {table.flat.dtype}",
    )
    if table.ranks is not None or rank_of(g, table) != g.rank(tensor):
        table = _of_ranks(g, table, max(rank_of(g, table), g.rank(tensor)))
    count, rank = length(g, table), rank_of(g, table)
    sizes = [*g.shape(tensor), *[1] * (rank - g.rank(tensor))]
    row = Numbers(g, [sizes]).x if rank else known(np.zeros([1, 0]), "i64")
    ranks = table.ranks
    if ranks is not None:
        ranks = g.concat([ranks, known([g.rank(tensor)], "i64")], 0)
    shapes = g.concat([table.shapes, row], 0)
    longer = Table(g.concat([table.flat, _flat(g, tensor)], 0), shapes, ranks)
    if at is None:
        return longer
    # A negative place counts from the end of what there was.
    place = Numbers(g, g.op("checked_indices", g.reshape(g.cast(at, "i64"), [1]), extents=[count + 1]))
    place = (place < 0).choose(place + count, place)
    numbers = Numbers(g, g.positions(count + 1))
    order = (numbers < place).choose(numbers, numbers.equals(place).choose(Numbers(g, count), numbers - 1))
    return _reordered(g, longer, order, g.shape(longer.flat)[0])


def erased(g: Graph, x: Sequence | Table, at: Operand | None) -> Sequence | Table:
    count = length(g, x)
    if isinstance(x, Sequence) and (at is None or is_number(at)):
        invalid_if(not x.items, "the sequence is empty")
        place = count - 1 if at is None else place_in(x, at, count)
        return Sequence([*x.items[:place], *x.items[place + 1 :]], x.element)
    table = as_table(g, x)
    place = position(g, at or g.at_run_time(count - 1, "i64"), count)
    numbers = Numbers(
        g, g.positions(Extent.largest([0, count - 1]) if isinstance(count, Extent) else count - 1)
    )
    order = (numbers < place).choose(numbers, numbers + 1)
    left = Numbers(g, table.shapes).reduced("product", 1).at(order).reduced("sum")
    return _reordered(g, table, order, left.extents()[0])


def _reordered(g: Graph, x: Table, order: Numbers, total: Dim) -> Table:
    """The tensors of these numbers, which have so many elements together."""
    sizes = Numbers(g, x.shapes).reduced("product", 1)
    first = Numbers(g, g.op("cumulative_sum", sizes.x, axis=0, exclusive=True))
    owner, within = owners(g, sizes.at(order), total)
    flat = g.op("gather", x.flat, (first.at(order).at(owner) + within).x, axis=0)
    ranks = None if x.ranks is None else g.op("gather", x.ranks, order.x, axis=0)
    return Table(flat, g.op("gather", x.shapes, order.x, axis=0), ranks)


def owners(g: Graph, sizes: Numbers, total: Dim) -> tuple[Numbers, Numbers]:
    """Of as many elements as tensors of these sizes have: in which each lies, and at which place there."""
    ends = Numbers(g, g.op("cumulative_sum", sizes.x, axis=0))
    places = Numbers(g, g.positions(total))
    is_behind = places.shaped([total, 1]) >= ends
    owner = is_behind.choose(1, 0).reduced("sum", 1)
    return owner, places - (ends - sizes).at(owner)


def joined(g: Graph, x: Sequence | Table, axis: int, is_new: bool) -> Operand:
    if isinstance(x, Sequence):
        invalid_if(not x.items, "the sequence is empty")
        rank = g.rank(x.items[0]) + is_new
        invalid_if(not -rank <= axis < rank, f"axis {axis} is outside the {rank} dimensions of the result")
        axis %= rank
        parts = x.items
        if is_new:
            parts = [g.reshape(item, [*g.shape(item)[:axis], 1, *g.shape(item)[axis:]]) for item in parts]
        return g.concat(parts, axis)
    _check_one_rank(x)
    rank = rank_of(g, x) + is_new
    invalid_if(not -rank <= axis < rank, f"axis {axis} is outside the {rank} dimensions of the result")
    axis %= rank
    first = extents_of(g, g.reshape(g.op("gather", x.shapes, known([0], "i64"), axis=0), [rank_of(g, x)]))
    if is_new:
        order = list(range(1, rank))
        order.insert(axis, 0)
        return g.transpose(g.reshape(x.flat, [length(g, x), *first]), order)
    refuse_if(
        axis != 0, "tensors of a sequence of unknown length are joined along another axis than the first"
    )
    rows = Numbers(g, g.reshape(g.cut(x.shapes, 1, 0, 1), [length(g, x)])).reduced("sum").extents()[0]
    return g.reshape(x.flat, [rows, *first[1:]])


# --- as lists of operands -----------------------------------------------------------------------------------


def leaves(x: Any) -> list[Operand]:
    """The operands that a value consists of."""
    if isinstance(x, Optional):
        return [
            *([x.is_there] if x.is_there is not None else []),
            *(leaves(x.item) if x.item is not None else []),
        ]
    if isinstance(x, Sequence):
        return list(x.items)
    if isinstance(x, Table):
        return [x.flat, x.shapes] if x.ranks is None else [x.flat, x.shapes, x.ranks]
    return [x]


def with_leaves(x: Any, operands: list[Operand]) -> Any:
    """A value like that of other operands."""
    if isinstance(x, Optional):
        flag = operands[0] if x.is_there is not None else None
        rest = operands[1:] if flag is not None else operands
        return Optional(with_leaves(x.item, rest) if x.item is not None else None, flag)
    if isinstance(x, Sequence):
        return Sequence(list(operands), x.element)
    return Table(*operands) if isinstance(x, Table) else operands[0]


def grouped(like: list[Any], operands: list[Operand]) -> list[Any]:
    """Values like those of so many operands each."""
    rest, values = list(operands), []
    for x in like:
        count = len(leaves(x))
        values.append(with_leaves(x, rest[:count]))
        rest = rest[count:]
    return values


def form(x: Any) -> Any:
    """Equal for values that consist of as many operands in the same way."""
    if isinstance(x, Optional):
        return ("optional", x.is_there is not None, None if x.item is None else form(x.item))
    if isinstance(x, Sequence):
        return ("sequence", len(x.items))
    return ("table", x.ranks is not None) if isinstance(x, Table) else ("tensor",)


def alike(one: tuple[Graph, Any], other: tuple[Graph, Any]) -> tuple[Any, Any]:
    """Two values, each of its graph, in one form. Errors: Refused where there is none."""
    (g, a), (h, b) = one, other
    if form(a) == form(b):
        return a, b
    if isinstance(a, Optional) or isinstance(b, Optional):
        a, b = (x if isinstance(x, Optional) else Optional(x) for x in (a, b))
        first, second = a.item, b.item
        if first is None:
            first = _empty(h, second)
        elif second is None:
            second = _empty(g, first)
        items = alike((g, first), (h, second))
        return tuple(
            Optional(item, x.is_there if x.is_there is not None else known(x.item is not None, "bool"))
            for item, x in zip(items, (a, b), strict=True)
        )
    if isinstance(a, TensorLists) and isinstance(b, TensorLists):
        ranks = [rank for rank in (rank_of(g, a), rank_of(h, b)) if rank is not None]
        rank = max(ranks, default=1)
        a, b = as_table(g, a, rank), as_table(h, b, rank)
        if a.ranks is None and b.ranks is None and rank_of(g, a) == rank_of(h, b):
            return a, b
        return _of_ranks(g, a, rank), _of_ranks(h, b, rank)
    raise Refused("one is a tensor and the other a sequence, and which one is known only at run time")


def _empty(g: Graph, of: Any) -> Any:
    """A stand-in for what is not there, in the form of what might be, which is g's."""
    if isinstance(of, Sequence):
        return Sequence([], of.items[0].dtype if of.items else of.element)
    if isinstance(of, Table):
        return Table(known(np.zeros(0), of.flat.dtype), known(np.zeros([0, rank_of(g, of)]), "i64"))
    return known(np.zeros([0] * g.rank(of)), of.dtype)
