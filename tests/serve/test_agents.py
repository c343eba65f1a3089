"""Requests of agents, odd but legal, by the official clients: none of them is refused."""

from __future__ import annotations

import json

import anthropic
import ollama
import pytest
from serve_models import write_script_model
from serve_program import TEMPLATES, ask_openai, in_tree

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": PARAMETERS}}
USE_ADD = {"name": "add", "description": "Adds", "input_schema": PARAMETERS}
SUM = [{"role": "user", "content": "What is 2+3?"}]
#: Two calls in one answer.
CALLS = [
    "<tool_call>\n",
    '{"name": "add", ',
    '"arguments": {"a": 2}}',
    "\n</tool_call>\n<tool_call>\n",
    '{"name": "add", "arguments": ',
    '{"a": 3}}\n',
    "</tool_call>",
]
LABELS = {
    "metadata": {"run": "7"},
    "store": True,
    "user": "me",
    "prompt_cache_key": "key",
    "safety_identifier": "hash",
    "service_tier": "auto",
    "seed": 3,
}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny", "--temp", 0, "--parallel", 4)


@pytest.fixture(scope="module")
def calling(serve, tmp_path_factory):
    path = tmp_path_factory.mktemp("caller") / "script.gguf"
    write_script_model(path, CALLS)
    template = in_tree(TEMPLATES / "NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja")
    return serve("--ctx-size", 8192, "--alias", "tiny", "--chat-template-file", template, model=path)


@pytest.fixture(scope="module")
def chats(server):
    return ask_openai(server).chat.completions


@pytest.fixture(scope="module")
def calls(calling):
    return ask_openai(calling).chat.completions


def claude(server):
    options = {"max_retries": 0, "timeout": 60, "_strict_response_validation": True}
    return anthropic.Anthropic(base_url=server.url, api_key="none", **options).messages


def assembled(chunks) -> dict[int, list[str]]:
    """Names and arguments of a stream's calls by index."""
    found: dict[int, list[str]] = {}
    for chunk in chunks:
        for delta in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
            entry = found.setdefault(delta.index, ["", ""])
            entry[0] += delta.function.name or ""
            entry[1] += delta.function.arguments or ""
    return found


def test_calls_side_by_side_are_streamed_and_answered(calls):
    options = {"model": "tiny", "tools": [ADD], "parallel_tool_calls": True, "max_completion_tokens": 200}
    chunks = list(
        calls.create(messages=SUM, stream=True, stream_options={"include_usage": True}, **options, **LABELS)
    )
    found = assembled(chunks)
    assert [name for name, _ in found.values()] == ["add", "add"]
    assert [json.loads(arguments) for _, arguments in found.values()] == [{"a": 2}, {"a": 3}]
    assert chunks[-1].usage.completion_tokens > 0 and not chunks[-1].choices
    message = calls.create(messages=SUM, **options).choices[0].message
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": [{"type": "text", "text": "5"}]}
        for call in reversed(message.tool_calls)
    ]
    history = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        *SUM,
        message.model_dump(),
        *results,
        {"role": "user", "content": "And now?", "name": "ada"},
    ]
    assert calls.create(messages=history, **options).choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize(
    "more",
    [
        {"n": 3, "stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
        {"response_format": {"type": "text"}, "top_p": 1, "temperature": 2},
        {"logit_bias": {"5": -100, "6": 100}, "presence_penalty": -2, "frequency_penalty": 2},
        {"stop": ["\n", "a", "b", "c"], "logprobs": True, "top_logprobs": 0},
        {"stop": None, "tools": [], "logit_bias": None, "response_format": None, "tool_choice": None},
        {"tools": [ADD], "tool_choice": "none"},
        {"reasoning_effort": "minimal", "verbosity": "medium", "service_tier": "flex"},
        {"prediction": {"type": "content", "content": "2+3=5"}, "modalities": ["text"]},
        {"prompt_cache_retention": "24h", "store": False, "user": ""},
    ],
    ids=str,
)
def test_options_of_openais_chats_are_taken(chats, more):
    answer = chats.create(model="tiny", messages=SUM, max_completion_tokens=6, **{**LABELS, **more})
    if more.get("stream"):
        chunks = list(answer)
        assert {choice.index for chunk in chunks for choice in chunk.choices} == {0, 1, 2}
        assert chunks[-1].usage.completion_tokens > 0
    else:
        assert answer.choices[0].finish_reason in ("stop", "length")


def test_a_strict_schema_with_references_is_followed(chats):
    schema = {
        "type": "object",
        "properties": {"kind": {"$ref": "#/$defs/kind"}, "next": {"anyOf": [{"type": "null"}]}},
        "required": ["kind", "next"],
        "additionalProperties": False,
        "$defs": {"kind": {"type": "string", "enum": ["fox", "dog"], "title": "Kind"}},
        "title": "Animal",
    }
    wanted = {
        "type": "json_schema",
        "json_schema": {"name": "animal", "description": "d", "strict": True, "schema": schema},
    }
    for stream in (False, True):
        answer = chats.create(model="tiny", messages=SUM, response_format=wanted, stream=stream)
        text = (
            "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)
            if stream
            else answer.choices[0].message.content
        )
        assert json.loads(text)["kind"] in ("fox", "dog")


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, *SUM],
        [*SUM, {"role": "assistant", "content": "2+3=", "refusal": None, "audio": None, "annotations": []}],
        [*SUM, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, *SUM],
        [*SUM, {"role": "assistant", "content": ""}, *SUM],
        [{"role": "user", "content": [{"type": "text", "text": text} for text in ("What is", " 2+3?")]}],
        [*SUM, *SUM],
        [{"role": "assistant", "content": "Hello!"}, *SUM],
        [{"role": "user", "content": ""}],
    ],
    ids=str,
)  # fmt: skip
def test_messages_that_openai_takes_are_taken(chats, messages):
    answer = chats.create(model="tiny", messages=messages, max_tokens=4)
    assert answer.choices[0].finish_reason in ("stop", "length")


def test_a_picture_in_a_result_is_refused_by_its_place(server, calling):
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    use = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [picture]}
    messages = [*SUM, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.2\.content\.0\.content\.0\.source"):
        claude(calling).create(model="tiny", max_tokens=9, messages=messages, tools=[USE_ADD])


#: A conversation as Claude's agents send it.
THOUGHT = [
    {"type": "thinking", "thinking": "Two and three.", "signature": "c2lnbmVk"},
    {"type": "redacted_thinking", "data": "aGlkZGVu"},
    {"type": "text", "text": "I add."},
    {"type": "tool_use", "id": "t1", "name": "add", "input": {}, "cache_control": {"type": "ephemeral"}},
    {"type": "tool_use", "id": "t2", "name": "add", "input": {"a": 3}},
]
RESULTS = [
    {"type": "tool_result", "tool_use_id": "t2", "is_error": True, "content": "no"},
    {"type": "tool_result", "tool_use_id": "t1", "content": []},
    {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_with_thoughts_and_calls_goes_on(calling, stream):
    cached = {"cache_control": {"type": "ephemeral"}}
    answer = claude(calling).create(
        model="tiny",
        max_tokens=2000,
        system=[{"type": "text", "text": "Be brief.", **cached}, {"type": "text", "text": "Be kind."}],
        messages=[*SUM, {"role": "assistant", "content": THOUGHT}, {"role": "user", "content": RESULTS}],
        tools=[{**USE_ADD, **cached, "type": "custom"}, {**USE_ADD, "name": "add-2"}],
        tool_choice={"type": "auto", "disable_parallel_tool_use": False},
        thinking={"type": "enabled", "budget_tokens": 1024},
        metadata={"user_id": "me"},
        service_tier="auto",
        stop_sequences=["\n\nHuman:"],
        stream=stream,
    )
    kinds = (
        [event.content_block.type for event in answer if event.type == "content_block_start"]
        if stream
        else [block.type for block in answer.content]
    )
    assert kinds == ["tool_use", "tool_use"]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": "Hello!"}, *SUM],
        [*SUM, *SUM],
        [*SUM, {"role": "assistant", "content": "2+3="}],
        [*SUM, {"role": "assistant", "content": [{"type": "text", "text": "2+3="}]}],
        [*SUM, {"role": "assistant", "content": "a "}, {"role": "assistant", "content": "b"}, *SUM],
        [*SUM, {"role": "assistant", "content": [{"type": "text", "text": "5", "citations": None}]}, *SUM],
        [*SUM, {"role": "assistant", "content": THOUGHT[:3]}, *SUM],
        [{"role": "user", "content": [{"type": "text", "text": "  What is 2+3?\n"}]}],
    ],
    ids=str,
)
def test_messages_that_anthropic_takes_are_taken(server, messages):
    answer = claude(server).create(
        model="tiny", max_tokens=4, messages=messages, extra_body={"temperature": 1, "top_k": 0}
    )
    assert answer.stop_reason in ("end_turn", "max_tokens")


@pytest.mark.parametrize(
    "more",
    [
        {
            "keep_alive": "5m",
            "options": {"num_ctx": 256, "temperature": 5, "repeat_last_n": -1, "mirostat": 0},
        },
        {"keep_alive": -1, "format": "json"},
        {"format": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
        {"keep_alive": 3600.0, "think": False, "options": {"seed": -1, "stop": ["a"] * 6, "num_keep": 4}},
        {"options": {"num_gpu": 0, "num_thread": 1, "use_mmap": True, "low_vram": False, "f16_kv": True}},
        {"tools": [ADD], "stream": True, "logprobs": True, "top_logprobs": 2},
    ],
    ids=str,
)
def test_ollamas_requests_are_taken(server, more):
    client = ollama.Client(host=server.url, timeout=60)
    more = {**more, "options": {"num_predict": 40, **more.get("options", {})}}
    answer = client.chat(model="tiny", messages=SUM, **more)
    last = list(answer)[-1] if more.get("stream") else answer
    assert last.done and last.done_reason in ("stop", "length")


def test_ollamas_calls_and_results_are_read(calling):
    client = ollama.Client(host=calling.url, timeout=60)
    answer = client.chat(model="tiny", messages=SUM, tools=[ADD])
    assert [call.function.arguments for call in answer.message.tool_calls] == [{"a": 2}, {"a": 3}]
    results = [{"role": "tool", "tool_name": "add", "content": text} for text in ("2", "3")]
    history = [*SUM, answer.message, *results]
    assert client.chat(model="tiny", messages=history, tools=[ADD]).message.tool_calls
    assert client.chat(model="tiny", messages=[*SUM, answer.message], tools=[ADD]).done, "it takes these"


RESPONSE_ITEMS = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
    {"role": "user", "content": "What is 2+3?"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}],
     "encrypted_content": "e"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 2}',
     "status": "completed"},
    {"type": "function_call", "call_id": "c2", "name": "add", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "5"}]},
    {"type": "function_call_output", "call_id": "c1", "output": "5"},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "5", "annotations": [], "logprobs": []}]},
    {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_items_of_responses_are_read(calling, stream):
    tool = {"type": "function", "name": "add", "parameters": PARAMETERS, "strict": True, "description": "d"}
    answer = ask_openai(calling).responses.create(
        model="tiny",
        input=RESPONSE_ITEMS,
        instructions="Be kind.",
        tools=[tool],
        parallel_tool_calls=True,
        reasoning={"effort": "low", "summary": "auto"},
        include=["reasoning.encrypted_content"],
        text={"format": {"type": "text"}},
        truncation="auto",
        max_output_tokens=200,
        metadata={"a": "b"},
        store=False,
        stream=stream,
        prompt_cache_key="k",
        safety_identifier="s",
        user="u",
        service_tier="default",
        top_logprobs=0,
        max_tool_calls=3,
    )
    final = [event for event in answer][-1].response if stream else answer
    assert [item.type for item in final.output] == ["function_call", "function_call"]


def test_responses_leave_out_the_oldest_turns_where_they_may(server):
    items = [*SUM, {"role": "assistant", "content": "2+3=5"}] * 60 + SUM
    responses = ask_openai(server).responses
    answer = responses.create(model="tiny", input=items, truncation="auto", instructions="Be brief.")
    assert answer.output_text == "2+3=5" and answer.usage.input_tokens <= 512
