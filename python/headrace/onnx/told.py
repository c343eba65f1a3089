"""Elements of lists that are known only at run time, beside others that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core import Undecided

if TYPE_CHECKING:
    from .graph import Operand


class Told:
    """One element, known only at run time, of a list that has others too. Nothing can be asked of it."""

    __slots__ = ("operand",)
    __hash__ = object.__hash__

    def __init__(self, operand: Operand) -> None:
        self.operand = operand

    def __repr__(self) -> str:
        return "?"

    def _undecided(self, *_: Any) -> bool:
        raise Undecided("a number that is fed")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _undecided


def is_told(array: np.ndarray | None) -> bool:
    """Whether a run tells elements that are not known."""
    return array is None or (array.dtype == object and any(isinstance(d, Told) for d in array.flat))
