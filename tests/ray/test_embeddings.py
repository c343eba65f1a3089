"""Vectors over HTTP and Python handles, as callers of OpenAI's servers ask for them."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from callers import MODEL, Caller

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

from headrace.language_model import LanguageModel, LanguageModelError
from headrace.ray.embeddings import EmbeddingRequest
from headrace.ray.request import RequestError

CONFIG = {"embeddings": True, "pooling": "mean", "n_threads": 1}
TEXTS = ["a dog", "What is 2+3?"]


@pytest.fixture(scope="module")
def embedder(cluster):
    import headrace.ray
    from ray import serve

    application = headrace.ray.application(MODEL, CONFIG, cpus=0.25, streams=2)
    handle = serve.run(application, name="embedder", route_prefix="/embedder")
    yield Caller(cluster, "/embedder", handle)
    serve.delete("embedder")


@pytest.fixture(scope="module")
def expected():
    with LanguageModel(MODEL, CONFIG) as model:
        yield model.embeddings(TEXTS)


def ask(caller, body, path="/v1/embeddings"):
    response = caller.send(body, path=path)
    return response.status, json.loads(response.read())


def test_vectors_come_in_the_order_of_their_texts_with_the_tokens_that_were_read(embedder, expected):
    status, reply = ask(embedder, {"input": TEXTS, "model": "any"})
    assert status == 200
    assert (reply["object"], reply["model"]) == ("list", "any")
    assert [(row["object"], row["index"]) for row in reply["data"]] == [("embedding", 0), ("embedding", 1)]
    for row, vector in zip(reply["data"], expected.vectors, strict=True):
        np.testing.assert_allclose(row["embedding"], vector, rtol=1e-4, atol=1e-5)
    assert reply["usage"] == {"prompt_tokens": expected.tokens, "total_tokens": expected.tokens}


def test_one_text_may_stand_alone_and_vectors_may_be_base64(embedder, expected):
    status, reply = ask(embedder, {"input": TEXTS[0], "encoding_format": "base64", "user": "ada"})
    assert status == 200
    assert reply["model"] == str(MODEL)
    (row,) = reply["data"]
    vector = np.frombuffer(base64.b64decode(row["embedding"]), "<f4")
    np.testing.assert_allclose(vector, expected.vectors[0], rtol=1e-4, atol=1e-5)


def test_python_handles_give_the_same_vectors(embedder, expected):
    reply = embedder.handle.embed.remote({"input": TEXTS}).result()
    np.testing.assert_allclose(reply["data"][1]["embedding"], expected.vectors[1], rtol=1e-4, atol=1e-5)
    with pytest.raises(RequestError, match="'input' must be a text"):
        embedder.handle.embed.remote({}).result()


def test_a_text_that_the_model_cannot_hold_is_refused(embedder):
    status, reply = ask(embedder, {"input": ["a dog", "word " * 2000]})
    assert (status, reply["error"]["code"]) == (400, "prompt_too_long")


def test_a_model_that_writes_texts_gives_no_vectors_and_says_what_to_do(chat):
    status, reply = ask(chat, {"input": "a dog"})
    assert (status, reply["error"]["code"]) == (400, "unsupported")
    assert "'embeddings': true" in reply["error"]["message"]
    with pytest.raises(LanguageModelError, match="'embeddings': true"):
        chat.handle.embed.remote({"input": "a dog"}).result()


def test_a_model_for_vectors_writes_no_texts(embedder):
    status, reply = ask(embedder, {"prompt": "Hello.", "stream": False}, path="")
    assert (status, reply["error"]["code"]) == (400, "unsupported"), reply


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ([], "must be an object"),
        ({}, "'input' must be a text or a list of 1 to 2048 texts"),
        ({"input": []}, "list of 1 to 2048"),
        ({"input": ["a"] * 2049}, "list of 1 to 2048"),
        ({"input": ""}, "text 0 of 'input' must be a text that is not empty"),
        ({"input": ["a", [1, 2]]}, "text 1 .* lists of tokens are not taken"),
        ({"input": "\ud800"}, "half of a surrogate pair"),
        ({"input": "a", "dimensions": 8}, "as long as the model makes them"),
        ({"input": "a", "encoding_format": "hex"}, "one of float, base64"),
        ({"input": "a", "prompt": "a"}, "'prompt' is not known; a request has input, model"),
    ],
)
def test_requests_that_make_no_sense_are_refused(request_, message):
    with pytest.raises(RequestError, match=message):
        EmbeddingRequest.read(request_)
