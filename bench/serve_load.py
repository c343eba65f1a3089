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
from serve_embeddings import make_texts

#: Syllables of words that bench/make_llm.py's smallest vocabulary has, too: each word is one token.
SYLLABLES = [consonant + vowel for consonant in "bcdfg" for vowel in "aeiou"]
SYSTEM_WORDS = 200
#: Of fifteen requests in a row, in an order that the seed decides.
MIX = ("chat",) * 7 + ("completion",) * 4 + ("document",) + ("embedding",) * 3
#: The least and the most words of a prompt, and which numbers of tokens are generated.
SIZES = {"chat": (16, 64, (32, 48, 64)), "completion": (8, 32, (48,)), "document": (600, 1000, (32,))}
#: Texts of a request for vectors.
TEXTS = 8


@dataclass(frozen=True)
class Ask:
    """A request whose answer has exactly `tokens` tokens; 0: it has vectors."""

    kind: str
    path: str
    body: dict
    tokens: int

    @property
    def request(self) -> bytes:
        return request_bytes(self.path, json.dumps(self.body).encode())


@dataclass(frozen=True)
class Ports:
    """Where a side writes texts, and where it makes vectors."""

    texts: int
    vectors: int

    def of(self, ask: Ask) -> int:
        return self.texts if ask.tokens else self.vectors


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
    def whole_ms(self) -> float:
        return (self.end - self.start) * 1e3

    @property
    def gaps_ms(self) -> list[float]:
        return [(b - a) * 1e3 for a, b in zip(self.texts, self.texts[1:], strict=False)]


@dataclass
class Load:
    """What came of many requests at once."""

    seconds: float
    client_seconds: float  # of a processor, which the servers did not have
    answers: list[Timed] = field(default_factory=list)  # with texts
    vectors: list[Timed] = field(default_factory=list)

    @property
    def requests_per_second(self) -> float:
        return (len(self.answers) + len(self.vectors)) / self.seconds

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
        """A percentile, in ms, of the first tokens ("first"), the pauses ("between") or whole vectors."""
        if what == "vectors":
            return percentile([answer.whole_ms for answer in self.vectors], share)
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
    if kind == "embedding":
        return Ask(kind, "/v1/embeddings", {"input": make_texts(str(generator.random()), TEXTS)}, 0)
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


def timed(ask: Ask, answer: Answer, start: float, end: float) -> Timed:
    """Raises RuntimeError when the server did something else than it was asked for."""
    if answer.status != 200:
        raise RuntimeError(f"{ask.path}: {answer.status}: {answer.body[:300]!r}")
    if not ask.tokens:
        return timed_vectors(ask, answer.json(), start, end)
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
        end=end,
        texts=[at for at, event in events if text_of(event)],
        prompt_tokens=timings["prompt_n"] + cached,
        cached_tokens=cached,
        tokens=timings["predicted_n"],
        timings=timings,
    )


def timed_vectors(ask: Ask, body: dict, start: float, end: float) -> Timed:
    sent, came = len(ask.body["input"]), len(body["data"])
    if sent != came:
        raise RuntimeError(f"{ask.path}: {sent} texts were sent, and {came} vectors came")
    return Timed(start, end, [], body["usage"]["prompt_tokens"], 0, 0, {})


class Client:
    """A connection to each port that it asks at; what came is added to the answers of all."""

    def __init__(self, ports: Ports, answers: list[tuple[Ask, Answer, float, float]]) -> None:
        self.ports, self.answers = ports, answers
        self.connections: dict[int, Connection] = {}

    async def ask(self, ask: Ask, start: float) -> None:
        port = self.ports.of(ask)
        connection = self.connections.setdefault(port, Connection(port))
        answer = await connection.ask(ask.request)
        self.answers.append((ask, answer, start, time.perf_counter()))

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()


async def closed_loop(ports: Ports, asks: Sequence[Ask], clients: int) -> Load:
    """Each client sends its next request when it has the answer to the one before."""
    left: Iterator[Ask] = iter(asks)
    answers: list[tuple[Ask, Answer, float, float]] = []

    async def work() -> None:
        client = Client(ports, answers)
        for ask in left:
            await client.ask(ask, time.perf_counter())
        client.close()

    return await measure(answers, [work() for _ in range(clients)])


async def open_loop(ports: Ports, asks: Sequence[Ask], moments: Sequence[float]) -> Load:
    """A new client comes at each moment, whoever still waits; latency counts from that moment on."""
    answers: list[tuple[Ask, Answer, float, float]] = []
    begin = time.perf_counter()

    async def work(ask: Ask, moment: float) -> None:
        await asyncio.sleep(begin + moment - time.perf_counter())
        client = Client(ports, answers)
        await client.ask(ask, begin + moment)
        client.close()

    return await measure(answers, map(work, asks, moments))


async def measure(answers: list[tuple[Ask, Answer, float, float]], clients) -> Load:
    """What is read in the answers is read when all have come."""
    begin, used = time.perf_counter(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client)
    load = Load(time.perf_counter() - begin, time.process_time() - used)
    for ask, *rest in answers:
        (load.answers if ask.tokens else load.vectors).append(timed(ask, *rest))
    return load
