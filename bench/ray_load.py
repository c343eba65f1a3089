#!/usr/bin/env python3
"""Ray Serve with 1 to 4 replicas of the tiny model on this machine, and what a request costs on its way.

    python bench/ray_load.py [--replicas 1 2 4] [--seconds 10] [--callers 16]

Prints the median time of a request that is alone, by the library, a Python handle and HTTP; then requests per
second under load, the CPU time of a request in each process on its way, and the rate that this time allows.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import threading
import time
from collections import Counter
from pathlib import Path

MODEL = Path(__file__).resolve().parent.parent / "models/tiny-chat-q8_0.gguf"
PORT = 8345
PARTS = {"ProxyActor": "proxy", ":gateway": "gateway", ":model": "replicas", "ServeController": "controller"}
PARAMETERS = {"temperature": 0, "n_predict": 32, "ignore_eos": True}


def request(number: int) -> dict[str, object]:
    return {
        "prompt": f"Tell me a story about {number}.",
        "session": f"caller {number}",
        "parameters": PARAMETERS,
    }


def post(connection: http.client.HTTPConnection, body: dict[str, object]) -> bytes:
    try:
        connection.request("POST", "/", json.dumps(body))
        response = connection.getresponse()
    except ConnectionError:  # it was idle for too long
        connection.close()
        connection.request("POST", "/", json.dumps(body))
        response = connection.getresponse()
    data = response.read()
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {data.decode()}")
    return data


def cpu_seconds() -> Counter[str]:
    """CPU time of Serve's processes and of this one, by part."""
    times: Counter[str] = Counter()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command = (folder / "cmdline").read_text()
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        part = next(
            (part for mark, part in PARTS.items() if command.startswith("ray::") and mark in command), None
        )
        if int(folder.name) == os.getpid():
            part = "callers"
        if part:
            times[part] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return times


def median_ms(call, rounds: int = 40) -> float:
    for number in range(5):
        call(number)
    times = []
    for number in range(rounds):
        began = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def measure_one_request(handle) -> None:
    from headrace import LanguageModel

    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    with LanguageModel(MODEL, {"n_threads": 1}) as model:
        ways = {
            "library": lambda number: model.generate(request(number)["prompt"], PARAMETERS),
            "Python handle": lambda number: handle.generate.remote(request(number)).result(),
            "HTTP": lambda number: post(connection, {**request(number), "stream": False}),
            "HTTP, streamed": lambda number: post(connection, request(number)),
        }
        alone = None
        print(
            f"\n| one caller, {PARAMETERS['n_predict']} tokens | ms | more than the library |\n|---|---|---|"
        )
        for name, call in ways.items():
            ms = median_ms(call)
            alone = ms if alone is None else alone
            print(f"| {name} | {ms:.1f} | {ms - alone:.1f} |", flush=True)


def measure_load(callers: int, seconds: float) -> tuple[float, float, dict[str, float]]:
    """Requests per second, their median time in ms, and CPU milliseconds of a request by part."""
    times, until = [], time.perf_counter() + seconds

    def call(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", PORT)
        while time.perf_counter() < until:
            began = time.perf_counter()
            post(connection, request(number))
            times.append(time.perf_counter() - began)

    before, began = cpu_seconds(), time.perf_counter()
    threads = [threading.Thread(target=call, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, used = time.perf_counter() - began, cpu_seconds()
    cpu = {part: (used[part] - before[part]) * 1e3 / len(times) for part in used}
    return len(times) / took, statistics.median(times) * 1e3, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--callers", type=int, default=16)
    options = parser.parse_args()
    # Ray's workers give way to other programs by default, and its proxy has 5 s to start.
    os.environ.update(
        RAY_worker_niceness="0", RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S="120", HEADRACE_LOG="warn"
    )
    import headrace.ray
    import ray
    from ray import serve

    cores = len(os.sched_getaffinity(0))
    ray.init(num_cpus=cores, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    rows = []
    for replicas in options.replicas:
        application = headrace.ray.application(MODEL, replicas=replicas, cpus=cores / 8, streams=8)
        handle = serve.run(application)
        if not rows:
            measure_one_request(handle)
        measure_load(options.callers, 2)  # warm
        rows.append((replicas, *measure_load(options.callers, options.seconds)))
        serve.delete("default")
    parts = [*dict.fromkeys(PARTS.values()), "callers"]
    print(
        f"\n{options.callers} callers, {cores} cores; CPU time of a request in ms, and what it allows at most"
    )
    print(f"\n| replicas | requests/s | tokens/s | median ms | {' | '.join(parts)} | cores / time |")
    print("|---" * (len(parts) + 5) + "|")
    for replicas, rate, ms, cpu in rows:
        shares = " | ".join(f"{cpu.get(part, 0):.1f}" for part in parts)
        bound = cores / (sum(cpu.values()) / 1e3)
        tokens = rate * PARAMETERS["n_predict"]
        print(f"| {replicas} | {rate:.1f} | {tokens:.0f} | {ms:.0f} | {shares} | {bound:.1f} |")
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main()
