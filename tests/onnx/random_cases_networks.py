"""Random cases of convolutions, pools, normalisation and images."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from operator_cases_base import F32, F64, Case, Constant
from random_cases_base import (
    MAKERS,
    Random,
    axis_of,
    chance,
    ints,
    made,
    makes,
    numbers,
    pick,
    shape_of,
    some,
)

# --- windows ------------------------------------------------------------------------------------------------


def _windows(
    rng: Random, dims: int, sizes: list[int], kernel: list[int], dilations: list[int]
) -> dict[str, Any]:
    auto = pick(rng, ("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    pads = some(rng, 0, 2, 2 * dims) if auto == "NOTSET" and chance(rng, 0.7) else None
    return {"strides": some(rng, 1, 3, dims), "dilations": dilations, "auto_pad": auto, "pads": pads}


@makes("Conv")
def conv(rng: Random, op: str) -> Case:
    dims = pick(rng, (1, 2, 2, 3))
    kernel, dilations = some(rng, 1, 3, dims), some(rng, 1, 2, dims)
    sizes = [(k - 1) * d + 1 + int(rng.integers(0, 5)) for k, d in zip(kernel, dilations, strict=True)]
    groups, each = pick(rng, (1, 1, 2, 3)), pick(rng, (1, 2))
    x = numbers(rng, [int(rng.integers(1, 3)), groups * each, *sizes])
    weight = numbers(rng, [groups * pick(rng, (1, 2)), each, *kernel])
    inputs = [x, Constant(weight)] + ([Constant(numbers(rng, [len(weight)]))] if chance(rng) else [])
    return made(op, inputs, group=groups, **_windows(rng, dims, sizes, kernel, dilations))


@makes("ConvTranspose", "ConvTranspose-sized")
def conv_transpose(rng: Random, op: str) -> Case:
    dims = pick(rng, (1, 2, 2, 3))
    kernel, dilations, sizes = some(rng, 1, 4, dims), some(rng, 1, 2, dims), some(rng, 1, 5, dims)
    options = _windows(rng, dims, sizes, kernel, dilations)
    added = [int(rng.integers(0, max(s, d))) for s, d in zip(options["strides"], dilations, strict=True)]
    options["output_padding"] = added if chance(rng, 0.4) else None
    rows = zip(
        sizes, kernel, options["strides"], dilations, options["output_padding"] or [0] * dims, strict=True
    )
    whole = [(n - 1) * s + (k - 1) * d + 1 + a for n, k, s, d, a in rows]
    if chance(rng):
        options["output_shape"] = [max(n + int(rng.integers(-3, 3)), 1) for n in whole]
    groups, each, outputs = pick(rng, (1, 1, 2)), pick(rng, (1, 2)), pick(rng, (1, 2))
    x = numbers(rng, [int(rng.integers(1, 3)), groups * each, *sizes])
    weight = Constant(numbers(rng, [groups * each, outputs, *kernel]))
    bias = [Constant(numbers(rng, [groups * outputs]))] if chance(rng) else []
    return made(op, [x, weight, *bias], group=groups, **options)


@makes("MaxPool", "AveragePool", "LpPool")
def pool(rng: Random, op: str) -> Case:
    dims = pick(rng, (1, 2, 2, 3))
    kernel, dilations = some(rng, 1, 4, dims), some(rng, 1, 2, dims)
    sizes = [(k - 1) * d + 1 + int(rng.integers(0, 5)) for k, d in zip(kernel, dilations, strict=True)]
    options = _windows(rng, dims, sizes, kernel, dilations)
    if options["auto_pad"].startswith("SAME"):  # else ONNX Runtime pads by less than 0, or forgets dilations
        options["strides"] = [min(s, k) for s, k in zip(options["strides"], kernel, strict=True)]
        options["dilations"] = None
    if options["pads"]:
        options["pads"] = [min(p, k - 1) for p, k in zip(options["pads"], kernel * 2, strict=True)]
    options["ceil_mode"] = pick(rng, (0, 0, 1))
    if op == "AveragePool":
        options["count_include_pad"] = pick(rng, (0, 1))
    if op == "LpPool":
        options["p"] = pick(rng, (1, 2, 3))
    x = numbers(rng, [int(rng.integers(1, 3)), 2, *sizes])
    outputs = 2 if op == "MaxPool" and chance(rng, 0.4) else 1
    if outputs == 2:
        options["storage_order"] = pick(rng, (0, 0, 1))
    return made(op, [x], outputs=outputs, kernel_shape=kernel, opset=pick(rng, (19, 22)), **options)


# --- normalisation ------------------------------------------------------------------------------------------


@makes("LpNormalization")
def lp_normalization(rng: Random, op: str) -> Case:
    shape = shape_of(rng)
    x = numbers(rng, shape, pick(rng, (F32, F64)))
    return made(
        op,
        [x * (rng.random(shape) < 0.6).astype(x.dtype)],
        p=pick(rng, (None, 1, 2)),
        axis=axis_of(rng, len(shape)),
    )


@makes("LRN")
def local_response(rng: Random, op: str) -> Case:
    shape = [int(rng.integers(1, 3)), *some(rng, 1, 6, 1), *some(rng, 1, 3, 2)]
    options = {
        "alpha": pick(rng, (None, 0.5)),
        "beta": pick(rng, (None, 0.5)),
        "bias": pick(rng, (None, 2.0)),
    }
    return made(op, [numbers(rng, shape)], size=pick(rng, (1, 2, 3, 4, 5, 7)), **options)


@makes("MeanVarianceNormalization")
def mean_variance(rng: Random, op: str) -> Case:
    shape = some(rng, 2, 4, 4)
    axes = sorted(int(a) for a in rng.permutation(4)[: int(rng.integers(1, 5))])
    return made(op, [rng.uniform(-3, 3, shape).astype(F32)], axes=pick(rng, (None, axes)))


@makes("LayerNormalization", "InstanceNormalization", "BatchNormalization", "GroupNormalization")
def normalization(rng: Random, op: str) -> Case:
    shape = [int(rng.integers(1, 3)), 4, *some(rng, 2, 4, int(rng.integers(1, 4)))]
    x = rng.uniform(-3, 3, shape).astype(F32)
    epsilon = pick(rng, (None, 1e-3))
    scale, bias, mean = (Constant(numbers(rng, [4])) for _ in range(3))
    if op == "LayerNormalization":
        axis = int(rng.integers(1, len(shape))) - (len(shape) if chance(rng) else 0)
        return made(
            op,
            [x, Constant(numbers(rng, shape[axis:])), Constant(numbers(rng, shape[axis:]))],
            axis=axis,
            epsilon=epsilon,
        )
    if op == "BatchNormalization":
        return made(
            op, [x, scale, bias, mean, Constant(np.abs(numbers(rng, [4])) + F32(0.5))], epsilon=epsilon
        )
    groups = pick(rng, (1, 2, 4)) if op == "GroupNormalization" else None
    case = made(op, [x, scale, bias], epsilon=epsilon, num_groups=groups)
    case.tolerance = 1e-4  # of numbers that are nearly equal ONNX Runtime's variance has four digits
    return case


# --- images -------------------------------------------------------------------------------------------------

TRANSFORMATIONS = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_crop_and_resize", "tf_half_pixel_for_nn",
)  # fmt: skip


def resize(rng: Random, mode: str) -> Case:
    how = pick(rng, TRANSFORMATIONS[:5])
    antialias = None
    if mode == "antialias":
        mode, antialias = pick(rng, ("linear", "cubic")), 1
    elif mode == "crop":
        mode, how = pick(rng, ("linear", "nearest", "cubic")), "tf_crop_and_resize"
    shape = [1, int(rng.integers(1, 3)), *some(rng, 1, 6, 2)]
    axes = pick(rng, (None, [2, 3], [3, 2], [2], [-1]))
    named = list(range(4)) if axes is None else axes
    own = [shape[a] for a in named]
    options: dict[str, Any] = {"mode": mode, "axes": axes, "antialias": antialias}
    options["coordinate_transformation_mode"] = None if how == "half_pixel" and chance(rng) else how
    if mode == "nearest":
        options["nearest_mode"] = pick(
            rng, (None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        )
    if mode == "cubic":
        options["cubic_coeff_a"] = pick(rng, (None, -0.5))
        options["exclude_outside"] = pick(rng, (0, 1))
    roi = None
    if how == "tf_crop_and_resize":
        keeps = [a % 4 < 2 for a in named]
        ends = [0.0 if k else float(pick(rng, (0, 0.25, 0.4, -0.2))) for k in keeps]
        ends += [1.0 if k else float(pick(rng, (1, 0.75, 0.6, 1.3))) for k in keeps]
        roi, options["extrapolation_value"] = Constant(np.array(ends, F32)), pick(rng, (None, 2.0))
    if chance(rng):
        factors = [1.0 if a % 4 < 2 else float(pick(rng, (0.5, 1, 2, 1.5, 0.7, 3, 2.6))) for a in named]
        factors = [f if int(f * n) else 2.0 for f, n in zip(factors, own, strict=True)]
        if roi:
            factors = [2.0 if a % 4 >= 2 and f == 1 else f for a, f in zip(named, factors, strict=True)]
        return made(
            "Resize", [numbers(rng, shape), roi, Constant(np.array(factors, F32))], opset=19, **options
        )
    if axes is not None and min(axes) >= 0 and chance(rng, 0.3):
        options["keep_aspect_ratio_policy"] = pick(rng, ("stretch", "not_larger", "not_smaller"))
    sizes = [n if a % 4 < 2 else int(rng.integers(1, 9)) for a, n in zip(named, own, strict=True)]
    if roi:  # where the extent stays, ONNX Runtime does not look at the region
        sizes = [s + 1 if a % 4 >= 2 and s == n else s for a, s, n in zip(named, sizes, own, strict=True)]
    return made("Resize", [numbers(rng, shape), roi, None, ints(sizes)], opset=19, **options)


for _mode in ("nearest", "linear", "cubic", "antialias", "crop"):
    MAKERS[f"Resize-{_mode}"] = partial(resize, mode=_mode)


@makes("Upsample")
def upsample(rng: Random, op: str) -> Case:
    factors = [1, 1, *(float(pick(rng, (1, 2, 1.5, 3, 2.6))) for _ in range(2))]
    x = numbers(rng, [1, 2, *some(rng, 1, 5, 2)])
    return made(op, [x, Constant(np.array(factors, F32))], opset=9, mode=pick(rng, ("nearest", "linear")))


@makes("GridSample")
def grid_sample(rng: Random, op: str) -> Case:
    n, c, h, w = [int(rng.integers(1, 3)), *some(rng, 1, 2, 1), *some(rng, 1, 5, 2)]
    grid = rng.uniform(-2.6, 2.6, [n, *some(rng, 1, 4, 2), 2]).astype(F32)
    if chance(rng, 0.3):
        grid = np.round(grid * 2).astype(F32) / F32(2)
    options = {"mode": pick(rng, ("linear", "nearest")), "align_corners": pick(rng, (0, 1))}
    options["padding_mode"] = pick(rng, ("zeros", "border", "reflection"))
    return made(op, [numbers(rng, [n, c, h, w]), grid], opset=20, **options)


@makes("AffineGrid")
def affine_grid(rng: Random, op: str) -> Case:
    dims, n = pick(rng, (2, 3)), int(rng.integers(1, 3))
    theta = numbers(rng, [n, dims, dims + 1], pick(rng, (F32, F32, F64)))
    return made(
        op, [theta, ints([n, 2, *some(rng, 1, 4, dims)])], opset=20, align_corners=pick(rng, (0, 1, None))
    )
