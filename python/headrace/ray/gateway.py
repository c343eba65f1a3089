"""The deployment that callers talk to: checks requests and asks another replica when one is lost."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING

from ray.exceptions import RayActorError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from starlette.responses import JSONResponse, Response, StreamingResponse

from headrace.language_model import LanguageModelError

from .http_messages import FORWARDED, PASSED_ON, Head, HttpRequest, error_body, error_piece
from .metrics import merged
from .replica import error_event
from .request import Request, RequestError, VectorRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ray.serve.handle import DeploymentHandle
    from starlette.requests import Request as Incoming

    from .replica import Event

LONGEST_BODY = 8 << 20  # bytes
METRICS_TYPE = "text/plain; version=0.0.4"
STATISTICS_S = 5  # a replica answers that at once, or else when one of its requests has ended
STATUS = {
    "invalid_argument": 400,
    "unsupported": 400,
    "prompt_too_long": 400,
    "context_full": 400,
    "busy": 503,
    "replica_lost": 503,
    "unavailable": 503,
    "timed_out": 504,
}
#: What Serve raises where no replica answers, and none was lost.
_REFUSALS = (TimeoutError, BackPressureError, DeploymentUnavailableError)


class Gateway:
    """POST / takes a request as JSON and streams the answer as server-sent events; below /v1/ and /api/ are
    the APIs of `headrace serve`; GET /statistics and GET /metrics, of every replica.

    attempts: replicas that a request is sent to, one after the other is lost. silence_s: a request of which
    nothing is heard for so long is given up.
    """

    def __init__(self, model: DeploymentHandle, attempts: int = 4, silence_s: float = 600) -> None:
        self._model = model
        self._attempts = attempts
        self._silence_s = silence_s

    async def __call__(self, http: Incoming) -> Response:
        path = http.url.path.removeprefix(http.scope.get("root_path", ""))
        if path.startswith(FORWARDED):
            return await self._forward(http, path)
        path = path.rstrip("/")
        if http.method == "GET" and path in ("/statistics", "/metrics"):
            try:
                if path == "/metrics":
                    return Response(await self.metrics(), media_type=METRICS_TYPE)
                return JSONResponse(await self.statistics())
            except LanguageModelError as error:
                return _error(error.code, error.message)
        if http.method != "POST" or path:
            message = (
                f"{http.method} {path or '/'} is not served; POST / and what is below "
                f"{' and '.join(FORWARDED)} take requests, GET /statistics and GET /metrics tell"
            )
            return _error("not_found", message, 404)
        body = await http.body()
        if len(body) > LONGEST_BODY:
            return _error("invalid_argument", _too_long(body), 413)
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            return _error("invalid_argument", f"the body is no JSON: {error}", 400)
        try:
            return await self._answer(value)
        except RequestError as error:
            return _error("invalid_argument", str(error), 400)
        except LanguageModelError as error:
            return _error(error.code, error.message)

    async def _forward(self, http: Incoming, path: str) -> Response:
        """What `headrace serve` answers, from a replica."""
        body = await http.body()
        if len(body) > LONGEST_BODY:
            return Response(error_body(path, 413, _too_long(body)), 413, media_type="application/json")
        headers = tuple((name, http.headers[name]) for name in PASSED_ON if name in http.headers)
        request = HttpRequest(http.method, path, http.url.query, headers, body)
        try:
            head, pieces = await self._ask_http(request)
        except LanguageModelError as error:
            status = STATUS.get(error.code, 500)
            retry = {"Retry-After": "1"} if status == 503 else {}
            shape = error_body(path, status, error.message)
            return Response(shape, status, retry, media_type="application/json")
        if not head.is_stream:
            return Response(b"".join([piece async for piece in pieces]), head.status, dict(head.headers))
        return StreamingResponse(self._to_the_end(path, pieces), head.status, dict(head.headers))

    async def _ask_http(self, request: HttpRequest) -> tuple[Head, AsyncIterator[bytes]]:
        """The beginning of an answer, and what is left of it. Of one that is no stream that is all there: a
        replica that is lost before is nobody's loss. Errors: LanguageModelError."""
        for _ in range(self._attempts):
            pieces = self._ask("http", request)
            try:
                head = await anext(pieces)
                if head.is_stream:
                    return head, pieces
                return head, _each([piece async for piece in pieces])
            except RayActorError:
                continue
        raise self._all_lost()

    async def _to_the_end(self, path: str, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            try:
                async for piece in pieces:
                    yield piece
            except RayActorError:
                yield error_piece(path, 503, "the replica that answered was lost; ask again")
            except LanguageModelError as error:
                yield error_piece(path, STATUS.get(error.code, 500), error.message)

    async def _answer(self, value: object) -> Response:
        request = Request.read(value)
        events = self._events(request)
        if not request.stream:
            return JSONResponse(await _whole(events))
        # The first event decides on the status.
        first = await anext(events)
        return StreamingResponse(_sse(first, events), media_type="text/event-stream")

    async def embed(self, request: dict[str, object]) -> dict[str, object]:
        """For Python handles: {"vectors", "tokens"}. Errors as generate's."""
        wanted = VectorRequest.read(request)
        for _ in range(self._attempts):
            try:
                [event] = [event async for event in self._ask("embed", wanted)]
            except RayActorError:
                continue
            return event
        raise self._all_lost()

    async def generate(self, request: dict[str, object]) -> dict[str, object]:
        """For Python handles: {"text", "metadata"}. Errors: RequestError, LanguageModelError."""
        return await _whole(self._events(Request.read(request)))

    async def stream(self, request: dict[str, object]) -> AsyncIterator[Event]:
        """For Python handles with stream=True: {"text"} ..., {"metadata"}. Errors as generate's."""
        async for event in self._events(Request.read(request)):
            yield event

    async def statistics(self) -> list[dict[str, object]]:
        """The statistics of every replica. LanguageModelError: none is left or has time for it."""
        return await self._of_each("statistics")

    async def metrics(self) -> str:
        """For Prometheus: those of `headrace serve --metrics`, of every replica. Errors as statistics()'."""
        return merged(dict(await self._of_each("metrics")))

    async def _of_each(self, method: str) -> list[object]:
        for _ in range(self._attempts):
            try:
                async with asyncio.timeout(STATISTICS_S):
                    return await self._model.broadcast(method).results_async()
            except RayActorError:  # until Serve knows that it is gone
                await asyncio.sleep(0.5)
            except TimeoutError:
                raise LanguageModelError(
                    "busy", f"not all replicas answered within {STATISTICS_S} s: their queues are full"
                ) from None
            except _REFUSALS as error:
                raise self._refusal(error) from None
        raise self._all_lost()

    async def _events(self, request: Request) -> AsyncIterator[Event]:
        """The answer, from as many replicas as it takes; ends with "metadata". Errors: LanguageModelError.

        What another replica writes must begin with what the caller has been given already. It does when the
        request is reproducible (temperature 0, or a seed) and near ties fall alike; where it does not, the
        request fails.
        """
        given = ""
        for _ in range(self._attempts):
            repeated = 0  # characters of `given` that this replica has written, too
            try:
                async with aclosing(self._ask("stream", request)) as events:
                    async for event in events:
                        text = event.get("text", "")
                        same = min(len(text), len(given) - repeated)
                        ends_early = "metadata" in event and repeated < len(given)
                        if ends_early or given[repeated : repeated + same] != text[:same]:
                            raise _lost(f"another one answers differently from character {repeated} on")
                        repeated += len(text)
                        given += text[same:]
                        if "text" not in event:
                            yield event
                            return
                        if text[same:]:
                            yield {"text": text[same:]}
            except RayActorError:
                continue
        raise self._all_lost()

    async def _ask(
        self, method: str, request: Request | VectorRequest | HttpRequest
    ) -> AsyncIterator[Event | Head | bytes]:
        """What that method of a replica gives. Errors: RayActorError when it is lost, LanguageModelError."""
        handle = self._model.options(stream=True, session_id=request.affinity() or "")
        response = getattr(handle, method).remote(request)
        is_taken = True
        try:
            while True:
                async with asyncio.timeout(self._silence_s):
                    piece = await anext(response)
                if isinstance(piece, dict) and "error" in piece:
                    raise LanguageModelError(**piece["error"])
                yield piece
        except StopAsyncIteration:
            return
        except _REFUSALS as error:
            is_taken = isinstance(error, TimeoutError)
            raise self._refusal(error) from None
        finally:
            # Cancelling a request that no replica took would raise the refusal once more.
            if is_taken:
                response.cancel()

    def _refusal(self, error: Exception) -> LanguageModelError:
        if isinstance(error, TimeoutError):
            return LanguageModelError("timed_out", f"no replica was heard of for {self._silence_s} s")
        code = "busy" if isinstance(error, BackPressureError) else "unavailable"
        return LanguageModelError(code, str(error.message))

    def _all_lost(self) -> LanguageModelError:
        return _lost(f"so were all {self._attempts} that it was sent to")


def _too_long(body: bytes) -> str:
    return f"the body has {len(body)} bytes; {LONGEST_BODY} are taken"


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _lost(detail: str) -> LanguageModelError:
    return LanguageModelError("replica_lost", f"the replica that answered was lost, and {detail}; ask again")


def _error(code: str, message: str, status: int | None = None) -> Response:
    status = status or STATUS.get(code, 500)
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse(error_event(code, message), status, headers)


async def _whole(events: AsyncIterator[Event]) -> dict[str, object]:
    text = ""
    async for event in events:
        text += event.get("text", "")
    return {"text": text, "metadata": event["metadata"]}


async def _sse(event: Event, events: AsyncIterator[Event]) -> AsyncIterator[str]:
    try:
        while "text" in event:
            yield f"data: {json.dumps(event)}\n\n"
            event = await anext(events)
        yield f"event: end\ndata: {json.dumps(event)}\n\n"
    except LanguageModelError as error:
        yield f"event: error\ndata: {json.dumps(error_event(error.code, error.message))}\n\n"
    finally:
        await events.aclose()
