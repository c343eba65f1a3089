"""Numbers that models compute of extents by floats: quotients of two extents, kept exact.

`floor(height * 0.5)` of an open height is then `height // 2`. Only floats take part whose products with
extents are not rounded: integers, and fractions of small powers of 2. What is computed with others, such as
0.7, is left to the run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from headrace._core import Extent, Undecided

from .polynomials import exact_quotient

Whole = Extent | int

_EXACT = 2**24  # integers below it are exact in single precision
_SHORT = 24
# Within quotes or not; functions are none.
NAME = re.compile(r"'(?:[^']|'')*'|[^\W\d][\w.:]*(?:-[^\W\d][\w.:]*)*(?![\w(.:])")


@dataclass
class Patience:
    """How long extents may be whose smallest and largest ones are kept as formulas."""

    longest: int = 160
    was_needed: bool = False  # for one that would otherwise be long


_patience: ContextVar[Patience | None] = ContextVar("patience", default=None)


@contextmanager
def patient(patience: Patience) -> Iterator[None]:
    token = _patience.set(patience)
    try:
        yield
    finally:
        _patience.reset(token)


def impatient() -> Patience:
    """For models whose formulas would grow from operator to operator."""
    return Patience(_SHORT)


def is_short(*extents: Whole) -> bool:
    """Whether smallest and largest ones of these are kept as formulas.

    Where they are not, what holds in every model that works is believed, and a run shows it. However long the
    names of dimensions are, each counts as four characters.
    """
    longest, patience = max(len(NAME.sub("name", str(d))) for d in extents), _patience.get() or Patience()
    patience.was_needed |= longest > _SHORT
    return longest <= patience.longest


def at_least_0(d: Whole) -> Whole:
    """The larger of it and 0."""
    if isinstance(d, Extent) and (d.least >= 0 or not is_short(d)):
        return d
    return Extent.largest([0, d])


def divided_up(a: Whole, b: Whole) -> Whole:
    """The quotient rounded up."""
    return a.divided_up(b) if isinstance(a, Extent) else -(-a // b)


class Ratio:
    """above / below, where below is more than 0."""

    __slots__ = ("above", "below")

    def __init__(self, above: Whole, below: Whole = 1) -> None:
        is_extent = isinstance(below, Extent) and below.least >= 0  # by 0 nothing is divided
        if not is_extent and not below > 0:  # Undecided where that is open
            above, below = -above, -below
        self.above, self.below = above, below

    def __repr__(self) -> str:
        return f"{self.above}/{self.below}"

    @staticmethod
    def of(number: Any) -> Ratio:
        """Errors: Undecided for a float that products with extents round."""
        if isinstance(number, Ratio):
            return number
        if isinstance(number, (Extent, int, np.integer)):
            return Ratio(number if isinstance(number, Extent) else int(number))
        value = float(number)
        if not math.isfinite(value):
            raise Undecided(f"{value} in arithmetic with extents")
        exact = Fraction(value)
        largest = _EXACT if exact.denominator == 1 else 2**11
        if abs(exact.numerator) > largest or exact.denominator > 2**11:
            raise Undecided(f"{value} in arithmetic with extents")
        return Ratio(exact.numerator, exact.denominator)

    def floor(self) -> Whole:
        return self.above // self.below

    def ceil(self) -> Whole:
        return divided_up(self.above, self.below)

    def toward_zero(self) -> Whole:
        try:
            return self.floor() if self.above >= 0 else self.ceil()
        except Undecided:
            return Extent.largest([self.floor(), 0]) + Extent.smallest([self.ceil(), 0])

    def nearest(self) -> Whole:
        """Halves go to the even one: only where there are none, or their neighbour does not matter."""
        if self.below == 1:
            return self.above
        if isinstance(self.below, int) and self.below % 2 == 1:
            return (2 * self.above + self.below) // (2 * self.below)
        raise Undecided(f"the integer next to {self}")


def _reduced(above: Whole, below: Whole) -> Ratio:
    """Without common factors, as far as they are plain."""
    if isinstance(below, int) and isinstance(above, int):
        common = math.gcd(above, below)
        return Ratio(above // common, below // common)
    whole = exact_quotient(above, below)
    if whole is not None:
        return Ratio(whole)
    if isinstance(below, int) and isinstance(above, Extent):
        common = math.gcd(below, *(factor for factor, _ in above.terms))
        return Ratio(above // common, below // common)
    return Ratio(above, below)


def _sum(a: Ratio, b: Ratio) -> Ratio:
    return _reduced(a.above * b.below + b.above * a.below, a.below * b.below)


def _product(a: Ratio, b: Ratio) -> Ratio:
    return _reduced(a.above * b.above, a.below * b.below)


def _quotient(a: Ratio, b: Ratio) -> Ratio:
    if isinstance(b.above, int) and b.above == 0:
        raise Undecided(f"{a} / 0")
    return _reduced(a.above * b.below, a.below * b.above)


def _extreme(largest: bool) -> Callable[[Ratio, Ratio], Ratio]:
    choose = Extent.largest if largest else Extent.smallest

    def function(a: Ratio, b: Ratio) -> Ratio:
        return _reduced(choose([a.above * b.below, b.above * a.below]), a.below * b.below)

    return function


BINARY: dict[str, Callable[[Ratio, Ratio], Ratio]] = {
    "Add": _sum,
    "Sub": lambda a, b: _sum(a, Ratio(-b.above, b.below)),
    "Mul": _product,
    "Div": _quotient,
    "Min": _extreme(False),
    "Max": _extreme(True),
}
UNARY: dict[str, Callable[[Ratio], Ratio]] = {
    "Floor": lambda a: Ratio(a.floor()),
    "Ceil": lambda a: Ratio(a.ceil()),
    "Round": lambda a: Ratio(a.nearest()),
    "Neg": lambda a: Ratio(-a.above, a.below),
    "Abs": lambda a: _extreme(True)(a, Ratio(-a.above, a.below)),
    "Reciprocal": lambda a: _quotient(Ratio(1), a),
}


# --- questions --------------------------------------------------------------------------------------------


def less(a: Whole, b: Whole) -> bool | Whole:
    """a < b, as 0 or 1 where that is open."""
    try:
        return bool(a < b)
    except Undecided:
        return Extent.smallest([1, Extent.largest([0, b - a])])


def equal(a: Whole, b: Whole) -> bool | Whole:
    """a == b, as 0 or 1 where that is open."""
    try:
        return bool(a == b)
    except Undecided:
        return 1 - Extent.smallest([1, Extent.largest([a - b, b - a])])


def either(condition: bool | Whole, a: Whole, b: Whole) -> Whole:
    """a where the condition holds, which is 0 or 1 where it is open."""
    if isinstance(condition, Extent):
        return a if condition.equals(1) else b if condition.equals(0) else b + condition * (a - b)
    return a if condition else b


def inverted(condition: bool | Whole) -> bool | Whole:
    return 1 - condition if isinstance(condition, Extent) else not condition


COMPARISONS: dict[str, Callable[[Whole, Whole], bool | Whole]] = {
    "Equal": equal,
    "Less": less,
    "Greater": lambda a, b: less(b, a),
    "LessOrEqual": lambda a, b: inverted(less(b, a)),
    "GreaterOrEqual": lambda a, b: inverted(less(a, b)),
}
