"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, arguments, lowers


@lowers("aten.scaled_dot_product_attention.default")
def attention(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    if a["dropout_p"]:
        raise Unsupported("dropout")
    query, key, value = t.value(a["query"]), t.value(a["key"]), t.value(a["value"])
    key, value = (_like_query(t, query, x, a["enable_gqa"]) for x in (key, value))
    mask = None if a["attn_mask"] is None else _added(t, t.value(a["attn_mask"]), t.dtype(query))
    options: dict[str, Any] = {} if a["scale"] is None else {"scale": float(t.number(a["scale"]))}
    return t.op("scaled_dot_product_attention", query, key, value, mask, causal=a["is_causal"], **options)


def _added(t: Translator, mask: Value, dtype: str) -> Value:
    """A mask that is added to the scores; True means that a key takes part."""
    if t.dtype(mask) == "bool":
        return t.op("where", mask, t.scalar(0.0, dtype), t.scalar(-math.inf, dtype))
    return t.cast(mask, dtype)


def _like_query(t: Translator, query: Value, x: Value, grouped: bool) -> Value:
    """Batch extents and heads of 1 repeat; groups of heads are the op's own."""
    shape, own = t.shape(query)[:-2], t.shape(x)
    if len(own) != len(shape) + 2:
        raise Unsupported(f"keys of rank {len(own)} for queries of rank {len(shape) + 2}")
    if grouped and shape:
        shape = [*shape[:-1], own[-3]]
    wanted = [*shape, *own[-2:]]
    return t.expand(x, wanted)
