"""Slices, also of extents that are known only at run time."""

from __future__ import annotations

from ..extents import Dim, Extent, Undecided
from ..graph import Graph, Operand, known
from ..registry import Node, Refused, axes_of, invalid_if, reads, refuse_if

_FAR = 2**31 - 1  # from there on an end means "to the end"


@reads("Slice")
def slice_(g: Graph, node: Node) -> Operand:
    x = node.x
    if "starts" in node.attributes:
        starts, ends = list(node.get("starts")), list(node.get("ends"))
        axes, steps = node.get("axes") or list(range(len(starts))), [1] * len(starts)
    else:
        starts, ends = node.dims(1, "the starts"), node.dims(2, "the ends")
        axes = node.integers(3, "the axes") if node.optional(3) else list(range(len(starts)))
        steps = node.integers(4, "the steps") if node.optional(4) else [1] * len(starts)
    numbers = [len(part) for part in (starts, ends, axes, steps)]
    invalid_if(
        len(set(numbers)) != 1, f"starts, ends, axes and steps have {numbers} numbers; as many are needed"
    )
    for axis, start, end, step in zip(axes_of(axes, g.rank(x)), starts, ends, steps, strict=True):
        invalid_if(step == 0, f"the step along axis {axis} is 0")
        x = part(g, x, axis, start, end, step)
    return x if x is not node.x else g.op("identity", x)


def part(g: Graph, x: Operand, axis: int, start: Dim, end: Dim | None, step: int) -> Operand:
    """x[start:end:step] along an axis, as NumPy has it."""
    extent = g.shape(x)[axis]
    if step < 0:
        x = g.op("reverse", x, axes=[axis])
        start, end, step = _mirrored(start, end, extent), _mirrored_end(end, extent), -step
    if not any(isinstance(d, Extent) for d in (extent, start, end)):
        first, last, _ = slice(start, end).indices(extent)
        span = max(last - first, 0)
        return g.cut(x, axis, first if span else 0, span if step == 1 else _reach(span, step), step)
    try:
        first = _from_front(start, extent)
        last = extent if end is None or (isinstance(end, int) and end >= _FAR) else _from_front(end, extent)
        last = _at_most(last, extent)
        if isinstance(first, int) and step == 1 and _is_spelled(g, last - first):
            return g.cut(x, axis, first, last - first)
        return _windows(g, x, axis, first, last, step)
    except Undecided:
        raise g.unknown(extent, "the extent that is cut") from None


def _mirrored(place: Dim, end: Dim | None, extent: Dim) -> Dim:
    """Where a slice that goes backwards starts in the reversed order: element i is at extent - 1 - i."""
    if isinstance(place, int) and place < 0:
        return -1 - place
    if isinstance(place, int) and (place >= _FAR or (isinstance(extent, int) and place >= extent)):
        return 0
    return extent - 1 - place


def _mirrored_end(end: Dim | None, extent: Dim) -> Dim | None:
    if end is None or (
        isinstance(end, int) and (end <= -_FAR or (isinstance(extent, int) and end < -extent))
    ):
        return None
    if isinstance(end, int) and end < 0:
        return -1 - end
    return extent - 1 - end


def _reach(span: int, step: int) -> int:
    """The box whose every step-th element is wanted, without what follows the last of them."""
    return (span - 1) // step * step + 1 if span else 0


def _from_front(place: Dim, extent: Dim) -> Dim:
    return place + extent if place < 0 else place


def _at_most(place: Dim, extent: Dim) -> Dim:
    """An end beyond the extent is the extent. A number beside an extent is believed to lie within it."""
    try:
        return place if place <= extent else extent
    except Undecided:
        return place


def _is_spelled(g: Graph, d: Dim) -> bool:
    try:
        g.spelled(d)
        return True
    except Refused:
        return False


def _windows(g: Graph, x: Operand, axis: int, first: Dim, last: Dim, step: int) -> Operand:
    """Which elements, by windows over their places: as wide as what is left out, each gives its largest.

    So the catalog itself says how many there are, whatever the extent will be.
    """
    extent = g.shape(x)[axis]
    before, after = first, extent - last
    if not isinstance(before, int) and isinstance(extent - before, int):  # the last few
        count, left = extent - before, after
        refuse_if(
            not isinstance(left, int),
            f"the slice from {first} to {last} of {extent} moves at both ends",
            "Fix the dimensions with dimensions={...} (--dimension NAME=N)",
        )
        g.check_extent(count)
        places = known(list(range(-count, -left if left else 0, step)), "i64")
        return g.op("gather", x, places, axis=axis)
    if not isinstance(before, int) or not isinstance(after, int):
        raise g.unknown(extent, "the extent that is cut")
    line = g.reshape(g.positions(extent, "f32"), [1, 1, 1, extent])
    ends = g.op("max_pool2d", line, window_dimensions=[1, before + after + 1], strides=[1, step])
    count = g.shape(ends)[3]
    if step == 1:
        g.learn(ends, 3, last - first)
        count = g.shape(ends)[3]
    places = g.cast(g.plus(g.reshape(ends, [count]), -after), "i64")
    return g.op("gather", x, places, axis=axis)
