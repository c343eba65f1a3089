"""How cases of single operators are written.

A row is case(operator, operands, **options). Arrays become inputs of the graph, Constant(array) constants,
None an absent operand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from headrace._core import signatures

F32, F16, I8, U8 = "float32", "float16", "int8", "uint8"
I32, U32, I64, U64 = "int32", "uint32", "int64", "uint64"
FLOATS = [F32, F16]
SIGNED = [*FLOATS, I8, I32, I64]
NUMERIC = [F32, F16, I8, U8, I32, U32, I64, U64]
MOVABLE = [*NUMERIC, "int4", "uint4"]
INDICES = [I32, U32, I64]


@dataclass
class Constant:
    value: np.ndarray


@dataclass
class Case:
    op: str
    operands: list[Any]
    options: dict[str, Any] = field(default_factory=dict)
    exact: bool = False

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        return {f"x{i}": v for i, v in enumerate(self._flat()) if isinstance(v, np.ndarray)}

    def _flat(self) -> list[Any]:
        return self.operands[0] if isinstance(self.operands[0], list) else self.operands

    def build(self, builder: Any) -> Any:
        """A graph of just this operation."""
        made = []
        for i, value in enumerate(self._flat()):
            if isinstance(value, np.ndarray):
                made.append(builder.input(f"x{i}", list(value.shape), value.dtype.name))
            elif isinstance(value, Constant):
                made.append(builder.constant(value.value))
            else:
                made.append(None)
        if isinstance(self.operands[0], list):
            result = getattr(builder, self.op)(made, **self.options)
        else:
            names = [p.name for p in SIGNATURES[self.op].parameters if p.is_operand]
            given = {name: x for name, x in zip(names, made, strict=False) if x is not None}
            result = getattr(builder, self.op)(**given, **self.options)
        results = result if isinstance(result, list) else [result]
        return builder.build({f"y{i}": y for i, y in enumerate(results)})


SIGNATURES = {s.name: s for s in signatures()}
CASES: list[Case] = []


def case(op: str, *operands: Any, exact: bool = False, **options: Any) -> None:
    CASES.append(Case(op, list(operands), options, exact))


def values(shape: list[int], dtype: str = F32, low: float = -4, high: float = 4, seed: int = 0) -> np.ndarray:
    """Reproducible numbers; integers are drawn from the rounded range, unsigned ones from 0 on."""
    rng = np.random.default_rng([seed, len(shape), *shape])
    if dtype in FLOATS:
        return np.asarray(rng.uniform(low, high, shape).astype(dtype))
    low = max(low, 0) if dtype.startswith("u") else low
    kind = getattr(ml_dtypes, dtype) if dtype.endswith("int4") else dtype
    return np.asarray(rng.integers(math.ceil(low), int(high) + 1, shape).astype(kind))


def limits(dtype: str) -> np.ndarray:
    """The extreme values of a dtype among ordinary ones."""
    if dtype in FLOATS:
        return np.array([-np.inf, np.inf, np.nan, 0, -0.0, 1.5, -2.5, 3], dtype)
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, 0, 1, info.max - 1, 2, info.min + 1, 3], dtype)
