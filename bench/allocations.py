"""What the size-pooled allocator saves: allocations, bytes and time of runs with and without it.

"arena" allocates one arena a run, laid out by liveness; "pool" takes the arena from the context's pool. Both
are measured, and results must be the same bytes. "each", one allocation for every activation of every run
as without any plan, is counted and not run. `make bench` runs this.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import webnn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webnn import MLContext, MLGraph

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import convnet
from minilm.model import VOCABULARY, build_graph, load_weights

ROUNDS = 10
RUNS = 40


@dataclass(frozen=True)
class Load:
    """A model and the feeds that its runs cycle through."""

    name: str
    context: MLContext
    runs: list[tuple[MLGraph, dict[str, np.ndarray]]]


def loads() -> Iterator[Load]:
    """MiniLM with sentences of four lengths, and the convolutional example."""
    context = webnn.ML().create_context(accelerated=False)
    rng, weights, runs = np.random.default_rng(0), load_weights(), []
    for seq in (16, 32, 64, 128):
        ids = rng.integers(1000, VOCABULARY, (1, seq)).astype(np.int32)
        graph = build_graph(context.create_graph_builder(), weights, seq)
        runs.append((graph, {"input_ids": ids, "attention_mask": np.ones_like(ids)}))
    yield Load("MiniLM, 16 to 128 tokens", context, runs)
    context = webnn.ML().create_context(accelerated=False)
    graph = convnet.build_webnn(context.create_graph_builder(), convnet.make_weights())
    images = [{"image": image} for image in convnet.make_images().values()]
    yield Load("convolutional classifier", context, [(graph, feeds) for feeds in images])


def block(load: Load, reuse: bool) -> tuple[float, dict[str, int], list[bytes]]:
    """Milliseconds a run, what the pool counted, and the results."""
    load.context.reset_buffers()
    before, start, results = load.context.buffer_stats, time.perf_counter(), []
    for i in range(RUNS):
        graph, feeds = load.runs[i % len(load.runs)]
        outputs = load.context.compute(graph, feeds, reuse_buffers=reuse)
        results.append(b"".join(array.tobytes() for array in outputs.values()))
    ms = (time.perf_counter() - start) / RUNS * 1e3
    after = load.context.buffer_stats
    return ms, {key: after[key] - before[key] for key in after}, results


def compare(load: Load) -> None:
    """Alternates blocks with and without reuse and prints the table."""
    block(load, True)  # plans and packs
    times: dict[bool, list[float]] = {False: [], True: []}
    counted: dict[bool, dict[str, int]] = {}
    for round_number in range(ROUNDS):
        outcomes = {}
        for reuse in (False, True) if round_number % 2 else (True, False):
            ms, counted[reuse], outcomes[reuse] = block(load, reuse)
            times[reuse].append(ms)
        if outcomes[False] != outcomes[True]:
            raise SystemExit(f"{load.name}: results differ with and without the pool")
    stats = [load.runs[i % len(load.runs)][0].run_stats for i in range(RUNS)]
    naive = sum(s["naive_buffers"] for s in stats), sum(s["naive_bytes"] for s in stats)
    print(f"\n{load.name}: {RUNS} runs, median of {ROUNDS} alternating rounds")
    print(f"  {'':<8}{'allocations':>12}{'MiB':>10}{'reused':>9}{'ms a run':>10}")
    print(f"  {'each':<8}{naive[0]:>12,}{naive[1] / 2**20:>10.2f}{'':>9}{'':>10}")
    for reuse, name in ((False, "arena"), (True, "pool")):
        c = counted[reuse]
        ratio = c["reuses"] / c["requests"] if c["requests"] else 0
        median = statistics.median(times[reuse])
        mib = c["allocated_bytes"] / 2**20
        print(f"  {name:<8}{c['allocations']:>12,}{mib:>10.2f}{ratio:>9.0%}{median:>10.3f}")
    fewer = 1 - counted[True]["allocations"] / counted[False]["allocations"]
    print(f"  the pool saves {fewer:.0%} of the allocations of runs without it (goal: at least 50%)")


if __name__ == "__main__":
    for load in loads():
        compare(load)
