"""Comparisons, truth values and the bits of integers."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import LOWERINGS, Translator, Value, dtype_name, lowers
from .elementwise import operands, result_dtype

COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_or_equal",
    "lt": "lesser",
    "le": "lesser_or_equal",
}


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
    return lambda t, node: t.op(op, *operands(t, node.args[0], node.args[1], "bool"))


def _bitwise(logical: str, bitwise: str) -> Any:
    def combine(t: Translator, node: torch.fx.Node) -> Value:
        dtype = result_dtype(node)
        return t.op(logical if dtype == "bool" else bitwise, *operands(t, node.args[0], node.args[1], dtype))

    return combine


for _name in ("and", "or", "xor"):
    LOWERINGS[f"aten.logical_{_name}.default"] = _logical(f"logical_{_name}")
    for _overload in ("Tensor", "Scalar"):
        LOWERINGS[f"aten.bitwise_{_name}.{_overload}"] = _bitwise(f"logical_{_name}", f"bitwise_{_name}")


@lowers("aten.logical_not.default")
def logical_not(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("logical_not", t.cast(t.value(node.args[0]), "bool"))


@lowers("aten.bitwise_not.default")
def bitwise_not(t: Translator, node: torch.fx.Node) -> Value:
    x, dtype = t.value(node.args[0]), result_dtype(node)
    if dtype == "bool":
        return t.op("logical_not", x)
    return t.op("bitwise_xor", x, t.scalar(255 if dtype == "u8" else -1, dtype))


def _shift(op: str) -> Any:
    return lambda t, node: t.op(op, *operands(t, node.args[0], node.args[1], result_dtype(node)))


for _name in ("left", "right"):
    for _overload in ("Tensor", "Tensor_Scalar"):
        LOWERINGS[f"aten.bitwise_{_name}_shift.{_overload}"] = _shift(f"shift_{_name}")
    for _overload in ("Tensor", "Scalar"):
        LOWERINGS[f"aten.__{_name[0]}shift__.{_overload}"] = _shift(f"shift_{_name}")


@lowers("aten.where.self")
def where(t: Translator, node: torch.fx.Node) -> Value:
    a, b = operands(t, node.args[1], node.args[2], result_dtype(node))
    return t.op("where", t.cast(t.value(node.args[0]), "bool"), a, b)


@lowers("aten.isnan.default")
def isnan(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("is_nan", t.value(node.args[0]))


@lowers("aten.isinf.default")
def isinf(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("is_infinite", t.value(node.args[0]))


@lowers("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(t: Translator, node: torch.fx.Node) -> Value:
    value, x = operands(t, node.args[2], node.args[0], result_dtype(node))
    return t.op("where", t.cast(t.value(node.args[1]), "bool"), value, x)
