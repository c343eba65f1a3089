"""The APIs of `headrace serve` through Ray: the clients that programs use, and replicas that are lost."""

from __future__ import annotations

import base64
import json
import os
import signal

import numpy as np
import pytest
from callers import MODEL, Caller, wait_until

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

from headrace.language_model import LanguageModel, LanguageModelError
from headrace.ray.http_messages import HttpRequest, error_body, error_piece
from headrace.ray.request import RequestError

QUESTION = [{"role": "user", "content": "What is the capital of Spain?"}]
VECTORS = {"embeddings": True, "pooling": "mean", "n_threads": 1}
TEXTS = ["a dog", "What is 2+3?"]
ENDLESS = {"messages": QUESTION, "stream": True, "ignore_eos": True, "max_tokens": 1_000_000}


@pytest.fixture(scope="module")
def embedder(cluster):
    import headrace.ray
    from ray import serve

    application = headrace.ray.application(MODEL, VECTORS, cpus=0.25, streams=2)
    handle = serve.run(application, name="embedder", route_prefix="/embedder")
    yield Caller(cluster, "/embedder", handle)
    serve.delete("embedder")


@pytest.fixture(scope="module")
def expected():
    with LanguageModel(MODEL, VECTORS) as model:
        yield model.embeddings(TEXTS)


def ask(caller, path, body):
    response = caller.send(body, path=path)
    return response.status, json.loads(response.read())


def openai_client(caller):
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=f"http://127.0.0.1:{caller.port}{caller.route}/v1", api_key="none")


def test_openai_s_client_chats_and_streams_what_the_model_says(chat):
    client = openai_client(chat)
    expected = chat.say(messages=QUESTION)
    reply = client.chat.completions.create(model="any", messages=QUESTION, temperature=0)
    assert reply.choices[0].message.content == expected
    assert reply.usage.completion_tokens > 0
    pieces = list(client.chat.completions.create(model="any", messages=QUESTION, temperature=0, stream=True))
    assert len(pieces) > 2
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == expected


def test_anthropic_s_and_ollama_s_apis_answer_too(chat):
    expected = chat.say(messages=QUESTION)
    status, reply = ask(
        chat, "/v1/messages", {"model": "any", "max_tokens": 64, "messages": QUESTION, "temperature": 0}
    )
    assert (status, reply["content"][0]["text"]) == (200, expected)
    body = {"model": MODEL.name, "messages": QUESTION, "stream": False, "options": {"temperature": 0}}
    status, reply = ask(chat, "/api/chat", body)
    assert (status, reply["message"]["content"]) == (200, expected)
    assert json.loads(chat.send(None, "GET", "/v1/models").read())["data"][0]["id"] == MODEL.name


def test_what_is_wrong_is_said_in_the_shape_of_the_api(chat):
    status, reply = ask(chat, "/v1/chat/completions", {"messages": QUESTION, "temperature": "hot"})
    assert (status, reply["error"]["param"]) == (400, "temperature")
    assert chat.send(b"{", path="/v1/chat/completions").status == 400
    assert chat.send({}, path="/v1/nothing").status == 404
    response = chat.send(b" " * (9 << 20), path="/api/chat")
    assert response.status == 413
    assert chat.send({}, path="/nothing").status == 404


def test_replicas_use_one_engine_for_all_apis(chat):
    ask(chat, "/v1/chat/completions", {"messages": QUESTION, "max_tokens": 2})
    chat.whole(messages=QUESTION)
    assert {replica["process"]["engines"] for replica in chat.statistics()} == {1}


def test_a_client_that_leaves_ends_its_generation(chat):
    response = chat.send(ENDLESS, path="/v1/chat/completions")
    assert response.read(10)
    assert not chat.is_idle()
    response.close()
    response.connection.close()
    wait_until(chat.is_idle, what="the end of the generation")


def test_a_stream_whose_replica_is_killed_ends_with_an_error_and_other_requests_are_answered(chat):
    response = chat.send({**ENDLESS, "session": "ada"}, path="/v1/chat/completions")
    assert response.read(10)
    (home,) = [r["pid"] for r in chat.statistics() if r["graphs"][0]["requests"]["running"]]
    os.kill(home, signal.SIGKILL)
    tail = response.read().decode()
    assert "the replica that answered was lost" in tail.strip().splitlines()[-1]
    status, _ = ask(chat, "/v1/chat/completions", {"messages": QUESTION, "session": "ada", "max_tokens": 4})
    assert status == 200
    wait_until(lambda: len(chat.statistics()) == 2, 120, "a second replica")


def test_vectors_come_in_the_order_of_their_texts_with_the_tokens_that_were_read(embedder, expected):
    reply = openai_client(embedder).embeddings.create(model="any", input=TEXTS, encoding_format="float")
    assert [row.index for row in reply.data] == [0, 1]
    for row, vector in zip(reply.data, expected.vectors, strict=True):
        unit = np.asarray(vector) / np.linalg.norm(vector)
        np.testing.assert_allclose(row.embedding, unit, rtol=1e-3, atol=1e-4)
    assert reply.usage.prompt_tokens == expected.tokens


def test_vectors_may_be_base64_and_python_handles_give_the_same(embedder):
    status, reply = ask(embedder, "/v1/embeddings", {"input": TEXTS[0], "encoding_format": "base64"})
    assert status == 200
    vector = np.frombuffer(base64.b64decode(reply["data"][0]["embedding"]), "<f4")
    same = embedder.handle.embed.remote({"input": TEXTS}).result()
    np.testing.assert_allclose(vector, same["vectors"][0], rtol=1e-3, atol=1e-4)
    assert len(same["vectors"]) == len(TEXTS) and same["tokens"] > reply["usage"]["prompt_tokens"]
    [one] = embedder.handle.embed.remote({"input": TEXTS[0], "priority": "high"}).result()["vectors"]
    np.testing.assert_allclose(one, vector, rtol=1e-3, atol=1e-4)


def test_python_handles_raise_what_is_wrong(embedder, chat):
    for wrong in ({}, {"input": []}, {"input": ["a dog", 3]}, {"input": "a dog", "encoding_format": "float"}):
        with pytest.raises(RequestError, match="input"):
            embedder.handle.embed.remote(wrong).result()
    with pytest.raises(LanguageModelError, match="did you mean") as raised:
        embedder.handle.embed.remote({"input": "a dog", "parameters": {"timeout_m": 1}}).result()
    assert raised.value.code == "invalid_argument"
    with pytest.raises(LanguageModelError, match="text 1 is too large") as raised:
        embedder.handle.embed.remote({"input": ["a dog", "word " * 2000]}).result()
    assert raised.value.code == "prompt_too_long"
    with pytest.raises(LanguageModelError, match="embeddings") as raised:
        chat.handle.embed.remote({"input": "a dog"}).result()
    assert raised.value.code == "unsupported"


def test_a_model_for_vectors_writes_no_texts(embedder):
    status, reply = embedder.whole(prompt="Hello.")
    assert (status, reply["error"]["code"]) == (400, "unsupported"), reply
    assert ask(embedder, "/v1/chat/completions", {"messages": QUESTION})[0] == 501


@pytest.mark.parametrize(
    ("body", "affinity"),
    [
        (b'{"session": "ada", "messages": []}', "session ada"),
        (
            b'{"messages": [{"role": "user", "content": "Hi"}]}',
            'prefix [[{"role": "user", "content": "Hi"}]]',
        ),
        (b'{"system": "S", "messages": ["a"]}', 'prefix ["S", ["a"]]'),
        (b'{"prompt": "Hi"}', 'prefix ["Hi"]'),
        (b"{", None),
        (b"[]", None),
        (b"{}", None),
        (b"[" * 100_000, None),
    ],
)
def test_requests_of_a_session_or_a_beginning_stay_together(body, affinity):
    assert HttpRequest("POST", "/v1/chat/completions", body=body).affinity() == affinity


def test_failures_have_the_shape_of_their_api():
    assert json.loads(error_body("/api/chat", 503, "full")) == {"error": "full"}
    assert json.loads(error_body("/v1/messages", 503, "full"))["error"]["message"] == "full"
    assert json.loads(error_body("/v1/chat/completions", 503, "full"))["error"]["code"] == 503
    assert error_piece("/api/chat", 503, "full") == b'{"error": "full"}\n'
    assert error_piece("/v1/messages", 503, "full").startswith(b"event: error\ndata: {")
    assert error_piece("/v1/responses", 503, "full").startswith(b"data: {")
