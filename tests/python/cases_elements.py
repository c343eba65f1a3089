"""Cases of operators that compute elements from elements, and of reductions."""

from __future__ import annotations

import numpy as np
from cases_base import (
    F32,
    FLOATS,
    I8,
    I32,
    I64,
    MOVABLE,
    NUMERIC,
    SIGNED,
    U8,
    U32,
    U64,
    Constant,
    case,
    limits,
    values,
)


def binary() -> None:
    for op in ("add", "sub", "mul", "max", "min"):
        for dtype in NUMERIC:
            case(op, values([2, 3], dtype), values([3], dtype, seed=1), exact=True)
            case(op, limits(dtype), limits(dtype)[::-1].copy(), exact=True)
        case(op, values([]), values([2, 1, 3, 1, 2]), exact=True)
    for dtype in NUMERIC:
        case("div", values([2, 3], dtype), values([2, 3], dtype, 1, 4), exact=dtype not in FLOATS)
    for dtype in (I8, U8, I32, U32, I64, U64):  # by zero and by minus one, too
        case("div", limits(dtype), limits(dtype)[::-1].copy(), exact=True)
        case("div", limits(dtype), np.array(-1 if dtype[0] == "i" else 3, dtype), exact=True)
        case("div", limits(dtype), Constant(np.array(7, dtype)), exact=True)
        case("pow", limits(dtype), limits(dtype)[::-1].copy(), exact=True)
        case("pow", values([3, 3], dtype, -3, 3), Constant(np.array([0, 1, 5], dtype)), exact=True)
        case("pow", values([3], dtype, -3, 3), Constant(np.array(0, dtype)), exact=True)
    case("pow", values([3, 3], I32, -2, 2), values([3, 3], I32, -3, 3, seed=1), exact=True)
    for dtype in FLOATS:
        case("pow", values([2, 3], dtype, 0.1, 3), values([3], dtype, -2, 2))


def unary() -> None:
    for op in ("ceil", "cos", "erf", "exp", "floor", "reciprocal", "round_even", "sin", "tan", "tanh"):
        for dtype in FLOATS:
            low = 0.5 if op == "reciprocal" else -1.4
            case(op, values([2, 3, 4], dtype, low, 1.4))
    for op in ("log", "sqrt"):
        for dtype in FLOATS:
            case(op, values([2, 3], dtype, 0.1, 9))
    case("round_even", np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.49], np.float32), exact=True)
    for op in ("abs", "neg", "sign", "relu"):
        for dtype in SIGNED:
            case(op, values([2, 3], dtype), exact=True)
            case(op, limits(dtype), exact=True)
    case("abs", values([]), exact=True)
    for dtype in MOVABLE:
        case("identity", values([2, 3], dtype), exact=True)
    for dtype in NUMERIC:
        for target in MOVABLE:
            case("cast", limits(dtype), data_type=target, exact=True)
    for dtype in ("int4", "uint4"):
        for target in MOVABLE:
            case("cast", values([3, 3], dtype, -8, 7), data_type=target, exact=True)
    big = np.array([1e10, -1e10, 3e9, 2.2e9, 1e19, 1.5e19, 3e19, -1e30, 255.9, 7.5, -8.5, 1e-9], np.float32)
    for target in MOVABLE:
        case("cast", big, data_type=target, exact=True)


def logic() -> None:
    for op in ("equal", "not_equal", "greater", "greater_or_equal", "lesser", "lesser_or_equal"):
        for dtype in NUMERIC:
            case(op, values([2, 3], dtype, -1, 1), values([3], dtype, -1, 1, seed=1), exact=True)
            case(op, limits(dtype), limits(dtype)[::-1].copy(), exact=True)
    for op in ("logical_and", "logical_or", "logical_xor"):
        for shape in ([2, 1], []):
            case(op, values([2, 3], U8, 0, 2), values(shape, U8, 0, 2, seed=1), exact=True)
    for shape in ([2, 3], []):
        case("logical_not", values(shape, U8, 0, 2), exact=True)
    for op in ("is_nan", "is_infinite"):
        for dtype in FLOATS:
            case(op, limits(dtype), exact=True)
    for dtype in MOVABLE:
        condition = values([2, 1], U8, 0, 2)
        case("where", condition, values([2, 3], dtype), values([3], dtype, seed=1), exact=True)


def activations() -> None:
    for dtype in FLOATS:
        x = values([2, 3, 4], dtype, -5, 5)
        for op in ("sigmoid", "softplus", "softsign", "gelu"):
            case(op, x)
        case("elu", x)
        case("elu", x, alpha=2.5)
        case("leaky_relu", x)
        case("leaky_relu", x, alpha=-1.5)
        for options in ({}, {"alpha": -0.7, "beta": 0.25}):
            case("hard_sigmoid", x, **options)
        for options in ({}, {"alpha": 0.25}, {"beta": 0.125}, {"alpha": 0.3, "beta": 0.1}):
            case("hard_swish", x, **options)
        for options in ({}, {"alpha": 2.0}, {"beta": -1.0}, {"alpha": 0.5, "beta": 3.0}):
            case("linear", x, **options)
        for axis in range(3):
            case("softmax", x, axis=axis)
    for dtype in SIGNED:
        x = values([2, 3, 4], dtype)
        for shape in ([], [4], [3, 1], [2, 3, 4], [2, 1, 3, 1]):
            case("prelu", x, values(shape, dtype, 0, 3), exact=True)
    for dtype in NUMERIC:
        x = values([2, 5], dtype, -9, 9)
        for options in ({}, {"min_value": 1}, {"max_value": 3}, {"min_value": -2.5, "max_value": 3.5}):
            case("clamp", x, **options, exact=True)
    case("clamp", limits(I64), min_value=-(2**62) - 1, max_value=2**62 + 1, exact=True)
    case("clamp", limits(U64), max_value=2**64 - 2, exact=True)
    case("clamp", limits(U8), min_value=-5, max_value=float("inf"), exact=True)
    case("clamp", limits(F32), min_value=float("nan"), max_value=2.0, exact=True)


REDUCTIONS = {
    "reduce_l1": NUMERIC,
    "reduce_product": NUMERIC,
    "reduce_sum": NUMERIC,
    "reduce_sum_square": NUMERIC,
    "reduce_max": NUMERIC,
    "reduce_min": NUMERIC,
    "reduce_l2": FLOATS,
    "reduce_log_sum": FLOATS,
    "reduce_log_sum_exp": FLOATS,
    "reduce_mean": FLOATS,
}


def reductions() -> None:
    for op, dtypes in REDUCTIONS.items():
        low = 0.2 if op == "reduce_log_sum" else -3
        for dtype in dtypes:
            x = values([2, 3, 4], dtype, low, 3)
            integers = dtype not in FLOATS
            for axes in (None, [1], [2, 0], []):
                options = {} if axes is None else {"axes": axes}
                case(op, x, **options, exact=integers)
                case(op, x, keep_dimensions=True, **options, exact=integers)
            if integers:
                case(op, limits(dtype), exact=True)
                case(op, limits(dtype).reshape(2, 4), axes=[1], exact=True)
        case(op, values([], F32, 0.5, 3))
    for op in ("arg_max", "arg_min"):
        for dtype in NUMERIC:
            x = values([3, 4, 2], dtype)
            case(op, x, axis=1, exact=True)
            case(op, x, axis=0, keep_dimensions=True, output_data_type=I64, exact=True)
            if dtype not in FLOATS:
                case(op, limits(dtype), axis=0, exact=True)
                case(op, np.roll(limits(dtype), 5), axis=0, exact=True)
    for dtype in NUMERIC:
        for exclusive in (False, True):
            for backward in (False, True):
                options = {"exclusive": exclusive, "reversed": backward, "exact": dtype not in FLOATS}
                case("cumulative_sum", values([3, 4], dtype), axis=1, **options)
        case("cumulative_sum", values([3, 4], dtype), axis=0, exact=dtype not in FLOATS)
        if dtype not in FLOATS:
            case("cumulative_sum", limits(dtype), axis=0, exact=True)


for _family in (binary, unary, logic, activations, reductions):
    _family()
