"""Embeddings of words, places and segments as ONNX Runtime's optimisers fuse them."""

from __future__ import annotations

from ..graph import Dim, Graph, Operand
from ..registry import MICROSOFT, Node, reads
from .indexing import as_indices, checked
from .normalization import layer_norm
from .quantization import dequantised


def _embedded(g: Graph, node: Node, tables: list[Operand | None], ids: list[Operand | None]) -> Operand:
    """Words, places and segments, added up."""
    words, places, segments = tables
    total = g.op("gather", words, checked(g, node, words, as_indices(g, ids[0]), [0]), axis=0)
    _, steps, width = g.shape(total)
    if ids[1] is not None:
        place = g.op("gather", places, as_indices(g, ids[1]), axis=0)
    else:
        place = g.reshape(g.cut(places, 0, 0, steps), [1, steps, width])
    total = g.op("add", total, place)
    if ids[2] is None or segments is None:
        return total
    return g.op("add", total, g.op("gather", segments, as_indices(g, ids[2]), axis=0))


def _word_counts(g: Graph, mask: Operand | None, batch: Dim) -> Operand:
    if mask is None:
        return g.filled(0, "i32", [batch])
    return g.op("reduce_sum", g.cast(mask, "i32"), axes=[1])


@reads("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(g: Graph, node: Node) -> list[Operand | None]:
    ids, segment_ids, word, place, segment, gamma, beta, mask, position_ids = (
        node.optional(i) for i in range(9)
    )
    total = _embedded(g, node, [word, place, segment], [ids, position_ids, segment_ids])
    y = layer_norm(g, total, gamma, beta, 2, float(node.get("epsilon", 1e-12)))
    counts = _word_counts(g, mask, g.shape(total)[0]) if node.wants(1) else None
    return [y, counts, total]


@reads("QEmbedLayerNormalization", domain=MICROSOFT)
def quantised_embed_layer_normalization(g: Graph, node: Node) -> list[Operand | None]:
    ids, segment_ids, mask = node.operand(0), node.optional(1), node.optional(7)
    tables = []
    for i in range(5):
        table, scale, zero = node.optional(2 + i), node.optional(8 + i), node.optional(13 + i)
        tables.append(None if table is None else dequantised(g, node, table, scale, zero, 0))
    word, place, segment, gamma, beta = tables
    total = _embedded(g, node, [word, place, segment], [ids, None, segment_ids])
    y = layer_norm(g, total, gamma, beta, 2, float(node.get("epsilon", 1e-12)))
    return [y, _word_counts(g, mask, g.shape(total)[0]) if node.wants(1) else None]
