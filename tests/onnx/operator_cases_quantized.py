"""Quantised numbers, attention and rotary positions."""

import numpy as np
from operator_cases_base import (
    F32,
    I8,
    I32,
    I64,
    LARGEST_I8,
    MICROSOFT,
    U8,
    Constant,
    case,
    scalar,
    values,
)

A = values(3, 6, dtype=U8, high=255)
case("QuantizeLinear", values(3, 6), scalar(0.05, F32), scalar(128, U8))
case("QuantizeLinear", values(3, 6), scalar(0.05, F32), scalar(3, I8))
case("QuantizeLinear", values(3, 6), scalar(0.05, F32))
case(
    "QuantizeLinear",
    values(3, 6),
    Constant(values(3, low=0.01, high=0.1)),
    Constant(values(3, dtype=I8)),
    axis=0,
)
case(
    "QuantizeLinear",
    values(3, 6),
    Constant(values(3, 2, low=0.01, high=0.1)),
    Constant(values(3, 2, dtype=I8)),
    axis=1,
    block_size=3,
)
case("QuantizeLinear", values(2, 3, 4), Constant(values(3, low=0.01, high=0.1)), axis=1)
case("QuantizeLinear", np.array([np.nan, np.inf, -np.inf, 1], F32), scalar(0.05, F32), scalar(3, I8))
for _op, _x in (("QuantizeLinear", values(3, 7)), ("DequantizeLinear", values(3, 7, dtype=I8))):
    _parts = (Constant(values(3, 3, low=0.01, high=0.1)), Constant(values(3, 3, dtype=I8)))
    case(_op, _x, *_parts, axis=1, block_size=3)
    _parts = (Constant(values(3, 2, low=0.01, high=0.1)), Constant(values(3, 2, dtype=I8)))
    case(_op, _x[:, :4], *_parts, axis=1, block_size=3)  # two blocks of two would fit, too
case("DequantizeLinear", A, scalar(0.05, F32), scalar(128, U8))
case("DequantizeLinear", A, scalar(0.05, F32))
case("DequantizeLinear", A, Constant(values(6, low=0.01, high=0.1)), Constant(values(6, dtype=U8, high=200)))
case("DequantizeLinear", A, Constant(values(3, low=0.01, high=0.1)), axis=0)
case(
    "DequantizeLinear",
    values(3, 6, dtype=I8),
    Constant(values(3, 2, low=0.01, high=0.1)),
    axis=1,
    block_size=3,
)
case("DequantizeLinear", values(3, 6, dtype=I32, low=-999, high=999), scalar(0.01, F32))
case("DynamicQuantizeLinear", values(3, 6), outputs=3)
case("DynamicQuantizeLinear", values(3, 6, low=1), outputs=3)
case("DynamicQuantizeLinear", values(3, 6, high=-1), outputs=3)
case("DynamicQuantizeLinear", np.zeros((2, 3), F32), outputs=3)
WIDE = values(3, 300, dtype=U8, high=255)
case("MatMulInteger", A, values(6, 4, dtype=I8, low=-LARGEST_I8, high=LARGEST_I8))
case("MatMulInteger", WIDE, Constant(values(300, 4, dtype=U8, high=255)), scalar(7, U8), scalar(200, U8))
case(
    "MatMulInteger",
    A,
    Constant(values(6, 4, dtype=I8, low=-LARGEST_I8, high=LARGEST_I8)),
    scalar(9, U8),
    Constant(values(4, dtype=I8)),
)
case(
    "ConvInteger",
    values(1, 3, 6, 6, dtype=U8, high=255),
    Constant(values(4, 3, 3, 3, dtype=U8, high=255)),
    scalar(9, U8),
    scalar(5, U8),
    pads=[1, 1, 1, 1],
)
case(
    "ConvInteger", values(1, 40, 5, 5, dtype=U8, high=255), Constant(values(4, 40, 3, 3, dtype=U8, high=255))
)
case(
    "ConvInteger",
    values(1, 80, 5, 5, dtype=U8, high=255),
    Constant(values(4, 40, 3, 3, dtype=U8, high=255)),
    group=2,
)
_q = [scalar(0.02, F32), scalar(120, U8)]
case(
    "QLinearMatMul",
    A,
    *_q,
    Constant(values(6, 4, dtype=U8, high=255)),
    *_q,
    scalar(0.4, F32),
    scalar(100, U8),
    ulps=1,
)
case(
    "QLinearMatMul",
    A,
    *_q,
    Constant(values(6, 4, dtype=I8, low=-LARGEST_I8, high=LARGEST_I8)),
    scalar(0.02, F32),
    scalar(3, I8),
    scalar(0.4, F32),
    scalar(100, U8),
    ulps=1,
)
case(
    "QLinearConv", values(1, 3, 6, 6, dtype=U8, high=255), *_q,
    Constant(values(4, 3, 3, 3, dtype=I8, low=-LARGEST_I8, high=LARGEST_I8)),
    Constant(values(4, low=0.01, high=0.03)), Constant(np.zeros(4, I8)), scalar(0.5, F32), scalar(110, U8),
    Constant(values(4, dtype=I32, low=-900, high=900)), ulps=1, pads=[1, 1, 1, 1],
)  # fmt: skip
# 1 + tanh, as it is quantised in a GPT-2: sums that lie between two whole numbers go to the even one.
case(
    "QLinearAdd",
    np.arange(256, dtype=U8),
    scalar(2 / 255, F32),
    scalar(128, U8),
    scalar(255, U8),
    scalar(1 / 255, F32),
    scalar(0, U8),
    scalar(2 / 255, F32),
    scalar(0, U8),
    domain=MICROSOFT,
)
case(
    "QLinearAdd",
    A,
    *_q,
    values(3, 6, dtype=U8, high=255, seed=1),
    *_q,
    scalar(0.04, F32),
    scalar(110, U8),
    domain=MICROSOFT,
    ulps=1,
)
case(
    "QLinearMul",
    A,
    *_q,
    values(3, 6, dtype=U8, high=255, seed=1),
    *_q,
    scalar(0.04, F32),
    scalar(110, U8),
    domain=MICROSOFT,
    ulps=1,
)


def _few_bits(bits: int, block: int, *operands: Constant | None) -> None:
    blocks = 64 // block
    case(
        "MatMulNBits",
        values(3, 64),
        Constant(values(5, blocks, block * bits // 8, dtype=U8, high=255)),
        Constant(values(5 * blocks, low=0.01, high=0.1)),
        *operands,
        domain=MICROSOFT,
        N=5,
        K=64,
        bits=bits,
        block_size=block,
        tolerance=1e-4,
    )


# Without zero points and with those in bytes; ONNX Runtime has real ones and an order of 4 bits alone.
for _bits, _block in ((4, 32), (4, 16), (8, 16), (8, 32)):
    _blocks = 64 // _block
    _few_bits(_bits, _block)
    _few_bits(_bits, _block, Constant(values(5 * -(-_blocks * _bits // 8), dtype=U8, high=255)))
    if _bits == 4:
        _few_bits(_bits, _block, Constant(values(5 * _blocks, low=0, high=15)))
_few_bits(4, 32, None, Constant(np.arange(64, dtype=I32) % 2))

QKV = [values(2, 4, 5, 8, seed=i) for i in range(3)]
case("Attention", *QKV, opset=23)
case("Attention", *QKV, opset=23, is_causal=1, scale=0.5)
case("Attention", *QKV, values(5, 5, dtype=bool), opset=23)
case("Attention", *QKV, values(2, 1, 5, 5), opset=23)
case(
    "Attention",
    values(2, 5, 32),
    values(2, 5, 16),
    values(2, 5, 16, seed=1),
    opset=23,
    q_num_heads=4,
    kv_num_heads=2,
)
TABLES = [Constant(values(7, 4, low=-1, high=1, seed=i)) for i in range(2)]
PLACES = np.array([[0, 1, 2, 3, 4], [2, 3, 4, 5, 6]], I64)
case("RotaryEmbedding", QKV[0], *TABLES, PLACES, opset=23)
case("RotaryEmbedding", QKV[0], *TABLES, PLACES, opset=23, interleaved=1)
case("RotaryEmbedding", values(2, 5, 32), *TABLES, PLACES, opset=23, num_heads=4)
case("RotaryEmbedding", QKV[0], PLACES, *TABLES, domain=MICROSOFT)
