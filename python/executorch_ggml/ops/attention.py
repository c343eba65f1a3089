"""Scaled dot-product attention, as products and a softmax."""

from __future__ import annotations

import math

import torch

from ..translate import Translator, Unsupported, Value, arguments, lowers


@lowers("aten.scaled_dot_product_attention.default")
def attention(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    if a["dropout_p"]:
        raise Unsupported("dropout")
    query, key, value = t.value(a["query"]), t.value(a["key"]), t.value(a["value"])
    if a["enable_gqa"]:
        key, value = _repeat_heads(t, query, key), _repeat_heads(t, query, value)
    rank, dtype = t.rank(key), t.dtype(query)
    width = t.shape(query)[-1]
    scale = 1 / math.sqrt(width) if a["scale"] is None else float(t.number(a["scale"]))
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    scores = t.op("matmul", t.op("mul", query, t.scalar(scale, dtype)), t.transpose(key, swapped))
    if a["is_causal"]:
        scores = t.op("add", scores, _causal_mask(t, scores))
    if a["attn_mask"] is not None:
        scores = _masked(t, scores, t.value(a["attn_mask"]))
    return t.op("matmul", t.op("softmax", scores, axis=t.rank(scores) - 1), value)


def _masked(t: Translator, scores: Value, mask: Value) -> Value:
    dtype = t.dtype(scores)
    if t.dtype(mask) == "bool":
        mask = t.op("where", mask, t.scalar(0.0, dtype), t.scalar(-math.inf, dtype))
    return t.op("add", scores, t.cast(mask, dtype))


def _causal_mask(t: Translator, scores: Value) -> Value:
    rows, columns = (t.positions(extent, "i32") for extent in t.shape(scores)[-2:])
    allowed = t.op("lesser_or_equal", columns, t.reshape(rows, [*t.shape(rows), 1]))
    return t.op(
        "where", t.cast(allowed, "bool"), t.scalar(0.0, t.dtype(scores)), t.scalar(-math.inf, t.dtype(scores))
    )


def _repeat_heads(t: Translator, query: Value, x: Value) -> Value:
    """[b, kv, s, d] with each head repeated for its group of query heads."""
    batch, heads, length, width = t.shape(x)
    query_heads = t.shape(query)[1]
    if query_heads == heads:
        return x
    groups = query_heads // heads
    x = t.op(
        "expand",
        t.reshape(x, [batch, heads, 1, length, width]),
        new_shape=[batch, heads, groups, length, width],
    )
    return t.reshape(x, [batch, query_heads, length, width])
