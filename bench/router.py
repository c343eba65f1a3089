#!/usr/bin/env python3
"""Several models behind one address: headrace serve and llama-server's router, two models, room for one.

    python bench/router.py [--rounds N] [--threads N] [--answer TOKENS] [--json FILE]

Both models have Qwen3-0.6B's shape, as q8_0 and as q4_0. A round asks for the model that is not in memory
and waits for its first token; then the one that was put out is asked for again, by a request that comes while
the other one still answers a long stream. Counted: how long the first token takes, and whether the stream
that was running came whole. Files are in the page cache.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from raw_http import Connection, request_bytes
from serve_programs import Program, end_with_the_servers

import llm

KINDS = ("q8_0", "q4_0")


def start(name, folder, threads):
    programs = {
        "headrace": [llm.ROOT / "build/bin/headrace", "serve"],
        "llama-server": [llm.peers() / "llama-server"],
    }
    flags = ["--models-dir", folder, "--models-max", 1, "-c", 4096, "-np", 4, "-t", threads, "--no-warmup"]
    return Program(name, programs[name], flags, llm.OUT / f"router-{name}.log")


def completion(model, tokens, seed):
    body = {
        "model": model,
        "prompt": f"Story {seed}:",
        "max_tokens": tokens,
        "stream": True,
        "ignore_eos": True,
        "temperature": 0,
        "seed": seed,
    }
    return request_bytes("/v1/completions", json.dumps(body).encode())


async def ask(port, model, tokens, seed):
    """When the first token came (s from the request), and how many events with text the answer had."""
    connection = Connection(port)
    begin = time.perf_counter()
    try:
        answer = await connection.ask(completion(model, tokens, seed))
    except (OSError, EOFError) as error:
        return None, 0, f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    texts = [(moment, event) for moment, event in answer.events if b'"text"' in event]
    if answer.status != 200 or not texts:
        return None, 0, f"{answer.status}: {answer.body[:200]!r}"
    ended = answer.events[-1][1].strip() == b"[DONE]"
    return texts[0][0] - begin, len(texts), "" if ended else "the stream broke off"


async def one_round(server, models, tokens, seed):
    """Milliseconds of each case; the last says how much of the running answer came."""
    first, second = models
    times = {}

    async def measure(case, model, count=1):
        seconds, _, fault = await ask(server.port, model, count, seed)
        times[case] = seconds * 1e3 if seconds is not None else None
        if fault:
            print(f"    {server.name}: {case}: {fault}", flush=True)

    await measure("a model that is not in memory", first)
    await measure("the one that is", first)
    await measure("the other one, which has to make room", second)
    running = asyncio.create_task(ask(server.port, second, tokens, seed))
    await asyncio.sleep(1)
    await measure("the first again, while the other answers", first)
    _, _, fault = await running
    if fault:
        print(f"    {server.name}: the running answer: {fault}", flush=True)
    times["running answers that came whole"] = 0 if fault else 1
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--answer", type=int, default=200, help="tokens of the answer that runs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    end_with_the_servers()
    llm.OUT.mkdir(parents=True, exist_ok=True)
    results = {name: [] for name in ("headrace", "llama-server")}
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            (Path(folder) / f"model-{kind}.gguf").symlink_to(llm.model_file(kind).resolve())
        models = [f"model-{kind}" for kind in KINDS]
        for number in range(options.rounds):
            for name, rows in results.items():
                server = start(name, folder, options.threads)
                try:
                    rows.append(asyncio.run(one_round(server, models, options.answer, number)))
                finally:
                    server.stop()
    for case in results["headrace"][0]:
        ours, theirs = ([row[case] for row in rows if row[case] is not None] for rows in results.values())
        if case.startswith("running"):
            print(f"{case:45} {sum(ours):9} {sum(theirs):9}   of {options.rounds}")
        elif ours and theirs:
            ours, theirs = statistics.median(ours), statistics.median(theirs)
            print(f"{case:45} {ours:9.0f} {theirs:9.0f} ms  {ours / theirs:.2f}")
        else:
            print(f"{case:45} was not answered by {'llama-server' if ours else 'headrace'}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
