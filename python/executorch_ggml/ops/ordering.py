"""Elements in order, and distances between all rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, arguments, lowers
from .elementwise import is_float
from .movement import known, product


@lowers("aten.sort.default", "aten.sort.stable", "aten.topk.default")
def sort(t: Translator, node: torch.fx.Node) -> list[Value]:
    a = arguments(node)
    x = t.value(a["self"])
    descending = a["largest"] if "largest" in a else a["descending"]
    options = {"count": int(t.number(a["k"]))} if "k" in a else {}
    if t.rank(x) == 0:
        return [x, t.scalar(0, "i64")]
    return t.ops("sort", [x], axis=t.axis(x, a["dim"]), descending=bool(descending), **options)


def _ranked(t: Translator, x: Value, axis: int, k: int) -> list[Value]:
    """The k-th smallest element along an axis and its place, with extents of 1."""
    size = t.shape(x)
    start, size[axis] = [0] * len(size), 1
    start[axis] = k
    parts = t.ops("sort", [x], axis=axis, count=k + 1)
    return [t.op("slice", part, starts=start, sizes=size) for part in parts]


def _without(t: Translator, x: Value, axis: int) -> Value:
    return t.reshape(x, [d for i, d in enumerate(t.shape(x)) if i != axis])


def _along(t: Translator, a: dict[str, Any], pick: Callable[[Value, int], list[Value]]) -> list[Value]:
    """pick(x, axis): one value and its place for each line along the dimension."""
    x = t.value(a["self"])
    if t.rank(x) == 0:
        return [x, t.scalar(0, "i64")]
    axis = t.axis(x, a["dim"])
    parts = pick(x, axis)
    return parts if a["keepdim"] else [_without(t, part, axis) for part in parts]


@lowers("aten.kthvalue.default")
def kth_value(t: Translator, node: torch.fx.Node) -> list[Value]:
    a = arguments(node)
    return _along(t, a, lambda x, axis: _ranked(t, x, axis, int(t.number(a["k"])) - 1))


def _median(t: Translator, x: Value, axis: int) -> list[Value]:
    """The lower of two; NaN where there is any."""
    size = t.shape(x)[axis]
    if not isinstance(size, int):
        raise Unsupported("the median over an unknown extent")
    value, place = _ranked(t, x, axis, (size - 1) // 2)
    if not is_float(t.dtype(x)):
        return [value, place]
    has_nan = t.op("reduce_max", t.op("is_nan", x), axes=[axis], keep_dimensions=True)
    first = t.op("arg_max", x, axis=axis, keep_dimensions=True, output_data_type="dtype:i64")
    nan = t.scalar(math.nan, t.dtype(x))
    return [t.op("where", has_nan, nan, value), t.op("where", has_nan, first, place)]


@lowers("aten.median.dim")
def median_along(t: Translator, node: torch.fx.Node) -> list[Value]:
    return _along(t, arguments(node), lambda x, axis: _median(t, x, axis))


@lowers("aten.median.default")
def median(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    flat = t.reshape(x, [product(known(t, x))])
    return t.reshape(_median(t, flat, 0)[0], [])


# --- distances ----------------------------------------------------------------------------------------


def _norm(t: Translator, x: Value, p: float) -> Value:
    """The distance along the last axis."""
    axes, dtype = [t.rank(x) - 1], t.dtype(x)
    if p in (1, 2):
        return t.op("reduce_l1" if p == 1 else "reduce_l2", x, axes=axes)
    size = t.op("abs", x)
    if p == math.inf:
        return t.op("reduce_max", size, axes=axes)
    if p == 0:
        return t.op("reduce_sum", t.op("sign", size), axes=axes)
    total = t.op("reduce_sum", t.op("pow", size, t.scalar(p, dtype)), axes=axes)
    return t.op("pow", total, t.scalar(1 / p, dtype))


@lowers("aten._cdist_forward.default")
def cdist(t: Translator, node: torch.fx.Node) -> Value:
    """Distances between all rows of [..., p, m] and [..., r, m], [..., p, r]."""
    a, b = t.value(node.args[0]), t.value(node.args[1])
    (*batch, p, width), (*other, r, _) = t.shape(a), t.shape(b)
    a, b = t.reshape(a, [*batch, p, 1, width]), t.reshape(b, [*other, 1, r, width])
    return _norm(t, t.op("sub", a, b), float(t.number(node.args[2])))


@lowers("aten._pdist_forward.default")
def pdist(t: Translator, node: torch.fx.Node) -> Value:
    """Distances between each pair of a matrix's rows."""
    x = t.value(node.args[0])
    pairs = torch.tensor(list(itertools.combinations(range(known(t, x)[0]), 2)))
    first, second = (t.op("gather", x, t.constant(pairs[:, i]), axis=0) for i in (0, 1))
    return _norm(t, t.op("sub", first, second), float(t.number(arguments(node)["p"])))
