"""What a loaded model costs others: CPU time after a run, and a busy neighbor's speed while it runs.

    make bench-neighbors [MODELS="minilm_128 resnet18"]

Headrace and ONNX Runtime read the same ONNX file, each in a process of its own with its usual settings and as
many threads. Idle: the CPU time of the process in the half second after a run. Neighbors: one loop for each
CPU counts how often it comes round, alone and while the model runs six times a second; what is lost is the
median of the rounds, in which the programs take turns.
Results: a table and build/bench/neighbors.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass

import zoo_peers
from headrace._cli import ab_timing
from zoo_peers import OUT, Side, choose_models, timing_parser

OURS, PEER = "Headrace on ONNX", "ONNX Runtime"
MODELS = ["minilm_128", "resnet18", "mobilenet_v2"]
RATE = 6.0
IDLE_SECONDS = 0.5
#: Waits until told, so that no interpreter starts within the time that counts.
LOOP = """
import sys, time
print(flush=True)
seconds = float(input())
end, count = time.perf_counter() + seconds, 0
while time.perf_counter() < end:
    for _ in range(1000): pass
    count += 1
print(count)
"""


@dataclass(frozen=True)
class Row:
    case: str
    threads: int
    program: str
    idle_cpu_ms: float  #: in the half second after a run
    lost: float  #: by neighbors, as a part of their speed
    cpu_ms: float  #: a run beside neighbors
    median_ms: float  #: its duration


def start_loops() -> list[subprocess.Popen]:
    command = [sys.executable, "-c", LOOP]
    loops = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in os.sched_getaffinity(0)
    ]
    for loop in loops:
        loop.stdout.readline()
    return loops


def neighbors(seconds: float, side: Side | None = None) -> tuple[int, list[float]]:
    """How often all loops came round, and what the side, if there is one, says of its runs meanwhile."""
    loops = start_loops()
    for loop in loops:
        loop.stdin.write(f"{seconds}\n")
        loop.stdin.flush()
    runs = side.ask(f"pace {RATE} {seconds}") if side else []
    return sum(int(loop.communicate()[0]) for loop in loops), runs


def compare(case: str, threads: int, arguments: argparse.Namespace) -> list[Row]:
    folder = OUT / "zoo" / case
    sides: list[Side] = []
    try:
        for name in (OURS, PEER):
            sides.append(Side(name, case, folder, threads))
        ours, theirs = (side.output(folder).astype(float) for side in sides)
        if not abs(ours - theirs).max() <= zoo_peers.TOLERANCE * abs(ours).max():
            sys.exit(f"error: {case}: {PEER} gives something else")
        idle: dict[str, list[float]] = {side.name: [] for side in sides}
        lost: dict[str, list[float]] = {side.name: [] for side in sides}
        runs: dict[str, list[list[float]]] = {side.name: [] for side in sides}
        for index in range(arguments.rounds):
            alone, _ = neighbors(arguments.seconds)
            for side in sides if index % 2 == 0 else reversed(sides):
                idle[side.name].append(side.ask(f"idle {IDLE_SECONDS}"))
                beside, run = neighbors(arguments.seconds, side)
                lost[side.name].append(1 - beside / alone)
                runs[side.name].append(run)
    finally:
        for side in sides:
            side.close()
    return [
        Row(
            case=case,
            threads=threads,
            program=name,
            idle_cpu_ms=statistics.median(idle[name]),
            lost=statistics.median(lost[name]),
            cpu_ms=statistics.median(cpu for _, cpu in runs[name]) / 1e3,
            median_ms=statistics.median(time for time, _ in runs[name]) / 1e3,
        )
        for name in (OURS, PEER)
    ]


def main() -> None:
    parser = timing_parser(__doc__)
    parser.set_defaults(seconds=2.0, threads=[len(os.sched_getaffinity(0))])
    arguments = parser.parse_args()
    arguments.models = arguments.models or MODELS
    choose_models(parser, arguments, zoo_peers.models("zoo").split())
    host = ab_timing.machine()
    ab_timing.print_machine(host, arguments.rounds)
    print(f"CPU time in {IDLE_SECONDS} s after a run; what busy neighbors lose to {RATE:.0f} runs a second")
    rows: list[Row] = []
    for case in arguments.models:
        zoo_peers.models(case, OUT / "zoo" / case)
        for threads in arguments.threads:
            found = compare(case, threads, arguments)
            for row in found:
                print(
                    f"{case:14} {threads}T  {row.program:17} idle {row.idle_cpu_ms:6.2f} ms   "
                    f"neighbors lose {row.lost:5.1%}   a run {row.median_ms:7.2f} ms, "
                    f"{row.cpu_ms:7.2f} ms of CPU",
                    flush=True,
                )
            rows += found
    path = OUT / "neighbors.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": host, "results": [asdict(row) for row in rows]}, indent=2) + "\n")
    print(f"\nresults: {path}")


if __name__ == "__main__":
    main()
