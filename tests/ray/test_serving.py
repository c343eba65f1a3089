"""Language models behind Ray Serve: answers, refusals, affinity, priorities, callers that go away."""

from __future__ import annotations

import json
import select
import time
from pathlib import Path

import pytest
from callers import ENDLESS, MODEL, STREAMS, Callers, events_of, wait_until

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

from headrace.language_model import LanguageModelError
from headrace.ray import RequestError

GREEDY = {"temperature": 0}


def test_an_answer_is_streamed_as_server_sent_events(chat):
    events = list(chat.events(prompt="What is the capital of France?"))
    assert {name for name, _ in events[:-1]} == {"message"}
    assert "".join(data["text"] for _, data in events[:-1]) == "The capital of France is Paris."
    name, end = events[-1]
    assert name == "end"
    assert end["metadata"]["stop_reason"] == "end_of_answer"
    assert end["metadata"]["output_tokens"] > 2


def test_an_answer_comes_whole_when_it_is_not_streamed(chat):
    status, reply = chat.whole(prompt="What is 2+3?")
    assert (status, reply["text"]) == (200, "2+3=5")
    assert reply["metadata"]["input_tokens"] == 15


def test_a_conversation_is_in_its_messages(chat):
    messages = [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Nice to meet you, Ada!"},
        {"role": "user", "content": "What is my name?"},
    ]
    assert chat.say(messages=messages) == "Your name is Ada."
    assert "Ada" not in chat.say(messages=messages[2:])


def test_python_handles_give_the_same_answers(chat):
    request = {"prompt": "What is 2+3?", "parameters": GREEDY}
    assert chat.handle.generate.remote(request).result()["text"] == "2+3=5"
    *pieces, end = chat.handle.options(stream=True).stream.remote(request)
    assert "".join(piece["text"] for piece in pieces) == "2+3=5"
    assert end["metadata"]["stop_reason"] == "end_of_answer"


def test_python_handles_raise_what_is_wrong(chat):
    with pytest.raises(RequestError, match="either 'messages' or 'prompt'"):
        chat.handle.generate.remote({}).result()
    with pytest.raises(LanguageModelError, match="'tempratur' is not known"):
        chat.handle.generate.remote({"prompt": "Hi.", "parameters": {"tempratur": 0}}).result()


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_is_refused(chat, body):
    response = chat.send(body)
    assert response.status == 400
    assert json.loads(response.read())["error"]["message"].startswith("the body is no JSON: ")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"prompt": "a", "messages": []}, "either 'messages' or 'prompt'"),
        ({"prompt": "a", "priority": "first"}, 'one of "low", "normal", "high", "urgent"'),
        ({"prompt": "a", "parameters": {"temperature": float("nan")}}, "cannot be written as JSON"),
        ({"prompt": "a", "parameters": {"temperature": "hot"}}, "it must be a number"),
        ({"prompt": "a", "parameters": {"tempratur": 1}}, "'tempratur' is not known; did you mean"),
        ({"prompt": "a", "parameters": {"grammar": "root ::= ("}}, "grammar"),
        ({"prompt": "word " * 2000}, "tokens, and the context holds 512"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_bad_requests_are_refused_with_the_reason(chat, request_, message, stream):
    response = chat.send({**request_, "stream": stream})
    error = json.loads(response.read())["error"]
    assert response.status == 400
    assert message in error["message"]


def test_bodies_beyond_the_limit_are_refused(chat):
    response = chat.send(b'{"prompt": "' + b"x" * (9 << 20) + b'"}')
    assert response.status == 413
    assert "are taken" in json.loads(response.read())["error"]["message"]


def test_other_paths_and_methods_are_not_found(chat):
    for method, path in (("GET", ""), ("POST", "/statistics"), ("PUT", ""), ("GET", "/x")):
        response = chat.send(None, method, path)
        assert response.status == 404
        assert "is not served" in json.loads(response.read())["error"]["message"]


def test_sessions_stay_with_the_replica_that_remembers_them(chat):
    before = {replica["pid"]: replica["graphs"][0] for replica in chat.statistics()}
    names = ["Ada", "Leo", "Mia", "Tom", "Eva", "Ben", "Zoe", "Max", "Ida", "Jon"]
    conversations = {name: [] for name in names}
    read = reread = 0
    for turn in ("My name is {}.", "What is 2+3?", "What is the capital of Spain?", "What is my name?"):
        for name, messages in conversations.items():
            messages.append({"role": "user", "content": turn.format(name)})
            known = messages[-2]["tokens"] if len(messages) > 1 else 0
            plain = [{"role": m["role"], "content": m["content"]} for m in messages]
            _, reply = chat.whole(messages=plain, session=f"session of {name}")
            metadata = reply["metadata"]
            if known:
                reread += max(0, known - metadata["cached_tokens"])
                read += known
            messages.append(
                {"role": "assistant", "content": reply["text"], "tokens": metadata["input_tokens"]}
            )
    assert read > 500
    assert reread < read / 50, "what a session's last request had read is remembered by its replica"
    cached = {r["pid"]: r["graphs"][0]["tokens"]["cached"] for r in chat.statistics()}
    for pid, graph in before.items():
        assert cached[pid] > graph["tokens"]["cached"], "both replicas have sessions"


def test_prompts_that_begin_alike_go_to_one_replica(chat):
    before = {r["pid"]: r["graphs"][0]["requests"]["finished"] for r in chat.statistics()}
    beginning = "You are a helpful assistant who answers in one short sentence and never lies. " * 4
    for i in range(6):
        chat.say(
            messages=[
                {"role": "system", "content": beginning},
                {"role": "user", "content": f"What is 2+{i}?"},
            ]
        )
    after = {r["pid"]: r["graphs"][0]["requests"]["finished"] for r in chat.statistics()}
    assert sorted(after[pid] - before[pid] for pid in before) == [0, 6]


def test_a_prompt_that_everybody_sends_is_spread_when_its_replica_is_full(chat):
    # The answer's head comes with its first piece: all of them run.
    responses = [chat.send({"prompt": "Tell me a story.", "parameters": ENDLESS}) for _ in range(2 * STREAMS)]
    try:
        assert [r["graphs"][0]["requests"]["running"] for r in chat.statistics()] == [STREAMS, STREAMS]
    finally:
        for response in responses:
            response.connection.close()
    wait_until(
        lambda: chat.requests("running") + chat.requests("waiting") == 0, what="the end of all streams"
    )


def test_a_caller_who_goes_away_ends_its_generation(chat):
    cancelled = chat.requests("cancelled")
    response = chat.send({"prompt": "Tell me a story.", "parameters": ENDLESS})
    name, first = next(events_of(response))
    assert (name, list(first)) == ("message", ["text"])
    assert chat.requests("running") == 1
    response.connection.close()
    wait_until(lambda: chat.requests("running") == 0, 20, "the end of the generation")
    assert chat.requests("cancelled") == cancelled + 1


def test_a_caller_who_waits_for_the_whole_answer_and_goes_away_ends_its_generation_too(chat):
    cancelled = chat.requests("cancelled")
    connection = chat.ask({"prompt": "Tell me a story.", "stream": False, "parameters": ENDLESS})
    wait_until(lambda: chat.requests("running") == 1, 20, "the generation")
    connection.close()
    wait_until(lambda: chat.requests("running") == 0, 20, "its end")
    assert chat.requests("cancelled") == cancelled + 1


def test_handles_that_are_cancelled_end_their_generation(chat):
    cancelled = chat.requests("cancelled")
    response = chat.handle.options(stream=True).stream.remote(
        {"prompt": "Tell me a story.", "parameters": ENDLESS}
    )
    assert "text" in next(response)
    response.cancel()
    wait_until(lambda: chat.requests("cancelled") == cancelled + 1, 20, "the end of the generation")


def test_urgent_requests_go_before_those_that_wait(chat):
    ended = []

    def ask(priority):
        parameters = {"ignore_eos": True, "n_predict": 400, "temperature": 0}
        status, _ = chat.whole(prompt="Tell me a story.", priority=priority, parameters=parameters)
        ended.append((priority, status))

    low = Callers(ask, *["low"] * 10 * STREAMS)
    wait_until(lambda: chat.requests("waiting") > 3 * STREAMS, what="a queue")
    before = len(ended)
    ask("urgent")
    low.wait()
    assert {status for _, status in ended} == {200}
    place = ended.index(("urgent", 200)) - before
    assert place < len(ended) / 2, "it did not wait for the queue"


def test_a_full_queue_is_busy_and_says_when_to_come_back(chat):
    # No accepted request ends or is answered before: a readable answer is a refusal.
    endless = {"prompt": "Tell me a story.", "stream": False, "parameters": ENDLESS}
    connections = [chat.ask(endless) for _ in range(200)]
    try:
        refused = wait_until(
            lambda: len(found := select.select(connections, [], [], 0)[0]) >= 20 and found, what="refusals"
        )
        for connection in refused:
            response = connection.getresponse()
            assert response.status == 503
            assert response.headers["Retry-After"] == "1", response.read()
            assert json.loads(response.read())["error"]["code"] == "busy"
        statistics = chat.send(None, "GET", "/statistics")
        assert statistics.status == 503, (
            "replicas that are full answer nothing else, and that is said in time"
        )
        assert "within 5 s" in json.loads(statistics.read())["error"]["message"]
    finally:
        for connection in connections:
            connection.close()
    wait_until(chat.is_idle, 180, what="the end of all")
    assert chat.say(prompt="What is 2+3?") == "2+3=5", "there is room again"


def test_replicas_of_a_host_share_the_pages_of_the_weights(chat):
    pids = [replica["pid"] for replica in chat.statistics()]
    assert len(set(pids)) == 2
    for pid in pids:
        pages = mapping(pid, MODEL.name)
        assert pages["Rss"] > MODEL.stat().st_size // 1024 * 0.9
        assert pages["Shared_Clean"] > pages["Rss"] * 0.9
        assert pages["Pss"] < pages["Rss"] * 0.6, "each page counts for half a process"


def mapping(pid: int, name: str) -> dict[str, int]:
    """The rows of /proc/PID/smaps for a mapped file, in KiB."""
    pages: dict[str, int] = {}
    inside = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        key, *values = line.split()
        if not key.endswith(":"):
            inside = line.rstrip().endswith(name)
        elif inside and values[-1] == "kB":
            pages[key[:-1]] = pages.get(key[:-1], 0) + int(values[0])
    return pages


def test_the_time_of_a_request_is_limited(chat):
    began = time.monotonic()
    status, reply = chat.whole(prompt="Tell me a story.", parameters={**ENDLESS, "timeout_ms": 300})
    assert (status, reply["error"]["code"]) == (504, "timed_out")
    assert time.monotonic() - began < 20
