"""Fields of OpenAI's chats and completions: those that change the answer are obeyed or refused by name."""

from __future__ import annotations

import json

import openai
import pytest
from serve_program import STORY, ask_openai

SUM = [{"role": "user", "content": "What is 2+3?"}]
TALE = [{"role": "user", "content": STORY}]
GREEDY = {"model": "tiny", "temperature": 0}


@pytest.fixture(scope="module")
def server(serve):
    return serve("--parallel", 4, "--alias", "tiny")


@pytest.fixture(scope="module")
def cold(serve):
    return serve("--temp", 0)


@pytest.fixture(scope="module")
def client(server):
    return ask_openai(server)


def tokens_of(chunks) -> list:
    shown = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices]
    return [token for entry in shown if entry for token in entry.content]


def test_logprobs_of_an_answer_that_a_stop_text_ended_are_of_the_text_that_is_left(client):
    """Where a stop text begins within a token, that token is the last one."""
    whole = client.chat.completions.create(messages=TALE, max_tokens=60, **GREEDY).choices[0].message.content
    options = {"messages": TALE, "max_tokens": 60, "logprobs": True, "top_logprobs": 1, **GREEDY}
    for start, length in ((10, 6), (13, 9), (20, 1), (25, 12), (0, 5)):
        stop = whole[start : start + length]
        choice = client.chat.completions.create(stop=[stop], **options).choices[0]
        text = whole.partition(stop)[0]
        assert choice.message.content == text and choice.finish_reason == "stop"
        tokens = [token.token for token in choice.logprobs.content]
        assert "".join(tokens).startswith(text)
        assert len("".join(tokens[:-1])) < len(text) or not tokens
        chunks = list(client.chat.completions.create(stop=[stop], stream=True, **options))
        assert [token.token for token in tokens_of(chunks)] == tokens
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text


def test_logprobs_of_a_completion_leave_out_a_stop_text_too(client):
    options = {"prompt": "1, 2, 3, 4,", "max_tokens": 30, "logprobs": 1, **GREEDY}
    whole = client.completions.create(**options).choices[0].text
    stop = whole[5:9]
    for choice in (
        client.completions.create(stop=stop, **options).choices[0],
        client.completions.create(stop=stop, n=1, best_of=2, **options).choices[0],
    ):
        assert choice.text == whole.partition(stop)[0]
        assert "".join(choice.logprobs.tokens[:-1]) in choice.text
        assert len(choice.logprobs.token_logprobs) == len(choice.logprobs.tokens)


def test_tokens_may_be_shown_without_alternatives_and_with_twenty(client):
    for top in (0, 20):
        answer = client.chat.completions.create(messages=SUM, logprobs=True, top_logprobs=top, **GREEDY)
        assert {len(token.top_logprobs) for token in answer.choices[0].logprobs.content} == {top}
    answer = client.chat.completions.create(messages=SUM, logprobs=True, **GREEDY)
    assert {len(token.top_logprobs) for token in answer.choices[0].logprobs.content} == {0}
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(messages=SUM, logprobs=True, top_logprobs=21, **GREEDY)
    assert caught.value.param == "top_logprobs"


def test_a_completions_token_is_among_its_own_alternatives(client):
    options = {"prompt": "Once", "max_tokens": 12, "model": "tiny", "temperature": 2, "seed": 7}
    for count in (0, 2):
        shown = client.completions.create(logprobs=count, **options).choices[0].logprobs
        for token, value, top in zip(shown.tokens, shown.token_logprobs, shown.top_logprobs, strict=True):
            assert top[token] == value and len(top) <= count + 1


def mean_logprob(choice) -> float:
    return sum(choice.logprobs.token_logprobs) / len(choice.logprobs.token_logprobs)


def test_the_best_of_several_completions_is_the_likeliest(client):
    options = {"prompt": "Once", "max_tokens": 8, "model": "tiny", "temperature": 2, "seed": 1, "logprobs": 1}
    all_of_them = client.completions.create(n=4, **options)
    best = client.completions.create(n=2, best_of=4, **options)
    likeliest = sorted(all_of_them.choices, key=mean_logprob, reverse=True)[:2]
    assert [choice.text for choice in best.choices] == [choice.text for choice in likeliest]
    assert [choice.index for choice in best.choices] == [0, 1]
    assert best.usage.completion_tokens == all_of_them.usage.completion_tokens, "all were written"


@pytest.mark.parametrize("more", [{"n": 3, "best_of": 2}, {"best_of": 2, "stream": True}], ids=str)
def test_a_best_of_that_cannot_be_had_is_named(client, more):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(prompt="Once", model="tiny", **more)
    assert caught.value.param == "best_of"


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("modalities", {"modalities": ["text", "audio"]}),
        ("audio", {"audio": {"voice": "alloy", "format": "wav"}}),
        ("web_search_options", {"web_search_options": {}}),
        ("functions", {"functions": [{"name": "f"}], "tools": []}),
        ("function_call", {"function_call": "auto"}),
    ],
)
def test_what_would_make_another_answer_is_refused_by_name(client, field, more):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(messages=SUM, **more, **GREEDY)
    assert caught.value.param == field


def test_what_makes_no_other_answer_is_taken(client):
    more = {"modalities": ["text"], "verbosity": "low", "store": True, "metadata": {"a": "b"}}
    more |= {"service_tier": "auto", "user": "me", "prediction": {"type": "content", "content": "2"}}
    answer = client.chat.completions.create(messages=SUM, **more, **GREEDY)
    assert answer.choices[0].message.content == "2+3=5"


def test_the_newer_name_of_a_limit_counts_where_both_are_given(client):
    answer = client.chat.completions.create(messages=SUM, max_tokens=20, max_completion_tokens=2, **GREEDY)
    assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (2, "length")


def test_llama_servers_n_probs_shows_tokens_of_a_chat(server):
    body = {"messages": SUM, "temperature": 0, "n_probs": 3}
    shown = server.json("/v1/chat/completions", body)["choices"][0]["logprobs"]["content"]
    assert "".join(entry["token"] for entry in shown) == "2+3=5"
    assert all(len(entry["top_logprobs"]) == 3 for entry in shown)
    assert "logprobs" not in server.json("/v1/chat/completions", {**body, "n_probs": 0})["choices"][0]


def test_a_schema_may_stand_beside_its_type(server):
    wanted = {"type": "json_schema", "schema": {"enum": ["seven", "eight"]}}
    body = {"messages": SUM, "temperature": 0, "response_format": wanted}
    content = server.json("/v1/chat/completions", body)["choices"][0]["message"]["content"]
    assert json.loads(content) in ("seven", "eight")


def test_what_nobody_can_do_here_is_named(server):
    """llama-server may be told to end a thought."""
    answer = server.json(
        "/v1/chat/completions", {"messages": SUM, "temperature": 0, "reasoning_control": True}
    )
    assert [warning["parameter"] for warning in answer["warnings"]] == ["reasoning_control"]


@pytest.mark.parametrize(
    "path, body",
    [
        ("/v1/chat/completions", {"messages": SUM}),
        ("/v1/completions", {"prompt": "Say"}),
        ("/v1/responses", {"input": "Say"}),
        ("/v1/messages", {"model": "any", "messages": SUM, "max_tokens": 4}),
        ("/completion", {"prompt": "Say"}),
    ],
)
def test_a_stream_ends_with_the_warnings_that_a_whole_answer_has(server, path, body):
    body = {"max_tokens": 4, **body, "nonsense": 1}
    if path == "/v1/responses":
        body["max_output_tokens"] = body.pop("max_tokens")
    whole = server.json(path, body)["warnings"]
    assert [warning["parameter"] for warning in whole] == ["nonsense"]
    events = server.events(path, body)
    shown = [event.get("response", event).get("warnings") for event in events]
    assert [warnings for warnings in shown if warnings] == [whole]


def test_a_session_has_one_answer_at_a_time(server):
    answer = server.ask("POST", "/v1/chat/completions", json={"messages": SUM, "session": "q", "n": 2})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "session", answer.text


@pytest.mark.parametrize("schema", [True, {}], ids=str)
def test_a_schema_that_takes_anything_gives_json(client, schema):
    wanted = {"type": "json_schema", "json_schema": {"name": "any", "schema": schema}}
    options = {"messages": SUM, "max_tokens": 200, **GREEDY}
    choice = client.chat.completions.create(response_format=wanted, **options).choices[0]
    if choice.finish_reason == "stop":
        json.loads(choice.message.content)
    assert choice.message.content[0] in '{["-0123456789tfn'


def test_the_first_names_of_tools_are_read_in_the_conversation(server):
    messages = [
        *SUM,
        {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": "{}"}},
        {"role": "function", "name": "add", "content": "it is five"},
    ]
    assert "it is five" in server.json("/apply-template", {"messages": messages})["prompt"]


def texts_of(server, path: str, body: dict, text_of, **sampling) -> list[str]:
    return [text_of(server.json(path, {**body, **sampling, "seed": seed})) for seed in range(8)]


@pytest.mark.parametrize(
    ("path", "body", "text_of"),
    [
        ("/v1/completions", {"prompt": "Once"}, lambda answer: answer["choices"][0]["text"]),
        (
            "/v1/chat/completions",
            {"messages": TALE},
            lambda answer: answer["choices"][0]["message"]["content"],
        ),
        ("/v1/messages", {"model": "any", "messages": TALE}, lambda answer: answer["content"][0]["text"]),
    ],
    ids=["completions", "chats", "messages"],
)
def test_sampling_is_the_apis_own_unless_a_flag_or_the_request_says_otherwise(
    server, cold, path, body, text_of
):
    body = {**body, "max_tokens": 24, "cache_prompt": False}  # which changes the last digits
    usual = texts_of(server, path, body, text_of)
    assert usual == texts_of(server, path, body, text_of, temperature=1, top_p=1)
    assert usual != texts_of(server, path, body, text_of, temperature=0.8, top_p=0.95)
    assert texts_of(server, path, body, text_of, temp=0) == texts_of(cold, path, body, text_of)
    assert texts_of(cold, path, body, text_of, temperature=1) == usual


def test_a_session_has_its_parameters_name_too(server):
    for name in ("session", "session_id"):
        for text in ("My name is Ada.", "What is my name?"):
            body = {"messages": [{"role": "user", "content": text}], name: name, "temperature": 0}
            answer = server.json("/v1/chat/completions", body)["choices"][0]["message"]["content"]
        assert answer == "Your name is Ada."


def test_a_section_of_parameters_is_told_the_name_that_is_taken(server):
    reply = server.post("/v1/chat/completions", {"messages": SUM, "sampling": {"top_k": 1}})
    status, error = reply.status_code, reply.json()["error"]
    assert status == 400 and "'sampling.top_k'" in error["message"]


def test_a_system_prompt_beside_messages_is_told_where_it_belongs(server):
    reply = server.post("/v1/chat/completions", {"messages": SUM, "system_prompt": "Be brief."})
    status, error = reply.status_code, reply.json()["error"]
    assert (status, error["param"]) == (400, "system_prompt")
    assert "a message of the role system" in error["message"]
