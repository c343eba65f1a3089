"""Slices, also of extents that are known only at run time."""

from __future__ import annotations

from ..extents import Dim, Extent, Undecided, is_same
from ..graph import Graph, Operand
from ..registry import Node, Refused, axes_of, invalid_if, reads, refuse_if

_FAR = 2**31 - 1  # from there on a place means "as far as there are elements"


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
    if not any(isinstance(d, Extent) for d in (extent, start, end)):
        return _of_numbers(g, x, axis, range(*slice(start, end, step).indices(extent)))
    try:
        if step < 0:
            first, last = _backwards(start, end, extent)
            x, step = g.op("reverse", x, axes=[axis]), -step
        else:
            first, last = _clamped(start, extent), extent if end is None else _clamped(end, extent)
        last = _at_least(first, last)
        if isinstance(first, int) and is_same(first, last):
            return g.cut(x, axis, 0, 0)
        if isinstance(first, int) and step == 1 and _is_spelled(g, last - first):
            return g.cut(x, axis, first, last - first)
        return _windows(g, x, axis, first, last, min(step, _FAR))
    except Undecided:
        raise g.unknown(extent, "the extent that is cut") from None


def _of_numbers(g: Graph, x: Operand, axis: int, places: range) -> Operand:
    """The elements at places that are all within the extent."""
    if len(places) < 2:
        return g.cut(x, axis, places[0] if places else 0, len(places))
    low, high = min(places[0], places[-1]), max(places[0], places[-1])
    x = g.cut(x, axis, low, high - low + 1, abs(places.step))
    return x if places.step > 0 else g.op("reverse", x, axes=[axis])


def _clamped(place: Dim, extent: Dim) -> Dim:
    """Counted from the front, within [0, extent]. A number beside an open extent is believed to lie there."""
    if isinstance(place, int) and place >= _FAR:
        return extent
    if isinstance(place, int) and place <= -_FAR:
        return 0
    return _at_least(0, _at_most(place + extent if place < 0 else place, extent))


def _backwards(start: Dim, end: Dim | None, extent: Dim) -> tuple[Dim, Dim]:
    """Where the slice starts and ends in the reversed order: element i is at extent - 1 - i."""
    return _mirrored(start, extent), extent if end is None else _mirrored(end, extent)


def _mirrored(place: Dim, extent: Dim) -> Dim:
    """The place extent - 1 - i of element i, within [0, extent]."""
    if isinstance(place, int) and place >= _FAR:
        return 0
    if isinstance(place, int) and place <= -_FAR:
        return extent
    front = place + extent if place < 0 else place
    return _at_least(0, _at_most(extent - 1 - front, extent))


def _at_most(place: Dim, bound: Dim) -> Dim:
    """The smaller; the place itself where that is open."""
    try:
        return place if place <= bound else bound
    except Undecided:
        return place


def _at_least(bound: Dim, place: Dim) -> Dim:
    """The larger; the place itself where that is open."""
    try:
        return bound if place < bound else place
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
        line = g.cut(g.positions(extent), 0, 0, count)  # an error when the model is called with fewer
        places = g.plus(_of_numbers(g, line, 0, range(0, count - left, step)), -count)
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
