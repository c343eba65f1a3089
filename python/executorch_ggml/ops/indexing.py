"""Lookups by index."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import Extent, Translator, Unsupported, Value, arguments, extents, lowers


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


def _index_tensors(t: Translator, arg: list[Any]) -> tuple[list[int], list[Value]]:
    """The dimensions that are indexed, and by what."""
    axes = [i for i, tensor in enumerate(arg) if tensor is not None]
    tensors = [t.value(arg[i]) for i in axes]
    if any(t.dtype(tensor) not in ("i32", "i64") for tensor in tensors):
        raise Unsupported("a mask as index")
    return axes, tensors


def _tuples(t: Translator, axes: list[int], tensors: list[Value], shape: list[Extent]) -> Value:
    """Index tensors, broadcast to a shape, as one of tuples."""
    if axes != list(range(len(axes))):
        raise Unsupported(f"several index tensors, in dimensions {axes}")
    columns = []
    for tensor in tensors:
        columns.append(t.reshape(_broadcast(t, t.cast(tensor, "i64"), shape), [*shape, 1]))
    return t.ops("concat", columns, axis=len(shape))[0]


@lowers("aten.index.Tensor")
def index(t: Translator, node: torch.fx.Node) -> Value:
    """Index tensors along one dimension, or along the first ones."""
    x = t.value(node.args[0])
    axes, tensors = _index_tensors(t, node.args[1])
    if len(axes) == 1:
        return t.op("gather", x, tensors[0], axis=axes[0])
    kept = t.rank(x) - len(axes)
    common = extents(node.meta["val"].shape)
    return t.op("gather_nd", x, _tuples(t, axes, tensors, common[: len(common) - kept]))


@lowers("aten.index_put.default")
def index_put(t: Translator, node: torch.fx.Node) -> Value:
    """A copy of the tensor with values at index tensors along one dimension, or along the first ones."""
    a = arguments(node)
    x, values = t.value(a["self"]), t.value(a["values"])
    if a["accumulate"]:
        raise Unsupported("adding at indices")
    axes, tensors = _index_tensors(t, a["indices"])
    shape, places = t.shape(x), extents(_broadcast_shape(a["indices"]))
    if len(axes) == 1 and len(places) == 1:
        axis, whole = axes[0], list(shape)
        whole[axis] = places[0]
        column = [places[0] if i == axis else 1 for i in range(len(shape))]
        picks = t.op("expand", t.reshape(tensors[0], column), new_shape=whole)
        return t.op("scatter_elements", x, picks, _broadcast(t, values, whole), axis=axis)
    updates = _broadcast(t, values, [*places, *shape[len(axes) :]])
    return t.op("scatter_nd", x, _tuples(t, axes, tensors, places), updates)


def _broadcast_shape(indices: list[Any]) -> torch.Size:
    return torch.broadcast_shapes(*(tensor.meta["val"].shape for tensor in indices if tensor is not None))


def _broadcast(t: Translator, x: Value, shape: list[Extent]) -> Value:
    return x if t.shape(x) == shape else t.op("expand", x, new_shape=shape)


@lowers("aten.scatter.src", "aten.scatter.value")
def scatter(t: Translator, node: torch.fx.Node) -> Value:
    """src has the shape of the indices here; ATen also takes larger ones."""
    x, indices = t.value(node.args[0]), t.value(node.args[2])
    if "value" in str(node.target):
        scalar = t.scalar(t.number(node.args[3]), t.dtype(x))
        updates = t.op("expand", scalar, new_shape=t.shape(indices))
    else:
        updates = t.value(node.args[3])
        if t.shape(updates) != t.shape(indices):
            raise Unsupported("updates that are larger than the indices")
    return t.op("scatter_elements", x, indices, updates, axis=t.axis(x, node.args[1]))
