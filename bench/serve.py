#!/usr/bin/env python3
"""Compares headrace serve with llama-server: the same model, flags and requests, in alternating rounds.

    python bench/serve.py [--model q8_0|q4_0 ...] [--rounds N] [--requests N] [--clients 1 8 32] [--json FILE]
    python bench/serve.py --embeddings [--rounds N]

Both servers are up; the one that is not measured is stopped (SIGSTOP). First their greedy answers are
compared. A round asks with 1, 8 and 32 clients that go on at once, then with clients that come at random
(Poisson) at 70 % of what llama-server has just managed, then with one client alone, for what HTTP adds to a
token. Every request names its seed and its number of tokens. A ratio is ours by theirs: of tokens/s above 1,
of ms below 1 is better. --embeddings: texts per second of MiniLM as a graph and as a GGUF file,
beside llama-server and fastembed.
Vectors of texts are made by MiniLM: headrace serve has it beside the other model, and of llama-server, which
serves one model, a second one runs.
build/bench/serve.json and serve-embeddings.json get every number.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import serve_agreement
import serve_embeddings
from serve_load import Ask, Load, Ports, arrivals, closed_loop, make_asks, open_loop, settings, words
from serve_programs import Program, end_with_the_servers

from llm import OUT, ROOT, base, model_file, peers, run

#: Of llama-server's requests a second.
POISSON_SHARE = 0.7
#: Context tokens of a request: a document and its answer fit.
CONTEXT = 2048
#: One client alone: words of its prompt, tokens of its answer, and how often it asks in a round.
ALONE_WORDS, ALONE_TOKENS, ALONE_REQUESTS = 64, 128, 4


@dataclass
class Table:
    """Values by case and side, one for each round."""

    units: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, case: str, unit: str, side: str, value: float) -> None:
        self.units[case] = unit
        self.values.setdefault(case, {}).setdefault(side, []).append(value)
        print(f"    {case}, {side}: {value:.2f} {unit}", flush=True)  # a run that is stopped has shown it

    def rows(self) -> list[dict]:
        """Medians over rounds, and their ratios to the first side's."""
        made = []
        for case, sides in self.values.items():
            medians = {side: statistics.median(values) for side, values in sides.items()}
            (ours, value), *others = medians.items()
            row = {"case": case, "unit": self.units[case], "rounds": sides, **medians}
            row["ratios"] = {f"{ours} / {side}": value / other for side, other in others if other}
            made.append(row)
        return made

    def show(self) -> list[dict]:
        rows = self.rows()
        for row in rows:
            sides = "   ".join(f"{side} {row[side]:9.2f}" for side in row["rounds"])
            ratios = "   ".join(f"{ratio:5.2f}" for ratio in row["ratios"].values())
            print(f"{row['case']:44} {row['unit']:10} {sides}   {ratios}", flush=True)
        return rows


@contextmanager
def awake(program: Program) -> Iterator[int]:
    """Its port, while it runs and the others do not."""
    program.resume()
    try:
        yield program.port
    finally:
        program.pause()


@dataclass(frozen=True)
class Side:
    """A program, or two of one name, which run at the same times."""

    texts: Program
    vectors: Program

    @property
    def name(self) -> str:
        return self.texts.name


@contextmanager
def side_awake(side: Side) -> Iterator[Ports]:
    with awake(side.texts) as texts, awake(side.vectors) as vectors:
        yield Ports(texts, vectors)


@contextmanager
def sides_of(model: Path, options: argparse.Namespace) -> Iterator[list[Side]]:
    """headrace serve with both models, and two llama-servers, all stopped."""
    vectors = serve_embeddings.model_file(run)
    threads = ["-t", options.threads]
    flags = ["-m", model, "-c", CONTEXT * options.parallel, "-np", options.parallel, "--no-warmup", *threads]
    flags_of_vectors = ["-m", vectors, "--embeddings", "--pooling", "mean", *threads]
    with ExitStack() as stack:

        def start(name: str, command: list[object], flags: list[object], log: str) -> Program:
            program = Program(name, command, flags, OUT / f"serve-{log}.log")
            stack.callback(program.stop)
            program.pause()
            return program

        ours = start("headrace", [options.headrace, "serve"], [*flags, "--embed", vectors], "headrace")
        peer = [peers() / "llama-server"]
        theirs = [
            start("llama-server", peer, flags, "llama-server"),
            start("llama-server", peer, flags_of_vectors, "llama-server-vectors"),
        ]
        yield [Side(ours, ours), Side(*theirs)]


@contextmanager
def both(headrace: Path, model: Path, options: argparse.Namespace, *more: object) -> Iterator[list[Program]]:
    """headrace serve and llama-server with the same flags, stopped."""
    context = CONTEXT * options.parallel
    flags = ["-m", model, "-c", context, "-np", options.parallel, "-t", options.threads, "--no-warmup", *more]
    commands = {"headrace": [headrace, "serve"], "llama-server": [peers() / "llama-server"]}
    with ExitStack() as stack:
        programs = []
        for name, command in commands.items():
            programs.append(Program(name, command, flags, OUT / f"serve-{name}.log"))
            stack.callback(programs[-1].stop)
            programs[-1].pause()
        yield programs


def add_throughput(table: Table, case: str, side: str, load: Load) -> None:
    table.add(f"{case}, generated", "tokens/s", side, load.generated_per_second)
    table.add(f"{case}, prompts read", "tokens/s", side, load.prompt_per_second)
    table.add(f"{case}, the client's part of a core", "%", side, 100 * load.client_share)


def add_latencies(table: Table, case: str, side: str, load: Load) -> None:
    for what, shown in (("first", "first token"), ("between", "between tokens")):
        for share in (0.5, 0.95):
            table.add(f"{case}, {shown} p{share * 100:.0f}", "ms", side, load.percentile(what, share))
    table.add(f"{case}, vectors p95", "ms", side, load.percentile("vectors", 0.95))
    texts = sum(len(answer.texts) for answer in load.answers)
    table.add(f"{case}, tokens an event", "", side, sum(a.tokens for a in load.answers) / texts)


def add_http(table: Table, side: str, load: Load) -> None:
    """What a token takes in the stream, and what the engine says that it took."""
    for answer in load.answers:
        stream = sum(answer.gaps_ms) / (answer.tokens - 1)
        engine = answer.timings["predicted_per_token_ms"]
        named = sum(answer.timings.get(name, 0) for name in ("queued_ms", "prompt_ms", "predicted_ms"))
        table.add("one client, a token in the stream", "ms", side, stream)
        table.add("one client, a token by the engine's timings", "ms", side, engine)
        table.add("one client, HTTP adds to a token", "ms", side, stream - engine)
        whole = ((answer.end - answer.start) * 1e3 - named) / answer.tokens
        table.add("one client, the same of the whole request", "ms", side, whole)


def asks_alone(seed: str) -> list[Ask]:
    generator = random.Random(seed)
    body = {**settings(ALONE_TOKENS, 1), "temperature": 0}
    prompts = (words(generator, ALONE_WORDS) for _ in range(ALONE_REQUESTS))
    return [Ask("alone", "/completion", {"prompt": prompt, **body}, ALONE_TOKENS) for prompt in prompts]


def engine_alone(headrace: Path, model: Path, threads: int) -> float:
    """Milliseconds a token of the engine in a process without HTTP and without a client."""
    path = OUT / "alone.json"
    options = ["--streams", 1, "--rounds", 1, "--prompt", ALONE_WORDS, "--generate", ALONE_TOKENS]
    run([headrace, "bench-llm", model, "--threads", threads, "--json", path, *options])
    return 1e3 / json.loads(path.read_text())[0]["generated_per_second"]


async def bench_round(table: Table, number: int, sides: Sequence[Side], options) -> None:
    """One after the other, and another one first in every round."""
    order = sides if number % 2 == 0 else sides[::-1]
    capacity = 0.0
    for clients in options.clients:
        asks = make_asks(f"round {number}, {clients} clients", options.requests // (4 if clients == 1 else 1))
        for side in order:
            with side_awake(side) as ports:
                load = await closed_loop(ports, asks, clients)
            add_throughput(table, f"{clients} clients" if clients > 1 else "1 client", side.name, load)
            if side is sides[1]:
                capacity = max(capacity, load.requests_per_second)
    rate = POISSON_SHARE * capacity
    asks = make_asks(f"round {number}, Poisson", options.requests)
    moments = arrivals(f"round {number}", options.requests, rate)
    for side in order:
        with side_awake(side) as ports:
            load = await open_loop(ports, asks, moments)
        add_latencies(table, "Poisson", side.name, load)
        table.add("Poisson, requests", "1/s", side.name, rate)
    for side in order:
        with side_awake(side) as ports:
            add_http(table, side.name, await closed_loop(ports, asks_alone(f"round {number}"), 1))


async def bench_chats(kind: str, options: argparse.Namespace) -> list[dict]:
    model = options.gguf or model_file(kind)
    table, alone = Table(), []
    with sides_of(model, options) as sides:
        answers = []
        for side in sides:
            with side_awake(side) as ports:
                answers.append(await serve_agreement.answers_of(ports.texts))
                await closed_loop(ports, make_asks("warm", 4), 2)
        rows = serve_agreement.report(*answers)
        for number in range(options.rounds):
            await bench_round(table, number, sides, options)
            alone.append(engine_alone(options.headrace, model, options.threads))
            print(f"{kind}: round {number + 1} of {options.rounds}", flush=True)
    for value in alone:
        table.add("one client, a token of the engine by bench-llm", "ms", "headrace", value)
    rows += table.show()
    return [{"model": kind, "parallel": options.parallel, **row} for row in rows]


@contextmanager
def embedding_servers(options: argparse.Namespace) -> Iterator[list[Program]]:
    """headrace serve with the graph, and with the GGUF file as llama-server has it; stopped."""
    graph = serve_embeddings.graph_file(run, options.headrace)
    flags = ["--embed", graph, "-np", options.parallel, "-t", options.threads]
    model = serve_embeddings.model_file(run)
    with both(options.headrace, model, options, "--embeddings", "--pooling", "mean") as programs:
        server = Program("graph", [options.headrace, "serve"], flags, OUT / "serve-graph.log")
        try:
            server.pause()
            yield [server, *programs]
        finally:
            server.stop()


async def bench_embeddings(options: argparse.Namespace) -> list[dict]:
    table = Table()
    options.parallel = serve_embeddings.CLIENTS
    with embedding_servers(options) as programs:
        fastembed = serve_embeddings.fastembed_model(options.threads)
        vectors = {}
        for program in programs:
            with awake(program) as port:
                vectors[program.name] = await serve_embeddings.vectors_of(port)
        if fastembed:
            vectors["fastembed"] = serve_embeddings.fastembed_vectors(fastembed)
        rows = serve_embeddings.compare(vectors)
        for number in range(options.rounds):
            for clients, batch in serve_embeddings.CASES:
                texts = serve_embeddings.make_texts(f"round {number}, {clients}, {batch}", options.texts)
                case = f"{batch} text{'s' * (batch > 1)} a request, {clients} client{'s' * (clients > 1)}"
                for program in programs if number % 2 == 0 else programs[::-1]:
                    with awake(program) as port:
                        rate = await serve_embeddings.texts_per_second(port, texts, batch, clients)
                    table.add(case, "texts/s", program.name, rate)
                if fastembed:
                    rate = serve_embeddings.fastembed_texts_per_second(fastembed, texts, batch)
                    table.add(case, "texts/s", "fastembed", rate)
    return rows + table.show()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="*", default=["q8_0", "q4_0"], choices=["q8_0", "q4_0"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--parallel", type=int, default=8, help="requests that each server runs at once")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--requests", type=int, default=48, help="in each part of a round")
    parser.add_argument("--embeddings", action="store_true", help="MiniLM's texts per second")
    parser.add_argument("--texts", type=int, default=512, help="of --embeddings, in each part of a round")
    parser.add_argument("--headrace", type=Path, default=ROOT / "build/bin/headrace", help="the program")
    parser.add_argument("--gguf", type=Path, help="another model, to try this program")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if options.embeddings:
        rows = asyncio.run(bench_embeddings(options))
    else:
        rows = [row for kind in options.model for row in asyncio.run(bench_chats(kind, options))]
    path = options.json or OUT / ("serve-embeddings.json" if options.embeddings else "serve.json")
    path.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    end_with_the_servers()
    sys.stdout.reconfigure(line_buffering=True)
    base.run_main(main)
