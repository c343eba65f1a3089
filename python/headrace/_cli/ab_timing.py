"""Times two programs in alternation, so that both meet the same state of the machine.

A case is first checked: a peer that computes something else is no peer. Then each round times a block of
calls of one side and a block of the other, in an order that swaps from round to round. Before its block a
side runs once untimed, after a pause in which the other's spinning threads fall asleep.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import onnxruntime

import headrace

RESULTS = Path("build/bench")
SETTLE_SECONDS = 0.02


@dataclass(frozen=True)
class Case:
    """One comparison. Both calls return arrays that may differ by at most `tolerance`."""

    name: str
    threads: int
    ours: Callable[[], np.ndarray]
    peer: Callable[[], np.ndarray]
    tolerance: float = 0.0
    target_us: float | None = None  # most microseconds of ours
    target_ratio: float | None = None  # least peer time / our time


@dataclass(frozen=True)
class Result:
    """Microseconds per call over the rounds; ratios are peer / ours of the same round: above 1, ours wins."""

    name: str
    threads: int
    ours_us: float
    peer_us: float
    ours_min_us: float
    peer_min_us: float
    ratio: float
    ratio_min: float
    ratio_max: float
    difference: float
    target_us: float | None
    target_ratio: float | None

    @property
    def verdict(self) -> str:
        """ "met" or "missed", with the target; empty where none is set."""
        if self.target_us is not None:
            return f"{'met' if self.ours_us <= self.target_us else 'missed'} (at most {self.target_us:g} µs)"
        if self.target_ratio is not None:
            met = self.ratio >= self.target_ratio
            return f"{'met' if met else 'missed'} (ratio at least {self.target_ratio:g})"
        return ""


class DisagreementError(Exception):
    """The two sides of a case computed different things."""


Cases = Callable[[int], Iterator[Case]]


def set_threads(threads: int) -> onnxruntime.SessionOptions:
    """Fixes the threads of graphs that Headrace builds from here on; the peer's options fix the same."""
    headrace.set_num_threads(threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return options


def check_agreement(case: Case) -> float:
    """Largest absolute difference between the sides; raises DisagreementError above the tolerance."""
    ours, peer = case.ours(), case.peer()
    if ours.shape != peer.shape or ours.dtype != peer.dtype:
        raise DisagreementError(f"{case.name}: {ours.dtype}{ours.shape} against {peer.dtype}{peer.shape}")
    difference = float(np.abs(ours.astype(np.float64) - peer).max())
    if not difference <= case.tolerance:  # true for NaN as well
        raise DisagreementError(f"{case.name}: differs by {difference:.2e}, more than {case.tolerance:.0e}")
    return difference


def time_block(call: Callable[[], np.ndarray], repeats: int) -> float:
    """Microseconds per call."""
    time.sleep(SETTLE_SECONDS)
    call()
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats * 1e6


def repeats_for(call: Callable[[], np.ndarray], seconds: float) -> int:
    """How many calls take about `seconds`."""
    call()
    repeats = 1
    while (total := time_block(call, repeats) * repeats / 1e6) < seconds / 4:
        repeats = min(repeats * 4, int(repeats * seconds / max(total, 1e-9)) + 1)
    return max(1, round(repeats * seconds / total))


def compare(
    case: Case, rounds: int, seconds: float, progress: Callable[[float], None] | None = None
) -> Result:
    """Checks the case, then alternates `rounds` blocks of about `seconds` each per side.

    `progress` hears between rounds which share of them is done.
    """
    difference = check_agreement(case)
    sides = {
        side: (call, repeats_for(call, seconds)) for side, call in (("ours", case.ours), ("peer", case.peer))
    }
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    gc.collect()
    gc.disable()
    try:
        for index in range(rounds):
            for side in ("ours", "peer") if index % 2 == 0 else ("peer", "ours"):
                times[side].append(time_block(*sides[side]))
            if progress:
                progress((index + 1) / rounds)
    finally:
        gc.enable()
    ratios = [peer / ours for ours, peer in zip(times["ours"], times["peer"], strict=True)]
    return Result(
        name=case.name,
        threads=case.threads,
        ours_us=statistics.median(times["ours"]),
        peer_us=statistics.median(times["peer"]),
        ours_min_us=min(times["ours"]),
        peer_min_us=min(times["peer"]),
        ratio=statistics.median(ratios),
        ratio_min=min(ratios),
        ratio_max=max(ratios),
        difference=difference,
        target_us=case.target_us,
        target_ratio=case.target_ratio,
    )


def microseconds(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def print_header(has_targets: bool = True) -> None:
    print(f"{'':30} {'threads':>7} {'ours µs':>10} {'(min)':>10} {'peer µs':>10} {'(min)':>10}", end="")
    print(f" {'peer/ours':>9} {'(range)':>11} {'difference':>10}{'  target' if has_targets else ''}")


def print_row(result: Result) -> None:
    times = (result.ours_us, result.ours_min_us, result.peer_us, result.peer_min_us)
    columns = " ".join(f"{microseconds(value):>10}" for value in times)
    spread = f"{result.ratio_min:.2f}-{result.ratio_max:.2f}"
    print(f"{result.name:30} {result.threads:7} {columns} {result.ratio:9.2f} {spread:>11}", end="")
    print(f" {result.difference:10.1e}{f'  {result.verdict}' if result.verdict else ''}", flush=True)


def machine() -> dict[str, object]:
    """What the numbers depend on besides the code."""
    cpuinfo = Path("/proc/cpuinfo")
    models = [
        line.split(":", 1)[1].strip()
        for line in (cpuinfo.read_text().splitlines() if cpuinfo.exists() else [])
        if line.startswith("model name")
    ]
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "onnxruntime": metadata.version("onnxruntime"),
        "numpy": np.__version__,
    }


def print_machine(host: dict[str, object], rounds: int) -> None:
    print(f"{host['cpu']}, {host['cores']} cores, load {host['load_before']:.1f}; ", end="")
    print(f"ONNX Runtime {host['onnxruntime']}; median of {rounds} alternating rounds\n")
    if host["load_before"] > 0.5:
        print("Other programs keep the machine busy: times and ratios mean little; try again later.\n")


def json_text(host: dict[str, object], rounds: int, results: list[Result]) -> str:
    document = {"machine": host, "rounds": rounds, "results": [asdict(r) for r in results]}
    return json.dumps(document, indent=2) + "\n"


def write_json(path: Path, host: dict[str, object], rounds: int, results: list[Result]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_text(host, rounds, results))


def run(
    suites: Iterable[Cases], description: str, summarize: Callable[[list[Result]], str] = lambda results: ""
) -> None:
    """Runs suites of cases on 1 and 2 threads, prints the table and a summary, and writes a file of
    the program's name in RESULTS.

    A suite is called with the number of threads; it makes its cases one by one, so that the sessions of
    one are gone before the next starts.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=10, help="blocks per side and case (default: 10)")
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a block (default: 0.2)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument(
        "--json",
        type=Path,
        default=RESULTS / f"{Path(sys.argv[0]).stem}.json",
        help="where the results go (default: %(default)s)",
    )
    arguments = parser.parse_args()

    host = machine()
    print_machine(host, arguments.rounds)
    print_header()
    results: list[Result] = []
    try:
        for suite in suites:
            for threads in arguments.threads:
                for case in suite(threads):
                    results.append(compare(case, arguments.rounds, arguments.seconds))
                    print_row(results[-1])
    except DisagreementError as error:
        sys.exit(f"error: {error}")
    if summary := summarize(results):
        print(f"\n{summary}")
    write_json(arguments.json, host, arguments.rounds, results)
    print(f"\nresults: {arguments.json}")
