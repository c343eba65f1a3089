"""Prompts on disk that the replicas of a host share, also with those of a rolling update."""

from __future__ import annotations

import json
import re
import threading

import pytest
from callers import MODEL, Caller, Callers, wait_until

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

QUESTION = "What is 2+3?"
#: Answers that still run when their replica is told to go.
LONG = {"temperature": 0, "max_tokens": 40, "ignore_eos": True}
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
    """The numbers of each replica."""
    page = caller.send(None, "GET", "/metrics").read().decode()
    found = re.findall(rf'^{metric}\{{replica="(\S+)",[^ ]*\}} (\S+)$', page, re.MULTILINE)
    return {replica: float(count) for replica, count in found}


def answer(caller: Caller, session: str) -> str:
    status, reply = caller.whole(
        prompt=PROMPT, session=session, parameters={"temperature": 0, "max_tokens": 6}
    )
    assert status == 200, reply
    return reply["text"]


def whole(caller: Caller) -> str:
    return caller.say(prompt=QUESTION, parameters=LONG)


def streamed(caller: Caller) -> str:
    """A stream that ends as it should."""
    events = list(caller.events(prompt=QUESTION, parameters=LONG))
    assert events[-1][0] == "end", events[-1]
    return "".join(event["text"] for _, event in events[:-1])


def streamed_by_openai(caller: Caller) -> str:
    messages = [{"role": "user", "content": QUESTION}]
    body = {"messages": messages, "stream": True, "temperature": 0, "max_tokens": 40, "ignore_eos": True}
    response = caller.send(body, path="/v1/chat/completions")
    assert response.status == 200
    lines = response.read().decode().splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert data[-1] == "[DONE]", data[-1]
    chunks = [json.loads(line)["choices"] for line in data[:-1]]
    assert chunks[-1][0]["finish_reason"] == "length"
    return "".join(choices[0]["delta"].get("content") or "" for choices in chunks)


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
    is_over = threading.Event()
    texts = {"whole": [], "streamed": [], "of OpenAI's API": []}
    ask = {"whole": whole, "streamed": streamed, "of OpenAI's API": streamed_by_openai}

    def ask_on(kind: str) -> None:
        while not is_over.is_set():
            texts[kind].append(ask[kind](caller))

    asking = Callers(ask_on, *texts, *texts)
    try:
        wait_until(lambda: all(texts.values()), what="an answer of each kind")
        deploy(max_waiting=9)  # another argument: Serve starts other replicas, one after the other
        wait_until(
            lambda: not before & set(counts(caller, "headrace_requests_total")), 120, "the other replicas"
        )
        seen = {kind: len(all_of_kind) for kind, all_of_kind in texts.items()}
        wait_until(lambda: all(len(texts[kind]) > seen[kind] for kind in texts), what="answers of the others")
    finally:
        is_over.set()
        asking.wait()  # raises what went wrong with one of them
    assert [len(set(all_of_kind)) for all_of_kind in texts.values()] == [1, 1, 1], texts
    assert texts["whole"][0] == texts["streamed"][0]
    assert answer(caller, "a session") == first
    assert sum(counts(caller, "headrace_disk_cached_tokens_total").values()) >= 64
