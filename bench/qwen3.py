"""A causal model of Qwen3-0.6B's shape through the ExecuTorch door against llama-bench on ggml's CPU backend.

    make bench-qwen3 [FORMATS="q8_0 q4_0"]

Both have random weights of the same format. They read a prompt of 512 tokens, and generate 64, one at a time:
from the start, as llama-bench's tg64 does, and after the prompt, as its tg64 @ d512. The two take turns.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

from llm import GENERATE, OUT, PROMPT, ROOT, llama_bench, model_file, peers, setup

sys.path.append(str(ROOT / "tests/executorch"))  # zoo.py

VOCABULARY = 151936
PARTS = ("prompt", "generate", "generate after the prompt")


def export(path: Path, weights: str) -> None:
    """A program with one method for any number of tokens, whose cache holds the prompt and the answer."""
    import torch
    import zoo
    from executorch.exir import to_edge_transform_and_lower
    from executorch_ggml import GgmlPartitioner
    from executorch_ggml.llm import ExportableDecoder

    torch.manual_seed(0)
    decoder = ExportableDecoder(zoo.qwen3_model(28, VOCABULARY), max_length=PROMPT + GENERATE)
    partitioner = GgmlPartitioner(quantize=weights)
    program = to_edge_transform_and_lower(decoder.export(), partitioner=[partitioner]).to_executorch()
    path.write_bytes(program.buffer)


class Ours:
    def __init__(self, path: Path, threads: int) -> None:
        import executorch_ggml  # noqa: F401  (registers the backend)
        import headrace
        import torch
        from executorch.extension.pybindings import portable_lib

        headrace.set_num_threads(threads)
        torch.set_num_threads(1)  # its threads would spin on our cores after they have copied the logits
        module = portable_lib._load_for_executorch(str(path))
        prompt = torch.randint(0, VOCABULARY, (1, PROMPT))
        starts = [torch.tensor([i]) for i in range(PROMPT + GENERATE)]
        self.read = lambda: module.run_method("forward", (prompt, starts[0]))
        self.next = lambda i: module.run_method("forward", (prompt[:, :1], starts[i]))
        self.read()
        self.next(0)

    def rates(self) -> list[float]:
        """Tokens a second of each part."""
        begin = time.perf_counter()
        self.read()
        rates = [PROMPT / (time.perf_counter() - begin)]
        for start in (0, PROMPT):
            begin = time.perf_counter()
            for i in range(start, start + GENERATE):
                self.next(i)
            rates.append(GENERATE / (time.perf_counter() - begin))
        return rates


def llama(programs: Path, model: Path, threads: int) -> list[float]:
    """The same of llama-bench."""
    prompt, generate = llama_bench(programs, model, threads)
    return [prompt, generate, llama_bench(programs, model, threads, depth=PROMPT)[1]]


def compare(weights: str, programs: Path, threads: int, rounds: int) -> dict:
    gguf, pte = model_file(weights), OUT / f"0.6b-{weights}.pte"
    if not pte.exists():
        subprocess.run([sys.executable, __file__, "--export", pte, weights], check=True)
    ours = Ours(pte, threads)
    mine, theirs = [], []
    for _ in range(rounds):
        mine.append(ours.rates())
        theirs.append(llama(programs, gguf, threads))
    row: dict = {"weights": weights, "threads": threads}
    for part, name in enumerate(PARTS):
        a, b = (statistics.median(rate[part] for rate in rates) for rates in (mine, theirs))
        row[name] = {"ours_per_second": a, "llama_bench_per_second": b, "ratio": a / b}
        print(
            f"{weights} {threads}T {name:26} {a:8.1f} tokens/s   llama-bench {b:8.1f}   {a / b:5.2f}",
            flush=True,
        )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--formats", nargs="+", default=["q8_0", "q4_0"], choices=["q8_0", "q4_0"])
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=OUT / "qwen3.json")
    parser.add_argument("--export", nargs=2, metavar=("FILE", "FORMAT"), help="only write the program")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if arguments.export:
        return export(Path(arguments.export[0]), arguments.export[1])
    programs = peers()
    rows = [
        compare(weights, programs, threads, arguments.rounds)
        for weights in arguments.formats
        for threads in arguments.threads
    ]
    arguments.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    setup.run_main(main)
