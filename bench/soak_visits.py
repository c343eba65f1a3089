"""What the clients of bench/serve_soak.py ask for, and which answers are right, refused, lost or mixed.

No request may be lost without a word: it ends in its whole answer, in an error of the API, or, where the
server was being ended meanwhile, in a broken connection.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field

from raw_http import Answer, Connection, Events, request_bytes
from serve_visits import BUSY, FORMS, LONG, REPEATED, check_start, grammar, streamed_text

#: Looks, a second apart, after which an answer hangs. Counted, as a machine that is paused makes a clock lie.
PATIENCE = 180
WRITERS = 4
#: The model whose file is swapped for another one's.
SWAPPED = "swapped"
TOKENS = 16
#: Of a prompt, from which clients draw; together they are far more than the folder of prompts may hold.
BLOCK, BLOCKS, BEGINNINGS, PROMPTS = 64, 5, 6, 90


class Lost(ValueError):
    """A request that ended without a word."""


@dataclass
class Life:
    """One process of the server."""

    port: int
    ending: str = ""  # "term" or "kill" from the moment at which it is ended


@dataclass
class Tally:
    """What happened; problems are what must not happen."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)

    def add_problem(self, error: BaseException) -> None:
        self.problems[f"{type(error).__name__}: {error}"[:400]] += 1


async def patiently(work: Awaitable, what: str):
    """Its result. Raises Lost where there is none after PATIENCE looks."""
    task = asyncio.ensure_future(work)
    for _ in range(PATIENCE):
        done, _ = await asyncio.wait({task}, timeout=1)
        if done:
            return task.result()
    task.cancel()
    raise Lost(f"{what}: no answer in {PATIENCE} s")


def prompt(number: int) -> list[int]:
    """A beginning that others have, too, and an end of its own: numbers of tokens that every writer has."""
    beginning = random.Random(number % BEGINNINGS).choices(range(300, 380), k=BLOCK * BLOCKS)
    end = random.Random(f"end {number}").choices(range(300, 380), k=BLOCK + number)
    return [1, *beginning, *end]


def writing(model: str, number: int, *, streams: bool) -> bytes:
    body = {"model": model, "prompt": prompt(number), "n_predict": TOKENS, "temperature": 0}
    body |= {"ignore_eos": True, "stream": streams}
    return request_bytes("/completion", json.dumps(body).encode())


def embedding_request(number: int) -> bytes:
    return request_bytes(
        "/v1/embeddings", json.dumps({"model": "vectors", "input": f"hello world {number}"}).encode()
    )


def written_text(answer: Answer) -> str:
    """Raises Lost for a stream without its last event."""
    if not answer.head.is_stream:
        return answer.json()["content"]
    events = [data for _, data in answer.events]
    text = streamed_text(events)
    if not events or not json.loads(events[-1]).get("stop"):
        raise Lost("a stream that ended without its last event")
    return text


def nearly(left: list[float], right: list[float]) -> bool:
    return len(left) == len(right) and all(abs(a - b) < 1e-3 for a, b in zip(left, right, strict=True))


@dataclass
class Expected:
    """Right answers: of each file of a writer by prompt, and vectors of texts."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    vectors: list[list[float]] = field(default_factory=list)
    #: The files that may answer for SWAPPED: another list at every swap, and when the new file has answered.
    swapped: list[str] = field(default_factory=lambda: ["old"])

    def check_text(self, files: list[str], number: int, text: str) -> str:
        """The file whose answer it is. Raises ValueError where it is none's."""
        for file in files:
            if self.texts[file][number] == text:
                return file
        others = [file for file, texts in self.texts.items() if texts[number] == text]
        raise ValueError(f"mixed answers: {files} never write {text!r} after prompt {number}, but {others}")


class Client:
    """Asks for one thing after the other, of whatever server there is."""

    def __init__(self, name: str, expected: Expected, tally: Tally, life: Life) -> None:
        self.random = random.Random(name)
        self.name, self.expected, self.tally, self.life = name, expected, tally, life
        self.connection = Connection(life.port)
        self.seen = ""  # the file that answered for SWAPPED last

    def move_to(self, life: Life) -> None:
        if life is not self.life:
            self.connection.close(abort=True)
            self.life, self.connection = life, Connection(life.port)

    async def visit(self, number: int) -> None:
        """One request, and what became of it in the tally."""
        life, was_ending = self.life, self.life.ending
        visits = (self.writes, self.says_its_name, self.embeds, self.leaves)
        visit = self.random.choices(visits, (46, 20, 10, 24))[0]
        try:
            self.tally.counts[await visit(f"{self.name}-{number}")] += 1
        except (EOFError, OSError) as error:
            self.connection.close(abort=True)
            # After SIGTERM it answers what it was asked before, and nothing else.
            if life.ending == "kill" or was_ending:
                self.tally.counts["broken off by the server's end"] += 1
            else:
                self.tally.add_problem(Lost(f"{visit.__name__}: {type(error).__name__}: {error}"))
        except (ValueError, KeyError, asyncio.LimitOverrunError) as error:
            self.connection.close(abort=True)
            self.tally.add_problem(error)

    async def ask(self, request: bytes) -> Answer | None:
        """None: it was told to come again, as a server may that is full or about to end."""
        answer = await patiently(self.asked(request), request[:60].decode(errors="replace"))
        if answer.status != BUSY:
            if answer.status != 200:
                raise ValueError(f"{request[:40]!r}: {answer.status}: {answer.body[:300]!r}")
            return answer
        if "retry-after" not in answer.head.headers:
            raise ValueError(f"a 503 without Retry-After: {answer.body[:200]!r}")
        await asyncio.sleep(self.random.uniform(0.2, 1))
        return None

    async def asked(self, request: bytes) -> Answer:
        """As Connection.ask, without asking again."""
        await self.connection.send(request)
        return await self.connection.answer(await self.connection.head())

    async def writes(self, identity: str) -> str:
        model = self.random.choice([f"writer{i}" for i in range(WRITERS)] + [SWAPPED])
        number = self.random.randrange(PROMPTS)
        before = self.expected.swapped
        answer = await self.ask(writing(model, number, streams=self.random.random() < 0.5))
        if answer is None:
            return "told to come again"
        now = self.expected.swapped
        files = sorted({*before, *now}) if model == SWAPPED else [model]
        file = self.expected.check_text(files, number, written_text(answer))
        if model == SWAPPED and before is now:  # not of a file before
            self.seen = file
        return "answered"

    async def says_its_name(self, identity: str) -> str:
        """By any API, bound by a grammar or a schema to a word of its own."""
        form = self.random.choice(FORMS)
        body = form.body(identity) | {"model": "chat"}
        answer = await self.ask(request_bytes(form.path, json.dumps(body).encode()))
        if answer is None:
            return "told to come again"
        form.check(identity, answer)
        return "answered"

    async def embeds(self, identity: str) -> str:
        number = self.random.randrange(PROMPTS)
        answer = await self.ask(embedding_request(number))
        if answer is None:
            return "told to come again"
        if not nearly(answer.json()["data"][0]["embedding"], self.expected.vectors[number]):
            raise ValueError(f"mixed answers: text {number} has another vector")
        return "answered"

    async def leaves(self, identity: str) -> str:
        """While it waits, or after some pieces of a long answer, which must be its own."""
        body = {"model": "chat", "prompt": f"{identity}: ", "grammar": grammar(f"{identity} ", REPEATED)}
        body |= {"n_predict": LONG, "stream": True}
        self.connection.close()
        await self.connection.send(request_bytes("/completion", json.dumps(body).encode()))
        if self.random.random() < 0.3:
            await asyncio.sleep(self.random.expovariate(10))
            self.connection.close(abort=True)
            return "cancelled"
        head = await patiently(self.connection.head(), "a long answer")
        if head.status == BUSY:
            self.connection.close()
            return "told to come again"
        if head.status != 200:
            raise ValueError(f"/completion: {head.status}")
        most, events, seen = self.random.randrange(1, REPEATED), Events(), []
        async for piece in self.connection.pieces(head):
            seen += events.feed(piece)
            if len(seen) >= most:
                break
        check_start(identity, streamed_text(seen))
        self.connection.close(abort=self.random.random() < 0.5)
        return "cancelled" if len(seen) >= most else "answered"
