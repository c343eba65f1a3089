"""Axes resized where the input's or the output's extent is known only at run time.

Points and weights are computed by the graph, as vectors along the axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graph import Dim, Extent, Graph, Number, Operand, is_same, known
from ..numbers import extents_of
from ..ratios import BINARY, Ratio
from ..registry import Node

TIE = 1e-6  # as near to the middle of two elements, ONNX Runtime takes a point to be there


def _rounded(g: Graph, x: Operand, least: float) -> Operand:
    """Up where what floor leaves is at least so much."""
    low = g.op("floor", x)
    is_up = g.op("greater_or_equal", g.op("sub", x, low), known(least, "f32"))
    return g.op("add", low, g.cast(is_up, "f32"))


_ROUNDINGS = {
    "round_prefer_floor": lambda g, x: _rounded(g, x, 0.5 + TIE),
    "round_prefer_ceil": lambda g, x: _rounded(g, x, 0.5 - TIE),
    "floor": lambda g, x: g.op("floor", x),
    "ceil": lambda g, x: g.op("ceil", x),
}


@dataclass
class OpenAxis:
    """The input's and the output's extent; the scale is theirs, or what the model gives."""

    size: Dim
    out: Dim
    scale: Number | Operand
    start: Number | Operand = 0.0  # of the region that is shown
    end: Number | Operand = 1.0

    def points(self, g: Graph, transformation: str) -> Operand:
        """Where each output element lies in the input, f32."""
        x = g.cast(g.positions(self.out), "f32")
        if transformation == "align_corners":
            last: Number | Operand = Extent.largest([self.out - 1, 1])
            if isinstance(self.scale, Operand):  # the last element is where the scale puts it, between two
                last = g.plus(g.times(self.scale, self.size), -1)
                last = g.op("where", g.op("equal", last, known(0, "f32")), known(1, "f32"), last)
            return g.op("div", g.times(x, self.size - 1), g.at_run_time(last, "f32"))
        if transformation == "tf_crop_and_resize":
            return self._of_region(g, x)
        scale = g.at_run_time(self.scale, "f32")
        if transformation == "half_pixel_symmetric":
            return self._symmetric(g, x, scale)
        if transformation == "asymmetric":
            return g.op("div", x, scale)
        middle = g.op("div", g.plus(x, 0.5), scale)
        if transformation == "tf_half_pixel_for_nn":
            return middle
        points = g.plus(middle, -0.5)
        if transformation == "half_pixel":
            return points
        if transformation == "pytorch_half_pixel":  # a lone element is the first
            return g.times(points, Extent.smallest([self.out - 1, 1]))
        raise AssertionError(transformation)

    def _of_region(self, g: Graph, x: Operand) -> Operand:
        """From its start to its end; a lone element is in the middle."""
        start, end = (g.at_run_time(edge, "f32") for edge in (self.start, self.end))
        last = g.at_run_time(self.size - 1, "f32")
        steps = g.plus(g.at_run_time(self.out, "f32"), -1)
        is_lone = g.op("equal", steps, known(0, "f32"))
        whole = g.op("mul", g.op("mul", x, g.op("sub", end, start)), last)  # rounded as ONNX Runtime does it
        moved = g.op("div", whole, g.op("where", is_lone, known(1, "f32"), steps))
        begin = g.op("where", is_lone, g.times(g.op("add", start, end), 0.5), start)
        return g.op("add", g.op("mul", begin, last), moved)

    def _symmetric(self, g: Graph, x: Operand, scale: Operand) -> Operand:
        """All but the offset in double precision, as ONNX Runtime has it."""
        share = g.op("neg", g.op("div", g.at_run_time(self.out, "f32"), g.times(scale, self.size)))
        offset = g.cast(g.times(g.plus(share, 1), Ratio(self.size, 2)), "f64")
        middle = g.op("div", g.plus(g.cast(x, "f64"), 0.5), g.cast(scale, "f64"))
        return g.cast(g.op("add", g.plus(middle, -0.5), offset), "f32")


SHIFTED = ("tf_half_pixel_for_nn", "tf_crop_and_resize")  # what moves elements where the scale is 1


def moved_points(g: Graph, axis: OpenAxis, node: Node, stays: Operand | None) -> Operand:
    """stays: whether the whole image is as it was, where a run decides that. So is an axis of the scale 1."""
    transformation = node.get("coordinate_transformation_mode", "half_pixel")
    points = axis.points(g, transformation)
    if transformation in SHIFTED:
        is_one = g.op("equal", g.at_run_time(axis.scale, "f32"), known(1, "f32"))
        stays = is_one if stays is None else g.op("logical_or", stays, is_one)
    if stays is not None:
        points = g.op("where", stays, g.cast(g.positions(axis.out), "f32"), points)
    return points


def is_outside(g: Graph, axis: OpenAxis, points: Operand) -> Operand:
    last = g.at_run_time(axis.size - 1, "f32")
    return g.op("logical_or", g.op("lesser", points, known(0, "f32")), g.op("greater", points, last))


def resized_open_axis(
    g: Graph, x: Operand, dim: int, axis: OpenAxis, node: Node, stays: Operand | None
) -> Operand:
    points = moved_points(g, axis, node, stays)
    y = _resized(g, x, dim, axis, points, node)
    if node.get("coordinate_transformation_mode") != "tf_crop_and_resize":
        return y
    outside = g.add_axes(is_outside(g, axis, points), g.rank(x) - 1 - dim)
    return g.op("where", outside, known(float(node.get("extrapolation_value", 0.0)), x.dtype), y)


def _resized(g: Graph, x: Operand, dim: int, axis: OpenAxis, points: Operand, node: Node) -> Operand:
    mode = node.get("mode", "nearest")
    if mode == "nearest":
        rounded = _ROUNDINGS[node.get("nearest_mode", "round_prefer_floor")](g, points)
        return g.op("gather", x, g.cast(g.within(rounded, 0, axis.size - 1), "i64"), axis=dim)
    if node.get("antialias", 0):
        return _antialiased(g, x, dim, axis, points, node)
    if mode == "linear":
        points = g.within(points, 0, axis.size - 1)
    first = g.op("floor", points)
    column = [axis.out, *[1] * (g.rank(x) - 1 - dim)]
    taps = []
    for k in range(-1, 3) if mode == "cubic" else range(2):
        place = g.plus(first, k)
        weight = _weights(g, g.op("abs", g.op("sub", points, place)), node)
        inside = g.within(place, 0, axis.size - 1)
        if node.get("exclude_outside", 0):
            weight = g.op("where", g.op("equal", inside, place), weight, known(0, "f32"))
        taps.append((g.cast(inside, "i64"), weight))
    total: Operand | None = None
    for place, weight in taps:
        part = g.op("gather", x, place, axis=dim)
        part = g.op("mul", part, g.cast(g.reshape(weight, column), x.dtype))
        total = part if total is None else g.op("add", total, part)
    if not node.get("exclude_outside", 0):
        return total
    whole = taps[0][1]
    for _, weight in taps[1:]:
        whole = g.op("add", whole, weight)
    return g.op("div", total, g.cast(g.reshape(whole, column), x.dtype))


def _weights(g: Graph, distance: Operand, node: Node) -> Operand:
    """Of linear interpolation, or of Keys' kernel (doi:10.1109/TASSP.1981.1163711)."""
    if node.get("mode") != "cubic":
        return g.op("relu", g.op("linear", distance, alpha=-1.0, beta=1.0))
    a = float(node.get("cubic_coeff_a", -0.75))
    near, far = (_polynomial(g, distance, f) for f in ((a + 2, -(a + 3), 0, 1), (a, -5 * a, 8 * a, -4 * a)))
    far = g.op("where", g.op("lesser", distance, known(2, "f32")), far, known(0, "f32"))
    return g.op("where", g.op("lesser_or_equal", distance, known(1, "f32")), near, far)


def _polynomial(g: Graph, d: Operand, factors: tuple[float, ...]) -> Operand:
    total = g.times(d, factors[0])
    for factor in factors[1:-1]:
        total = g.op("mul", g.plus(total, factor), d)
    return g.plus(total, factors[-1])


def _widened(g: Graph, scale: Number | Operand, radius: int) -> tuple[Number | Operand, Dim]:
    """By how much the kernel of a smaller image is wider, and over how many elements it then goes."""
    if not isinstance(scale, Operand):
        wider = BINARY["Max"](Ratio(1), BINARY["Div"](Ratio(1), Ratio.of(scale)))
        return wider, Ratio(radius * wider.above, wider.below).ceil()
    wider = g.op("max", g.op("div", known(1, "f32"), g.cast(scale, "f32")), known(1, "f32"))
    reach = g.cast(g.op("ceil", g.times(wider, radius)), "i64")
    return wider, extents_of(g, g.reshape(reach, [1]))[0]


def _antialiased(g: Graph, x: Operand, dim: int, axis: OpenAxis, points: Operand, node: Node) -> Operand:
    """A product with a matrix of weights: how many elements one is a sum of is open, too."""
    radius, is_inside = 2 if node.get("mode") == "cubic" else 1, bool(node.get("exclude_outside", 0))
    wider, margin = _widened(g, axis.scale, radius)
    margin = 0 if is_inside else margin
    places = g.plus(g.cast(g.positions(axis.size + 2 * margin), "f32"), -margin)
    apart = g.op("sub", g.reshape(points, [axis.out, 1]), places)
    distance = g.op("div", g.op("abs", apart), g.at_run_time(wider, "f32"))
    weights = _weights(g, distance, node)
    weights = g.op("div", weights, g.op("reduce_sum", weights, axes=[1], keep_dimensions=True))
    if not is_same(margin, 0):
        x = g.op("gather", x, g.cast(g.within(places, 0, axis.size - 1), "i64"), axis=dim)
    x, order = g.swap_to_last(x, dim)
    y = g.op("matmul", x, g.cast(g.transpose(weights, [1, 0]), x.dtype))
    return g.transpose(y, list(np.argsort(order)))
