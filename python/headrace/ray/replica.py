"""The deployment that holds the model: one engine in each replica, its weights mapped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ray import serve

from headrace.http_api import HttpApi
from headrace.language_model import LanguageModel, LanguageModelError

from . import replies
from .http_messages import Head
from .request import Request, VectorRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from headrace.http_api import HttpAnswer
    from headrace.language_model import Generation

    from .http_messages import HttpRequest

#: One of {"text": str}, {"metadata": dict} at the end, {"vectors": list, "tokens": int}, or
#: {"error": {"code", "message"}} at the end.
Event = dict[str, object]

CONFIGURATION = ("model", "config")


class ModelReplica:
    """Serves one GGUF model to gateways, which check requests and outlive replicas.

    most: requests at once, running and waiting. pause_s: what is written within so long travels together, as
    each event costs more than a token of a small model. stalled_after_s: an engine that has work and makes no
    step for so long is unhealthy.
    """

    def __init__(self, streams: int, most: int, pause_s: float = 0.02, stalled_after_s: float = 60) -> None:
        self._streams = streams
        self._most = most
        self._pause_s = pause_s
        self._stalled_after_s = stalled_after_s
        self._model: LanguageModel | None = None
        self._http: HttpApi | None = None
        self._name = ""
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="headrace-stream")
        self._last_step = (-1, time.monotonic())

    async def reconfigure(self, user_config: dict[str, object]) -> None:
        """Loads the model, or puts another one in its place while requests run."""
        unknown = sorted(set(user_config) - set(CONFIGURATION))
        if unknown or not isinstance(user_config.get("model"), str):
            raise ValueError(
                f"user_config has {sorted(user_config)}; it must have 'model', the path of a GGUF file, "
                "and may have 'config', its parameters"
            )
        name, config = user_config["model"], {**self._limits(), **(user_config.get("config") or {})}
        if self._model is None:
            self._model = await asyncio.to_thread(LanguageModel, name, config)
        else:
            await asyncio.to_thread(self._model.replace, name, config)
        # The same engine behind the APIs of `headrace serve`; answers of the one before go on with theirs.
        arguments = ["-m", name, "--parallel", str(self._streams), "--metrics", "--log-disable"]
        self._http = await asyncio.to_thread(HttpApi, arguments, config)
        self._name = name

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """The answer's events. Ends the generation when the caller goes away."""
        try:
            parameters = request.model_parameters()
            generation = self._model.stream(request.messages or request.prompt, parameters)
        except LanguageModelError as error:
            yield error_event(error.code, error.message)
            return
        pieces = _Pieces()
        with_tokens = parameters.get("return_tokens") is True
        self._threads.submit(pieces.read, generation, lambda: _end_of(generation, with_tokens))
        try:
            while texts := await pieces.take():
                yield {"text": "".join(texts)}
                await pieces.wait_for_end(self._pause_s)
            yield pieces.end
        finally:
            generation.cancel()

    async def embed(self, request: VectorRequest) -> AsyncIterator[Event]:
        """The vectors of texts, as one event."""
        embeddings, texts = self._model.embeddings, list(request.texts)
        try:
            made = await asyncio.get_running_loop().run_in_executor(
                self._threads, embeddings, texts, request.model_parameters()
            )
        except LanguageModelError as error:
            yield error_event(error.code, error.message)
            return
        yield {"vectors": made.vectors, "tokens": made.tokens}

    async def http(self, request: HttpRequest) -> AsyncIterator[Head | bytes]:
        """What `headrace serve` answers: a head, and the pieces of the body."""
        loop = asyncio.get_running_loop()
        answer = self._http.handle(request.method, request.target, list(request.headers), request.body)
        try:
            yield await loop.run_in_executor(self._threads, _head_of, answer)
            pieces = _Pieces()
            self._threads.submit(pieces.read, answer, dict)
            while parts := await pieces.take():
                yield b"".join(parts)
                await pieces.wait_for_end(self._pause_s)
        finally:
            answer.cancel()

    async def statistics(self) -> dict[str, object]:
        return {"model": self._name, "pid": os.getpid(), **replies.statistics(self._model.statistics())}

    async def metrics(self) -> tuple[str, str]:
        """The replica's name, and what `headrace serve --metrics` tells Prometheus."""
        answer = await asyncio.to_thread(self._http.handle, "GET", "/metrics", [], b"")
        page = await asyncio.to_thread(b"".join, answer)
        return serve.get_replica_context().replica_id.unique_id, page.decode()

    async def check_health(self) -> None:
        """Raises when the engine has work and does not get on with it."""
        if self._model is None:
            return
        now = self._model.statistics()
        steps, since = self._last_step
        if not now.running or now.steps != steps:
            self._last_step = (now.steps, time.monotonic())
        elif time.monotonic() - since > self._stalled_after_s:
            raise RuntimeError(f"the engine of {now.name} has made no step for {self._stalled_after_s} s")

    def record_autoscaling_stats(self) -> dict[str, float]:
        """What the queues hold, for QueueDepth."""
        if self._model is None:
            return {"running": 0.0, "waiting": 0.0}
        now = self._model.statistics()
        return {"running": float(now.running), "waiting": float(now.waiting)}

    def _limits(self) -> dict[str, object]:
        return {"n_parallel": self._streams, "max_waiting": self._most}


class _Pieces:
    """What a thread has read of an answer and the caller has not been given."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: list[str] | list[bytes] = []
        self.end: Event | None = None  # once the answer has ended
        self._arrived, self._ended = asyncio.Event(), asyncio.Event()

    def read(self, answer: Iterable[str] | Iterable[bytes], end: Callable[[], Event]) -> None:
        """In a thread of its own: reads an answer to its end, which `end` tells."""
        try:
            for piece in answer:
                self._loop.call_soon_threadsafe(self._add, piece)
            event = end()
        except LanguageModelError as error:
            event = error_event(error.code, error.message)
        except Exception as error:
            event = error_event("backend_failure", f"{type(error).__name__}: {error}")
        self._loop.call_soon_threadsafe(self._finish, event)

    def _add(self, piece: str | bytes) -> None:
        self._pieces.append(piece)
        self._arrived.set()

    def _finish(self, event: Event) -> None:
        self.end = event
        self._ended.set()
        self._arrived.set()

    async def take(self) -> list[str] | list[bytes]:
        """All the pieces there are; none at the end."""
        await self._arrived.wait()
        pieces, self._pieces = self._pieces, []
        if self.end is None:
            self._arrived.clear()
        return pieces

    async def wait_for_end(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()


def error_event(code: str, message: str) -> Event:
    return {"error": {"code": code, "message": message}}


def _end_of(generation: Generation, with_tokens: bool) -> Event:
    return {"metadata": replies.metadata(generation.reply, with_tokens)}


def _head_of(answer: HttpAnswer) -> Head:
    return Head(answer.status, tuple(answer.headers), answer.is_stream)
