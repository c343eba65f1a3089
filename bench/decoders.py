"""Greedy decoding by ONNX models with growing caches beside ONNX Runtime, and what planning costs.

Published sizes with random weights; exported once into build/decoders. Both decode in turn, a step each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "architectures")]

import headrace  # noqa: E402
from decoding import DECODINGS, Decoding  # noqa: E402
from exported import export, session_of  # noqa: E402

Arrays = dict[str, np.ndarray]


def model_of(name: str, decoding: Decoding, whole: bool) -> Path:
    folder = ROOT / "build" / "decoders"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}{'' if whole else '-small'}.onnx"
    if not path.exists():
        export(decoding.architecture, path, dynamo=True)
    return path


class Timed:
    """A runtime's step and how long each took, ms."""

    def __init__(self, run: Callable[[Arrays], list[np.ndarray]], clock: Callable[[], float]) -> None:
        self.run, self.clock, self.ms = run, clock, []

    def __call__(self, feeds: Arrays) -> list[np.ndarray]:
        start = self.clock()
        results = self.run(feeds)
        self.ms.append((self.clock() - start) * 1e3)
        return results


def compared(name: str, steps: int, threads: int, whole: bool, clock: Callable[[], float]) -> None:
    decoding = DECODINGS[name](whole)
    path = model_of(name, decoding, whole)
    session = session_of(path, threads)
    known = {i.name for i in session.get_inputs()}
    model = headrace.load(path, device="cpu", threads=threads)

    def wanted(feeds: Arrays) -> Arrays:
        return {key: value for key, value in feeds.items() if key in known}

    theirs = Timed(lambda feeds: session.run(None, wanted(feeds)), clock)
    ours = Timed(lambda feeds: list(model(wanted(feeds)).values()), clock)
    again = Timed(lambda feeds: list(model(wanted(feeds)).values()), clock)

    def step(feeds: Arrays) -> list[np.ndarray]:
        expected = theirs(feeds)
        results = ours(feeds)
        again(feeds)  # the same length once more: planned already
        assert int(results[0][0, -1].argmax()) == int(expected[0][0, -1].argmax()), "tokens differ"
        return results

    decoding.steps(step, steps)
    ort, own, planned = (statistics.median(t.ms[2:]) for t in (theirs, ours, again))
    planning = statistics.median(a - b for a, b in zip(ours.ms[2:], again.ms[2:], strict=True))
    print(
        f"{name:8} {steps} tokens equal; ms a step: ONNX Runtime {ort:.2f}, Headrace {own:.2f} "
        f"({ort / own:.2f}), of a known length {planned:.2f}; planning {planning:.2f}, {planning / own:.1%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(DECODINGS), choices=list(DECODINGS))
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="a few layers: to try this program")
    parser.add_argument("--cpu-time", action="store_true", help="on a machine that others use, one thread")
    arguments = parser.parse_args()
    threads, clock = (1, time.process_time) if arguments.cpu_time else (arguments.threads, time.perf_counter)
    for name in arguments.models:
        compared(name, arguments.steps, threads, not arguments.small, clock)


if __name__ == "__main__":
    main()
