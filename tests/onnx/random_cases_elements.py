"""Random cases of operators on single elements and quantised numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_cases_base import F16, F32, F64, I8, I32, I64, U8, U32, U64, Case, Constant
from random_cases_base import Random, axis_of, chance, made, makes, numbers, pick, shape_of

FLOATS = (F32, F32, F32, F16, F64)

# --- single elements ----------------------------------------------------------------------------------------


@makes("Round", "Sign", "Abs", "Neg", "Floor", "Ceil", "Relu", "Reciprocal", "Sqrt", "IsNaN", "Softsign")
def unary(rng: Random, op: str) -> Case:
    dtype = pick(rng, FLOATS)  # in f16 alone, ONNX Runtime's sign of NaN is 0
    return made(op, [numbers(rng, shape_of(rng), dtype, op != "Sign" or dtype != F16)])


@makes("IsInf")
def is_inf(rng: Random, op: str) -> Case:
    return made(
        op,
        [numbers(rng, [9], F32, True)],
        detect_negative=pick(rng, (0, 1)),
        detect_positive=pick(rng, (0, 1)),
    )


@makes("Abs-whole", "Neg-whole", "Sign-whole")
def unary_of_whole(rng: Random, op: str) -> Case:
    dtype = pick(rng, (I8, np.int16, I32, I64) if op == "Neg" else (I8, np.int16, I32, I64, U8))
    x = numbers(rng, [6], dtype)
    x[0] = np.iinfo(dtype).min
    return made(op, [x])


@makes("Celu", "Elu", "Selu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid")
def activation(rng: Random, op: str) -> Case:
    alpha = pick(rng, (None, 0.5, 2.0, 1.0, 0.0, -0.5) if op != "Celu" else (None, 0.5, 2.0, -1.5))
    beta = pick(rng, (None, 0.25, -1.0)) if op == "HardSigmoid" else None
    gamma = pick(rng, (None, 0.5, 2.0)) if op == "Selu" else None
    alpha = alpha if op != "Selu" or alpha is None else max(alpha, 0.5)
    return made(op, [numbers(rng, shape_of(rng), F32, op != "Celu")], alpha=alpha, beta=beta, gamma=gamma)


@makes("Shrink")
def shrink(rng: Random, op: str) -> Case:
    options = {"lambd": pick(rng, (None, 0.0, 0.75, 1.5)), "bias": pick(rng, (None, 0.0, 0.5, -1.0))}
    return made(op, [numbers(rng, shape_of(rng), pick(rng, (F32, F64, F32)), True)], **options)


@makes("Clip")
def clip(rng: Random, op: str) -> Case:
    dtype = pick(rng, (F32, F32, F64, F16, I32, I64, I8, U8))
    kind = np.ndarray if chance(rng) else Constant
    bounds: list[Any] = [None if chance(rng, 0.25) else numbers(rng, [], dtype) for _ in range(2)]
    bounds = [b if b is None or kind is np.ndarray else Constant(b) for b in bounds]
    is_bounded = all(b is not None for b in bounds)  # else ONNX Runtime makes infinities the largest numbers
    return made(op, [numbers(rng, shape_of(rng), dtype, is_bounded), *bounds], opset=13)


@makes("Clip-attributes")
def clip_by_attributes(rng: Random, op: str) -> Case:
    low, high = (pick(rng, (None, -1.5, 0.0, 0.25, 2.0)) for _ in range(2))
    return made(op, [numbers(rng, [7])], opset=pick(rng, (7, 10)), min=low, max=high)


@makes("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Equal", "Less", "GreaterOrEqual")
def binary(rng: Random, op: str) -> Case:
    dtype = pick(rng, (F32, F32, F64, I32, I64, U32 if op != "Pow" else F32))
    shape = shape_of(rng)
    other = [d if chance(rng, 0.7) else 1 for d in shape][int(rng.integers(len(shape))) :]
    a, b = numbers(rng, shape, dtype, op != "Pow"), numbers(rng, other, dtype, op != "Pow")
    if op == "Div" and np.dtype(dtype).kind != "f":
        b[b == 0] = 3
    if op == "Pow":
        a, b = np.abs(a), np.abs(b) % 5
    return made(op, [b, a] if op not in ("Pow", "Div") and chance(rng) else [a, b])


@makes("Mod", "Mod-fmod")
def modulo(rng: Random, op: str) -> Case:
    dtype = pick(rng, (I32, I64, I8, U8, np.int16, U32, U64, F32, F64))
    fmod = 1 if np.dtype(dtype).kind == "f" else pick(rng, (0, 1, None))
    a, b = numbers(rng, [4, 5], dtype), numbers(rng, pick(rng, ([5], [4, 1], [])), dtype)
    b = np.asarray(np.where(b == 0, 3, b)).astype(dtype)
    return made(op, [a, b], opset=13, fmod=fmod)


@makes("BitShift")
def bit_shift(rng: Random, op: str) -> Case:
    dtype = pick(rng, (U8, U32, U64))
    bits = np.dtype(dtype).itemsize * 8
    x = rng.integers(0, 2**bits - 1, 6, dtype, endpoint=True)
    return made(op, [x, rng.integers(0, bits, 6).astype(dtype)], direction=pick(rng, ("LEFT", "RIGHT")))


@makes("BitwiseNot", "BitwiseAnd", "BitwiseXor")
def bitwise(rng: Random, op: str) -> Case:
    dtype = pick(rng, (I8, U8, np.int16, I32, U32, I64, U64))
    inputs = [numbers(rng, [3, 4], dtype), numbers(rng, [4], dtype)]
    return made(op, inputs[: 1 if op == "BitwiseNot" else 2])


# --- quantised numbers --------------------------------------------------------------------------------------


@makes("QuantizeLinear", "DequantizeLinear")
def linear(rng: Random, op: str) -> Case:
    whole, shape = pick(rng, (U8, I8)), shape_of(rng, 1, 4)
    axis = axis_of(rng, len(shape))
    by = pick(rng, ("tensor", "axis", "block"))
    parts = {"tensor": [], "axis": [shape[axis]]}.get(by) if by != "block" else list(shape)
    block = 0
    if by == "block":
        block = int(rng.integers(1, shape[axis] + 1))
        parts[axis] = -(-shape[axis] // block)
    scale = np.asarray(rng.choice([0.25, 0.5, 0.1, 2.0, 0.003], parts)).astype(F32)
    zero = np.asarray(rng.integers(0 if whole == U8 else -128, 256 if whole == U8 else 128, parts)).astype(
        whole
    )
    # in blocks, ONNX Runtime makes infinities the lowest number
    x = (
        numbers(rng, shape, F32, not block) * pick(rng, (1, 30))
        if op[0] == "Q"
        else rng.integers(0, 100, shape)
    )
    x = x.astype(F32 if op[0] == "Q" else whole)
    inputs = [x, scale, zero] if chance(rng, 0.8) or whole == I8 else [x, scale]
    if chance(rng):
        inputs[1:] = [Constant(v) for v in inputs[1:]]
    return made(op, inputs, axis=axis if by != "tensor" else None, block_size=block or None)


@makes("DynamicQuantizeLinear")
def dynamic(rng: Random, op: str) -> Case:
    x = numbers(rng, shape_of(rng), F32) * pick(rng, (0, 1, 0.37, 100))
    x = pick(rng, (np.abs, np.negative, np.asarray, lambda v: -np.abs(v)))(x)
    return made(op, [x.astype(F32)], outputs=3)
