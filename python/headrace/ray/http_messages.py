"""Requests to the APIs of `headrace serve` on their way to a replica, and failures in these APIs' shapes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .request import PREFIX

FORWARDED = ("/v1/", "/api/")  # paths of OpenAI's, Anthropic's and Ollama's APIs
PASSED_ON = ("content-type", "accept")
#: What the beginning of a request's text is read from, in this order.
TEXTS = ("system", "instructions", "messages", "input", "prompt")


@dataclass(frozen=True)
class HttpRequest:
    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    def affinity(self) -> str | None:
        """Requests of the same affinity go to the same replica, whose memory then has their beginning."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return None  # a replica says what is wrong
        if not isinstance(value, dict):
            return None
        if isinstance(session := value.get("session"), str):
            return f"session {session}"
        texts = [value[key] for key in TEXTS if key in value]
        return f"prefix {json.dumps(texts)[:PREFIX]}" if texts else None


@dataclass(frozen=True)
class Head:
    """What an answer begins with; the pieces of its body follow."""

    status: int
    headers: tuple[tuple[str, str], ...]
    is_stream: bool


def error_body(path: str, status: int, message: str) -> bytes:
    """A failure in the shape of the API that a path belongs to."""
    if path.startswith("/api/"):
        shape: object = {"error": message}
    elif path.startswith("/v1/messages"):
        shape = {"type": "error", "error": {"type": "api_error", "message": message}}
    else:
        shape = {"error": {"code": status, "message": message, "type": "unavailable_error", "param": None}}
    return json.dumps(shape).encode()


def error_piece(path: str, status: int, message: str) -> bytes:
    """The same as the last piece of a stream."""
    body = error_body(path, status, message)
    if path.startswith("/api/"):
        return body + b"\n"
    name = b"event: error\n" if path.startswith("/v1/messages") else b""
    return name + b"data: " + body + b"\n\n"
