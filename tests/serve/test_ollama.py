"""Chats, texts and vectors through Ollama's own client, unmodified."""

from __future__ import annotations

import json
from datetime import datetime

import numpy as np
import ollama
import pytest
from serve_models import write_script_model
from serve_program import MODEL, QWEN3, STORY, in_tree

SUM = [{"role": "user", "content": "What is 2+3?"}]
GREEDY = {"temperature": 0}
SCHEMA = {"type": "object", "properties": {"kind": {"enum": ["fox", "dog"]}}, "required": ["kind"]}


def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: one
        b: the other
    """
    return a + b


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny")


@pytest.fixture(scope="module")
def client(server):
    return ollama.Client(host=server.url)


def test_a_chats_answer_has_its_text_and_its_times(server, client):
    answer = client.chat(model="tiny", messages=SUM, options=GREEDY)
    assert (answer.message.role, answer.message.content) == ("assistant", "2+3=5")
    assert (answer.model, answer.done, answer.done_reason) == ("tiny", True, "stop")
    assert answer.prompt_eval_count == len(server.prompt_tokens(SUM))
    assert answer.eval_count == len(server.tokens("2+3=5")) + 1
    assert answer.total_duration >= answer.eval_duration > 0
    assert datetime.fromisoformat(answer.created_at)


def test_a_streamed_chat_has_the_same_text_and_one_end(client):
    tale = [{"role": "user", "content": STORY}]
    whole = client.chat(model="tiny", messages=tale, options=GREEDY)
    parts = list(client.chat(model="tiny", messages=tale, options=GREEDY, stream=True))
    assert "".join(part.message.content or "" for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == whole.eval_count and parts[0].eval_count is None


def test_a_generated_text_is_a_chats_answer_unless_it_is_raw(server, client):
    answer = client.generate(model="tiny", prompt="What is 2+3?", options=GREEDY)
    assert (answer.response, answer.done) == ("2+3=5", True)
    parts = list(client.generate(model="tiny", prompt="What is 2+3?", options=GREEDY, stream=True))
    assert "".join(part.response for part in parts) == "2+3=5"
    raw = client.generate(model="tiny", prompt="1+1=", raw=True, options={**GREEDY, "num_predict": 1})
    assert (raw.response, raw.done_reason) == ("2", "length")
    assert raw.prompt_eval_count == len(server.tokens("1+1=", add_special=True))


def test_a_system_prompt_is_part_of_what_is_generated_from(client):
    counts = [
        client.generate(model="tiny", prompt="Hi", system=system, options=GREEDY).prompt_eval_count
        for system in ("", "Be brief.")
    ]
    assert counts[0] < counts[1]


def test_ollamas_options_are_obeyed(client):
    count = [{"role": "user", "content": "Count from 1 to 9."}]
    cut = client.chat(model="tiny", messages=count, options={**GREEDY, "num_predict": 3, "num_ctx": 256})
    assert (cut.eval_count, cut.done_reason) == (3, "length")
    stopped = client.chat(model="tiny", messages=count, options={**GREEDY, "stop": ["5"]})
    assert (
        stopped.done_reason == "stop"
        and "5" not in stopped.message.content
        and "4" in stopped.message.content
    )
    texts = [
        client.chat(model="tiny", messages=count, options={"seed": 4, "temperature": 1.5}).message.content
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_format_is_followed(client, stream):
    def said(form) -> str:
        answer = client.chat(model="tiny", messages=SUM, format=form, options=GREEDY, stream=stream)
        return "".join(part.message.content for part in answer) if stream else answer.message.content

    assert json.loads(said(SCHEMA))["kind"] in ("fox", "dog")
    assert said("json").startswith("{")


def test_a_format_is_followed_by_generated_texts(client):
    answer = client.generate(model="tiny", prompt="Hi", format=SCHEMA, options=GREEDY)
    assert json.loads(answer.response)["kind"] in ("fox", "dog")


@pytest.fixture(scope="module")
def caller(serve, tmp_path_factory):
    """The client of a model that thinks and calls."""
    template = in_tree(QWEN3)
    call = ["<tool_call>\n", '{"name": "add", ', '"arguments": {"a": 2, ', '"b": 3}}', "\n</tool_call>"]
    folder = tmp_path_factory.mktemp("script")
    write_script_model(folder / "script.gguf", ["<think>\n", "two and", " three", "\n</think>\n\n", *call])
    options = ["--ctx-size", 2048, "--alias", "tiny", "--chat-template-file", template]
    return ollama.Client(host=serve(*options, model=folder / "script.gguf").url)


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_is_called_with_its_arguments(caller, stream):
    answer = caller.chat(model="tiny", messages=SUM, tools=[add], options=GREEDY, stream=stream)
    messages = [part.message for part in answer] if stream else [answer.message]
    (call,) = [call for message in messages for call in message.tool_calls or []]
    assert (call.function.name, call.function.arguments) == ("add", {"a": 2, "b": 3})
    assert "".join(message.thinking or "" for message in messages).strip() == "two and three"
    assert "".join(message.content or "" for message in messages) == ""


def test_the_result_of_a_tool_is_read(caller):
    first = caller.chat(model="tiny", messages=SUM, tools=[add], options=GREEDY)
    messages = [*SUM, first.message, {"role": "tool", "tool_name": "add", "content": "5"}]
    again = caller.chat(model="tiny", messages=messages, tools=[add], options=GREEDY)
    assert again.prompt_eval_count > first.prompt_eval_count


def test_thoughts_are_hidden_where_they_are_not_wanted(caller):
    answer = caller.chat(model="tiny", messages=SUM, tools=[add], options=GREEDY, think=False)
    assert answer.message.thinking is None


def test_texts_become_vectors(serve, models):
    server = serve("--embeddings", "--alias", "vectors", model=models / "vectors.gguf")
    client = ollama.Client(host=server.url)
    several = client.embed(model="vectors", input=["hello world", "bread"])
    alone = client.embed(model="vectors", input="bread")
    np.testing.assert_allclose(several.embeddings[1], alone.embeddings[0], atol=1e-4)
    assert np.linalg.norm(alone.embeddings[0]) == pytest.approx(1, abs=1e-3)
    assert several.prompt_eval_count == 7, "with [CLS] and [SEP]"
    old = client.embeddings(model="vectors", prompt="bread")
    np.testing.assert_allclose(old.embedding, alone.embeddings[0], atol=1e-4)


def test_the_model_is_listed_shown_and_running(client):
    (listed,) = client.list().models
    assert listed.model == "tiny" and listed.size > 1_000_000 and listed.details.format == "gguf"
    shown = client.show("tiny")
    assert "completion" in shown.capabilities and "im_start" in shown.template
    assert shown.modelinfo["general.parameter_count"] == pytest.approx(2.5e6, rel=0.1)
    (running,) = client.ps().models
    assert running.model == "tiny" and running.context_length == 512


def test_a_name_may_have_ollamas_tag(client):
    assert client.chat(model="tiny:latest", messages=SUM, options=GREEDY).message.content == "2+3=5"
    assert client.show("tiny:latest").details.format == "gguf"


def test_the_version_is_a_number(server):
    assert server.json("/api/version")["version"][0].isdigit()


def test_a_request_without_a_prompt_asks_whether_the_model_is_there(client):
    answer = client.generate(model="tiny")
    assert (answer.done, answer.done_reason, answer.response) == (True, "load", "")
    assert client.chat(model="tiny", messages=[]).done


def test_a_model_of_another_kind_is_an_error(serve, models):
    server = serve("--alias", "tiny", "--embed", models / "vectors.gguf")
    client = ollama.Client(host=server.url)
    with pytest.raises(ollama.ResponseError, match="'tiny' is not of that kind: it answers texts"):
        client.embed(model="tiny", input="a")
    assert len(client.embed(model="vectors.gguf", input="a").embeddings) == 1


@pytest.mark.parametrize("ask", ["chat", "generate", "show"])
def test_a_model_that_is_not_there_is_404(client, ask):
    arguments = {"chat": {"messages": SUM}, "generate": {"prompt": "Hi"}, "show": {}}[ask]
    with pytest.raises(ollama.ResponseError, match="not found") as caught:
        getattr(client, ask)(model="huge", **arguments)
    assert caught.value.status_code == 404


WRONG = {
    "messages": 3,
    "options": 3,
    "format": 7,
    "tools": "hammer",
    "stream": "yes",
    "model": 3,
    "think": [],
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_field_is_named_in_ollamas_shape(server, field):
    body = {"model": "tiny", "messages": SUM, "stream": False, field: WRONG[field]}
    response = server.post("/api/chat", body)
    assert response.status_code == 400
    assert list(response.json()) == ["error"] and field in response.json()["error"]
    assert str(MODEL.parent) not in response.text


@pytest.mark.parametrize(
    "option", [{"temperature": "hot"}, {"num_predict": "many"}, {"stop": 3}, {"seed": []}], ids=str
)
def test_a_wrong_option_is_named(server, option):
    response = server.post("/api/chat", {"model": "tiny", "messages": SUM, "options": option})
    assert response.status_code == 400 and next(iter(option)) in response.json()["error"]
