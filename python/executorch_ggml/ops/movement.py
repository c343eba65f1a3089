"""Ops that only move elements."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import Extent, Translator, Unsupported, Value, arguments, extents, lowers


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
    "aten.flatten.using_ints",
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
    counts = [int(t.number(n)) for n in node.args[1]]
    x = t.reshape(x, [1] * (len(counts) - t.rank(x)) + t.shape(x))
    return t.op("tile", x, repetitions=counts)


@lowers("aten.cat.default")
def cat(t: Translator, node: torch.fx.Node) -> Value:
    inputs = [t.value(x) for x in node.args[0]]
    dtype = t.dtype(inputs[0])
    if any(t.dtype(x) != dtype for x in inputs):
        raise Unsupported("operands of several dtypes")
    inputs = [x for x in inputs if t.shape(x) != [0]]
    return t.ops("concat", inputs, axis=t.axis(inputs[0], arguments(node)["dim"]))[0]


def _slice(t: Translator, x: Value, axis: int, start: int, count: Extent, step: int = 1) -> Value:
    shape = t.shape(x)
    starts, strides, sizes = [0] * len(shape), [1] * len(shape), list(shape)
    starts[axis], sizes[axis], strides[axis] = start, count, step
    return t.op("slice", x, starts=starts, sizes=sizes, strides=strides)


@lowers("aten.slice_copy.Tensor", "aten.slice.Tensor")
def slice_copy(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    a = arguments(node)
    axis, start, end, step = t.axis(x, a["dim"]), a["start"], a["end"], a["step"]
    size = t.shape(x)[axis]
    if (start in (None, 0)) and (end is None or end == 2**63 - 1) and step == 1:
        return x
    if not (isinstance(size, int) and isinstance(_output_shape(node)[axis], int)):
        return _slice_of_unknown(t, node, x, axis, 0 if start is None else int(t.number(start)), step)
    first, last, stride = slice(
        *(None if v is None else int(t.number(v)) for v in (start, end, step))
    ).indices(size)
    span = max(0, last - first)
    if not span:
        raise Unsupported("an empty slice")
    return _slice(t, x, axis, first, span, stride)


def _slice_of_unknown(
    t: Translator, node: torch.fx.Node, x: Value, axis: int, start: int, step: int
) -> Value:
    """ATen's own shape says how long the part is."""
    count = _output_shape(node)[axis]
    if t.number(step) != 1:
        raise Unsupported("every so many elements of an unknown extent")
    if start >= 0:
        return _slice(t, x, axis, start, count)
    if not isinstance(count, int):
        raise Unsupported("a part of unknown extent that is counted from the end")
    return t.op("gather", x, t.constant(torch.arange(start, start + count)), axis=axis)


@lowers("aten.select_copy.int", "aten.select.int")
def select(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    axis = t.axis(x, node.args[1])
    size, index = t.shape(x)[axis], int(t.number(node.args[2]))
    if not isinstance(size, int):  # gather counts negative indices from the end
        return t.op("gather", x, t.scalar(index, "i64"), axis=axis)
    part = _slice(t, x, axis, index % size, 1)
    return t.reshape(part, [d for i, d in enumerate(t.shape(part)) if i != axis])


@lowers("aten.split_with_sizes_copy.default", "aten.split_with_sizes.default")
def split(t: Translator, node: torch.fx.Node) -> list[Value]:
    x = t.value(node.args[0])
    axis = t.axis(x, arguments(node)["dim"])
    return t.ops("split", [x], splits=[int(t.number(n)) for n in node.args[1]], axis=axis)


@lowers("aten.flip.default")
def flip(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    return t.op("reverse", x, axes=[t.axis(x, dim) for dim in node.args[1]])


@lowers("aten.constant_pad_nd.default")
def pad(t: Translator, node: torch.fx.Node) -> Value:
    return _pad(t, node, "constant", value=t.number(arguments(node)["value"]))


@lowers("aten.reflection_pad1d.default", "aten.reflection_pad2d.default")
def reflection_pad(t: Translator, node: torch.fx.Node) -> Value:
    return _pad(t, node, "reflection")


@lowers("aten.replication_pad2d.default", "aten.replication_pad3d.default")
def replication_pad(t: Translator, node: torch.fx.Node) -> Value:
    return _pad(t, node, "edge")


def _pad(t: Translator, node: torch.fx.Node, mode: str, **options: Any) -> Value:
    x, amounts = t.value(node.args[0]), [int(t.number(n)) for n in node.args[1]]
    if min(amounts, default=0) < 0:
        raise Unsupported("negative padding")
    begin, end = [0] * t.rank(x), [0] * t.rank(x)
    for i in range(len(amounts) // 2):  # from the last dimension on
        begin[-1 - i], end[-1 - i] = amounts[2 * i], amounts[2 * i + 1]
    return t.op("pad", x, beginning_padding=begin, ending_padding=end, mode=mode, **options)


def _replaced(t: Translator, x: Value, part: Value, axis: int, start: int, end: int) -> Value:
    """x with [start, end) along an axis taken from part."""
    size = t.shape(x)[axis]
    if not isinstance(size, int):
        raise Unsupported("a replacement along an unknown extent")
    pieces = []
    if start > 0:
        pieces.append(_slice(t, x, axis, 0, start))
    pieces.append(part)
    if end < size:
        pieces.append(_slice(t, x, axis, end, size - end))
    return pieces[0] if len(pieces) == 1 else t.ops("concat", pieces, axis=axis)[0]


@lowers("aten.select_scatter.default")
def select_scatter(t: Translator, node: torch.fx.Node) -> Value:
    x, part = t.value(node.args[0]), t.value(node.args[1])
    axis, index = t.axis(x, node.args[2]), int(t.number(node.args[3]))
    shape = t.shape(x)
    if not isinstance(shape[axis], int):
        raise Unsupported("a replacement along an unknown extent")
    index %= shape[axis]
    part = t.reshape(t.cast(part, t.dtype(x)), [1 if i == axis else d for i, d in enumerate(shape)])
    return _replaced(t, x, part, axis, index, index + 1)


@lowers("aten.slice_scatter.default")
def slice_scatter(t: Translator, node: torch.fx.Node) -> Value:
    x, part = t.value(node.args[0]), t.value(node.args[1])
    a = arguments(node)
    axis, start, end = t.axis(x, a["dim"]), a["start"], a["end"]
    size = t.shape(x)[axis]
    if a["step"] != 1 or not isinstance(size, int):
        raise Unsupported("a replacement with steps or along an unknown extent")
    first, last, _ = slice(*(None if v is None else int(t.number(v)) for v in (start, end))).indices(size)
    return x if last <= first else _replaced(t, x, t.cast(part, t.dtype(x)), axis, first, last)
