"""Quotients and remainders, of floats and of integers."""

from __future__ import annotations

import torch

from ..translate import Translator, Value, arguments, lowers
from .elementwise import arithmetic_dtype, is_float, operands


def _truncated(t: Translator, x: Value) -> Value:
    """Towards zero."""
    return t.op("mul", t.op("sign", x), t.op("floor", t.op("abs", x)))


def _floor_divided(t: Translator, a: Value, b: Value) -> Value:
    """Exact where the quotient, rounded, would reach the next integer: 1 // 0.1 is 9."""
    dtype = t.dtype(a)
    whole = t.op("sub", a, t.op("remainder", a, b))
    if not is_float(dtype):
        return t.op("div", whole, b)
    is_zero = t.op("equal", b, t.scalar(0, dtype))
    return t.op("where", is_zero, t.op("div", a, b), t.op("round_even", t.op("div", whole, b)))


@lowers("aten.div.Tensor", "aten.div.Scalar")
def div(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("div", *operands(t, node.args[0], node.args[1], arithmetic_dtype(node)))


@lowers("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(t: Translator, node: torch.fx.Node) -> Value:
    mode, dtype = arguments(node)["rounding_mode"], arithmetic_dtype(node)
    a, b = operands(t, node.args[0], node.args[1], dtype)
    if mode == "floor":
        return _floor_divided(t, a, b)
    quotient = t.op("div", a, b)  # of integers it is truncated
    return _truncated(t, quotient) if mode == "trunc" and is_float(dtype) else quotient


@lowers("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(t: Translator, node: torch.fx.Node) -> Value:
    return _floor_divided(t, *operands(t, node.args[0], node.args[1], arithmetic_dtype(node)))


@lowers("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("remainder", *operands(t, node.args[0], node.args[1], arithmetic_dtype(node)))


@lowers("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("fmod", *operands(t, node.args[0], node.args[1], arithmetic_dtype(node)))


@lowers("aten.trunc.default")
def trunc(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    return _truncated(t, x) if is_float(t.dtype(x)) else x
