"""What happens to requests and sessions when the replica that serves them is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from callers import ENDLESS, MODEL, Caller, Callers, wait_until

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

# What the tiny model remembers: a name that was said last, of those below.
TURNS = ("What is 2+3?", "What is the capital of Spain?", "My name is {}.", "What is my name?")


def kill_replica_that(caller, condition) -> int:
    """The pid of the replica that was killed."""

    def found():
        return next((r["pid"] for r in caller.statistics() if condition(r["graphs"][0]["requests"])), None)

    pid = wait_until(found, what="a replica to kill")
    os.kill(pid, signal.SIGKILL)
    return pid


@pytest.fixture
def two_replicas(chat):
    yield chat
    # Serve starts another one in the place of the killed.
    wait_until(lambda: len(chat.statistics()) == 2, 120, "a second replica")


def test_no_request_is_lost_and_sessions_move_when_a_replica_is_killed(two_replicas):
    chat = two_replicas
    names = ["Ada", "Leo", "Mia", "Tom", "Anna", "Ben"]
    outcomes, killed_at = [], []

    def converse(name):
        for _ in range(5):
            messages = []
            for turn in TURNS:
                messages.append({"role": "user", "content": turn.format(name)})
                status, reply = chat.whole(messages=messages, session=f"{name} talks")
                outcomes.append((time.monotonic(), status, reply, name, turn))
                if status != 200:
                    break
                messages.append({"role": "assistant", "content": reply["text"]})

    callers = Callers(converse, *names)
    wait_until(lambda: len(outcomes) > 20, what="load")
    dead = kill_replica_that(chat, lambda requests: requests["submitted"] > 0)
    killed_at = time.monotonic()
    callers.wait()
    after = [outcome for outcome in outcomes if outcome[0] > killed_at]
    assert len(after) > 30, "the load went on after the kill"
    assert len(outcomes) == len(names) * 5 * len(TURNS), "each request has its answer"
    assert {status for _, status, *_ in outcomes} == {200}
    for _, _, reply, name, turn in outcomes:
        if turn == "What is my name?":
            assert reply["text"] == f"Your name is {name}.", "whoever answers knows the conversation"
    assert dead not in [replica["pid"] for replica in chat.statistics()]


def home_of(caller, prompt) -> int:
    """The pid of the replica that a prompt goes to."""
    submitted = {r["pid"]: r["graphs"][0]["requests"]["submitted"] for r in caller.statistics()}
    caller.say(prompt=prompt, parameters={"n_predict": 1})
    after = {r["pid"]: r["graphs"][0]["requests"]["submitted"] for r in caller.statistics()}
    (pid,) = [pid for pid in after if after[pid] > submitted[pid]]
    return pid


def test_a_stream_goes_on_where_it_was_when_its_replica_is_killed(two_replicas):
    chat = two_replicas
    # What comes after the end of the story is a near tie at every token, and not the same each time.
    story = chat.say(prompt="Tell me a story about a fox.")
    request = {"prompt": "Tell me a story about a fox.", "parameters": {**ENDLESS, "n_predict": 450}}
    home = home_of(chat, request["prompt"])
    events = chat.events(**request)
    text = next(events)[1]["text"]
    os.kill(home, signal.SIGKILL)
    *pieces, (name, data) = events
    text += "".join(piece["text"] for _, piece in pieces)
    assert (name, data["metadata"]["output_tokens"]) == ("end", 450), "another replica wrote it to the end"
    assert home not in [replica["pid"] for replica in chat.statistics()]
    assert text.startswith(story), "no piece is missing or there twice"


def test_a_stream_that_another_replica_would_answer_differently_fails_with_the_reason(two_replicas):
    chat = two_replicas
    parameters = {**ENDLESS, "temperature": 2, "top_k": 0, "top_p": 1, "min_p": 0}
    events = chat.events(prompt="Tell me a story about a cat.", parameters=parameters)
    given = ""
    while len(given) < 200:  # many answers begin alike
        name, piece = next(events)
        assert name == "message"
        given += piece["text"]
    kill_replica_that(chat, lambda requests: requests["running"] == 1)
    *_, (name, last) = events
    assert (name, last["error"]["code"]) == ("error", "replica_lost")
    assert "answers differently from character" in last["error"]["message"]


def gateways_of(name: str) -> set[int]:
    """Processes, which Ray calls by the application and the deployment."""
    title = f"ray::ServeReplica:{name}:gateway".encode()
    found = set()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and (folder / "cmdline").read_bytes().startswith(title):
                found.add(int(folder.name))
    return found


def test_callers_who_repeat_what_a_dead_gateway_took_along_get_their_answers_from_the_other(cluster):
    import headrace.ray
    from ray import serve

    application = headrace.ray.application(MODEL, cpus=0.25, streams=2, gateways=2)
    serve.run(application, name="doors", route_prefix="/doors")
    caller = Caller(cluster, "/doors", None)
    answers, refused, killed = [], [], threading.Event()

    def ask(number):
        while not killed.is_set() or len(answers) < 60:
            for _ in range(100):
                response = caller.send(
                    {"prompt": f"What is 2+{number}?", "stream": False, "parameters": {"temperature": 0}}
                )
                body = response.read()
                if response.status == 200:
                    answers.append((number, json.loads(body)["text"]))
                    break
                refused.append(response.status)
                time.sleep(0.1)
            else:
                return

    try:
        first = wait_until(lambda: len(found := gateways_of("doors")) == 2 and found, 60, "two gateways")
        callers = Callers(ask, *range(4))
        wait_until(lambda: len(answers) > 20, what="load")
        os.kill(min(first), signal.SIGKILL)
        killed.set()
        callers.wait()
        assert len(answers) >= 60
        assert all(text == f"2+{number}={2 + number}" for number, text in answers)
        assert set(refused) <= {500, 503}
        wait_until(lambda: len(gateways_of("doors") - {min(first)}) == 2, 120, "a gateway in its place")
    finally:
        killed.set()
        serve.delete("doors")
