"""Tools through OpenAI's client, with three families' templates and models that write each family's calls."""

from __future__ import annotations

import json

import pytest
from serve_models import write_script_model
from serve_program import TEMPLATES, ask_openai, in_tree

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
FIND = {
    "type": "function",
    "function": {
        "name": "find",
        "parameters": {
            "type": "object",
            "properties": {"what": {"enum": ["fox", "dog"]}},
            "required": ["what"],
        },
    },
}
HERMES_CALL = ["<tool_call>\n", '{"name": "add", ', '"arguments": {"a": 2, ', '"b": 3}}', "\n</tool_call>"]
HERMES_OTHER = ["\n<tool_call>\n", '{"name": "find", "arguments": ', '{"what": "fox"}}\n', "</tool_call>"]
THOUGHTS = ["<think>\n", "two and", " three", "\n</think>\n\n"]
#: The template's file, and what its model writes.
FAMILIES = {
    "Qwen3": ("Qwen-Qwen3-0.6B.jinja", [*THOUGHTS, *HERMES_CALL]),
    "Llama 3": (
        "meta-llama-Llama-3.1-8B-Instruct.jinja",
        ['{"name": "add", ', '"parameters": {"a": 2, ', '"b": 3}}'],
    ),
    "Hermes": ("NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja", HERMES_CALL),
}
QUESTION = [{"role": "user", "content": "What is 2+3?"}]
OPTIONS = {"model": "any", "messages": QUESTION, "temperature": 0, "max_tokens": 100}
ARGUMENTS = {"a": 2, "b": 3}


def start(serve, folder, template: str, pieces: list[str]):
    path = in_tree(TEMPLATES / template)
    write_script_model(folder / "script.gguf", pieces)
    return serve(
        "--ctx-size", 4096, "--parallel", 1, "--chat-template-file", path, model=folder / "script.gguf"
    )


@pytest.fixture(scope="module", params=FAMILIES)
def server(request, serve, tmp_path_factory):
    return start(serve, tmp_path_factory.mktemp("script"), *FAMILIES[request.param])


@pytest.fixture(scope="module")
def chat(server):
    return ask_openai(server).chat.completions


@pytest.fixture(scope="module")
def caller_of_two(serve, tmp_path_factory):
    script = [*HERMES_CALL, *HERMES_OTHER]
    return start(serve, tmp_path_factory.mktemp("two"), FAMILIES["Hermes"][0], script)


def assembled(chunks) -> list[dict]:
    """The calls of a stream as a client puts them together."""
    calls: list[dict] = []
    for chunk in chunks:
        for delta in chunk.choices[0].delta.tool_calls or []:
            if delta.index == len(calls):
                assert delta.id and delta.type == "function" and delta.function.name
                calls.append({"id": delta.id, "name": delta.function.name, "arguments": ""})
            else:
                assert not delta.id and not delta.function.name, "the first delta of a call has them"
            calls[delta.index]["arguments"] += delta.function.arguments or ""
    return calls


@pytest.mark.parametrize(
    "choice", ["auto", "required", {"type": "function", "function": {"name": "add"}}], ids=str
)
def test_a_call_is_told_from_text_however_it_is_chosen(chat, choice):
    answer = chat.create(tools=[ADD], tool_choice=choice, **OPTIONS).choices[0]
    (call,) = answer.message.tool_calls
    assert (call.type, call.function.name, json.loads(call.function.arguments)) == (
        "function",
        "add",
        ARGUMENTS,
    )
    assert call.id and answer.message.content is None
    assert answer.finish_reason == "tool_calls"


def test_a_streamed_call_has_the_same_name_and_arguments(chat):
    chunks = list(chat.create(tools=[ADD], tool_choice="required", stream=True, **OPTIONS))
    (call,) = assembled(chunks)
    assert (call["name"], json.loads(call["arguments"])) == ("add", ARGUMENTS)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert not any(chunk.choices[0].delta.content for chunk in chunks)


def test_the_clients_stream_helper_parses_the_arguments(chat):
    with chat.stream(tools=[{**ADD, "function": {**ADD["function"], "strict": True}}], **OPTIONS) as stream:
        kinds = {event.type for event in stream}
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert "tool_calls.function.arguments.done" in kinds
    assert call.function.parsed_arguments == ARGUMENTS


def test_the_prompt_shows_tools_calls_and_results(server, chat):
    call = chat.create(tools=[ADD], **OPTIONS).choices[0].message
    result = {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "it is five"}
    messages = [*QUESTION, call.model_dump(exclude_none=True), result]
    prompt = server.json("/apply-template", {"messages": messages, "tools": [ADD]})["prompt"]
    for text in ("Adds two numbers", "What is 2+3?", '"add"', "it is five"):
        assert text in prompt
    again = chat.create(tools=[ADD], **{**OPTIONS, "messages": messages})
    assert again.choices[0].message.tool_calls, "the script begins anew"


def test_tools_that_must_not_be_called_are_not(chat):
    answer = chat.create(tools=[ADD], tool_choice="none", **OPTIONS).choices[0]
    assert answer.message.tool_calls is None
    assert answer.finish_reason == "stop"


def test_several_calls_have_numbers_and_ids_of_their_own(caller_of_two):
    chat = ask_openai(caller_of_two).chat.completions
    answer = chat.create(tools=[ADD, FIND], parallel_tool_calls=True, **OPTIONS).choices[0].message
    assert [call.function.name for call in answer.tool_calls] == ["add", "find"]
    assert len({call.id for call in answer.tool_calls}) == 2
    streamed = assembled(chat.create(tools=[ADD, FIND], parallel_tool_calls=True, stream=True, **OPTIONS))
    assert [call["name"] for call in streamed] == ["add", "find"]
    assert [json.loads(call["arguments"]) for call in streamed] == [ARGUMENTS, {"what": "fox"}]


def test_a_named_function_leaves_no_other(caller_of_two):
    chat = ask_openai(caller_of_two).chat.completions
    choice = {"type": "function", "function": {"name": "add"}}
    answer = chat.create(tools=[ADD, FIND], tool_choice=choice, **OPTIONS).choices[0].message
    assert {call.function.name for call in answer.tool_calls} == {"add"}


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_schema_that_no_call_can_follow_is_an_error_of_the_tools(caller_of_two, choice):
    wrong = {"type": "function", "function": {"name": "add", "parameters": {"type": "nope"}}}
    body = {**OPTIONS, "tools": [wrong], "tool_choice": choice}
    answer = caller_of_two.post("/v1/chat/completions", body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, "tools")
    assert (
        error["message"].startswith("'tools' have a schema") and "unrecognized type nope" in error["message"]
    )
    older = {**OPTIONS, "functions": [wrong["function"]]}
    assert caller_of_two.post("/v1/chat/completions", older).json()["error"]["param"] == "functions"


def test_thoughts_come_apart_from_the_answer(serve, tmp_path_factory):
    server = start(
        serve, tmp_path_factory.mktemp("thinker"), FAMILIES["Qwen3"][0], [*THOUGHTS, "It is", " five."]
    )
    chat = ask_openai(server).chat.completions
    message = chat.create(**OPTIONS).choices[0].message
    assert (message.content, message.reasoning_content.strip()) == ("It is five.", "two and three")
    deltas = [chunk.choices[0].delta for chunk in chat.create(stream=True, **OPTIONS)]
    assert (
        "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
        == message.reasoning_content
    )
    assert "".join(delta.content or "" for delta in deltas) == "It is five."


def test_a_template_that_shows_no_tools_does_not_pretend_to_obey(serve):
    """A client that forces a call cannot go on with a text: it gets a call or an error."""
    server = serve("--parallel", 1)
    body = {
        "messages": QUESTION,
        "tools": [ADD],
        "tool_choice": "required",
        "max_tokens": 100,
        "temperature": 0,
    }
    response = server.post("/v1/chat/completions", body)
    if response.status_code == 200:
        assert response.json()["choices"][0]["message"]["tool_calls"]
    else:
        assert (response.status_code, response.json()["error"]["param"]) == (400, "tool_choice")


def test_a_grammar_of_the_request_is_not_dropped_for_the_tools(chat):
    """llama-server refuses both together; to obey is as good."""
    import openai

    try:
        answer = chat.create(tools=[ADD], extra_body={"grammar": 'root ::= "a"'}, **OPTIONS)
    except openai.BadRequestError as error:
        assert "grammar" in str(error)
    else:
        assert answer.choices[0].message.content == "a"
