"""The deployment that holds the model: one engine in each replica, its weights mapped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from headrace.language_model import LanguageModel, LanguageModelError

from . import replies
from .request import Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from headrace.language_model import Generation

#: One of {"text": str}, {"metadata": dict} at the end, or {"error": {"code", "message"}} at the end.
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
        self._threads.submit(_read, generation, parameters.get("return_tokens") is True, pieces.put)
        try:
            while True:
                event = await pieces.take()
                yield event
                if "text" not in event:
                    return
                await pieces.wait_for_end(self._pause_s)
        finally:
            generation.cancel()

    async def embed(self, texts: list[str]) -> Event:
        """{"model", "vectors", "tokens"}, the tokens of all texts together, or {"error"}."""
        try:
            loop = asyncio.get_running_loop()
            read = await loop.run_in_executor(self._threads, self._model.embeddings, texts)
        except LanguageModelError as error:
            return error_event(error.code, error.message)
        return {"model": self._name, "vectors": read.vectors, "tokens": read.tokens}

    async def statistics(self) -> dict[str, object]:
        return {"model": self._name, "pid": os.getpid(), **replies.statistics(self._model.statistics())}

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
        # An anonymous context for every request; the engine's own queue orders them by priority.
        return {"n_parallel": self._streams, "max_concurrent": self._most + 8, "max_waiting": self._most}


class _Pieces:
    """What a thread has read of an answer and the caller has not been given."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._text: list[str] = []
        self._last: Event | None = None
        self._arrived, self._ended = asyncio.Event(), asyncio.Event()

    def put(self, event: Event) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self._add, event)

    def _add(self, event: Event) -> None:
        if "text" in event:
            self._text.append(event["text"])
        else:
            self._last = event
            self._ended.set()
        self._arrived.set()

    async def take(self) -> Event:
        """All the text there is, or the end."""
        await self._arrived.wait()
        if not self._text:
            return self._last
        event = {"text": "".join(self._text)}
        self._text.clear()
        if self._last is None:
            self._arrived.clear()
        return event

    async def wait_for_end(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()


def error_event(code: str, message: str) -> Event:
    return {"error": {"code": code, "message": message}}


def _read(generation: Generation, with_tokens: bool, put: Callable[[Event], None]) -> None:
    """In a thread of its own: reads an answer to its end."""
    try:
        for piece in generation:
            put({"text": piece})
        put({"metadata": replies.metadata(generation.reply, with_tokens)})
    except LanguageModelError as error:
        put(error_event(error.code, error.message))
    except Exception as error:
        put(error_event("backend_failure", f"{type(error).__name__}: {error}"))
