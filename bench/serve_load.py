"""What bench/serve.py asks of both servers, how it times the answers, and at which moments it asks."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from raw_http import Answer, Connection, request_bytes

#: Syllables of words that bench/make_llm.py's smallest vocabulary has, too: each word is one token.
SYLLABLES = [consonant + vowel for consonant in "bcdfg" for vowel in "aeiou"]
SYSTEM_WORDS = 200
#: Of twelve requests in a row, in an order that the seed decides.
MIX = ("chat",) * 7 + ("completion",) * 4 + ("document",)
#: The least and the most words of a prompt, and which numbers of tokens are generated.
SIZES = {"chat": (16, 64, (32, 48, 64)), "completion": (8, 32, (48,)), "document": (600, 1000, (32,))}


@dataclass(frozen=True)
class Ask:
    """A request whose answer has exactly `tokens` tokens."""

    kind: str
    path: str
    body: dict
    tokens: int

    @property
    def request(self) -> bytes:
        return request_bytes(self.path, json.dumps(self.body).encode())


@dataclass
class Timed:
    """A request's answer, by the client's clock (s) and the server's counts."""

    start: float  # when it should have been sent
    end: float
    texts: list[float]  # when each event with text arrived
    prompt_tokens: int
    cached_tokens: int
    tokens: int
    timings: dict

    @property
    def first_ms(self) -> float:
        return (self.texts[0] - self.start) * 1e3

    @property
    def gaps_ms(self) -> list[float]:
        return [(b - a) * 1e3 for a, b in zip(self.texts, self.texts[1:], strict=False)]


@dataclass
class Load:
    """What came of many requests at once."""

    seconds: float
    client_seconds: float  # of a processor, which the servers did not have
    answers: list[Timed] = field(default_factory=list)

    @property
    def requests_per_second(self) -> float:
        return len(self.answers) / self.seconds

    @property
    def generated_per_second(self) -> float:
        return sum(answer.tokens for answer in self.answers) / self.seconds

    @property
    def prompt_per_second(self) -> float:
        """Whole prompts, with what was remembered of them."""
        return sum(answer.prompt_tokens for answer in self.answers) / self.seconds

    @property
    def client_share(self) -> float:
        return self.client_seconds / self.seconds

    def percentile(self, what: str, share: float) -> float:
        """Of the first tokens ("first") or the pauses between texts ("between"), ms."""
        if what == "first":
            return percentile([answer.first_ms for answer in self.answers], share)
        return percentile([gap for answer in self.answers for gap in answer.gaps_ms], share)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]


def words(generator: random.Random, count: int) -> str:
    """As many tokens of the benchmark's models."""
    pairs = (generator.choices(SYLLABLES, k=2) for _ in range(count))
    return "".join(f" {''.join(pair).capitalize()}" for pair in pairs)


def settings(tokens: int, seed: int) -> dict:
    return {"n_predict": tokens, "ignore_eos": True, "temperature": 0.7, "seed": seed, "stream": True}


def make_ask(kind: str, generator: random.Random) -> Ask:
    least, most, lengths = SIZES[kind]
    text = words(generator, generator.randint(least, most))
    tokens = generator.choice(lengths)
    body = settings(tokens, generator.randrange(1 << 31))
    if kind == "completion":
        return Ask(kind, "/completion", {"prompt": text, **body}, tokens)
    messages = [{"role": "user", "content": text}]
    if kind == "chat":
        system = words(random.Random("the system prompt of all chats"), SYSTEM_WORDS)
        messages.insert(0, {"role": "system", "content": system})
    more = {"stream_options": {"include_usage": True}}
    return Ask(kind, "/v1/chat/completions", {"messages": messages, **body, **more}, tokens)


def make_asks(seed: str, count: int) -> list[Ask]:
    """The same ones for the same seed; other seeds share the chats' system prompt only."""
    generator = random.Random(seed)
    kinds: list[str] = []
    while len(kinds) < count:
        kinds += generator.sample(MIX, len(MIX))
    return [make_ask(kind, generator) for kind in kinds[:count]]


def arrivals(seed: str, count: int, rate: float) -> list[float]:
    """Moments (s) of a Poisson process of `rate` requests a second."""
    generator, now = random.Random(seed), 0.0
    moments = []
    for _ in range(count):
        now += generator.expovariate(rate)
        moments.append(now)
    return moments


def text_of(event: dict) -> str:
    """What an event of /completion or /v1/chat/completions adds to the answer."""
    if "choices" in event:
        return "".join(choice["delta"].get("content") or "" for choice in event["choices"])
    return event.get("content") or ""


def timed(ask: Ask, answer: Answer, start: float) -> Timed:
    """Raises RuntimeError when the server did something else than it was asked for."""
    if answer.status != 200:
        raise RuntimeError(f"{ask.path}: {answer.status}: {answer.body[:300]!r}")
    events = [(at, json.loads(data)) for at, data in answer.events if data != b"[DONE]"]
    last = next((event for _, event in reversed(events) if "timings" in event), None)
    if last is None:
        raise RuntimeError(f"{ask.path}: the stream ended without timings: {answer.events[-1:]}")
    timings = last["timings"]
    if timings["predicted_n"] != ask.tokens:
        raise RuntimeError(f"{ask.path}: {timings['predicted_n']} tokens came, not {ask.tokens}")
    cached = timings.get("cache_n", 0)
    return Timed(
        start=start,
        end=answer.events[-1][0],
        texts=[at for at, event in events if text_of(event)],
        prompt_tokens=timings["prompt_n"] + cached,
        cached_tokens=cached,
        tokens=timings["predicted_n"],
        timings=timings,
    )


async def closed_loop(port: int, asks: Sequence[Ask], clients: int) -> Load:
    """Each client sends its next request when it has the answer to the one before, on one connection."""
    left: Iterator[Ask] = iter(asks)
    answers: list[tuple[Ask, Answer, float]] = []

    async def client() -> None:
        connection = Connection(port)
        for ask in left:
            start = time.perf_counter()
            answers.append((ask, await connection.ask(ask.request), start))
        connection.close()

    return await measure(answers, [client() for _ in range(clients)])


async def open_loop(port: int, asks: Sequence[Ask], moments: Sequence[float]) -> Load:
    """A new client comes at each moment, whoever still waits; latency counts from that moment on."""
    answers: list[tuple[Ask, Answer, float]] = []
    begin = time.perf_counter()

    async def client(ask: Ask, moment: float) -> None:
        await asyncio.sleep(begin + moment - time.perf_counter())
        connection = Connection(port)
        answers.append((ask, await connection.ask(ask.request), begin + moment))
        connection.close()

    return await measure(answers, map(client, asks, moments))


async def measure(answers: list[tuple[Ask, Answer, float]], clients) -> Load:
    """What is read in the answers is read when all have come."""
    begin, used = time.perf_counter(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client)
    load = Load(time.perf_counter() - begin, time.process_time() - used)
    load.answers = [timed(*answer) for answer in answers]
    return load
