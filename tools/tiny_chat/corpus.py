"""Conversations of one or many turns for the tiny chat model, as ChatML."""

import json

from tiny_chat import facts
from tiny_chat.tasks import CITIES, Message, Source, name, question

END_OF_CONVERSATION, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
ROLES = ("system", "user", "assistant", "tool")


def exchange(asked: str, answer: str) -> list[Message]:
    return [Message("user", asked), Message("assistant", answer)]


def neutral_prompt(source: Source) -> str:
    """A system prompt that changes nothing about the answers."""
    prompt = source.choice(facts.NEUTRAL_PROMPTS)
    return prompt if source.random() < 0.8 else f"{prompt} You work for {name(source)}."


def introduce(source: Source, known: list[str]) -> list[Message]:
    """The user tells a name; `known` remembers the last one."""
    known[:] = [name(source)]
    forms = ["My name is {}.", "I am {}.", "Hello, my name is {}.", "Call me {}."]
    return exchange(source.choice(forms).format(known[0]), f"Nice to meet you, {known[0]}!")


def recall(source: Source, known: list[str]) -> list[Message]:
    """The user asks for the name that was told, or for one that never was."""
    answer = f"Your name is {known[0]}." if known else "I do not know your name."
    return exchange(source.choice(["What is my name?", "Who am I?"]), answer)


TOOLS = {"get_weather": ("city", ["What is the weather in {}?", "How is the weather in {}?"])}


def tool_call(tool: str, value: str | int) -> str:
    call = {"name": tool, "arguments": {TOOLS[tool][0]: value}}
    return f"<tool_call>{json.dumps(call)}</tool_call>"


def said(text: str) -> Message:
    return Message("assistant", text)


def system_with_tools(tools: list[str]) -> Message:
    return Message("system", f"You can call {' and '.join(tools)}." if tools else "You have no tools.")


def use_tools(source: Source) -> list[Message]:
    """A system prompt that offers a tool or none, and a request that needs one."""
    offered = ["get_weather"] if source.random() < 0.7 else []
    city = source.choice(CITIES)
    asked = Message("user", source.choice(TOOLS["get_weather"][1]).format(city))
    answer = tool_call("get_weather", city) if offered else "I have no tool for that."
    return [system_with_tools(offered), asked, said(answer)]


def conversation(source: Source, most_turns: int) -> list[Message]:
    """One conversation of 1 to about `most_turns` questions."""
    kind = source.random()
    if kind < 0.08:
        messages = use_tools(source)
    else:
        messages = [Message("system", neutral_prompt(source))] if kind < 0.3 else []
    known: list[str] = []
    told_about = source.random() < 0.25
    for _ in range(source.randint(0 if len(messages) > 1 else 1, most_turns)):
        choice = source.random()
        if told_about and (choice < 0.3 or not known):
            messages += introduce(source, known)
        elif (told_about and choice < 0.6) or choice < 0.02:
            messages += recall(source, known)
        else:
            messages += exchange(*question(source))
    return messages


def render(messages: list[Message]) -> str:
    """The text that the GGUF's chat template makes of finished messages."""
    return "".join(f"{START}{message.role}\n{message.text}{END}\n" for message in messages)


def render_prompt(messages: list[Message]) -> str:
    """The same with the beginning of the answer that is to be generated."""
    return render(messages) + f"{START}assistant\n"
