"""Ops that only move elements."""

from __future__ import annotations

import math
from typing import Any

import torch
from headrace._core import Extent

from ..translate import (
    UNBOUNDED,
    Dim,
    Translator,
    Unsupported,
    Value,
    arguments,
    dtype_name,
    extent,
    extents,
    is_same,
    lowers,
    merged,
)


def _output_shape(node: torch.fx.Node) -> list[Any]:
    return extents(node.meta["val"].shape)


@lowers(
    "aten.clone.default",
    "aten.alias_copy.default",
    "aten.alias.default",
    "aten.detach.default",
    "aten.detach_copy.default",
    "aten.lift_fresh_copy.default",
    "aten.contiguous.default",
    "aten._to_copy.default",
    "aten.to.dtype",
    "dim_order_ops._clone_dim_order.default",
    "dim_order_ops._to_dim_order_copy.default",
)
def same(t: Translator, node: torch.fx.Node) -> Value:
    """Our tensors are dense and row-major; a change of dtype shows in the result's type."""
    order = node.kwargs.get("dim_order")
    if order is not None and list(order) != sorted(order):
        raise Unsupported(f"dim order {order}")
    return t.value(node.args[0])


@lowers(
    "aten.view_copy.default",
    "aten.view.default",
    "aten._unsafe_view.default",
    "aten.reshape.default",
    "aten.unsqueeze_copy.default",
    "aten.unsqueeze.default",
    "aten.squeeze_copy.dims",
    "aten.squeeze_copy.dim",
    "aten.squeeze.dims",
    "aten.squeeze.dim",
    "aten.squeeze.default",
    "aten.squeeze_copy.default",
    "aten.flatten.using_ints",
    "aten.unflatten.int",
)
def reshape(t: Translator, node: torch.fx.Node) -> Value:
    return t.reshape(t.value(node.args[0]), _output_shape(node))


@lowers("aten.permute_copy.default", "aten.permute.default")
def permute(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    return t.transpose(x, [t.axis(x, dim) for dim in node.args[1]])


@lowers("aten.transpose_copy.int", "aten.transpose.int")
def transpose(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    order = list(range(t.rank(x)))
    a, b = (t.axis(x, dim) for dim in node.args[1:3])
    order[a], order[b] = order[b], order[a]
    return t.transpose(x, order)


@lowers("aten.t_copy.default", "aten.t.default")
def matrix_transpose(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    return t.transpose(x, [1, 0]) if t.rank(x) == 2 else x


@lowers("aten.expand_copy.default", "aten.expand.default")
def expand(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("expand", t.value(node.args[0]), new_shape=_output_shape(node))


@lowers("aten.repeat.default")
def repeat(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    counts = [t.extent(n) for n in node.args[1]]
    x = t.reshape(x, [1] * (len(counts) - t.rank(x)) + t.shape(x))
    return t.op("tile", x, repetitions=counts)


@lowers("aten.cat.default")
def cat(t: Translator, node: torch.fx.Node) -> Value:
    dtype = dtype_name(node.meta["val"].dtype)
    inputs = [t.cast(t.value(x), dtype) for x in node.args[0]]
    inputs = [x for x in inputs if not is_same(t.shape(x), [0])]  # which PyTorch allows beside any rank
    return t.ops("concat", inputs, axis=t.axis(inputs[0], arguments(node)["dim"]))[0]


def cut(t: Translator, x: Value, axis: int, start: Dim, count: Dim, step: int = 1) -> Value:
    """Every step-th element of [start, start + count) along an axis."""
    sizes = t.shape(x)
    starts, strides = [0] * len(sizes), [1] * len(sizes)
    starts[axis], sizes[axis], strides[axis] = start, count, step
    return (
        x
        if is_same([start], [0]) and step == 1 and is_same(sizes, t.shape(x))
        else t.op("slice", x, starts=starts, sizes=sizes, strides=strides)
    )


@lowers("aten.slice_copy.Tensor", "aten.slice.Tensor")
def slice_copy(t: Translator, node: torch.fx.Node) -> Value:
    x, a = t.value(node.args[0]), arguments(node)
    axis, step = t.axis(x, a["dim"]), a["step"]
    size, wanted = t.shape(x)[axis], extent(node.meta["val"].shape[t.axis(x, a["dim"])])
    if is_same([wanted], [size]) and step == 1:
        return x
    if is_same([wanted], [0]):
        return cut(t, x, axis, 0, 0)
    start = 0 if a["start"] is None else t.extent(a["start"])
    if is_negative(start):
        start = start + size
    if isinstance(size, int) and isinstance(start, int):
        start = min(max(start, 0), size)
    return cut(t, x, axis, start, wanted if step == 1 else (wanted - 1) * step + 1, step)


@lowers("aten.select_copy.int", "aten.select.int")
def select(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    axis = t.axis(x, node.args[1])
    size, index = t.shape(x)[axis], t.extent(node.args[2])
    part = cut(t, x, axis, index + size if is_negative(index) else index, 1)
    return t.reshape(part, [d for i, d in enumerate(t.shape(part)) if i != axis])


@lowers("aten.split_with_sizes_copy.default", "aten.split_with_sizes.default")
def split(t: Translator, node: torch.fx.Node) -> list[Value]:
    x = t.value(node.args[0])
    axis = t.axis(x, arguments(node)["dim"])
    return t.ops("split", [x], splits=[t.extent(n) for n in node.args[1]], axis=axis)


@lowers("aten.flip.default")
def flip(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    return t.op("reverse", x, axes=[t.axis(x, dim) for dim in node.args[1]])


@lowers("aten.unbind_copy.int", "aten.unbind.int")
def unbind(t: Translator, node: torch.fx.Node) -> list[Value]:
    x = t.value(node.args[0])
    axis = t.axis(x, arguments(node)["dim"])
    parts = t.ops("split", [x], splits=[1] * len(node.meta["val"]), axis=axis)
    return [t.reshape(part, [d for i, d in enumerate(t.shape(part)) if i != axis]) for part in parts]


@lowers("aten.pixel_shuffle.default")
def pixel_shuffle(t: Translator, node: torch.fx.Node) -> Value:
    """[..., c r r, h, w] as [..., c, h r, w r]"""
    x, r = t.value(node.args[0]), int(node.args[1])
    *batch, channels, height, width = t.shape(x)
    x = t.reshape(x, [merged(batch), channels // (r * r), r, r, height, width])
    return t.reshape(t.transpose(x, [0, 1, 4, 2, 5, 3]), _output_shape(node))


@lowers("aten.pixel_unshuffle.default")
def pixel_unshuffle(t: Translator, node: torch.fx.Node) -> Value:
    """[..., c, h r, w r] as [..., c r r, h, w]"""
    x, r = t.value(node.args[0]), int(node.args[1])
    *batch, channels, height, width = t.shape(x)
    x = t.reshape(x, [merged(batch), channels, height // r, r, width // r, r])
    return t.reshape(t.transpose(x, [0, 1, 3, 5, 2, 4]), _output_shape(node))


def known(t: Translator, x: Value) -> list[int]:
    shape = t.shape(x)
    if not all(isinstance(d, int) for d in shape):
        raise Unsupported("unknown extents")
    return shape


def product(sizes: list[Any]) -> int:
    """The product of extents that are known."""
    if not all(isinstance(size, int) for size in sizes):
        raise Unsupported("unknown extents become one")
    return math.prod(sizes)


def _replaced(t: Translator, x: Value, part: Value, axis: int, start: Dim, end: Dim) -> Value:
    """x with [start, end) along an axis taken from part."""
    size = t.shape(x)[axis]
    pieces = []
    if not is_same([start], [0]):
        pieces.append(cut(t, x, axis, 0, start))
    pieces.append(part)
    if not is_same([end], [size]):
        pieces.append(cut(t, x, axis, end, size - end))
    return pieces[0] if len(pieces) == 1 else t.ops("concat", pieces, axis=axis)[0]


@lowers("aten.select_scatter.default")
def select_scatter(t: Translator, node: torch.fx.Node) -> Value:
    x, part = t.value(node.args[0]), t.value(node.args[1])
    axis, index = t.axis(x, node.args[2]), t.extent(node.args[3])
    shape = t.shape(x)
    index = index + shape[axis] if is_negative(index) else index
    part = t.reshape(t.cast(part, t.dtype(x)), [1 if i == axis else d for i, d in enumerate(shape)])
    return _replaced(t, x, part, axis, index, index + 1)


def is_negative(place: Dim) -> bool:
    """Whether it is counted from the end, as far as that is known."""
    return place.is_less(0) is True if isinstance(place, Extent) else place < 0


def _slice_of_open_extent(t: Translator, x: Value, part: Value, axis: int, where: tuple) -> Value:
    size, (start, end, step) = t.shape(x)[axis], where
    if step != 1:
        raise Unsupported("a replacement in steps along an unknown extent")
    first, last = 0 if start is None else t.extent(start), size if end is None else t.extent(end)
    if isinstance(last, int) and last >= UNBOUNDED:
        last = size
    first, last = (size + place if is_negative(place) else place for place in (first, last))
    return _replaced(t, x, t.cast(part, t.dtype(x)), axis, first, last)


@lowers("aten.slice_scatter.default")
def slice_scatter(t: Translator, node: torch.fx.Node) -> Value:
    x, part = t.value(node.args[0]), t.value(node.args[1])
    a = arguments(node)
    axis, start, end, step = t.axis(x, a["dim"]), a["start"], a["end"], a["step"]
    size = t.shape(x)[axis]
    if not isinstance(size, int):
        return _slice_of_open_extent(t, x, part, axis, (start, end, step))
    first, last, _ = slice(*(None if v is None else int(t.number(v)) for v in (start, end))).indices(size)
    part = t.cast(part, t.dtype(x))
    if last <= first:
        return x
    if step == 1:
        return _replaced(t, x, part, axis, first, last)
    # each element is the old one or one of the part's, put one after the other
    source = list(range(size))
    for i, place in enumerate(range(first, last, step)):
        source[place] = size + i
    both = t.ops("concat", [x, part], axis=axis)[0]
    return t.op("gather", both, t.constant(torch.tensor(source)), axis=axis)
