"""Tensors made from numbers alone: constants of the graph."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import (
    Translator,
    Unsupported,
    Value,
    arguments,
    dtype_name,
    extent,
    extents,
    is_extent,
    lowers,
)


def _filled(t: Translator, node: torch.fx.Node, number: Any) -> Value:
    val = node.meta["val"]
    return t.filled(number, dtype_name(val.dtype), extents(val.shape))


@lowers("aten.full.default", "aten.full_like.default")
def full(t: Translator, node: torch.fx.Node) -> Value:
    return _filled(t, node, t.number(node.args[1]))


@lowers(
    "aten.zeros.default",
    "aten.zeros_like.default",
    "aten.empty.memory_format",
    "aten.empty_permuted.default",
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
    dtype, count = dtype_name(val.dtype), extent(val.shape[0])
    if isinstance(count, int) and not is_extent(a.get("start")):
        start, step = t.number(a.get("start", 0)), t.number(a.get("step", 1))
        return t.constant(torch.arange(start, t.number(a["end"]), step, dtype=val.dtype))
    start, step = t.extent(a.get("start", 0)), t.number(a.get("step", 1))
    if val.dtype not in (torch.int32, torch.int64):
        raise Unsupported("a range of unknown extent that is not of integers")
    y = t.positions(count, dtype)
    if step != 1:
        y = t.op("mul", y, t.scalar(step, dtype))
    if isinstance(start, int):
        return y if start == 0 else t.op("add", y, t.scalar(start, dtype))
    before = t.op("reduce_sum", t.filled(1, dtype, [start]), axes=[0])  # as many ones are added up
    return t.op("add", y, before)
