"""HTTP/1.1 and server-sent events over asyncio's streams, so short that a benchmark's client costs little."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from time import perf_counter

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Head:
    """An answer's status, and its headers by lower-case names."""

    status: int
    headers: dict[str, str]

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def keeps_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


@dataclass
class Answer:
    """A body, or the events of a stream: when each arrived (s, of perf_counter), and its data."""

    head: Head
    body: bytes = b""
    events: list[tuple[float, bytes]] = field(default_factory=list)

    @property
    def status(self) -> int:
        return self.head.status

    def json(self) -> dict:
        return json.loads(self.body)


def parse_head(text: bytes) -> Head:
    """Raises ValueError when it is no head of an HTTP/1.1 answer."""
    first, *lines = text.decode("latin-1").rstrip("\r\n").split("\r\n")
    version, status = first.split(" ")[:2]
    if not version.startswith("HTTP/1."):
        raise ValueError(f"no HTTP: {first[:80]!r}")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"no header: {line[:80]!r}")
        headers[name.lower()] = value.strip()
    return Head(int(status), headers)


class Events:
    """Cuts a stream's bytes into the data of its events, wherever they were cut before."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        *whole, self.rest = (self.rest + data).split(b"\n\n")
        return [data for event in whole if (data := self._data(event))]

    @staticmethod
    def _data(event: bytes) -> bytes:
        """Comments, which keep a connection alive, have none."""
        lines = (line for line in event.split(b"\n") if line.startswith(b"data:"))
        return b"\n".join(line[5:].removeprefix(b" ") for line in lines)


def request_bytes(path: str, body: bytes | None = None, method: str = "", **headers: str) -> bytes:
    """A whole request; a POST of JSON where there is a body."""
    lines = [f"{method or ('GET' if body is None else 'POST')} {path} HTTP/1.1", f"Host: {HOST}"]
    if body is not None:
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Connection:
    """One to a server on this machine; opened when it is used first, and again when it was closed."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(HOST, self.port)

    async def send(self, data: bytes) -> None:
        if self.writer is None:
            await self.open()
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> Head:
        return parse_head(await self.reader.readuntil(b"\r\n\r\n"))

    async def pieces(self, head: Head) -> AsyncIterator[bytes]:
        """The body as it arrives, by the framing that the head names."""
        if head.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                yield (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readuntil(b"\r\n")
        elif "content-length" in head.headers:
            yield await self.reader.readexactly(int(head.headers["content-length"]))
        elif head.status != 204:
            while data := await self.reader.read(1 << 16):
                yield data

    async def ask(self, request: bytes) -> Answer:
        """Sends a request and reads its answer. Raises OSError and EOFError when the connection breaks."""
        was_open = self.writer is not None
        try:
            await self.send(request)
            head = await self.head()
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            # llama-server ends a connection after each stream, without a header that says so.
            if not was_open or getattr(error, "partial", b""):
                raise
            self.close()
            await self.send(request)
            head = await self.head()
        return await self.answer(head)

    async def answer(self, head: Head) -> Answer:
        """What follows a head."""
        answer = Answer(head)
        if head.is_stream:
            events = Events()
            async for piece in self.pieces(head):
                now = perf_counter()
                answer.events += [(now, data) for data in events.feed(piece)]
        else:
            answer.body = b"".join([piece async for piece in self.pieces(head)])
        if not head.keeps_alive:
            self.close()
        return answer

    def close(self, *, abort: bool = False) -> None:
        """abort: what the socket still holds is dropped."""
        if self.writer is not None:
            if abort:
                self.writer.transport.abort()
            else:
                self.writer.close()
        self.reader = self.writer = None


async def get_json(port: int, path: str) -> dict | list:
    """What a GET on a connection of its own gives. Raises RuntimeError when that is no 200."""
    connection = Connection(port)
    try:
        answer = await connection.ask(request_bytes(path))
    finally:
        connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status}: {answer.body[:200]!r}")
    return answer.json()
