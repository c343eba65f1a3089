import itertools
import json
import re

from tiny_chat import corpus
from tiny_chat.tasks import Message, Source


def conversations(count=400, most_turns=6):
    source = Source(11)
    return [corpus.conversation(source, most_turns) for _ in range(count)]


def test_every_user_is_answered_and_only_the_first_message_is_the_system_prompt():
    for messages in conversations():
        assert messages[-1].role == "assistant"
        for before, after in itertools.pairwise(messages):
            assert (
                after.role in {"system": {"user"}, "user": {"assistant"}, "assistant": {"user"}}[before.role]
            )


def test_the_last_name_that_was_told_is_the_one_recalled():
    recalled = 0
    for messages in conversations(most_turns=12):
        told = None
        for message in messages:
            told = found[1] if (found := re.match(r"Nice to meet you, (\w+)!", message.text)) else told
            if message.role == "assistant" and "our name" in message.text:
                expected = f"Your name is {told}." if told else "I do not know your name."
                assert message.text == expected
                recalled += 1
    assert recalled > 50


def test_a_tool_is_called_with_valid_json_exactly_if_it_is_offered():
    source = Source(2)
    calls = refusals = 0
    for _ in range(300):
        system, *rest = corpus.use_tools(source)
        for message in rest:
            if message.text.startswith("<tool_call>"):
                call = json.loads(message.text.removeprefix("<tool_call>").removesuffix("</tool_call>"))
                assert call["name"] in system.text
                assert list(call["arguments"]) == [corpus.TOOLS[call["name"]][0]]
                calls += 1
            refusals += message.text == "I have no tool for that."
    assert calls > 100 and refusals > 20


def test_messages_are_rendered_as_chatml():
    messages = [Message("user", "Hi"), Message("assistant", "Hello!")]
    assert corpus.render(messages) == (
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
    )
    assert corpus.render_prompt(messages[:1]) == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
