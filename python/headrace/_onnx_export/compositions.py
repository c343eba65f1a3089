"""What low-power contexts recognise in a graph and run as one kernel, written out again."""

from __future__ import annotations

import math

from .linear_algebra import activated
from .registry import REAL, Node, lowers
from .writer import Dim, Writer


@lowers("rms_norm", through=REAL, operands=2)
def rms_norm(w: Writer, n: Node) -> str:
    axes = list(range(-n.attributes["dimensions"], 0))
    mean = w.node("ReduceMean", [w.node("Mul", [n.x, n.x]), w.ints(axes)], keepdims=1)
    raised = w.node("Add", [mean, w.constant(n.attributes["epsilon"], n.dtype)])
    y = w.node("Div", [n.x, w.node("Sqrt", [raised])])
    return w.node("Mul", [y, n.inputs[1]]) if n.inputs[1] else y


@lowers("glu", through=REAL)
def glu(w: Writer, n: Node) -> str:
    return w.node("Mul", [activated(w, n.x, n.attributes["activation"]), n.inputs[1]])


@lowers("rotary_embedding", through=REAL)
def rotary_embedding(w: Writer, n: Node) -> str:
    x, cos, sin = n.inputs
    *outer, width = n.shape
    half = n.fixed(width, "the last extent") // 2
    is_interleaved = n.attributes["interleaved"]
    split = [*outer, half, 2] if is_interleaved else [*outer, 2, half]
    axis = len(outer) + int(is_interleaved)
    pairs = w.reshape(x, split)
    first, second = w.slice(pairs, 0, 1, axis), w.slice(pairs, 1, 2, axis)
    turned = w.reshape(w.node("Concat", [w.node("Neg", [second]), first], axis=axis), n.shape)
    return w.node("Add", [w.node("Mul", [x, cos]), w.node("Mul", [turned, sin])])


@lowers("scaled_dot_product_attention", through=REAL, operands=4)
def attention(w: Writer, n: Node) -> str:
    rank, width = len(n.shape), n.fixed(n.shape[-1], "the width of a head")
    scale = n.attributes.get("scale")
    query, key, value = (_by_head(w, n, i) for i in range(3))
    key, value = (_of_every_head(w, n, x, i) for i, x in ((1, key), (2, value)))
    turned = w.transpose(key, [*range(rank - 2), rank - 1, rank - 2])
    factor = w.constant(1 / math.sqrt(width) if scale is None else scale, n.dtype)
    scores = w.node("Mul", [w.node("MatMul", [query, turned]), factor])
    lowest = w.constant(-math.inf, n.dtype)
    if n.inputs[3]:
        scores = w.node("Add", [scores, n.inputs[3]])
    if n.attributes["causal"]:
        extents = w.extents([_head_shape(n, i)[-2] for i in range(2)])
        ones = w.node("Expand", [w.constant(1, "int32"), extents])
        seen = w.cast(w.node("Trilu", [ones], upper=0), "bool")
        scores = w.where(seen, scores, lowest)
    chances = w.node("Softmax", [scores], axis=-1)
    if n.attributes["zero_if_masked"]:
        largest = w.node("ReduceMax", [scores, w.ints([-1])], keepdims=1)
        chances = w.where(w.node("Equal", [largest, lowest]), w.constant(0, n.dtype), chances)
    return _exchanged(w, n, w.node("MatMul", [chances, value]))


def _exchanged(w: Writer, n: Node, x: str) -> str:
    """Heads and rows exchanged, where they lie the other way round."""
    if not n.attributes["heads_after_rows"]:
        return x
    rank = len(n.shape)
    return w.transpose(x, [*range(rank - 3), rank - 2, rank - 3, rank - 1])


def _by_head(w: Writer, n: Node, i: int) -> str:
    x = n.inputs[i]
    assert x is not None
    return _exchanged(w, n, x)


def _head_shape(n: Node, i: int) -> list[Dim]:
    """The shape of operand i as [..., heads, rows, width], or without heads."""
    shape = n.shapes[i]
    assert shape is not None
    if not n.attributes["heads_after_rows"]:
        return list(shape)
    return [*shape[:-3], shape[-2], shape[-3], shape[-1]]


def _of_every_head(w: Writer, n: Node, x: str, i: int) -> str:
    """Keys or values, each repeated for the query's heads that share it."""
    shape = _head_shape(n, i)
    heads: list[Dim] = [s[-3] for s in (_head_shape(n, 0), shape) if len(s) > 2]
    if len(set(heads)) < 2:
        return x
    query_heads, own = (n.fixed(count, "the number of heads") for count in heads)
    counts = [1] * (len(shape) + 1)
    counts[-3] = query_heads // own
    tiled = w.node("Tile", [w.unsqueeze(x, [len(shape) - 2]), w.ints(counts)])
    return w.reshape(tiled, [*shape[:-3], query_heads, *shape[-2:]])
