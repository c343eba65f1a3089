"""Where llama-server takes more than OpenAI, its paths do here, too, and OpenAI's keep to OpenAI."""

from __future__ import annotations

import pytest
from serve_program import MODEL, serve_arguments_are_refused

GREEDY = {"temperature": 0}
HELLO = [{"role": "user", "content": "Hello"}]
OPENAI = {
    "/v1/chat/completions": {"messages": HELLO, "max_tokens": 2},
    "/v1/completions": {"prompt": "Hello", "max_tokens": 2},
    "/v1/responses": {"input": "Hello", "max_output_tokens": 2},
}


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny", "--parallel", 2)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({"temperature": 5}, {"temperature": 5}),
        ({"temperature": -1}, {"temperature": 0}),
        ({"top_p": 2}, {"top_p": 1}),
        ({"top_p": -0.5}, {"top_p": 0}),
        ({"seed": -5}, {"seed": 2**32 - 5}),
        ({"seed": 2**32 + 7}, {"seed": 7}),
        ({"seed": -1}, {"seed": 2**32 - 1}),
    ],
)
def test_numbers_that_mean_nothing_are_bounded_in_completions(server, given, used):
    answer = server.json("/completion", {"prompt": "Hello", "n_predict": 2, **given})
    settings = answer["generation_settings"]
    assert {name: settings[name] for name in used} == pytest.approx(used)


@pytest.mark.parametrize("field", ["temperature", "top_p", "presence_penalty", "frequency_penalty"])
@pytest.mark.parametrize("path", OPENAI)
def test_openais_paths_have_openais_ranges(server, path, field):
    for value in (2.5, -2.5):
        answer = server.post(path, {**OPENAI[path], field: value})
        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, field) and str(value) in error["message"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_seed_of_openais_clients_may_have_64_bits(server, path):
    texts = []
    for seed in (2**63 - 1, 2**31 - 1 + 2**31, -(2**63)):
        answer = server.json(path, {**OPENAI[path], "seed": seed, "max_tokens": 20, "temperature": 1.5})
        choice = answer["choices"][0]
        texts.append(choice.get("text") or choice["message"]["content"])
    assert texts[0] and texts[2]
    assert server.post(path, {**OPENAI[path], "seed": 1.5}).status_code == 400


def test_an_empty_prompt_has_an_empty_answer_where_no_token_begins_a_text(server):
    answer = server.json("/completion", {"prompt": "", "n_predict": 4})
    assert (answer["content"], answer["stop"], answer["stop_type"]) == ("", True, "none")
    assert (answer["tokens_predicted"], answer["tokens_evaluated"]) == (0, 0)
    both = server.json("/completion", {"prompt": ["1+1=", ""], "n_predict": 1, **GREEDY})
    assert [part["content"] for part in both] == ["2", ""]
    (event,) = server.events("/completion", {"prompt": ""})
    assert event["stop"] and event["content"] == ""
    answer = server.json("/v1/completions", {"prompt": ""})
    assert answer["choices"][0]["text"] == "" and answer["usage"]["total_tokens"] == 0
    wrong = server.post("/completion", {"prompt": "", "top_k": "many"})
    assert wrong.status_code == 400 and wrong.json()["error"]["param"] == "top_k"


def test_an_empty_prompt_is_gone_on_with_where_a_token_begins_every_text(serve, models):
    stories = serve(model=models / "stories.gguf")
    answer = stories.json("/completion", {"prompt": "", "n_predict": 4, **GREEDY})
    assert (answer["tokens_predicted"], answer["tokens_evaluated"]) == (4, 1)


def test_models_are_listed_in_two_shapes_at_once(serve, models):
    server = serve("--alias", "tiny", "--tags", "small", "--embed", models / "vectors.gguf", "--rank",
                   models / "ranker.gguf")  # fmt: skip
    answer = server.json("/v1/models")
    names = ["tiny", "vectors.gguf", "ranker.gguf"]
    assert [model["id"] for model in answer["data"]] == names
    for field in ("name", "model"):
        assert [model[field] for model in answer["models"]] == names
    abilities = [model["capabilities"] for model in answer["models"]]
    assert abilities == [["completion"], ["embedding"], ["rerank"]]
    assert answer["models"][0]["tags"] == ["small"] and answer["models"][0]["details"]["format"] == "gguf"


def test_settings_have_the_fields_of_llama_servers(server, serve):
    settings = server.json("/completion", {"prompt": "Hello", "n_predict": 1})["generation_settings"]
    shown = {name: settings[name] for name in ("chat_format", "generation_prompt", "reasoning_in_content")}
    assert shown == {"chat_format": "Content-only", "generation_prompt": "", "reasoning_in_content": False}
    assert (settings["backend_sampling"], settings["speculative.types"]) == (False, "none")
    drafting = serve("--spec-type", "ngram-simple", "--no-ui")
    props = drafting.json("/props")
    assert props["default_generation_settings"]["params"]["speculative.types"] == "ngram-simple"
    assert (props["ui"], props["ui_settings"], props["cors_proxy_enabled"]) == (False, {}, False)
    assert server.json("/props")["ui"] is True


def test_a_response_says_when_it_was_completed(server):
    body = {"input": "What is 2+3?", **GREEDY}
    answer = server.json("/v1/responses", body)
    assert answer["completed_at"] >= answer["created_at"] > 0
    events = server.events("/v1/responses", body)
    assert events[0]["response"]["completed_at"] is None
    assert events[-1]["response"]["completed_at"] >= events[-1]["response"]["created_at"]
    assert events[-1]["timings"]["predicted_n"] == answer["usage"]["output_tokens"]
    cut = server.json("/v1/responses", {**body, "max_output_tokens": 1})
    assert (cut["status"], cut["completed_at"]) == ("incomplete", None)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/chat/completions", {"n": 2, "top_k": "many"}, "top_k"),
        ("/v1/chat/completions", {"functions": [{"name": "f"}, {"name": 3}]}, "functions[1].name"),
        ("/v1/completions", {"n_predict": -5}, "n_predict"),
        ("/v1/responses", {"input": [{"role": "king", "content": "a"}]}, "input[0].role"),
    ],
)
def test_a_wrong_field_is_named_as_the_client_wrote_it(server, path, body, field):
    error = server.post(path, {**OPENAI[path], **body}).json()["error"]
    assert error["param"] == field and error["message"].startswith(f"'{field}'")


def test_a_model_that_cannot_rank_is_refused_at_the_start(models):
    for name, *arguments in (
        (MODEL.name, "--reranking"),
        ("vectors.gguf", "--rank", models / "vectors.gguf"),
    ):
        said = serve_arguments_are_refused(MODEL, *arguments, "--port", 0, status=1)
        assert "cannot rank" in said and "made for ranking" in said and name in said
    said = serve_arguments_are_refused("--embed", models / "ranker.gguf", "--port", 0, status=1)
    assert "ranker.gguf" in said and "ranks documents" in said and "--embed takes" in said
