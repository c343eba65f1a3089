"""Products, convolutions, pools, normalisation, images, recurrent networks."""

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
    Constant,
    case,
    ints,
    scalar,
    values,
)

case("MatMul", values(3, 4), values(4, 5))
case("MatMul", values(2, 3, 4), Constant(values(4, 5)))
case("MatMul", values(2, 1, 3, 4), values(5, 4, 2))
case("MatMul", values(4), values(4, 5))
case("MatMul", values(2, 3, 4), values(4))
case("MatMul", values(4), values(4, seed=1))
case("MatMul", values(3, 4, dtype=F16), values(4, 5, dtype=F16))
case("MatMul", values(3, 4, dtype=F64), values(4, 5, dtype=F64))
case("MatMul", values(3, 4, dtype=I32, low=-9, high=9), values(4, 5, dtype=I32, low=-9, high=9))
case("MatMul", values(2, 3, 4, dtype=I64, low=-9, high=9), values(4, dtype=I64, low=-9, high=9))
case("Gemm", values(3, 4), Constant(values(4, 5)), Constant(values(5)))
case("Gemm", values(3, 4), Constant(values(5, 4)), Constant(values(5)), transB=1)
case("Gemm", values(4, 3), values(4, 5), values(3, 1), transA=1, alpha=0.5, beta=2.0)
case("Gemm", values(3, 4), values(4, 5))
case("Gemm", values(3, 4), values(4, 5), scalar(2.0, F32))
case("FusedMatMul", values(2, 4, 3), values(2, 4, 5), domain=MICROSOFT, transA=1, alpha=0.25)
case("FusedMatMul", values(2, 3, 4), values(2, 5, 4), domain=MICROSOFT, transB=1)
case(
    "FusedGemm",
    values(3, 4),
    Constant(values(4, 5)),
    Constant(values(5)),
    domain=MICROSOFT,
    activation="Relu",
)

IMAGE, FILTER = values(2, 4, 9, 8), Constant(values(6, 4, 3, 3, low=-1, high=1))
case("Conv", IMAGE, FILTER)
case("Conv", IMAGE, FILTER, Constant(values(6)), pads=[1, 1, 1, 1], strides=[2, 1])
case("Conv", IMAGE, FILTER, pads=[0, 1, 2, 0], dilations=[2, 1], kernel_shape=[3, 3])
case("Conv", IMAGE, Constant(values(6, 2, 3, 3)), group=2)
case("Conv", IMAGE, Constant(values(4, 1, 3, 3)), group=4, auto_pad="SAME_UPPER", strides=[2, 2])
case("Conv", IMAGE, FILTER, auto_pad="SAME_LOWER", strides=[2, 2])
case("Conv", IMAGE, Constant(values(6, 4, 2, 4)), auto_pad="SAME_LOWER")
case("Conv", IMAGE, FILTER, auto_pad="VALID")
case("Conv", IMAGE, values(6, 4, 3, 3, seed=1))
case("Conv", values(2, 3, 10), Constant(values(5, 3, 4)), Constant(values(5)), pads=[2, 1], strides=[2])
case(
    "Conv",
    values(1, 3, 5, 6, 7),
    Constant(values(4, 3, 3, 2, 3)),
    Constant(values(4)),
    pads=[1, 0, 1, 1, 1, 0],
)
case(
    "Conv",
    values(1, 4, 6, 5, 5),
    Constant(values(4, 2, 2, 2, 2)),
    strides=[2, 1, 2],
    dilations=[2, 1, 1],
    group=2,
)
UP = Constant(values(4, 3, 3, 3, low=-1, high=1))
case("ConvTranspose", IMAGE, UP)
case("ConvTranspose", IMAGE, UP, Constant(values(3)), strides=[2, 3], pads=[1, 0, 1, 2])
case("ConvTranspose", IMAGE, UP, strides=[2, 2], output_padding=[1, 1], pads=[1, 1, 1, 1])
case("ConvTranspose", IMAGE, UP, strides=[2, 2], output_shape=[18, 17])
case("ConvTranspose", IMAGE, UP, strides=[3, 2], auto_pad="SAME_UPPER")
case("ConvTranspose", IMAGE, UP, strides=[3, 2], auto_pad="SAME_LOWER")
case("ConvTranspose", IMAGE, UP, strides=[2, 2], output_shape=[20, 18])
case(
    "ConvTranspose",
    IMAGE,
    UP,
    Constant(values(3)),
    strides=[2, 2],
    output_shape=[18, 16],
    auto_pad="SAME_UPPER",
)
case("ConvTranspose", IMAGE, UP, strides=[3, 2], output_shape=[26, 16], pads=[1, 2, 1, 2])
case("ConvTranspose", values(1, 4, 3, 2), Constant(values(4, 3, 1, 2)), strides=[2, 3], auto_pad="SAME_LOWER")
case("ConvTranspose", values(1, 2, 5), Constant(values(2, 3, 3)), strides=[2], output_shape=[12])
case(
    "ConvTranspose", values(1, 2, 2, 3, 2), Constant(values(2, 1, 2, 3, 2)), strides=[2, 2, 3],
    output_shape=[5, 6, 6],
)  # fmt: skip
case("ConvTranspose", IMAGE, Constant(values(4, 2, 3, 3)), group=2, dilations=[2, 1])
case(
    "ConvTranspose", values(2, 3, 7), Constant(values(3, 4, 3)), Constant(values(4)), strides=[2], pads=[1, 0]
)
case(
    "ConvTranspose",
    values(1, 2, 3, 4, 3),
    Constant(values(2, 3, 2, 3, 2)),
    strides=[2, 1, 2],
    pads=[0, 1, 0, 0, 0, 1],
)
case(
    "ConvTranspose",
    values(1, 4, 3, 4, 3),
    Constant(values(4, 3, 2, 2, 2)),
    Constant(values(6)),
    group=2,
    strides=[2, 2, 2],
)

for _op in ("MaxPool", "AveragePool", "LpPool"):
    case(_op, IMAGE, kernel_shape=[3, 2])
    case(_op, IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    case(_op, IMAGE, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    case(_op, IMAGE, kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_LOWER")
    case(_op, values(1, 2, 11), kernel_shape=[3], strides=[2])
    case(_op, values(1, 2, 5, 6, 7), kernel_shape=[2, 3, 2], strides=[2, 1, 2])
for _op in ("MaxPool", "AveragePool"):
    case(_op, IMAGE, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, opset=19)
    case(_op, IMAGE, kernel_shape=[2, 3], strides=[3, 3], pads=[1, 0, 1, 1], ceil_mode=1, opset=19)
    case(_op, IMAGE, kernel_shape=[2, 2], dilations=[2, 3], opset=19)
    case(
        _op,
        values(1, 2, 5, 6, 7),
        kernel_shape=[2, 3, 2],
        pads=[1, 1, 0, 0, 1, 1],
        strides=[2, 2, 2],
        ceil_mode=1,
        opset=19,
    )
    case(_op, IMAGE, kernel_shape=[4, 3], strides=[2, 2], auto_pad="VALID", ceil_mode=1, opset=19)
case("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
case(
    "AveragePool",
    IMAGE,
    kernel_shape=[3, 3],
    strides=[2, 2],
    pads=[1, 0, 1, 1],
    count_include_pad=1,
    ceil_mode=1,
    opset=19,
)
case("AveragePool", values(1, 2, 11), kernel_shape=[4], strides=[3], pads=[2, 1], count_include_pad=1)
case("MaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], outputs=2)
case("MaxPool", values(1, 2, 9), kernel_shape=[3], outputs=2)
case("MaxPool", values(1, 2, 6, 6, dtype=U8, high=250), kernel_shape=[2, 2], strides=[2, 2])
case("MaxPool", values(1, 2, 6, 6, dtype=I8, low=-120, high=120), kernel_shape=[2, 2])
case("LpPool", IMAGE, kernel_shape=[3, 2], p=3)
case("LpPool", IMAGE, kernel_shape=[2, 2], p=1, pads=[1, 0, 0, 1])
for _op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
    case(_op, IMAGE)
    case(_op, values(2, 3, 7))
    case(_op, values(2, 3, 4, 5, 3))
case("GlobalLpPool", IMAGE, p=3)

POSITIVE = Constant(values(4, low=0.5, high=2))
case(
    "BatchNormalization",
    IMAGE,
    POSITIVE,
    Constant(values(4)),
    Constant(values(4, seed=1)),
    POSITIVE,
    epsilon=1e-3,
)
case("BatchNormalization", values(5, 4), POSITIVE, Constant(values(4)), Constant(values(4, seed=1)), POSITIVE)
case(
    "BatchNormalization", IMAGE, POSITIVE, Constant(values(4)), Constant(values(4, seed=1)), POSITIVE, opset=9
)
case("InstanceNormalization", IMAGE, POSITIVE, Constant(values(4)))
case("InstanceNormalization", values(2, 4, 9), POSITIVE, Constant(values(4)), epsilon=1e-2)
case("InstanceNormalization", values(2, 4, 3, 4, 5), POSITIVE, Constant(values(4)))
case("LayerNormalization", values(3, 5, 8), Constant(values(8)), Constant(values(8, seed=1)))
case("LayerNormalization", values(3, 5, 8), Constant(values(5, 8)), axis=1, epsilon=1e-3)
case("LayerNormalization", values(3, 5, 8), Constant(values(8)), Constant(values(8, seed=1)), outputs=3)
case("LayerNormalization", values(3, 5, 8), Constant(values(1)), axis=-1)
case("LayerNormalization", values(3, 8, dtype=F16), Constant(values(8, dtype=F16)), axis=-1)
case("GroupNormalization", values(2, 4, 3, 5), POSITIVE, Constant(values(4)), num_groups=2, opset=21)
case("RMSNormalization", values(3, 5, 8), Constant(values(8)), opset=23)
case("RMSNormalization", values(3, 5, 8), Constant(values(5, 8)), opset=23, axis=1, epsilon=1e-3)
case("LpNormalization", values(3, 5))
case("LpNormalization", values(3, 5), p=1, axis=0)
case("MeanVarianceNormalization", IMAGE)
case("MeanVarianceNormalization", IMAGE + F32(40))
case("MeanVarianceNormalization", IMAGE, opset=8)
case("MeanVarianceNormalization", IMAGE, opset=8, across_channels=1)
case("MeanVarianceNormalization", IMAGE, opset=7, normalize_variance=0)
case("LRN", IMAGE, size=3)
case("LRN", IMAGE, size=5, alpha=0.1, beta=0.5, bias=2.0)
SKIP = [values(2, 3, 8), values(2, 3, 8, seed=1), Constant(values(8))]
case("SkipLayerNormalization", *SKIP, Constant(values(8, seed=1)), domain=MICROSOFT)
case(
    "SkipLayerNormalization",
    *SKIP,
    Constant(values(8, seed=1)),
    Constant(values(8, seed=2)),
    domain=MICROSOFT,
)
case("SkipSimplifiedLayerNormalization", *SKIP, domain=MICROSOFT, epsilon=1e-6)

ROI = Constant(np.zeros(0, F32))
PIXELS = values(1, 2, 5, 6)
for _how in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"):
    for _mode in ("nearest", "linear", "cubic"):
        _opset = 19 if _how == "half_pixel_symmetric" else 13
        case(
            "Resize", PIXELS, ROI, ROI, ints(1, 2, 8, 4), opset=_opset, mode=_mode,
            coordinate_transformation_mode=_how,
        )  # fmt: skip
for _nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    case(
        "Resize",
        PIXELS,
        ROI,
        Constant(np.array([1, 1, 1.7, 0.6], F32)),
        opset=13,
        mode="nearest",
        nearest_mode=_nearest,
    )
case(
    "Resize", values(1, 2, 3, 6), None, None, ints(1, 2, 1, 2), opset=19, nearest_mode="floor",
    coordinate_transformation_mode="half_pixel_symmetric",
)  # fmt: skip
case("Resize", PIXELS, None, Constant(np.array([1, 1, 2, 2], F32)), opset=13, mode="linear")
case("Resize", PIXELS, None, Constant(np.array([1, 1, 2.5, 1.5], F32)), opset=13, mode="linear")
case("Resize", PIXELS, None, Constant(np.array([2, 2], F32)), opset=18, mode="nearest", axes=[2, 3])
case("Resize", PIXELS, None, None, ints(9, 9), opset=18, mode="linear", axes=[3, 2])
case(
    "Resize",
    PIXELS,
    None,
    None,
    ints(7, 7),
    opset=18,
    mode="linear",
    axes=[2, 3],
    keep_aspect_ratio_policy="not_larger",
)
case(
    "Resize",
    PIXELS,
    None,
    None,
    ints(7, 7),
    opset=18,
    mode="nearest",
    axes=[2, 3],
    keep_aspect_ratio_policy="not_smaller",
)
case(
    "Resize",
    PIXELS,
    ROI,
    ROI,
    ints(1, 2, 8, 4),
    opset=13,
    mode="cubic",
    cubic_coeff_a=-0.5,
    exclude_outside=1,
)
case("Resize", PIXELS, None, None, ints(1, 2, 3, 3), opset=18, mode="linear", antialias=1)
case("Resize", PIXELS, None, None, ints(1, 2, 3, 3), opset=18, mode="cubic", antialias=1)
case(
    "Resize", PIXELS, Constant(np.array([0, 0, 0.2, 0.3, 1, 1, 0.9, 1.4], F32)), ROI, ints(1, 2, 4, 5),
    opset=13,    mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0,
)  # fmt: skip
case("Resize", PIXELS, Constant(np.array([1, 1, 2, 3], F32)), opset=10, mode="nearest")
case("Resize", values(1, 2, 7), None, None, ints(1, 2, 4), opset=13, mode="linear")
case("Upsample", PIXELS, Constant(np.array([1, 1, 2, 3], F32)), opset=9, mode="nearest")
case("Upsample", PIXELS, Constant(np.array([1, 1, 2, 2], F32)), opset=9, mode="linear")
case("Upsample", PIXELS, opset=7, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0])

POINTS = values(1, 3, 4, 2, low=-1.3, high=1.3)
for _padding in ("zeros", "border", "reflection"):
    for _corners in (0, 1):
        case("GridSample", PIXELS, POINTS, opset=20, padding_mode=_padding, align_corners=_corners)
        case(
            "GridSample",
            PIXELS,
            POINTS,
            opset=16,
            mode="nearest",
            padding_mode=_padding,
            align_corners=_corners,
        )

# halfway between elements, at the edges: rounded before they are reflected
TIES = np.stack(np.meshgrid(np.arange(-24, 25) / 16, np.arange(-12, 13) / 8), -1).astype(F32)[None]
case("GridSample", values(1, 2, 4, 8), TIES, opset=20, mode="nearest", padding_mode="reflection")
for _corners in (0, 1):
    for _size in ((1, 1, 3, 2), (1, 1, 1, 3), (1, 1, 3, 1), (1, 1, 1, 1)):
        case("AffineGrid", values(1, 2, 3), ints(*_size), opset=20, align_corners=_corners)
    for _size in ((1, 1, 2, 3, 2), (1, 1, 1, 2, 2), (1, 1, 2, 1, 1)):
        case("AffineGrid", values(1, 3, 4), ints(*_size), opset=20, align_corners=_corners)

S, B, N, H = 5, 2, 3, 4


def _weights(gates: int, ways: int) -> list[Constant]:
    shapes = ([ways, gates * H, N], [ways, gates * H, H], [ways, 2 * gates * H])
    return [Constant(values(*shape, low=-1, high=1, seed=i)) for i, shape in enumerate(shapes)]


SEQUENCE = values(S, B, N, low=-1, high=1)
for _op, _gates, _states in (("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1)):
    _all = 1 + _states
    case(_op, SEQUENCE, *_weights(_gates, 1), hidden_size=H, outputs=_all)
    case(_op, SEQUENCE, *_weights(_gates, 1)[:2], hidden_size=H, outputs=_all, direction="reverse")
    _initial = [Constant(values(2, B, H, low=-1, high=1, seed=9 + i)) for i in range(_states)]
    case(
        _op,
        SEQUENCE,
        *_weights(_gates, 2),
        None,
        *_initial,
        hidden_size=H,
        outputs=_all,
        direction="bidirectional",
    )
    case(_op, SEQUENCE, *_weights(_gates, 1), Constant(np.array([S, S], I32)), hidden_size=H, outputs=_all)
case("GRU", SEQUENCE, *_weights(3, 1), hidden_size=H, outputs=2, linear_before_reset=1)
case("RNN", SEQUENCE, *_weights(1, 1), hidden_size=H, outputs=2, activations=["Relu"])
case("LSTM", SEQUENCE, *_weights(4, 1), hidden_size=H, outputs=3, activations=["Sigmoid", "Relu", "Tanh"])
# What the catalog's ops do not have is computed step by step.
_FUNCTIONS = ["HardSigmoid", "LeakyRelu", "Elu", "Sigmoid", "ScaledTanh", "Softsign"]
_SHAPED = {"activation_alpha": [0.3, 0.1, 0.5, 0.7], "activation_beta": [0.4, 1.2]}
_LENGTHS = Constant(np.array([S - 2, S], I32))
for _op, _gates, _count in (("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 1)):
    _own = {"hidden_size": H, "outputs": 3 if _op == "LSTM" else 2}
    case(_op, SEQUENCE, *_weights(_gates, 1), **_own, clip=0.3)
    case(_op, SEQUENCE, *_weights(_gates, 1), _LENGTHS, **_own, clip=0.3, direction="reverse")
    case(
        _op,
        SEQUENCE,
        *_weights(_gates, 2),
        **_own,
        direction="bidirectional",
        activations=_FUNCTIONS[: 2 * _count],
        **_SHAPED,
    )
    for _function in ("Affine", "Softplus", "Softsign", "Relu"):
        case(_op, SEQUENCE, *_weights(_gates, 1), **_own, activations=[_function] * _count)
    case(
        _op,
        SEQUENCE,
        *_weights(_gates, 1),
        **_own,
        activations=["ThresholdedRelu"] * _count,
        activation_alpha=[0.2] * _count,
    )
case("GRU", SEQUENCE, *_weights(3, 1), hidden_size=H, outputs=2, linear_before_reset=1, clip=0.3)
case("LSTM", SEQUENCE, *_weights(4, 1), hidden_size=H, outputs=3, input_forget=1)
_PEEPHOLES = Constant(values(1, 3 * H, low=-1, high=1, seed=7))
case(
    "LSTM",
    SEQUENCE,
    *_weights(4, 1),
    *(None, None, None, _PEEPHOLES),
    hidden_size=H,
    outputs=3,
    clip=0.3,
    input_forget=1,
)
