"""Sums, means and extremes along dimensions."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import LOWERINGS, Translator, Unsupported, Value, dtype_name, lowers

REDUCTIONS = {
    "mean.dim": "reduce_mean",
    "sum.dim_IntList": "reduce_sum",
    "amax.default": "reduce_max",
    "amin.default": "reduce_min",
}


def _reduce(op: str) -> Any:
    def reduce(t: Translator, node: torch.fx.Node) -> Value:
        x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
        dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        keep = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
        # No dimensions mean all of them.
        axes = [t.axis(x, dim) for dim in dims] if dims else list(range(t.rank(x)))
        return t.op(op, x, axes=axes, keep_dimensions=bool(keep))

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
    x = t.value(node.args[0])
    dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    if dim is None:
        raise Unsupported("argmax of a flattened tensor")
    keep = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
    op = "arg_max" if "argmax" in str(node.target) else "arg_min"
    return t.op(op, x, axis=t.axis(x, dim), keep_dimensions=bool(keep), output_data_type="dtype:i64")


@lowers("aten.cumsum.default")
def cumsum(t: Translator, node: torch.fx.Node) -> Value:
    x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
    return t.op("cumulative_sum", x, axis=t.axis(x, node.args[1]))


def _all_or_given(t: Translator, x: Value, dims: Any) -> list[int]:
    if dims is None or dims == []:
        return list(range(t.rank(x)))
    return [t.axis(x, dim) for dim in ([dims] if isinstance(dims, int) else dims)]


@lowers("aten.mean.default", "aten.sum.default", "aten.prod.default")
def reduce_all(t: Translator, node: torch.fx.Node) -> Value:
    name = str(node.target).split(".")[-2]
    x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
    op = {"mean": "reduce_mean", "sum": "reduce_sum", "prod": "reduce_product"}[name]
    return t.op(op, x, axes=list(range(t.rank(x))))


@lowers("aten.prod.dim_int")
def prod(t: Translator, node: torch.fx.Node) -> Value:
    x = t.cast(t.value(node.args[0]), dtype_name(node.meta["val"].dtype))
    keep = node.args[2] if len(node.args) > 2 else False
    return t.op("reduce_product", x, axes=[t.axis(x, node.args[1])], keep_dimensions=bool(keep))


@lowers("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_true(t: Translator, node: torch.fx.Node) -> Value:
    x = t.cast(t.cast(t.value(node.args[0]), "bool"), "u8")
    dims = node.args[1] if len(node.args) > 1 else None
    keep = node.args[2] if len(node.args) > 2 else False
    return t.op("reduce_max", x, axes=_all_or_given(t, x, dims), keep_dimensions=bool(keep))


@lowers("aten.max.dim", "aten.min.dim")
def extreme(t: Translator, node: torch.fx.Node) -> list[Value]:
    """Values and their first positions."""
    name = "max" if "max" in str(node.target) else "min"
    x = t.value(node.args[0])
    axis = t.axis(x, node.args[1])
    keep = bool(node.args[2]) if len(node.args) > 2 else False
    values = t.op(f"reduce_{name}", x, axes=[axis], keep_dimensions=keep)
    places = t.op(f"arg_{name}", x, axis=axis, keep_dimensions=keep, output_data_type="dtype:i64")
    return [values, places]


@lowers("aten.var.correction", "aten.var.dim")
def var(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    axes = _all_or_given(t, x, node.args[1] if len(node.args) > 1 else None)
    if "correction" in str(node.target):
        correction = node.kwargs.get("correction", 1)
        correction = 1 if correction is None else float(t.number(correction))
        keep = bool(node.kwargs.get("keepdim", False))
    else:
        correction = float(node.args[2]) if len(node.args) > 2 else 1.0
        keep = bool(node.args[3]) if len(node.args) > 3 else False
    count = 1
    for axis in axes:
        size = t.shape(x)[axis]
        if not isinstance(size, int):
            raise Unsupported("the variance over an unknown extent")
        count *= size
    if count - correction <= 0:
        raise Unsupported("the variance of too few elements")
    deviation = t.op("sub", x, t.op("reduce_mean", x, axes=axes, keep_dimensions=True))
    total = t.op("reduce_sum_square", deviation, axes=axes, keep_dimensions=keep)
    return t.op("div", total, t.scalar(count - correction, t.dtype(x)))
