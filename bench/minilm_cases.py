"""MiniLM sentence embeddings against ONNX Runtime, 16 and 128 tokens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import webnn
from headrace._cli import ab_timing

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from minilm.model import VOCABULARY, build_graph, load_weights
from minilm.onnx_model import OnnxMiniLM

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTPUT = "sentence_embedding"


def cases(threads: int) -> Iterator[ab_timing.Case]:
    """A sentence of random tokens without padding; int32 inputs for ours, int64 for the peer."""
    ab_timing.set_threads(threads)
    context = webnn.ML().create_context(accelerated=False)
    weights = load_weights()
    session = OnnxMiniLM(threads).session
    rng = np.random.default_rng(0)
    for seq in (16, 128):
        ids = rng.integers(1000, VOCABULARY, (1, seq))
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        inputs = {name: value.astype(np.int32) for name, value in feeds.items()}
        graph = build_graph(context.create_graph_builder(), weights, seq)
        yield ab_timing.Case(
            f"MiniLM, {seq} tokens",
            threads,
            ours=lambda graph=graph, inputs=inputs: context.compute(graph, inputs)[OUTPUT],
            peer=lambda feeds=feeds: session.run([OUTPUT], feeds)[0],
            tolerance=1e-5,
        )


if __name__ == "__main__":
    ab_timing.run([cases], __doc__)
