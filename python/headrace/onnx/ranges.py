"""What ops need of open dimensions: a filter of 7 rows needs images of at least 7, and so on backwards.

A model cannot be called with less, so whatever is read after the op may count on it: `(samples-10)//5` is no
negative quotient once a filter of 10 has been read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from headrace._core import Extent

from .ratios import NAME

_LARGEST = 2**24
# A minus before all but a number alone, and remainders, may let an expression fall where its symbol grows.
_MAY_FALL = re.compile(r"-\s*(?:\d+\s*\*|[^\d\s])|%|Mod|//\s*[^\d\s]|[^\w\s()+*/,-]")


class Ranges:
    """The least values of symbols, learned from ops' results."""

    def __init__(self) -> None:
        self._least: dict[str, int] = {}
        self._instead: dict[str, Extent] = {}
        self._learned: set[tuple[str, int]] = set()
        self._known: dict[str, Extent | int] = {}  # expressions with these ranges

    def learn(self, extents: Iterable[Extent | int]) -> None:
        """Results' extents, which are at least what their ops say."""
        for d in extents:
            if isinstance(d, Extent) and d.least >= 1 and str(d) not in d.symbols:
                self.needs(d, d.least)

    def needs(self, d: Extent, least: int) -> None:
        """A run in which an extent is less fails."""
        if (str(d), least) in self._learned:
            return
        self._learned.add((str(d), least))
        names = d.symbols
        if len(names) != 1 or _MAY_FALL.search(NAME.sub("name", str(d))):
            return
        symbol = _least_symbol(d, names[0], least)
        if symbol is not None and symbol > self._least.get(names[0], 1):
            self._least[names[0]] = symbol
            self._instead[names[0]] = Extent.symbol(names[0], symbol)
            self._known.clear()

    def of_array(self, array: np.ndarray) -> np.ndarray:
        """An array of extents with what is known of them by now."""
        if not self._instead or array.dtype != object:
            return array
        result = np.empty(array.shape, object)
        result.reshape(-1)[:] = [self.narrowed(d) for d in array.flat]
        return result

    def narrowed(self, d: Extent | int) -> Extent | int:
        if not self._instead or not isinstance(d, Extent):
            return d
        key = str(d)
        if key not in self._known:
            concerned = any(name in self._instead for name in d.symbols)
            self._known[key] = d.substituted(self._instead) if concerned else d
        return self._known[key]


def _least_symbol(d: Extent, name: str, wanted: int) -> int | None:
    """The symbol's least value for which a growing expression is as large; None where that is not found."""

    def is_enough(value: int) -> bool:
        found = d.evaluate({name: value})
        return found is not None and found >= wanted

    low, high = 1, 1
    if is_enough(low):
        return None
    while not is_enough(high):
        low, high = high, high * 2
        if high > _LARGEST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
