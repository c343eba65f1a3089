"""The wheel of make wheels against the native build of this checkout, on the zoo's models in ONNX's form.

    make bench-wheel [MODELS="mlp resnet18"]

Both run in processes of their own, take turns, and must agree before anything is timed. A ratio above 1: the
wheel is faster. Results: a table and build/bench/wheel.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import zipfile
from pathlib import Path

import zoo_peers
from headrace._cli import ab_timing

NATIVE, WHEEL = "native", "wheel"


def unpack_wheel(folder: Path) -> Path:
    """The wheel for this Python and machine, unpacked as pip would."""
    dist = zoo_peers.ROOT / "build/wheels/dist"
    abi = "cp312-abi3" if sys.version_info >= (3, 12) else f"cp3{sys.version_info.minor}"
    found = list(dist.glob(f"headrace-*-{abi}-*_{os.uname().machine}.whl"))
    if not found:
        sys.exit(f"{dist} has no wheel for this Python: make wheels builds it")
    with zipfile.ZipFile(found[0]) as archive:
        archive.extractall(folder)
    (folder / "headrace/bin/headrace").chmod(0o755)
    return folder


def compare(case: str, threads: int, packages: dict[str, Path], arguments: argparse.Namespace) -> dict:
    folder = zoo_peers.OUT / "zoo" / case
    sides = [
        zoo_peers.Side(name, case, folder, threads, program="Headrace on ONNX", packages=path)
        for name, path in packages.items()
    ]
    try:
        native, wheel = (side.output(folder).astype(float) for side in sides)
        difference = float(abs(native - wheel).max())
        if not difference <= zoo_peers.TOLERANCE * abs(native).max():
            sys.exit(f"error: {case}: the wheel and the native build differ by {difference:.2e}")
        times = zoo_peers.alternating(sides, arguments.rounds, arguments.seconds)
    finally:
        for side in sides:
            side.close()
    ratios = [a / b for a, b in zip(times[NATIVE], times[WHEEL], strict=True)]
    return {
        "case": case,
        "threads": threads,
        "native_ms": statistics.median(times[NATIVE]) / 1e3,
        "wheel_ms": statistics.median(times[WHEEL]) / 1e3,
        "ratio": statistics.median(ratios),
        "max_abs_diff": difference,
    }


def main() -> None:
    parser = zoo_peers.timing_parser(__doc__)
    arguments = parser.parse_args()
    zoo_peers.choose_models(parser, arguments, zoo_peers.models("zoo").split())
    host = ab_timing.machine()
    ab_timing.print_machine(host, arguments.rounds)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        packages = {NATIVE: zoo_peers.ROOT / "python", WHEEL: unpack_wheel(Path(scratch))}
        for case in arguments.models:
            zoo_peers.models(case, zoo_peers.OUT / "zoo" / case)
            for threads in arguments.threads:
                row = compare(case, threads, packages, arguments)
                rows.append(row)
                print("{case:24} {threads}T  {ratio:5.3f}".format(**row), flush=True)
    mean = statistics.geometric_mean(row["ratio"] for row in rows)
    print(f"geometric mean: {mean:.3f}")
    path = zoo_peers.OUT / "wheel.json"
    path.write_text(json.dumps({"machine": host, "geometric_mean": mean, "results": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
