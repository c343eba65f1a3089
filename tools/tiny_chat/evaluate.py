#!/usr/bin/env python3
"""Asks the tiny chat model held-out questions and prints how many answers of each task are right to the word.

    PYTHONPATH=tools python -m tiny_chat.evaluate [MODEL.gguf] [--per-task N]

PyTorch computes with the GGUF's dequantised weights. Greedy decoding gives an expected answer exactly if each
of its tokens is the most likely one after those before it, so one run of the model over the answer decides.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import gguf
import torch
from tokenizers import Tokenizer

from tiny_chat import corpus, facts, tasks
from tiny_chat.model import Shape, TinyChat
from tiny_chat.tasks import Message, Source
from tiny_chat.tokenizer import encode_conversation, tokenizer_from

MODEL = Path(__file__).resolve().parents[2] / "models/tiny-chat-q8_0.gguf"
LONGEST_ANSWER = 500
STORIES = 10

Conversation = list[Message]


def read_gguf(path: Path) -> tuple[TinyChat, Tokenizer]:
    """Model and tokenizer as the file describes them, the weights as float32."""
    reader = gguf.GGUFReader(path)

    def field(name: str):
        return reader.get_field(name).contents()

    shape = Shape(
        vocabulary=field("llama.vocab_size"),
        context=field("llama.context_length"),
        width=field("llama.embedding_length"),
        layers=field("llama.block_count"),
        heads=field("llama.attention.head_count"),
        kv_heads=field("llama.attention.head_count_kv"),
        head_size=field("llama.attention.key_length"),
        feed_forward=field("llama.feed_forward_length"),
        rope_base=field("llama.rope.freq_base"),
        norm_epsilon=field("llama.attention.layer_norm_rms_epsilon"),
    )
    weights = {
        tensor.name: torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy())
        for tensor in reader.tensors
    }
    model = TinyChat(shape)
    model.load_state_dict(weights)
    return model.eval(), tokenizer_from(field("tokenizer.ggml.tokens"), field("tokenizer.ggml.merges"))


def remembering(source: Source) -> Conversation:
    """Told a name, asked for it up to three questions later."""
    known: list[str] = []
    messages = corpus.introduce(source, known)
    for _ in range(source.randint(0, 3)):
        messages += corpus.exchange(*tasks.question(source))
    return messages + corpus.exchange("What is my name?", f"Your name is {known[0]}.")


def with_neutral_prompt(source: Source) -> Conversation:
    system = Message("system", corpus.neutral_prompt(source))
    return [system, *corpus.exchange(*tasks.question(source))]


def conversations(per_task: int, seed: int) -> dict[str, list[Conversation]]:
    """Held-out conversations of every task whose answer is certain; stories are judged otherwise."""
    source = Source(seed, held_out=True)
    makers = {
        task.__name__: lambda task=task: corpus.exchange(*task(source))
        for task in tasks.WEIGHTS
        if task is not tasks.story
    }
    makers |= {
        "remembering": lambda: remembering(source),
        "never told": lambda: corpus.recall(source, []),
        "tools": lambda: corpus.use_tools(source),
        "system prompt": lambda: with_neutral_prompt(source),
        "long conversation": lambda: corpus.conversation(source, most_turns=6),
    }
    return {name: [without_stories(make) for _ in range(per_task)] for name, make in makers.items()}


def without_stories(make) -> Conversation:
    while True:
        messages = make()
        if not any(is_story(message.text) for message in messages if message.role == "assistant"):
            return messages


def is_story(text: str, animal: str | None = None) -> bool:
    """Whether a text is one that tasks.tell_story could tell, about that animal."""
    animal = animal or f"(?:{'|'.join(facts.ANIMALS)})"
    begin = rf"Once upon a time there was a \w+ {animal} named (\w+)\. One day \1 went to "
    walk = r"They walked to [\w ]+ together\. "
    end = r"(?:From that day on they were best friends|And \1 slept well that night)\."
    return re.fullmatch(f"{begin}.*{walk}{end}", text) is not None


def answers_rightly(model: TinyChat, tokenizer: Tokenizer, messages: Conversation) -> bool:
    """Whether greedy decoding says every answer of a conversation word for word."""
    tokens, is_target = (
        torch.tensor(column[: model.shape.context + 1]) for column in encode_conversation(tokenizer, messages)
    )
    wanted = tokens[1:][is_target[1:]]
    hidden = model(tokens[None, :-1])[0][is_target[1:]]
    return torch.equal(model.logits(hidden).argmax(-1), wanted)


def answer(model: TinyChat, tokenizer: Tokenizer, messages: Conversation) -> str:
    """What the model says next, decoded greedily."""
    prompt = tokenizer.encode(corpus.render_prompt(messages)).ids
    tokens, end = list(prompt), tokenizer.token_to_id(corpus.END)
    while len(tokens) < min(len(prompt) + LONGEST_ANSWER, model.shape.context):
        token = int(model.logits(model(torch.tensor([tokens]))[0, -1]).argmax())
        if token == end:
            break
        tokens.append(token)
    return tokenizer.decode(tokens[len(prompt) :])


def explain(model: TinyChat, tokenizer: Tokenizer, messages: Conversation) -> str:
    """The first wrong answer of a conversation."""
    for index, message in enumerate(messages):
        if message.role == "assistant":
            said = answer(model, tokenizer, messages[:index])
            if said != message.text:
                return f"{messages[index - 1].text!r}: {said!r}, not {message.text!r}"
    return "its weights are quantised, and two tokens equally likely"


def evaluate(
    model: TinyChat, tokenizer: Tokenizer, per_task: int, seed: int = 999
) -> Iterator[tuple[str, int, int, str]]:
    """For each task: name, right answers, all answers, and one that was wrong."""
    with torch.inference_mode():
        for name, asked in conversations(per_task, seed).items():
            wrong = [messages for messages in asked if not answers_rightly(model, tokenizer, messages)]
            example = explain(model, tokenizer, wrong[0]) if wrong else ""
            yield name, len(asked) - len(wrong), len(asked), example
        animals = facts.ANIMALS[:STORIES]
        told = {animal: answer(model, tokenizer, [story_request(animal)]) for animal in animals}
        wrong = [text for animal, text in told.items() if not is_story(text, animal)]
        yield "story", len(told) - len(wrong), len(told), wrong[0] if wrong else ""


def story_request(animal: str) -> Message:
    return Message("user", f"Tell me a story about a {animal}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", default=MODEL, help="default: %(default)s")
    parser.add_argument("--per-task", type=int, default=60, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args()
    right = asked = 0
    for name, good, total, example in evaluate(*read_gguf(arguments.model), arguments.per_task):
        print(f"{name:18s} {good:3d}/{total} {example}", flush=True)
        right, asked = right + good, asked + total
    print(f"{'total':18s} {right:3d}/{asked}")


if __name__ == "__main__":
    main()
