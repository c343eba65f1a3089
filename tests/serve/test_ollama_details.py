"""What Ollama's client asks for besides texts and chats: probabilities, contexts, gaps, details of models."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import ollama
import pytest
from serve_models import write_script_model
from serve_program import MODEL, QWEN3, STORY, in_tree, wait_for

SUM = [{"role": "user", "content": "What is 2+3?"}]
GREEDY = {"temperature": 0}


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny")


@pytest.fixture(scope="module")
def client(server):
    return ollama.Client(host=server.url)


@pytest.fixture(scope="module")
def vectors(serve, models):
    """A model that reads 2,048 tokens, in two servers' worth of room: 64 tokens here."""
    server = serve("--embeddings", "--alias", "vectors", "--ctx-size", 64, model=models / "vectors.gguf")
    return ollama.Client(host=server.url)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ask", ["chat", "generate"])
def test_each_token_has_its_probability_and_others(server, client, ask, stream):
    what = {"messages": SUM} if ask == "chat" else {"prompt": "What is 2+3?"}
    answer = getattr(client, ask)(
        model="tiny", options=GREEDY, logprobs=True, top_logprobs=3, stream=stream, **what
    )
    parts = list(answer) if stream else [answer]
    entries = [entry for part in parts for entry in part.logprobs or []]
    assert "".join(entry.token for entry in entries) == "2+3=5"
    for entry in entries:
        assert entry.logprob <= 0 and len(entry.top_logprobs) == 3
        assert entry.top_logprobs[0].logprob == pytest.approx(entry.logprob, abs=1e-4), "greedy"
        assert sum(math.exp(other.logprob) for other in entry.top_logprobs) <= 1.0001
    raw = server.json("/api/chat", {"model": "tiny", "messages": SUM, "logprobs": True, "stream": False})
    assert "top_logprobs" not in raw["logprobs"][0] and raw["logprobs"][0].keys() == {
        "token",
        "bytes",
        "logprob",
    }


def test_likely_tokens_without_probabilities_are_an_error(server):
    body = {"model": "tiny", "messages": SUM, "top_logprobs": 2}
    response = server.post("/api/chat", body)
    assert response.status_code == 400 and "'top_logprobs' needs" in response.json()["error"]


def test_a_text_goes_on_from_the_context_of_an_answer(server, client):
    first = client.generate(model="tiny", prompt="My name is Ada.", options=GREEDY)
    assert first.context[: first.prompt_eval_count] == server.prompt_tokens(
        [{"role": "user", "content": "My name is Ada."}]
    )
    assert len(first.context) == first.prompt_eval_count + first.eval_count
    again = client.generate(model="tiny", prompt="What is my name?", context=first.context, options=GREEDY)
    assert "Ada" in again.response
    assert again.prompt_eval_count > len(first.context)
    assert again.context[: len(first.context)] == first.context
    *_, last = client.generate(model="tiny", prompt="What is my name?", options=GREEDY, stream=True)
    assert "Ada" not in last.response and last.context


def test_a_context_of_no_tokens_is_an_error(server):
    for context in (["x"], "x", [10**9], [-1]):
        response = server.post("/api/generate", {"model": "tiny", "prompt": "Hi", "context": context})
        assert response.status_code == 400 and "context" in response.json()["error"]


def test_raw_prompts_take_nothing_that_would_stand_before_them(server, client):
    plain = client.generate(model="tiny", prompt="1+1=", raw=True, options={**GREEDY, "num_predict": 1})
    assert plain.prompt_eval_count == len(server.tokens("1+1=", add_special=True)) and plain.context is None
    for more in ({"system": "Be brief."}, {"context": [1, 2]}):
        with pytest.raises(ollama.ResponseError, match="raw mode does not support") as caught:
            client.generate(model="tiny", prompt="1+1=", raw=True, **more)
        assert caught.value.status_code == 400


def test_keep_alive_of_0_without_a_prompt_unloads(client):
    for keep_alive in (0, "0", "0s"):
        answer = client.generate(model="tiny", keep_alive=keep_alive)
        assert (answer.done, answer.done_reason) == (True, "unload")
    assert client.chat(model="tiny", messages=[], keep_alive=0).done_reason == "unload"
    for keep_alive in (None, -1, "5m", 300):
        assert client.generate(model="tiny", keep_alive=keep_alive).done_reason == "load"
    assert client.chat(model="tiny", messages=SUM, options=GREEDY, keep_alive=0).message.content == "2+3=5"


def test_a_wrong_keep_alive_is_named(server):
    for keep_alive in ([], True, "soon"):
        response = server.post("/api/generate", {"model": "tiny", "keep_alive": keep_alive})
        assert response.status_code == 400 and "keep_alive" in response.json()["error"]


def test_a_smaller_context_is_kept_to_and_a_larger_one_is_told_of(server, client):
    tale = [{"role": "user", "content": STORY}]
    most = len(server.prompt_tokens(tale)) + 5
    cut = client.chat(model="tiny", messages=tale, options={**GREEDY, "num_ctx": most})
    assert (cut.eval_count, cut.done_reason) == (5, "length")
    long = [{"role": role, "content": text} for role, text in [("user", "Hi."), ("assistant", "Hello.")] * 12]
    options = {**GREEDY, "num_ctx": 64}
    assert client.chat(model="tiny", messages=[*long, *SUM], options=options).message.content == "2+3=5"
    body = {"model": "tiny", "messages": SUM, "stream": False, "options": {"num_ctx": 4096}}
    (warning,) = server.json("/api/chat", body)["warnings"]
    assert warning["parameter"] == "num_ctx" and "512" in warning["message"] and "4096" in warning["message"]
    assert "warnings" not in server.json("/api/chat", {**body, "options": {"num_ctx": 512}})


def test_where_nobody_says_how_to_sample_ollamas_own_way_is_taken(serve):
    def shown(server, **options) -> dict:
        """What a request is run with, seen in its slot."""
        body = {
            "model": "tiny",
            "prompt": STORY,
            "stream": True,
            "options": {"num_predict": 20_000, **options},
        }
        with server.session.post(server.url + "/api/generate", json=body, stream=True) as response:
            pieces = response.iter_content(8)  # its end would end the connection
            next(pieces)
            (slot,) = wait_for(lambda: [slot for slot in server.json("/slots") if slot["is_processing"]])
        wait_for(lambda: server.busy_slots() == 0)
        return slot["params"]

    server = serve("--alias", "tiny", "--context-shift", "--parallel", 2, "--ignore-eos")
    params = shown(server)
    assert (params["top_k"], params["top_p"], params["min_p"]) == (40, pytest.approx(0.9), 0)
    assert (params["temperature"], params["repeat_penalty"]) == (pytest.approx(0.8), pytest.approx(1.1))
    assert shown(server, top_p=0.5, repeat_penalty=1.0)["top_p"] == pytest.approx(0.5)
    flagged = serve(
        "--alias", "tiny", "--context-shift", "--ignore-eos", "--top-p", 0.7, "--repeat-penalty", 1.3
    )
    params = shown(flagged)
    assert (params["top_p"], params["repeat_penalty"]) == (pytest.approx(0.7), pytest.approx(1.3))


def test_vectors_may_be_shorter_and_have_length_1(vectors):
    whole = np.array(vectors.embed(model="vectors", input="bread").embeddings[0])
    (short,) = vectors.embed(model="vectors", input="bread", dimensions=16).embeddings
    np.testing.assert_allclose(short, whole[:16] / np.linalg.norm(whole[:16]), atol=1e-4)
    assert len(vectors.embed(model="vectors", input="bread", dimensions=1000).embeddings[0]) == len(whole)


def test_texts_that_are_too_long_are_cut_unless_that_is_not_wanted(vectors):
    long = "hello world bread " * 100
    cut = vectors.embed(model="vectors", input=[long, "bread"])
    assert len(cut.embeddings) == 2 and cut.prompt_eval_count == 64 + 3
    near = vectors.embed(model="vectors", input="hello world bread " * 200).embeddings[0]
    np.testing.assert_allclose(near, cut.embeddings[0], atol=1e-5)
    with pytest.raises(ollama.ResponseError) as caught:
        vectors.embed(model="vectors", input=long, truncate=False)
    assert caught.value.status_code == 400
    assert len(vectors.embeddings(model="vectors", prompt=long).embedding) == 64


@pytest.mark.parametrize("nothing", ["", []])
def test_nothing_has_no_vectors(vectors, nothing):
    assert vectors.embed(model="vectors", input=nothing).embeddings == []
    assert vectors.embeddings(model="vectors", prompt="").embedding == []
    assert vectors.embed(model="vectors", input="bread").total_duration > 0


def test_a_model_has_the_details_that_ollama_shows(client):
    (listed,) = client.list().models
    details = listed.details
    assert (details.family, details.families, details.format) == ("llama", ["llama"], "gguf")
    assert (details.parameter_size, details.quantization_level) == ("2.49M", "Q8_0")
    assert len(listed.digest) == 64 and int(listed.digest, 16)
    written = datetime.fromtimestamp(MODEL.stat().st_mtime, UTC)
    assert abs((listed.modified_at - written).total_seconds()) < 2
    (running,) = client.ps().models
    assert (running.digest, running.details, running.size) == (listed.digest, details, listed.size)
    assert running.size_vram == 0 and running.expires_at > datetime.now(UTC)


def test_two_models_have_two_digests(serve, models):
    server = serve("--alias", "tiny", "--embed", models / "vectors.gguf")
    one, other = ollama.Client(host=server.url).list().models
    assert one.digest != other.digest


def test_the_files_metadata_is_shown(client, vectors):
    shown = client.show("tiny")
    info = shown.modelinfo
    assert info["general.architecture"] == "llama" and info["llama.context_length"] == 512
    assert info["llama.block_count"] > 1 and info["llama.attention.head_count"] > 1
    assert info["tokenizer.ggml.tokens"] is None and "tokenizer.chat_template" not in info
    assert isinstance(info["llama.attention.layer_norm_rms_epsilon"], float)
    assert shown.capabilities == ["completion"] and shown.modelfile.startswith("FROM ")
    assert vectors.show("vectors").capabilities == ["embedding"]
    assert vectors.show("vectors").modelinfo["bert.context_length"] == 2048


def test_a_model_that_thinks_and_calls_can_do_so(serve, tmp_path):
    template = in_tree(QWEN3)
    write_script_model(tmp_path / "script.gguf", ["Hi"])
    server = serve("--alias", "tiny", "--chat-template-file", template, model=tmp_path / "script.gguf")
    assert set(ollama.Client(host=server.url).show("tiny").capabilities) == {
        "completion",
        "tools",
        "thinking",
    }


@pytest.fixture(scope="module")
def filler(serve, tmp_path_factory):
    """Whatever it reads that ends with the mark of the middle: it writes "return", and ends."""
    folder = tmp_path_factory.mktemp("gap")
    write_script_model(folder / "gap.gguf", [" return", " gap"], marks=True)
    return serve("--alias", "gap", model=folder / "gap.gguf")


def test_a_gap_before_a_suffix_is_filled(filler):
    client = ollama.Client(host=filler.url)
    assert "insert" in client.show("gap").capabilities
    answer = client.generate(model="gap", prompt="def f(a):", suffix="\n", options=GREEDY)
    assert answer.response.strip() == "return gap"
    marks = 4  # begin of text, prefix, suffix, middle
    assert answer.prompt_eval_count == len(filler.tokens("def f(a):")) + len(filler.tokens("\n")) + marks


def test_a_gap_is_not_filled_by_a_model_without_marks(client):
    with pytest.raises(ollama.ResponseError, match="tiny does not support insert") as caught:
        client.generate(model="tiny", prompt="a", suffix="b")
    assert caught.value.status_code == 400


def test_infill_fills_it_too_with_files_around_it_and_either_order(filler, serve, tmp_path):
    body = {"input_prefix": "def f(a):", "input_suffix": "\n", **GREEDY}
    answer = filler.json("/infill", body)
    assert answer["content"].strip() == "return gap"
    more = filler.json("/infill", {**body, "input_extra": [{"filename": "b.py", "text": "def g(): pass"}]})
    assert more["content"].strip() == "return gap" and more["tokens_evaluated"] > answer["tokens_evaluated"]
    begun = filler.json("/infill", {**body, "prompt": " # why", "input_extra": [{"text": "def g(): pass"}]})
    parts = ("snippet", "g():", "<s>", "<PRE>", "f(a)", "why", "<SUF>")
    order = [begun["prompt"].index(part) for part in parts]
    assert order == sorted(order) and begun["prompt"].endswith("<MID>"), "as llama-server lays them out"
    write_script_model(tmp_path / "gap.gguf", [" return", " gap"], marks=True)
    turned = serve("--spm-infill", model=tmp_path / "gap.gguf").json("/infill", body)
    prefix, suffix = (turned["prompt"].index(mark) for mark in ("<PRE>", "<SUF>"))
    assert turned["content"].strip() == "return gap" and suffix < prefix
    prefix, suffix = (answer["prompt"].index(mark) for mark in ("<PRE>", "<SUF>"))
    assert prefix < suffix
