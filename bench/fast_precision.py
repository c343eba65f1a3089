"""precision="fast" beside the exact products, and beside OpenVINO as it comes, which rounds to bf16, too.

    make bench-fast [MODELS="minilm_128 resnet18"]

All read the zoo's ONNX models, run in processes of their own and take turns. Beside times are what rounding
costs: the cosine to the exact results, and how often the largest number of a row is in the same place.
Results: a table and build/bench/fast.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys

import numpy as np
import zoo_peers
from headrace._cli import ab_timing
from zoo_peers import OUT, Side, alternating, choose_models, cosine, median_ratio, timing_parser

EXACT, FAST, PEER = "Headrace on ONNX", "Headrace fast", "OpenVINO as it comes"


def same_largest(a: np.ndarray, b: np.ndarray) -> float:
    """The part of the rows whose largest number is in the same place."""
    return float((a.argmax(-1) == b.argmax(-1)).mean())


def compare(case: str, threads: int, arguments: argparse.Namespace) -> dict:
    folder = OUT / "zoo" / case
    sides: list[Side] = []
    try:
        for name in (EXACT, FAST, PEER):
            sides.append(Side(name, case, folder, threads))
        got = {side.name: side.output(folder).astype(np.float64) for side in sides}
        times = alternating(sides, arguments.rounds, arguments.seconds)
        memory = {side.name: side.ask("memory") for side in sides}
    finally:
        for side in sides:
            side.close()
    ratio = {name: median_ratio(times[FAST], times[name]) for name in (EXACT, PEER)}
    return {
        "case": case,
        "threads": threads,
        "median_ms": {name: statistics.median(list_) / 1e3 for name, list_ in times.items()},
        "shortest_ms": {name: min(list_) / 1e3 for name, list_ in times.items()},
        "ratio": ratio,
        "ratio_of_shortest": {name: min(times[name]) / min(times[FAST]) for name in (EXACT, PEER)},
        "cosine": {name: cosine(got[name], got[EXACT]) for name in (FAST, PEER)},
        "same_largest": {name: same_largest(got[name], got[EXACT]) for name in (FAST, PEER)},
        "peak_mib": {name: round(bytes / 2**20) for name, bytes in memory.items()},
    }


def show(row: dict) -> None:
    def faster_than(name: str) -> str:
        return f"{row['ratio'][name]:5.2f} ({row['ratio_of_shortest'][name]:4.2f})"

    cosines, largest, memory = row["cosine"], row["same_largest"], row["peak_mib"]
    print(
        f"{row['case']:16} {row['threads']}T  {row['median_ms'][FAST]:8.3f} ms   "
        f"exact {faster_than(EXACT)}   OpenVINO {faster_than(PEER)}   "
        f"cosine {cosines[FAST]:.6f} {cosines[PEER]:.6f}   "
        f"largest {largest[FAST]:.1%} {largest[PEER]:.1%}   "
        f"{memory[FAST]}, {memory[EXACT]} and {memory[PEER]} MiB",
        flush=True,
    )


def main() -> None:
    parser = timing_parser(__doc__)
    parser.add_argument("--keep", action="store_true", help="time the files of the last call")
    arguments = parser.parse_args()
    choose_models(parser, arguments, zoo_peers.models("zoo").split())
    host = ab_timing.machine()
    ab_timing.print_machine(host, arguments.rounds)
    print("time with fast; others' time / that, of medians and of the shortest; accuracy and memory")
    rows: list[dict] = []
    for case in arguments.models:
        folder = OUT / "zoo" / case
        if not (arguments.keep and (folder / "facts.json").exists()):
            zoo_peers.models(case, folder)
        for threads in arguments.threads:
            rows.append(compare(case, threads, arguments))
            show(rows[-1])
    for name in (EXACT, PEER):
        print(
            f"geometric mean, {name}: {statistics.geometric_mean([row['ratio'][name] for row in rows]):.3f}"
        )
    path = OUT / "fast.json"
    path.write_text(json.dumps({"machine": host, "results": rows}, indent=2) + "\n")
    print(f"\nresults: {path}")
    if any(row["cosine"][FAST] < 0.99 for row in rows):
        sys.exit('error: results with precision="fast" are another model\'s')


if __name__ == "__main__":
    main()
