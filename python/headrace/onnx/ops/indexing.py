"""Reading at indices."""

from __future__ import annotations

from .. import numbers
from ..graph import Dim, Extent, Graph, Operand, product
from ..registry import Node, invalid_if, reads


def as_indices(g: Graph, x: Operand) -> Operand:
    return x if x.dtype in ("i32", "i64", "u32") else g.cast(x, "i64")


def checked(g: Graph, node: Node, x: Operand, indices: Operand, axes: list[int]) -> Operand:
    """Indices into an axis, or tuples of them into several: those outside are errors, now or in a run."""
    shape, places = g.shape(x), indices.array
    if places is not None and places.dtype == object:
        return indices
    if places is None or any(isinstance(shape[axis], Extent) for axis in axes):
        if places is not None and places.size and len(axes) == 1 and isinstance(shape[axes[0]], Extent):
            g.ranges.needs(shape[axes[0]], int(max(places.max() + 1, -places.min())))
        return g.op("checked_indices", indices, extents=[shape[axis] for axis in axes])
    for i, axis in enumerate(axes):
        own, extent = (places if len(axes) == 1 else places[..., i]), shape[axis]
        outside = own[(own < -extent) | (own >= extent)].reshape(-1)
        invalid_if(
            outside.size, f"index {outside[:1].tolist()} is outside the extent {extent} of axis {axis}"
        )
    return indices


@reads("Gather")
def gather(g: Graph, node: Node) -> Operand:
    x, indices = node.x, as_indices(g, node.operand(1))
    invalid_if(g.rank(x) == 0, "input 0 is a scalar, of which nothing can be taken")
    axis = g.axis(x, node.get("axis", 0))
    one = indices.array
    extent = g.shape(x)[axis]
    if one is not None and one.dtype != object and one.size == 1 and isinstance(extent, int):
        index = int(one.reshape(-1)[0])
        invalid_if(
            not -extent <= index < extent, f"index {index} is outside the extent {extent} of axis {axis}"
        )
        sizes = g.shape(x)
        taken = g.cut(x, axis, index % extent, 1)
        return g.reshape(taken, [*sizes[:axis], *one.shape, *sizes[axis + 1 :]])
    return g.op("gather", x, checked(g, node, x, indices, [axis]), axis=axis)


@reads("GatherElements")
def gather_elements(g: Graph, node: Node) -> Operand:
    axis = g.axis(node.x, node.get("axis", 0))
    indices = checked(g, node, node.x, as_indices(g, node.operand(1)), [axis])
    return elements_at(g, node.x, indices, axis)


def elements_at(g: Graph, x: Operand, indices: Operand, axis: int) -> Operand:
    """ONNX lets the indices have less of the other dimensions than the input."""
    for i, size in enumerate(g.shape(indices)):
        if i != axis and isinstance(size, int):
            x = g.cut(x, i, 0, size)
    return g.op("gather_elements", x, indices, axis=axis)


def checked_tuples(g: Graph, node: Node, x: Operand, indices: Operand, batch: int = 0) -> Operand:
    depth = g.shape(indices)[-1] if g.rank(indices) else 0
    if not isinstance(depth, int) or not 0 < depth <= g.rank(x) - batch or batch < 0:
        return indices  # the op says what is wrong with it
    return checked(g, node, x, indices, [batch + i for i in range(depth)])


@reads("GatherND")
def gather_nd(g: Graph, node: Node) -> Operand:
    x, indices = node.x, as_indices(g, node.operand(1))
    batch = int(node.get("batch_dims", 0))
    indices = checked_tuples(g, node, x, indices, batch)
    if batch == 0:
        return g.op("gather_nd", x, indices)
    shape, own = g.shape(x), g.shape(indices)
    invalid_if(
        not 0 <= batch < min(len(shape), len(own)),
        f"batch_dims is {batch}; the inputs have {len(shape)} and {len(own)} dimensions",
    )
    count = product(shape[:batch])
    flat = g.reshape(x, [count, *shape[batch:]])
    rows = g.reshape(indices, [count, *own[batch:]])
    number = g.reshape(g.cast(g.positions(count), indices.dtype), [count, *[1] * (len(own) - batch)])
    whole = g.concat([g.expand(number, [count, *own[batch:-1], 1]), rows], g.rank(rows) - 1)
    y = g.op("gather_nd", flat, whole)
    return g.reshape(y, [*shape[:batch], *g.shape(y)[1:]])


@reads("ReverseSequence")
def reverse_sequence(g: Graph, node: Node) -> Operand:
    """The first `lengths` elements of each sequence backwards."""
    x, lengths = node.x, g.cast(node.operand(1), "i64")
    time, batch = int(node.get("time_axis", 0)), int(node.get("batch_axis", 1))
    invalid_if({time, batch} != {0, 1}, f"time_axis is {time} and batch_axis {batch}; one is 0, the other 1")
    sizes = g.shape(x)
    lengths = numbers.checked(g, lengths, "the length of a sequence", 0, sizes[time])
    place = g.positions(sizes[time])
    grid = [1, 1]
    grid[time] = sizes[time]
    place = g.reshape(place, grid)
    column = [1, 1]
    column[batch] = sizes[batch]
    lengths = g.reshape(lengths, column)
    mirrored = g.plus(g.op("sub", lengths, place), -1)
    source = g.op("where", g.op("lesser", place, lengths), mirrored, place)
    source = g.add_axes(source, len(sizes) - 2)
    return g.op("gather_elements", x, g.expand(source, sizes), axis=time)


def row_major(shape: list[Dim]) -> list[Dim]:
    """How many elements a step of each dimension is."""
    steps: list[Dim] = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        steps[i] = steps[i + 1] * shape[i + 1]
    return steps
