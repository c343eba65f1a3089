"""What Anthropic's client reads beside a message's text: ids, models, counts of a stream, thoughts' ends."""

from __future__ import annotations

import re

import anthropic
import openai
import pytest
from serve_models import write_script_model
from serve_program import QWEN3, STORY, ask_openai, in_tree

SUM = [{"role": "user", "content": "What is 2+3?"}]
GREEDY = {"model": "tiny", "max_tokens": 60}
ADD = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
THOUGHTS = ["<think>\n", "two and", " three", "\n</think>\n\n"]


def client_of(server):
    options = {"max_retries": 0, "timeout": 60, "_strict_response_validation": True}
    return anthropic.Anthropic(base_url=server.url, api_key="none", **options)


@pytest.fixture(scope="module")
def server(serve, models):
    return serve("--alias", "tiny", "--temp", 0, "--embed", models / "vectors.gguf")


@pytest.fixture(scope="module")
def client(server):
    return client_of(server)


def test_a_response_and_an_error_have_the_requests_id(client):
    raw = client.messages.with_raw_response.create(messages=SUM, **GREEDY)
    assert raw.headers["request-id"] == raw.headers["x-request-id"]
    assert raw.parse()._request_id == raw.headers["request-id"]
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(messages=[], **GREEDY)
    assert (
        caught.value.request_id
        == caught.value.body["request_id"]
        == caught.value.response.headers["request-id"]
    )


def test_a_message_needs_a_limit_of_its_tokens(server):
    response = server.post("/v1/messages", {"model": "tiny", "messages": SUM})
    body = response.json()
    assert (response.status_code, body["type"]) == (400, "error")
    assert body["error"]["type"] == "invalid_request_error" and "max_tokens" in body["error"]["message"]
    assert server.post("/v1/messages/count_tokens", {"model": "tiny", "messages": SUM}).status_code == 200


def test_models_are_listed_in_the_shape_of_whoever_asks(server, client):
    page = client.models.list()
    assert [model.id for model in page.data] == ["tiny", "vectors.gguf"]
    assert {model.type for model in page.data} == {"model"} and not page.has_more
    assert (page.first_id, page.last_id) == ("tiny", "vectors.gguf")
    one = client.models.retrieve("tiny")
    assert one.display_name and one.created_at.year >= 2024 and one.id == "tiny"
    raw = server.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).json()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", raw["data"][0]["created_at"])
    listed = ask_openai(server).models.list()
    assert listed.object == "list" and [model.object for model in listed.data] == ["model"] * 2
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.models.retrieve("large")
    assert caught.value.body["error"]["type"] == "not_found_error"
    with pytest.raises(openai.NotFoundError):
        ask_openai(server).models.retrieve("large")


def test_pages_of_models_are_turned_both_ways(client):
    page = client.models.list(limit=1)
    assert [model.id for model in page.data] == ["tiny"] and page.has_more
    assert [model.id for model in client.models.list(limit=1)] == ["tiny", "vectors.gguf"], (
        "the client turns them"
    )
    assert [model.id for model in client.models.list(before_id="vectors.gguf").data] == ["tiny"]
    assert client.models.list(after_id="vectors.gguf").data == []
    for wrong in ({"limit": 0}, {"after_id": "large"}):
        with pytest.raises(anthropic.BadRequestError, match=next(iter(wrong))):
            client.models.list(**wrong)


def test_a_stream_begins_with_the_counts_that_it_ends_with(client):
    options = {"messages": [{"role": "user", "content": STORY}], **GREEDY}
    client.messages.create(**options)
    events = list(client.messages.create(stream=True, **options))
    begin, end = events[0].message.usage, events[-2].usage
    assert begin.cache_read_input_tokens == end.cache_read_input_tokens > 0
    assert begin.input_tokens == end.input_tokens and begin.output_tokens == 0
    counted = client.messages.count_tokens(model="tiny", messages=options["messages"]).input_tokens
    assert begin.input_tokens + begin.cache_read_input_tokens == counted
    assert [event.type for event in events].count("message_start") == 1


def test_a_streamed_thought_ends_with_its_signature(serve, tmp_path_factory):
    template = in_tree(QWEN3)
    path = tmp_path_factory.mktemp("thinker") / "script.gguf"
    write_script_model(path, [*THOUGHTS, "It is", " five."])
    flags = ["--ctx-size", 4096, "--parallel", 1, "--temp", 0, "--chat-template-file", template]
    messages = client_of(serve(*flags, model=path)).messages
    thinking = {"type": "enabled", "budget_tokens": 1024}
    options = {"messages": SUM, "thinking": thinking, **GREEDY, "max_tokens": 2000}
    with messages.stream(**options) as stream:
        kinds = [event.delta.type for event in stream if event.type == "content_block_delta"]
        final = stream.get_final_message()
    last_thought = max(i for i, kind in enumerate(kinds) if kind == "thinking_delta")
    assert kinds[last_thought + 1] == "signature_delta" and kinds.count("signature_delta") == 1
    assert final.content[0].signature and messages.create(**options).content[0].signature


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("container", {"container": "container_1"}),
        ("context_management", {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}),
        ("tool_choice", {"tool_choice": {"type": "any"}}),
        ("tool_choice", {"tool_choice": {"type": "tool", "name": "find"}, "tools": [ADD]}),
    ],
)
def test_what_would_make_another_answer_is_refused_by_name(client, field, more):
    with pytest.raises(anthropic.BadRequestError, match=field):
        client.messages.create(messages=SUM, extra_body=more, **GREEDY)


TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 2}}
TEXT = {"type": "text", "text": "5"}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "5"}


def with_result(before: list[dict], result: dict) -> list[dict]:
    return [*SUM, {"role": "assistant", "content": before}, {"role": "user", "content": [result]}]


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("model", {"model": None}),
        ("model", {"model": 3}),
        ("temperature", {"temperature": 1.5}),
        ("temperature", {"temperature": -0.1}),
        ("top_p", {"top_p": 1.1}),
        ("top_k", {"top_k": -1}),
        ("metadata.user_id", {"metadata": {"user_id": 3}}),
        ("thinking.budget_tokens", {"thinking": {"type": "enabled"}}),
        ("thinking.budget_tokens", {"thinking": {"type": "enabled", "budget_tokens": "all"}}),
        ("messages.0.content.0.tool_use_id", {"messages": [{"role": "user", "content": [RESULT]}]}),
        ("messages.2.content.0.tool_use_id", {"messages": with_result([TEXT], RESULT)}),
        (
            "messages.2.content.0.tool_use_id",
            {"messages": with_result([TOOL_USE], {**RESULT, "tool_use_id": "toolu_2"})},
        ),
        (
            "output_config.format.schema",
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "nope"}}}},
        ),
        ("output_format.schema", {"output_format": {"type": "json_schema", "schema": {"type": "nope"}}}),
    ],
)
def test_what_their_api_refuses_is_refused_by_name(server, field, more):
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        if "schema" in field and path != "/v1/messages":
            continue  # where nothing is written no schema is needed
        answer = server.post(path, {"messages": SUM, **GREEDY, **more})
        error = answer.json()["error"]
        assert (answer.status_code, error["type"]) == (400, "invalid_request_error"), answer.text
        assert error["message"].startswith(f"{field}: "), error


def test_results_of_tools_may_follow_in_several_messages_and_in_a_session(server, client):
    others = {"id": "toolu_2"}, {"tool_use_id": "toolu_2"}
    second, its_result = {**TOOL_USE, **others[0]}, {**RESULT, **others[1]}
    split = [*with_result([TOOL_USE, second], RESULT), {"role": "user", "content": [its_result]}]
    assert client.messages.create(messages=split, **GREEDY).content
    known = {"messages": [{"role": "user", "content": [RESULT]}], "session": "tools", **GREEDY}
    assert server.post("/v1/messages", known).status_code == 200, "what the session holds is not looked at"


def test_a_method_that_is_not_taken_is_an_invalid_request(server):
    answer = server.get("/v1/messages")
    assert (answer.status_code, answer.json()["error"]["type"]) == (405, "invalid_request_error")
    assert server.get("/v1/messages/none").json()["error"]["type"] == "not_found_error"
