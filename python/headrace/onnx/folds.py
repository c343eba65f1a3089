"""How operators compute what is known: NumPy's arrays, and arrays of objects that hold extents."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .graph import Extent, Undecided
from .polynomials import exact_quotient
from .ratios import BINARY as OF_RATIOS
from .ratios import COMPARISONS, Ratio, either, inverted
from .ratios import UNARY as OF_RATIO
from .registry import Node, axes_of

FOLDS: dict[str, Callable[[Node, list[Any]], Any]] = {}
LARGEST = 4096  # elements; more stay with the compiler, which folds constants, too
INTEGERS = ("i8", "u8", "i16", "i32", "u32", "i64", "u64", "bool")
REALS = ("f32", "f64", "f16")

TRUTHS = {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Not", "And", "Or"}


def _folds(*names: str) -> Any:
    def register(function: Any) -> Any:
        for name in names:
            FOLDS[name] = function
        return function

    return register


def _divide(a: Any, b: Any) -> Any:
    """Towards zero."""
    if isinstance(a, Extent) or isinstance(b, Extent):
        exact = exact_quotient(a, b)
        return Ratio(a, b).toward_zero() if exact is None else exact
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _modulo(a: Any, b: Any) -> Any:
    """Of the divisor's sign."""
    if isinstance(b, Extent) and not b > 0:
        raise Undecided(f"{a} % {b}")
    return a % b


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _divide,
    "Min": lambda a, b: Extent.smallest([a, b]),
    "Max": lambda a, b: Extent.largest([a, b]),
    "And": lambda a, b: either(a, b, False),
    "Or": lambda a, b: either(a, True, b),
    "Xor": lambda a, b: either(a, inverted(b), b),
    "Sum": lambda a, b: a + b,
} | COMPARISONS


def _elementwise(function: Callable[[Any, Any], Any]) -> Any:
    def fold(node: Node, x: list[Any]) -> Any:
        total = x[0]
        for other in x[1:]:
            a, b = np.broadcast_arrays(total.astype(object), other.astype(object))
            result = np.empty(a.shape, object)
            result.reshape(-1)[:] = [function(*pair) for pair in zip(a.flat, b.flat, strict=True)]
            total = result
        return total

    return fold


def _each(function: Callable[[Any], Any]) -> Any:
    def fold(node: Node, x: list[Any]) -> Any:
        result = np.empty(x[0].shape, object)
        result.reshape(-1)[:] = [function(a) for a in x[0].astype(object).flat]
        return result

    return fold


for _name, _function in _BINARY.items():
    FOLDS[_name] = _elementwise(_function)
BROADCAST = {*_BINARY, "Where", "Pow", "Mod", "Xor"}


@_folds("Mod")
def _remainder(node: Node, x: list[Any]) -> Any:
    """Of the divisor's sign, or of the dividend's."""
    rest = (lambda a, b: a - _divide(a, b) * b) if node.get("fmod", 0) else _modulo
    return _elementwise(rest)(node, x)


FOLDS["Neg"] = _each(lambda a: -a)
FOLDS["Abs"] = _each(lambda a: Extent.largest([a, -a]))
FOLDS["Sign"] = _each(lambda a: Extent.largest([-1, Extent.smallest([1, a])]))
FOLDS["Not"] = _each(inverted)
# Of floats that are quotients of extents.
REAL_FOLDS: dict[str, Any] = {
    name: _elementwise(lambda a, b, f=function: f(Ratio.of(a), Ratio.of(b)))
    for name, function in OF_RATIOS.items()
}
REAL_FOLDS |= {name: _each(lambda a, f=function: f(Ratio.of(a))) for name, function in OF_RATIO.items()}
REAL_FOLDS |= {
    name: _elementwise(lambda a, b, f=function: f(*(_over_one_divisor(Ratio.of(a), Ratio.of(b)))))
    for name, function in COMPARISONS.items()
}
for _name in ("Floor", "Ceil", "Round", "Reciprocal"):
    FOLDS[_name] = REAL_FOLDS[_name]


def _over_one_divisor(a: Ratio, b: Ratio) -> tuple[Any, Any]:
    return a.above * b.below, b.above * a.below


def cast_of(source: str, target: str) -> Any:
    """Between integers nothing changes that an extent can have; a TypeError for what is no number."""
    if target == "bool":
        return _each(lambda a: inverted(COMPARISONS["Equal"](Ratio.of(a).above, 0)))
    if target not in REALS and target not in INTEGERS:
        raise TypeError
    if source in REALS:
        return _same if target in REALS else _each(lambda a: Ratio.of(a).toward_zero())
    if target in REALS:
        return _each(Ratio.of)
    return _each(lambda a: int(a) if isinstance(a, (bool, np.bool_)) else a)


@_folds("Identity", "Cast")
def _same(node: Node, x: list[Any]) -> Any:
    return x[0]


@_folds("Pow")
def _power(node: Node, x: list[Any]) -> Any:
    """Small whole powers."""
    exponents = x[1].reshape(-1)
    if exponents.size != 1 or float(exponents[0]) not in (0.0, 1.0, 2.0, 3.0):
        return None
    times = int(exponents[0])
    return _each(lambda a: math.prod([a] * times))(node, x) if x[0].dtype == object else None


@_folds("Clip")
def _clip(node: Node, x: list[Any]) -> Any:
    low, high = (x[i].reshape(-1)[0] if len(x) > i and x[i] is not None else None for i in (1, 2))
    whole = [v for v in (low, high) if v is not None]
    if any(isinstance(v, (float, np.floating, Ratio)) for v in [*whole, *x[0].flat]):
        return None

    def one(a: Any) -> Any:
        a = a if low is None else Extent.largest([a, low])
        return a if high is None else Extent.smallest([a, high])

    return _each(one)(node, x)


@_folds("Where")
def _where(node: Node, x: list[Any]) -> Any:
    parts = np.broadcast_arrays(*(part.astype(object) for part in x))
    result = np.empty(parts[0].shape, object)
    result.reshape(-1)[:] = [either(*three) for three in zip(*(part.flat for part in parts), strict=True)]
    return result


@_folds("Tile")
def _tile(node: Node, x: list[Any]) -> Any:
    counts = [int(n) for n in x[1]]
    return np.tile(x[0], counts) if x[0].size * math.prod(counts) <= LARGEST else None


@_folds("ScatterND")
def _scatter(node: Node, x: list[Any]) -> Any:
    if node.get("reduction", "none") != "none" or x[1].dtype == object:
        return None
    result, places = x[0].astype(object), x[1].reshape(-1, x[1].shape[-1])
    rows = x[2].astype(object).reshape(len(places), -1)
    for place, row in zip(places, rows, strict=True):
        at = tuple(int(i) for i in place)
        result[at] = row.reshape(result[at].shape) if isinstance(result[at], np.ndarray) else row[0]
    return result


@_folds("GatherElements")
def _gather_elements(node: Node, x: list[Any]) -> Any:
    axis = node.get("axis", 0)
    if x[1].dtype == object or ((x[1] < 0) | (x[1] >= x[0].shape[axis])).any():
        return None
    return np.take_along_axis(x[0], x[1].astype(np.int64), axis)


@_folds("CumSum")
def _running_sum(node: Node, x: list[Any]) -> Any:
    if node.get("exclusive", 0) or node.get("reverse", 0):
        return None
    return np.add.accumulate(x[0].astype(object), axis=int(x[1].reshape(-1)[0]))


@_folds("Gather")
def _gather(node: Node, x: list[Any]) -> Any:
    axis, extent = node.get("axis", 0), x[0].shape[node.get("axis", 0)]
    places = x[1].astype(np.int64)
    if ((places < -extent) | (places >= extent)).any():
        return None
    return np.take(x[0], places, axis=axis)


@_folds("Concat")
def _concat(node: Node, x: list[Any]) -> Any:
    return np.concatenate(x, axis=node.get("axis", 0))


@_folds("Slice")
def _slice(node: Node, x: list[Any]) -> Any:
    rank = x[0].ndim
    if "starts" in node.attributes:
        starts, ends = node.get("starts"), node.get("ends")
        axes, steps = node.get("axes") or range(len(starts)), [1] * len(starts)
    else:
        starts, ends = (list(map(int, part)) for part in x[1:3])
        axes = range(len(starts)) if len(x) < 4 or x[3] is None else [int(a) for a in x[3]]
        steps = [1] * len(starts) if len(x) < 5 or x[4] is None else [int(s) for s in x[4]]
    whole = [slice(None)] * rank
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        extent = x[0].shape[axis]
        last = None if step < 0 and end < -extent else end
        whole[axis] = slice(max(start, -extent) if extent else start, last, step)
    return x[0][tuple(whole)]


@_folds("Squeeze", "Unsqueeze")
def _change_rank(node: Node, x: list[Any]) -> Any:
    axes = node.get("axes")
    if axes is None and len(x) > 1 and x[1] is not None:
        axes = [int(a) for a in x[1]]
    if node.op == "Unsqueeze":
        return np.expand_dims(x[0], tuple(axes))
    return np.squeeze(x[0], None if axes is None else tuple(axes))


@_folds("Reshape")
def _reshape(node: Node, x: list[Any]) -> Any:
    shape = [int(d) for d in x[1]]
    if not node.get("allowzero", 0):
        shape = [x[0].shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return x[0].reshape(shape)


@_folds("Transpose")
def _transpose(node: Node, x: list[Any]) -> Any:
    return np.transpose(x[0], node.get("perm"))


@_folds("Expand")
def _expand(node: Node, x: list[Any]) -> Any:
    shape = np.broadcast_shapes(x[0].shape, tuple(int(d) for d in x[1]))
    return np.broadcast_to(x[0], shape) if math.prod(shape) <= LARGEST else None


_TOTALS = {
    "ReduceProd": lambda a, b: a * b,
    "ReduceSum": lambda a, b: a + b,
    "ReduceMax": lambda a, b: Extent.largest([a, b]),
    "ReduceMin": lambda a, b: Extent.smallest([a, b]),
}


@_folds(*_TOTALS)
def _reduce(node: Node, x: list[Any]) -> Any:
    axes = node.get("axes")
    if axes is None and len(x) > 1 and x[1] is not None:
        axes = [int(a) for a in x[1]]
    if axes == [] or (axes is None and node.get("noop_with_empty_axes", 0)):
        return None
    if any(isinstance(a, (float, np.floating, Ratio)) for a in x[0].flat):
        return None
    result, keep = x[0].astype(object), bool(node.get("keepdims", 1))
    total = np.frompyfunc(_TOTALS[node.op], 2, 1)
    for axis in sorted(axes_of(axes or range(result.ndim), result.ndim), reverse=True):
        if result.shape[axis] == 0:
            return None
        result = np.asarray(total.reduce(result, axis=axis, keepdims=keep), dtype=object)
    return result


@_folds("Split")
def _split(node: Node, x: list[Any]) -> Any:
    axis = node.get("axis", 0)
    sizes = node.get("split")
    if sizes is None and len(x) > 1 and x[1] is not None:
        sizes = [int(s) for s in x[1]]
    if sizes is None:
        each = -(-x[0].shape[axis] // len(node.outputs))
        sizes = [min(each, x[0].shape[axis] - i * each) for i in range(len(node.outputs))]
    if sum(sizes) != x[0].shape[axis] or min(sizes) < 0:
        return None
    return np.split(x[0], np.cumsum(sizes)[:-1], axis=axis)
