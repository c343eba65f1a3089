"""Integers that are known only at run time: arithmetic of extents and places, and what becomes extents."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Dim, Extent, Graph, Operand, known, product
from .registry import Node, invalid_if, refuse_if, shortened
from .told import Told, is_told

MOST_COUNTED = 4096  # extents that one operand gives


class Numbers:
    """A small tensor of i64; each operation is an op of the graph."""

    def __init__(self, g: Graph, x: Any) -> None:
        """x: an operand, or numbers and extents."""
        self.g = g
        self.x = g.cast(x, "i64") if isinstance(x, Operand) else _listed(x)

    def _op(self, name: str, other: Any, swapped: bool = False) -> Numbers:
        operands = [self.x, _of(self.g, other).x]
        return Numbers._made(self.g, self.g.op(name, *(operands[::-1] if swapped else operands)))

    @staticmethod
    def _made(g: Graph, x: Operand) -> Numbers:
        made = Numbers.__new__(Numbers)
        made.g, made.x = g, x
        return made

    def __add__(self, other: Any) -> Numbers:
        return self._op("add", other)

    def __sub__(self, other: Any) -> Numbers:
        return self._op("sub", other)

    def __rsub__(self, other: Any) -> Numbers:
        return self._op("sub", other, swapped=True)

    def __mul__(self, other: Any) -> Numbers:
        return self._op("mul", other)

    def __floordiv__(self, other: Any) -> Numbers:
        """Of numbers that are not negative; anything by 0 is 0."""
        return self._op("div", other)

    def __mod__(self, other: Any) -> Numbers:
        """Of the divisor's sign."""
        return self._op("remainder", other)

    def __lt__(self, other: Any) -> Numbers:
        return self._op("lesser", other)

    def __ge__(self, other: Any) -> Numbers:
        return self._op("greater_or_equal", other)

    def __gt__(self, other: Any) -> Numbers:
        return self._op("greater", other)

    def equals(self, other: Any) -> Numbers:
        return self._op("equal", other)

    def both(self, other: Numbers) -> Numbers:
        return self._op("logical_and", other)

    def either(self, other: Numbers) -> Numbers:
        return self._op("logical_or", other)

    def at_least(self, other: Any) -> Numbers:
        return self._op("max", other)

    def at_most(self, other: Any) -> Numbers:
        return self._op("min", other)

    def choose(self, yes: Any, no: Any) -> Numbers:
        """Of truth values."""
        return self._made(self.g, self.g.op("where", self.x, _of(self.g, yes).x, _of(self.g, no).x))

    def at(self, places: Any) -> Numbers:
        return self._made(self.g, self.g.op("gather", self.x, _of(self.g, places).x, axis=0))

    def shaped(self, shape: list[Dim]) -> Numbers:
        return self._made(self.g, self.g.reshape(self.x, shape))

    def reduced(self, op: str, axis: int = 0) -> Numbers:
        """sum, product, max, min along an axis."""
        return self._made(self.g, self.g.op(f"reduce_{op}", self.x, axes=[axis]))

    def with_at(self, places: Numbers, values: Any) -> Numbers:
        """With others at some places."""
        x = self.g.op("scatter_elements", self.x, places.x, _of(self.g, values).x, axis=0)
        return self._made(self.g, x)

    def checked(self, what: str, least: int, most: Dim | None = None) -> Numbers:
        """A run in which one of them is outside [least, most] fails, and says what it is."""
        return self._made(self.g, checked(self.g, self.x, what, least, most))

    def extents(self) -> list[Dim]:
        return extents_of(self.g, self.x)


def checked(g: Graph, x: Operand, what: str, least: int, most: Dim | None = None) -> Operand:
    """Integers that are known only at run time, where they must lie within [least, most]."""
    return g.op("checked_numbers", x, what=what, least=least, most=[] if most is None else [most])


def _listed(numbers: Any) -> Operand:
    array = np.asarray(numbers)
    return known(array if array.dtype == object else array.astype(np.int64), "i64")


def _of(g: Graph, x: Any) -> Numbers:
    return x if isinstance(x, Numbers) else Numbers(g, x)


def is_known(x: Operand | None) -> bool:
    """Whether its elements are numbers, or follow from shapes."""
    return x is None or not is_told(x.array)


def extents_of(g: Graph, x: Operand) -> list[Dim]:
    """The elements of a tensor of known length: where only a run knows them they are counted then."""
    if x.array is not None:
        return [_extent(g, d) for d in x.array.reshape(-1)]
    count = product(g.shape(x))
    refuse_if(
        isinstance(count, Extent),
        f"it is told by a tensor of the shape {shortened(g.shape(x))}, whose number of elements is open",
        "Fix the dimension with dimensions={...} (--dimension NAME=N)",
    )
    invalid_if(count > MOST_COUNTED, f"{count} extents are asked for; {MOST_COUNTED} are the most")
    counts = [g.counted() for _ in range(count)]
    if counts:
        g.op("read_extents", g.reshape(g.cast(x, "i64"), [count]), counts=counts)
    return list(counts)


def _extent(g: Graph, d: Any) -> Dim:
    """An element of a list; one that a run tells is counted once."""
    if not isinstance(d, Told):
        return d if isinstance(d, Extent) else int(d)
    key = id(d.operand)
    if key not in g.told:
        g.told[key] = (d.operand, extents_of(g, g.reshape(d.operand, [1]))[0])
    return g.told[key][1]


def extents_among(g: Graph, whole: Numbers, sure: list[Any]) -> list[Dim]:
    """Of a list: those that are sure, and the others counted."""
    open_ = [i for i, d in enumerate(sure) if d is None]
    counted = iter(whole.at(open_).extents() if open_ else [])
    return [next(counted) if d is None else _extent(g, d) for d in sure]


def dims(g: Graph, node: Node, index: int, what: str) -> list[Dim]:
    """A list of extents that is an input, none of them negative where it is known only at run time."""
    x = node.operand(index)
    invalid_if(g.rank(x) > 1, f"{what} (input {index}) has {g.rank(x)} dimensions; it is a list")
    return node.dims(index, what) if is_known(x) else extents_of(g, x)


def around(g: Graph, x: Operand, axis: Numbers) -> tuple[Operand, list[Dim]]:
    """As [before, extent, after] of an axis that is known only at run time, and its own shape."""
    sizes, rank = g.shape(x), g.rank(x)
    axis = counted_from_front(axis, rank)
    own, places = Numbers(g, sizes), Numbers(g, list(range(rank)))
    column = axis.shaped([1])
    parts = [
        (places < column).choose(own, 1).reduced("product"),
        own.at(column).shaped([]),
        (places > column).choose(own, 1).reduced("product"),
    ]
    joined = g.concat([g.reshape(part.x, [1]) for part in parts], 0)
    return g.reshape(x, extents_of(g, joined)), sizes


def axes_told(g: Graph, axes: Operand, rank: int) -> Numbers:
    """For each dimension whether it is one of the axes, a list. Errors, in a run: one given twice."""
    sizes = g.shape(axes)
    invalid_if(len(sizes) > 1, f"the axes have the shape {sizes}; they are a list")
    column = counted_from_front(Numbers(g, axes), rank).shaped([product(sizes), 1])
    times = column.equals(list(range(rank))).choose(1, 0).reduced("sum")
    return times.checked(TIMES, 0, 1) > 0


TIMES = "how often an axis is given"


def distinct(axes: Numbers) -> Numbers:
    """Axes counted from the front. Errors, in a run: one given twice."""
    count = product(axes.g.shape(axes.x))
    times = axes.shaped([count, 1]).equals(axes).choose(1, 0).reduced("sum")
    return axes * times.checked(TIMES, 1, 1)


def others(g: Graph, chosen: Numbers, rank: int, count: int) -> Numbers:
    """The places of `count` dimensions that are not chosen, in order."""
    order = chosen.choose(rank, 0) + list(range(rank))
    return Numbers(g, g.op("sort", order.x, axis=0)).at(list(range(count)))


def counted_from_front(axes: Numbers, rank: int) -> Numbers:
    """Errors, in a run: axes outside [-rank, rank)."""
    g = axes.g
    checked = g.op("checked_indices", axes.x, extents=[max(rank, 1)])
    axes = Numbers(g, checked)
    return (axes < 0).choose(axes + rank, axes)
