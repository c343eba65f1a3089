"""Arithmetic, comparisons and functions of single elements."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import LOWERINGS, Translator, Unsupported, Value, arguments, dtype_name, lowers

UNARY = {
    "abs": "abs",
    "ceil": "ceil",
    "cos": "cos",
    "erf": "erf",
    "exp": "exp",
    "floor": "floor",
    "log": "log",
    "neg": "neg",
    "reciprocal": "reciprocal",
    "relu": "relu",
    "round": "round_even",
    "sigmoid": "sigmoid",
    "sign": "sign",
    "silu": "silu",
    "sin": "sin",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_or_equal",
    "lt": "lesser",
    "le": "lesser_or_equal",
}


def _float_in(t: Translator, node: torch.fx.Node, index: int = 0) -> Value:
    """An operand in the result's dtype: functions of integers compute in floats."""
    return t.cast(t.value(node.args[index]), dtype_name(node.meta["val"].dtype))


def _unary(op: str) -> Any:
    return lambda t, node: t.op(op, _float_in(t, node))


for _name, _op in UNARY.items():
    LOWERINGS[f"aten.{_name}.default"] = _unary(_op)


def operands(t: Translator, a: Any, b: Any, dtype: str) -> tuple[Value, Value]:
    """Two operands, tensors or scalars, in one dtype."""

    def operand(x: Any) -> Value:
        if isinstance(x, torch.fx.Node) and isinstance(x.meta["val"], torch.Tensor):
            return t.cast(t.value(x), dtype)
        return t.scalar(t.number(x), dtype)

    return operand(a), operand(b)


def _result_dtype(node: torch.fx.Node) -> str:
    return dtype_name(node.meta["val"].dtype)


def _scaled(t: Translator, node: torch.fx.Node, b: Value) -> Value:
    alpha = t.number(arguments(node)["alpha"])
    return b if alpha == 1 else t.op("mul", b, t.scalar(alpha, t.dtype(b)))


@lowers("aten.add.Tensor", "aten.add.Scalar")
def add(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[0], node.args[1], _arithmetic_dtype(node))
    return t.op("add", a, _scaled(t, node, b))


@lowers("aten.sub.Tensor", "aten.sub.Scalar")
def sub(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[0], node.args[1], _arithmetic_dtype(node))
    return t.op("sub", a, _scaled(t, node, b))


@lowers("aten.rsub.Scalar", "aten.rsub.Tensor")
def rsub(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[1], node.args[0], _arithmetic_dtype(node))
    return t.op("sub", a, _scaled(t, node, b))


def _arithmetic_dtype(node: torch.fx.Node) -> str:
    dtype = _result_dtype(node)
    if dtype == "bool":
        raise Unsupported("arithmetic of truth values")
    return dtype


@lowers("aten.mul.Tensor", "aten.mul.Scalar")
def mul(t: Translator, node: torch.fx.Node) -> Value:
    if _result_dtype(node) == "bool":
        return t.op("logical_and", *operands(t, node.args[0], node.args[1], "bool"))
    return t.op("mul", *operands(t, node.args[0], node.args[1], _result_dtype(node)))


@lowers("aten.div.Tensor", "aten.div.Scalar")
def div(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("div", *operands(t, node.args[0], node.args[1], _arithmetic_dtype(node)))


@lowers("aten.maximum.default")
def maximum(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("max", *operands(t, node.args[0], node.args[1], _arithmetic_dtype(node)))


@lowers("aten.minimum.default")
def minimum(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("min", *operands(t, node.args[0], node.args[1], _arithmetic_dtype(node)))


@lowers("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor")
def power(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[0], node.args[1], _arithmetic_dtype(node))
    if node.args[1] == 2:
        return t.op("mul", a, a)
    return t.op("pow", a, b)


@lowers("aten.rsqrt.default")
def rsqrt(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("reciprocal", t.op("sqrt", _float_in(t, node)))


@lowers("aten.gelu.default")
def gelu(t: Translator, node: torch.fx.Node) -> Value:
    x = _float_in(t, node)
    if arguments(node)["approximate"] == "none":
        return t.op("gelu", x)
    dtype = t.dtype(x)
    cube = t.op("mul", t.op("mul", x, x), x)
    inner = t.op("add", x, t.op("mul", cube, t.scalar(0.044715, dtype)))
    curve = t.op("tanh", t.op("mul", inner, t.scalar((2 / torch.pi) ** 0.5, dtype)))
    return t.op("mul", t.op("mul", x, t.scalar(0.5, dtype)), t.op("add", curve, t.scalar(1, dtype)))


@lowers("aten.leaky_relu.default")
def leaky_relu(t: Translator, node: torch.fx.Node) -> Value:
    slope = t.number(arguments(node)["negative_slope"])
    return t.op("leaky_relu", _float_in(t, node), alpha=float(slope))


@lowers("aten.elu.default")
def elu(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    if a["scale"] != 1 or a["input_scale"] != 1:
        raise Unsupported("elu with scales")
    return t.op("elu", _float_in(t, node), alpha=float(t.number(a["alpha"])))


@lowers("aten.hardsigmoid.default")
def hardsigmoid(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("hard_sigmoid", _float_in(t, node), alpha=1 / 6, beta=0.5)


@lowers("aten.hardswish.default")
def hardswish(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("hard_swish", _float_in(t, node))


@lowers("aten.clamp.default", "aten.hardtanh.default")
def clamp(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    low, high = (a["min_val"], a["max_val"]) if "min_val" in a else (a["min"], a["max"])
    limits = {"min_value": low, "max_value": high}
    return t.op("clamp", _float_in(t, node), **{k: t.number(v) for k, v in limits.items() if v is not None})


def _compare(op: str) -> Any:
    def compare(t: Translator, node: torch.fx.Node) -> Value:
        vals = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in node.args[:2]]
        common = torch.result_type(*vals)
        a, b = operands(t, node.args[0], node.args[1], dtype_name(common))
        if common == torch.bool:
            a, b = t.cast(a, "u8"), t.cast(b, "u8")
        return t.op(op, a, b)

    return compare


for _name, _op in COMPARISONS.items():
    LOWERINGS[f"aten.{_name}.Tensor"] = LOWERINGS[f"aten.{_name}.Scalar"] = _compare(_op)


def _logical(op: str) -> Any:
    def logical(t: Translator, node: torch.fx.Node) -> Value:
        if "bitwise" in str(node.target) and _result_dtype(node) != "bool":
            raise Unsupported("bitwise operations on integers")
        return t.op(op, *operands(t, node.args[0], node.args[1], "bool"))

    return logical


for _name, _op in {"and": "logical_and", "or": "logical_or", "xor": "logical_xor"}.items():
    LOWERINGS[f"aten.logical_{_name}.default"] = _logical(_op)
    LOWERINGS[f"aten.bitwise_{_name}.Tensor"] = _logical(_op)


@lowers("aten.logical_not.default", "aten.bitwise_not.default")
def logical_not(t: Translator, node: torch.fx.Node) -> Value:
    if "bitwise" in str(node.target) and _result_dtype(node) != "bool":
        raise Unsupported("bitwise operations on integers")
    return t.op("logical_not", t.cast(t.value(node.args[0]), "bool"))


@lowers("aten.where.self")
def where(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[1], node.args[2], _result_dtype(node))
    return t.op("where", t.cast(t.value(node.args[0]), "bool"), a, b)


@lowers("aten.isnan.default")
def isnan(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("is_nan", t.value(node.args[0]))


@lowers("aten.isinf.default")
def isinf(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("is_infinite", t.value(node.args[0]))


@lowers("aten.clamp.Tensor")
def clamp_tensor(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    low, high = a["min"], a["max"]
    y, dtype = t.value(node.args[0]), _arithmetic_dtype(node)
    for bound, op in ((low, "max"), (high, "min")):
        if bound is not None:
            y = t.op(op, t.cast(y, dtype), t.cast(t.value(bound), dtype))
    return y


for _name, _op in {"and": "logical_and", "or": "logical_or", "xor": "logical_xor"}.items():
    LOWERINGS[f"aten.bitwise_{_name}.Scalar"] = _logical(_op)


def _truncated(t: Translator, x: Value) -> Value:
    """Towards zero."""
    return t.op("mul", t.op("sign", x), t.op("floor", t.op("abs", x)))


def _only_floats(t: Translator, node: torch.fx.Node) -> str:
    dtype = _arithmetic_dtype(node)
    if not dtype.startswith(("f", "bf")):
        raise Unsupported("rounded division of integers")
    return dtype


@lowers("aten.trunc.default")
def trunc(t: Translator, node: torch.fx.Node) -> Value:
    _only_floats(t, node)
    return _truncated(t, t.value(node.args[0]))


@lowers("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(t: Translator, node: torch.fx.Node) -> Value:
    mode = arguments(node)["rounding_mode"]
    a, b = operands(t, node.args[0], node.args[1], _only_floats(t, node) if mode else _arithmetic_dtype(node))
    quotient = t.op("div", a, b)
    if mode is None:
        return quotient
    return t.op("floor", quotient) if mode == "floor" else _truncated(t, quotient)


@lowers("aten.pow.Scalar")
def pow_scalar(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("pow", *operands(t, node.args[0], node.args[1], _arithmetic_dtype(node)))


@lowers("aten.fill.Scalar")
def fill(t: Translator, node: torch.fx.Node) -> Value:
    scalar = t.scalar(t.number(node.args[1]), _result_dtype(node))
    shape = t.shape(t.value(node.args[0]))
    return t.op("expand", scalar, new_shape=shape) if shape else scalar


@lowers("aten.copy.default")
def copy(t: Translator, node: torch.fx.Node) -> Value:
    """The second operand in the first one's shape and dtype."""
    source, shape = t.cast(t.value(node.args[1]), _result_dtype(node)), t.shape(t.value(node.args[0]))
    return source if t.shape(source) == shape else t.op("expand", source, new_shape=shape)
