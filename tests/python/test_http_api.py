"""The HTTP APIs of `headrace serve` inside a process: answers, ends, the shared engine."""

from __future__ import annotations

import gc
import json
import threading
import time

import pytest
from language_models import CONFIG, GREEDY, MODEL, run

pytest.importorskip("headrace.http_api", reason="language models are not built: llama.cpp is not set up")

from headrace import LanguageModel
from headrace.http_api import HttpApi
from headrace.language_model import LanguageModelError

JSON = [("Content-Type", "application/json")]
QUESTION = [{"role": "user", "content": "What is the capital of Spain?"}]
ENDLESS = {"messages": QUESTION, "stream": True, "ignore_eos": True, "max_tokens": 1_000_000}


@pytest.fixture(scope="module")
def api() -> HttpApi:
    return HttpApi(["-m", str(MODEL), "--alias", "tiny", "--parallel", "2", "--log-disable"], CONFIG)


def post(api: HttpApi, path: str, body: object):
    return api.handle("POST", path, JSON, json.dumps(body).encode())


def whole(answer) -> dict:
    return json.loads(b"".join(answer))


def wait_for_running(model: LanguageModel, count: int) -> None:
    until = time.monotonic() + 10
    while (now := model.statistics()).running + now.waiting != count:
        assert time.monotonic() < until, now
        time.sleep(0.01)


def test_a_chat_says_what_the_model_says(api):
    answer = post(api, "/v1/chat/completions", {"messages": QUESTION, "temperature": 0})
    assert answer.status == 200
    assert not answer.is_stream
    assert dict(answer.headers)["Content-Type"].startswith("application/json")
    reply = whole(answer)
    assert reply["model"] == "tiny"
    with LanguageModel(MODEL, CONFIG) as model:
        assert reply["choices"][0]["message"]["content"] == model.generate(QUESTION, GREEDY).text


def test_a_stream_comes_in_pieces_with_the_same_text(api):
    body = {"messages": QUESTION, "temperature": 0}
    text = whole(post(api, "/v1/chat/completions", body))["choices"][0]["message"]["content"]
    answer = post(api, "/v1/chat/completions", {**body, "stream": True})
    assert answer.is_stream
    lines = b"".join(answer).decode().splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert len(events) >= 3  # of the role, the text and the end
    assert "".join(event["choices"][0]["delta"].get("content") or "" for event in events) == text
    assert lines[-2] == "data: [DONE]"


def test_paths_have_queries_and_percent_signs(api):
    assert whole(api.handle("GET", "/v1/models?limit=1"))["data"][0]["id"] == "tiny"
    assert whole(api.handle("GET", "/v1/models/ti%6Ey"))["id"] == "tiny"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nowhere", b"", 404),
        ("GET", "/v1/chat/completions", b"", 405),
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/v1/chat/completions", b'{"messages": [], "temperature": "hot"}', 400),
    ],
)
def test_what_is_wrong_is_an_answer_in_the_shape_of_the_api(api, method, path, body, status):
    answer = api.handle(method, path, JSON, body)
    assert answer.status == status
    assert whole(answer)["error"]["code"] == status


def test_keys_are_asked_for_where_arguments_say_so():
    api = HttpApi(["-m", str(MODEL), "--api-key", "secret", "--log-disable"], CONFIG)
    body = json.dumps({"content": "a"}).encode()
    assert api.handle("POST", "/tokenize", JSON, body).status == 401
    assert api.handle("POST", "/tokenize", [*JSON, ("Authorization", "Bearer secret")], body).status == 200


def test_an_answer_that_is_cancelled_or_dropped_ends_its_generation(api):
    # The same engine, so that its numbers tell.
    with LanguageModel(MODEL, {**CONFIG, "n_parallel": 2}) as model:
        for give_up in (lambda answer: answer.cancel(), lambda _: None):
            answer = post(api, "/v1/chat/completions", ENDLESS)
            next(answer)
            wait_for_running(model, 1)
            give_up(answer)
            del answer
            gc.collect()
            wait_for_running(model, 0)


def test_the_engine_is_the_one_that_language_model_uses(api):
    with LanguageModel(MODEL, {**CONFIG, "n_parallel": 2}) as model:
        finished = model.statistics().finished
        whole(post(api, "/v1/chat/completions", {"messages": QUESTION, "max_tokens": 3}))
        assert model.statistics().finished == finished + 1


def test_an_answer_that_nobody_reads_waits_and_takes_no_memory_without_end(api):
    answer = post(api, "/v1/chat/completions", {**ENDLESS, "n": 2, "logprobs": True, "top_logprobs": 20})
    assert answer.status == 200
    time.sleep(1)
    first = next(answer)
    assert len(first) < 1 << 20
    answer.cancel()
    for _ in answer:
        pass


def test_answers_of_many_threads_are_not_mixed(api):
    def ask(place: int) -> None:
        body = {"messages": [{"role": "user", "content": f"My name is {names[place]}."}], "temperature": 0}
        replies[place] = whole(post(api, "/v1/chat/completions", body))["choices"][0]["message"]["content"]

    names, replies = ["Ada", "Leo", "Mia", "Tom"] * 4, [""] * 16
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(name in reply for name, reply in zip(names, replies, strict=True)), replies


def test_a_stopped_api_refuses_and_ends_what_runs():
    api = HttpApi(["-m", str(MODEL), "--log-disable"], {**CONFIG, "n_ctx": 777})
    answer = post(api, "/v1/chat/completions", ENDLESS)
    next(answer)
    api.stop()
    assert b'"error"' in b"".join(answer)
    assert post(api, "/v1/chat/completions", {"messages": QUESTION}).status == 503


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no model is named"),
        (["-m", "/no/such.gguf"], "such.gguf"),
        (["-m", str(MODEL), "--paralel", "2"], "--parallel"),
        (["--help"], "the program's"),
    ],
)
def test_arguments_that_are_wrong_are_errors(arguments, message):
    with pytest.raises(LanguageModelError, match=message):
        HttpApi(arguments)


def test_a_program_may_end_while_answers_are_written():
    done = run(
        f"""
from headrace.http_api import HttpApi
api = HttpApi(["-m", {str(MODEL)!r}, "--log-disable"], {CONFIG!r})
answer = api.handle("POST", "/v1/chat/completions", {JSON!r}, b'''{json.dumps(ENDLESS)}''')
next(answer)
threading.Thread(target=lambda: list(answer), daemon=True).start()
time.sleep(0.2)
print("ended")
"""
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
