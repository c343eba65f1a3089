"""Calls that a request forces, of a model that never makes one by itself: random weights."""

from __future__ import annotations

from typing import Literal

import anthropic
import openai
import pydantic
import pytest
from serve_program import TEMPLATES, ask_openai, in_tree


class Arguments(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True)


class AddNumbers(Arguments):
    a: int
    b: int


class Find(Arguments):
    what: Literal["fox", "dog"]
    often: bool


FORMS: dict[str, type[Arguments]] = {"add_numbers": AddNumbers, "find": Find}
SCHEMAS = {name: form.model_json_schema() for name, form in FORMS.items()}
TOOLS = [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in SCHEMAS.items()]
FLAT_TOOLS = [{"type": "function", "name": n, "parameters": s} for n, s in SCHEMAS.items()]
CLAUDE_TOOLS = [{"name": n, "input_schema": s} for n, s in SCHEMAS.items()]
QUESTION = [{"role": "user", "content": "What is 2+3?"}]
FAMILIES = {
    "Hermes 3": "NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja",
    "Llama 3.1": "meta-llama-Llama-3.1-8B-Instruct.jinja",
    "Qwen 2.5": "Qwen-Qwen2.5-7B-Instruct.jinja",
    "Qwen 3": "Qwen-Qwen3-0.6B.jinja",
}
#: The answers differ by it; of templates that think no thought is begun here.
PLAIN = {"chat_template_kwargs": {"enable_thinking": False}, "parallel_tool_calls": False}
OPTIONS = {"model": "any", "seed": 3, "max_tokens": 600, "messages": QUESTION}


def start(serve, models, template: str):
    path = in_tree(TEMPLATES / template)
    more = ["--ctx-size", 8192, "--parallel", 1, "--chat-template-file", path]
    return serve(*more, model=models / "stories.gguf")


@pytest.fixture(scope="module", params=FAMILIES)
def server(request, serve, models):
    return start(serve, models, FAMILIES[request.param])


@pytest.fixture(scope="module")
def thinker(serve, models):
    return start(serve, models, FAMILIES["Qwen 3"])


def check_arguments(name: str, text: str) -> None:
    FORMS[name].model_validate_json(text)


def only_call(message) -> str:
    """The name of a chat's call, beside which nothing else is said."""
    (call,) = message.tool_calls
    assert not message.content
    check_arguments(call.function.name, call.function.arguments)
    return call.function.name


#: How a chat can force a call, and what it leaves.
CHOICES = [
    ("required", set(SCHEMAS)),
    ({"type": "function", "function": {"name": "find"}}, {"find"}),
    (
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "add_numbers"}}],
            },
        },
        {"add_numbers"},
    ),
]


def test_the_model_makes_no_call_of_its_own_accord(server):
    options = {**OPTIONS, "max_tokens": 60, "extra_body": PLAIN}
    answer = ask_openai(server).chat.completions.create(tools=TOOLS, **options).choices[0]
    assert answer.finish_reason == "length" and not answer.message.tool_calls
    assert len(answer.message.content) > 20


@pytest.mark.parametrize(("choice", "names"), CHOICES, ids=["required", "named", "allowed"])
def test_a_forced_call_is_the_whole_answer_of_a_chat(server, choice, names):
    chat = ask_openai(server).chat.completions
    options = {**OPTIONS, "tools": TOOLS, "tool_choice": choice, "extra_body": PLAIN}
    for seed in (1, 2):
        answer = chat.create(**{**options, "seed": seed}).choices[0]
        assert only_call(answer.message) in names
        assert answer.finish_reason == "tool_calls"
    chunks = list(chat.create(stream=True, **options))
    deltas = [delta for chunk in chunks for delta in chunk.choices[0].delta.tool_calls or []]
    assert {delta.index for delta in deltas} == {0} and deltas[0].function.name in names
    check_arguments(deltas[0].function.name, "".join(delta.function.arguments or "" for delta in deltas))
    assert not any(chunk.choices[0].delta.content for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_the_first_names_of_tools_force_a_call_too(server):
    chat = ask_openai(server).chat.completions
    functions = [tool["function"] for tool in TOOLS]
    kwargs = {"chat_template_kwargs": PLAIN["chat_template_kwargs"]}
    options = {**OPTIONS, "functions": functions, "function_call": {"name": "find"}, "extra_body": kwargs}
    answer = chat.create(**options).choices[0]
    assert answer.finish_reason == "function_call" and answer.message.tool_calls is None
    assert answer.message.function_call.name == "find"
    check_arguments("find", answer.message.function_call.arguments)
    deltas = [c.choices[0].delta.function_call for c in chat.create(stream=True, **options)]
    deltas = [delta for delta in deltas if delta]
    assert deltas[0].name == "find"
    check_arguments("find", "".join(delta.arguments or "" for delta in deltas))


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", set(SCHEMAS)),
        ({"type": "function", "name": "find"}, {"find"}),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "add_numbers"}],
            },
            {"add_numbers"},
        ),
    ],
    ids=["required", "named", "allowed"],
)
def test_a_forced_call_is_the_only_item_of_a_response(server, choice, names):
    responses = ask_openai(server).responses
    options = {"model": "any", "input": "What is 2+3?", "tools": FLAT_TOOLS, "tool_choice": choice}
    options |= {"max_output_tokens": 600, "extra_body": {**PLAIN, "seed": 3}}
    answer = responses.create(**options)
    with responses.stream(**options) as stream:
        streamed = [event for event in stream][-1].response
    for response in (answer, streamed):
        (call,) = response.output
        assert response.status == "completed" and call.type == "function_call" and call.name in names
        check_arguments(call.name, call.arguments)


@pytest.mark.parametrize(
    ("choice", "names"),
    [({"type": "any"}, set(SCHEMAS)), ({"type": "tool", "name": "add_numbers"}, {"add_numbers"})],
    ids=["any", "named"],
)
def test_a_forced_call_is_the_only_block_of_a_message(server, choice, names):
    client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=60)
    options = {"model": "any", "max_tokens": 600, "messages": QUESTION, "tools": CLAUDE_TOOLS}
    options |= {"extra_body": {"seed": 3}, "tool_choice": {**choice, "disable_parallel_tool_use": True}}
    answer = client.messages.create(**options)
    with client.messages.stream(**options) as stream:
        streamed = stream.get_final_message()
    for message in (answer, streamed):
        (block,) = message.content
        assert (message.stop_reason, block.type) == ("tool_use", "tool_use") and block.name in names
        FORMS[block.name].model_validate(block.input)


def test_calls_that_the_limit_cuts_are_not_said_to_be_whole(server):
    client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=60)
    options = {"model": "any", "max_tokens": 60, "messages": QUESTION, "tools": CLAUDE_TOOLS}
    options |= {"extra_body": {"seed": 3}, "tool_choice": {"type": "any"}}
    with client.messages.stream(**options) as stream:
        streamed = stream.get_final_message()
    for message in (client.messages.create(**options), streamed):
        assert [block.type for block in message.content] == ["tool_use"], "it has begun"
        assert message.stop_reason == "max_tokens"


def test_a_thought_may_come_before_a_forced_call(thinker):
    """The model would never end it: its budget does."""
    chat = ask_openai(thinker).chat.completions
    begun = {"parallel_tool_calls": False, "reasoning_budget_tokens": 8}
    for seed in range(4):
        options = {**OPTIONS, "seed": seed, "tools": TOOLS, "tool_choice": "required", "extra_body": begun}
        answer = chat.create(**options).choices[0]
        assert only_call(answer.message) in SCHEMAS
        assert answer.finish_reason == "tool_calls"


def test_thoughts_that_are_not_told_apart_do_not_let_a_text_before_the_call(thinker):
    options = {**OPTIONS, "tools": TOOLS, "tool_choice": "required"}
    plain = {**PLAIN, "reasoning_format": "none"}
    answer = ask_openai(thinker).chat.completions.create(**options, extra_body=plain).choices[0]
    (call,) = answer.message.tool_calls
    check_arguments(call.function.name, call.function.arguments)


def test_a_call_cannot_be_forced_into_an_answer_that_was_begun(thinker):
    begun = [*QUESTION, {"role": "assistant", "content": "It is"}]
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(thinker).chat.completions.create(
            tools=TOOLS, tool_choice="required", **{**OPTIONS, "messages": begun}
        )
    assert caught.value.param == "tool_choice"


@pytest.mark.parametrize("choice", ["auto", "none", "required", CHOICES[1][0]], ids=str)
def test_a_choice_without_tools_is_refused_as_openai_does(thinker, choice):
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(thinker).chat.completions.create(tool_choice=choice, **OPTIONS)
    assert caught.value.param == "tool_choice" and "tools" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("tool_choice", {"type": "function", "function": {"name": "fly"}}),
        ("tool_choice.type", {"type": "custom", "custom": {"name": "find"}}),
        ("tool_choice.allowed_tools.mode", {"type": "allowed_tools", "allowed_tools": {"mode": "some"}}),
        (
            "tool_choice.allowed_tools.tools",
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        ),
    ],
)
def test_a_choice_that_cannot_be_had_is_named(thinker, field, wrong):
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(thinker).chat.completions.create(tools=TOOLS, tool_choice=wrong, **OPTIONS)
    assert caught.value.param == field


def test_a_tool_of_another_kind_is_named(thinker):
    tools = [{"type": "custom", "custom": {"name": "shell"}}]
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(thinker).chat.completions.create(tools=tools, **OPTIONS)
    assert caught.value.param == "tools[0].type"


class Animal(Arguments):
    kind: Literal["fox", "dog"]
    wild: bool


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_answer_that_may_be_a_call_follows_its_schema_or_the_tools(server, streams):
    """Frameworks ask for both at once: the tools on the way, and the form of what is said in the end."""
    form = {"name": "animal", "schema": Animal.model_json_schema()}
    options = {**OPTIONS, "tools": TOOLS, "response_format": {"type": "json_schema", "json_schema": form}}
    chat = ask_openai(server).chat.completions
    said = called = 0
    for seed in range(6):
        more = {**options, "seed": seed, "extra_body": PLAIN}
        if streams:
            with chat.stream(**more) as stream:
                message = stream.get_final_completion().choices[0].message
        else:
            message = chat.create(**more).choices[0].message
        if message.tool_calls:
            assert only_call(message) in SCHEMAS
            called += 1
        else:
            assert Animal.model_validate_json(message.content)
            said += 1
    assert said + called == 6 and said > 0


def test_a_template_that_does_not_go_with_the_vocabulary_is_named(serve, models):
    """Its answers begin with a letter, before which this vocabulary puts a space."""
    server = start(serve, models, "Reka-Edge.jinja")
    with pytest.raises(openai.BadRequestError) as caught:
        ask_openai(server).chat.completions.create(
            tools=TOOLS, tool_choice="required", **{**OPTIONS, "extra_body": PLAIN}
        )
    assert caught.value.param == "tools"
    assert "'assistant:" in str(caught.value) and "vocabulary" in str(caught.value)
