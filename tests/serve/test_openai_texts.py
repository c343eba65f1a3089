"""Completions, embeddings, models and responses through OpenAI's client."""

from __future__ import annotations

from typing import Literal

import numpy as np
import openai
import pydantic
import pytest
from serve_program import STORY, ask_openai

GREEDY = {"model": "tiny", "temperature": 0}


@pytest.fixture(scope="module")
def server(serve):
    return serve("--parallel", 4, "--alias", "tiny,small", "--tags", "test")


@pytest.fixture(scope="module")
def client(server):
    return ask_openai(server, checks_types=False)


@pytest.fixture(scope="module")
def embedder(serve, models):
    return serve("--embeddings", "--alias", "vectors", model=models / "vectors.gguf")


def test_a_completion_goes_on_with_its_prompt(server, client):
    answer = client.completions.create(prompt="1+1=", max_tokens=4, **GREEDY)
    assert (answer.object, answer.choices[0].text, answer.choices[0].finish_reason) == (
        "text_completion",
        "2",
        "stop",
    )
    assert answer.usage.prompt_tokens == len(server.tokens("1+1=", add_special=True))
    assert answer.id.startswith("cmpl-")


def test_a_completions_stream_has_the_same_text_and_usage(client):
    options = {"prompt": STORY, "max_tokens": 8, **GREEDY}
    whole = client.completions.create(**options)
    *chunks, last = client.completions.create(stream=True, stream_options={"include_usage": True}, **options)
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    assert len({chunk.id for chunk in [*chunks, last]}) == 1
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason == "length"
    assert last.choices == [] and last.usage.completion_tokens == whole.usage.completion_tokens == 8


def test_a_completions_stream_without_usage_ends_with_its_timings(server):
    *_, last = server.events("/v1/completions", {"prompt": STORY, "max_tokens": 3, **GREEDY})
    assert last["choices"][0]["finish_reason"] == "length" and last["timings"]["predicted_n"] == 3


def test_prompts_may_be_several_texts_and_tokens_each_with_several_choices(server, client):
    prompts = ["1+1=", "What is the capital of"]
    alone = [
        client.completions.create(prompt=text, max_tokens=3, **GREEDY).choices[0].text for text in prompts
    ]
    assert alone[0] != alone[1]
    answer = client.completions.create(prompt=prompts, n=2, max_tokens=3, **GREEDY)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in answer.choices] == [alone[0], alone[0], alone[1], alone[1]]
    assert answer.usage.prompt_tokens == sum(len(server.tokens(text, add_special=True)) for text in prompts)
    tokens = [server.tokens(text, add_special=True) for text in prompts]
    assert client.completions.create(prompt=tokens[1], max_tokens=3, **GREEDY).choices[0].text == alone[1]
    answer = client.completions.create(prompt=tokens, max_tokens=3, **GREEDY)
    assert [choice.text for choice in answer.choices] == alone


def test_echo_puts_the_prompt_before_the_text_in_streams_too(client):
    options = {"prompt": "1+1=", "max_tokens": 4, "echo": True, **GREEDY}
    assert client.completions.create(**options).choices[0].text == "1+1=2"
    chunks = client.completions.create(stream=True, **options)
    assert "".join(chunk.choices[0].text for chunk in chunks) == "1+1=2"


def test_logprobs_of_a_completion_are_of_its_texts_tokens(client):
    options = {"prompt": "1+1=", "max_tokens": 4, "logprobs": 3, **GREEDY}
    choice = client.completions.create(**options).choices[0]
    assert "".join(choice.logprobs.tokens) == choice.text == "2"
    assert (
        len(choice.logprobs.token_logprobs) == len(choice.logprobs.text_offset) == len(choice.logprobs.tokens)
    )
    assert all(value <= 0 for value in choice.logprobs.token_logprobs)
    assert all(len(top) == 3 for top in choice.logprobs.top_logprobs)
    chunks = [chunk.choices[0] for chunk in client.completions.create(stream=True, **options)]
    streamed = [token for chunk in chunks if chunk.logprobs for token in chunk.logprobs.tokens]
    assert streamed == choice.logprobs.tokens


def test_echo_with_logprobs_has_those_of_the_prompt(client):
    options = {"prompt": "1+1=", "echo": True, "logprobs": 1, **GREEDY}
    choice = client.completions.create(max_tokens=1, **options).choices[0]
    shown = choice.logprobs
    assert "".join(shown.tokens) == choice.text == "1+1=2"
    assert shown.token_logprobs[0] is None and shown.top_logprobs[0] is None
    assert shown.text_offset == [0, *np.cumsum([len(token) for token in shown.tokens])[:-1]]
    assert all(value <= 0 for value in shown.token_logprobs[1:])
    pairs = zip(shown.top_logprobs[1:], shown.token_logprobs[1:], strict=True)
    assert all(max(top.values()) >= own for top, own in pairs)
    alone = client.completions.create(max_tokens=0, **options).choices[0]
    assert (alone.text, alone.finish_reason) == ("1+1=", "length")
    np.testing.assert_allclose(alone.logprobs.token_logprobs[1:], shown.token_logprobs[1:-1], atol=1e-3)


def test_an_evaluation_harness_gets_the_likelihood_of_a_continuation(client, server):
    """As lm-eval asks: tokens of context and continuation, one token more, and the likeliest at each."""
    context = server.tokens("1+1=", add_special=True)
    likelihoods = {}
    for continuation in ("2", "7"):
        tokens = [*context, *server.tokens(continuation, add_special=False)]
        options = {"echo": True, "logprobs": 1, "max_tokens": 1, "seed": 1234}
        shown = client.completions.create(prompt=[tokens], **options, **GREEDY).choices[0].logprobs
        own, top = shown.token_logprobs[len(context) : -1], shown.top_logprobs[len(context) : -1]
        is_greedy = all(one == max(others.values()) for one, others in zip(own, top, strict=True))
        likelihoods[continuation] = sum(own), is_greedy
    assert likelihoods["2"][1] and not likelihoods["7"][1]
    assert likelihoods["2"][0] > likelihoods["7"][0]


def test_a_stop_text_ends_a_completion(client):
    answer = client.completions.create(prompt="1, 2, 3, 4,", stop=["7"], max_tokens=30, **GREEDY)
    assert "7" not in answer.choices[0].text


def test_embeddings_come_as_numbers_and_as_base64(embedder):
    client = ask_openai(embedder, checks_types=False)
    texts = ["hello world", "this is a joke", "bread"]
    packed = client.embeddings.create(model="vectors", input=texts)  # the client asks for base64
    plain = client.embeddings.create(model="vectors", input=texts, encoding_format="float")
    assert [entry.index for entry in packed.data] == [0, 1, 2]
    np.testing.assert_allclose(
        [entry.embedding for entry in packed.data], [entry.embedding for entry in plain.data], atol=1e-6
    )
    np.testing.assert_allclose(
        np.linalg.norm([entry.embedding for entry in plain.data], axis=1), 1, rtol=1e-3
    )
    assert packed.usage.prompt_tokens == packed.usage.total_tokens == 4 + 6 + 3, "with [CLS] and [SEP]"
    assert (packed.object, packed.data[0].object, packed.model) == ("list", "embedding", "vectors")


def test_an_embedding_says_that_it_is_base64_and_takes_llama_servers_name_of_a_text(embedder):
    (packed,) = embedder.json("/v1/embeddings", {"input": "bread", "encoding_format": "base64"})["data"]
    assert packed["encoding_format"] == "base64" and isinstance(packed["embedding"], str)
    (plain,) = embedder.json("/v1/embeddings", {"input": "bread"})["data"]
    (other,) = embedder.json("/v1/embeddings", {"content": "bread"})["data"]
    assert "encoding_format" not in plain and other == plain


def test_a_text_alone_among_others_and_as_tokens_has_the_same_vector(embedder):
    client = ask_openai(embedder, checks_types=False)
    tokens = embedder.tokens("hello world", add_special=True)
    alone, listed, read = (
        client.embeddings.create(model="vectors", input=given).data[0].embedding
        for given in ("hello world", ["hello world", "bread"], tokens)
    )
    np.testing.assert_allclose(listed, alone, atol=1e-4)
    np.testing.assert_allclose(read, alone, atol=1e-4)


def test_embeddings_have_the_size_of_the_model_and_no_other(embedder):
    client = ask_openai(embedder, checks_types=False)
    assert (
        len(client.embeddings.create(model="vectors", input="bread", dimensions=64).data[0].embedding) == 64
    )
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="vectors", input="bread", dimensions=32)
    assert caught.value.param == "dimensions"


def test_a_text_that_is_too_long_to_embed_is_an_error(embedder):
    with pytest.raises(openai.BadRequestError, match="too large"):
        ask_openai(embedder, checks_types=False).embeddings.create(model="vectors", input="bread " * 5000)


def test_models_are_listed_and_found_by_each_name(client):
    (model,) = client.models.list().data
    assert model.object == "model" and model.id in ("small", "tiny") and model.created > 0
    assert set(model.aliases) == {"tiny", "small"} and model.tags == ["test"]
    assert (model.meta["vocab_type"], model.meta["ftype"]) == (2, "Q8_0"), "BPE by llama.cpp's number"
    assert client.models.retrieve("tiny").id == client.models.retrieve("small").id == model.id
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("large")


def test_a_response_has_the_text_and_what_was_asked(server, client):
    response = client.responses.create(input="What is 2+3?", metadata={"a": "b"}, **GREEDY)
    assert response.output_text == "2+3=5"
    assert (response.status, response.object, response.metadata) == ("completed", "response", {"a": "b"})
    assert response.id.startswith("resp_") and response.output[0].id.startswith("msg_")
    assert response.usage.output_tokens == len(server.tokens("2+3=5")) + 1
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_a_streamed_response_has_its_events_in_order_and_ends_with_the_whole(client):
    options = {"input": [{"role": "user", "content": "What is 2+3?"}], "instructions": "Be brief.", **GREEDY}
    whole = client.responses.create(**options)
    events = list(client.responses.create(stream=True, **options))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]
    assert set(kinds[4:-4]) == {"output_text.delta"}
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text == events[-1].response.output_text
    assert {event.item_id for event in events[3:-2]} == {events[-1].response.output[0].id}
    assert events[-1].response.id == events[0].response.id


def test_a_streamed_response_without_text_has_an_empty_message(client):
    options = {"input": "What is 2+3?", "extra_body": {"stop": ["2"]}, **GREEDY}
    whole = client.responses.create(**options)
    events = list(client.responses.create(stream=True, **options))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds.count("output_item.added") == kinds.count("output_item.done") == 1
    assert kinds.index("output_item.added") < kinds.index("output_item.done") < kinds.index("completed")
    assert (
        [item.type for item in events[-1].response.output]
        == [item.type for item in whole.output]
        == ["message"]
    )
    assert whole.output_text == events[-1].response.output_text == ""


def test_a_response_that_is_cut_is_incomplete(client):
    response = client.responses.create(input=STORY, max_output_tokens=3, **GREEDY)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.usage.output_tokens == 3 and response.output_text


class Animal(pydantic.BaseModel):
    kind: Literal["fox", "dog"]


def test_a_response_follows_a_schema_of_pydantic(client):
    assert isinstance(client.responses.parse(input="Hi", text_format=Animal, **GREEDY).output_parsed, Animal)


def test_responses_are_not_kept_and_that_is_said(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(input="Hi", previous_response_id="resp_1", **GREEDY)
    assert caught.value.param == "previous_response_id"


def test_the_tokens_of_a_response_can_be_counted_before(server, client):
    counted = client.responses.input_tokens.count(input="What is 2+3?", model="tiny")
    assert counted.input_tokens == client.responses.create(input="What is 2+3?", **GREEDY).usage.input_tokens
    assert (
        server.json("/responses/input_tokens", {"input": "What is 2+3?"})["input_tokens"]
        == counted.input_tokens
    )
