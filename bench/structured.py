#!/usr/bin/env python3
"""What JSON schemas cost: tokens per second of eight streams under each schema of the tests, and without it.

    python bench/structured.py [--model q8_0|q4_0|f16] [--schema NAME ...]
                               [--temperature T ...] [--rounds N]

The model has Qwen3-0.6B's shape and random weights (bench/make_llm.py), which want another token than the
schema nearly always: the hardest case. A real model's choice is mostly right, and then only looked at.
Both sides write answers of the same lengths, the ones that the schema gave.
"""

import argparse
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace import LanguageModel

from llm import OUT, ROOT, model_file

STREAMS = 8


def write(model, jobs):
    """Seconds that the jobs take, a stream each, by the clock and of the processor, and each one's tokens."""
    with ThreadPoolExecutor(STREAMS) as pool:
        start, worked = time.perf_counter(), time.process_time()
        replies = list(pool.map(lambda job: model.generate("The answer is", job), jobs))
        seconds = (time.perf_counter() - start, time.process_time() - worked)
        return seconds, [reply.generated_tokens for reply in replies]


def measure(model, schema, temperature, count, rounds):
    """Tokens per second with and without the schema, whose first answers build what later ones share.

    The sides take turns; the parts are medians over the rounds, first that of the first round.
    """
    usual = [{"temperature": temperature, "seed": seed, "n_predict": count} for seed in range(STREAMS)]
    speeds, worked = [], []
    for _ in range(rounds):
        seconds, lengths = write(model, [{**job, "json_schema": schema} for job in usual])
        free = [
            {**job, "n_predict": length, "ignore_eos": True}
            for job, length in zip(usual, lengths, strict=True)
        ]
        free_seconds, free_lengths = write(model, free)
        more = sum(lengths) / sum(free_lengths)
        speeds.append((sum(lengths) / seconds[0], sum(free_lengths) / free_seconds[0]))
        worked.append(more * free_seconds[1] / seconds[1])
    structured, free = (statistics.median(side) for side in zip(*speeds, strict=True))
    parts = [structured / free for structured, free in speeds]
    row = {"structured": structured, "free": free, "tokens": sum(lengths), "first": parts[0]}
    return row | {"part": statistics.median(parts), "processor": statistics.median(worked)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="q8_0", choices=["q8_0", "q4_0", "f16"])
    parser.add_argument("--schema", nargs="*", help="default: all thirty")
    parser.add_argument("--generate", type=int, default=64, help="tokens of each answer at most")
    parser.add_argument("--temperature", type=float, nargs="*", default=[0, 0.8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=OUT / "structured.json")
    options = parser.parse_args()
    schemas = json.loads((ROOT / "tests/llm/schemas.json").read_text())
    rows = []
    with LanguageModel(model_file(options.model), {"n_ctx": 8192, "n_parallel": STREAMS}) as model:
        write(model, [{"n_predict": 8}] * STREAMS)
        for temperature in options.temperature:
            for name in options.schema or schemas:
                row = measure(model, schemas[name], temperature, options.generate, options.rounds)
                row |= {"schema": name, "temperature": temperature}
                rows.append(row)
                print(
                    f"{name:28} {temperature:3} {row['tokens']:4} tokens {row['free']:7.1f} "
                    f"{row['structured']:7.1f} tokens/s  {row['part']:.3f}, of the processor's time "
                    f"{row['processor']:.3f}, the first round {row['first']:.3f}",
                    flush=True,
                )
            parts = [row["part"] for row in rows if row["temperature"] == temperature]
            print(f"temperature {temperature}: median {statistics.median(parts):.3f}, least {min(parts):.3f}")
    options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
