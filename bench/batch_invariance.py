#!/usr/bin/env python3
"""What batch_invariant costs: eight streams that generate, with and without it, in alternating rounds.

    python bench/batch_invariance.py [--model q8_0|q4_0|f16 ...] [--rounds N] [--seed N]
                                     [--prompt N] [--generate N]

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


def answer(model, prompt, count):
    return model.generate(prompt, {"temperature": 0, "n_predict": count, "ignore_eos": True})


def measure(path, invariant, options, seed):
    """Tokens per second, of reading a prompt and of generating, by the clock and by the processor's time. The
    model is loaded for it: where its weights come to lie in memory makes a difference, and should not be one
    side's in all rounds.
    """
    draw = random.Random(seed)
    settings = {"n_ctx": 8192, "n_parallel": STREAMS, "batch_invariant": invariant}
    with LanguageModel(path, settings) as model, ThreadPoolExecutor(STREAMS) as pool:
        count = STREAMS + 1
        prompts = [model.detokenize(draw.choices(WORDS, k=options.prompt)) for _ in range(count)]
        answer(model, prompts.pop(), 1)
        rates = timed("prompt", options.prompt, lambda: answer(model, prompts[0], 1))
        list(pool.map(lambda prompt: answer(model, prompt, 1), prompts))
        rates |= timed(
            "generated",
            STREAMS * options.generate,
            lambda: list(pool.map(lambda prompt: answer(model, prompt, options.generate), prompts)),
        )
    return rates


def timed(what, tokens, work):
    start, worked = time.perf_counter(), time.process_time()
    work()
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    return {what: tokens / seconds, f"{what}, of the processor": tokens / worked}


def bench(kind, options):
    rates = {False: [], True: []}
    for seed in range(options.seed, options.seed + options.rounds):
        for invariant in (False, True) if seed % 2 else (True, False):
            rates[invariant].append(measure(model_file(kind), invariant, options, seed))
    row = {"model": kind}
    for what in rates[False][0]:
        usual, invariant = (statistics.median(rate[what] for rate in rates[of]) for of in (False, True))
        row[what] = {"usual": usual, "invariant": invariant, "part": invariant / usual}
        print(
            f"{kind:5} {what:27} {usual:8.1f} {invariant:8.1f} tokens/s  {invariant / usual:.3f}", flush=True
        )
    return row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", nargs="*", default=["q8_0", "q4_0", "f16"], choices=["q8_0", "q4_0", "f16"]
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the first round; odd ones begin without it")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of each prompt")
    parser.add_argument("--generate", type=int, default=64, help="tokens of each answer")
    parser.add_argument("--json", type=Path, default=OUT / "batch_invariance.json")
    options = parser.parse_args()
    rows = [bench(kind, options) for kind in options.model]
    options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
