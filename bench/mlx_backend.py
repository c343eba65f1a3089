#!/usr/bin/env python3
"""Compares the MLX backend with ggml's CPU: the cost of a graph, products, and models in llama-bench.

    python bench/mlx_backend.py [--model FILE.gguf ...] [--rounds 3] [--prompt 128] [--steps 32]

Each round runs both devices after one another, and the medians are printed. Without a model, make_llm.py's
"small" is used in two formats.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(ROOT / "bench"))
import make_llm  # noqa: E402
from provision import ggml  # noqa: E402

# MLX as the wheel has it, with the reference BLAS.
PLAIN_MLX = """
import time, mlx.core as mx
a, b = mx.random.normal((1024, 1024)), mx.random.normal((1024, 1024))
mx.eval(a, b)
times = []
for _ in range(3):
    begin = time.perf_counter(); mx.eval(a @ b.T); times.append(time.perf_counter() - begin)
print(f"1024 x 1024 f32   times 1024 rows: MLX without OpenBLAS {sorted(times)[1] * 1e3:.0f} ms")
"""
LIBRARY = ROOT / "build/lib/libggml-mlx.so"


def default_models():
    folder = ROOT / "build/models"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("q8_0", "q4_0"):
        path = folder / f"small-{name}.gguf"
        if not path.exists():
            make_llm.write_model(path, make_llm.SIZES["small"], make_llm.FORMATS[name])
        yield path


def tokens_per_second(program, model, prompt, steps, on_mlx):
    """The speed of the prompt and of single steps, by llama-bench."""
    command = [program, "-m", model, "-p", prompt, "-n", steps, "-r", 1, "-t", 2, "-o", "json"]
    if on_mlx:
        command += ["-ngl", 99, "-ot", "token_embd=MLX0"]
    environment = {**os.environ, **({"GGML_BACKEND_PATH": str(LIBRARY)} if on_mlx else {})}
    output = subprocess.run(
        [str(part) for part in command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    ).stdout
    return [run["avg_ts"] for run in json.loads(output)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--steps", type=int, default=32)
    arguments = parser.parse_args()
    subprocess.run([ROOT / "build/bin/bench/mlx_graph_cost"], check=True)
    subprocess.run([sys.executable, "-c", PLAIN_MLX], check=True)
    prefix = ggml.installed_ggml() or ggml.build_ggml()
    program = ggml.build_llama(prefix, peers=True) / "bin/llama-bench"
    print(f"{'model':32} {'tokens/s':>16} {'MLX':>9} {'ggml CPU':>9} {'ratio':>6}")
    for model in arguments.model or default_models():
        rounds = {True: [], False: []}
        for _ in range(arguments.rounds):
            for on_mlx in rounds:
                rounds[on_mlx].append(
                    tokens_per_second(program, model, arguments.prompt, arguments.steps, on_mlx)
                )
        for k, what in enumerate((f"prompt of {arguments.prompt}", f"{arguments.steps} steps")):
            mlx, cpu = (statistics.median(run[k] for run in rounds[on_mlx]) for on_mlx in (True, False))
            print(f"{model.name:32} {what:>16} {mlx:9.1f} {cpu:9.1f} {mlx / cpu:6.2f}")


if __name__ == "__main__":
    main()
