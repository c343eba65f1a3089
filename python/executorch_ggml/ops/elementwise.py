"""Arithmetic and functions of single elements."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import LOWERINGS, Translator, Unsupported, Value, arguments, dtype_name, lowers

# fmt: off
UNARY = [  # under one name in both worlds
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "expm1",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "relu", "sigmoid", "sign", "silu", "sin",
    "sinh", "sqrt", "tan", "tanh",
]
# fmt: on
ROUNDING = {"ceil": "ceil", "floor": "floor", "round": "round_even"}


def is_float(dtype: str) -> bool:
    return dtype.startswith(("f", "bf"))


def float_in(t: Translator, node: torch.fx.Node, index: int = 0) -> Value:
    """An operand in the result's dtype: functions of integers compute in floats."""
    return t.cast(t.value(node.args[index]), dtype_name(node.meta["val"].dtype))


def _unary(op: str) -> Any:
    return lambda t, node: t.op(op, float_in(t, node))


def _rounding(op: str) -> Any:
    def rounding(t: Translator, node: torch.fx.Node) -> Value:
        x = t.value(node.args[0])
        return t.op(op, x) if is_float(t.dtype(x)) else x

    return rounding


for _name in UNARY:
    LOWERINGS[f"aten.{_name}.default"] = _unary(_name)
for _name, _op in ROUNDING.items():
    LOWERINGS[f"aten.{_name}.default"] = _rounding(_op)


def operands(t: Translator, a: Any, b: Any, dtype: str) -> tuple[Value, Value]:
    """Two operands, tensors or scalars, in one dtype."""

    def operand(x: Any) -> Value:
        if isinstance(x, torch.fx.Node) and isinstance(x.meta["val"], torch.Tensor):
            return t.cast(t.value(x), dtype)
        return t.scalar(t.number(x), dtype)

    return operand(a), operand(b)


def result_dtype(node: torch.fx.Node) -> str:
    return dtype_name(node.meta["val"].dtype)


def times(t: Translator, x: Value, factor: float) -> Value:
    return t.op("mul", x, t.scalar(factor, t.dtype(x)))


def _scaled(t: Translator, node: torch.fx.Node, b: Value) -> Value:
    alpha = t.number(arguments(node)["alpha"])
    return b if alpha == 1 else t.op("mul", b, t.scalar(alpha, t.dtype(b)))


@lowers("aten.add.Tensor", "aten.add.Scalar")
def add(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[0], node.args[1], arithmetic_dtype(node))
    return t.op("add", a, _scaled(t, node, b))


@lowers("aten.sub.Tensor", "aten.sub.Scalar")
def sub(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[0], node.args[1], arithmetic_dtype(node))
    return t.op("sub", a, _scaled(t, node, b))


@lowers("aten.rsub.Scalar", "aten.rsub.Tensor")
def rsub(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[1], node.args[0], arithmetic_dtype(node))
    return t.op("sub", a, _scaled(t, node, b))


def arithmetic_dtype(node: torch.fx.Node) -> str:
    dtype = result_dtype(node)
    if dtype == "bool":
        raise Unsupported("arithmetic of truth values")
    return dtype


@lowers("aten.mul.Tensor", "aten.mul.Scalar")
def mul(t: Translator, node: torch.fx.Node) -> Value:
    if result_dtype(node) == "bool":
        return t.op("logical_and", *operands(t, node.args[0], node.args[1], "bool"))
    return t.op("mul", *operands(t, node.args[0], node.args[1], result_dtype(node)))


@lowers("aten.maximum.default")
def maximum(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("max", *operands(t, node.args[0], node.args[1], arithmetic_dtype(node)))


@lowers("aten.minimum.default")
def minimum(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("min", *operands(t, node.args[0], node.args[1], arithmetic_dtype(node)))


@lowers("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def power(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[0], node.args[1], arithmetic_dtype(node))
    if node.args[1] == 2:
        return t.op("mul", a, a)
    return t.op("pow", a, b)


@lowers("aten.atan2.default")
def atan2(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("atan2", *operands(t, node.args[0], node.args[1], arithmetic_dtype(node)))


@lowers("aten.round.decimals")
def round_decimals(t: Translator, node: torch.fx.Node) -> Value:
    x, power = t.value(node.args[0]), 10.0 ** int(arguments(node)["decimals"])
    if power < 1:  # as PyTorch computes it: by a whole factor
        scale = t.scalar(1 / power, t.dtype(x))
        return t.op("mul", t.op("round_even", t.op("div", x, scale)), scale)
    scale = t.scalar(power, t.dtype(x))
    return t.op("div", t.op("round_even", t.op("mul", x, scale)), scale)


@lowers("aten.rsqrt.default")
def rsqrt(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("reciprocal", t.op("sqrt", float_in(t, node)))


@lowers("aten.gelu.default")
def gelu(t: Translator, node: torch.fx.Node) -> Value:
    is_tanh = arguments(node)["approximate"] == "tanh"
    return t.op("gelu_tanh" if is_tanh else "gelu", float_in(t, node))


@lowers("aten.leaky_relu.default")
def leaky_relu(t: Translator, node: torch.fx.Node) -> Value:
    slope = t.number(arguments(node)["negative_slope"])
    return t.op("leaky_relu", float_in(t, node), alpha=float(slope))


@lowers("aten.elu.default")
def elu(t: Translator, node: torch.fx.Node) -> Value:
    """scale * (x if x > 0 else alpha * (e^(input_scale * x) - 1))"""
    a, x = arguments(node), float_in(t, node)
    alpha, scale, input_scale = (float(t.number(a[name])) for name in ("alpha", "scale", "input_scale"))
    y = t.op("elu", x if input_scale == 1 else times(t, x, input_scale), alpha=alpha)
    if input_scale != 1:
        y = t.op("where", t.op("greater", x, t.scalar(0, t.dtype(x))), x, y)
    return y if scale == 1 else times(t, y, scale)


@lowers("aten.hardsigmoid.default")
def hardsigmoid(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("hard_sigmoid", float_in(t, node), alpha=1 / 6, beta=0.5)


@lowers("aten.hardswish.default")
def hardswish(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("hard_swish", float_in(t, node))


@lowers("aten.clamp.default", "aten.hardtanh.default")
def clamp(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    low, high = (a["min_val"], a["max_val"]) if "min_val" in a else (a["min"], a["max"])
    limits = {"min_value": low, "max_value": high}
    return t.op("clamp", float_in(t, node), **{k: t.number(v) for k, v in limits.items() if v is not None})


@lowers("aten.clamp.Tensor")
def clamp_tensor(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    low, high = a["min"], a["max"]
    y, dtype = t.value(node.args[0]), arithmetic_dtype(node)
    for bound, op in ((low, "max"), (high, "min")):
        if bound is not None:
            y = t.op(op, t.cast(y, dtype), t.cast(t.value(bound), dtype))
    return y


@lowers("aten.fill.Scalar")
def fill(t: Translator, node: torch.fx.Node) -> Value:
    return t.filled(t.number(node.args[1]), result_dtype(node), t.shape(t.value(node.args[0])))


@lowers("aten.copy.default")
def copy(t: Translator, node: torch.fx.Node) -> Value:
    """The second operand in the first one's shape and dtype."""
    source, shape = t.cast(t.value(node.args[1]), result_dtype(node)), t.shape(t.value(node.args[0]))
    return t.expand(source, shape)
