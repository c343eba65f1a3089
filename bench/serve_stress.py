#!/usr/bin/env python3
"""Thousands of clients that come and leave at random, against headrace serve with the tiny model.

    python bench/serve_stress.py [--clients 2000] [--requests 10000] [--headrace FILE] [--seed N]

Every answer is bound by a grammar or a schema to a word of its own, so an answer that is somebody else's
shows. A warm round brings what the process keeps (arenas, remembered prompts); after the main one its memory
must be what it was then, within 2 %, no descriptor may be left and no slot busy. Half-open connections stay
until the server gives them up. Prints one line a check; the exit status is 1 when one fails.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from raw_http import Connection, get_json
from serve_programs import Program, end_with_the_servers
from serve_visits import VISITS, Client, half_open, verdict

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench"
MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
#: More than max-waiting come at once, so that some are told to come again.
FLAGS = ["-c", 4096, "-np", 8, "--max-waiting", 1024, "--cache-ram", 8, "--timeout", 10, "--log-disable"]
#: Seconds: a round's clients arrive within the first, the server is idle after the second; between two looks.
ARRIVAL, SETTLING, STILL = 3.0, 60.0, 6.0
HALF_OPEN = 100
WARM_VISITS = 2
MEMORY = 1.02


@dataclass
class Tally:
    """What happened; problems are what must not happen."""

    visits: Counter[str] = field(default_factory=Counter)
    busy: int = 0
    problems: Counter[str] = field(default_factory=Counter)

    def add_problem(self, error: BaseException) -> None:
        self.problems[f"{type(error).__name__}: {error}"[:400]] += 1


async def client_life(client: Client, name: str, visits: int, tally: Tally) -> None:
    kinds, weights = list(VISITS), list(VISITS.values())
    await asyncio.sleep(client.generator.uniform(0, ARRIVAL))
    for number in range(visits):
        visit = client.generator.choices(kinds, weights)[0]
        try:
            tally.visits[await visit(client, f"{name}-{number}")] += 1
        except (ValueError, KeyError, EOFError, OSError, asyncio.LimitOverrunError) as error:
            tally.visits["failed"] += 1
            tally.add_problem(error)
            client.connection.close(abort=True)
    client.connection.close()
    tally.busy += client.busy


async def storm(program: Program, clients: int, visits: int, seed: str, tally: Tally) -> float:
    """All clients at once; seconds until the last one is done."""
    begin = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            client = Client(program.port, random.Random(f"{seed} {number}"))
            group.create_task(client_life(client, f"{seed}{number:05}", visits, tally))
    return time.monotonic() - begin


@dataclass(frozen=True)
class State:
    """What a server holds."""

    resident_kib: int
    descriptors: int
    threads: int
    busy_slots: int


async def state_of(program: Program) -> State:
    slots = await get_json(program.port, "/slots")
    busy = sum(slot["is_processing"] for slot in slots)
    await asyncio.sleep(0.2)  # that connection's own descriptor
    return State(program.resident_kib(), program.descriptors(), program.threads(), busy)


async def settled(program: Program, descriptors: int) -> State:
    """When it is idle, has as many descriptors and gives no more back, or after SETTLING seconds."""
    end, states = time.monotonic() + SETTLING, [await state_of(program)]
    while time.monotonic() < end:
        await asyncio.sleep(STILL)
        states.append(await state_of(program))
        before, now = states[-2:]
        is_still = now.threads >= before.threads and now.resident_kib > 0.999 * before.resident_kib
        if is_still and now.busy_slots == 0 and now.descriptors <= descriptors:
            break
    return states[-1]


async def round_of(
    program: Program, options: argparse.Namespace, name: str, visits: int, tally: Tally
) -> State:
    """A storm beside half-open connections, and what is left when it is over; those are still open then."""
    descriptors = program.descriptors()
    lost = [await half_open(program.port, random.Random(number)) for number in range(HALF_OPEN)]
    seconds = await storm(program, options.clients, visits, f"{options.seed}{name[0]}", tally)
    state = await settled(program, descriptors)
    print(f"{name}: {state}, {seconds:.0f} s")
    for connection in lost:
        connection.close(abort=True)
    return state


async def run(program: Program, options: argparse.Namespace, tally: Tally) -> tuple[State, State, State]:
    """States before, after the warm round, and after all."""
    before = await state_of(program)
    print(f"before: {before}")
    warm_tally = Tally()
    warm = await round_of(program, options, "warm round", WARM_VISITS, warm_tally)
    tally.problems += warm_tally.problems
    visits = -(-options.requests // options.clients)
    return before, warm, await round_of(program, options, "main round", visits, tally)


async def still_answers(program: Program, tally: Tally) -> None:
    """One more of each, after everything."""
    client = Client(program.port, random.Random(0))
    for visit in VISITS:
        try:
            await visit(client, "last-1")
        except (ValueError, KeyError, EOFError, OSError) as error:
            tally.add_problem(error)
    client.connection.close()
    idle = Connection(program.port)
    await idle.open()
    idle.close()


def checks(
    tally: Tally, states: tuple[State, State, State], status: int, wanted: int
) -> list[tuple[bool, str]]:
    before, warm, after = states
    mixed = sum(count for problem, count in tally.problems.items() if "mixed" in problem)
    others = tally.problems.total() - mixed
    made, share = tally.visits.total(), after.resident_kib / warm.resident_kib
    memory = f"memory {after.resident_kib} KiB, after the warm round {warm.resident_kib}: {share:.3f} of it"
    descriptors = f"{after.descriptors} descriptors, {before.descriptors} before"
    return [
        (status == 0, f"exit status {status} after SIGTERM; a crash would be another than 0"),
        (made >= wanted, f"{made} requests, {tally.busy} times told to come again"),
        (mixed == 0, f"{mixed} mixed answers"),
        (others == 0, f"{others} other wrong answers"),
        (share <= MEMORY, memory),
        (after.busy_slots == 0, f"{after.busy_slots} busy slots"),
        (after.descriptors <= before.descriptors, descriptors),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=2000)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--headrace", type=Path, default=ROOT / "build/bin/headrace", help="the program")
    parser.add_argument("--seed", default="s")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    command = [options.headrace, "serve", "-m", MODEL]
    program, tally = Program("headrace", command, FLAGS, OUT / "serve-stress.log"), Tally()
    try:
        states = asyncio.run(run(program, options, tally))
        asyncio.run(still_answers(program, tally))
    except ConnectionRefusedError:
        print(f"failed: nobody listens any more; exit status {program.stop()}, see {program.log.name}")
        return 1
    finally:
        status = program.stop()
    print("visits:", ", ".join(f"{count} {what}" for what, count in sorted(tally.visits.items())))
    return verdict(tally.problems, checks(tally, states, status, options.requests))


if __name__ == "__main__":
    end_with_the_servers()
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
