"""Attention as ONNX Runtime's optimisers and model builders fuse them."""

from __future__ import annotations

import math

import numpy as np

from ..graph import Dim, Extent, Graph, Operand, is_same, known
from ..numbers import checked
from ..registry import MICROSOFT, Node, invalid_if, reads, refuse_if
from .attention import rotated
from .linear_algebra import product_of
from .quantization import whole_product


def split_heads(g: Graph, x: Operand, heads: int, in_rows: bool = False) -> Operand:
    """[batch, steps, heads width] as [batch, heads, steps, width], or in rows [batch, steps, heads, width]"""
    batch, steps, width = g.shape(x)
    is_whole = isinstance(width, Extent) or width % max(heads, 1) == 0
    invalid_if(heads < 1 or not is_whole, f"{width} values do not divide into {heads} heads")
    apart = g.reshape(x, [batch, steps, heads, width // heads])
    return apart if in_rows else g.transpose(apart, [0, 2, 1, 3])


def _joined_heads(g: Graph, y: Operand) -> Operand:
    batch, heads, steps, width = g.shape(y)
    return g.reshape(g.transpose(y, [0, 2, 1, 3]), [batch, steps, heads * width])


def _plus(g: Graph, a: Operand | None, b: Operand | None) -> Operand | None:
    if a is None or b is None:
        return b if a is None else a
    return g.op("add", a, b)


def _shut(g: Graph, holds: Operand, value: float, dtype: str) -> Operand:
    """An addend of scores: 0 where the condition holds."""
    return g.op("where", holds, known(0.0, dtype), known(value, dtype))


def causal_bias(g: Graph, steps: Dim, past: Dim, dtype: str) -> Operand:
    """[1, 1, steps, past + steps]: a query sees the keys before it and its own."""
    rows = g.reshape(g.positions(steps), [steps, 1])
    if not is_same(past, 0):
        rows = g.op("add", rows, g.at_run_time(past, "i64"))
    columns = g.reshape(g.positions(past + steps), [1, past + steps])
    holds = g.op("lesser_or_equal", columns, rows)
    return g.reshape(_shut(g, holds, -math.inf, dtype), [1, 1, steps, past + steps])


def _key_bias(g: Graph, mask: Operand, batch: Dim, total: Dim, value: float, dtype: str) -> Operand:
    """Of a mask of 0 and 1 (of keys, or of queries and keys), or of the sequences' lengths and starts."""
    if g.rank(mask) == 1:
        return _length_bias(g, g.cast(mask, "i64"), batch, total, value, dtype)
    refuse_if(
        g.rank(mask) not in (2, 3),
        f"the mask has {g.rank(mask)} dimensions; lengths, masks of keys and of both sides are read",
        "Export the model with a mask of the shape [batch, keys] or [batch, queries, keys]",
    )
    sizes = g.shape(mask)
    holds = g.op("not_equal", mask, known(0, mask.dtype)) if mask.dtype != "bool" else mask
    shape = [sizes[0], 1, 1, sizes[1]] if len(sizes) == 2 else [sizes[0], 1, *sizes[1:]]
    return _shut(g, g.reshape(holds, shape), value, dtype)


def _length_bias(g: Graph, ends: Operand, batch: Dim, total: Dim, value: float, dtype: str) -> Operand:
    count = g.shape(ends)[0]
    has_starts = is_same(count, batch * 2) and not is_same(count, batch)
    refuse_if(
        not has_starts and not is_same(count, batch),
        f"the mask is {count} numbers for a batch of {batch}; lengths, or lengths and starts, are read",
        "Export the model with a mask of the shape [batch, keys]",
    )
    places = g.reshape(g.positions(total), [1, 1, 1, total])
    column = [batch, 1, 1, 1]
    holds = g.op("lesser", places, g.reshape(g.cut(ends, 0, 0, batch), column))
    if has_starts:
        starts = g.cut(ends, 0, g.fixed(batch, "the batch"), batch)
        after = g.op("greater_or_equal", places, g.reshape(starts, column))
        holds = g.op("logical_and", holds, after)
    return _shut(g, holds, value, dtype)


def attended(
    g: Graph,
    query: Operand,
    key: Operand,
    value: Operand,
    bias: Operand | None,
    node: Node,
    in_rows: bool = False,
) -> Operand:
    """[batch, steps, heads width] of operands as split_heads makes them; scale is the node's."""
    options = {"scale": float(node.get("scale"))} if node.get("scale", 0.0) else {}
    options |= {"causal": False, "heads_after_rows": in_rows}
    y = g.op("scaled_dot_product_attention", query, key, value, bias, **options)
    if not in_rows:
        return _joined_heads(g, y)
    batch, steps, heads, width = g.shape(y)
    return g.reshape(y, [batch, steps, heads * width])


def _with_past(
    g: Graph, key: Operand, value: Operand, past: tuple[Operand | None, Operand | None]
) -> list[Operand]:
    if past[0] is None or past[1] is None:
        return [key, value]
    return [g.concat([past[0], key], 2), g.concat([past[1], value], 2)]


# --- com.microsoft.Attention ------------------------------------------------------------------------------


def _self_attention(
    g: Graph, node: Node, projected: Operand, mask: Operand | None, past: Operand | None, bias: Operand | None
) -> list[Operand | None]:
    """Of the projections of queries, keys and values side by side."""
    for name in ("do_rotary", "past_present_share_buffer"):
        refuse_if(
            node.get(name, 0),
            f"{name} is {node.get(name)}; only 0 is read",
            "Export the model with rotary positions as operators and without shared buffers",
        )
    heads = int(node.get("num_heads", 0))
    width = g.fixed(g.shape(projected)[2], "the width of the projections")
    sizes = [int(n) for n in node.get("qkv_hidden_sizes") or [width // 3] * 3]
    invalid_if(sum(sizes) != width or len(sizes) != 3, f"the projections are {sizes} of a width of {width}")
    starts = [0, sizes[0], sizes[0] + sizes[1]]
    parts = [g.cut(projected, 2, start, size) for start, size in zip(starts, sizes, strict=True)]
    in_rows = past is None and not node.wants(1)  # heads stay behind rows unless they are joined or given out
    query, key, value = (split_heads(g, part, heads, in_rows) for part in parts)
    batch, steps, _ = g.shape(projected)
    before: Dim = 0
    if past is not None:
        before = g.shape(past)[3]
        old = [g.reshape(g.cut(past, 0, i, 1), g.shape(past)[1:]) for i in (0, 1)]
        key, value = _with_past(g, key, value, (old[0], old[1]))
    total = before + steps
    if mask is not None:
        low = float(node.get("mask_filter_value", -10000.0))
        bias = _plus(g, bias, _key_bias(g, mask, batch, total, low, query.dtype))
    if node.get("unidirectional", 0):
        bias = _plus(g, bias, causal_bias(g, steps, before, query.dtype))
    y = attended(g, query, key, value, bias, node, in_rows)
    if not node.wants(1):
        return [y]
    shape = [1, *g.shape(key)]
    return [y, g.concat([g.reshape(key, shape), g.reshape(value, shape)], 0)]


@reads("Attention", domain=MICROSOFT)
def contrib_attention(g: Graph, node: Node) -> list[Operand | None]:
    projected = product_of(g, node.x, node.operand(1))
    if node.optional(2) is not None:
        projected = g.op("add", projected, node.operand(2))
    refuse_if(node.optional(6) is not None, "input 6 is given, past_sequence_length, for shared buffers")
    return _self_attention(g, node, projected, node.optional(3), node.optional(4), node.optional(5))


@reads("QAttention", domain=MICROSOFT)
def quantised_attention(g: Graph, node: Node) -> list[Operand | None]:
    """The same with the projections of whole numbers."""
    total = whole_product(g, node.x, node.operand(1), node.optional(6), node.optional(7))
    scale = g.op("mul", g.reshape(node.operand(3), []), node.operand(4))
    scale = g.reshape(scale, []) if g.has_shape(scale, [1]) else scale
    projected = g.op("mul", g.cast(total, scale.dtype), scale)
    projected = g.op("add", projected, node.operand(2))
    return _self_attention(g, node, projected, node.optional(5), node.optional(8), None)


# --- MultiHeadAttention -----------------------------------------------------------------------------------


def _unpacked(g: Graph, x: Operand, count: int, in_rows: bool) -> list[Operand]:
    """[batch, steps, heads, count, width] as so many operands with their heads apart."""
    batch, steps, heads, packed, width = g.shape(x)
    invalid_if(packed != count, f"input {g.shape(x)} has {packed} operands packed, not {count}")
    parts = [g.reshape(g.cut(x, 3, i, 1), [batch, steps, heads, width]) for i in range(count)]
    return parts if in_rows else [g.transpose(part, [0, 2, 1, 3]) for part in parts]


def _operands(g: Graph, node: Node, heads: int, in_rows: bool) -> list[Operand]:
    """Queries, keys and values apart, with the biases of their projections."""
    query, key, value, bias = (node.optional(i) for i in range(4))
    if g.rank(query) == 5:
        refuse_if(bias is not None, "the operands are packed and have a bias", "Export the model without it")
        return _unpacked(g, query, 3, in_rows)
    invalid_if(key is None, "the keys (input 1) are missing, and the queries are not packed")
    biases: list[Operand | None] = [None, None, None]
    if bias is not None:
        width = g.fixed(g.shape(query)[2], "the width of the queries")
        last = g.fixed(g.shape(bias)[0], "the length of the bias") - 2 * width
        rows = ((0, width), (width, width), (2 * width, last))
        biases = [g.cut(bias, 0, start, size) for start, size in rows]
    first = split_heads(g, _plus(g, query, biases[0]), heads, in_rows)
    if g.rank(key) == 5:
        return [first, *_unpacked(g, key, 2, in_rows)]
    invalid_if(value is None, "the values (input 2) are missing, and the keys are not packed")
    if g.rank(key) == 4:
        return [first, key, value]
    rest = ((key, biases[1]), (value, biases[2]))
    return [first, *(split_heads(g, _plus(g, x, b), heads, in_rows) for x, b in rest)]


@reads("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(g: Graph, node: Node) -> list[Operand | None]:
    refuse_if(
        node.wants(3) or node.optional(8) is not None or node.optional(9) is not None,
        "it gives out the products (output 3), or has shared buffers or beams (inputs 8 and 9)",
        "Export the model without these, or run it with ONNX Runtime",
    )
    past, other = (node.optional(6), node.optional(7)), node.optional(1)
    is_given = past[0] is not None or (other is not None and g.rank(other) == 4)
    in_rows = not is_given and not (node.wants(1) or node.wants(2))
    query, key, value = _operands(g, node, int(node.get("num_heads", 0)), in_rows)
    before: Dim = 0 if past[0] is None else g.shape(past[0])[2]
    key, value = _with_past(g, key, value, past)
    batch, total = g.shape(query)[0], g.shape(key)[1 if in_rows else 2]
    bias = node.optional(5)
    if node.optional(4) is not None:
        low = float(node.get("mask_filter_value", -10000.0))
        bias = _plus(g, bias, _key_bias(g, node.operand(4), batch, total, low, query.dtype))
    if node.get("unidirectional", 0):
        steps = g.shape(query)[1 if in_rows else 2]
        bias = _plus(g, bias, causal_bias(g, steps, before, query.dtype))
    y = attended(g, query, key, value, bias, node, in_rows)
    return [y, key if node.wants(1) else None, value if node.wants(2) else None]


# --- GroupQueryAttention ----------------------------------------------------------------------------------


def _check_group_query(node: Node) -> None:
    kinds = {str(node.get(name, "NONE")) for name in ("k_quant_type", "v_quant_type")}
    refuse_if(
        kinds != {"NONE"} or node.get("sliding_window_cache", 0) or node.wants(3),
        "its cache is quantised or slides (k_quant_type, sliding_window_cache), or it gives out the products "
        "(output 3)",
        "Export the model with a cache of floats as long as the sequence, or run it with ONNX Runtime",
    )


def _grouped_operands(g: Graph, node: Node, heads: int, groups: int) -> list[Operand]:
    if node.optional(1) is not None:
        parts = ((node.x, heads), (node.operand(1), groups), (node.operand(2), groups))
        return [split_heads(g, x, n) for x, n in parts]
    width = g.fixed(g.shape(node.x)[2], "the width of the operands")
    each = width // (heads + 2 * groups)
    rows = ((0, heads), (heads, groups), (heads + groups, groups))
    return [split_heads(g, g.cut(node.x, 2, start * each, n * each), n) for start, n in rows]


def _extended(g: Graph, past: Operand | None, new: Operand, places: Operand) -> Operand:
    """The cache with the new rows behind each sequence's own."""
    if past is None:
        return new
    longer = g.concat([past, new], 2)
    if is_same(g.shape(new)[0], 1):
        return longer
    batch, groups, steps, width = g.shape(new)
    places = g.expand(g.reshape(places, [batch, 1, steps, 1]), [batch, groups, steps, width])
    return g.op("scatter_elements", longer, places, new, axis=2)


def _visible(g: Graph, node: Node, places: Operand, lengths: Operand, total: Dim, dtype: str) -> Operand:
    """[batch, 1, steps, total]: which keys a query sees, as an addend."""
    batch, steps = g.shape(places)
    keys = g.reshape(g.positions(total), [1, 1, 1, total])
    if not node.get("causal", 1):
        return _shut(g, g.op("lesser", keys, g.reshape(lengths, [batch, 1, 1, 1])), -math.inf, dtype)
    rows = g.reshape(places, [batch, 1, steps, 1])
    holds = g.op("lesser_or_equal", keys, rows)
    window = int(node.get("local_window_size", -1))
    if window > 0:
        near = g.op("greater", keys, g.plus(rows, -window))
        holds = g.op("logical_and", holds, near)
    return _shut(g, holds, -math.inf, dtype)


@reads("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(g: Graph, node: Node) -> list[Operand | None]:
    """Queries of a head and its group's keys; new keys and values go behind those of earlier steps."""
    _check_group_query(node)
    heads, groups = int(node.get("num_heads", 0)), int(node.get("kv_num_heads", 0))
    query, key, value = _grouped_operands(g, node, heads, groups)
    batch, _, steps, _ = g.shape(query)
    for weight in (13, 14):
        refuse_if(
            node.optional(weight + 1) is not None, f"input {weight + 1} is given, a norm of the operands"
        )
    lengths = g.plus(g.reshape(g.cast(node.operand(5), "i64"), [batch]), 1)
    before = g.op("max", g.op("sub", lengths, g.at_run_time(steps, "i64")), known(0, "i64"))
    places = g.op("add", g.reshape(before, [batch, 1]), g.reshape(g.positions(steps), [1, steps]))
    if node.get("do_rotary", 0):
        turned = places if node.optional(9) is None else g.cast(node.operand(9), "i64")
        turned = g.expand(turned, [batch, steps])
        tables = [g.op("gather", node.operand(i), turned, axis=0) for i in (7, 8)]
        way = bool(node.get("rotary_interleaved", 0))
        width = 2 * g.shape(tables[0])[2]
        query, key = (rotated(g, x, *tables, way, width) for x in (query, key))
    key, value = (_extended(g, node.optional(i), x, places) for i, x in ((3, key), (4, value)))
    bias = _visible(g, node, places, lengths, g.shape(key)[2], query.dtype)
    bias = _plus(g, bias, node.optional(10))
    if node.get("softcap", 0.0) or node.get("smooth_softmax", 0) or node.optional(11) is not None:
        y = _joined_heads(g, _by_parts(g, node, query, key, value, bias))
    else:
        y = attended(g, query, key, value, bias, node)
    return [y, key, value][: max(len(node.outputs), 1)]


def _by_parts(g: Graph, node: Node, query: Operand, key: Operand, value: Operand, bias: Operand) -> Operand:
    """With scores that are capped, or with a score of nothing beside those of the keys."""
    batch, heads, steps, width = g.shape(query)
    groups, total = g.shape(key)[1:3]
    scale = float(node.get("scale", 0.0)) or 1 / math.sqrt(g.fixed(width, "the width of a head"))
    rows = g.reshape(query, [batch, groups, heads // groups * steps, width])
    scores = g.times(g.op("matmul", rows, g.transpose(key, [0, 1, 3, 2])), scale)
    cap = float(node.get("softcap", 0.0))
    if cap:
        scores = g.times(g.op("tanh", g.times(scores, 1 / cap)), cap)
    scores = g.op("add", g.reshape(scores, [batch, heads, steps, total]), bias)
    if node.get("smooth_softmax", 0) or node.optional(11) is not None:
        sink = node.optional(11)
        sink = known(np.zeros(heads), scores.dtype) if sink is None else g.cast(sink, scores.dtype)
        sink = g.expand(g.reshape(sink, [1, heads, 1, 1]), [batch, heads, steps, 1])
        weights = g.op("softmax", g.concat([sink, scores], 3), axis=3)
        weights = g.cut(weights, 3, 1, total)
    else:
        weights = g.op("softmax", scores, axis=3)
    y = g.op("matmul", g.reshape(weights, [batch, groups, heads // groups * steps, total]), value)
    return g.reshape(y, [batch, heads, steps, g.shape(value)[3]])


# --- positions ----------------------------------------------------------------------------------------------


@reads("RotaryEmbedding", domain=MICROSOFT)
def contrib_rotary_embedding(g: Graph, node: Node) -> Operand:
    """The positions come second; one position is the first of a row of them."""
    x, positions, cos, sin = (node.operand(i) for i in range(4))
    for name in ("is_packed_batching",):
        refuse_if(node.get(name, 0), f"{name} is 1; only 0 is read, sequences side by side")
    width = int(node.get("rotary_embedding_dim", 0))
    is_flat = g.rank(x) == 3
    if is_flat:
        heads = int(node.get("num_heads", 0))
        if not heads:
            whole = g.fixed(g.shape(x)[2], "the width")
            heads = whole // (2 * g.fixed(g.shape(cos)[1], "the number of angles"))
        x = split_heads(g, x, heads)
    batch, _, steps, _ = g.shape(x)
    positions = g.cast(positions, "i64")
    if g.rank(positions) == 1:
        positions = g.op("add", g.reshape(positions, [1, 1]), g.reshape(g.positions(steps), [1, steps]))
    positions = checked(g, positions, "a position", 0, g.shape(cos)[0] - 1)
    positions = g.expand(positions, [batch, steps])
    tables = [g.op("gather", table, positions, axis=0) for table in (cos, sin)]
    y = rotated(g, x, *tables, bool(node.get("interleaved", 0)), width)
    y = g.times(y, float(node.get("scale", 1.0)))
    return _joined_heads(g, y) if is_flat else y
