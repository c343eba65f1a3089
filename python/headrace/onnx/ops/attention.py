"""Attention and rotary positions."""

from __future__ import annotations

import math

from ..graph import Extent, Graph, Operand, known
from ..numbers import checked
from ..registry import AS_DEFINED, AsDefined, Node, invalid_if, reads


@reads("Attention")
def attention(g: Graph, node: Node) -> list[Operand | None] | AsDefined:
    """softmax(scale Q K^T + mask) V, with grouped heads and keys and values of earlier steps."""
    if _needs_parts(node):
        return AS_DEFINED
    query, key, value = node.x, node.operand(1), node.operand(2)
    is_flat = g.rank(query) == 3
    # Heads stay after rows, as flat operands have them, unless they are joined or given out apart.
    in_rows = is_flat and node.optional(4) is None and not (node.wants(1) or node.wants(2))
    if is_flat:
        for name in ("q_num_heads", "kv_num_heads"):
            invalid_if(name not in node.attributes, f"{name} is missing, and the input has 3 dimensions")
        heads, groups = int(node.get("q_num_heads")), int(node.get("kv_num_heads"))
        parts = ((query, heads), (key, groups), (value, groups))
        query, key, value = (_split(g, x, n) if in_rows else _heads(g, x, n) for x, n in parts)
    if node.optional(4) is not None:
        key, value = g.concat([node.operand(4), key], 2), g.concat([node.operand(5), value], 2)
    mask = node.optional(3)
    if mask is not None and mask.dtype == "bool":
        mask = g.op("where", mask, known(0.0, query.dtype), known(-math.inf, query.dtype))
    causal = bool(node.get("is_causal", 0))
    options = {"causal": causal, "heads_after_rows": in_rows}
    if node.get("scale"):
        options["scale"] = float(node.get("scale"))
    if mask is not None and g.rank(mask) < 2:
        mask = g.reshape(mask, [1, *g.shape(mask)])
    y = g.op("scaled_dot_product_attention", query, key, value, mask, **options)
    if is_flat:
        y = y if in_rows else g.transpose(y, [0, 2, 1, 3])
        batch, steps, heads, width = g.shape(y)
        y = g.reshape(y, [batch, steps, heads * width])
    return [y, key if node.wants(1) else None, value if node.wants(2) else None]


def _needs_parts(node: Node) -> bool:
    """Whether there is more to it than the catalog's op does."""
    is_windowed = any(node.get(name, -1) >= 0 for name in ("left_window_size", "right_window_size"))
    is_offset = bool(node.get("is_causal", 0)) and node.optional(4) is not None
    counts_keys = node.optional(6) is not None
    return node.wants(3) or counts_keys or bool(node.get("softcap", 0.0)) or is_windowed or is_offset


def _split(g: Graph, x: Operand, heads: int) -> Operand:
    """[batch, steps, heads width] as [batch, steps, heads, width]"""
    batch, steps, width = g.shape(x)
    is_whole = isinstance(width, Extent) or width % max(heads, 1) == 0
    invalid_if(heads < 1 or not is_whole, f"{width} values do not divide into {heads} heads")
    return g.reshape(x, [batch, steps, heads, width // heads])


def _heads(g: Graph, x: Operand, heads: int) -> Operand:
    """[batch, steps, heads width] as [batch, heads, steps, width]"""
    return g.transpose(_split(g, x, heads), [0, 2, 1, 3])


@reads("RotaryEmbedding")
def rotary_embedding(g: Graph, node: Node) -> Operand:
    """Rotates pairs of values by angles of their positions."""
    x, cos, sin, positions = node.x, node.operand(1), node.operand(2), node.optional(3)
    is_flat = g.rank(x) == 3
    if is_flat:
        invalid_if(not node.get("num_heads", 0), "num_heads is missing, and the input has 3 dimensions")
        x = _heads(g, x, int(node.get("num_heads")))
    if positions is not None:
        positions = checked(g, g.cast(positions, "i64"), "a position", 0, g.shape(cos)[0] - 1)
        cos, sin = (g.op("gather", table, positions, axis=0) for table in (cos, sin))
    y = rotated(g, x, cos, sin, bool(node.get("interleaved", 0)), int(node.get("rotary_embedding_dim", 0)))
    if not is_flat:
        return y
    batch, heads, steps, width = g.shape(y)
    return g.reshape(g.transpose(y, [0, 2, 1, 3]), [batch, steps, heads * width])


def rotated(g: Graph, x: Operand, cos: Operand, sin: Operand, interleaved: bool, width: int) -> Operand:
    """x [batch, heads, steps, width]; cos and sin [batch, steps, half the rotated width]."""
    whole = g.shape(x)[-1]
    width = width or whole
    tables = []
    for table in (cos, sin):
        batch, steps, half = g.shape(table)
        table = g.reshape(table, [batch, 1, steps, half, 1] if interleaved else [batch, 1, steps, half])
        wide = g.concat([table, table], g.rank(table) - 1)
        tables.append(g.reshape(wide, [batch, 1, steps, 2 * half]))
    part = g.cut(x, 3, 0, width)
    y = g.op("rotary_embedding", part, *(_like(g, t, part) for t in tables), interleaved=interleaved)
    return y if width == whole else g.concat([y, g.cut(x, 3, width, whole - width)], 3)


def _like(g: Graph, table: Operand, x: Operand) -> Operand:
    return g.cast(table, x.dtype)
