"""Tensors made from numbers alone: constants of the graph."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, dtype_name, lowers


def _known_shape(node: torch.fx.Node) -> list[int]:
    shape = list(node.meta["val"].shape)
    if not all(isinstance(d, int) for d in shape):
        raise Unsupported("a new tensor of unknown extents")
    return shape


def _filled(t: Translator, node: torch.fx.Node, number: Any) -> Value:
    dtype = dtype_name(node.meta["val"].dtype)
    scalar = t.scalar(number, dtype)
    shape = _known_shape(node)
    return t.op("expand", scalar, new_shape=shape) if shape else scalar


@lowers("aten.full.default", "aten.full_like.default")
def full(t: Translator, node: torch.fx.Node) -> Value:
    return _filled(t, node, t.number(node.args[1]))


@lowers("aten.zeros.default", "aten.zeros_like.default")
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
    _known_shape(node)
    return t.constant(torch.arange(*(t.number(n) for n in node.args), dtype=node.meta["val"].dtype))
