"""Values that come from attributes and shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..folding import LARGEST
from ..graph import LARGEST_EXTENT, Dim, Extent, Graph, Operand, Undecided, is_number, is_same, known, product
from ..numbers import Numbers, checked, dims, extents_of, is_known
from ..ratios import BINARY as OF_RATIOS
from ..ratios import Ratio
from ..registry import Node, Refused, invalid_if, reads, refuse_if, shortened
from ..source import dtype_named

_ATTRIBUTES = {
    "value_float": "f32",
    "value_floats": "f32",
    "value_int": "i64",
    "value_ints": "i64",
}


@reads("Constant")
def constant(g: Graph, node: Node) -> Operand:
    if "value" in node.attributes:
        return node.attributes["value"]
    for name, dtype in _ATTRIBUTES.items():
        if name in node.attributes:
            return known(node.attributes[name], dtype)
    raise Refused(
        f"it has {shortened(sorted(node.attributes))}; value, value_int(s) and value_float(s) are read",
        "Store it as a dense tensor of numbers",
    )


@reads("Shape")
def shape(g: Graph, node: Node) -> Operand:
    part = g.shape(node.x)[slice(node.get("start", 0), node.get("end"))]
    return known(np.array(part, object if any(isinstance(d, Extent) for d in part) else np.int64), "i64")


@reads("Size")
def size(g: Graph, node: Node) -> Operand:
    total = g.size(node.x)
    return known(np.array(total, object if isinstance(total, Extent) else np.int64), "i64")


@reads("ConstantOfShape")
def constant_of_shape(g: Graph, node: Node) -> Operand:
    value = node.get("value") or known(np.zeros(1, np.float32), "f32")
    invalid_if(value.array.size != 1, f"value has {value.array.size} elements, not one")
    wanted = dims(g, node, 0, "the shape")
    number = Operand(value.dtype, array=value.array.reshape(()))
    if not any(isinstance(d, Extent) for d in wanted) and 0 <= product(wanted) <= LARGEST:
        return Operand(value.dtype, array=np.broadcast_to(number.array, [int(d) for d in wanted]))
    filled = g.expand(number, wanted)
    filled.fill = number.array.item()
    return filled


@reads("Range")
def range_(g: Graph, node: Node) -> Operand:
    """From start up to limit in steps of delta; integers may end at a run-time extent."""
    start, limit, delta = (node.operand(i) for i in range(3))
    dtype = start.dtype
    if all(x.array is not None and x.array.dtype != object for x in (start, limit, delta)):
        first, last, step = (x.array.reshape(-1)[0].item() for x in (start, limit, delta))
        invalid_if(step == 0, "delta (input 2) is 0")
        count = max(math.ceil((last - first) / step), 0)
        refuse_if(count > LARGEST_EXTENT, f"it would have {count} elements; {LARGEST_EXTENT} are the most")
        return known(first + np.arange(count) * step, dtype)
    if not all(is_known(x) for x in (start, limit, delta)):
        return _range_as_told(g, start, limit, delta)
    names = ("the start", "the limit", "the step")
    first, last, step = (node.known(i, name).reshape(-1)[0] for i, name in enumerate(names))
    invalid_if(is_number(step, 0), "delta (input 2) is 0")
    try:
        count = _steps(first, last, step)
    except Undecided:  # whether it goes up or down is open
        return _range_as_told(g, start, limit, delta)
    count = Extent.largest([0, count]) if isinstance(count, Extent) else max(count, 0)
    whole = "i64" if not start.is_float else dtype
    return g.cast(g.plus(g.times(g.cast(g.positions(count), whole), step), first), dtype)


def _steps(first: Any, last: Any, step: Any) -> Dim:
    """How many there are, not below 0 where they lead away from the end."""
    ratio = OF_RATIOS["Div"](OF_RATIOS["Sub"](Ratio.of(last), Ratio.of(first)), Ratio.of(step))
    return ratio.ceil()


def _range_as_told(g: Graph, start: Operand, limit: Operand, delta: Operand) -> Operand:
    dtype = start.dtype
    start, limit, delta = (g.reshape(x, []) for x in (start, limit, delta))
    if start.is_float:
        wide = [g.cast(x, "f64") for x in (start, limit, delta)]
        count = g.cast(g.op("ceil", g.op("div", g.op("sub", wide[1], wide[0]), wide[2])), "i64")
        count = Numbers(g, count)
    else:
        distance, step = Numbers(g, limit) - Numbers(g, start), Numbers(g, delta)
        is_down = step < 0
        distance, step = is_down.choose(0 - distance, distance), is_down.choose(0 - step, step)
        step = step.checked("the distance of a step", 1)
        count = (distance + step - 1) // step
    places = g.positions(extents_of(g, count.at_least(0).x)[0])
    if not start.is_float:
        start, delta = g.cast(start, "i64"), g.cast(delta, "i64")
    elif dtype != "f64":
        start, delta = g.cast(start, "f32"), g.cast(delta, "f32")
    y = g.op("add", g.op("mul", g.cast(places, start.dtype), delta), start)
    return g.cast(y, dtype)


@reads("EyeLike")
def eye_like(g: Graph, node: Node) -> Operand:
    invalid_if(g.rank(node.x) != 2, f"the input has {g.rank(node.x)} dimensions, not 2")
    rows, columns = g.shape(node.x)
    dtype = dtype_named(node.attributes["dtype"], "dtype") if "dtype" in node.attributes else node.x.dtype
    if g.is_open(node.x):
        row = g.plus(g.reshape(g.positions(rows), [rows, 1]), node.get("k", 0))
        return g.cast(g.op("equal", row, g.reshape(g.positions(columns), [1, columns])), dtype)
    refuse_if(
        rows * columns > LARGEST_EXTENT,
        f"it would have {rows * columns} elements; {LARGEST_EXTENT} are the most",
    )
    return known(np.eye(rows, columns, node.get("k", 0)), dtype)


@reads("Compress")
def compress(g: Graph, node: Node) -> Operand:
    """Elements where a condition holds, of the flattened input without an axis."""
    x, axis, condition = node.x, node.get("axis"), node.operand(1)
    if axis is None:
        x, axis = g.reshape(x, [g.size(x)]), 0
    extent, size = g.shape(x)[g.axis(x, axis)], g.size(condition)
    if is_known(condition) and isinstance(extent, int):
        kept = np.flatnonzero(condition.array.reshape(-1)[:extent])
        return g.op("gather", x, known(kept, "i64"), axis=g.axis(x, axis))
    condition = g.reshape(condition, [size])
    if not is_same(size, extent):  # what is beyond the extent does not count
        inside = g.op("lesser", g.positions(size), g.at_run_time(extent, "i64"))
        condition = g.op("logical_and", condition, inside)
    count = g.counted()
    kept = g.op("non_zero", condition, counts=[count])
    return g.op("gather", x, g.reshape(kept, [count]), axis=g.axis(x, axis))


def _depth(g: Graph, node: Node) -> Dim:
    if not is_known(node.operand(1)):
        depth = g.reshape(g.cast(node.operand(1), "i64"), [1])
        return extents_of(g, checked(g, depth, "the depth", 1))[0]
    depth = node.dims(1, "the depth")[0]
    if isinstance(depth, Extent):
        return depth
    refuse_if(
        not 1 <= int(depth) <= LARGEST_EXTENT,
        f"the depth (input 1) is {depth}; 1 to {LARGEST_EXTENT} are read",
    )
    return int(depth)


@reads("OneHot")
def one_hot(g: Graph, node: Node) -> Operand:
    """on where the index (negative ones count from the end) is the place along the new axis, else off."""
    values, depth = node.operand(2), _depth(g, node)
    rank = g.rank(node.x)
    axis = node.get("axis", -1)
    invalid_if(
        not -rank - 1 <= axis <= rank, f"axis {axis} is outside the {rank + 1} dimensions of the result"
    )
    axis %= rank + 1
    indices = node.x if not node.x.is_float else g.cast(node.x, "i64")
    negative = g.op("lesser", indices, known(0, indices.dtype)) if not indices.dtype.startswith("u") else None
    if negative is not None:
        indices = g.op("where", negative, g.plus(indices, depth), indices)
    sizes = g.shape(indices)
    indices = g.reshape(indices, [*sizes[:axis], 1, *sizes[axis:]])
    places = g.reshape(g.cast(g.positions(depth), indices.dtype), [depth, *[1] * (rank - axis)])
    off, on = (g.reshape(g.cut(values, 0, i, 1), []) for i in (0, 1))
    return g.op("where", g.op("equal", indices, places), on, off)
