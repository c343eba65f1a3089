"""Callers of the tests of headrace.ray: HTTP in, server-sent events out."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
#: Never ends by itself: the context is shifted when it is full.
ENDLESS = {"ignore_eos": True, "n_predict": 1_000_000, "temperature": 0}
STREAMS = 2  # of each replica


class Connection(http.client.HTTPConnection):
    def fileno(self) -> int:
        """For select: whether there is something to read."""
        return self.sock.fileno()


class Caller:
    def __init__(self, port: int, route: str, handle) -> None:
        self.port, self.route, self.handle = port, route, handle

    def ask(self, body: object, method: str = "POST", path: str = "") -> Connection:
        """Sends a request and does not wait for the response."""
        connection = Connection("127.0.0.1", self.port, timeout=60)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, self.route + path, data)
        return connection

    def send(self, body: object, method: str = "POST", path: str = "") -> http.client.HTTPResponse:
        """The response, its body unread."""
        connection = self.ask(body, method, path)
        response = connection.getresponse()
        response.connection = connection
        return response

    def whole(self, **request: object) -> tuple[int, dict]:
        """Status and JSON of an answer that is not streamed. Greedy unless told otherwise."""
        response = self.send({"stream": False, "parameters": {"temperature": 0}, **request})
        return response.status, json.loads(response.read())

    def say(self, **request: object) -> str:
        status, reply = self.whole(**request)
        assert status == 200, reply
        return reply["text"]

    def events(self, **request: object):
        """The server-sent events of an answer: pairs of a name and JSON."""
        response = self.send({"parameters": {"temperature": 0}, **request})
        assert response.status == 200, response.read()
        yield from events_of(response)

    def statistics(self) -> list[dict]:
        response = self.send(None, "GET", "/statistics")
        body = response.read()
        assert response.status == 200, body
        return json.loads(body)

    def is_idle(self) -> bool:
        response = self.send(None, "GET", "/statistics")
        body = json.loads(response.read())
        if response.status != 200:
            return False
        requests = [replica["graphs"][0]["requests"] for replica in body]
        return not any(r["running"] or r["waiting"] for r in requests)

    def requests(self, name: str) -> int:
        """A count over all replicas: running, waiting, finished, cancelled ..."""
        return sum(replica["graphs"][0]["requests"][name] for replica in self.statistics())


class Callers:
    """Threads that call at once; what one of them raises is raised where they are waited for."""

    def __init__(self, call, *arguments: object) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(len(arguments))
        self._calls = [self._pool.submit(call, argument) for argument in arguments]

    def wait(self) -> None:
        for call in self._calls:
            call.result()
        self._pool.shutdown()


def events_of(response: http.client.HTTPResponse):
    name = "message"
    for line in response:
        key, _, value = line.decode().rstrip("\n").partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, json.loads(value)
            name = "message"


def wait_until(condition, seconds: float = 60, what: str = "it"):
    """Polls until the condition holds, and returns what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.05)
    pytest.fail(f"{what} did not happen within {seconds} s")
