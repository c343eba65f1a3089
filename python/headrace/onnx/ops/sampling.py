"""Images sampled at given points."""

from __future__ import annotations

from ..extents import product
from ..graph import Graph, Operand, known
from ..registry import Node, invalid_if, reads, refuse_if

_MODES = {"linear": "linear", "bilinear": "linear", "nearest": "nearest"}


class _Image:
    """[n, c, h, w], sampled at points [n, h', w', 2] whose coordinates are within [-1, 1]."""

    def __init__(self, g: Graph, image: Operand, padding: str, align_corners: bool) -> None:
        self.g, self.image, self.padding, self.align_corners = g, image, padding, align_corners
        self.batch, self.channels, self.height, self.width = g.fixed_shape(image)
        self.dtype = image.dtype

    def coordinate(self, grid: Operand, which: int, size: int) -> Operand:
        """In elements of the image, brought inside it where the padding says so."""
        g = self.g
        x = g.reshape(g.cut(grid, 3, which, 1), g.shape(grid)[:3])
        # [-1, 1] are the centres of the outermost elements, or their outer edges
        factor = (size - 1) / 2 if self.align_corners else size / 2
        x = g.op("linear", x, alpha=float(factor), beta=(size - 1) / 2)
        if self.padding == "reflection":
            x = self._reflected(x, size)
        return x if self.padding == "zeros" else g.op("clamp", x, min_value=0, max_value=size - 1)

    def _reflected(self, x: Operand, size: int) -> Operand:
        g = self.g
        low, span = (0.0, size - 1) if self.align_corners else (-0.5, size)
        if span == 0:
            return g.times(x, 0)
        away = g.op("abs", g.plus(x, -low))
        place = g.op("remainder", away, known(2.0 * span, self.dtype))
        folded = g.op("min", place, g.op("linear", place, alpha=-1.0, beta=2.0 * span))
        return g.plus(folded, low)

    def at(self, y: Operand, x: Operand) -> Operand:
        """The elements at whole coordinates, zero outside."""
        g = self.g
        shape = g.shape(y)
        inside: Operand | None = None
        for v, size in ((y, self.height), (x, self.width)):
            for test, bound in (("greater_or_equal", 0), ("lesser_or_equal", size - 1)):
                holds = g.op(test, v, known(bound, self.dtype))
                inside = holds if inside is None else g.op("logical_and", inside, holds)
        row = g.cast(g.op("clamp", y, min_value=0, max_value=self.height - 1), "i64")
        column = g.cast(g.op("clamp", x, min_value=0, max_value=self.width - 1), "i64")
        count = product(shape[1:])
        place = g.reshape(g.op("add", g.times(row, self.width), column), [self.batch, 1, count])
        place = g.expand(place, [self.batch, self.channels, count])
        flat = g.reshape(self.image, [self.batch, self.channels, self.height * self.width])
        taken = g.op("gather_elements", flat, place, axis=2)
        taken = g.reshape(taken, [self.batch, self.channels, *shape[1:]])
        return g.op("where", self.for_channels(inside), taken, known(0, self.dtype))

    def for_channels(self, x: Operand) -> Operand:
        """[n, h', w'] as [n, 1, h', w']"""
        batch, *size = self.g.shape(x)
        return self.g.reshape(x, [batch, 1, *size])


@reads("GridSample")
def grid_sample(g: Graph, node: Node) -> Operand:
    image, grid, mode = (
        node.x,
        node.operand(1),
        node.get("mode", "linear" if node.opset >= 20 else "bilinear"),
    )
    padding = node.get("padding_mode", "zeros")
    refuse_if(
        mode not in _MODES,
        f"mode is '{mode}'; linear and nearest are read",
        "Export the model with one of these, or run it with ONNX Runtime",
    )
    invalid_if(
        padding not in ("zeros", "border", "reflection"),
        f"padding_mode is '{padding}'; zeros, border and reflection are ONNX's",
    )
    refuse_if(
        g.rank(image) != 4 or g.rank(grid) != 4,
        f"the image has {g.rank(image)} dimensions and the grid {g.rank(grid)}; 4 are read",
    )
    g.fixed_shape(grid, "an extent of the grid")
    source = _Image(g, image, padding, bool(node.get("align_corners", 0)))
    grid = g.cast(grid, image.dtype)
    x, y = source.coordinate(grid, 0, source.width), source.coordinate(grid, 1, source.height)
    if _MODES[mode] == "nearest":
        return source.at(g.op("round_even", y), g.op("round_even", x))
    left, top = g.op("floor", x), g.op("floor", y)
    total: Operand | None = None
    for down in (0, 1):
        for right in (0, 1):
            row, column = g.plus(top, down), g.plus(left, right)
            weight = g.op("mul", _closeness(g, x, column), _closeness(g, y, row))
            part = g.op("mul", source.at(row, column), source.for_channels(weight))
            total = part if total is None else g.op("add", total, part)
    return total


def _closeness(g: Graph, a: Operand, b: Operand) -> Operand:
    """1 - |a - b|"""
    return g.op("linear", g.op("abs", g.op("sub", a, b)), alpha=-1.0, beta=1.0)
