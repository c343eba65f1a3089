#!/usr/bin/env python3
"""An hour of headrace serve at full load, with everything that a service goes through in a year.

    python bench/serve_soak.py [--minutes 60] [--clients 16] [--headrace FILE] [--seed N]

Seven tiny models share room for three. One's file is swapped again and again, the server is ended and killed,
and the file system of its prompts is full twice, while clients ask, leave, and check every answer: no request
may be lost without a word or get another's answer. Prints a table; the exit status is 1 when a line of it
fails. It mounts a file system of its own, for which the system must allow user namespaces.
"""

from __future__ import annotations

import argparse
import asyncio
import operator
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "tests/serve"))
from raw_http import Connection, request_bytes
from serve_models import write_story_model, write_vector_model
from serve_programs import Program, end_with_the_servers
from serve_visits import verdict
from soak_visits import (
    PROMPTS,
    SWAPPED,
    WRITERS,
    Client,
    Expected,
    Life,
    Tally,
    embedding_request,
    writing,
    written_text,
)

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench"
#: What must be reached, and the bytes of prompts on disk: of their limit and of their file system.
SWAPS, RESTARTS, KILLS, FULL_DISKS, EVICTIONS, CANCELLATIONS = 50, 20, 10, 2, 500, 1000
CACHE_MIB, DISK_MIB = 6, 16
#: Seconds of a full disk, and looks (a second apart) for what must come about.
FULL_SECONDS, LOOKS = 45, 120
ON_A_DISK_OF_ITS_OWN = "--cache-folder"


def write_models(folder: Path) -> None:
    """The models, and the two files that take turns as SWAPPED."""
    (folder / "models").mkdir()
    for number in range(WRITERS):
        write_story_model(folder / f"models/writer{number}.gguf", seed=number)
    for number, name in enumerate(("old", "new"), WRITERS):
        write_story_model(folder / f"{name}.gguf", seed=number)
    os.link(folder / "old.gguf", folder / f"models/{SWAPPED}.gguf")
    write_vector_model(folder / "models/vectors.gguf")
    shutil.copy(ROOT / "models/tiny-chat-q8_0.gguf", folder / "models/chat.gguf")
    writers = {f"writer{n}": folder / f"models/writer{n}.gguf" for n in range(WRITERS)}
    write_preset(folder / "models.ini", writers | {SWAPPED: folder / f"models/{SWAPPED}.gguf"})
    files = {name: folder / f"{name}.gguf" for name in ("old", "new")}
    write_preset(folder / "learnt.ini", writers | files)


def write_preset(path: Path, models: dict[str, Path]) -> None:
    """batch-invariant, so that an answer is right or wrong."""
    path.write_text("".join(f"[{n}]\nmodel = {f}\nbatch-invariant = true\n" for n, f in models.items()))


@dataclass
class Soak:
    """The server and what is done to it."""

    folder: Path
    disk: Path
    program_file: Path
    tally: Tally = field(default_factory=Tally)
    expected: Expected = field(default_factory=Expected)
    clients: list[Client] = field(default_factory=list)
    is_over: bool = False

    def start(self) -> None:
        cache = ("--cache-dir", self.disk / "prompts", "--cache-disk", CACHE_MIB)
        self.start_with("models.ini", "--metrics", *cache)

    def start_with(self, preset: str, *flags: object) -> None:
        all_flags = [
            "--models-dir", self.folder / "models", "--models-preset", self.folder / preset, *flags,
            "--models-max", 3, "-c", 2048, "-np", 4, "-t", 2, "--log-disable",
        ]  # fmt: skip
        self.program = Program("headrace", [self.program_file, "serve"], all_flags, OUT / "serve-soak.log")
        self.life, self.counted = Life(self.program.port), {}

    async def ask(self, request: bytes):
        connection = Connection(self.life.port)
        try:
            return await connection.ask(request)
        finally:
            connection.close()

    async def learn(self) -> None:
        """What is right: from a server that keeps nothing, of files that stay, one answer after the other.

        Then the server of the soak takes its place.
        """
        for file in [*(f"writer{n}" for n in range(WRITERS)), "old", "new"]:
            self.expected.texts[file] = [
                written_text(await self.ask(writing(file, number, streams=False)))
                for number in range(PROMPTS)
            ]
        if any(map(operator.eq, self.expected.texts["old"], self.expected.texts["new"])):
            raise SystemExit("two files write the same after a prompt: nobody can tell which one answers")
        for number in range(PROMPTS):
            answer = await self.ask(embedding_request(number))
            self.expected.vectors.append(answer.json()["data"][0]["embedding"])
        await asyncio.to_thread(self.program.stop)
        self.start()

    def put_in_place(self, file: str) -> None:
        shutil.copy(self.folder / f"{file}.gguf", self.folder / "next")
        (self.folder / "next").rename(self.folder / f"models/{SWAPPED}.gguf")

    async def until(self, is_so: Callable[[], bool], what: str) -> bool:
        for _ in range(LOOKS):
            if is_so():
                return True
            await asyncio.sleep(1)
        self.tally.problems[f"{what} did not come about in {LOOKS} s"] += 1
        return False

    async def swap(self) -> None:
        file = "old" if self.tally.counts["swaps"] % 2 else "new"
        for client in self.clients:
            client.seen = ""
        self.expected.swapped = ["old", "new"]
        self.put_in_place(file)
        await asyncio.sleep(2)

        def has_answered() -> bool:
            return any(client.seen == file for client in self.clients)

        if await self.until(has_answered, "an answer of a new file"):
            self.expected.swapped = [file]
            self.tally.counts["swaps"] += 1

    async def restart(self) -> None:
        kills = self.tally.counts["restarts"] % 2 == 1
        self.life.ending = "kill" if kills else "term"
        if kills:
            self.program.process.kill()
        status = await asyncio.to_thread(self.program.stop)
        if status != (-9 if kills else 0):
            self.tally.problems[f"exit status {status} after {self.life.ending}"] += 1
        self.tally.counts["kills"] += kills
        self.tally.counts["restarts"] += 1
        await asyncio.to_thread(self.start)

    async def fill_the_disk(self) -> None:
        """Until writes of prompts have failed and for FULL_SECONDS; then they must go on."""
        ballast, before = self.disk / "ballast", self.tally.counts["failed writes of prompts"]
        shutil.rmtree(self.disk / "prompts", ignore_errors=True)  # so that more is to be written
        with open(ballast, "wb", buffering=0) as file:
            while True:
                try:
                    file.write(b"\0" * 4096)
                except OSError:
                    break

        def has_failed() -> bool:
            return self.tally.counts["failed writes of prompts"] > before

        if await self.until(has_failed, "a failed write"):
            await asyncio.sleep(FULL_SECONDS)
            self.tally.counts["full disks"] += 1
        ballast.unlink()
        blocks = len(self.blocks())
        await self.until(lambda: len(self.blocks()) > blocks, "a block after the disk was full")

    def blocks(self) -> set[str]:
        return {file.name for file in (self.disk / "prompts").glob("*.kv")}

    async def count(self) -> None:
        """Every second: what metrics say of this life, and the blocks that went."""
        known: set[str] = set()
        names = {
            "headrace_models_unloaded_total": "models given back",
            "headrace_disk_cache_failures_total": "failed writes of prompts",
            "headrace_disk_cached_tokens_total": "tokens of prompts from the disk",
        }
        while not self.is_over:
            now = self.blocks()
            self.tally.counts["blocks of prompts given back"] += len(known - now)
            known, life = now, self.life
            try:
                text = (await self.ask(request_bytes("/metrics"))).body.decode()
            except (OSError, EOFError, ValueError):
                text = ""
            if life is self.life:
                for line in text.splitlines():
                    key, _, value = line.rpartition(" ")
                    if (name := names.get(key.split("{")[0])) and not line.startswith("#"):
                        # A model that comes back begins at 0.
                        more = float(value) - self.counted.get(key, 0)
                        self.tally.counts[name] += int(more if more >= 0 else float(value))
                        self.counted[key] = float(value)
            await asyncio.sleep(1)

    async def client_life(self, client: Client) -> None:
        number = 0
        while not self.is_over:
            client.move_to(self.life)
            if self.life.ending:  # nobody listens
                await asyncio.sleep(0.2)
            # Some still ask of a server that ends.
            if not self.life.ending or client.random.random() < 0.2:
                await client.visit(number)
                number += 1


def plan(minutes: float, generator: random.Random) -> list[tuple[float, str]]:
    """Moments in seconds, and what happens then."""
    seconds, events = 60 * minutes, []
    for what, times in (("swap", SWAPS), ("restart", RESTARTS), ("fill_the_disk", FULL_DISKS)):
        events += [((i + generator.random()) * seconds / times, what) for i in range(times)]
    return sorted(events)


async def run(soak: Soak, options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    await soak.learn()
    names = [f"{options.seed}{number:02}" for number in range(options.clients)]
    soak.clients = [Client(name, soak.expected, soak.tally, soak.life) for name in names]
    begin = loop.time()
    async with asyncio.TaskGroup() as group:
        group.create_task(soak.count())
        for client in soak.clients:
            group.create_task(soak.client_life(client))
        for moment, what in plan(options.minutes, random.Random(options.seed)):
            await asyncio.sleep(max(0, begin + moment - loop.time()))
            await getattr(soak, what)()
            problems = dict(soak.tally.problems) or "no problems"
            print(f"{loop.time() - begin:6.0f} s {what}: {dict(soak.tally.counts)}, {problems}")
        await asyncio.sleep(max(0, begin + 60 * options.minutes - loop.time()))
        soak.is_over = True
    soak.tally.counts["minutes"] = int((loop.time() - begin) / 60)


def checks(tally: Tally, status: int, minutes: float) -> list[tuple[bool, str]]:
    counts = tally.counts
    mixed = sum(count for problem, count in tally.problems.items() if "mixed" in problem)
    lost = sum(count for problem, count in tally.problems.items() if problem.startswith("Lost"))
    others = tally.problems.total() - mixed - lost
    goals = {
        "minutes": int(minutes), "swaps": SWAPS, "restarts": RESTARTS, "kills": KILLS,
        "full disks": FULL_DISKS, "models given back": EVICTIONS,
        "blocks of prompts given back": EVICTIONS, "cancelled": CANCELLATIONS,
        "tokens of prompts from the disk": 1, "answered": 1,
    }  # fmt: skip
    reached = [(counts[what] >= goal, f"{counts[what]} {what}, goal {goal}") for what, goal in goals.items()]
    return [
        *reached,
        (lost == 0, f"{lost} lost without a word"),
        (mixed == 0, f"{mixed} mixed or wrong answers"),
        (others == 0, f"{others} other problems"),
        (status == 0, f"exit status {status} after the last SIGTERM"),
    ]


def soak(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        write_models(Path(folder))
        soak = Soak(Path(folder), options.cache_folder, options.headrace)
        soak.start_with("learnt.ini")
        try:
            asyncio.run(run(soak, options))
        finally:
            status = soak.program.stop()
    print("counts:", ", ".join(f"{count} {what}" for what, count in sorted(soak.tally.counts.items())))
    return verdict(soak.tally.problems, checks(soak.tally, status, options.minutes))


def on_a_disk_of_its_own() -> int:
    """This program again, with a folder that is a small file system for it and its servers alone."""
    with tempfile.TemporaryDirectory(prefix="soak-disk-") as folder:
        mount = f'mount -t tmpfs -o size={DISK_MIB}m tmpfs "{folder}" && exec "$@"'
        again = [sys.executable, *sys.argv, ON_A_DISK_OF_ITS_OWN, folder]
        return subprocess.run(["unshare", "-rm", "sh", "-c", mount, "-", *again]).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--headrace", type=Path, default=ROOT / "build/bin/headrace", help="the program")
    parser.add_argument("--seed", default="s")
    parser.add_argument(ON_A_DISK_OF_ITS_OWN, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if options.cache_folder is None:
        return on_a_disk_of_its_own()
    return soak(options)


if __name__ == "__main__":
    end_with_the_servers()
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
