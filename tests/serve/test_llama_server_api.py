"""llama-server's own endpoints, in its shapes."""

from __future__ import annotations

import math
import re

import pytest
from serve_program import ENDLESSLY, MODEL, STORY, endless_answer, wait_for

GREEDY = {"temperature": 0}


@pytest.fixture(scope="module")
def server(serve, tmp_path_factory):
    return serve(
        "--parallel", 2, "--metrics", "--alias", "tiny", "--slot-save-path", tmp_path_factory.mktemp("slots")
    )


@pytest.fixture(scope="module")
def stories(serve, models):
    return serve("--parallel", 1, "--lora", models / "adapter.gguf", model=models / "stories.gguf")


def test_a_completion_tells_how_it_ended_and_what_it_read(server):
    tokens = server.tokens("1+1=", add_special=True)
    answer = server.json("/completion", {"prompt": "1+1=", "n_predict": 8, "return_tokens": True, **GREEDY})
    assert (answer["content"], answer["stop"], answer["stop_type"]) == ("2", True, "eos")
    assert answer["tokens_evaluated"] == len(tokens) and answer["tokens_predicted"] == 2
    assert answer["timings"]["prompt_n"] + answer["timings"]["cache_n"] == len(tokens)
    assert answer["tokens"][0] == server.tokens("2")[0]
    assert answer["prompt"] == "1+1=" and answer["model"] == "tiny"
    assert (
        answer["generation_settings"]["n_predict"] == 8 and answer["generation_settings"]["temperature"] == 0
    )
    assert (answer["truncated"], answer["has_new_line"], answer["stopping_word"]) == (False, False, "")


def test_a_completion_stops_at_a_word_or_its_limit(server):
    body = {"prompt": STORY, "n_predict": 6, **GREEDY}
    cut = server.json("/completion", body)
    assert (cut["stop_type"], cut["tokens_predicted"]) == ("limit", 6)
    word = cut["content"][2:4]
    stopped = server.json("/completion", {**body, "stop": [word]})
    assert (stopped["stop_type"], stopped["stopping_word"]) == ("word", word)
    assert word not in stopped["content"]


@pytest.mark.parametrize("shape", ["text", "tokens", "tokens and texts", "object", "content parts"])
def test_a_prompt_may_have_any_of_llama_servers_shapes(server, shape):
    prompt = {
        "text": "1+1=",
        "tokens": server.tokens("1+1=", add_special=True),
        "tokens and texts": [*server.tokens("1+"), "1="],
        "object": {"prompt_string": "1+1="},
        "content parts": {"content": [{"type": "text", "text": "1+"}, {"type": "text", "text": "1="}]},
    }[shape]
    assert server.json("/completion", {"prompt": prompt, "n_predict": 1, **GREEDY})["content"] == "2"


def test_several_prompts_have_an_answer_each_in_their_order(server):
    prompts = ["1+1=", {"prompt_string": STORY}, server.tokens("1+1=", add_special=True)]
    answers = server.json("/completion", {"prompt": prompts, "n_predict": 4, **GREEDY})
    assert [answer["index"] for answer in answers] == [0, 1, 2]
    alone = server.json("/completion", {"prompt": STORY, "n_predict": 4, **GREEDY})["content"]
    assert [answer["content"] for answer in answers] == ["2", alone, "2"]


def test_a_stream_has_the_same_text_and_ends_with_the_answer(server):
    body = {"prompt": STORY, "n_predict": 8, **GREEDY}
    whole = server.json("/completion", body)
    *parts, last = server.events("/completion", body)
    assert "".join(part["content"] for part in parts) == whole["content"]
    assert all(part["stop"] is False and part["tokens"] for part in parts)
    assert last["stop"] is True and last["content"] == ""
    assert last["tokens_predicted"] == whole["tokens_predicted"]
    assert [token for part in parts for token in part["tokens"]] == server.json(
        "/completion", {**body, "return_tokens": True}
    )["tokens"]


def test_response_fields_choose_what_an_answer_has(server):
    fields = ["content", "generation_settings/n_predict", "timings/predicted_n", "no/such"]
    answer = server.json(
        "/completion", {"prompt": "1+1=", "n_predict": 1, "response_fields": fields, **GREEDY}
    )
    assert answer == {"content": "2", "generation_settings/n_predict": 1, "timings/predicted_n": 1}


def test_n_probs_are_logarithms_of_the_models_own_probabilities(server):
    body = {"prompt": STORY, "n_predict": 4, "n_probs": 5, "temperature": 1.3, "seed": 3}
    entries = server.json("/completion", body)["completion_probabilities"]
    assert len(entries) == 4
    for entry in entries:
        assert len(entry["top_logprobs"]) == 5
        assert entry["logprob"] <= 0 and bytes(entry["bytes"]).decode() == entry["token"]
        assert sum(math.exp(other["logprob"]) for other in entry["top_logprobs"]) <= 1.0001
    streamed = [
        entry
        for event in server.events("/completion", body)
        for entry in event.get("completion_probabilities", [])
    ]
    assert [entry["id"] for entry in streamed] == [entry["id"] for entry in entries]


def test_post_sampling_probs_are_of_what_the_samplers_left(server):
    body = {
        "prompt": STORY,
        "n_predict": 3,
        "n_probs": 10,
        "post_sampling_probs": True,
        "top_k": 2,
        "temperature": 1,
    }
    for entry in server.json("/completion", body)["completion_probabilities"]:
        assert 0 < entry["prob"] <= 1 and 1 <= len(entry["top_probs"]) <= 2
        assert sum(other["prob"] for other in entry["top_probs"]) == pytest.approx(1, abs=1e-3)


def test_an_answer_that_ends_at_once_shows_the_token_that_ended_it(server):
    end = server.tokens("<|im_end|>")
    body = {"prompt": STORY, "n_predict": 3, "n_probs": 2, "grammar": 'root ::= ""'}
    answer = server.json("/completion", body)
    assert answer["content"] == "" and answer["stop_type"] == "eos"
    assert [entry["id"] for entry in answer["completion_probabilities"]] == end


def test_texts_become_tokens_and_texts_again(server):
    text = "What is 2+3? äöü 媽 🤗"
    tokens = server.tokens(text)
    assert server.json("/detokenize", {"tokens": tokens}) == {"content": text}
    pieces = server.json("/tokenize", {"content": text, "with_pieces": True})["tokens"]
    assert [piece["id"] for piece in pieces] == tokens
    joined = b"".join(
        piece["piece"].encode() if isinstance(piece["piece"], str) else bytes(piece["piece"])
        for piece in pieces
    )
    assert joined.decode() == text
    assert server.json("/tokenize", {"content": ""}) == {"tokens": []}
    assert server.json("/detokenize", {"tokens": []}) == {"content": ""}


def test_special_tokens_are_parsed_unless_told_otherwise(server, stories):
    assert len(server.tokens("<|im_end|>")) == 1 < len(server.tokens("<|im_end|>", parse_special=False))
    assert stories.tokens("a", add_special=True) == [1, *stories.tokens("a")]


def test_apply_template_only_renders_even_what_is_too_long(server):
    messages = [{"role": "user", "content": "Hi"}]
    prompt = server.json("/apply-template", {"messages": messages})["prompt"]
    assert prompt == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    long = [{"role": "user", "content": "Hi " * 2000}]
    assert "Hi " * 2000 in server.json("/apply-template", {"messages": long})["prompt"]


def test_tokens_of_what_is_too_long_can_be_counted(server):
    body = {"messages": [{"role": "user", "content": "Hi " * 2000}], "max_tokens": 5, "model": "tiny"}
    assert server.json("/v1/chat/completions/input_tokens", body)["input_tokens"] > 2000
    assert server.json("/v1/messages/count_tokens", body)["input_tokens"] > 2000


def test_props_say_what_the_server_does_by_default_without_paths(server):
    props = server.json("/props")
    assert props["total_slots"] == 2 and props["model_path"] == MODEL.name
    assert props["default_generation_settings"]["n_ctx"] > 0
    assert "im_start" in props["chat_template"] and not any(props["modalities"].values())
    assert props["modalities"].keys() == {"vision", "audio", "video"} and props["model_ftype"] == "Q8_0"
    offers = [props[f"endpoint_{name}"] for name in ("slots", "props", "metrics")]
    assert offers == [True, False, True]
    refused = server.post("/props", {"temperature": 1})
    assert refused.status_code == 501 and "--props" in refused.json()["error"]["message"]


def test_slots_show_who_is_busy(serve):
    server = serve(*ENDLESSLY, "--parallel", 2)
    assert [slot["is_processing"] for slot in server.json("/slots")] == [False, False]
    with endless_answer(server):
        wait_for(lambda: server.busy_slots() == 1)
        assert server.get("/slots?fail_on_no_slot=1").status_code == 200
        with endless_answer(server):
            wait_for(lambda: server.busy_slots() == 2)
            assert server.get("/slots?fail_on_no_slot=1").status_code == 503
    wait_for(lambda: server.busy_slots() == 0)


LONG = " ".join(f"{a}+{b}={a + b}," for a in range(1, 8) for b in range(1, 4))


def test_a_restored_prompt_is_not_read_again(server):
    body = {"prompt": LONG, "n_predict": 1, "id_slot": 0, **GREEDY}
    first = server.json("/completion", body)
    assert first["timings"]["cache_n"] < 20
    saved = server.json("/slots/0?action=save", {"filename": "sums.bin"})
    assert saved["id_slot"] == 0 and saved["filename"] == "sums.bin" and saved["n_written"] > 0
    assert saved["n_saved"] >= first["tokens_evaluated"]
    assert server.json("/slots/0?action=erase", {})["n_erased"] > 0
    assert server.json("/completion", {**body, "id_slot": 1, "cache_prompt": True})["timings"]["cache_n"] < 20
    server.json("/slots/0?action=erase", {})
    server.json("/slots/1?action=erase", {})
    restored = server.json("/slots/0?action=restore", {"filename": "sums.bin"})
    assert (restored["n_restored"], restored["n_read"]) == (saved["n_saved"], saved["n_written"])
    again = server.json("/completion", body)
    assert again["timings"]["cache_n"] >= first["tokens_evaluated"] - 1
    assert again["content"] == first["content"]


def test_an_answer_has_the_slot_that_shows_it(server):
    body = {"prompt": STORY, "n_predict": 3, "id_slot": 1, **GREEDY}
    assert server.json("/completion", body)["id_slot"] == 1
    assert {event["id_slot"] for event in server.events("/completion", body)} == {1}
    assert server.json("/completion", {**body, "id_slot": 9})["id_slot"] == 1, "of two, as in llama-server"


@pytest.mark.parametrize(
    "name", ["../sums.bin", "/tmp/sums.bin", "a/b", ".hidden", "", "x" * 300, "a\0b", "..", "a\\b"]
)
@pytest.mark.parametrize("action", ["save", "restore"])
def test_a_slots_file_has_a_plain_name(server, action, name):
    response = server.post(f"/slots/0?action={action}", {"filename": name})
    assert response.status_code == 400 and "filename" in response.json()["error"]["message"]


def test_slots_that_are_not_there_and_files_that_are_not_there_are_errors(server):
    assert server.post("/slots/x?action=erase", {}).status_code == 400
    assert server.json("/slots/9?action=erase", {})["id_slot"] == 1, "of two, as in llama-server"
    assert server.post("/slots/0?action=dance", {}).status_code == 400
    missing = server.post("/slots/0?action=restore", {"filename": "missing.bin"})
    assert missing.status_code == 400 and "/tmp" not in missing.text


@pytest.mark.parametrize("action", ["save", "restore", "erase", "dance"])
def test_slots_need_a_folder_of_the_operators(stories, action):
    response = stories.post(f"/slots/0?action={action}", {"filename": "x.bin"})
    assert response.status_code == 501 and "--slot-save-path" in response.json()["error"]["message"]


def test_an_adapter_can_be_turned_off_and_on(stories):
    body = {"prompt": "Once", "n_predict": 12, "cache_prompt": False, **GREEDY}
    (adapter,) = stories.json("/lora-adapters")
    assert adapter == {"id": 0, "path": "adapter.gguf", "scale": 1, "task_name": "", "prompt_prefix": ""}
    adapted = stories.json("/completion", body)["content"]
    assert stories.json("/lora-adapters", [{"id": 0, "scale": 0}]) == {"success": True}
    assert stories.json("/lora-adapters")[0]["scale"] == 0
    plain = stories.json("/completion", body)["content"]
    assert plain != adapted
    assert stories.json("/completion", {**body, "lora": [{"id": 0, "scale": 1}]})["content"] == adapted
    stories.json("/lora-adapters", [{"id": 0, "scale": 1}])
    assert stories.json("/completion", body)["content"] == adapted
    # Without a scale it is off, as in llama-server.
    assert stories.json("/completion", {**body, "lora": [{"id": 0}]})["content"] == plain
    assert stories.json("/lora-adapters", [{"id": 0}]) == {"success": True}
    assert stories.json("/lora-adapters")[0]["scale"] == 0
    stories.json("/lora-adapters", [{"id": 0, "scale": 1}])
    assert stories.post("/lora-adapters", [{"id": 7, "scale": 1}]).status_code == 400
    assert stories.post("/lora-adapters", {"id": 0}).status_code == 400


def test_adapters_of_a_server_without_any_are_an_error_that_says_how_to_have_some(server):
    assert server.json("/lora-adapters") == [] and server.json("/lora-adapters", []) == {"success": True}
    refused = server.post("/lora-adapters", [{"id": 0, "scale": 1}])
    assert refused.status_code == 400 and "--lora" in refused.json()["error"]["message"]


def test_metrics_are_prometheus_text_and_count_what_happened(server):
    before = server.metrics()
    server.json("/completion", {"prompt": "1+1=", "n_predict": 5, "ignore_eos": True, **GREEDY})
    after = server.metrics()
    model = '{model="tiny"}'
    assert (
        after["headrace_requests_finished_total" + model]
        == before["headrace_requests_finished_total" + model] + 1
    )
    assert after["llamacpp:tokens_predicted_total"] == before["llamacpp:tokens_predicted_total"] + 5
    assert after['headrace_http_requests_total{route="/completion",status="200"}'] > 0
    for name in ("time_to_first_token", "time_between_tokens", "queue", "request"):
        buckets = [value for key, value in after.items() if key.startswith(f"headrace_{name}_seconds_bucket")]
        assert (
            buckets == sorted(buckets) and buckets[-1] == after[f"headrace_{name}_seconds_count{model}"] > 0
        )


def test_every_metric_has_its_type_and_help_once(server):
    text = server.get("/metrics").text
    names = re.findall(r"^# TYPE (\S+) (?:counter|gauge|histogram)$", text, re.MULTILINE)
    assert len(names) == len(set(names)) == len(re.findall("^# HELP ", text, re.MULTILINE))
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name = re.match(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?=[ {])", line)[0]
        assert re.sub("_(bucket|sum|count)$", "", name) in names or name in names, line


def test_what_was_not_asked_for_at_the_start_is_not_offered(serve):
    server = serve("--no-slots", "--no-webui")
    for path in ("/metrics", "/slots"):
        response = server.get(path)
        assert response.status_code == 501 and "Start it with" in response.json()["error"]["message"]
    assert server.get("/").status_code == 404


def test_infill_of_a_model_without_its_tokens_is_refused(server):
    response = server.post("/infill", {"input_prefix": "a", "input_suffix": "b"})
    assert response.status_code == 501 and response.json()["error"]["type"] == "not_supported_error"


def test_embeddings_have_a_vector_a_text_or_a_token(serve, models):
    pooled = serve("--embeddings", model=models / "vectors.gguf")
    assert [
        len(entry["embedding"]) for entry in pooled.json("/embedding", {"content": ["bread", "hello"]})
    ] == [1, 1]
    wrong = pooled.post("/embedding", {"content": "bread", "encoding_format": "words"})
    assert wrong.status_code == 400 and wrong.json()["error"]["param"] == "encoding_format"
    plain = serve("--embeddings", "--pooling", "none", model=models / "vectors.gguf")
    (entry,) = plain.json("/embeddings", {"input": "hello world"})
    assert [len(vector) for vector in entry["embedding"]] == [64] * 4, "with [CLS] and [SEP]"
    assert plain.post("/v1/embeddings", {"input": "hello"}).status_code == 400


def test_documents_are_ranked_best_first(serve, models):
    server = serve("--reranking", "--alias", "ranker", model=models / "ranker.gguf")
    documents = ["hello world", "the panda is a bear from china", "bread"]
    body = {"query": "what is a panda", "documents": documents}
    answer = server.json("/v1/rerank", body)
    scores = [entry["relevance_score"] for entry in answer["results"]]
    assert sorted(entry["index"] for entry in answer["results"]) == [0, 1, 2]
    assert scores == sorted(scores, reverse=True) and len(set(scores)) == 3
    assert answer["usage"]["prompt_tokens"] > 0 and (answer["model"], answer["object"]) == ("ranker", "list")
    for path in ("/rerank", "/reranking", "/v1/reranking"):
        assert server.json(path, body)["results"] == answer["results"]
    best = server.json("/v1/rerank", {**body, "top_n": 1, "return_documents": True})["results"]
    assert [entry["index"] for entry in best] == [answer["results"][0]["index"]]
    assert best[0]["document"] == {"text": documents[best[0]["index"]]}
    hugging = server.json("/rerank", {"query": body["query"], "texts": documents})
    assert [entry["score"] for entry in hugging] == scores
    for wrong in ({"query": 3, "documents": ["x"]}, {"query": "x"}, {"query": "x", "documents": []}):
        assert server.post("/v1/rerank", wrong).status_code == 400


def test_ranking_with_a_model_that_writes_is_not_offered(server):
    response = server.post("/v1/rerank", {"query": "x", "documents": ["y"]})
    assert response.status_code == 501 and "--reranking" in response.json()["error"]["message"]
