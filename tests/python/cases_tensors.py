"""Cases of operators on whole tensors: movement, images, normalisation, products, recurrent networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases_base import (
    F16,
    F32,
    FLOATS,
    I8,
    I32,
    I64,
    INDICES,
    MOVABLE,
    NUMERIC,
    U8,
    U32,
    Constant,
    case,
    limits,
    values,
)


def movements() -> None:
    for dtype in MOVABLE:
        x = values([2, 3, 4], dtype)
        case("concat", [x, values([2, 1, 4], dtype, seed=1)], axis=1, exact=True)
        case("expand", values([3, 1], dtype), new_shape=[2, 3, 4], exact=True)
        case("reshape", x, new_shape=[4, 6], exact=True)
        case("transpose", x, exact=True)
        case("transpose", x, permutation=[1, 0, 2], exact=True)
        case("tile", x, repetitions=[2, 1, 3], exact=True)
        case("reverse", x, exact=True)
        case("reverse", x, axes=[0, 2], exact=True)
        case("reverse", x, axes=[], exact=True)
        case("slice", x, starts=[0, 1, 1], sizes=[2, 2, 3], exact=True)
        case("slice", x, starts=[1, 0, 1], sizes=[1, 3, 3], strides=[1, 2, 2], exact=True)
        case("split", x, splits=[1, 2], axis=1, exact=True)
        case("split", x, splits=2, axis=2, exact=True)
        for mode in ("constant", "edge", "reflection"):
            case("pad", x, padding=[0, 1, 2, 1, 2, 0], mode=mode, exact=True)
        case("pad", x, padding=[1, 0, 0, 0, 0, 1], value=3, exact=True)
        square = values([2, 3, 4], dtype, 1, 7)
        for upper in (True, False):
            for diagonal in (0, 1, -1, 9, -9):
                case("triangular", square, upper=upper, diagonal=diagonal, exact=True)
    case("pad", values([3], I8), padding=[1, 1], value=-1.7, exact=True)
    case("pad", values([3], U8), padding=[1, 1], value=300, exact=True)
    case("concat", [values([2], F32)], axis=0, exact=True)
    case("reshape", values([1, 1]), new_shape=[], exact=True)
    # Scalars, whose lists of axes are empty.
    case("transpose", values([]), exact=True)
    case("reverse", values([]), exact=True)
    case("expand", values([]), new_shape=[2, 2], exact=True)
    case("expand", values([]), new_shape=[], exact=True)
    case("tile", values([]), repetitions=[], exact=True)
    case("slice", values([]), starts=[], sizes=[], exact=True)
    case("pad", values([]), padding=[], exact=True)


def indexing() -> None:
    for dtype in MOVABLE:
        x = values([3, 4, 2], dtype)
        case("gather", x, np.array([[0, 2], [1, 1]], np.int64), axis=0, exact=True)
        case("gather_elements", x, values([3, 2, 2], I32, 0, 3), axis=1, exact=True)
        case("gather_nd", x, np.array([[0, 1], [2, 3]], np.int32), exact=True)
        updates = values([3, 1, 2], dtype, seed=1)
        case(
            "scatter_elements",
            x,
            np.array([[[1, 0]], [[3, 3]], [[0, 2]]], np.int32),
            updates,
            axis=1,
            exact=True,
        )
        case("scatter_nd", x, np.array([[0, 1], [2, 3]], np.int64), values([2, 2], dtype, seed=1), exact=True)
    x = values([3, 4])
    for index in INDICES:  # what lies outside is clamped, negative indices count from the end
        outside = np.array([0, 2, 9, 1] if index == U32 else [-1, -9, 9, 1], index)
        for wrap in (lambda v: v, Constant):
            case("gather", x, wrap(outside), axis=1, exact=True)
            case("gather_elements", x, wrap(np.stack([outside] * 3)), axis=1, exact=True)
            case("gather_nd", x, wrap(outside.reshape(2, 2)), exact=True)
            distinct = np.array([[0, 9, 1]] if index == U32 else [[0, 9, -3]], index)
            rows = wrap(np.repeat(distinct, 3, axis=0))
            case("scatter_elements", x, rows, values([3, 3], seed=1), axis=1, exact=True)
            case("scatter_nd", x, wrap(distinct.T), values([3, 4], seed=1), exact=True)
    case("gather", x, np.array(1, np.int32), axis=0, exact=True)
    case("gather_nd", values([2, 3, 4]), np.array([1, 2, 3], np.int32), exact=True)


def images() -> None:
    filters = {"oihw": (0, 1, 2, 3), "hwio": (2, 3, 1, 0), "ohwi": (0, 2, 3, 1), "ihwo": (1, 2, 3, 0)}
    for dtype in FLOATS:
        x, weight = values([2, 4, 7, 6], dtype), values([6, 2, 3, 2], dtype)
        full = {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2], "groups": 2}
        for layout, order in filters.items():
            for image in ("nchw", "nhwc"):
                turned = x if image == "nchw" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
                kernel = np.ascontiguousarray(weight.transpose(order))
                layouts = {"input_layout": image, "filter_layout": layout}
                case("conv2d", turned, Constant(kernel), values([6], dtype), **full, **layouts)
        case("conv2d", x, values([3, 4, 3, 3], dtype))
        case("conv2d", x, Constant(values([4, 1, 3, 3], dtype)), groups=4)
        transposed = values([4, 3, 3, 2], dtype)
        for layout, order in {"iohw": (0, 1, 2, 3), "hwoi": (2, 3, 1, 0), "ohwi": (1, 2, 3, 0)}.items():
            for image in ("nchw", "nhwc"):
                turned = x if image == "nchw" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
                kernel = np.ascontiguousarray(transposed.transpose(order))
                case(
                    "conv_transpose2d",
                    turned,
                    Constant(kernel),
                    values([6], dtype),
                    strides=[2, 3],
                    pads=[1, 0, 1, 1],
                    groups=2,
                    input_layout=image,
                    filter_layout=layout,
                )
        case("conv_transpose2d", x, transposed, strides=[3, 2], output_padding=[2, 1])
        case("conv_transpose2d", x, transposed, strides=[3, 2], output_sizes=[23, 13])
        case("conv_transpose2d", x, transposed, dilations=[2, 3])


POOL_OPTIONS: list[dict[str, Any]] = [
    {},
    {"window_dimensions": [2, 3]},
    {"window_dimensions": [3, 2], "strides": [2, 2], "pads": [1, 1, 0, 1]},
    {"window_dimensions": [2, 2], "strides": [2, 2], "output_shape_rounding": "ceil"},
    {"window_dimensions": [3, 3], "strides": [3, 2], "output_sizes": [3, 3]},
    {"window_dimensions": [3, 3], "strides": [3, 2], "output_sizes": [2, 2]},
    {"window_dimensions": [2, 2], "dilations": [2, 3]},
    {"window_dimensions": [2, 2], "pads": [3, 2, 1, 2], "strides": [1, 1]},
]


def pools() -> None:
    for op in ("average_pool2d", "l2_pool2d", "max_pool2d"):
        for dtype in NUMERIC if op == "max_pool2d" else FLOATS:
            for options in POOL_OPTIONS:
                x = values([2, 3, 7, 6], dtype)
                exact = op == "max_pool2d"
                case(op, x, **options, exact=exact)
                turned = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
                case(op, turned, layout="nhwc", **options, exact=exact)
    extremes = np.tile(limits(I64), 2).reshape(1, 1, 4, 4)
    case("max_pool2d", extremes, window_dimensions=[2, 2], exact=True)


def resampling() -> None:
    for mode in ("nearest-neighbor", "linear"):
        for dtype in (F32, F16, I8, U8):
            exact = mode != "linear" or dtype in (I8, U8)
            x = values([1, 2, 4, 6], dtype, -90, 90)
            case("resample2d", x, mode=mode, sizes=[7, 5], exact=exact)
            case("resample2d", x, mode=mode, scales=[0.5, 0.4], exact=exact)
            case("resample2d", x, mode=mode, scales=[2.0, 3.0], axes=[1, 2], exact=exact)
            case("resample2d", x, mode=mode, sizes=[9, 4], axes=[3, 2], exact=exact)
            case("resample2d", x, mode=mode, sizes=[3, 5], axes=[0, 1], exact=exact)
            case("resample2d", x, mode=mode, sizes=[9, 3], axes=[3, 1], exact=exact)
            case("resample2d", x, mode=mode, exact=exact)


def normalizations() -> None:
    for dtype in FLOATS:
        for shape, axis in (([2, 3, 4, 2], 1), ([2, 3, 4, 2], 3), ([5], 0), ([2, 3, 2, 2, 2], 2)):
            x, count = values(shape, dtype), [shape[axis]]
            mean, variance = values(count, dtype, seed=1), values(count, dtype, 0.3, 3, seed=2)
            scale, bias = values(count, dtype, seed=3), values(count, dtype, seed=4)
            case("batch_normalization", x, mean, variance, axis=axis)
            case("batch_normalization", x, mean, variance, scale, bias, axis=axis, epsilon=1e-3)
            case("batch_normalization", x, mean, variance, None, bias, axis=axis)
        for layout, channels in (("nchw", 3), ("nhwc", 2)):
            x = values([2, 3, 4, 2], dtype)
            scale, bias = values([channels], dtype, seed=1), values([channels], dtype, seed=2)
            case("instance_normalization", x, layout=layout)
            case("instance_normalization", x, scale, bias, layout=layout, epsilon=1e-2)
            case("instance_normalization", x, None, bias, layout=layout)
        x = values([2, 3, 4], dtype)
        for axes in (None, [2], [1, 2], [0, 2], [2, 0], [1], []):
            options = {} if axes is None else {"axes": axes}
            shape = [x.shape[i] for i in (axes if axes is not None else [1, 2])]
            scale, bias = values(shape, dtype, seed=1), values(shape, dtype, seed=2)
            case("layer_normalization", x, **options)
            case("layer_normalization", x, scale, bias, epsilon=1e-2, **options)
            case("layer_normalization", x, scale, **options)
            case("layer_normalization", x, None, bias, **options)


def products() -> None:
    for dtype in FLOATS:
        case("matmul", values([2, 3], dtype), values([3, 4], dtype, seed=1))
        case("matmul", values([2, 1, 2, 3], dtype), values([3, 3, 4], dtype, seed=1))
        for c in (None, values([], dtype), values([4], dtype), values([2, 1], dtype), values([2, 4], dtype)):
            case("gemm", values([2, 3], dtype), values([3, 4], dtype), c, alpha=0.5, beta=2.0)
        options = {"a_transpose": True, "b_transpose": True}
        case("gemm", values([3, 2], dtype), values([4, 3], dtype), **options)


def quantizations() -> None:
    shapes = [
        ([2, 3], []),
        ([4, 6], [4, 1]),
        ([4, 6], [1, 6]),
        ([4, 6], [2, 6]),
        ([4, 6], [2, 3]),
        ([4, 6], [6]),
        ([2, 4, 6], [2, 1, 3]),
        ([4, 6], [4, 6]),
        ([2, 3], [1, 1]),
    ]
    for real in FLOATS:
        for whole in ("int4", "uint4", I8, U8, I32):
            for shape, blocks in shapes:
                scale = values(blocks, real, 0.3, 2)
                zero_point = values(blocks, whole, -3, 5)
                whole_rank = [1] * (len(shape) - len(blocks)) + list(blocks)  # as the specification wants it
                ranked = scale.reshape(whole_rank), zero_point.reshape(whole_rank)
                case("quantize_linear", values(shape, real, -90, 90), *ranked, exact=True)
                whole_values = values(shape, whole, -8, 7)
                case("dequantize_linear", whole_values, scale, zero_point, exact=True)
                case("dequantize_linear", whole_values, scale, exact=True)
                constants = (Constant(whole_values), scale, Constant(zero_point))
                case("dequantize_linear", *constants, exact=True)


def _cells(kind: str, gates: int, dtype: str, directions: int) -> tuple[list[np.ndarray], dict[str, Any]]:
    size, inputs, batch = 5, 3, 2
    lead = [directions] if kind == "sequence" else []
    rows = gates * size
    shapes = [
        [*lead, rows, inputs],
        [*lead, rows, size],
        [*lead, rows],
        [*lead, 3 * size],
        [*lead, batch, size],
    ]
    return [values(shape, dtype, -1, 1, seed=i) for i, shape in enumerate(shapes)], {"hidden_size": size}


def recurrent() -> None:
    for dtype in FLOATS:
        for direction in ("forward", "backward", "both"):
            count = 2 if direction == "both" else 1
            x = values([4, 2, 3], dtype, -1, 1)
            for plain in (False, True):
                options = {"steps": 4, "direction": direction, "return_sequence": not plain}
                (w, r, b, _, h), size = _cells("sequence", 3, dtype, count)
                for layout in ("zrn", "rzn"):
                    for after in (True, False):
                        rest = [] if plain else [b, b[..., ::-1].copy(), h]
                        names = {} if plain else {"activations": ["relu", "sigmoid"]}
                        case(
                            "gru",
                            x,
                            w,
                            r,
                            *rest,
                            layout=layout,
                            reset_after=after,
                            **options,
                            **size,
                            **names,
                        )
                (w, r, b, p, h), size = _cells("sequence", 4, dtype, count)
                for layout in ("iofg", "ifgo"):
                    for peephole in (None, p):
                        rest = [None, None, peephole, h, None] if plain else [b, None, peephole, h, h * 2]
                        names = {"activations": ["sigmoid", "relu", "tanh"]} if plain else {}
                        case("lstm", x, w, r, *rest, layout=layout, **options, **size, **names)
        x = values([2, 3], dtype, -1, 1)
        (w, r, b, _, h), size = _cells("cell", 3, dtype, 1)
        for layout in ("zrn", "rzn"):
            for after in (True, False):
                options = {"layout": layout, "reset_after": after, **size}
                case("gru_cell", x, w, r, h, b, b[::-1].copy(), **options)
                case("gru_cell", x, w, r, h, activations=["relu", "tanh"], **options)
        (w, r, b, p, h), size = _cells("cell", 4, dtype, 1)
        for layout in ("iofg", "ifgo"):
            case("lstm_cell", x, w, r, h, h * 2, b, b[::-1].copy(), p, layout=layout, **size)
            case("lstm_cell", x, w, r, h, h, layout=layout, activations=["relu", "tanh", "sigmoid"], **size)


for _family in (
    movements,
    indexing,
    images,
    pools,
    resampling,
    normalizations,
    products,
    quantizations,
    recurrent,
):
    _family()
