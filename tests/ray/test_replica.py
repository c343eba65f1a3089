"""A replica by itself: its health, what it tells the autoscaler, vectors."""

from __future__ import annotations

import asyncio
import json
import time
from types import SimpleNamespace

import pytest
from callers import ENDLESS, MODEL, wait_until

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

from headrace.ray.http_messages import HttpRequest
from headrace.ray.replica import ModelReplica
from headrace.ray.request import Request

STREAMS = 2
CONFIG = {"n_threads": 1, "n_ctx": 512, "context_shift": True}


def started(config=CONFIG, **options) -> ModelReplica:
    replica = ModelReplica(STREAMS, 16, **options)
    asyncio.run(replica.reconfigure({"model": str(MODEL), "config": config}))
    return replica


def check(replica: ModelReplica) -> None:
    asyncio.run(replica.check_health())


class Frozen:
    """A model whose engine says the same again and again, as one that hangs does."""

    def __init__(self, **statistics: object) -> None:
        self._statistics = SimpleNamespace(**statistics)

    def statistics(self) -> SimpleNamespace:
        return self._statistics


async def answering(replica: ModelReplica, count: int, body) -> None:
    """Runs the body, in a thread, while that many answers are written."""
    request = Request.read({"prompt": "Tell me a story.", "parameters": ENDLESS})
    streams = [replica.stream(request) for _ in range(count)]
    reading = [asyncio.create_task(anext(stream)) for stream in streams]
    try:
        await asyncio.to_thread(body)
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        for stream in streams:
            await stream.aclose()


def test_a_replica_without_a_model_yet_is_healthy_and_has_nothing_to_do():
    replica = ModelReplica(STREAMS, 16)
    check(replica)
    assert replica.record_autoscaling_stats() == {"running": 0.0, "waiting": 0.0}


def test_an_engine_that_works_or_rests_is_healthy():
    replica = started(stalled_after_s=1)

    def body():
        wait_until(lambda: replica.record_autoscaling_stats()["running"] == 1, what="an answer")
        for _ in range(5):
            check(replica)
            time.sleep(0.4)  # together longer than an engine may hang

    asyncio.run(answering(replica, 1, body))
    wait_until(lambda: replica.record_autoscaling_stats()["running"] == 0, what="the end of it")
    for _ in range(2):
        time.sleep(1.2)
        check(replica)


def test_an_engine_that_has_work_and_makes_no_step_is_unhealthy_once_that_took_too_long():
    replica = started(stalled_after_s=1)

    def body():
        wait_until(lambda: replica.record_autoscaling_stats()["running"] == 1, what="an answer")
        replica._model, running = Frozen(**replica._model.statistics().to_dict()), replica._model
        try:
            check(replica)
            check(replica)  # not yet
            time.sleep(1.2)
            with pytest.raises(RuntimeError, match=r"the engine of .*tiny-chat.* has made no step for 1 s"):
                check(replica)
        finally:
            replica._model = running
        time.sleep(0.1)
        check(replica)  # it goes on

    asyncio.run(answering(replica, 1, body))


def test_the_autoscaler_is_told_what_runs_and_what_waits():
    replica = started()

    def body():
        wanted = {"running": float(STREAMS), "waiting": 3.0}
        wait_until(lambda: replica.record_autoscaling_stats() == wanted, what="full streams and a queue")

    asyncio.run(answering(replica, STREAMS + 3, body))
    empty = {"running": 0.0, "waiting": 0.0}
    wait_until(lambda: replica.record_autoscaling_stats() == empty, what="the end of all")


VECTORS = {**CONFIG, "embeddings": True, "pooling": "mean"}


def test_an_engine_of_vectors_that_hangs_is_unhealthy():
    replica = started(VECTORS, stalled_after_s=1)
    check(replica)
    replica._model = Frozen(**{**replica._model.statistics().to_dict(), "running": 1})
    check(replica)
    time.sleep(1.2)
    with pytest.raises(RuntimeError, match=r"the engine of .*tiny-chat.* has made no step for 1 s"):
        check(replica)


def test_requests_for_vectors_count_as_running():
    replica = started(VECTORS)
    most = 0.0

    body = json.dumps({"input": ["a dog"] * 200}).encode()
    request = HttpRequest(
        "POST", "/v1/embeddings", headers=(("content-type", "application/json"),), body=body
    )

    async def whole():
        head, *pieces = [piece async for piece in replica.http(request)]
        return head, json.loads(b"".join(pieces))

    async def embed():
        nonlocal most
        task = asyncio.create_task(whole())
        while not task.done():
            most = max(most, replica.record_autoscaling_stats()["running"])
            await asyncio.sleep(0)
        return await task

    head, reply = asyncio.run(embed())
    assert head.status == 200
    assert len(reply["data"]) == 200 and reply["usage"]["prompt_tokens"] > 200
    assert most == 1.0
    assert replica.record_autoscaling_stats()["running"] == 0.0
