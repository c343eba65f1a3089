"""Arithmetic with extents that are known only at run time, as exporters write it into shapes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable

Monomial = tuple[str, ...]  # names of dimensions, sorted; () is 1


class Undecided(Exception):
    """A question that has no answer before the dimensions are known."""


class TooLarge(Undecided):
    """A polynomial that nobody writes into a shape: what models of a few nodes can grow without end."""


_MOST_TERMS, _MOST_FACTORS, _LARGEST_FACTOR = 64, 16, 2**63 - 1


class Extent:
    """A polynomial of named dimensions, each at least 1. Results that are numbers become integers."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms

    @staticmethod
    def named(name: str) -> Extent:
        return Extent({(name,): 1})

    @property
    def names(self) -> set[str]:
        return {name for monomial in self.terms for name in monomial}

    def factors(self) -> tuple[int, list[str]] | None:
        """A number and dimensions whose product this is; None where it is a sum."""
        if len(self.terms) != 1:
            return None
        ((monomial, factor),) = self.terms.items()
        return factor, list(monomial)

    # --- arithmetic ---------------------------------------------------------------------------------

    def __add__(self, other: object) -> Extent | int:
        terms = Counter(self.terms)
        for monomial, factor in _terms(other):
            terms[monomial] += factor
        return _simplified(terms)

    def __neg__(self) -> Extent:
        return Extent({monomial: -factor for monomial, factor in self.terms.items()})

    def __sub__(self, other: object) -> Extent | int:
        return self + (-other)

    def __rsub__(self, other: int) -> Extent | int:
        return -self + other

    def __mul__(self, other: object) -> Extent | int:
        terms: Counter[Monomial] = Counter()
        for theirs, times in _terms(other):
            for monomial, factor in self.terms.items():
                terms[tuple(sorted(monomial + theirs))] += factor * times
        return _simplified(terms)

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other: object) -> Extent | int:
        """Only where nothing remains."""
        divisor = list(_terms(other))
        if len(divisor) != 1 or not divisor[0][1]:
            if isinstance(other, Extent) and self.terms == other.terms:
                return 1
            raise Undecided(f"{self} / {other}")
        names, number = Counter(divisor[0][0]), divisor[0][1]
        terms = {}
        for monomial, factor in self.terms.items():
            left = Counter(monomial)
            if factor % number or names - left:
                raise Undecided(f"{self} / {other}")
            terms[tuple(sorted((left - names).elements()))] = factor // number
        return _simplified(terms)

    def __rfloordiv__(self, other: int) -> int:
        raise Undecided(f"{other} / {self}")

    def __mod__(self, other: object) -> int:
        self // other
        return 0

    def __rmod__(self, other: int) -> int:
        raise Undecided(f"{other} % {self}")

    # --- order --------------------------------------------------------------------------------------

    def _compared(self, other: object, holds: Callable[[float, float], bool | None]) -> bool:
        """holds(least, largest) of the difference, over all that the dimensions can be; None is open."""
        difference = self - other
        if isinstance(difference, int):
            answer = holds(difference, difference)
        else:
            growth = [factor for monomial, factor in difference.terms.items() if monomial]
            ends = sum(difference.terms.values())  # where every dimension is 1
            least = ends if min(growth) > 0 else -math.inf
            largest = ends if max(growth) < 0 else math.inf
            answer = holds(least, largest)
        if answer is None:
            raise Undecided(f"{self} is {other}")
        return answer

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Extent, int)):
            return NotImplemented
        return self._compared(other, lambda a, b: True if a == b == 0 else False if a > 0 or b < 0 else None)

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> frozenset[tuple[Monomial, int]]:
        """For tables: equal for equal polynomials, without a question of order."""
        return frozenset(self.terms.items())

    def __lt__(self, other: object) -> bool:
        return self._compared(other, lambda a, b: True if b < 0 else False if a >= 0 else None)

    def __le__(self, other: object) -> bool:
        return self._compared(other, lambda a, b: True if b <= 0 else False if a > 0 else None)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, lambda a, b: True if a > 0 else False if b <= 0 else None)

    def __ge__(self, other: object) -> bool:
        return self._compared(other, lambda a, b: True if a >= 0 else False if b < 0 else None)

    def __bool__(self) -> bool:
        return self != 0

    def __str__(self) -> str:
        parts = []
        for monomial, factor in self.terms.items():
            shown = [str(factor)] if factor != 1 or not monomial else []
            parts.append("*".join([*shown, *monomial]))
        return " + ".join(parts)

    __repr__ = __str__


def _terms(value: object) -> Iterable[tuple[Monomial, int]]:
    if isinstance(value, Extent):
        return value.terms.items()
    return [((), int(value))]


def _simplified(terms: dict[Monomial, int]) -> Extent | int:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept:
        return 0
    if list(kept) == [()]:
        return kept[()]
    if (
        len(kept) > _MOST_TERMS
        or max(map(len, kept)) > _MOST_FACTORS
        or max(map(abs, kept.values())) > _LARGEST_FACTOR
    ):
        raise TooLarge(
            f"an extent becomes a polynomial of more than {_MOST_TERMS} terms, {_MOST_FACTORS} factors or "
            f"numbers of 64 bits: {str(Extent(dict(list(kept.items())[:3])))[:80]} ..."
        )
    return Extent(kept)


Dim = Extent | int


def is_same(a: Dim, b: Dim) -> bool:
    """Equal whatever the dimensions are; False also where that is open."""
    try:
        return a == b
    except Undecided:
        return False


def product(extents: Iterable[Dim]) -> Dim:
    total: Dim = 1
    for extent in extents:
        total = total * extent
    return total
