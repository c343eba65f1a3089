"""Prompts on disk that the replicas of a host share, also with those of a rolling update."""

from __future__ import annotations

import re
import threading

import pytest
from callers import MODEL, Caller, wait_until

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

PROMPT = " ".join(f"The {i}th dog saw a cat." for i in range(60))


@pytest.fixture
def deploy(cluster, tmp_path):
    import headrace.ray
    from ray import serve

    def application(max_waiting: int) -> Caller:
        config = {"cache_dir": str(tmp_path / "prompts"), "n_ctx": 2048}
        built = headrace.ray.application(
            MODEL, config, replicas=2, cpus=0.25, streams=2, max_waiting=max_waiting
        )
        return Caller(cluster, "/stored", serve.run(built, name="stored", route_prefix="/stored"))

    yield application
    serve.delete("stored")


def counts(caller: Caller, metric: str) -> dict[str, float]:
    """Of each replica."""
    page = caller.send(None, "GET", "/metrics").read().decode()
    found = re.findall(rf'^{metric}\{{replica="(\S+)",[^ ]*\}} (\S+)$', page, re.MULTILINE)
    return {replica: float(count) for replica, count in found}


def answer(caller: Caller, session: str) -> str:
    status, reply = caller.whole(
        prompt=PROMPT, session=session, parameters={"temperature": 0, "max_tokens": 6}
    )
    assert status == 200, reply
    return reply["text"]


def test_what_one_replica_has_read_the_other_need_not(deploy):
    caller = deploy(max_waiting=8)
    first = answer(caller, "a session")
    wait_until(lambda: sum(counts(caller, "headrace_disk_written_tokens_total").values()) > 0, what="blocks")
    assert sum(counts(caller, "headrace_disk_cached_tokens_total").values()) == 0
    sessions = iter(f"another session {i}" for i in range(100))
    while 0 in counts(caller, "headrace_requests_total").values():
        assert answer(caller, next(sessions)) == first
    assert sum(counts(caller, "headrace_disk_cached_tokens_total").values()) >= 64


def test_a_rolling_update_loses_no_request_and_no_prompt(deploy):
    caller = deploy(max_waiting=8)
    first = answer(caller, "a session")
    before = set(counts(caller, "headrace_requests_total"))
    wait_until(lambda: sum(counts(caller, "headrace_disk_written_tokens_total").values()) > 0, what="blocks")
    answers, is_over = [], threading.Event()

    def ask_on() -> None:
        while not is_over.is_set():
            answers.append(caller.whole(prompt="What is 2+3?"))

    asking = threading.Thread(target=ask_on)
    asking.start()
    try:
        deploy(max_waiting=9)  # another argument: Serve starts other replicas, one after the other
        wait_until(
            lambda: not before & set(counts(caller, "headrace_requests_total")), 120, "the other replicas"
        )
    finally:
        is_over.set()
        asking.join()
    assert len(answers) > 1 and {status for status, _ in answers} == {200}
    assert len({reply["text"] for _, reply in answers}) == 1
    assert answer(caller, "a session") == first
    assert sum(counts(caller, "headrace_disk_cached_tokens_total").values()) >= 64
