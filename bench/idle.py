"""What a session costs others: Headrace beside ONNX Runtime.

    make bench-idle [MODELS="resnet18.f32 resnet18.qdq"]

Measured are the CPU time that a session's threads take after a run, when nothing is asked of it, and how much
less a neighbour gets done while the session runs six times a second: a program on each core that only counts.
Both sessions take turns with the neighbour alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from pathlib import Path

from quantized import OURS, PEER, written
from zoo_peers import Side

RUNS_PER_SECOND = 6


def count(seconds: float) -> int:
    """A neighbour: how far it counts."""
    end, counted = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        for _ in range(1000):
            counted += 1
    return counted


class Neighbours:
    """One for each core."""

    def __init__(self) -> None:
        self.number = os.cpu_count() or 1
        self.pool = multiprocessing.Pool(self.number)
        self.pool.map(count, [0.1] * self.number)

    def counting(self, seconds: float) -> multiprocessing.pool.MapResult:
        return self.pool.map_async(count, [seconds] * self.number, chunksize=1)


def measure(
    folder: Path, case: str, threads: int, rounds: int, seconds: float
) -> dict[str, dict[str, float]]:
    sides = [Side(name, case, folder, threads) for name in (OURS, PEER)]
    neighbours = Neighbours()
    got: dict[str, dict[str, list[float]]] = {
        s.name: {"run": [], "idle": [], "slower": [], "cpu": []} for s in sides
    }
    try:
        for _ in range(rounds):
            alone = sum(neighbours.counting(seconds).get())
            for side in sides:
                row = got[side.name]
                row["run"].append(side.ask("time 20") / 1e3)
                row["idle"].append(side.ask("idle 0.5") * 1e3)
                counts = neighbours.counting(seconds)
                row["cpu"].append(side.ask(f"paced {RUNS_PER_SECOND} {seconds}") * 1e3)
                row["slower"].append(1 - sum(counts.get()) / alone)
    finally:
        for side in sides:
            side.close()
        neighbours.pool.terminate()
    return {
        name: {what: statistics.median(list_) for what, list_ in row.items()} for name, row in got.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["resnet18.f32", "resnet18.qdq"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    print(
        "case, threads, program: ms a run, CPU ms in 0.5 s after it, CPU ms a paced run, the neighbours' loss"
    )
    for case in arguments.models:
        folder = written(case, True)
        for threads in arguments.threads:
            rows = measure(folder, case, threads, arguments.rounds, arguments.seconds)
            for name, row in rows.items():
                print(
                    f"{case:16} {threads}T {name:18} {row['run']:7.2f} {row['idle']:7.2f} {row['cpu']:7.2f} "
                    f"{row['slower'] * 100:5.1f} %",
                    flush=True,
                )


if __name__ == "__main__":
    main()
