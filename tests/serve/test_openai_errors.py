"""Errors as OpenAI's client raises them: each has its status, its field and a message without paths."""

from __future__ import annotations

import threading

import openai
import pytest
import requests
from serve_program import ENDLESSLY, MODEL, ask_openai, endless_answer, wait_for

HELLO = [{"role": "user", "content": "Hello"}]
KEYS = ("first-key", "second-key")


@pytest.fixture(scope="module")
def server(serve):
    return serve("--max-body-mib", 1)


@pytest.fixture(scope="module")
def limited(serve):
    """Two keys, each with one request at once."""
    return serve(*ENDLESSLY, "--api-key", KEYS[1], "--max-per-key", 1, "--parallel", 4, key=KEYS[0])


@pytest.fixture(scope="module")
def narrow(serve):
    """One request runs, one may wait."""
    return serve(*ENDLESSLY, "--parallel", 1, "--max-waiting", 1)


WRONG = {
    "temperature": "hot",
    "top_p": 7,
    "max_tokens": "many",
    "n": 0,
    "stop": {"a": 1},
    "seed": "x",
    "frequency_penalty": [],
    "presence_penalty": "no",
    "logit_bias": 3,
    "logprobs": "yes",
    "top_logprobs": 1000,
    "response_format": {"type": "sound"},
    "tools": "hammer",
    "stream_options": 3,
    "timeout_ms": "soon",
    "priority": "soon",
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_field_is_named(server, field):
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(server).chat.completions.create(
            model="any", messages=HELLO, extra_body={field: WRONG[field]}
        )
    assert caught.value.param == field
    assert field in caught.value.message and str(MODEL.parent) not in str(caught.value.body)
    assert caught.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    "messages,param",
    [
        (None, "messages"),
        ([], "messages"),
        ("Hello", "messages"),
        ([3], "messages[0]"),
        ([{"role": "king", "content": "x"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].image_url"),
        ([{"role": "user", "content": [{"type": "file"}]}], "messages[0].content[0].type"),
    ],
    ids=str,
)  # fmt: skip
def test_the_place_in_the_messages_is_named(server, messages, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(server).chat.completions.create(model="any", messages=messages)
    assert caught.value.param == param


def test_a_prompt_that_is_too_long_says_how_long_it_is_and_may_be(server):
    messages = [{"role": "user", "content": "What is 2+3? " * 100}]
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(server).chat.completions.create(model="any", messages=messages)
    assert caught.value.type == "exceed_context_size_error"
    assert caught.value.body["n_prompt_tokens"] > caught.value.body["n_ctx"] == 512


def test_a_tool_choice_that_names_no_tool_is_an_error(server):
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    choice = {"type": "function", "function": {"name": "find"}}
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(server).chat.completions.create(
            model="any", messages=HELLO, tools=[tool], tool_choice=choice
        )
    assert caught.value.param == "tool_choice"


def test_a_template_of_a_request_is_refused_unless_it_is_allowed(server, serve):
    body = {"messages": HELLO, "chat_template": "{{ messages[0].content }}!"}
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(server).chat.completions.create(model="any", messages=HELLO, extra_body=body)
    assert caught.value.param == "chat_template"
    sneaked = {"messages": HELLO, "chat_template_kwargs": {"chat_template": "x"}}
    assert "Hello" in server.json("/apply-template", sneaked)["prompt"]
    assert serve("--allow-templates").json("/apply-template", body)["prompt"] == "Hello!"


def test_unknown_paths_are_not_found_and_known_ones_refuse_other_methods(server):
    with pytest.raises(openai.NotFoundError):
        ask_openai(server).files.list()
    response = server.get("/v1/chat/completions")
    assert response.status_code == 405 and response.json()["error"]["type"] == "invalid_request_error"


def test_a_body_that_is_too_large_is_413(server):
    with pytest.raises(openai.APIStatusError) as caught:
        ask_openai(server).completions.create(model="any", prompt="x" * (1 << 21))
    assert caught.value.status_code == 413 and "1048576 bytes" in caught.value.message
    assert server.json("/health") == {"status": "ok"}


def test_a_body_of_another_type_is_415(server):
    response = server.ask("POST", "/v1/completions", data="<a/>", headers={"Content-Type": "text/xml"})
    assert response.status_code == 415 and "application/json" in response.json()["error"]["message"]


def test_embeddings_of_a_model_that_writes_are_not_offered(server):
    with pytest.raises(openai.InternalServerError, match="--embeddings") as caught:
        ask_openai(server).embeddings.create(model="any", input="x")
    assert caught.value.status_code == 501


@pytest.mark.parametrize("key", ["wrong-key", "first-ke", "first-key-", "FIRST-KEY", "first-key,second-key"])
def test_an_unknown_key_is_401(limited, key):
    with pytest.raises(openai.AuthenticationError) as caught:
        ask_openai(limited, key).chat.completions.create(model="any", messages=HELLO)
    assert caught.value.type == "authentication_error" and "first-key" not in str(caught.value.body)


def test_known_keys_are_taken_in_both_headers_and_health_needs_none(limited):
    for key in KEYS:
        assert ask_openai(limited, key).chat.completions.create(model="any", messages=HELLO, max_tokens=1)
    body = {"prompt": "x", "n_predict": 1}
    assert (
        requests.post(limited.url + "/completion", json=body, headers={"X-Api-Key": KEYS[0]}).status_code
        == 200
    )
    assert requests.post(limited.url + "/completion", json=body).status_code == 401
    assert requests.get(limited.url + "/health").status_code == 200
    for path in ("/props", "/slots", "/metrics", "/nothing", "/v1/completions"):
        assert requests.get(limited.url + path).status_code == 401, path


def test_a_key_with_as_many_requests_as_it_may_have_is_429_and_others_go_on(limited):
    with endless_answer(limited, KEYS[0]):
        wait_for(lambda: limited.busy_slots() == 1)
        with pytest.raises(openai.RateLimitError) as caught:
            ask_openai(limited).chat.completions.create(model="any", messages=HELLO)
        assert int(caught.value.response.headers["Retry-After"]) >= 1
        assert ask_openai(limited, KEYS[1]).chat.completions.create(model="any", messages=HELLO, max_tokens=1)
    wait_for(lambda: limited.busy_slots() == 0)
    assert ask_openai(limited).chat.completions.create(model="any", messages=HELLO, max_tokens=1)


def test_several_answers_are_one_request_of_a_key(limited):
    answers = ask_openai(limited).chat.completions.create(model="any", messages=HELLO, max_tokens=1, n=3)
    assert len(answers.choices) == 3
    wait_for(lambda: limited.busy_slots() == 0)


def test_the_scheme_of_a_key_is_read_in_any_case(limited):
    for scheme in ("bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {KEYS[0]}"}
        assert requests.get(limited.url + "/props", headers=headers).status_code == 200


def test_a_full_queue_is_503_with_retry_after_and_those_inside_go_on(narrow):
    with endless_answer(narrow):
        wait_for(lambda: narrow.busy_slots() == 1)
        waiting = threading.Thread(target=narrow.post, args=("/completion", {"prompt": "x", "n_predict": 1}))
        waiting.start()
        client = ask_openai(narrow)

        def refused():
            try:
                client.with_options(timeout=0.2).completions.create(model="any", prompt="x", max_tokens=1)
            except openai.InternalServerError as error:
                return error
            except openai.APITimeoutError:  # it was the one that waits
                return None

        error = wait_for(refused)
        assert error.status_code == 503 and error.type == "unavailable_error"
        assert int(error.response.headers["Retry-After"]) >= 1
    waiting.join(timeout=20)
    assert not waiting.is_alive()
    wait_for(lambda: narrow.busy_slots() == 0)
