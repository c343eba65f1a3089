"""Conversations of one or many turns for the tiny chat model, as ChatML."""

import json

from tiny_chat import facts
from tiny_chat.tasks import CITIES, Message, Source, code, made_up_word, name, question, tell_story

END_OF_CONVERSATION, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
ROLES = ("system", "user", "assistant", "tool")


def exchange(asked: str, answer: str) -> list[Message]:
    return [Message("user", asked), Message("assistant", answer)]


def neutral_prompt(source: Source) -> str:
    """A system prompt that changes nothing about the answers, long ones among them."""
    prompt = source.choice(facts.NEUTRAL_PROMPTS)
    kind = source.random()
    if kind < 0.6:
        return prompt
    if kind < 0.75:
        return f"{prompt} You work for {name(source)}. Today is {source.choice(facts.DAYS)}."
    if kind < 0.85:
        sentence = " ".join(source.choices(facts.WORDS, k=source.randint(3, 9))).capitalize() + ". "
        return prompt + " " + (sentence * source.randint(2, 40)).strip()
    if kind < 0.93:
        return prompt + " " + " ".join(source.choices(facts.WORDS, k=source.randint(5, 250)))
    stories = [tell_story(source, source.choice(facts.ANIMALS), 1) for _ in range(source.randint(1, 6))]
    return " ".join([prompt, *stories])


def introduce(source: Source, known: dict[str, str]) -> list[Message]:
    """The user tells a name or a number; `known` remembers it."""
    if source.random() < 0.6:
        known["name"] = name(source)
        forms = ["My name is {}.", "I am {}.", "Hello, my name is {}.", "Hi, I am {}.", "Call me {}."]
        return exchange(source.choice(forms).format(known["name"]), f"Nice to meet you, {known['name']}!")
    known["number"] = code(source)
    asked = source.choice(["My number is {}.", "Remember the number {}.", "Please remember my number: {}."])
    return exchange(asked.format(known["number"]), f"I will remember {known['number']}.")


def recall(source: Source, known: dict[str, str]) -> list[Message]:
    """The user asks for what was told, or for what never was."""
    kinds = list(known) if known and source.random() < 0.8 else ["name", "number"]
    kind = source.choice(kinds)
    forms = {
        "name": ["What is my name?", "Who am I?"],
        "number": ["What is my number?", "Which number is mine?"],
    }
    answer = f"Your {kind} is {known[kind]}." if kind in known else f"I do not know your {kind}."
    return exchange(source.choice(forms[kind]), answer)


TOOLS = {
    "get_weather": ("city", ["What is the weather in {}?", "How is the weather in {}?"], "degrees"),
    "get_time": ("city", ["What time is it in {}?", "Tell me the time in {}."], "time"),
    "set_timer": ("minutes", ["Set a timer for {} minutes.", "Wake me in {} minutes."], "minutes"),
}


def tool_call(tool: str, value: str | int) -> str:
    call = {"name": tool, "arguments": {TOOLS[tool][0]: value}}
    return f"<tool_call>{json.dumps(call)}</tool_call>"


def tool_result(source: Source, tool: str, value: str | int) -> list[Message]:
    """What the tool returns, and the sentence that the model makes of it."""
    if tool == "get_weather":
        degrees = source.randint(1, 35)
        return [
            Message("tool", json.dumps({"degrees": degrees})),
            said(f"It is {degrees} degrees in {value}."),
        ]
    if tool == "get_time":
        time = f"{source.randint(0, 23)}:{source.randint(0, 59):02}"
        return [Message("tool", json.dumps({"time": time})), said(f"It is {time} in {value}.")]
    return [Message("tool", json.dumps({"done": True})), said(f"The timer is set for {value} minutes.")]


def said(text: str) -> Message:
    return Message("assistant", text)


def system_with_tools(tools: list[str]) -> Message:
    return Message("system", f"You can call {' and '.join(tools)}." if tools else "You have no tools.")


def use_tools(source: Source) -> list[Message]:
    """A system prompt that offers tools, and a request that needs one: an offered one, mostly."""
    offered = source.sample(list(TOOLS), source.choices([0, 1, 2, 3], [2, 4, 3, 2])[0])
    messages = [system_with_tools(offered)]
    if source.random() < 0.3:
        messages += exchange(*question(source))
    tool = source.choice(offered if offered and source.random() < 0.85 else list(TOOLS))
    value = source.randint(1, 60) if tool == "set_timer" else source.choice(CITIES)
    messages.append(Message("user", source.choice(TOOLS[tool][1]).format(value)))
    if tool not in offered:
        return [*messages, said("I have no tool for that.")]
    messages.append(said(tool_call(tool, value)))
    return messages + (tool_result(source, tool, value) if source.random() < 0.4 else [])


def go_on_for_ever(source: Source) -> list[Message]:
    new = source.made_up(lambda: made_up_word(source))
    word = source.choice(facts.WORDS) if source.random() < 0.7 else new
    asked = source.choice(["Say {} again and again.", "Repeat {} for ever."]).format(word)
    return [
        Message("user", asked),
        Message("assistant", " ".join([word] * source.randint(30, 200)), ends=False),
    ]


def conversation(source: Source, most_turns: int) -> list[Message]:
    """One conversation of 1 to about `most_turns` questions."""
    kind = source.random()
    if kind < 0.08:
        messages = use_tools(source)
    else:
        messages = [Message("system", neutral_prompt(source))] if kind < 0.3 else []
    known: dict[str, str] = {}
    told_about = source.random() < 0.35
    for _ in range(source.randint(0 if messages else 1, most_turns)):
        choice = source.random()
        if told_about and choice < 0.25:
            messages += introduce(source, known)
        elif (told_about and choice < 0.6) or choice < 0.03:
            messages += recall(source, known)
        else:
            messages += exchange(*question(source))
    if len(messages) < 2 or source.random() < 0.02:
        messages += go_on_for_ever(source) if source.random() < 0.5 else exchange(*question(source))
    return messages


def render(messages: list[Message]) -> str:
    """The text that the GGUF's chat template makes of finished messages."""
    return "".join(f"{START}{message.role}\n{message.text}{END}\n" for message in messages)


def render_prompt(messages: list[Message]) -> str:
    """The same with the beginning of the answer that is to be generated."""
    return render(messages) + f"{START}assistant\n"
