#!/usr/bin/env python3
"""What batch_invariant costs: eight streams that generate, with and without it, in alternating rounds.

    python bench/batch_invariance.py [--model q8_0|q4_0|f16 ...] [--rounds N] [--prompt N] [--generate N]

The models have Qwen3-0.6B's shape and random weights (bench/make_llm.py). Each stream has read a prompt of
its own before, so that what is timed is generating behind it; reading a prompt is timed alone.
"""

import argparse
import json
import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace import LanguageModel

from llm import OUT, model_file

STREAMS = 8
WORDS = range(1000, 100000)  # tokens that are one word each


class Side:
    """One load of a model, and its speeds."""

    def __init__(self, path, invariant, prompt):
        self.prompt_tokens = prompt
        self.model = LanguageModel(path, {"n_ctx": 8192, "n_parallel": STREAMS, "batch_invariant": invariant})
        self.rates = {"prompt": [], "generated": []}

    def answer(self, prompt, count):
        settings = {"temperature": 0, "n_predict": count, "ignore_eos": True}
        return self.model.generate(prompt, settings)

    def round(self, seed, generate):
        draw = random.Random(seed)
        prompts = [self.model.detokenize(draw.choices(WORDS, k=self.prompt_tokens)) for _ in range(STREAMS)]
        start = time.perf_counter()
        self.answer(prompts[0], 1)
        self.rates["prompt"].append(self.prompt_tokens / (time.perf_counter() - start))
        with ThreadPoolExecutor(STREAMS) as pool:
            list(pool.map(lambda prompt: self.answer(prompt, 1), prompts))
            start = time.perf_counter()
            list(pool.map(lambda prompt: self.answer(prompt, generate), prompts))
            self.rates["generated"].append(STREAMS * generate / (time.perf_counter() - start))


def bench(kind, rounds, prompt, generate):
    sides = {invariant: Side(model_file(kind), invariant, prompt) for invariant in (False, True)}
    for seed in range(rounds + 1):
        for side in sides.values():
            side.round(seed, generate)
    row = {"model": kind}
    for what in ("prompt", "generated"):
        usual, invariant = (statistics.median(sides[of].rates[what][1:]) for of in (False, True))
        row[what] = {"usual": usual, "invariant": invariant, "part": invariant / usual}
        print(
            f"{kind:5} {what:10} {usual:8.1f} {invariant:8.1f} tokens/s  {invariant / usual:.3f}", flush=True
        )
    for side in sides.values():
        side.model.close()
    return row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", nargs="*", default=["q8_0", "q4_0", "f16"], choices=["q8_0", "q4_0", "f16"]
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of each prompt")
    parser.add_argument("--generate", type=int, default=64, help="tokens of each answer")
    parser.add_argument("--json", type=Path, default=OUT / "batch_invariance.json")
    options = parser.parse_args()
    rows = [bench(kind, options.rounds, options.prompt, options.generate) for kind in options.model]
    options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
