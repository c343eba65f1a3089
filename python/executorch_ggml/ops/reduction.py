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
