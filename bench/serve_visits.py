"""What the clients of bench/serve_stress.py do: ask, leave halfway, read slowly, and send what is no request.

A visit returns what it was; ValueError says what came that should not have come.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from raw_http import HOST, Answer, Connection, Events, request_bytes

#: The answers' tokens at most; what repeats until it is cut has more.
SHORT, LONG = 48, 240
#: Times that a text is repeated in a long answer.
REPEATED = 40
MEBIBYTE = 1 << 20
#: An answer that takes longer hangs.
PATIENCE = 120.0
MODEL_NAME = "tiny-chat-q8_0.gguf"
BUSY = 503


def grammar(text: str, times: int = 1) -> str:
    return f'root ::= "{text}"' if times == 1 else f'root ::= ("{text}"){{{times}}}'


def messages(text: str) -> list[dict]:
    return [{"role": "user", "content": f"Say {text}."}]


def streamed_text(events: list[bytes]) -> str:
    """The answer of /completion or /v1/chat/completions. Raises ValueError for an error among the events."""
    text = ""
    for data in events:
        if data == b"[DONE]":
            continue
        event = json.loads(data)
        if "error" in event:
            raise ValueError(f"an error in a stream: {event}")
        for choice in event.get("choices", []):
            text += choice["delta"].get("content") or ""
        text += event.get("content") or ""
    return text


@dataclass(frozen=True)
class Form:
    """How an API asks for an answer that says whose it is, and where that stands in the answer."""

    path: str
    body: Callable[[str], dict]
    text: Callable[[dict], str | list[str]] | None = None  # None: a stream

    def request(self, identity: str) -> bytes:
        return request_bytes(self.path, json.dumps(self.body(identity)).encode())

    def check(self, identity: str, answer: Answer) -> None:
        if answer.status != 200:
            raise ValueError(f"{self.path}: {answer.status}: {answer.body[:300]!r}")
        found = self.text(answer.json()) if self.text else streamed_text([data for _, data in answer.events])
        for text in found if isinstance(found, list) else [found]:
            if text != identity:
                raise ValueError(f"{self.path}: mixed answers: {identity!r} was asked for, {text!r} came")


def constant(identity: str) -> dict:
    return {"name": "identity", "schema": {"const": identity}}


FORMS = (
    Form(
        "/completion",
        lambda i: {"prompt": f"{i}: ", "grammar": grammar(i), "n_predict": SHORT},
        lambda a: a["content"],
    ),
    Form(
        "/completion",
        lambda i: {"prompt": [i, f"Also {i}"], "grammar": grammar(i), "n_predict": SHORT},
        lambda a: [each["content"] for each in a],
    ),
    Form("/completion", lambda i: {"prompt": i, "grammar": grammar(i), "n_predict": SHORT, "stream": True}),
    Form(
        "/v1/chat/completions",
        lambda i: {"messages": messages(i), "grammar": grammar(i), "max_tokens": SHORT},
        lambda a: a["choices"][0]["message"]["content"],
    ),
    Form(
        "/v1/chat/completions",
        lambda i: {"messages": messages(i), "grammar": grammar(i), "max_tokens": SHORT, "stream": True},
    ),
    Form(
        "/v1/chat/completions",
        lambda i: {
            "messages": messages(i),
            "response_format": {"type": "json_schema", "json_schema": constant(i)},
            "max_tokens": SHORT,
        },
        lambda a: json.loads(a["choices"][0]["message"]["content"]),
    ),
    Form(
        "/v1/completions",
        lambda i: {"prompt": f"{i}: ", "grammar": grammar(i), "max_tokens": SHORT, "n": 2},
        lambda a: [choice["text"] for choice in a["choices"]],
    ),
    Form(
        "/v1/messages",
        lambda i: {"messages": messages(i), "model": "any", "grammar": grammar(i), "max_tokens": SHORT},
        lambda a: a["content"][0]["text"],
    ),
    Form(
        "/api/generate",
        lambda i: {"model": MODEL_NAME, "prompt": f"{i}: ", "format": {"const": i}, "stream": False},
        lambda a: json.loads(a["response"]),
    ),
    Form(
        "/apply-template",
        lambda i: {"messages": [{"role": "user", "content": i}]},
        lambda a: a["prompt"].split("<|im_start|>user\n")[-1].split("<|im_end|>")[0],
    ),
)


def long_request(identity: str, *, wide: bool = False) -> bytes:
    """A stream that says the identity many times. wide: with probabilities, so that sockets' buffers fill."""
    body = {
        "prompt": f"{identity}: ",
        "grammar": grammar(f"{identity} ", REPEATED),
        "n_predict": LONG,
        "stream": True,
        "n_probs": 40 if wide else 0,
    }
    return request_bytes("/completion", json.dumps(body).encode())


def check_start(identity: str, text: str) -> None:
    if not (f"{identity} " * REPEATED).startswith(text):
        raise ValueError(f"mixed answers: repetitions of {identity!r} were asked for, {text[:200]!r} came")


@dataclass
class Client:
    """One of those that come and go; its connection is kept between visits as long as both want."""

    port: int
    generator: random.Random
    connection: Connection = field(init=False)
    busy: int = 0  # times that it was told to come again

    def __post_init__(self) -> None:
        self.connection = Connection(self.port)

    async def ask(self, request: bytes) -> Answer:
        """Comes again while the server is busy, as Retry-After says."""
        while True:
            answer = await asyncio.wait_for(self.connection.ask(request), PATIENCE)
            if answer.status != BUSY:
                return answer
            self.busy += 1
            if "retry-after" not in answer.head.headers:
                raise ValueError("a 503 without Retry-After")
            seconds = float(answer.head.headers["retry-after"])
            await asyncio.sleep(seconds * self.generator.uniform(0.5, 1.5))


async def asks(client: Client, identity: str) -> str:
    form = client.generator.choice(FORMS)
    form.check(identity, await client.ask(form.request(identity)))
    return "answered"


async def leaves(client: Client, identity: str) -> str:
    """At a moment of its life that is drawn: what is checked is what came until then."""
    client.connection.close()
    await client.connection.open()
    request = long_request(identity)
    head = request.index(b"\r\n\r\n") + 4
    moment = client.generator.choice(("connected", "head", "body", "queued", "streaming", "half"))
    sent = {
        "connected": 0,
        "head": client.generator.randrange(1, head),
        "body": client.generator.randrange(head, len(request)),
    }.get(moment, len(request))
    await client.connection.send(request[:sent])
    if moment == "half":  # says that it sends no more, and reads on
        with suppress(OSError):  # refused and ended already
            client.connection.writer.write_eof()
    if moment in ("streaming", "half"):
        await read_some(client, identity, client.generator.randrange(1, 2 * REPEATED))
    else:
        await asyncio.sleep(client.generator.expovariate(10))
    client.connection.close(abort=client.generator.random() < 0.5)
    return f"left: {moment}"


async def read_some(client: Client, identity: str, most: int, pause: float = 0) -> None:
    """Up to `most` events of an answer, or what there is until the server ends it."""
    events, seen = Events(), []
    try:
        head = await asyncio.wait_for(client.connection.head(), PATIENCE)
        if head.status == BUSY:
            return
        if head.status != 200:
            raise ValueError(f"/completion: {head.status}")
        async for piece in client.connection.pieces(head):
            seen += events.feed(piece)
            if len(seen) >= most:
                break
            if pause:
                await asyncio.sleep(pause)
    except (EOFError, ConnectionError):
        pass  # the server may end an answer that nobody wants
    check_start(identity, streamed_text(seen))


async def reads_slowly(client: Client, identity: str) -> str:
    """A socket for 2 KiB, and pauses while what comes is taken, so that the server's writes have to wait."""
    client.connection.close()
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    narrow.setblocking(False)
    await asyncio.get_running_loop().sock_connect(narrow, (HOST, client.port))
    connection = client.connection
    connection.reader, connection.writer = await asyncio.open_connection(sock=narrow, limit=2048)
    await connection.send(long_request(identity, wide=True))
    await read_some(client, identity, client.generator.randrange(1, 2 * REPEATED), pause=0.02)
    connection.close(abort=True)
    return "read slowly"


#: Bodies that are wrong, the path that they go to, and the statuses that say so.
WRONG: tuple[tuple[str, bytes, tuple[int, ...]], ...] = (
    ("/completion", b'{"prompt": "a"', (400,)),
    ("/completion", b"", (400,)),
    ("/completion", b"\xff\xfe\x00", (400,)),
    ("/completion", b'{"prompt": "\xc3\x28"}', (400,)),
    ("/completion", b'{"prompt": 5}', (400,)),
    ("/completion", b'{"prompt": "a", "n_predict": "many"}', (400,)),
    ("/completion", b'{"prompt": "a", "grammar": "root ::= ("}', (400,)),
    ("/completion", b'{"prompt": [1, 99999999]}', (400,)),
    ("/v1/chat/completions", b"[]", (400,)),
    ("/v1/chat/completions", b'{"messages": []}', (400,)),
    ("/v1/chat/completions", b'{"messages": [{"role": "user"}]}', (400,)),
    ("/v1/chat/completions", b'{"messages": [{"role": "king", "content": "a"}]}', (400,)),
    ("/v1/messages", b'{"model": "any", "messages": 7, "max_tokens": 1}', (400,)),
    ("/api/chat", b'{"messages": "a"}', (400,)),
    ("/v1/embeddings", b'{"input": "a"}', (400, 501)),
    ("/v1/nothing", b"{}", (404,)),
    ("/health", b"{}", (405,)),
)
#: What is no HTTP.
HELLO_OF_TLS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64
NOISE = (b"\r\n\r\n", b"GET\r\n\r\n", HELLO_OF_TLS, b"A" * 20_000)


async def sends_nonsense(client: Client, identity: str) -> str:
    if client.generator.random() < 0.2:
        noise = Connection(client.port)
        try:
            await noise.send(client.generator.choice(NOISE))
            await asyncio.wait_for(noise.reader.read(4096), 1)
        except (TimeoutError, ConnectionError):
            pass
        noise.close()
        return "nonsense"
    path, body, expected = client.generator.choice(WRONG)
    answer = await client.ask(request_bytes(path, body))
    if answer.status not in expected:
        raise ValueError(f"{path} {body[:80]!r}: {answer.status} {answer.body[:200]!r}, not {expected}")
    error = answer.json().get("error")
    if not (isinstance(error, str) or (isinstance(error, dict) and error.get("message"))):
        raise ValueError(f"{path} {body[:80]!r}: no error's shape: {answer.body[:200]!r}")
    return "nonsense"


def large_bodies() -> list[tuple[bytes, tuple[int, ...]]]:
    """Bodies of 8 MiB each, and one of more than a server reads; with the statuses that are right."""
    size = 8 * MEBIBYTE
    ignored = {"prompt": "1+1=", "n_predict": 2, "user": "u" * size}
    bodies = (
        (json.dumps({"prompt": "word " * (size // 5)}).encode(), (400,)),
        (json.dumps(ignored).encode(), (200, 400)),
        (b'{"prompt": "' + b"\\u0041" * (size // 6), (400,)),
        (b"[" * size, (400,)),
        (b'{"prompt": ' + b"[" * size, (400,)),
        (b"[" + b"0," * (size // 2) + b"0]", (400,)),
        (b'{"prompt": "' + b"a" * (20 * MEBIBYTE) + b'"}', (413,)),
    )
    return [(request_bytes("/completion", body), expected) for body, expected in bodies]


LARGE = large_bodies()


async def sends_much(client: Client, identity: str) -> str:
    request, expected = client.generator.choice(LARGE)
    try:
        answer = await client.ask(request)
    except (EOFError, ConnectionError):
        if 413 not in expected:  # refused before it was read whole, with what was sent still on its way
            raise
        client.connection.close()
        return "8 MiB"
    if answer.status not in expected:
        raise ValueError(f"8 MiB, {request[60:140]!r}: {answer.status} {answer.body[:200]!r}, not {expected}")
    return "8 MiB"


Visit = Callable[[Client, str], Awaitable[str]]
#: Of a hundred visits; leaving is what 2,000 clients do again and again.
VISITS: dict[Visit, float] = {asks: 52, leaves: 33, sends_nonsense: 12, reads_slowly: 2.5, sends_much: 0.5}


async def half_open(port: int, generator: random.Random) -> Connection:
    """A connection on which nothing comes any more, as when a cable is pulled, at a moment that is drawn."""
    connection = Connection(port)
    await connection.open()
    request = long_request("nobody", wide=True)
    await connection.send(request[: generator.choice((0, 10, request.index(b"{") + 5, len(request)))])
    connection.writer.transport.pause_reading()
    return connection


def verdict(problems: Counter[str], results: list[tuple[bool, str]]) -> int:
    """Prints the most frequent problems and what was checked; the exit status is 1 when a check failed."""
    for problem, count in problems.most_common(10):
        print(f"{count} x {problem}")
    for is_met, what in results:
        print(f"{'ok    ' if is_met else 'failed'} {what}")
    return 0 if all(is_met for is_met, _ in results) else 1
