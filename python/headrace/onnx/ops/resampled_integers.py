"""Images of integers in other sizes: sums of neighbours in single precision, rounded as ONNX Runtime does."""

from __future__ import annotations

import itertools

from ..graph import Graph, Operand, known
from ..registry import Node, refuse_if
from .open_resampling import OpenAxis, is_outside, moved_points

Neighbours = list[tuple[Operand, Operand]]  # places and weights along an axis: the nearer to 0 first


def interpolated_integers(
    g: Graph, node: Node, x: Operand, axes: list[tuple[int, OpenAxis]], stays: Operand | None
) -> Operand:
    """Linear: one sum over all axes, which goes towards zero. axes: those that are resized, by dimension."""
    mode, antialias = node.get("mode"), node.get("antialias", 0)
    refuse_if(
        mode == "cubic" or antialias,
        f"mode is {mode} with antialias={antialias}, and the image is {x.dtype}; integers are interpolated "
        "linearly without it",
        "Cast the image to float before it",
    )
    points = [moved_points(g, axis, node, stays) for _, axis in axes]
    total: Operand | None = None
    for corner in itertools.product((0, 1), repeat=len(axes)):
        part, weight = g.cast(x, "f32"), known(1, "f32")
        for (dim, axis), at, side in reversed(list(zip(axes, points, corner, strict=True))):
            place, share = _neighbours(g, axis, at, dim >= g.rank(x) - 2)[side]
            part = g.op("gather", part, place, axis=dim)
            weight = g.op("mul", weight, g.add_axes(share, g.rank(x) - 1 - dim))
        part = g.op("mul", weight, part)
        total = part if total is None else g.op("add", total, part)
    y = g.cast(total, x.dtype)
    if node.get("coordinate_transformation_mode") != "tf_crop_and_resize":
        return y
    value = g.cast(known(float(node.get("extrapolation_value", 0.0)), "f32"), x.dtype)
    for (dim, axis), at in zip(axes, points, strict=True):
        y = g.op("where", g.add_axes(is_outside(g, axis, at), g.rank(x) - 1 - dim), value, y)
    return y


def _neighbours(g: Graph, axis: OpenAxis, points: Operand, halves: bool) -> Neighbours:
    """At the last element both are that one, with halves of the weight, or all of it and none."""
    at = g.within(points, 0, axis.size - 1)
    low = g.op("floor", at)
    high = g.within(g.plus(low, 1), 0, axis.size - 1)
    is_last, last = g.op("equal", low, high), (0.5, 0.5) if halves else (1.0, 0.0)
    shares = [
        g.op("where", is_last, known(share, "f32"), g.op("abs", g.op("sub", at, other)))
        for share, other in zip(last, (high, low), strict=True)
    ]
    return [(g.cast(place, "i64"), share) for place, share in zip((low, high), shares, strict=True)]
