"""How random cases of single operators are made: functions of a generator of random numbers, by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from operator_cases_base import F32, I64, Case, Constant

Random = np.random.Generator
MAKERS: dict[str, Callable[[Random], Case]] = {}


def makes(*names: str) -> Any:
    """Registers a function (rng, operator) under each name: an operator's, with a variant behind a dash."""

    def register(function: Any) -> Any:
        for name in names:
            MAKERS[name] = lambda rng, name=name: function(rng, name.split("-")[0])
        return function

    return register


def made(op: str, inputs: list[Any], opset: int = 21, outputs: int = 1, **attributes: Any) -> Case:
    """Attributes that are None are left out."""
    given = {key: value for key, value in attributes.items() if value is not None}
    return Case(op, inputs, opset, outputs, "", given)


def pick(rng: Random, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def chance(rng: Random, probability: float = 0.5) -> bool:
    return bool(rng.random() < probability)


def some(rng: Random, low: int, high: int, count: int) -> list[int]:
    return [int(n) for n in rng.integers(low, high + 1, count)]


def shape_of(rng: Random, low: int = 1, high: int = 4, most: int = 5) -> list[int]:
    return some(rng, 1, most, int(rng.integers(low, high + 1)))


def numbers(rng: Random, shape: Any, dtype: Any = F32, is_wild: bool = False) -> np.ndarray:
    """Floats in quarters, so that ties and equal ones occur; wild ones may be NaN or infinite."""
    if np.dtype(dtype).kind == "f":
        x = np.asarray(rng.integers(-14, 15, shape) / 4)
        if is_wild:
            x = np.where(rng.random(x.shape) < 0.15, rng.choice([np.nan, np.inf, -np.inf, -0.0], x.shape), x)
        return np.asarray(x).astype(dtype)
    if np.dtype(dtype) == bool:
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    low = 0 if np.dtype(dtype).kind == "u" else -9
    return np.asarray(rng.integers(low, 10, shape)).astype(dtype)


def ints(values: Any) -> Constant:
    return Constant(np.array(values, I64))


def axis_of(rng: Random, rank: int) -> int:
    return int(rng.integers(-rank, rank)) if rank else 0
