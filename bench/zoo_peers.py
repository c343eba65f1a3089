"""Models and single operators: ours against plain ggml, ONNX Runtime, OpenVINO, XNNPACK, torch.compile.

    make bench-zoo [MODELS="mlp resnet18"]     whole models
    make bench-micro [MODELS="gemm_512"]       single operators

Every program runs in a process of its own and reads the same model with the same threads; outputs are
compared before anything is timed, and the programs take turns. The machine's limits are measured with the
same threads.
Results: a table, build/bench/results.json and build/bench/results.svg (micro.json and micro.svg).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from headrace._cli import ab_timing
from zoo_plot import write_plot

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench"
OURS = "Headrace"
PEERS = {
    "plain ggml": "headrace.pte",
    "ONNX Runtime": "model.onnx",
    "OpenVINO": "model.onnx",
    "XNNPACK": "xnnpack.pte",
    "torch.compile": None,
}
# Parts of the largest magnitude: programs order their sums in other ways, and round blocks in theirs.
TOLERANCE, BLOCK_TOLERANCE = 1e-3, 0.15


class UnavailableError(Exception):
    """A program that cannot run the model."""


class Side:
    """One program with the model loaded."""

    def __init__(
        self,
        name: str,
        case: str,
        folder: Path,
        threads: int,
        program: str = "",
        packages: Path | None = None,
    ) -> None:
        """The program is another than the name where one takes part twice, with packages of its own first."""
        self.name = name
        worker = str(ROOT / "bench/zoo_worker.py")
        command = [sys.executable, worker, program or name, case, str(folder), str(threads)]
        environment = {**os.environ, "PYTHONPATH": str(packages)} if packages else None
        self.log = (folder / f"{name}.log").open("w+")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )
        self.answer()

    def answer(self) -> Any:
        for line in self.process.stdout:
            if line.startswith(("{", "[", '"', "null")) or line[0].isdigit():
                return json.loads(line)
        self.log.seek(0)
        lines = self.log.read().strip().splitlines() or ["it ended without a word"]
        raise UnavailableError(lines[-1][:160])

    def ask(self, what: str) -> Any:
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self.answer()

    def output(self, folder: Path) -> np.ndarray:
        path = folder / f"{self.name}.npy"
        self.ask(f"output {path}")
        return np.load(path)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


@dataclass(frozen=True)
class Row:
    """A ratio above 1: Headrace is faster. Times are medians; peak_rss is what loading and running took."""

    case: str
    threads: int
    ours_ms: float
    peer: str
    peer_ms: float
    ratio: float
    max_abs_diff: float
    peak_rss: dict[str, int]
    gflops: float
    fma_fraction: float
    read_fraction: float


def limits() -> dict[int, dict[str, float]]:
    """By threads: GFLOP/s of multiply-adds in registers, and GB/s of reading memory."""
    text = subprocess.run(
        [ROOT / "build/bin/bench/kernels_bench", "--limits"], capture_output=True, check=True
    ).stdout
    return {row["threads"]: row for row in map(json.loads, text.splitlines())}


def models(*arguments: object, script: str = "zoo_models.py") -> str:
    """What the script that makes models prints."""
    command = [sys.executable, ROOT / "bench" / script, *arguments]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        sys.exit(f"{arguments[0]} cannot be made:\n{made.stderr[-2000:]}")
    return made.stdout


def timing_parser(documentation: str) -> argparse.ArgumentParser:
    """The options of programs that time models in turns."""
    parser = argparse.ArgumentParser(description=documentation.splitlines()[0])
    parser.add_argument("--models", nargs="+", help="some of them (default: all)")
    parser.add_argument("--rounds", type=int, default=10, help="blocks per program and case (default: 10)")
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a block (default: 0.2)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    return parser


def choose_models(parser: argparse.ArgumentParser, arguments: argparse.Namespace, known: list[str]) -> None:
    """All that are known, where the arguments name none; an unknown one ends the program."""
    arguments.models = arguments.models or known
    if unknown := set(arguments.models) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")


def median_ratio(ours: list[float], others: list[float]) -> float:
    """The ratios of the others' time to ours, round by round."""
    return statistics.median(b / a for a, b in zip(ours, others, strict=True))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a.ravel() @ b.ravel() / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30))


def start(case: str, folder: Path, facts: dict, threads: int) -> list[Side]:
    """Ours, and every peer that can."""
    sides = [Side(OURS, case, folder, threads)]
    for peer, needs in PEERS.items():
        try:
            reason = facts["cannot"].get(needs, facts["cannot"].get(peer))
            if reason:
                raise UnavailableError(reason)
            sides.append(Side(peer, case, folder, threads))
        except UnavailableError as error:
            print(f"{case}: {peer} cannot run it: {error}", flush=True)
    return sides


def repeats_for(side: Side, seconds: float) -> int:
    return max(1, round(seconds * 1e6 / max(1.0, side.ask("time 1"))))


def alternating(sides: list[Side], rounds: int, seconds: float) -> dict[str, list[float]]:
    repeats = {side.name: repeats_for(side, seconds) for side in sides}
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    for index in range(rounds):
        for side in sides if index % 2 == 0 else reversed(sides):
            time.sleep(ab_timing.SETTLE_SECONDS)
            times[side.name].append(side.ask(f"time {repeats[side.name]}"))
    return times


def compare(
    case: str, threads: int, limit: dict, arguments: argparse.Namespace, disagreeing: list[tuple[str, str]]
) -> list[Row]:
    """Peers that compute something else are not timed, but noted in `disagreeing`."""
    folder = OUT / "zoo" / case
    facts = json.loads((folder / "facts.json").read_text())
    sides = start(case, folder, facts, threads)
    try:
        outputs = {side.name: side.output(folder).astype(np.float64) for side in sides}
        ours = outputs[OURS]
        differences = {name: float(np.abs(out - ours).max()) for name, out in outputs.items()}
        tolerance = BLOCK_TOLERANCE if facts["weights"] else TOLERANCE
        for name, difference in differences.items():
            if not difference <= tolerance * np.abs(ours).max():
                print(f"error: {case}: {name} and {OURS} differ by {difference:.2e}", flush=True)
                disagreeing.append((case, name))
        agreeing = [side for side in sides if (case, side.name) not in disagreeing]
        times = alternating(agreeing, arguments.rounds, arguments.seconds)
        memory = {side.name: side.ask("memory") for side in sides}
    finally:
        for side in sides:
            side.close()
    seconds = statistics.median(times[OURS]) / 1e6
    return [
        Row(
            case=case,
            threads=threads,
            ours_ms=seconds * 1e3,
            peer=peer,
            peer_ms=statistics.median(times[peer]) / 1e3,
            ratio=median_ratio(times[OURS], times[peer]),
            max_abs_diff=differences[peer],
            peak_rss={"ours": memory[OURS], "peer": memory[peer]},
            gflops=facts["flops"] / seconds / 1e9,
            fma_fraction=facts["flops"] / seconds / 1e9 / limit["fma_gflops"],
            read_fraction=facts["weight_bytes"] / seconds / 1e9 / limit["read_gb_per_s"],
        )
        for peer in times
        if peer != OURS
    ]


def show(rows: list[Row]) -> None:
    if not rows:
        return
    first = rows[0]
    print(
        f"{first.case:24} {first.threads}T  {first.ours_ms:8.3f} ms  {first.gflops:7.1f} GFLOP/s = "
        f"{first.fma_fraction:4.0%} of the FMA limit, {first.read_fraction:4.0%} of the read limit, "
        f"{first.peak_rss['ours'] / 2**20:.0f} MiB"
    )
    for row in rows:
        print(
            f"    {row.peer:15} {row.peer_ms:8.3f} ms   {row.ratio:5.2f}   off by {row.max_abs_diff:.1e}   "
            f"{row.peak_rss['peer'] / 2**20:.0f} MiB",
            flush=True,
        )


def main() -> None:
    parser = timing_parser(__doc__)
    parser.add_argument("--group", default="zoo", choices=["zoo", "micro"], help="models or single operators")
    parser.add_argument("--json", type=Path, help="default: results.json or micro.json in build/bench")
    arguments = parser.parse_args()
    if importlib.util.find_spec("executorch") is None:
        sys.exit("ExecuTorch is not installed: make executorch installs it")
    choose_models(parser, arguments, models(arguments.group).split())
    arguments.json = arguments.json or OUT / {"zoo": "results.json", "micro": "micro.json"}[arguments.group]
    host = ab_timing.machine()
    ab_timing.print_machine(host, arguments.rounds)
    rows: list[Row] = []
    disagreeing: list[tuple[str, str]] = []
    bounds = limits()
    for bound in bounds.values():
        print(
            f"limits of {bound['threads']:.0f} threads: {bound['fma_gflops']:.0f} GFLOP/s in f32, "
            f"{bound['read_gb_per_s']:.1f} GB/s read"
        )
    for case in arguments.models:
        models(case, OUT / "zoo" / case)
        for threads in arguments.threads:
            found = compare(case, threads, bounds[min(threads, max(bounds))], arguments, disagreeing)
            show(found)
            rows += found
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": host, "limits": list(bounds.values()), "results": [asdict(row) for row in rows]}
    arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    write_plot(rows, arguments.json.with_suffix(".svg"))
    print(f"\nresults: {arguments.json}, {arguments.json.with_suffix('.svg')}")
    if disagreeing:
        sys.exit(f"error: {len(disagreeing)} outputs differ from ours")


if __name__ == "__main__":
    main()
