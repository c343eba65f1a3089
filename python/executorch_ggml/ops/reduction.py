"""Sums, means and extremes along dimensions."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import LOWERINGS, Translator, Unsupported, Value, arguments, dtype_name, lowers, merged
from .movement import product

REDUCTIONS = {
    "mean.dim": "reduce_mean",
    "sum.dim_IntList": "reduce_sum",
    "amax.default": "reduce_max",
    "amin.default": "reduce_min",
}


def _all_or_given(t: Translator, x: Value, dims: Any) -> list[int]:
    """Axes; no dimensions mean all of them."""
    if dims is None or dims == []:
        return list(range(t.rank(x)))
    return [t.axis(x, dim) for dim in ([dims] if isinstance(dims, int) else dims)]


def _reduce(op: str) -> Any:
    def reduce(t: Translator, node: torch.fx.Node) -> Value:
        x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
        a = arguments(node)
        return t.op(op, x, axes=_all_or_given(t, x, a["dim"]), keep_dimensions=bool(a["keepdim"]))

    return reduce


for _name, _op in REDUCTIONS.items():
    LOWERINGS[f"aten.{_name}"] = _reduce(_op)


@lowers("aten._softmax.default", "aten.softmax.int")
def softmax(t: Translator, node: torch.fx.Node) -> Value:
    x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
    return t.op("softmax", x, axis=t.axis(x, node.args[1]))


@lowers("aten._log_softmax.default", "aten.log_softmax.int")
def log_softmax(t: Translator, node: torch.fx.Node) -> Value:
    x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
    axis = t.axis(x, node.args[1])
    return t.op("sub", x, t.op("reduce_log_sum_exp", x, axes=[axis], keep_dimensions=True))


@lowers("aten.argmax.default", "aten.argmin.default")
def arg_reduce(t: Translator, node: torch.fx.Node) -> Value:
    """Without a dimension, of all elements in order."""
    x = t.value(node.args[0])
    a = arguments(node)
    op = "arg_max" if "argmax" in str(node.target) else "arg_min"
    axis, keep = a["dim"], bool(a["keepdim"])
    if axis is None or t.rank(x) == 0:
        flat = t.reshape(x, [merged(t.shape(x))])
        y = t.op(op, flat, axis=0, output_data_type="dtype:i64")
        return t.reshape(y, [1] * (t.rank(x) if keep else 0))
    return t.op(op, x, axis=t.axis(x, axis), keep_dimensions=keep, output_data_type="dtype:i64")


@lowers("aten.cumsum.default")
def cumsum(t: Translator, node: torch.fx.Node) -> Value:
    x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
    return t.op("cumulative_sum", x, axis=t.axis(x, node.args[1]))


@lowers("aten.mean.default", "aten.sum.default", "aten.prod.default", "aten.max.default", "aten.min.default")
def reduce_all(t: Translator, node: torch.fx.Node) -> Value:
    name = str(node.target).split(".")[-2]
    x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
    op = "reduce_product" if name == "prod" else f"reduce_{name}"
    return t.op(op, x, axes=list(range(t.rank(x))))


@lowers("aten.prod.dim_int")
def prod(t: Translator, node: torch.fx.Node) -> Value:
    x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
    a = arguments(node)
    return t.op("reduce_product", x, axes=[t.axis(x, a["dim"])], keep_dimensions=bool(a["keepdim"]))


@lowers("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_true(t: Translator, node: torch.fx.Node) -> Value:
    x = t.cast(t.cast(t.value(node.args[0]), "bool"), "u8")
    a = {"dim": None, "keepdim": False} | arguments(node)  # any.default has neither
    return t.op("reduce_max", x, axes=_all_or_given(t, x, a["dim"]), keep_dimensions=bool(a["keepdim"]))


@lowers("aten.max.dim", "aten.min.dim")
def extreme(t: Translator, node: torch.fx.Node) -> list[Value]:
    """Values and their first positions."""
    name = "max" if "max" in str(node.target) else "min"
    x = t.value(node.args[0])
    a = arguments(node)
    axis, keep = t.axis(x, a["dim"]), bool(a["keepdim"])
    values = t.op(f"reduce_{name}", x, axes=[axis], keep_dimensions=keep)
    places = t.op(f"arg_{name}", x, axis=axis, keep_dimensions=keep, output_data_type="dtype:i64")
    return [values, places]


@lowers("aten.var.correction", "aten.var.dim")
def var(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    a = arguments(node)
    axes, keep = _all_or_given(t, x, a["dim"]), bool(a["keepdim"])
    correction = a["correction"] if "correction" in a else a["unbiased"]
    correction = 1.0 if correction is None else float(t.number(correction))
    count = product([t.shape(x)[axis] for axis in axes])
    if count - correction <= 0:
        raise Unsupported("the variance of too few elements")
    deviation = t.op("sub", x, t.op("reduce_mean", x, axes=axes, keep_dimensions=True))
    total = t.op("reduce_sum_square", deviation, axes=axes, keep_dimensions=keep)
    return t.op("div", total, t.scalar(count - correction, t.dtype(x)))
