"""The graph in the making: the catalog's ops on operands that are values at run time or known already."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from headrace._core import Extent, GraphWriter, Undecided

from .limits import Budget
from .operands import Dim, Number, Operand, as_stored, converted, is_number, is_other, is_same, known, product
from .ranges import Ranges
from .ratios import Ratio
from .registry import Invalid, Refused
from .stored import CARRIERS, RANGES, as_type, carried, low_bits, narrowed
from .told import Told

__all__ = [
    "Dim",
    "Extent",
    "Graph",
    "Number",
    "Operand",
    "Undecided",
    "converted",
    "is_number",
    "is_other",
    "is_same",
    "known",
    "product",
]
MOST_DIMENSIONS = 8
LARGEST_EXTENT = 2**24  # of what is laid out while a model is read: places, weights of interpolation
_TRUTHS = {
    "equal",
    "not_equal",
    "greater",
    "greater_or_equal",
    "lesser",
    "lesser_or_equal",
    "is_nan",
    "is_infinite",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
}
# Their results may lie outside the operands' type where a wider one carries it.
_LEAVING = {
    "add",
    "sub",
    "mul",
    "pow",
    "shift_left",
    "reduce_sum",
    "reduce_sum_square",
    "reduce_product",
    "cumulative_sum",
}
# What they say of numbers that a caller gives names the operator that takes these.
_JUDGES = {"checked_indices", "checked_numbers", "read_extents"}


class Graph:
    """Wraps a GraphWriter. Operands whose elements are known become constants when an op needs them."""

    def __init__(self, budget: Budget) -> None:
        self.writer = GraphWriter()
        self.budget = budget
        self.ranges = Ranges()
        self.label = ""  # of the ops that are added: the node's name
        self.operator = ""  # the node's operator and name
        self.dimensions: list[str] = []  # named ones of the inputs
        self.symbols: dict[str, Extent] = {}  # with the ranges that they have in all graphs of the model
        self.counts: set[str] = set()  # symbols that a run of this graph gives values
        self.told: dict[int, tuple[Operand, Extent]] = {}  # elements that were counted, by their operands
        self._constants: dict[int, tuple[Operand, int]] = {}  # of operands that are another graph's, too
        self._as_numbers: dict[str, Operand] = {}  # extents as numbers at run time
        self.places: dict[int, Operand] = {}  # of non-zeros, by the value that has them
        self._runs: Operand | None = None
        self.bodies: list[Graph] = []  # within this one

    def forget(self) -> None:
        """Operands and graphs that know each other would stay until the collector comes."""
        for body in self.bodies:
            body.forget()
        for kept in (self.bodies, self.told, self.places, self._constants, self._as_numbers):
            kept.clear()
        self.budget.forget()
        self._runs = None

    # --- shapes -------------------------------------------------------------------------------------

    def input(self, name: str, dtype: str, shape: list[Dim]) -> Operand:
        """A run-time operand. Its dimensions are known by their names, and sums of them as such."""
        if len(shape) > MOST_DIMENSIONS:
            raise Refused(
                f"it has {len(shape)} dimensions; {MOST_DIMENSIONS} are the most. Export the model with "
                "some of them merged"
            )
        stored = ({"bool": "u8", "bf16": "f32"} | CARRIERS).get(dtype, dtype)
        value = self.declare(name, stored, shape)
        names = [name for d in shape if isinstance(d, Extent) for name in d.names]
        self.dimensions = list(dict.fromkeys([*self.dimensions, *names]))
        return self.cast(Operand(stored, value, home=self), dtype)

    def declare(self, name: str, stored: str, shape: list[Dim]) -> int:
        """An input of the writer."""
        for d in shape:
            if isinstance(d, Extent) and d.symbols == [str(d)]:
                self.symbols.setdefault(str(d), d)
        return self.writer.input(name, stored, shape)

    def shape(self, x: Operand) -> list[Dim]:
        if x.array is not None:
            return list(x.array.shape)
        return [self.ranges.narrowed(d) for d in x.home.writer.shape(x.value)]

    def rank(self, x: Operand) -> int:
        return len(self.shape(x))

    def size(self, x: Operand) -> Dim:
        return product(self.shape(x))

    def axis(self, x: Operand, axis: int) -> int:
        """Counted from the front."""
        rank = self.rank(x)
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise Invalid(f"axis {axis} is outside the {rank} dimensions of the input")
        return axis % max(rank, 1)

    def fresh(self, word: str) -> Extent:
        """A new symbol."""
        number = len(self.symbols)
        while f"{word}{number}" in self.symbols:
            number += 1
        return self.symbols.setdefault(f"{word}{number}", Extent.symbol(f"{word}{number}", 0))

    def counted(self) -> Extent:
        """A new symbol, which the model's run gives a value."""
        extent = self.fresh("count")
        self.counts.add(str(extent))
        return extent

    def is_open(self, x: Operand) -> bool:
        """Whether its shape has extents that are known only at run time."""
        return any(isinstance(d, Extent) for d in self.shape(x))

    def unknown(self, d: Dim, what: str) -> Refused:
        """The error for an extent that must be a number here."""
        names = [n for n in self.dimensions if n in d.names] or self.dimensions
        fixed = ", ".join(f"{name!r}: 1" for name in names) or "..."
        option = " ".join(f"--dimension {shlex.quote(name + '=1')}" for name in names)
        is_dimension = d.symbols == [str(d)] and d.names[0] in self.dimensions
        which = f"dimension '{d.names[0]}'" if is_dimension else f"'{d}'"
        return Refused(
            f"{what} is {which}, known only at run time, and this operator cannot keep it",
            f"Fix it when the model is read: dimensions={{{fixed}}} ({option}), with the number you need",
        )

    def fixed(self, d: Dim, what: str) -> int:
        if isinstance(d, Extent):
            raise self.unknown(d, what)
        return int(d)

    def fixed_shape(self, x: Operand, what: str = "an extent of the input") -> list[int]:
        return [self.fixed(d, what) for d in self.shape(x)]

    # --- constants ----------------------------------------------------------------------------------

    def value(self, x: Operand) -> int:
        """The writer's value; known elements become a constant."""
        if x.value is not None and x.home is self:
            return x.value
        if x.array is None:
            return self.capture(x)
        if x.array.dtype == object:
            return self._computed(x)
        if x.home is None:
            x.value, x.home = self._constant(x), self
            return x.value
        if id(x) not in self._constants:
            self._constants[id(x)] = (x, self._constant(x))
        return self._constants[id(x)][1]

    def _constant(self, x: Operand) -> int:
        if x.dtype in CARRIERS:
            return self.value(carried(self, x))
        stored = "u8" if x.dtype == "bool" else x.dtype
        if x.home is None:
            self.budget.constant(x.array.nbytes)
        return self.writer.constant(stored, list(x.array.shape), as_stored(x.array, x.dtype))

    def capture(self, x: Operand) -> int:
        """A value of another graph."""
        raise AssertionError(f"{x} is a value of another graph")

    def retyped(self, x: Operand, dtype: str) -> Operand:
        """The same value, which the graph stores alike, as another type of ONNX's."""
        return Operand(dtype, self.value(x), home=self)

    def _computed(self, x: Operand) -> int:
        """Extents as numbers at run time."""
        parts = [self.reshape(self.at_run_time(d, x.dtype), [1]) for d in x.array.reshape(-1)]
        joined = parts[0] if len(parts) == 1 else self.ops("concat", parts, axis=0)[0]
        return self.value(self.reshape(joined, list(x.array.shape)))

    def at_run_time(self, d: Number | Operand, dtype: str) -> Operand:
        """A number, an extent or a quotient of two, as a scalar: of an extent, as many ones are added up."""
        if isinstance(d, Told):
            d = self.reshape(d.operand, [])
        if isinstance(d, Operand):
            return self.cast(d, dtype)
        if isinstance(d, Ratio):
            above, below = (self.at_run_time(part, dtype) for part in (d.above, d.below))
            return self.op("div", above, below)
        if not isinstance(d, Extent):
            return known(d, dtype)
        if str(d) not in self._as_numbers:
            total: Operand | None = None
            for factor, parts in d.terms:
                part = self._product_at_run_time(parts)
                part = part if factor == 1 else self.op("mul", part, known(factor, "i64"))
                total = part if total is None else self.op("add", total, part)
            self._as_numbers[str(d)] = total
        return self.cast(self._as_numbers[str(d)], dtype)

    def _product_at_run_time(self, parts: list[Extent]) -> Operand:
        if not parts:
            return known(1, "i64")
        key = "*".join(map(str, parts))
        if key not in self._as_numbers:
            last = self._count_of(parts[-1])
            if parts[-1].least < 0:
                last = self.op("sub", last, self._count_of(-parts[-1]))
            whole = self.op("mul", self._product_at_run_time(parts[:-1]), last) if parts[1:] else last
            self._as_numbers[key] = whole
        return self._as_numbers[key]

    def _count_of(self, d: Extent) -> Operand:
        """How many there are, 0 for what is less."""
        count = Extent.largest([d, 0])
        if not isinstance(count, Extent):
            return known(count, "i64")
        return self.op("reduce_sum", self.expand(known(1, "i64"), [count]), axes=[0])

    def run_number(self) -> Operand:
        """How many runs a session has done, i64: a state, which random numbers are of."""
        if self._runs is None:
            state = self.writer.state("random.runs", "i64", [1])
            one = self.value(known(np.ones(1, np.int64), "i64"))
            count = self.writer.op("accumulate", [state, one], {}, self.label)[0]
            self._runs = Operand("i64", count, home=self)
        return self._runs

    def scalar(self, number: Any, dtype: str) -> Operand:
        return known(number, dtype)

    def filled(self, number: Any, dtype: str, shape: list[Dim]) -> Operand:
        return self.expand(known(number, dtype), shape)

    def positions(self, count: Dim, dtype: str = "i64") -> Operand:
        """0, 1, 2, ... up to an extent that may be known only at run time."""
        if not isinstance(count, Extent):
            return known(self.numbered(count), dtype)
        return self.op("cumulative_sum", self.filled(1, dtype, [count]), axis=0, exclusive=True)

    def numbered(self, count: int) -> np.ndarray:
        """0, 1, 2, ... below a number. Errors: Refused where they are too many to be laid out."""
        self.check_extent(count)
        return np.arange(count)

    def check_extent(self, count: int) -> None:
        """That so many places along an extent can be laid out."""
        if count > LARGEST_EXTENT:
            raise Refused(
                f"{count} places along an extent would be laid out; {LARGEST_EXTENT} are the most",
                "Export the model with a smaller extent here",
            )

    # --- ops ----------------------------------------------------------------------------------------

    def ops(self, name: str, operands: list[Operand | None], **attributes: Any) -> list[Operand]:
        while operands and operands[-1] is None:
            operands = operands[:-1]
        self.budget.op()
        values = [None if x is None else self.value(x) for x in operands]
        try:
            label = self.operator if name in _JUDGES else self.label
            results = self.writer.op(name, values, attributes, label)
        except ValueError as error:
            raise Refused(str(error)) from None
        for value in results:
            self.ranges.learn(self.writer.shape(value))
        dtypes = [self.writer.dtype(value) for value in results]
        source = operands[1 if name == "where" else 0] if operands else None
        truth = name in _TRUTHS or (name != "cast" and source is not None and source.dtype == "bool")
        made = [
            Operand("bool" if truth and t == "u8" else t, v, home=self)
            for t, v in zip(dtypes, results, strict=True)
        ]
        if source is None or source.dtype not in CARRIERS or name == "cast":
            return made
        return [
            self._of_type(y, source.dtype, name) if y.dtype == CARRIERS[source.dtype] else y for y in made
        ]

    def _of_type(self, y: Operand, dtype: str, name: str) -> Operand:
        """An op's result in a type's carrier as that type."""
        return as_type(self, low_bits(self, y, dtype) if name in _LEAVING and dtype in RANGES else y, dtype)

    def op(self, name: str, *operands: Operand | None, **attributes: Any) -> Operand:
        return self.ops(name, list(operands), **attributes)[0]

    def cast(self, x: Operand, dtype: str) -> Operand:
        if x.dtype == dtype:
            return x
        if x.dtype in CARRIERS:
            return self.cast(carried(self, x), dtype)
        if dtype in CARRIERS:
            return narrowed(self, x, dtype)
        if x.array is not None and x.array.dtype != object and x.array.size <= 64:
            return converted(x, dtype)
        if dtype == "bool":
            x = self.cast(x, "i8") if x.dtype in ("i4", "u4") else x
            return self.op("not_equal", x, known(0, x.dtype))
        if x.dtype == "bool":
            x = self.retyped(x, "u8")
        return x if x.dtype == dtype else self.op("cast", x, data_type=f"dtype:{dtype}")

    def reshape(self, x: Operand, shape: list[Dim]) -> Operand:
        if self.has_shape(x, shape):
            return x
        is_known = x.array is not None and not any(isinstance(d, Extent) for d in shape)
        if is_known and product(shape) == x.array.size:
            return Operand(x.dtype, array=x.array.reshape(shape))
        return self.op("reshape", x, new_shape=shape)

    def has_shape(self, x: Operand, shape: list[Dim]) -> bool:
        own = self.shape(x)
        return len(own) == len(shape) and all(is_same(a, b) for a, b in zip(own, shape, strict=True))

    def transpose(self, x: Operand, permutation: list[int]) -> Operand:
        if permutation == list(range(len(permutation))):
            return x
        return self.op("transpose", x, permutation=permutation)

    def swap_to_last(self, x: Operand, axis: int) -> tuple[Operand, list[int]]:
        """The axis as the last one, and the permutation, which is its own inverse."""
        order = list(range(self.rank(x)))
        order[axis], order[-1] = order[-1], order[axis]
        return self.transpose(x, order), order

    def expand(self, x: Operand, shape: list[Dim]) -> Operand:
        return x if self.has_shape(x, shape) else self.op("expand", x, new_shape=shape)

    def concat(self, parts: list[Operand], axis: int) -> Operand:
        if len(parts) == 1:
            return parts[0]
        return self.ops("concat", parts, axis=axis)[0]

    def cut(self, x: Operand, axis: int, start: Dim, size: Dim, step: int = 1) -> Operand:
        """`size` elements along an axis, every step-th of them."""
        sizes = self.shape(x)
        if is_number(start, 0) and step == 1 and is_same(size, sizes[axis]):
            return x
        starts, steps = [0] * len(sizes), [1] * len(sizes)
        starts[axis], sizes[axis], steps[axis] = start, size, step
        return self.op("slice", x, starts=starts, sizes=sizes, **({"strides": steps} if step != 1 else {}))

    def times(self, x: Operand, factor: Number) -> Operand:
        return x if is_number(factor, 1) else self.op("mul", x, self.at_run_time(factor, x.dtype))

    def plus(self, x: Operand, number: Number) -> Operand:
        return x if is_number(number, 0) else self.op("add", x, self.at_run_time(number, x.dtype))

    def within(self, x: Operand, low: Number, high: Number) -> Operand:
        """Clamped to [low, high]."""
        if not any(isinstance(bound, (Extent, Ratio)) for bound in (low, high)):
            return self.op("clamp", x, min_value=low, max_value=high)
        low, high = (self.at_run_time(bound, x.dtype) for bound in (low, high))
        return self.op("min", self.op("max", x, low), high)

    def add_axes(self, x: Operand, after: int) -> Operand:
        """With extents of 1 behind the others."""
        return self.reshape(x, [*self.shape(x), *[1] * after]) if after else x
