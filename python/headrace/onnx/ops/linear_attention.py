"""Attention whose memory is one matrix for each head, step by step."""

from __future__ import annotations

import math

from ..graph import Graph, Operand, known
from ..registry import AS_DEFINED, AsDefined, Node, invalid_if, reads

_RULES = ("linear", "gated", "delta", "gated_delta")
_MOST_STEPS = 256  # that are laid out one after the other


def _by_heads(g: Graph, x: Operand, heads: int) -> Operand:
    """[batch, steps, heads width] as [batch, heads, steps, width], f32"""
    batch, steps, width = g.shape(x)
    width = g.fixed(width, "the width")
    invalid_if(heads < 1 or width % heads, f"{width} values do not divide into {heads} heads")
    return g.transpose(g.reshape(g.cast(x, "f32"), [batch, steps, heads, width // heads]), [0, 2, 1, 3])


@reads("LinearAttention")
def linear_attention(g: Graph, node: Node) -> list[Operand] | AsDefined:
    """Of known numbers of steps; a loop has to do others."""
    query, key, value, past, decay, beta = (node.optional(i) for i in range(6))
    rule = node.get("update_rule", "gated_delta")
    invalid_if(rule not in _RULES, f"update_rule is '{rule}'; {', '.join(_RULES)} are ONNX's")
    steps = g.shape(query)[1]
    if not isinstance(steps, int) or steps > _MOST_STEPS:
        return AS_DEFINED
    heads, groups = int(node.get("q_num_heads")), int(node.get("kv_num_heads"))
    q, k, v = (_by_heads(g, x, n) for x, n in ((query, heads), (key, groups), (value, groups)))
    batch, width, inner = g.shape(q)[0], g.shape(k)[3], g.shape(v)[3]
    scale = float(node.get("scale", 0.0)) or 1 / math.sqrt(g.fixed(width, "the width of a head"))
    state = known(0.0, "f32") if past is None else g.cast(past, "f32")
    state = g.expand(state, [batch, groups, width, inner])
    gate = _by_heads(g, decay, groups) if rule.startswith("gated") and decay is not None else None
    rate = beta if rule.endswith("delta") else None
    if rate is not None:
        rate = _by_heads(g, rate, groups if g.shape(rate)[2] != 1 else 1)
    rows = []
    for step in range(steps):
        one = [None if x is None else g.cut(x, 2, step, 1) for x in (q, k, v, gate, rate)]
        state, row = _step(g, state, one, heads // groups)
        rows.append(g.times(row, scale))
    y = g.transpose(g.concat(rows, 2), [0, 2, 1, 3])
    y = g.cast(g.reshape(y, [batch, steps, heads * inner]), query.dtype)
    return [y, g.cast(state, query.dtype if past is None else past.dtype)][: max(len(node.outputs), 1)]


def _step(g: Graph, state: Operand, one: list[Operand | None], each: int) -> tuple[Operand, Operand]:
    """The state [batch, groups, width, inner] after a step, and what is read: [batch, heads, 1, inner]."""
    q, k, v, gate, rate = one
    if gate is not None:  # of a group, or of each of its rows
        state = g.op("mul", state, g.transpose(g.op("exp", gate), [0, 1, 3, 2]))
    if rate is not None:
        v = g.op("mul", g.op("sub", v, g.op("matmul", k, state)), rate)
    state = g.op("add", state, g.op("matmul", g.transpose(k, [0, 1, 3, 2]), v))
    batch, heads, _, width = g.shape(q)
    grouped = g.reshape(q, [batch, heads // each, each, width])
    row = g.op("matmul", grouped, state)
    return state, g.reshape(row, [batch, heads, 1, g.shape(v)[3]])
