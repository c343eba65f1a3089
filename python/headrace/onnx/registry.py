"""Which function reads which operator, and a node as those functions see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .told import is_told

if TYPE_CHECKING:
    from .graph import Dim, Graph, Operand

MICROSOFT = "com.microsoft"


_OTHERWISE = (
    "Export the model without this, compute this part outside the model, or run the model with ONNX Runtime"
)
_CORRECT = "ONNX's rules for the operator do not allow this; what wrote the model has to correct it"


class Refused(Exception):
    """Why a node cannot be expressed. remedy: what to do about it; None: the ways round any node."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.remedy = _OTHERWISE if remedy is None else remedy


class Invalid(Refused):
    """What a node has that its operator does not allow."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, _CORRECT)


@dataclass
class Node:
    """One node: its attributes as Python values, and its inputs, None where one is left out."""

    op: str
    domain: str
    opset: int
    name: str
    inputs: list[Operand | None]
    outputs: list[str]  # names, "" for one that is not wanted
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        domain = self.domain or "ai.onnx"
        named = f"node '{self.name}' " if self.name else f"node of output '{next(iter(self.outputs), '')}' "
        return f"{named}({self.op}, {domain} opset {self.opset})"

    @property
    def short_title(self) -> str:
        return f"{self.op} '{self.name or next(iter(self.outputs), '')}'"

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def wants(self, index: int) -> bool:
        """Whether somebody reads an optional output."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def optional(self, index: int) -> Operand | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def operand(self, index: int) -> Operand:
        operand = self.optional(index)
        if operand is None:
            raise Invalid(f"input {index} is missing")
        return operand

    @property
    def x(self) -> Operand:
        return self.operand(0)

    def known(self, index: int, what: str) -> np.ndarray:
        """An input's value; it may hold extents where the model computes it from shapes."""
        array = self.operand(index).array
        if is_told(array):
            raise Refused(
                f"{what} (input {index}) is known only at run time; it must be a constant or follow from the "
                "shapes of tensors",
                "Where the model computes it from dimensions, fix those with dimensions={...} "
                "(--dimension NAME=N); otherwise make it an initializer",
            )
        return array

    def dims(self, index: int, what: str) -> list[Dim]:
        """A list of extents that is an input."""
        return [d if not isinstance(d, np.generic) else int(d) for d in self.known(index, what).reshape(-1)]

    def integers(self, index: int, what: str) -> list[int]:
        """A list of numbers that is an input."""
        values = self.dims(index, what)
        for value in values:
            if not isinstance(value, (int, np.integer)):
                raise Refused(
                    f"{what} (input {index}) is {value}, which is known only at run time",
                    "Fix the dimensions with dimensions={...} (--dimension NAME=N)",
                )
        return [int(value) for value in values]

    def number(self, index: int, what: str) -> Any:
        """A scalar that is an input."""
        array = self.known(index, what)
        if array.size != 1 or array.dtype == object:
            raise Refused(
                f"{what} (input {index}) must be one number, not {shortened(array.tolist())}",
                "Where the model computes it from dimensions, fix those with dimensions={...} "
                "(--dimension NAME=N)",
            )
        return array.reshape(-1)[0].item()

    def list_at(self, attribute: str, index: int, what: str) -> list[int] | None:
        """What older operator sets have as an attribute and newer ones as an input; None without both."""
        if attribute in self.attributes:
            return [int(value) for value in self.attributes[attribute]]
        return None if self.optional(index) is None else self.integers(index, what)


class AsDefined:
    """What a function returns for a form of its operator that ONNX's own definition has to stand for."""


AS_DEFINED = AsDefined()
Result = "Operand | Sequence[Operand | None]"
Function = Callable[["Graph", Node], Any]
OPERATORS: dict[tuple[str, str], Function] = {}


def reads(*names: str, domain: str = "") -> Callable[[Function], Function]:
    """Registers a function for operators of a domain."""

    def register(function: Function) -> Function:
        for name in names:
            assert (domain, name) not in OPERATORS, f"{name} is read twice"
            OPERATORS[domain, name] = function
        return function

    return register


def refuse_if(condition: Any, why: str, remedy: str | None = None) -> None:
    if condition:
        raise Refused(why, remedy)


def invalid_if(condition: Any, why: str) -> None:
    if condition:
        raise Invalid(why)


def shortened(value: Any) -> str:
    """For messages."""
    text = str(value)
    return text if len(text) <= 100 else text[:97] + "..."


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Counted from the front, none of them twice."""
    for axis in axes:
        invalid_if(not -rank <= axis < rank, f"axis {axis} is outside the {rank} dimensions of the input")
    found = [int(axis) % rank for axis in axes]
    invalid_if(len(set(found)) != len(found), f"the axes {list(axes)} have one twice")
    return found
