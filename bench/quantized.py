"""Quantised ONNX files: Headrace beside ONNX Runtime and OpenVINO as it comes, on the same file.

    make bench-quantized [MODELS="resnet18.qdq minilm.dynamic"]

All run in processes of their own and take turns. Before anything is timed, ours is compared with
what ONNX Runtime computes without its optimiser, which rounds as the file says. The same network in f32,
by Headrace, takes its turn, too. OpenVINO stays away from files that it does not open.
Results: a table and build/bench/quantized.json.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
from pathlib import Path

import numpy as np
import zoo_peers
from headrace._cli import ab_timing
from zoo_peers import OUT, Side, alternating, choose_models, cosine, median_ratio, timing_parser

OURS, PEER, OTHER = "Headrace on ONNX", "ONNX Runtime", "OpenVINO as it comes"
IN_F32 = "Headrace in f32"
models = functools.partial(zoo_peers.models, script="quantized_models.py")


def as_spelt(folder: Path) -> np.ndarray:
    """The file's answer, each operator by itself."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(folder / "model.onnx", options)
    except Exception as error:  # its classes share no other base
        raise zoo_peers.UnavailableError(str(error)[:160]) from error
    with np.load(folder / "inputs.npz") as stored:
        feeds = dict(zip([x.name for x in session.get_inputs()], stored.values(), strict=True))
    return session.run(None, feeds)[0].astype(np.float64)


def written(case: str, is_kept: bool) -> Path:
    """The case's folder, written anew unless what is there may be kept."""
    folder = OUT / "quantized" / case
    if not (is_kept and (folder / "facts.json").exists()):
        models(case, folder)
    return folder


def compare(case: str, threads: int, arguments: argparse.Namespace) -> dict:
    folder = OUT / "quantized" / case
    wanted = as_spelt(folder)
    sides: list[Side] = []
    try:
        for name in (OURS, PEER):
            sides.append(Side(name, case, folder, threads))
        try:
            sides.append(Side(OTHER, case, folder, threads))
        except zoo_peers.UnavailableError as error:
            print(f"{case}: {OTHER} cannot run it: {error}", flush=True)
        got = {side.name: side.output(folder).astype(np.float64) for side in sides}
        sides.append(Side(IN_F32, case, written(f"{case.split('.')[0]}.f32", True), threads, OURS))
        times = alternating(sides, arguments.rounds, arguments.seconds)
        memory = {side.name: side.ask("memory") for side in sides}
    finally:
        for side in sides:
            side.close()
    ours, peer, in_f32 = times[OURS], times[PEER], times[IN_F32]
    return {
        "case": case,
        "threads": threads,
        "ours_ms": statistics.median(ours) / 1e3,
        "peer_ms": statistics.median(peer) / 1e3,
        "ratio": median_ratio(ours, peer),
        "other_ms": statistics.median(times[OTHER]) / 1e3 if OTHER in times else None,
        "other_ratio": median_ratio(ours, times[OTHER]) if OTHER in times else None,
        "f32_ms": statistics.median(in_f32) / 1e3,
        "f32_ratio": median_ratio(ours, in_f32),
        "cosine": {name: cosine(y, wanted) for name, y in got.items()},
        "largest": {name: float(np.abs(y - wanted).max() / np.abs(wanted).max()) for name, y in got.items()},
        "peak_mib": {name: round(bytes / 2**20) for name, bytes in memory.items()},
        "file_mib": round((folder / "model.onnx").stat().st_size / 2**20),
    }


def show(row: dict) -> None:
    openvino = f"OpenVINO {row['other_ms']:8.2f} ms {row['other_ratio']:5.2f}   " if row["other_ms"] else ""
    print(
        f"{row['case']:24} {row['threads']}T {row['ours_ms']:8.2f} ms {row['peer_ms']:8.2f} ms  "
        f"{row['ratio']:5.2f}   {openvino}f32 {row['f32_ms']:8.2f} ms {row['f32_ratio']:5.2f}   "
        f"cosine {row['cosine'][OURS]:.5f} {row['cosine'][PEER]:.5f}   "
        f"off by {row['largest'][OURS]:.1e} {row['largest'][PEER]:.1e}   "
        f"{row['peak_mib'][OURS]} and {row['peak_mib'][PEER]} MiB for {row['file_mib']}",
        flush=True,
    )


def main() -> None:
    parser = timing_parser(__doc__)
    parser.add_argument("--keep", action="store_true", help="time the files of the last call")
    arguments = parser.parse_args()
    choose_models(parser, arguments, models("names").split())
    host = ab_timing.machine()
    ab_timing.print_machine(host, arguments.rounds)
    print("case, threads, ours; others, their time / ours; accuracy and memory of ours and ONNX Runtime's")
    rows: list[dict] = []
    for case in arguments.models:
        written(case, arguments.keep)
        for threads in arguments.threads:
            try:
                rows.append(compare(case, threads, arguments))
                show(rows[-1])
            except zoo_peers.UnavailableError as error:
                print(f"{case:24} {threads}T cannot be compared: {error}", flush=True)
    path = OUT / "quantized.json"
    path.write_text(json.dumps({"machine": host, "results": rows}, indent=2) + "\n")
    print(f"\nresults: {path}")


if __name__ == "__main__":
    main()
