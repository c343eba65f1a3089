"""Operators on single elements."""

import numpy as np
from operator_cases_base import (
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    MICROSOFT,
    U8,
    U32,
    U64,
    Constant,
    case,
    scalar,
    values,
)

X = values(2, 3, 4)
EDGES = np.array([-np.inf, np.inf, np.nan, 0, -0.0, 1.5, -2.5, 0.5, 3], F32)

for _op in ("Neg", "Abs", "Floor", "Ceil", "Round", "Sign", "Exp", "Tanh", "Sigmoid", "Relu", "Sin", "Cos"):
    case(_op, X)
    case(_op, EDGES)
for _op in ("Erf", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Reciprocal", "Softplus", "Softsign", "Identity"):
    case(_op, X)
for _op in ("Acos", "Asin", "Atanh"):
    case(_op, values(3, 4, low=-0.95, high=0.95))
case("Acosh", values(3, 4, low=1, high=5))
case("Sqrt", values(3, 4, low=0, high=9))
case("Log", values(3, 4, low=0.1, high=9))
for _op in ("Exp", "Sqrt", "Sigmoid", "Neg", "Relu", "Floor"):
    case(_op, values(7, dtype=F16, low=0.1))
for _dtype in (I8, I32, I64, F64):
    case("Abs", values(3, 5, dtype=_dtype))
    case("Neg", values(3, 5, dtype=_dtype))
    case("Sign", values(3, 5, dtype=_dtype))
case("Abs", values(3, 5, dtype=U8, high=255))
for _dtype in (U8, U32, U64):
    case("Sign", values(3, 5, dtype=_dtype, low=0, high=3))
case("Relu", values(6, dtype=I32), opset=14)
case("Identity", values(2, 3, dtype=bool))

case("Elu", X, alpha=0.7)
case("Elu", X)
case("LeakyRelu", X, alpha=0.2)
case("LeakyRelu", X)
case("HardSigmoid", X)
case("HardSigmoid", X, alpha=0.3, beta=0.4)
case("HardSwish", X)
case("Selu", X)
case("Selu", X, alpha=1.5, gamma=0.8)
case("Celu", X)
case("Celu", X, alpha=2.0)
case("Celu", X, alpha=-1.5)
case("ThresholdedRelu", X, alpha=0.5)
case("ThresholdedRelu", X)
case("ThresholdedRelu", X, opset=9, alpha=0.5)
case("Shrink", X, bias=0.25, lambd=0.5)
case("Shrink", X)
case("Mish", X)
case("Swish", X, opset=24)
case("Swish", X, opset=24, alpha=1.7)
case("Gelu", X)
case("Gelu", X, approximate="tanh")
case("PRelu", X, Constant(values(4)))
case("PRelu", X, Constant(values(3, 1)))
case("PRelu", X, values(2, 3, 4, seed=1))
case("Clip", X, scalar(-1, F32), scalar(1.5, F32))
case("Clip", X, None, scalar(0.5, F32))
case("Clip", X, scalar(0.5, F32))
case("Clip", X)
case("Clip", X, np.array(-0.5, F32), np.array(0.75, F32))
case("Clip", X, scalar(2, F32), scalar(-2, F32))
case("Clip", values(9, dtype=I32, low=-9, high=9), scalar(-3, I32), scalar(4, I32))
case("Clip", X, opset=6 + 1, min=-0.5, max=1.0)
case("Clip", X, opset=7, max=1.0)
case("Dropout", X)
case("Dropout", X, outputs=2)
case("Dropout", X, scalar(0.4, F32), scalar(False, bool), outputs=2)
case("Dropout", X, opset=10, ratio=0.3)

for _op in ("Add", "Sub", "Mul", "Div"):
    case(_op, X, values(2, 3, 4, seed=1, low=0.5))
    case(_op, X, Constant(values(4, seed=1, low=0.5)))
    case(_op, Constant(values(3, 1, seed=1)), values(1, 4, low=0.5))
    case(_op, values(5, dtype=F16, low=0.5), values(5, dtype=F16, low=0.5, seed=1))
    case(_op, values(5, dtype=F64), values(5, dtype=F64, low=0.5))
    for _dtype in (I32, I64, U32, U64):
        case(_op, values(4, 5, dtype=_dtype, low=-50, high=50), values(5, dtype=_dtype, low=1, high=7))
    for _dtype in (I8, U8):
        case(
            _op,
            values(4, 5, dtype=_dtype, low=-120, high=120),
            values(5, dtype=_dtype, low=1, high=7),
            opset=14,
        )
for _op in ("Max", "Min", "Sum", "Mean"):
    case(_op, X)
    case(_op, X, values(2, 3, 4, seed=1))
    case(_op, X, values(4, seed=1), values(3, 1, seed=2))
case("Max", values(6, dtype=I64), values(6, dtype=I64, seed=1))
case("Min", values(6, dtype=U8, high=200), values(6, dtype=U8, high=200, seed=1))
case("Pow", values(3, 4, low=0.1), values(4, seed=1))
case("Pow", X, scalar(2, F32))
case("Pow", X, scalar(3, F32))
case("Pow", values(3, 4, low=0.1), scalar(2, I64))
case("Pow", values(3, 4, low=0.1), Constant(values(4, dtype=I32)))
case("Pow", values(9, dtype=I32, low=-5, high=5), Constant(values(9, dtype=I32, low=0, high=5)))
case("Pow", values(9, dtype=I64, low=1, high=9), scalar(0.5, F32))
case("Mod", values(9, dtype=I32, low=-9, high=9), values(9, dtype=I32, low=1, high=4))
case("Mod", values(9, dtype=I64, low=-9, high=9), Constant(np.array(-4, I64)))
case("Mod", values(9, dtype=I32, low=-9, high=9), Constant(np.array(4, I32)), fmod=1)
case("Mod", values(9, low=-9, high=9), values(9, low=1, high=4), fmod=1)
case("BitShift", values(6, dtype=U8, high=200), values(6, dtype=U8, high=5), direction="LEFT")
case("BitShift", values(6, dtype=U32, high=9999), values(6, dtype=U32, high=9), direction="RIGHT")
for _op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    case(_op, values(6, dtype=I32, low=-99, high=99), values(6, dtype=I32, low=-99, high=99, seed=1))
case("BitwiseNot", values(6, dtype=I32, low=-99, high=99))
case("BitwiseNot", values(6, dtype=U8, high=255))

for _op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
    case(_op, values(5, 6, dtype=I32), values(6, dtype=I32, seed=1))
    case(_op, np.round(X), np.round(values(4, seed=1)))
    case(_op, values(5, 6, dtype=I64), scalar(1, I64))
case("Equal", values(5, 6, dtype=bool), values(6, dtype=bool, seed=1))
for _op in ("And", "Or", "Xor"):
    case(_op, values(5, 6, dtype=bool), values(6, dtype=bool, seed=1))
case("Not", values(5, 6, dtype=bool))
case("IsNaN", EDGES)
case("IsInf", EDGES)
case("IsInf", EDGES, detect_negative=0)
case("IsInf", EDGES, detect_positive=0)
case("IsInf", EDGES, detect_positive=0, detect_negative=0)
case("Where", values(3, 4, dtype=bool), X, values(4, seed=1))
case("Where", values(2, 1, 1, dtype=bool), X, scalar(-9, F32))
case("Where", values(6, dtype=bool), values(6, dtype=U8, high=9), values(6, dtype=U8, high=9, seed=1))

for _from, _to in (
    (F32, 10), (F32, 11), (F32, 7), (F32, 6), (F32, 9), (F16, 1), (I64, 1), (I64, 6), (I32, 9), (U8, 1),
    (I8, 7),    (bool, 1), (bool, 7), (bool, 2), (U8, 9), (I32, 12), (I64, 11),
):  # fmt: skip
    case("Cast", values(3, 4, dtype=_from, low=0), to=_to)
for _to in (2, 3, 5, 6, 7, 9, 13):
    case("Cast", np.array([300, -300, 3e9, -1e30, 1e19, 2.5, -0.9, np.inf, -np.inf, np.nan], F32), to=_to)
case("CastLike", X, values(1, dtype=I32))
case("CastLike", X, Constant(np.array(True)))

for _op in ("Gelu", "QuickGelu"):
    case(_op, X, domain=MICROSOFT)
case("QuickGelu", X, domain=MICROSOFT, alpha=1.2)
# ONNX's experiments, which operator set 10 takes back
case("Affine", X, opset=9, alpha=2.5, beta=-0.5)
case("Affine", X, opset=9)
case("Scale", X, opset=9, scale=1.5)
case("ScaledTanh", X, opset=9, alpha=1.5, beta=0.5)
case("ParametricSoftplus", X, opset=9, alpha=1.5, beta=-0.5)
case("ImageScaler", values(2, 3, 4, 5), opset=9, scale=0.5, bias=[1.0, -2.0, 3.0])
case("Crop", values(2, 3, 8, 9), opset=9, border=[1, 2, 3, 1])
case("Crop", values(2, 3, 8, 9), opset=9, border=[1, 2, 0, 0], scale=[3, 5])
_SLICED = [Constant(np.array(list)) for list in ([1, 0], [-1, 100], [1, 0])]
case("DynamicSlice", values(5, 6), *_SLICED[:2], opset=9)
case("DynamicSlice", values(5, 6), *_SLICED, opset=9)
# ONNX Runtime's gates
case("GatedAdd", values(2, 3, 4), values(2, 3, 4, seed=1), values(2, 3, 1, seed=2), domain=MICROSOFT)
for _activation in ("silu", "swish", "sigmoid"):
    case(
        "GatedRMSNorm",
        values(2, 3, 8),
        Constant(values(4)),
        values(2, 3, 8, seed=1),
        domain=MICROSOFT,
        activation=_activation,
        epsilon=1e-3,
    )
case("BranchwiseRMSNorm", values(2, 3, 8), Constant(values(8)), domain=MICROSOFT, num_branches=2)
case("BranchwiseRMSNorm", values(2, 3, 8), Constant(values(4)), domain=MICROSOFT, num_branches=2)
case("BranchwiseRMSNorm", values(2, 3, 4), Constant(values(3, 4)), domain=MICROSOFT, epsilon=1e-2)
case("BranchwiseRMSNorm", values(2, 3, 4), domain=MICROSOFT)
_HEADS = [Constant(values(4, seed=1)), Constant(-abs(values(4, seed=2)))]
case("LinearAttentionGate", values(2, 3, 4), *_HEADS, domain=MICROSOFT)
case("LinearAttentionGate", values(2, 3, 4), *_HEADS, values(2, 3, 4, seed=3), outputs=2, domain=MICROSOFT)
_STREAMS, _GATES, _BLOCK = values(2, 3, 4, 6), values(2, 3, 4, seed=1), values(2, 3, 6, seed=2)
_MIX = values(2, 3, 4, 4, seed=3)
for _gates in (_GATES, _GATES[..., None], values(2, 3, 4, 6, seed=4)):
    case("HyperConnectionPreMix", _STREAMS, _gates, domain=MICROSOFT, reduction_scale=0.5)
    case("HyperConnectionPostMix", _STREAMS, _BLOCK, _gates, _MIX, domain=MICROSOFT)
_FLAT = {"domain": MICROSOFT, "num_branches": 4}
case("HyperConnectionPreMix", _STREAMS.reshape(2, 3, 24), values(2, 3, 24, seed=4), **_FLAT)
case("HyperConnectionPreMix", _STREAMS.reshape(2, 3, 24), _GATES, **_FLAT)
case("HyperConnectionPostMix", _STREAMS.reshape(2, 3, 24), _BLOCK, _GATES, **_FLAT)
_KEYS = [values(2, 3, 4, 6, seed=5), values(2, 3, 4, 6, seed=6), values(2, 3, 6, seed=7)]
_SCALES = [Constant(values(4, 6, seed=_seed)) for _seed in (1, 2, 3)]
case("EngramGate", *_KEYS, *_SCALES[:2], domain=MICROSOFT)
case("EngramGate", *_KEYS, *_SCALES, outputs=2, domain=MICROSOFT, epsilon=1e-3)
case("FastGelu", X, domain=MICROSOFT)
case("FastGelu", X, Constant(values(4)), domain=MICROSOFT)
case("BiasGelu", X, Constant(values(4)), domain=MICROSOFT)
