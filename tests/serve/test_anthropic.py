"""Messages through Anthropic's own client, unmodified."""

from __future__ import annotations

import json

import anthropic
import pytest
from serve_models import write_script_model
from serve_program import MODEL, QWEN3, STORY, in_tree

SUM = [{"role": "user", "content": "What is 2+3?"}]
GREEDY = {"model": "tiny", "max_tokens": 60}  # the client has no temperature: the servers' is 0
ADD = {
    "name": "add",
    "description": "Adds two numbers",
    "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
}
CALL = ["<tool_call>\n", '{"name": "add", ', '"arguments": {"a": 2, ', '"b": 3}}', "\n</tool_call>"]
THOUGHTS = ["<think>\n", "two and", " three", "\n</think>\n\n"]


def client_of(server, key: str = ""):
    options = {"max_retries": 0, "timeout": 60, "_strict_response_validation": True}
    return anthropic.Anthropic(base_url=server.url, api_key=key or "none", **options)


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny", "--temp", 0)


@pytest.fixture(scope="module")
def messages(server):
    return client_of(server).messages


def test_an_answer_follows_a_schema(messages):
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    form = {"type": "json_schema", "schema": schema}
    for field in ({"output_config": {"format": form}}, {"output_format": form}):
        answer = messages.create(messages=SUM, extra_body=field, **GREEDY)
        assert type(json.loads(answer.content[0].text)["sum"]) is int


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("output_config.format.type", {"output_config": {"format": {"type": "text"}}}),
        ("output_format.schema", {"output_format": {"type": "json_schema"}}),
        ("mcp_servers", {"mcp_servers": [{"type": "url", "url": "https://example.com", "name": "a"}]}),
    ],
)
def test_what_cannot_be_had_is_named(messages, field, value):
    with pytest.raises(anthropic.BadRequestError, match=field):
        messages.create(messages=SUM, extra_body=value, **GREEDY)


def scripted(serve, folder, pieces):
    """Messages of a model that writes these pieces."""
    template = in_tree(QWEN3)
    write_script_model(folder / "script.gguf", pieces)
    options = ["--ctx-size", 4096, "--parallel", 1, "--temp", 0, "--chat-template-file", template]
    return client_of(serve(*options, model=folder / "script.gguf")).messages


@pytest.fixture(scope="module")
def caller(serve, tmp_path_factory):
    return scripted(serve, tmp_path_factory.mktemp("caller"), CALL)


@pytest.fixture(scope="module")
def thinker(serve, tmp_path_factory):
    return scripted(serve, tmp_path_factory.mktemp("thinker"), [*THOUGHTS, "It is", " five."])


def test_a_message_has_its_text_its_reason_to_stop_and_its_tokens(server, messages):
    answer = messages.create(messages=SUM, **GREEDY)
    (block,) = answer.content
    assert (block.type, block.text) == ("text", "2+3=5")
    assert (answer.type, answer.role, answer.model) == ("message", "assistant", "tiny")
    assert answer.id.startswith("msg_") and answer.stop_reason == "end_turn" and answer.stop_sequence is None
    usage = answer.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == len(server.prompt_tokens(SUM))
    assert usage.output_tokens == len(server.tokens("2+3=5")) + 1


def test_the_clients_stream_helper_gives_the_same_message(messages):
    options = {"messages": [{"role": "user", "content": STORY}], **GREEDY}
    whole = messages.create(**options)
    with messages.stream(**options) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_a_streams_events_come_in_anthropics_order(messages):
    events = list(messages.create(messages=SUM, stream=True, **GREEDY))
    kinds = [event.type for event in events if event.type != "ping"]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) == {"content_block_delta"}
    assert events[0].message.usage.input_tokens > 0 and events[0].message.content == []
    assert {event.index for event in events if event.type.startswith("content_block")} == {0}


def test_a_system_prompt_may_be_a_text_or_blocks_and_is_counted(messages):
    plain = messages.create(messages=SUM, system="Be brief.", **GREEDY)
    blocks = messages.create(messages=SUM, system=[{"type": "text", "text": "Be brief."}], **GREEDY)
    assert blocks.content[0].text == plain.content[0].text
    count = [
        messages.count_tokens(model="tiny", messages=SUM, **more).input_tokens
        for more in ({}, {"system": "Be brief."})
    ]
    assert 0 < count[0] < count[1]
    assert plain.usage.input_tokens + plain.usage.cache_read_input_tokens == count[1]


def test_a_stop_sequence_ends_a_message_and_is_named(messages):
    count = [{"role": "user", "content": "Count from 1 to 9."}]
    answer = messages.create(messages=count, stop_sequences=["7", "5"], **GREEDY)
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "5")
    assert "5" not in answer.content[0].text
    with messages.stream(messages=count, stop_sequences=["5"], **GREEDY) as stream:
        final = stream.get_final_message()
    assert (final.stop_reason, final.stop_sequence) == ("stop_sequence", "5")


def test_a_message_that_is_cut_says_max_tokens(messages):
    answer = messages.create(messages=SUM, **{**GREEDY, "max_tokens": 2})
    assert (answer.stop_reason, answer.usage.output_tokens) == ("max_tokens", 2)


def test_an_answer_that_was_begun_is_gone_on_with(messages):
    begun = [*SUM, {"role": "assistant", "content": "2+3="}]
    assert messages.create(messages=begun, **GREEDY).content[0].text == "5"


@pytest.mark.parametrize("choice", [None, {"type": "any"}, {"type": "tool", "name": "add"}], ids=str)
def test_a_tool_call_is_a_block_with_its_input(caller, choice):
    more = {"tool_choice": choice} if choice else {}
    answer = caller.create(messages=SUM, tools=[ADD], **more, **GREEDY)
    (block,) = answer.content
    assert (block.type, block.name, block.input) == ("tool_use", "add", {"a": 2, "b": 3})
    assert block.id and answer.stop_reason == "tool_use"


def test_a_streamed_tool_call_is_assembled_by_the_client(caller):
    with caller.stream(messages=SUM, tools=[ADD], **GREEDY) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_message()
    assert "input_json" in kinds
    (block,) = final.content
    assert (block.type, block.name, block.input) == ("tool_use", "add", {"a": 2, "b": 3})
    assert final.stop_reason == "tool_use"


def test_the_result_of_a_tool_is_read(caller):
    answer = caller.create(messages=SUM, tools=[ADD], **GREEDY)
    result = {"type": "tool_result", "tool_use_id": answer.content[0].id, "content": "it is five"}
    messages = [*SUM, {"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    counts = [
        caller.count_tokens(model="tiny", messages=some, tools=[ADD]).input_tokens for some in (SUM, messages)
    ]
    assert counts[1] > counts[0] + len("it is five") // 2
    assert caller.create(messages=messages, tools=[ADD], **GREEDY).stop_reason == "tool_use", (
        "the script begins anew"
    )


def test_thoughts_are_a_block_before_the_text(thinker):
    thinking = {"type": "enabled", "budget_tokens": 1024}
    options = {**GREEDY, "max_tokens": 2000, "messages": SUM, "thinking": thinking}
    answer = thinker.create(**options)
    assert [block.type for block in answer.content] == ["thinking", "text"]
    assert answer.content[0].thinking.strip() == "two and three"
    assert answer.content[1].text == "It is five."
    with thinker.stream(**options) as stream:
        final = stream.get_final_message()
    assert [block.type for block in final.content] == ["thinking", "text"]
    assert final.content[0].thinking == answer.content[0].thinking
    assert final.content[1].text == "It is five."


def test_thoughts_can_be_sent_back(thinker):
    answer = thinker.create(
        messages=SUM, thinking={"type": "enabled", "budget_tokens": 1024}, **{**GREEDY, "max_tokens": 2000}
    )
    again = [*SUM, {"role": "assistant", "content": answer.content}, {"role": "user", "content": "Sure?"}]
    assert thinker.create(messages=again, **GREEDY).content


WRONG = {
    "max_tokens": "many",
    "temperature": "hot",
    "stop_sequences": "5",
    "tools": "hammer",
    "tool_choice": "any",
    "thinking": "hard",
    "system": 3,
    "messages": [{"role": "king", "content": "x"}],
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_field_is_named_in_anthropics_shape(messages, field):
    with pytest.raises(anthropic.BadRequestError) as caught:
        messages.create(**{**GREEDY, "messages": SUM, "extra_body": {field: WRONG[field]}})
    body = caught.value.body
    assert body["type"] == "error" and body["error"]["type"] == "invalid_request_error"
    assert field in body["error"]["message"] and str(MODEL.parent) not in str(body)


def test_a_prompt_that_is_too_long_is_an_invalid_request(messages):
    with pytest.raises(anthropic.BadRequestError) as caught:
        messages.create(messages=[{"role": "user", "content": STORY * 200}], **GREEDY)
    assert caught.value.body["error"]["type"] == "invalid_request_error"


def test_an_unknown_key_and_an_unknown_path_have_anthropics_shapes(serve):
    server = serve("--max-body-mib", 1, "--temp", 0, key="the-key")
    with pytest.raises(anthropic.AuthenticationError) as caught:
        client_of(server, "wrong").messages.create(messages=SUM, **GREEDY)
    assert caught.value.body["error"]["type"] == "authentication_error"
    assert client_of(server, "the-key").messages.create(messages=SUM, **GREEDY).content[0].text == "2+3=5"
    with pytest.raises(anthropic.NotFoundError) as caught:
        client_of(server, "the-key").messages.batches.list()
    assert caught.value.body["error"]["type"] == "not_found_error"
    with pytest.raises(anthropic.APIStatusError) as caught:
        long = [{"role": "user", "content": "x" * (1 << 21)}]
        client_of(server, "the-key").messages.create(messages=long, **GREEDY)
    assert (caught.value.status_code, caught.value.body["error"]["type"]) == (413, "request_too_large")
