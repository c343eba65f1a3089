#!/usr/bin/env python3
"""llama-bench with libggml-headrace.so (GGML_BACKEND_PATH) against llama-bench alone, in alternating rounds.

    make bench-packed [FORMATS="q8_0 f16"]

The models have Qwen3-0.6B's shape and random weights; llama-bench reads a prompt of 512 tokens and generates
64. build/bench/packed.json gets every number.
"""

import argparse
import json
import statistics
from pathlib import Path

import make_llm

from llm import GENERATE, OUT, PROMPT, ROOT, llama_bench, model_file, peers, setup

LIBRARY = ROOT / "build/lib/libggml-headrace.so"


def compare(programs, kind, threads, rounds):
    """Medians, and of ratios; a ratio above 1: the library is faster."""
    model = model_file(kind)
    plain, packed = [], []
    for _ in range(rounds):
        plain.append(llama_bench(programs, model, threads))
        packed.append(llama_bench(programs, model, threads, GGML_BACKEND_PATH=str(LIBRARY)))
    rows = []
    for part, name in enumerate((f"pp{PROMPT}", f"tg{GENERATE}")):
        a, b = ([rates[part] for rates in runs] for runs in (packed, plain))
        row = {
            "weights": kind,
            "threads": threads,
            "case": name,
            "packed_per_second": statistics.median(a),
            "plain_per_second": statistics.median(b),
            "ratio": statistics.median(x / y for x, y in zip(a, b, strict=True)),
        }
        print(
            f"{kind:5} {threads}T {name:6} {row['packed_per_second']:8.1f} tokens/s   "
            f"plain {row['plain_per_second']:8.1f}   {row['ratio']:5.2f}",
            flush=True,
        )
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--formats", nargs="+", default=list(make_llm.FORMATS), choices=make_llm.FORMATS)
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=OUT / "packed.json")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    programs = peers()
    rows = []
    for kind in arguments.formats:
        for threads in arguments.threads:
            rows += compare(programs, kind, threads, arguments.rounds)
    arguments.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    setup.run_main(main)
