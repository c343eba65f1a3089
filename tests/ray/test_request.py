"""What a request may be."""

from __future__ import annotations

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

from headrace.ray import Request, RequestError

HELLO = {"role": "user", "content": "Hello."}


def test_a_prompt_keeps_its_parameters_and_defaults():
    request = Request.read({"prompt": "Hello.", "parameters": {"temperature": 0}})
    assert (request.prompt, request.stream, request.priority, request.session) == (
        "Hello.",
        True,
        "normal",
        None,
    )
    assert request.model_parameters() == {"strict": True, "temperature": 0, "priority": "normal"}
    assert request.messages == [], "a prompt is as it is"


def test_messages_are_the_whole_conversation():
    before = [{"role": "system", "content": "Be brief."}, {"role": "assistant", "content": ""}]
    request = Request.read({"messages": [*before, HELLO], "priority": "high"})
    assert request.prompt == "Hello."
    assert request.messages == [*before, HELLO]
    assert request.model_parameters() == {"strict": True, "priority": "high"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "missing or null; it must be an object"),
        ([HELLO], "a list; it must be an object"),
        ({}, "either 'messages' or 'prompt'"),
        ({"prompt": ""}, "'prompt' is empty"),
        ({"prompt": 7}, "'prompt' is a number"),
        ({"prompt": "\ud800"}, "half of a surrogate pair at character 0"),
        ({"prompt": "a", "max_tokens": 3}, "'max_tokens' is not known"),
        ({"prompt": "a", "stream": 1}, "'stream' is 1; it must be one of true, false"),
        ({"prompt": "a", "priority": ["high"]}, "'priority' is"),
        ({"prompt": "a", "session": ""}, "'session' must be a text of 1 to 256"),
        ({"prompt": "a", "session": "x" * 257}, "'session' must be"),
        ({"prompt": "a", "parameters": []}, "'parameters' is empty; it must be an object"),
        ({"prompt": "a", "parameters": {"session.id": "b"}}, "use 'session'"),
        ({"prompt": "a", "parameters": {"session": {"id": "b"}}}, "use 'session'"),
        ({"prompt": "a", "parameters": {"session_id": "b"}}, "use 'session'"),
        ({"prompt": "a", "parameters": {"chat.history": True}}, "use 'messages'"),
        ({"prompt": "a", "parameters": {"scheduling": {"priority": "high"}}}, "use 'priority'"),
        ({"prompt": "a", "parameters": {"top_p": float("inf")}}, "cannot be written as JSON"),
        ({"messages": []}, "'messages' is empty"),
        ({"messages": "Hello."}, "'messages' is a text"),
        ({"messages": [{"role": "user"}]}, "'messages[0]' must be an object with"),
        ({"messages": [{"role": "user", "content": None}]}, "'messages[0].content' is missing or null"),
        (
            {"messages": [{"role": "robot", "content": "a"}]},
            "'messages[0].role' is \"robot\"; it must be one of",
        ),
        ({"messages": [HELLO, {"role": "assistant", "content": "Hi."}]}, "must be the user's"),
        ({"messages": [{"role": "user", "content": ""}]}, "not empty"),
    ],
)
def test_a_wrong_request_is_told_what_would_be_right(value, message):
    with pytest.raises(RequestError) as error:
        Request.read(value)
    assert message in str(error.value)


def test_the_affinity_is_the_sessions_or_the_beginnings():
    def affinity(**request):
        return Request.read(request).affinity()

    assert affinity(prompt="a", session="s") == affinity(prompt="b", session="s")
    assert affinity(prompt="a", session="s") != affinity(prompt="a", session="t")
    beginning = "a" * 300
    assert affinity(prompt=f"{beginning}b") == affinity(prompt=f"{beginning}c")
    assert affinity(prompt="b") != affinity(prompt="c")
    turns = [HELLO, {"role": "assistant", "content": "Hi. " * 80}, {"role": "user", "content": "And?"}]
    longer = [*turns, {"role": "assistant", "content": "So."}, HELLO]
    assert affinity(messages=turns) == affinity(messages=longer)
