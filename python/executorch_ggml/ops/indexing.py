"""Reading and writing at indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, arguments, extents, is_same, lowers
from .movement import cut, known, product


@lowers("aten.embedding.default")
def embedding(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("gather", t.value(node.args[0]), t.value(node.args[1]), axis=0)


@lowers("aten.index_select.default")
def index_select(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    return t.op("gather", x, t.value(node.args[2]), axis=t.axis(x, node.args[1]))


@lowers("aten.gather.default")
def gather(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    return t.op("gather_elements", x, t.value(node.args[2]), axis=t.axis(x, node.args[1]))


# --- several index tensors ----------------------------------------------------------------------------


@dataclass
class _Selection:
    """What index tensors select: x with the dimensions that are indexed moved to the front."""

    axes: list[int]  # that are indexed
    order: list[int]  # of x's dimensions: those, then the rest
    indices: list[Value]  # one for each indexed dimension, of one shape
    shape: list[Any]  # of the indices

    @property
    def place(self) -> int:
        """Where ATen puts the indices' dimensions: in place of neighbouring dimensions, else first."""
        is_block = self.axes == list(range(self.axes[0], self.axes[0] + len(self.axes)))
        return self.axes[0] if is_block else 0

    def result_order(self) -> list[int]:
        """From [indices, rest] to ATen's order."""
        count, rest = len(self.shape), len(self.order) - len(self.axes)
        behind = [count + i for i in range(rest)]
        return [*behind[: self.place], *range(count), *behind[self.place :]]


def _selection(t: Translator, x: Value, indices: list[Any]) -> _Selection:
    axes = [i for i, tensor in enumerate(indices) if tensor is not None]
    values = [t.value(indices[axis]) for axis in axes]
    if any(t.dtype(v) not in ("i32", "i64") for v in values):
        raise Unsupported("a mask as index gives an extent known only at run time")
    values = [t.cast(v, "i64") for v in values]
    shape = t.shape(values[0])
    if not all(is_same(t.shape(v), shape) for v in values):
        shape = extents(torch.broadcast_shapes(*(indices[axis].meta["val"].shape for axis in axes)))
        values = [t.expand(v, shape) for v in values]
    order = axes + [i for i in range(t.rank(x)) if i not in axes]
    return _Selection(axes, order, values, shape)


def _tuples(t: Translator, selection: _Selection) -> Value:
    parts = [t.reshape(v, [*selection.shape, 1]) for v in selection.indices]
    return parts[0] if len(parts) == 1 else t.ops("concat", parts, axis=len(selection.shape))[0]


def _inverse(order: list[int]) -> list[int]:
    return [order.index(i) for i in range(len(order))]


@lowers("aten.index.Tensor")
def index(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    selection = _selection(t, x, node.args[1])
    if len(selection.axes) == 1:
        return t.op("gather", x, selection.indices[0], axis=selection.axes[0])
    taken = t.op("gather_nd", t.transpose(x, selection.order), _tuples(t, selection))
    return t.transpose(taken, selection.result_order())


@lowers("aten.index_put.default")
def index_put(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    x, indices = t.value(a["self"]), a["indices"]
    values = t.cast(t.value(a["values"]), t.dtype(x))
    given = [i for i in indices if i is not None]
    if len(given) == 1 and t.dtype(t.value(given[0])) == "bool":
        return _put_where(t, x, indices.index(given[0]), t.value(given[0]), values, a["accumulate"])
    selection = _selection(t, x, indices)
    if len(selection.axes) == 1 and len(selection.shape) == 1 and not a["accumulate"]:
        return _put_slices(t, x, selection, values)
    source, order = t.transpose(x, selection.order), selection.result_order()
    whole = [*selection.shape, *t.shape(source)[len(selection.axes) :]]
    aten_shape = [whole[i] for i in order]
    values = t.transpose(t.expand(values, aten_shape), _inverse(order))
    if a["accumulate"]:
        y = _accumulated(t, source, selection, values)
    else:
        y = t.op("scatter_nd", source, _tuples(t, selection), values)
    return t.transpose(y, _inverse(selection.order))


def _put_slices(t: Translator, x: Value, selection: _Selection, values: Value) -> Value:
    """One list of indices: what update_states_in_place makes a cache_update of."""
    axis, count, whole = selection.axes[0], selection.shape[0], list(t.shape(x))
    whole[axis] = count
    column = [count if i == axis else 1 for i in range(len(whole))]
    picks = t.op("expand", t.reshape(selection.indices[0], column), new_shape=whole)
    return t.op("scatter_elements", x, picks, t.expand(values, whole), axis=axis)


def _put_where(t: Translator, x: Value, first: int, mask: Value, values: Value, accumulate: bool) -> Value:
    """A mask over some dimensions; only one value can be put without counting the places."""
    if not is_same(t.shape(values), [1] * t.rank(values)):
        raise Unsupported("several values where a mask holds")
    if first != 0:
        raise Unsupported("a mask behind other dimensions")
    mask = t.reshape(mask, [*t.shape(mask), *[1] * (t.rank(x) - t.rank(mask))])
    value = t.reshape(values, [])
    return t.op("where", mask, t.op("add", x, value) if accumulate else value, x)


def _accumulated(t: Translator, x: Value, selection: _Selection, values: Value) -> Value:
    """All indexed dimensions as one, so that an index is one number."""
    shape, depth = known(t, x), len(selection.axes)
    row, count = product(shape[depth:]), product(selection.shape)
    place = None
    for size, numbers in zip(shape, selection.indices, strict=False):
        negative = t.op("lesser", numbers, t.scalar(0, "i64"))
        numbers = t.op("where", negative, t.op("add", numbers, t.scalar(size, "i64")), numbers)
        scaled = place if place is None else t.op("mul", place, t.scalar(size, "i64"))
        place = numbers if scaled is None else t.op("add", scaled, numbers)
    rows = t.op("expand", t.reshape(place, [count, 1]), new_shape=[count, row])
    flat, updates = t.reshape(x, [product(shape[:depth]), row]), t.reshape(values, [count, row])
    return t.reshape(t.op("scatter_reduce", flat, rows, updates, axis=0, reduction="sum"), shape)


# --- scattering ---------------------------------------------------------------------------------------


def _source(t: Translator, source: Any, indices: Value, dtype: str) -> Value:
    """A number for all indices, or the part of a tensor that has their shape."""
    shape = t.shape(indices)
    if not isinstance(source, torch.fx.Node):
        return t.filled(t.number(source), dtype, shape)
    updates = t.cast(t.value(source), dtype)
    for axis, size in enumerate(shape):
        updates = cut(t, updates, axis, 0, size)
    return updates


@lowers("aten.scatter.src", "aten.scatter.value")
def scatter(t: Translator, node: torch.fx.Node) -> Value:
    x, indices = t.value(node.args[0]), t.value(node.args[2])
    updates = _source(t, node.args[3], indices, t.dtype(x))
    return t.op("scatter_elements", x, indices, updates, axis=t.axis(x, node.args[1]))


@lowers("aten.scatter_add.default")
def scatter_add(t: Translator, node: torch.fx.Node) -> Value:
    x, indices = t.value(node.args[0]), t.value(node.args[2])
    updates = _source(t, node.args[3], indices, t.dtype(x))
    return t.op("scatter_reduce", x, indices, updates, axis=t.axis(x, node.args[1]), reduction="sum")


@lowers("aten.scatter_reduce.two")
def scatter_reduce(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    x, indices, how = t.value(a["self"]), t.value(a["index"]), a["reduce"]
    axis, dtype = t.axis(x, a["dim"]), t.dtype(x)
    is_mean, ones = how == "mean", _source(t, 1, indices, dtype)
    reduction = {"sum": "sum", "mean": "sum", "prod": "product", "amax": "max", "amin": "min"}[how]
    updates = _source(t, a["src"], indices, dtype)
    shape, touched = t.shape(x), None
    if not a["include_self"]:
        zeros = t.op("expand", t.scalar(0, dtype), new_shape=shape)
        touched = t.cast(t.op("scatter_elements", zeros, indices, ones, axis=axis), "bool")
        x = t.op("where", touched, t.scalar(_neutral(reduction, dtype), dtype), x)
    y = t.op("scatter_reduce", x, indices, updates, axis=axis, reduction=reduction)
    if not is_mean:
        return y
    if dtype not in ("f32", "f16", "bf16", "f64"):
        raise Unsupported("the mean of integers")
    start = t.op("expand", t.scalar(1, dtype), new_shape=shape)
    if touched is not None:
        start = t.op("where", touched, t.scalar(0, dtype), start)
    return t.op("div", y, t.op("scatter_reduce", start, indices, ones, axis=axis, reduction="sum"))


def _neutral(reduction: str, dtype: str) -> float | int:
    if reduction in ("sum", "product"):
        return 0 if reduction == "sum" else 1
    if dtype in ("f32", "f16", "bf16", "f64"):
        return float("-inf") if reduction == "max" else float("inf")
    limits = torch.iinfo(
        {"i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32}.get(dtype, torch.int64)
    )
    return limits.min if reduction == "max" else limits.max


@lowers("aten.masked_scatter.default")
def masked_scatter(t: Translator, node: torch.fx.Node) -> Value:
    """The k-th place where the mask holds takes the source's k-th element."""
    x, mask, source = (t.value(arg) for arg in node.args[:3])
    shape = known(t, x)
    if not is_same(t.shape(mask), shape):
        mask = t.op("expand", mask, new_shape=shape)
    flat = t.reshape(t.cast(mask, "i64"), [product(shape)])
    place = t.op("sub", t.op("cumulative_sum", flat, axis=0), t.scalar(1, "i64"))
    taken = t.op("gather", t.reshape(source, [product(known(t, source))]), place, axis=0)
    return t.op("where", t.cast(mask, "bool"), t.reshape(taken, shape), x)


# --- places that are known now ------------------------------------------------------------------------


@lowers("aten.diagonal_copy.default", "aten.diagonal.default")
def diagonal(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    x = t.value(a["self"])
    first, second = t.axis(x, a["dim1"]), t.axis(x, a["dim2"])
    rest = [i for i in range(t.rank(x)) if i not in (first, second)]
    x = t.transpose(x, [*rest, first, second])
    *leading, rows, columns = known(t, x)
    places = torch.arange(rows * columns).reshape(rows, columns).diagonal(a["offset"])
    flat = t.reshape(x, [*leading, rows * columns])
    return t.op("gather", flat, t.constant(places), axis=len(leading))


@lowers("aten.as_strided_copy.default", "aten.as_strided.default")
def as_strided(t: Translator, node: torch.fx.Node) -> Value:
    """Strides count elements of our operand, which is dense: views of other memory do not get here."""
    a = arguments(node)
    x = t.value(a["self"])
    sizes, strides = ([int(t.number(n)) for n in a[name]] for name in ("size", "stride"))
    places = torch.tensor(0 if a["storage_offset"] is None else int(t.number(a["storage_offset"])))
    for size, stride in zip(sizes, strides, strict=True):
        places = places[..., None] + torch.arange(size) * stride
    return t.op("gather", t.reshape(x, [product(known(t, x))]), t.constant(places), axis=0)


# --- bags of embeddings -------------------------------------------------------------------------------


@lowers("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(t: Translator, node: torch.fx.Node) -> list[Value | None]:
    """Each bag is a run of the indices: as a matrix of which index belongs to which bag."""
    a = arguments(node)
    weight, indices, offsets = (t.value(a[name]) for name in ("weight", "indices", "offsets"))
    (count,), (bags,), dtype = known(t, indices), known(t, offsets), t.dtype(weight)
    offsets = t.cast(offsets, "i64")
    if a["include_last_offset"]:
        bags -= 1
        starts, ends = cut(t, offsets, 0, 0, bags), cut(t, offsets, 0, 1, bags)
    else:
        last = t.constant(torch.tensor([count]))
        starts, ends = offsets, last
        if bags > 1:
            ends = t.ops("concat", [cut(t, offsets, 0, 1, bags - 1), last], axis=0)[0]
    place = t.constant(torch.arange(count))
    after, before = t.reshape(starts, [bags, 1]), t.reshape(ends, [bags, 1])
    belongs = t.op("logical_and", t.op("greater_or_equal", place, after), t.op("lesser", place, before))
    if a["padding_idx"] >= 0:
        padding = t.scalar(a["padding_idx"], t.dtype(indices))
        belongs = t.op("logical_and", belongs, t.op("not_equal", indices, padding))
    rows = t.op("gather", weight, indices, axis=0)
    if a["per_sample_weights"] is not None:
        rows = t.op("mul", rows, t.reshape(t.value(a["per_sample_weights"]), [count, 1]))
    member = t.cast(belongs, dtype)
    size = t.op("reduce_sum", member, axes=[1], keep_dimensions=True)
    if a["mode"] == 2:
        return [_largest_of_bags(t, rows, belongs, size), None, None, None]
    total = t.op("matmul", member, rows)
    if a["mode"] == 1:
        total = t.op("div", total, t.op("max", size, t.scalar(1, dtype)))
    return [total, None, None, None]


def _largest_of_bags(t: Translator, rows: Value, belongs: Value, size: Value) -> Value:
    dtype, (bags, count) = t.dtype(rows), t.shape(belongs)
    column = t.reshape(belongs, [bags, count, 1])
    largest = t.op("reduce_max", t.op("where", column, rows, t.scalar(float("-inf"), dtype)), axes=[1])
    return t.op("where", t.op("greater", size, t.scalar(0, dtype)), largest, t.scalar(0, dtype))
