"""Images in other sizes: an axis after the other, as weighted sums of elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph import LARGEST_EXTENT, Extent, Graph, Operand, is_other, is_same, known
from ..numbers import extents_of, is_known
from ..ratios import Ratio
from ..registry import Invalid, Node, axes_of, invalid_if, reads, refuse_if
from .open_resampling import SHIFTED, TIE, OpenAxis, resized_open_axis
from .resampled_integers import interpolated_integers
from .resampling_targets import Axis, targets

Taps = list[tuple[np.ndarray, np.ndarray]]  # places and weights for each element of the result
_ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x.astype(np.float64) - 0.5 - TIE),
    "round_prefer_ceil": lambda x: np.floor(x.astype(np.float64) + 0.5 + TIE),
    "floor": np.floor,
    "ceil": np.ceil,
}
_MOST_TAPS = 2**12  # elements of the input that one of the output is a sum of
_TRANSFORMATIONS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Keys' kernel (doi:10.1109/TASSP.1981.1163711), of distances up to 2."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _kernel_taps(points: np.ndarray, axis: Axis, node: Node) -> Taps:
    """Of linear and cubic interpolation; antialiasing widens the kernel where the image shrinks."""
    cubic, a = node.get("mode") == "cubic", float(node.get("cubic_coeff_a", -0.75))
    antialias = node.get("antialias", 0)
    widened = max(1 / axis.scale, 1.0) if antialias else 1.0
    radius = (2 if cubic else 1) * widened
    points = points.astype(np.float64)
    if not cubic and widened == 1:
        points = np.clip(points, 0, axis.size - 1)
    first = np.floor(points - radius).astype(np.int64) + 1
    refuse_if(
        2 * radius * axis.out > LARGEST_EXTENT or 2 * radius > _MOST_TAPS,
        f"mode is {node.get('mode')} with antialias={antialias}, and the scale {axis.scale} makes "
        f"{axis.out} weighted sums of {2 * radius:.0f} elements; {LARGEST_EXTENT} elements in all, and "
        f"{_MOST_TAPS} of a sum, are the most",
        f"Export the model with {'antialias=0, or with ' if widened > 1 else ''}a scale nearer to 1",
    )
    taps: Taps = []
    for k in range(int(np.ceil(2 * radius)) + (1 if widened > 1 else 0)):
        places = first + k
        distance = (places - points) / widened
        weights = _cubic(distance, a) if cubic else np.maximum(1 - np.abs(distance), 0)
        if node.get("exclude_outside", 0):
            weights = np.where((places < 0) | (places >= axis.size), 0, weights)
        taps.append((np.clip(places, 0, axis.size - 1), weights))
    if node.get("exclude_outside", 0) or widened > 1:
        total = sum(weights for _, weights in taps)
        taps = [(places, weights / np.where(total == 0, 1, total)) for places, weights in taps]
    return [(places, weights) for places, weights in taps if np.any(weights)]


def _blended(g: Graph, x: Operand, dim: int, taps: Taps) -> Operand:
    column = [-1, *[1] * (g.rank(x) - 1 - dim)]
    total: Operand | None = None
    for places, weights in taps:
        part = g.op("gather", x, known(places, "i64"), axis=dim)
        if not np.all(weights == 1):
            part = g.op("mul", part, known(weights.reshape(column).astype(np.float32), x.dtype))
        total = part if total is None else g.op("add", total, part)
    return x if total is None else total


def _resized_axis(g: Graph, x: Operand, dim: int, axis: Axis, node: Node) -> Operand:
    transformation = node.get("coordinate_transformation_mode", "half_pixel")
    points = axis.points(transformation)
    if node.get("mode", "nearest") == "nearest":
        rounding = _ROUNDINGS[node.get("nearest_mode", "round_prefer_floor")]
        places = np.clip(rounding(points), 0, axis.size - 1).astype(np.int64)
        y = (
            x
            if axis.size == axis.out and np.array_equal(places, np.arange(axis.size))
            else g.op("gather", x, known(places, "i64"), axis=dim)
        )
    else:
        y = _blended(g, x, dim, _kernel_taps(points, axis, node))
    if transformation != "tf_crop_and_resize":
        return y
    outside = (points < 0) | (points > axis.size - 1)
    if not outside.any():
        return y
    column = [-1, *[1] * (g.rank(x) - 1 - dim)]
    value = known(float(node.get("extrapolation_value", 0.0)), x.dtype)
    return g.op("where", known(outside.reshape(column), "bool"), value, y)


_PLAIN = {  # as resample2d calls them
    "half_pixel": "half_pixel",
    "pytorch_half_pixel": "half_pixel_or_first",
    "align_corners": "corners",
    "asymmetric": "edges",
}


def _is_plain(node: Node, pairs: list[tuple[int, Axis | OpenAxis]], rank: int) -> bool:
    """What resample2d does: linear, of the last two axes."""
    return (
        rank == 4
        and all(dim in (2, 3) for dim, _ in pairs)
        and node.get("mode") == "linear"
        and node.get("coordinate_transformation_mode", "half_pixel") in _PLAIN
        and not node.get("antialias", 0)
        and not node.get("exclude_outside", 0)
        and all(_is_exact(axis) for _, axis in pairs)
    )


def _is_exact(axis: Axis | OpenAxis) -> bool:
    """Whether the scale is the quotient of the extents."""
    if isinstance(axis, Axis):
        return axis.scale == axis.out / axis.size
    if isinstance(axis.scale, Operand):
        return False
    scale = Ratio.of(axis.scale)
    return is_same(axis.size * scale.above, axis.out * scale.below)


def _resampled(g: Graph, node: Node, x: Operand, pairs: list[tuple[int, Axis | OpenAxis]]) -> Operand:
    sizes = g.shape(x)
    for dim, axis in pairs:
        sizes[dim] = axis.out
    way = _PLAIN[node.get("coordinate_transformation_mode", "half_pixel")]
    if way == "half_pixel":
        return g.op("resample2d", x, mode="linear", sizes=sizes[2:], axes=[2, 3])
    return g.op("resample_linear2d", x, sizes=sizes[2:], axes=[2, 3], coordinates=way)


def resized(g: Graph, node: Node, x: Operand, axes: dict[int, Axis | OpenAxis]) -> Operand:
    pairs = [(dim, axis) for dim, axis in sorted(axes.items()) if not _is_unchanged(axis)]
    if all(is_same(axis.size, axis.out) for _, axis in pairs):  # then no transformation is looked at
        return g.op("identity", x)
    if any(is_same(axis.out, 0) for _, axis in pairs):
        shape = g.shape(x)
        for dim, axis in pairs:
            shape[dim] = axis.out
        return g.filled(0, x.dtype, shape)
    closed = [axis for _, axis in pairs if isinstance(axis, Axis)]
    largest = max((axis.out for axis in closed), default=1)
    invalid_if(
        any(axis.size < 1 or axis.out < 1 for axis in closed),
        f"extents {[axis.size for axis in closed]} become {[axis.out for axis in closed]}; least is 1",
    )
    refuse_if(
        largest > LARGEST_EXTENT,
        f"an extent becomes {largest} by the sizes or scales; {LARGEST_EXTENT} is the most",
    )
    stays = _all_stay(g, node, [axis for _, axis in pairs])
    if node.get("mode", "nearest") != "nearest" and not x.is_float:
        return interpolated_integers(g, node, x, [(dim, _opened(axis)) for dim, axis in pairs], stays)
    if _is_plain(node, pairs, g.rank(x)):
        return _resampled(g, node, x, pairs)
    for dim, axis in pairs:
        if stays is None and isinstance(axis, Axis):
            x = _resized_axis(g, x, dim, axis, node)
        else:
            x = resized_open_axis(g, x, dim, _opened(axis), node, stays)
    return x


def _all_stay(g: Graph, node: Node, axes: list[Axis | OpenAxis]) -> Operand | None:
    """Whether no extent changes, so no element; None where that is known, or makes no difference."""
    shifts = node.get("coordinate_transformation_mode", "half_pixel") in SHIFTED
    if not any(isinstance(axis, OpenAxis) for axis in axes) or (not shifts and all(map(_is_exact, axes))):
        return None
    if any(is_other(axis.size, axis.out) for axis in axes):
        return None
    answers = [
        g.op("equal", *(g.at_run_time(d, "i64") for d in (axis.size, axis.out)))
        for axis in axes
        if not is_same(axis.size, axis.out)
    ]
    return functools.reduce(lambda a, b: g.op("logical_and", a, b), answers)


def _opened(axis: Axis | OpenAxis) -> OpenAxis:
    if isinstance(axis, OpenAxis):
        return axis
    return OpenAxis(axis.size, axis.out, Ratio(*float(axis.scale).as_integer_ratio()), axis.start, axis.end)


def _is_unchanged(axis: Axis | OpenAxis) -> bool:
    """By the scale 1, in every transformation, and whatever region is shown."""
    if isinstance(axis, OpenAxis):
        return is_same(axis.size, axis.out) and _is_exact(axis)
    return axis.scale == 1


def _numbers(g: Graph, node: Node, index: int, what: str) -> list[Any] | None:
    """An input that is a list of numbers; left out, or empty, it is None.

    Where only a run knows them, integers are extents, and others are operands.
    """
    operand = node.optional(index)
    if operand is None or is_same(g.size(operand), 0):
        return None
    if not is_known(operand):
        if not operand.is_float:
            return extents_of(g, operand)
        count = g.fixed(g.size(operand), f"the number of {what}")
        return [g.reshape(g.cut(operand, 0, i, 1), []) for i in range(count)]
    values = node.known(index, what).reshape(-1)
    return [v if isinstance(v, (Extent, Ratio)) else float(v) for v in values]


def _repeated(g: Graph, node: Node, scales: list[float] | None, axes: list[int]) -> Operand | None:
    """Nearest neighbours at whole factors repeat every element, of however many there are."""
    sizes = g.shape(node.x)
    how, nearest = node.get("coordinate_transformation_mode", "half_pixel"), node.get("nearest_mode", "")
    plain = (how, nearest) == ("asymmetric", "floor") or (
        how == "half_pixel" and nearest not in ("floor", "ceil")
    )
    if scales is None or node.get("mode", "nearest") != "nearest" or not plain or len(scales) != len(axes):
        return None
    factors = dict(zip(axes, scales, strict=True))
    if not any(isinstance(sizes[a], Extent) and factors[a] != 1 for a in axes):
        return None
    if any(
        isinstance(f, (Extent, Ratio, Operand)) or not f.is_integer() or not 1 <= f <= LARGEST_EXTENT
        for f in scales
    ):
        return None
    x = node.x
    for a, factor in factors.items():
        if factor != 1:
            shape = g.shape(x)
            tall = g.reshape(x, [*shape[: a + 1], 1, *shape[a + 1 :]])
            wide = g.expand(tall, [*shape[: a + 1], int(factor), *shape[a + 1 :]])
            x = g.reshape(wide, [*shape[:a], shape[a] * int(factor), *shape[a + 1 :]])
    return x


@reads("Resize")
def resize(g: Graph, node: Node) -> Operand:
    x, sizes = node.x, g.shape(node.x)
    mode, how = node.get("mode", "nearest"), node.get("coordinate_transformation_mode", "half_pixel")
    invalid_if(mode not in ("nearest", "linear", "cubic"), f"mode is '{mode}'; nearest, linear or cubic")
    if node.opset < 11:
        scales = _numbers(g, node, 1, "the scales")
        return _by_old_rules(g, node, scales)
    invalid_if(
        how not in _TRANSFORMATIONS,
        f"coordinate_transformation_mode is '{how}'; {', '.join(_TRANSFORMATIONS)} are ONNX's",
    )
    invalid_if(
        node.get("nearest_mode", "round_prefer_floor") not in _ROUNDINGS,
        f"nearest_mode is '{node.get('nearest_mode')}'; {', '.join(_ROUNDINGS)} are ONNX's",
    )
    _check_combination(node, mode)
    axes = axes_of(node.get("axes") or range(len(sizes)), len(sizes))
    wanted, scales = _numbers(g, node, 3, "the sizes"), _numbers(g, node, 2, "the scales")
    if (wanted is None) == (scales is None):
        which = "neither scales (input 2) nor" if wanted is None else "scales (input 2) and"
        raise Invalid(f"it has {which} sizes (input 3); one of them decides")
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    refuse_if(
        scales is not None and policy != "stretch",
        f"keep_aspect_ratio_policy is '{policy}', and it has scales (input 2), which say the ratio",
        "Give sizes (input 3), or leave the policy out",
    )
    repeated = _repeated(g, node, scales if wanted is None else None, axes)
    if repeated is not None:
        return repeated
    if wanted is not None:
        wanted = [w if isinstance(w, Extent) else int(w) for w in wanted]
    resizes = targets(g, node, sizes, axes, (scales, wanted))
    if how == "tf_crop_and_resize":
        roi = _numbers(g, node, 1, "the region")
        invalid_if(
            roi is None or len(roi) != 2 * len(axes),
            f"roi (input 1) must have {2 * len(axes)} numbers where the mode is tf_crop_and_resize",
        )
        for i, a in enumerate(axes):
            if a in resizes:
                resizes[a] = _of_region(resizes[a], roi[i], roi[i + len(axes)])
    return resized(g, node, x, resizes)


def _check_combination(node: Node, mode: str) -> None:
    antialias, inside = node.get("antialias", 0), node.get("exclude_outside", 0)
    refuse_if(
        antialias and mode == "nearest",
        "antialias=1, and mode is nearest; a nearest element is no sum, linear and cubic ones are",
        "Set antialias to 0, or mode to linear or cubic",
    )
    refuse_if(
        inside and not (mode == "cubic" or (mode == "linear" and antialias)),
        f"exclude_outside=1, and mode is {mode} with antialias={antialias}; weights outside are left out of "
        "cubic sums, and of linear ones with antialias=1",
        "Set exclude_outside to 0",
    )


def _of_region(target: Axis | OpenAxis, start: Any, end: Any) -> Axis | OpenAxis:
    if any(isinstance(edge, (Extent, Ratio, Operand)) for edge in (start, end)):
        target = _opened(target)
    target.start, target.end = start, end
    return target


def _by_old_rules(g: Graph, node: Node, scales: list[float] | None) -> Operand:
    """Upsample, and Resize before operator set 11: positions are x / scale, rounded down."""
    invalid_if(scales is None, "the scales are missing (attribute scales, or input 1 from operator set 9 on)")
    sizes = g.shape(node.x)
    invalid_if(len(scales) != len(sizes), f"scales has {len(scales)} numbers for {len(sizes)} dimensions")
    rules = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    node.attributes = {**node.attributes, **rules}
    if node.get("mode") == "bilinear":
        node.attributes["mode"] = "linear"
    repeated = _repeated(g, node, scales, list(range(len(sizes))))
    if repeated is not None:
        return repeated
    return resized(g, node, node.x, targets(g, node, sizes, list(range(len(sizes))), (scales, None)))


@reads("Upsample")
def upsample(g: Graph, node: Node) -> Operand:
    mode = node.get("mode", "nearest")
    invalid_if(mode not in ("nearest", "linear", "bilinear"), f"mode is '{mode}'; nearest or linear")
    scales = node.get("scales") or _numbers(g, node, 1, "the scales")
    return _by_old_rules(g, node, scales)
