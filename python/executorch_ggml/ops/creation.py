"""Tensors made from numbers alone: constants of the graph."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, arguments, dtype_name, extents, lowers


def _filled(t: Translator, node: torch.fx.Node, number: Any) -> Value:
    val = node.meta["val"]
    scalar, shape = t.scalar(number, dtype_name(val.dtype)), extents(val.shape)
    return t.op("expand", scalar, new_shape=shape) if shape else scalar


@lowers("aten.full.default", "aten.full_like.default")
def full(t: Translator, node: torch.fx.Node) -> Value:
    return _filled(t, node, t.number(node.args[1]))


@lowers(
    "aten.zeros.default",
    "aten.zeros_like.default",
    "aten.empty.memory_format",
    "aten.empty_strided.default",
    "dim_order_ops._empty_dim_order.default",
)
def zeros(t: Translator, node: torch.fx.Node) -> Value:
    return _filled(t, node, 0)


@lowers("aten.ones.default", "aten.ones_like.default")
def ones(t: Translator, node: torch.fx.Node) -> Value:
    return _filled(t, node, 1)


@lowers("aten.scalar_tensor.default")
def scalar_tensor(t: Translator, node: torch.fx.Node) -> Value:
    return t.scalar(t.number(node.args[0]), dtype_name(node.meta["val"].dtype))


@lowers("aten.arange.start_step", "aten.arange.default", "aten.arange.start")
def arange(t: Translator, node: torch.fx.Node) -> Value:
    val, a = node.meta["val"], arguments(node)
    start, step = t.number(a.get("start", 0)), t.number(a.get("step", 1))
    if isinstance(val.shape[0], int):
        return t.constant(torch.arange(start, t.number(a["end"]), step, dtype=val.dtype))
    # of an extent that is known at run time: a running sum
    if val.dtype not in (torch.int32, torch.int64):
        raise Unsupported("a range of unknown extent that is not of integers")
    dtype = dtype_name(val.dtype)
    steps = t.op("expand", t.scalar(step, dtype), new_shape=extents(val.shape))
    return t.op("add", t.op("cumulative_sum", steps, axis=0, exclusive=True), t.scalar(start, dtype))
