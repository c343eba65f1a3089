"""Arithmetic of two operands and more, and the bits of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..folding import LARGEST
from ..graph import Graph, Operand, converted, known
from ..registry import OPERATORS, Node, Refused, invalid_if, reads, refuse_if
from ..source import dtype_named
from ..stored import CARRIERS, SMALL_FLOATS, carried, narrowed

_DIRECTIONS = ("up", "down", "nearest")
BITS = {"u8": 8, "u16": 16, "u32": 32, "u64": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def _binary(op: str) -> Any:
    return lambda g, node: g.op(op, node.x, node.operand(1))


for _name, _op in {"Add": "add", "Sub": "sub", "Mul": "mul"}.items():
    OPERATORS["", _name] = _binary(_op)
for _name, _op in {
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
}.items():
    OPERATORS["", _name] = _binary(_op)


def _variadic(op: str) -> Any:
    def read(g: Graph, node: Node) -> Operand:
        total = node.x
        for i in range(1, len(node.inputs)):
            total = g.op(op, total, node.operand(i))
        return g.op("identity", total) if len(node.inputs) == 1 else total

    return read


for _name, _op in {"Max": "max", "Min": "min", "Sum": "add"}.items():
    OPERATORS["", _name] = _variadic(_op)


@reads("Mean")
def mean(g: Graph, node: Node) -> Operand:
    total = _variadic("add")(g, node)
    return g.op("div", total, known(len(node.inputs), total.dtype))


@reads("Pow")
def power(g: Graph, node: Node) -> Operand:
    """The result has the base's dtype, whatever the exponent's is."""
    x, exponent = node.x, node.operand(1)
    is_square = exponent.array is not None and exponent.array.size == 1 and exponent.array.dtype != object
    if is_square and exponent.array.reshape(-1)[0] == 2 and exponent.array.ndim <= g.rank(x):
        return g.op("mul", x, x)
    if exponent.dtype == x.dtype or x.is_float:
        return g.op("pow", x, g.cast(exponent, x.dtype))
    if not exponent.is_float:
        wide = g.op("pow", g.cast(x, "i64"), g.cast(exponent, "i64"))
        return g.cast(wide, x.dtype)
    return g.cast(g.op("pow", g.cast(x, "f64"), g.cast(exponent, "f64")), x.dtype)


def _divisor(g: Graph, node: Node) -> Operand:
    """A run in which it is 0 fails, where it is whole."""
    y = node.operand(1)
    is_number = y.array is not None and y.array.dtype != object
    if y.is_float or (is_number and np.all(y.array)):
        return y
    return g.op("checked_numbers", y, what="a divisor", least=-(2**63), refuses_zero=True)


@reads("Div")
def divide(g: Graph, node: Node) -> Operand:
    return g.op("div", node.x, _divisor(g, node))


@reads("Mod")
def modulo(g: Graph, node: Node) -> Operand:
    """The remainder has the sign of the divisor, or with fmod that of the dividend."""
    return g.op("fmod" if node.get("fmod", 0) else "remainder", node.x, _divisor(g, node))


@reads("BitwiseNot")
def bitwise_not(g: Graph, node: Node) -> Operand:
    dtype = node.x.dtype
    invalid_if(dtype not in BITS, f"the input is {dtype}; {', '.join(BITS)} have bits to turn")
    ones = 2 ** BITS[dtype] - 1 if dtype.startswith("u") else -1
    return g.op("bitwise_xor", node.x, known(np.array(ones, np.uint64 if ones > 0 else np.int64), dtype))


@reads("BitShift")
def bit_shift(g: Graph, node: Node) -> Operand:
    direction = node.get("direction")
    invalid_if(direction not in ("LEFT", "RIGHT"), f"direction is '{direction}'; LEFT or RIGHT")
    return g.op(f"shift_{direction.lower()}", node.x, node.operand(1))


@reads("Cast", "CastLike")
def cast(g: Graph, node: Node) -> Operand:
    """Floats to integers towards zero, but to 4 bits the nearest, halves away from zero."""
    x, dtype = node.x, _target(node)
    x = carried(g, x) if x.dtype in CARRIERS and x.dtype != dtype else x
    if dtype in SMALL_FLOATS and x.dtype != dtype:
        direction = node.get("round_mode", "up")
        invalid_if(
            direction not in _DIRECTIONS, f"round_mode is '{direction}'; {', '.join(_DIRECTIONS)} are ONNX's"
        )
        return narrowed(g, x, dtype, bool(node.get("saturate", 1)), direction)
    if dtype in ("i4", "u4", "i2", "u2") and x.is_float:
        x = g.op("add", x, g.op("fmod", x, known(1, x.dtype)))
    is_small = x.array is not None and x.array.dtype != object and x.array.size <= LARGEST
    if is_small and not {dtype, x.dtype} & set(CARRIERS):
        return converted(x, dtype)
    return g.cast(x, dtype)


def _target(node: Node) -> str:
    if node.op == "CastLike":
        return node.operand(1).dtype
    try:
        return dtype_named(node.get("to", 0), "the target type")
    except ValueError as error:
        raise Refused(str(error)) from None


_SAME_BITS = {"u16": "i16"}


@reads("BitCast")
def bitcast(g: Graph, node: Node) -> Operand:
    """The same bits as another type of their size."""
    x, dtype = node.x, _target(node)
    if x.dtype == "bool":
        x = g.retyped(x, "u8")
    if x.dtype in _SAME_BITS:
        x = g.cast(x, _SAME_BITS[x.dtype])
    refuse_if(
        x.dtype in CARRIERS or (dtype in CARRIERS and dtype not in _SAME_BITS),
        f"it reads the bits of {node.x.dtype} as {dtype}; types of 2 bits and floats of 4 and 8 are not read",
    )
    if dtype == "bool":
        return g.cast(g.op("bitcast", x, data_type="dtype:u8"), "bool")
    if dtype in _SAME_BITS:
        return g.cast(g.op("bitcast", x, data_type=f"dtype:{_SAME_BITS[dtype]}"), dtype)
    return g.op("bitcast", x, data_type=f"dtype:{dtype}")
