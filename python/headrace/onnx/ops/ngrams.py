"""Counts of sequences of numbers."""

from __future__ import annotations

import numpy as np

from ..graph import Graph, Operand, known
from ..registry import Node, invalid_if, reads, refuse_if

_MODES = ("TF", "IDF", "TFIDF")


def _patterns(node: Node) -> list[np.ndarray]:
    """The pool's n-grams, a matrix for each length; rows in the order of their places in the result."""
    pool = np.array(node.get("pool_int64s"), np.int64)
    starts = [int(n) for n in node.get("ngram_counts") or []]
    invalid_if(
        not starts or sorted(starts) != starts or starts[0] < 0 or starts[-1] > pool.size,
        f"ngram_counts are {starts} for a pool of {pool.size}",
    )
    parts = []
    for i, (start, end) in enumerate(zip(starts, [*starts[1:], pool.size], strict=True)):
        invalid_if((end - start) % (i + 1), f"{end - start} numbers are no {i + 1}-grams")
        parts.append(pool[start:end].reshape(-1, i + 1))
    return parts


@reads("TfIdfVectorizer")
def tf_idf_vectorizer(g: Graph, node: Node) -> Operand:
    """How often each n-gram of a pool of integers occurs, its elements so far apart as skips allow."""
    refuse_if(
        "pool_int64s" not in node.attributes,
        "its pool is of strings; pools of integers are read",
        "Map the words to numbers before the model",
    )
    mode, skips = node.get("mode"), int(node.get("max_skip_count", 0))
    invalid_if(mode not in _MODES, f"mode is '{mode}'; {', '.join(_MODES)} are ONNX's")
    low, high = int(node.get("min_gram_length", 1)), int(node.get("max_gram_length", 1))
    places = np.array(node.get("ngram_indexes"), np.int64)
    patterns = _patterns(node)
    invalid_if(sum(map(len, patterns)) != places.size, f"{places.size} ngram_indexes do not fit the pool")
    x = g.cast(node.x, "i64")
    is_row = g.rank(x) == 1
    x = g.reshape(x, [1, *g.shape(x)]) if is_row else x
    batch, extent = g.shape(x)
    extent = g.fixed(extent, "the length of the sequences")
    columns = [
        _occurrences(g, x, extent, grams, skips if len(grams[0]) > 1 else 0)
        if len(grams) and low <= n <= high
        else g.filled(0, "f32", [batch, len(grams)])
        for n, grams in enumerate(patterns, 1)
        if len(grams)
    ]
    counts = g.concat(columns, 1)
    invalid_if(places.size == 0 or places.min() < 0, "ngram_indexes are no places of the result")
    g.check_extent(places.size * (int(places.max()) + 1))
    order = np.zeros([places.size, int(places.max()) + 1], np.float32)
    order[np.arange(places.size), places] = 1
    y = g.op("matmul", counts, known(order, "f32"))
    if mode != "TF":
        weights = np.ones(order.shape[1], np.float32)
        weights[places] = node.get("weights") or 1.0
        y = y if mode == "TFIDF" else g.op("min", y, known(1.0, "f32"))
        y = g.op("mul", y, known(weights, "f32"))
    return g.reshape(y, [order.shape[1]]) if is_row else y


def _occurrences(g: Graph, x: Operand, extent: int, grams: np.ndarray, skips: int) -> Operand:
    """[batch, n-grams], f32"""
    batch, length = g.shape(x)[0], grams.shape[1]
    total = g.filled(0, "f32", [batch, len(grams)])
    for distance in range(1, skips + 2):
        count = extent - (length - 1) * distance
        if count < 1:
            break
        g.check_extent(count * grams.size)
        windows = known(np.arange(count)[:, None] + np.arange(length) * distance, "i64")
        taken = g.reshape(g.op("gather", x, windows, axis=1), [batch, count, 1, length])
        same = g.cast(g.op("equal", taken, known(grams, "i64")), "f32")
        found = g.op("reduce_min", same, axes=[3])
        total = g.op("add", total, g.op("reduce_sum", found, axes=[1]))
    return total
