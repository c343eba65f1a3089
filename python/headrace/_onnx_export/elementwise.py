"""Arithmetic, rounding, comparisons and logic, element by element."""

from __future__ import annotations

import numpy as np

from .registry import MOVED, REAL, Node, lowers
from .writer import Writer

_BITS = {"int8": 8, "uint8": 8, "int32": 32, "uint32": 32, "int64": 64, "uint64": 64}
_SIGNED = ("int8", "int32", "int64")


def is_float(dtype: str) -> bool:
    return dtype.startswith("float")


@lowers("add", through=REAL)
def add(w: Writer, n: Node) -> str:
    return w.node("Add", n.inputs)


@lowers("sub", through=REAL)
def sub(w: Writer, n: Node) -> str:
    return w.node("Sub", n.inputs)


@lowers("mul", through=REAL)
def mul(w: Writer, n: Node) -> str:
    return w.node("Mul", n.inputs)


@lowers("max")
def maximum(w: Writer, n: Node) -> str:
    return w.node("Max", n.inputs)


@lowers("min")
def minimum(w: Writer, n: Node) -> str:
    return w.node("Min", n.inputs)


@lowers("div", through=REAL)
def div(w: Writer, n: Node) -> str:
    a, b = n.inputs
    if is_float(n.dtype):
        return w.node("Div", [a, b])
    divisor = n.value(1)
    if divisor is not None and not np.isin(divisor, (0, -1)).any():
        return w.node("Div", [a, b])
    # x / 0 is 0 here, but an error in ONNX Runtime, and the smallest integer / -1 kills its process.
    dtype = n.dtype
    if dtype == "uint64":
        # Where has no uint64: 0 divisors become 1, and their results are multiplied by 0.
        is_zero = w.cast(w.node("Equal", [b, w.constant(0, dtype)]), dtype)
        nonzero = w.cast(w.node("Not", [w.cast(is_zero, "bool")]), dtype)
        return w.node("Mul", [w.node("Div", [a, w.node("Add", [b, is_zero])]), nonzero])
    zero, one = w.constant(0, dtype), w.constant(1, dtype)
    is_zero = w.node("Equal", [b, zero])
    special = is_zero
    if dtype in _SIGNED:
        is_minus_one = w.node("Equal", [b, w.constant(-1, dtype)])
        special = w.node("Or", [is_zero, is_minus_one])
    result = w.node("Div", [a, w.where(special, one, b)])
    if dtype in _SIGNED:
        result = w.where(is_minus_one, w.node("Sub", [zero, a]), result)
    return w.where(is_zero, zero, result)


@lowers("pow", through=REAL)
def power(w: Writer, n: Node) -> str:
    if is_float(n.dtype):
        return w.node("Pow", n.inputs)
    return _integer_power(w, n)


def _integer_power(w: Writer, n: Node) -> str:
    """Square and multiply: ONNX Runtime's own Pow goes through double, which is not exact."""
    base, exponent = n.inputs
    dtype = n.dtype
    one, two = w.constant(1, dtype), w.constant(2, dtype)
    result, square, left = one, base, exponent
    known = n.value(1)
    bits = _BITS[dtype] if known is None else max(int(v).bit_length() for v in known.reshape(-1).tolist())
    for bit in range(bits):
        odd = w.node("Mod", [left, two])
        # odd * (square - 1) + 1: the factor, without a Where, which not every dtype has.
        factor = w.node("Add", [w.node("Mul", [odd, w.node("Sub", [square, one])]), one])
        result = w.node("Mul", [result, factor])
        if bit + 1 < bits:
            square = w.node("Mul", [square, square])
            left = w.node("Div", [left, two])
    if bits == 0:
        result = w.node("Add", [w.node("Mul", [base, w.constant(0, dtype)]), one])
        result = w.node("Add", [result, w.node("Mul", [exponent, w.constant(0, dtype)])])
    if dtype not in _SIGNED or (known is not None and (known >= 0).all()):
        return result
    return _with_negative_exponents(w, base, exponent, result, dtype)


def _with_negative_exponents(w: Writer, base: str, exponent: str, result: str, dtype: str) -> str:
    """1 / base^|exponent| is whole only for 1 and -1, and else 0."""
    zero, one, minus_one = (w.constant(v, dtype) for v in (0, 1, -1))
    is_odd = w.node("Equal", [w.node("Mod", [exponent, w.constant(2, dtype)]), one])
    inverse = w.where(w.node("Equal", [base, minus_one]), w.where(is_odd, minus_one, one), zero)
    inverse = w.where(w.node("Equal", [base, one]), one, inverse)
    return w.where(w.node("Less", [exponent, zero]), inverse, result)


def _direct(op: str, onnx_op: str, through: dict[str, str] = REAL) -> None:
    @lowers(op, through=through)
    def write(w: Writer, n: Node) -> str:
        return w.node(onnx_op, n.inputs)


for _op, _onnx_op in {
    "ceil": "Ceil",
    "cos": "Cos",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "neg": "Neg",
    "reciprocal": "Reciprocal",
    "round_even": "Round",
    "sin": "Sin",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
    "abs": "Abs",
}.items():
    _direct(_op, _onnx_op)


@lowers("identity", through=MOVED)
def identity(w: Writer, n: Node) -> str:
    return w.node("Identity", [n.x])


@lowers("sign", through=REAL)
def sign(w: Writer, n: Node) -> str:
    y = w.node("Sign", [n.x])
    if not is_float(n.dtype):
        return y
    return w.where(w.node("IsNaN", [n.x]), n.x, y)  # the sign of NaN is NaN


@lowers("cast")
def cast(w: Writer, n: Node) -> str:
    """Floats truncate, integers wrap. ONNX leaves open what floats beyond the range become: here, what they
    become in ONNX Runtime on x86."""
    source, target = n.dtype, n.out_dtypes[0]
    x = n.x
    if source == target:
        return w.node("Identity", [x])
    if is_float(target) or target == "uint64":
        return w.cast(x, target)
    if is_float(source):
        source = "int64" if target in ("int64", "uint32") else "int32"
        x = w.cast(x, source)
        if target == "uint32":  # also keeps ONNX Runtime from making one cast of two
            x = w.node("Mod", [x, w.constant(2**32, "int64")])
    if target == source:
        return x
    if target not in ("int4", "uint4"):
        return w.cast(x, target)
    wide = w.cast(x, "int64")
    shift = w.constant(8 if target == "int4" else 0, "int64")
    low = w.node("Mod", [w.node("Add", [wide, shift]), w.constant(16, "int64")])
    low = w.node("Sub", [low, shift])
    return w.cast(w.cast(low, "int8" if target == "int4" else "uint8"), target)


def truth(w: Writer, flag: str) -> str:
    """A boolean tensor as WebNN has it: 0 and 1 in uint8."""
    return w.cast(flag, "uint8")


for _op, _onnx_op in {
    "equal": "Equal",
    "greater": "Greater",
    "greater_or_equal": "GreaterOrEqual",
    "lesser": "Less",
    "lesser_or_equal": "LessOrEqual",
}.items():

    @lowers(_op)
    def compare(w: Writer, n: Node, onnx_op: str = _onnx_op) -> str:
        return truth(w, w.node(onnx_op, n.inputs))


@lowers("not_equal")
def not_equal(w: Writer, n: Node) -> str:
    return truth(w, w.node("Not", [w.node("Equal", n.inputs)]))


@lowers("is_nan")
def is_nan(w: Writer, n: Node) -> str:
    return truth(w, w.node("IsNaN", [n.x]))


@lowers("is_infinite")
def is_infinite(w: Writer, n: Node) -> str:
    return truth(w, w.node("IsInf", [n.x]))


@lowers("logical_not")
def logical_not(w: Writer, n: Node) -> str:
    return truth(w, w.node("Not", [w.cast(n.x, "bool")]))


for _op, _onnx_op in {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}.items():

    @lowers(_op)
    def logical(w: Writer, n: Node, onnx_op: str = _onnx_op) -> str:
        return truth(w, w.node(onnx_op, [w.cast(x, "bool") for x in n.inputs]))


@lowers("where")
def where(w: Writer, n: Node) -> str:
    condition, chosen, otherwise = n.inputs
    flag = w.cast(condition, "bool")
    dtype = n.out_dtypes[0]
    moved = {"int4": "int8", "uint4": "uint8", "uint64": "int64"}.get(dtype)
    if moved is None:
        return w.where(flag, chosen, otherwise)
    return w.cast(w.where(flag, w.cast(chosen, moved), w.cast(otherwise, moved)), dtype)
