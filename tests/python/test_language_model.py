"""headrace.language_model: GGUF models over the C interface."""

from __future__ import annotations

import json
import pickle
import shutil
import threading
from pathlib import Path

import pytest
from headrace._wasi_nn import find_library
from headrace.language_model import LanguageModel, LanguageModelError

MODEL = Path(__file__).resolve().parents[2] / "models/tiny-chat-q8_0.gguf"
GREEDY = {"temperature": 0, "strict": True}
ENDLESS = {**GREEDY, "ignore_eos": True, "n_predict": 1_000_000}


@pytest.fixture(scope="module")
def model():
    try:
        find_library()
    except FileNotFoundError:
        pytest.skip("language models are not built: llama.cpp is not set up")
    with LanguageModel(MODEL, {"n_threads": 1, "context_shift": True}, {"log_level": "none"}) as model:
        yield model


def test_an_answer_comes_whole_or_in_pieces(model):
    reply = model.generate("What is the capital of France?", GREEDY)
    assert reply.text == "The capital of France is Paris."
    assert reply.metadata["stop_reason"] == "end_of_answer"
    generation = model.stream("What is the capital of France?", GREEDY)
    pieces = list(generation)
    assert "".join(pieces) == reply.text
    assert generation.metadata["output_tokens"] == reply.metadata["output_tokens"]
    assert list(generation) == [], "it is over"


def test_requests_of_many_threads_run_at_once(model):
    answers = {}

    def ask(number):
        answers[number] = model.generate(f"What is 2+{number}?", GREEDY).text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"2+{number}={2 + number}" for number in range(9)}


def test_outputs_may_be_longer_than_the_usual_buffer(model):
    reply = model.generate("Tell me a story.", {**ENDLESS, "n_predict": 300, "n_probs": 20})
    assert len(json.dumps(reply.metadata)) > 100_000
    assert len(reply.metadata["probabilities"]) == 300


@pytest.mark.parametrize(
    ("prompt", "parameters", "code", "message"),
    [
        ("Hi.", {"tempratur": 1, "strict": True}, "invalid_argument", "did you mean 'temperature'"),
        ("Hi.", {"temperature": "hot"}, "invalid_argument", "it must be a number"),
        ("word " * 2000, {"chat": False}, "prompt_too_long", "the context holds 512"),
        ("Tell me a story.", {**ENDLESS, "timeout_ms": 100}, "timed_out", "100"),
    ],
)
def test_errors_have_a_code_and_the_reason(model, prompt, parameters, code, message):
    with pytest.raises(LanguageModelError, match=message) as error:
        model.generate(prompt, parameters)
    assert error.value.code == code
    copy = pickle.loads(pickle.dumps(error.value))
    assert (copy.code, str(copy)) == (code, str(error.value))


def test_what_json_cannot_hold_is_refused(model):
    with pytest.raises(ValueError, match="not JSON compliant"):
        model.generate("Hi.", {"temperature": float("nan")})


def test_a_generation_is_cancelled_from_another_thread(model):
    generation = model.stream("Tell me a story.", ENDLESS)
    assert next(generation)
    threading.Timer(0.1, generation.cancel).start()
    with pytest.raises(LanguageModelError) as error:
        list(generation)
    assert error.value.code == "cancelled"
    generation.cancel()  # of what is over: nothing


def test_a_generation_that_is_closed_leaves_nothing_behind(model):
    with model.stream("Tell me a story.", ENDLESS) as generation:
        next(generation)
        assert model.statistics()["contexts"] == 1
    assert model.statistics()["contexts"] == 0


def test_a_model_that_writes_texts_gives_no_vectors(model):
    with pytest.raises(LanguageModelError, match="for vectors") as error:
        model.embed("a dog")
    assert error.value.code == "unsupported"


def test_tokens_have_vectors_of_their_own_where_they_are_not_pooled():
    with LanguageModel(MODEL, {"embeddings": True, "pooling": "none", "n_threads": 1}) as model:
        vectors = model.token_embeddings("What is 2+3?")
        assert len(vectors) > 5
        assert len({len(vector) for vector in vectors}) == 1
        with pytest.raises(LanguageModelError, match="a vector for each token"):
            model.embed("What is 2+3?")
    with LanguageModel(MODEL, {"embeddings": True, "pooling": "last", "n_threads": 1}) as model:
        last = model.embed("What is 2+3?", {"embd_normalize": -1})
        assert last == pytest.approx(vectors[-1], abs=1e-5)
        with pytest.raises(LanguageModelError, match="are pooled"):
            model.token_embeddings("What is 2+3?")


def test_another_model_takes_the_place_while_requests_run(model, tmp_path):
    other = tmp_path / "other.gguf"
    shutil.copy(MODEL, other)
    generation = model.stream("Tell me a story.", {**ENDLESS, "n_predict": 600})
    first = next(generation)
    model.swap(other, {"n_threads": 1, "context_shift": True})
    assert model.statistics()["graphs"][0]["name"] == str(other)
    assert model.generate("What is 2+3?", GREEDY).text == "2+3=5"
    assert len(first + "".join(generation)) > 600
    assert generation.metadata["output_tokens"] == 600


def test_a_load_that_fails_changes_nothing(model, tmp_path):
    name = model.statistics()["graphs"][0]["name"]
    with pytest.raises(LanguageModelError, match=r"absent\.gguf: there is no such file") as error:
        model.swap(tmp_path / "absent.gguf")
    assert error.value.code == "not_found"
    assert model.statistics()["graphs"][0]["name"] == name
    with pytest.raises(LanguageModelError, match=r"absent\.gguf"):
        LanguageModel(tmp_path / "absent.gguf")
