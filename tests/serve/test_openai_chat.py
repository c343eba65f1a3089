"""Chats through OpenAI's own client, unmodified."""

from __future__ import annotations

import json
from typing import Literal

import pydantic
import pytest
from serve_program import STORY, ask_openai

SUM = [{"role": "user", "content": "What is 2+3?"}]
TALE = [{"role": "user", "content": STORY}]
GREEDY = {"model": "tiny", "temperature": 0}


@pytest.fixture(scope="module")
def server(serve):
    return serve("--parallel", 4, "--alias", "tiny")


@pytest.fixture(scope="module")
def chat(server):
    return ask_openai(server).chat.completions


def content_of(chunks, choice=0) -> str:
    choices = [entry for chunk in chunks for entry in chunk.choices if entry.index == choice]
    return "".join(entry.delta.content or "" for entry in choices)


def test_an_answer_has_its_text_its_reason_to_end_and_its_tokens(server, chat):
    answer = chat.create(messages=SUM, **GREEDY)
    (choice,) = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "2+3=5")
    assert choice.finish_reason == "stop" and choice.message.tool_calls is None
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-") and answer.model == "tiny"
    assert answer.usage.prompt_tokens == len(server.prompt_tokens(SUM))
    assert answer.usage.completion_tokens == len(server.tokens("2+3=5")) + 1, "and the one that ends it"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_has_the_same_text_under_one_id_and_its_usage_in_the_last_chunk(chat):
    whole = chat.create(messages=TALE, max_tokens=40, **GREEDY)
    stream = chat.create(
        messages=TALE, max_tokens=40, stream=True, stream_options={"include_usage": True}, **GREEDY
    )
    *chunks, last = stream
    assert content_of(chunks) == whole.choices[0].message.content
    assert len({chunk.id for chunk in [*chunks, last]}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert [chunk.choices[0].delta.role for chunk in chunks[:2]] == ["assistant", None]
    reasons = [chunk.choices[0].finish_reason for chunk in chunks]
    assert reasons[-1] == whole.choices[0].finish_reason and set(reasons[:-1]) == {None}
    assert last.choices == [] and last.usage.completion_tokens == whole.usage.completion_tokens
    assert last.usage.prompt_tokens == whole.usage.prompt_tokens


def test_a_stream_has_no_usage_unless_it_is_asked_for(chat):
    chunks = list(chat.create(messages=SUM, stream=True, **GREEDY))
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


def test_the_clients_stream_helper_ends_with_the_whole_answer(chat):
    with chat.stream(messages=SUM, **GREEDY) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert kinds.count("content.done") == 1
    assert final.choices[0].message.content == "2+3=5"


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_an_answer_that_is_cut_says_so(chat, limit):
    answer = chat.create(messages=TALE, **GREEDY, **{limit: 5})
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 5


def test_several_choices_are_numbered_and_differ_and_a_seed_gives_them_again(chat):
    options = {"messages": TALE, "n": 3, "temperature": 1.5, "seed": 7, "max_tokens": 20, "model": "tiny"}
    answer = chat.create(**options)
    texts = [choice.message.content for choice in answer.choices]
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len(set(texts)) > 1
    assert [choice.message.content for choice in chat.create(**options).choices] == texts
    assert answer.usage.completion_tokens <= 60
    chunks = list(chat.create(stream=True, **options))
    assert [content_of(chunks, choice) for choice in range(3)] == texts


def test_a_seed_gives_the_same_text_and_another_seed_another(chat):
    options = {"messages": TALE, "temperature": 1.5, "max_tokens": 30, "model": "tiny"}
    texts = [chat.create(seed=seed, **options).choices[0].message.content for seed in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


@pytest.mark.parametrize("stop", ["5", ["7", "5"]])
def test_a_stop_text_ends_the_answer_and_is_not_part_of_it(chat, stop):
    count = [{"role": "user", "content": "Count from 1 to 9."}]
    whole = chat.create(messages=count, **GREEDY).choices[0].message.content
    assert "5" in whole
    answer = chat.create(messages=count, stop=stop, **GREEDY)
    assert answer.choices[0].message.content == whole.partition("5")[0]
    assert answer.choices[0].finish_reason == "stop"
    assert (
        content_of(chat.create(messages=count, stop=stop, stream=True, **GREEDY)) == whole.partition("5")[0]
    )


def test_logprobs_are_of_the_answers_tokens_and_the_likeliest_come_first(chat):
    answer = chat.create(messages=SUM, logprobs=True, top_logprobs=3, **GREEDY)
    tokens = answer.choices[0].logprobs.content
    assert "".join(token.token for token in tokens) == "2+3=5"
    for token in tokens:
        assert token.logprob <= 0 and bytes(token.bytes).decode() == token.token
        assert len(token.top_logprobs) == 3
        assert token.top_logprobs[0].token == token.token, "greedy"
        likely = [other.logprob for other in token.top_logprobs]
        assert likely == sorted(likely, reverse=True)
    assert chat.create(messages=SUM, **GREEDY).choices[0].logprobs is None


def test_a_streams_logprobs_are_those_of_the_whole_answer(chat):
    options = {"messages": SUM, "logprobs": True, "top_logprobs": 2, **GREEDY}
    whole = chat.create(**options).choices[0].logprobs.content
    chunks = chat.create(stream=True, **options)
    streamed = [
        token
        for chunk in chunks
        if chunk.choices and chunk.choices[0].logprobs
        for token in chunk.choices[0].logprobs.content
    ]
    assert "".join(token.token for token in streamed) == "2+3=5"
    assert [token.logprob for token in streamed] == pytest.approx(
        [token.logprob for token in whole], abs=0.01
    )


def test_logit_bias_forbids_and_forces_tokens(server, chat):
    (five,) = server.tokens("5")
    forbidden = chat.create(messages=SUM, logit_bias={str(five): -100}, max_tokens=20, **GREEDY)
    assert "5" not in forbidden.choices[0].message.content
    forced = chat.create(messages=SUM, logit_bias={str(five): 100}, max_tokens=4, **GREEDY)
    assert forced.choices[0].message.content == "5555"


def test_json_object_gives_an_object(chat):
    options = {"messages": SUM, "response_format": {"type": "json_object"}, "max_tokens": 200, **GREEDY}
    options["logit_bias"] = {"0": 0}
    answer = chat.create(**options).choices[0]
    if answer.finish_reason == "stop":
        assert isinstance(json.loads(answer.message.content), dict)
    assert answer.message.content.startswith("{")
    assert content_of(chat.create(stream=True, **options)) == answer.message.content


class Animal(pydantic.BaseModel):
    kind: Literal["fox", "dog"]
    wild: bool
    legs: Literal[2, 4]


def test_a_schema_of_pydantic_is_followed_and_parsed(chat):
    answer = chat.parse(messages=SUM, response_format=Animal, **GREEDY)
    assert isinstance(answer.choices[0].message.parsed, Animal)
    assert answer.choices[0].finish_reason == "stop"


def test_a_json_schema_is_followed_in_streams_too(chat):
    schema = Animal.model_json_schema()
    wanted = {"type": "json_schema", "json_schema": {"name": "animal", "strict": True, "schema": schema}}
    text = content_of(chat.create(messages=SUM, response_format=wanted, stream=True, **GREEDY))
    assert Animal.model_validate_json(text)


def test_content_may_be_parts_and_developers_may_speak(server, chat):
    parts = [{"type": "text", "text": "What is"}, {"type": "text", "text": " 2+3?"}]
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]
    answer = chat.create(messages=messages, **GREEDY)
    assert answer.choices[0].message.content
    assert answer.usage.prompt_tokens == len(server.prompt_tokens(messages))


def test_what_our_engine_adds_is_taken_beside_openais_fields(chat):
    more = {"priority": "high", "timeout_ms": 20000, "session": "sums"}
    assert chat.create(messages=SUM, extra_body=more, **GREEDY).choices[0].message.content == "2+3=5"


def test_a_request_that_takes_longer_than_its_timeout_ends(server):
    body = {"messages": TALE, "ignore_eos": True, "n_predict": -1, "timeout_ms": 150, "temperature": 0}
    response = server.post("/v1/chat/completions", body)
    if response.status_code == 200:  # the context was full before
        assert response.json()["choices"][0]["finish_reason"] == "length"
    else:
        assert response.status_code == 504 and response.json()["error"]["type"] == "timeout_error"
