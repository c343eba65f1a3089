"""Graphs that give vectors and scores, with and without a language model beside them."""

from __future__ import annotations

import base64
import threading
import time

import encoder_models
import hypothesis.strategies as st
import numpy as np
import ollama
import pytest
import requests
from hypothesis import HealthCheck, given, settings
from serve_program import (
    ENDLESSLY,
    MODEL,
    ask_openai,
    endless_answer,
    serve_arguments_are_refused,
    wait_for,
)
from tokenizers import Tokenizer


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    encoder_models.write_all(folder)
    return folder


@pytest.fixture(scope="module")
def server(serve, graphs):
    """A chat model, vectors and a ranker in one process."""
    beside = ("--embed", graphs / "vectors/model.hrg", "--rank", graphs / "ranker/model.hrg")
    return serve(*beside, "--metrics", "--alias", "chat")


@pytest.fixture(scope="module")
def alone(serve, graphs):
    return serve("--embed", graphs / "vectors/model.hrg", "--alias", "vectors", "--metrics", model=None)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_str(encoder_models.tokenizer_json())


TEXTS = ["Hello world", "bread", "the mills of stone!", "water " * 20]


def test_vectors_are_those_of_the_graph(server, tokenizer):
    answer = server.json("/v1/embeddings", {"input": TEXTS})
    ids = [tokenizer.encode(text).ids for text in TEXTS]
    for entry, expected in zip(answer["data"], ids, strict=True):
        np.testing.assert_allclose(entry["embedding"], encoder_models.vector(expected), atol=2e-6)
    assert answer["usage"] == {"prompt_tokens": sum(map(len, ids)), "total_tokens": sum(map(len, ids))}
    assert answer["model"] == "model.hrg"


def test_openais_client_asks_for_base64(server, tokenizer):
    data = ask_openai(server, checks_types=False).embeddings.create(model="model.hrg", input=TEXTS).data
    for entry, text in zip(data, TEXTS, strict=True):
        expected = encoder_models.vector(tokenizer.encode(text).ids)
        np.testing.assert_allclose(entry.embedding, expected, atol=2e-6)
    coded = server.json("/v1/embeddings", {"input": "bread", "encoding_format": "base64"})["data"][0][
        "embedding"
    ]
    assert len(base64.b64decode(coded)) == 4 * encoder_models.WIDTH


def test_tokens_may_be_given_in_place_of_a_text(server, tokenizer):
    ids = [tokenizer.encode(text).ids for text in TEXTS[:2]]
    by_text = server.json("/v1/embeddings", {"input": TEXTS[:2]})["data"]
    for mixed in (ids, [ids[0], TEXTS[1]]):
        by_tokens = server.json("/v1/embeddings", {"input": mixed})["data"]
        assert [entry["embedding"] for entry in by_tokens] == [entry["embedding"] for entry in by_text]
    alone = server.json("/v1/embeddings", {"input": ids[0]})["data"]
    assert alone[0]["embedding"] == by_text[0]["embedding"]


def test_ollamas_paths_answer_by_the_models_name(server, tokenizer):
    client = ollama.Client(host=server.url)
    expected = encoder_models.vector(tokenizer.encode("bread").ids)
    np.testing.assert_allclose(client.embed("model.hrg", "bread").embeddings[0], expected, atol=2e-6)
    np.testing.assert_allclose(client.embeddings("model.hrg", "bread").embedding, expected, atol=2e-6)
    assert "model.hrg" in [model.model for model in client.list().models]
    assert client.show("model.hrg").capabilities == ["embedding"]
    with pytest.raises(ollama.ResponseError, match="not found"):
        client.embed("none", "bread")


def scores_of(tokenizer, query, documents):
    pairs = [tokenizer.encode(query, document) for document in documents]
    return np.array([encoder_models.logit(pair.ids, pair.type_ids) for pair in pairs])


def test_documents_are_ranked_by_the_graphs_logits(server, tokenizer):
    query, documents = "hello", ["bread", "the mills", "water world", "river stone"]
    logits = scores_of(tokenizer, query, documents)
    body = {"query": query, "documents": documents}
    answer = server.json("/v1/rerank", body)
    order = np.argsort(-logits, kind="stable")
    assert [entry["index"] for entry in answer["results"]] == list(order)
    got = [entry["relevance_score"] for entry in answer["results"]]
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-logits[order])), atol=2e-6)
    assert answer["usage"]["prompt_tokens"] == sum(
        len(tokenizer.encode(query, text).ids) for text in documents
    )
    raw = server.json("/rerank", {"query": query, "texts": documents, "raw_scores": True})
    np.testing.assert_allclose([entry["score"] for entry in raw], logits[order], atol=1e-5)


@pytest.mark.parametrize("kind", ["ONNX", "GGUF"])
def test_vectors_and_ranks_are_given_while_a_chat_is_written(serve, graphs, models, tokenizer, kind):
    files = (
        (graphs / "vectors/model.onnx", graphs / "ranker/model.onnx")
        if kind == "ONNX"
        else (models / "vectors.gguf", models / "ranker.gguf")
    )
    server = serve("--embed", files[0], "--rank", files[1], *ENDLESSLY)
    ranking = {"query": "bread", "documents": ["the mill", "bread", "a river"]}
    quiet = server.json("/v1/embeddings", {"input": TEXTS})["data"], server.json("/v1/rerank", ranking)
    with endless_answer(server) as chat:
        pieces = chat.iter_lines()
        next(pieces)
        assert server.json("/v1/embeddings", {"input": TEXTS})["data"] == quiet[0]
        assert server.json("/v1/rerank", ranking)["results"] == quiet[1]["results"]
        embedded = server.json("/api/embed", {"model": files[0].name, "input": TEXTS})["embeddings"]
        np.testing.assert_allclose(embedded, [entry["embedding"] for entry in quiet[0]], atol=1e-6)
        assert next(pieces) is not None and server.busy_slots() == 1
    if kind == "ONNX":
        for vector, text in zip(embedded, TEXTS, strict=True):
            np.testing.assert_allclose(vector, encoder_models.vector(tokenizer.encode(text).ids), atol=2e-6)


def test_the_language_model_answers_beside_them(server):
    chat = ask_openai(server).chat.completions.create(
        model="chat", messages=[{"role": "user", "content": "Hello"}], max_tokens=4
    )
    assert chat.choices[0].message.content
    assert {model["id"] for model in server.json("/v1/models")["data"]} == {"chat", "model.hrg"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": ["a", {}]}, "input[1]"),
        ({"input": ["a", []]}, "input[1]"),
        ({"input": [[2, 999]]}, "input[0][1]"),
        ({"input": [2, 1.5]}, "input[1]"),
        ({"input": [[4] * 600]}, "input"),
        ({"input": "a", "dimensions": 4}, "dimensions"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format"),
        ({"input": "a", "embd_normalize": 0}, "embd_normalize"),
        ({"input": "water " * 600, "truncate": False}, "input"),
        ({"input": "a", "timeout_ms": -1}, "timeout_ms"),
        ({"input": "a", "model": 3}, "model"),
    ],
)
def test_the_wrong_field_is_named(server, body, field):
    response = server.post("/v1/embeddings", body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == field, response.text


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=ANY_JSON, other=ANY_JSON)
def test_anything_is_answered_or_refused(server, value, other):
    for path, body in (
        ("/v1/embeddings", {"input": value, "truncate": other}),
        ("/api/embed", {"model": "model.hrg", "input": value}),
        ("/v1/rerank", {"query": "hello", "documents": value, "raw_scores": other}),
        ("/rerank", {"query": value, "texts": [other]}),
    ):
        response = server.post(path, body)
        assert response.status_code in (200, 400), (path, body, response.text)


def test_long_texts_are_cut(server):
    assert server.json("/v1/embeddings", {"input": "water " * 600})["usage"]["prompt_tokens"] == 512


def test_a_server_without_a_language_model_says_so(alone):
    assert len(alone.json("/v1/embeddings", {"input": "bread", "model": "vectors"})["data"]) == 1
    for path, body in (
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
        ("/completion", {"prompt": "x"}),
        ("/tokenize", {"content": "x"}),
    ):
        response = alone.post(path, body)
        assert response.status_code == 501 and "no language model" in response.text, path
    for path in ("/props", "/slots", "/lora-adapters"):
        assert alone.get(path).status_code == 501, path
    assert alone.post("/v1/rerank", {"query": "x", "documents": ["y"]}).status_code == 501
    assert alone.json("/v1/models")["data"][0]["id"] == "vectors"
    assert alone.get("/health").status_code == 200


def test_concurrent_clients_get_their_own_vectors(alone, tokenizer):
    failures = []

    def ask(seed):
        generator = np.random.default_rng(seed)
        session = requests.Session()
        for _ in range(20):
            texts = [
                " ".join(generator.choice(encoder_models.WORDS[:7], generator.integers(1, 40))) for _ in "ab"
            ]
            answer = session.post(alone.url + "/v1/embeddings", json={"input": texts}, timeout=60).json()
            for entry, text in zip(answer["data"], texts, strict=True):
                expected = encoder_models.vector(tokenizer.encode(text).ids)
                if np.abs(np.array(entry["embedding"]) - expected).max() > 2e-6:
                    failures.append(text)

    clients = [threading.Thread(target=ask, args=[seed]) for seed in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not failures
    counts = alone.metrics()
    assert counts['headrace_encoder_texts_total{model="vectors"}'] >= 320
    assert counts['headrace_encoder_request_seconds_count{model="vectors"}'] >= 160


def test_a_client_that_leaves_ends_its_request(alone):
    name = 'headrace_encoder_requests_cancelled_total{model="vectors"}'
    before = alone.metrics()[name]
    body = {"input": ["water " * 500] * 2048}
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.post(alone.url + "/v1/embeddings", json=body, timeout=(5, 0.4))
    wait_for(lambda: alone.metrics()[name] > before, 20, "the request to end")
    begin = time.monotonic()
    alone.json("/v1/embeddings", {"input": "bread"})
    assert time.monotonic() - begin < 5


def test_options_of_graphs(serve, graphs, tokenizer):
    moved = graphs / "elsewhere.json"
    moved.write_text(encoder_models.tokenizer_json())
    (graphs / "bare").mkdir()
    (graphs / "bare/model.hrg").write_bytes((graphs / "vectors/model.hrg").read_bytes())
    server = serve(
        *(
            "--embed",
            graphs / "bare/model.hrg",
            "--tokenizer",
            moved,
            "--pooling",
            "cls",
            "--embd-normalize",
            -1,
            "--precision",
            "exact",
        ),
        model=None,
    )
    ids = tokenizer.encode("bread").ids
    got = server.json("/v1/embeddings", {"input": "bread"})["data"][0]["embedding"]
    np.testing.assert_allclose(got, encoder_models.hidden(ids, [0] * len(ids))[0], atol=1e-5)


def test_the_program_says_what_is_wrong_with_a_graph(graphs):
    (graphs / "lonely").mkdir()
    (graphs / "lonely/model.hrg").write_bytes((graphs / "vectors/model.hrg").read_bytes())
    assert "tokenizer.json" in serve_arguments_are_refused(
        "--embed", graphs / "lonely/model.hrg", "--port", 0, status=1
    )
    assert "'f16' must be exact or fast" in serve_arguments_are_refused(
        "--embed", graphs / "vectors/model.hrg", "--precision", "f16"
    )
    assert "must be mean, cls or last" in serve_arguments_are_refused(
        "--embed", graphs / "vectors/model.hrg", "--pooling", "max"
    )
    (graphs / "odd").mkdir()
    (graphs / "odd/tokenizer.json").write_text(encoder_models.tokenizer_json())
    model = (graphs / "vectors/model.onnx").read_bytes()
    (graphs / "odd/model.onnx").write_bytes(model.replace(b"Softmax", b"Sofamax"))
    assert "Sofamax" in serve_arguments_are_refused(
        "--embed", graphs / "odd/model.onnx", "--port", 0, status=1
    )
    assert "name it by --embed" in serve_arguments_are_refused(graphs / "vectors/model.hrg")
    assert "no output is [batch, width]" in serve_arguments_are_refused(
        MODEL, "--rank", graphs / "vectors/model.hrg", "--port", 0, status=1
    )
