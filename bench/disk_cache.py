#!/usr/bin/env python3
"""What the next turn of a conversation costs after a restart or an eviction, with and without --cache-dir.

    python bench/disk_cache.py [--model FILE] [--tokens N] [--turn N] [--rounds N] [--threads N] [--json FILE]

The model has Qwen3-0.6B's shape and random weights unless another is named. A conversation of N tokens is
read; then the next turn, a few tokens more, is asked for: of the same server, of one that was started anew
with the folder of the first, with its files in the page cache and not, and of one without a folder. Times are
until the first token. llama-server does the same with its slots: after a restart the client has to restore
the slot that it had saved, which counts, and after an eviction the prompt comes from --cache-ram.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path

from raw_http import HOST
from serve_programs import Program, end_with_the_servers

import llm


def start(model, threads, *flags):
    command = [
        llm.ROOT / "build/bin/headrace",
        "serve",
        model,
        "--threads",
        threads,
        "-c",
        16384,
        "--metrics",
    ]
    return Program("headrace serve", command, flags, llm.OUT / "disk_cache.log")


def start_peer(model, threads, *flags):
    command = [llm.peers() / "llama-server", "-m", model, "-t", threads, "-np", 1, "--no-warmup"]
    return Program("llama-server", command, flags, llm.OUT / "disk_cache-llama-server.log")


def post(server, path, body):
    request = urllib.request.Request(
        f"http://{HOST}:{server.port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)


def ask(server, tokens):
    """Milliseconds until the first token, and how many tokens were not computed."""
    begin = time.perf_counter()
    answer = post(server, "/completion", {"prompt": tokens, "n_predict": 1, "temperature": 0})
    return (time.perf_counter() - begin) * 1e3, answer["timings"]["cache_n"]


def written_tokens(server):
    with urllib.request.urlopen(f"http://{HOST}:{server.port}/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    name = "headrace_disk_written_tokens_total"
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def wait_until_written(server, tokens):
    end = time.monotonic() + 120
    while written_tokens(server) < tokens // 64 * 64 and time.monotonic() < end:
        time.sleep(0.05)


def drop_from_page_cache(folder):
    os.sync()
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


class Conversation:
    """A round's text, and what each case took."""

    def __init__(self, prompt, turn, first):
        """first: a token that makes the round's texts new ones."""
        self.first, self.prompt, self.turn = first, [first, *prompt], turn
        self.room = ["-c", 2 * (len(self.prompt) + len(turn) + 256) // 256 * 256]
        self.ms, self.cached_tokens = {}, {}

    def measure(self, name, server, tokens=None, before_ms=0.0):
        """Without tokens: the next turn, which nobody asked before: only the conversation is remembered."""
        tokens = tokens or self.prompt + [token + len(self.ms) for token in self.turn]
        ms, self.cached_tokens[name] = ask(server, tokens)
        self.ms[name] = before_ms + ms

    def evict(self, server):
        """By all that the context holds."""
        for other in range(2):
            ask(server, [self.first + 1 + other, *self.prompt[1:]])


def one_round(model, threads, conversation, folder):
    measure, room = conversation.measure, conversation.room
    disk = [*room, "--cache-dir", folder]
    server = start(model, threads, *room)
    measure("conversation, cold", server, conversation.prompt)
    server.stop()
    server = start(model, threads, *room)
    measure("next turn, cold", server)
    server.stop()
    server = start(model, threads, *disk)
    measure("conversation, cold, written to disk", server, conversation.prompt)
    wait_until_written(server, len(conversation.prompt))
    measure("next turn, in the context", server)
    server.stop()
    server = start(model, threads, *disk)
    measure("next turn, after a restart, page cache warm", server)
    server.stop()
    drop_from_page_cache(folder)
    server = start(model, threads, *disk)
    measure("next turn, after a restart, page cache cold", server)
    server.stop()
    server = start(model, threads, *disk, "--cache-ram", 0)
    ask(server, conversation.prompt)
    conversation.evict(server)
    measure("next turn, after an eviction", server)
    server.stop()


def peer_round(model, threads, conversation, folder):
    """The same of llama-server, whose client saves and restores."""
    folder = folder.resolve()
    folder.mkdir(exist_ok=True)
    flags = [*conversation.room, "--slot-save-path", folder]
    server = start_peer(model, threads, *flags)
    conversation.measure("next turn, cold", server)
    server.stop()
    server = start_peer(model, threads, *flags)
    ask(server, conversation.prompt)
    post(server, "/slots/0?action=save", {"filename": "conversation"})
    conversation.measure("next turn, in the context", server)
    server.stop()
    server = start_peer(model, threads, *flags)
    begin = time.perf_counter()
    post(server, "/slots/0?action=restore", {"filename": "conversation"})
    restore_ms = (time.perf_counter() - begin) * 1e3
    conversation.measure("next turn, after a restart, page cache warm", server, before_ms=restore_ms)
    conversation.evict(server)
    conversation.measure("next turn, after an eviction", server)
    server.stop()


def show(name, rounds):
    """Prints the medians; returns them."""
    median = {case: statistics.median(one["ms"][case] for one in rounds) for case in rounds[0]["ms"]}
    print(name)
    for case, ms in median.items():
        cached = rounds[0]["cached_tokens"][case]
        part = ms / median["next turn, cold"]
        print(f"  {case:45} {ms:9.1f} ms  {part:6.3f} of cold  {cached:6} tokens not computed")
    return median


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--turn", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, help="where the cache lies: the disk that is measured")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    end_with_the_servers()
    llm.OUT.mkdir(parents=True, exist_ok=True)
    model = options.model or llm.model_file("q8_0")
    prompt = [1000 + i * 7919 % 3000 for i in range(options.tokens - 1)]
    turn = [500 + i * 31 % 400 for i in range(options.turn)]
    sides = {"headrace": one_round, "llama-server": peer_round}
    rounds = {side: [] for side in sides}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for number in range(options.rounds):
            for side, measure in sides.items():
                conversation = Conversation(prompt, turn, 4000 + 10 * number)
                measure(model, options.threads, conversation, Path(folder) / side)
                rounds[side].append({"ms": conversation.ms, "cached_tokens": conversation.cached_tokens})
        files = list((Path(folder) / "headrace").glob("*.kv"))
        size = sum(file.stat().st_size for file in files) / len(files)
    medians = {side: show(side, of_side) for side, of_side in rounds.items()}
    print(f"a block of 64 tokens: {size / 2**20:.1f} MiB")
    if options.json:
        result = {"rounds": rounds, "median_ms": medians, "block_bytes": size}
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
