"""Slices, also of extents that are known only at run time."""

from __future__ import annotations

from ..graph import Dim, Extent, Graph, Operand, Undecided, is_same
from ..numbers import Numbers, counted_from_front, is_known
from ..registry import Node, axes_of, invalid_if, reads, refuse_if

_FAR = 2**31 - 1  # from there on a place means "as far as there are elements"


@reads("Slice")
def slice_(g: Graph, node: Node) -> Operand:
    x = node.x
    if "starts" in node.attributes:
        starts, ends = list(node.get("starts")), list(node.get("ends"))
        axes, steps = node.get("axes") or list(range(len(starts))), [1] * len(starts)
    elif not all(is_known(operand) for operand in node.inputs[1:]):
        return _as_told(g, node)
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


def _as_told(g: Graph, node: Node) -> Operand:
    """Of places that are known only at run time."""
    x, sizes = node.x, g.shape(node.x)
    shape = g.shape(node.operand(1))
    invalid_if(len(shape) != 1, f"the starts (input 1) have the shape {shape}; they are a list")
    count = g.fixed(shape[0], "the number of axes")
    starts, ends = Numbers(g, node.operand(1)), Numbers(g, node.operand(2))
    steps = Numbers(g, node.optional(4) or [1] * count)
    axes = node.optional(3)
    if axes is None or is_known(axes):
        chosen = axes_of(node.integers(3, "the axes") if axes else range(count), len(sizes))
        extent = Numbers(g, [sizes[axis] for axis in chosen])
    else:
        chosen, extent = list(range(len(sizes))), Numbers(g, sizes)
        places = counted_from_front(Numbers(g, axes), len(sizes))
        starts = Numbers(g, [0] * len(sizes)).with_at(places, starts)
        ends = Numbers(g, sizes).with_at(places, ends)
        steps = Numbers(g, [1] * len(sizes)).with_at(places, steps)
    if not chosen:
        return g.op("identity", x)
    is_down = steps < 0
    low, high = is_down.choose(-1, 0), is_down.choose(extent - 1, extent)
    first, last = (
        (place < 0).choose(place + extent, place).at_least(low).at_most(high) for place in (starts, ends)
    )
    stride = is_down.choose(0 - steps, steps).at_most(2**60)
    counts = (is_down.choose(first - last, last - first) + stride - 1) // stride
    for i, (axis, size) in enumerate(zip(chosen, counts.at_least(0).extents(), strict=True)):
        places = Numbers(g, g.positions(size)) * steps.at([i]) + first.at([i])
        x = g.op("gather", x, places.x, axis=axis)
    return x


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
        if isinstance(first, int):
            return g.cut(x, axis, first, last - first, min(step, _FAR))
        return _last_few(g, x, axis, first, last, min(step, _FAR))
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


def _last_few(g: Graph, x: Operand, axis: int, first: Dim, last: Dim, step: int) -> Operand:
    """Elements from a place that the extent moves, where their number is known."""
    extent = g.shape(x)[axis]
    count, left = extent - first, extent - last
    if not isinstance(count, int):
        raise g.unknown(extent, "the extent that is cut")
    refuse_if(
        not isinstance(left, int),
        f"the slice from {first} to {last} of {extent} moves at both ends",
        "Fix the dimensions with dimensions={...} (--dimension NAME=N)",
    )
    g.check_extent(count)
    line = g.cut(g.positions(extent), 0, 0, count)  # an error when the model is called with fewer
    places = g.plus(_of_numbers(g, line, 0, range(0, count - left, step)), -count)
    return g.op("gather", x, places, axis=axis)
