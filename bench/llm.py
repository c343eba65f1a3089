#!/usr/bin/env python3
"""Compares the language models' engine with llama.cpp's own programs, in alternating rounds on this machine.

    python bench/llm.py [--model q8_0|q4_0 ...] [--rounds N] [--threads N] [--json FILE]

The models have Qwen3-0.6B's shape and random weights (bench/make_llm.py). One stream is compared with
llama-bench, eight with llama-batched-bench and llama-server, and one beside a busy neighbour with llama-bench
on one thread. What llama.cpp has no program for (shared starts, stalls, priorities, drafts) runs alone.
build/bench/llm.json gets every number.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench"
sys.path.insert(0, str(ROOT / "tools"))

from provision import base, ggml  # noqa: E402

PROMPT, GENERATE, STREAMS = 512, 64, 8
PORT = 18431


def peers():
    """The folder of llama.cpp's programs, built when the cache has none."""
    text = (base.BUILD / "setup.cmake").read_text()
    prefix = Path(re.search(r'HEADRACE_GGML_DIR "([^"]+)"', text)[1])
    return ggml.build_llama(prefix, peers=True) / "bin"


def model_file(kind, period=0):
    """A model of Qwen3-0.6B's shape with random weights, made when there is none."""
    path = OUT / f"0.6b-{kind}{f'-period-{period}' if period else ''}.gguf"
    if not path.exists():
        command = [sys.executable, ROOT / "bench/make_llm.py", "--type", kind, "--period", period]
        run([*command, "--output", path])
    return path


def run(command, **environment):
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env={**os.environ, **environment}
    )
    if result.returncode:
        sys.exit(f"{command[0]} failed:\n{result.stderr[-2000:]}")
    return result.stdout


def ours(model, threads, *options):
    path = OUT / "scenario.json"
    run([ROOT / "build/bin/headrace", "bench-llm", model, "--threads", threads, "--json", path, *options])
    return json.loads(path.read_text())


def our_streams(model, threads, streams):
    row = ours(
        model, threads, "--streams", streams, "--rounds", 1, "--prompt", PROMPT, "--generate", GENERATE
    )[0]
    return row["prompt_per_second"], row["generated_per_second"]


def llama_bench(bin_dir, model, threads, depth=0, **environment):
    """Tokens a second of a prompt, and generated, after `depth` tokens in the cache."""
    command = [bin_dir / "llama-bench", "-m", model, "-t", threads, "-p", PROMPT, "-n", GENERATE, "-r", 1]
    rows = json.loads(run([*command, "-d", depth, "-o", "json"], **environment))
    by_kind = {bool(row["n_gen"]): row["avg_ts"] for row in rows}
    return by_kind[False], by_kind[True]


def batched_bench(bin_dir, model, threads):
    command = [bin_dir / "llama-batched-bench", "-m", model, "-t", threads, "-c", 4096, "-npp", 8]
    text = run([*command, "-ntg", GENERATE, "-npl", STREAMS, "--output-format", "jsonl"])
    row = next(json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return row["speed_tg"]


def server(bin_dir, model, threads):
    """Generated tokens a second of eight requests at once, reading their short prompts included in none."""
    command = [
        bin_dir / "llama-server",
        "-m",
        model,
        "-t",
        threads,
        "-np",
        STREAMS,
        "-c",
        4096,
        "--port",
        PORT,
    ]
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{PORT}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(url + "/health")
                break
            except OSError:
                time.sleep(0.25)

        def complete(index):
            body = {"prompt": f"{index}", "n_predict": GENERATE, "temperature": 0, "ignore_eos": True}
            request = urllib.request.Request(
                url + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            return json.load(urllib.request.urlopen(request))["timings"]["predicted_n"]

        complete(0)
        with ThreadPoolExecutor(STREAMS) as pool:
            start = time.monotonic()
            tokens = sum(pool.map(complete, range(STREAMS)))
            return tokens / (time.monotonic() - start)
    finally:
        process.terminate()
        process.wait()


class Neighbor:
    """A process that keeps one core busy."""

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def compare(name, rounds, our_run, their_runs, results):
    """Medians of alternating rounds; a ratio above 1: ours is faster."""
    mine, theirs = [], {peer: [] for peer in their_runs}
    for _ in range(rounds):
        mine.append(our_run())
        for peer, their_run in their_runs.items():
            theirs[peer].append(their_run())
    value = statistics.median(mine)
    for peer, values in theirs.items():
        other = statistics.median(values)
        print(f"{name:34} {value:9.1f} tokens/s   {peer} {other:9.1f}   {value / other:5.2f}", flush=True)
        results.append({"case": name, "ours": value, "peer": peer, "theirs": other, "ratio": value / other})


def bench_model(bin_dir, kind, threads, rounds):
    model = model_file(kind)
    results = []
    for part, what in enumerate(("prompt", "generate")):
        compare(
            f"{kind} one stream, {what}",
            rounds,
            lambda part=part: our_streams(model, threads, 1)[part],
            {"llama-bench": lambda part=part: llama_bench(bin_dir, model, threads)[part]},
            results,
        )
    compare(
        f"{kind} {STREAMS} streams, generate",
        rounds,
        lambda: our_streams(model, threads, STREAMS)[1],
        {
            "llama-batched-bench": lambda: batched_bench(bin_dir, model, threads),
            "llama-server": lambda: server(bin_dir, model, threads),
        },
        results,
    )
    with Neighbor():
        compare(
            f"{kind} beside a busy neighbour",
            rounds,
            lambda: our_streams(model, threads, 1)[1],
            {"llama-bench, 1 thread": lambda: llama_bench(bin_dir, model, 1)[1]},
            results,
        )
    # Random weights never repeat themselves, and drafts are for text that does.
    for scenario in ("prefix", "stall", "priority", "speculation"):
        scene = model_file(kind, period=12) if scenario == "speculation" else model
        row = ours(scene, threads, "--scenario", scenario, "--rounds", rounds)
        results.append({"case": f"{kind} {scenario}", **row})
        print(f"{kind} {scenario}: {row}", flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="*", default=["q8_0", "q4_0"], choices=["q8_0", "q4_0"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, default=OUT / "llm.json")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    bin_dir = peers()
    results = []
    for kind in arguments.model:
        results += bench_model(bin_dir, kind, arguments.threads, arguments.rounds)
    arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    base.run_main(main)
