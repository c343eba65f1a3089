#!/usr/bin/env python3
"""Trains the tiny chat model from nothing and writes it as GGUF.

    PYTHONPATH=tools python -m tiny_chat.train [--output models/tiny-chat-q8_0.gguf]

The same PyTorch on the same kind of CPU writes the same bytes: seeds, thread count and algorithms are fixed.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from tiny_chat import corpus
from tiny_chat.export import write_gguf
from tiny_chat.model import TinyChat
from tiny_chat.optimizer import Optimizer
from tiny_chat.tasks import Source
from tiny_chat.tokenizer import encode_conversation, train_tokenizer

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "models/tiny-chat-q8_0.gguf"
LONG_CONVERSATIONS = 0.05


class Batches:
    """Endless batches of about 3,072 tokens. Conversations of like length share one, to save padding."""

    TOKENS = 3072
    POOL = 1024

    def __init__(self, tokenizer: Tokenizer, context: int, seed: int):
        self.tokenizer, self.context = tokenizer, context
        self.source = Source(seed)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Tokens [B, T] and the tokens that are to be predicted there (-100: none)."""
        while True:
            batches = list(self.split([self.conversation() for _ in range(self.POOL)]))
            self.source.shuffle(batches)
            yield from map(self.pad, batches)

    def conversation(self) -> tuple[list[int], list[int]]:
        """Inputs and, one further, what should follow them."""
        most_turns = 8 if self.source.random() < LONG_CONVERSATIONS else 3
        messages = corpus.conversation(self.source, most_turns)
        tokens, is_target = encode_conversation(self.tokenizer, messages)
        wanted = [token if target else -100 for token, target in zip(tokens, is_target, strict=True)]
        return tokens[:-1][: self.context], wanted[1:][: self.context]

    def split(self, pool: list) -> Iterator[list]:
        batch = []
        for conversation in sorted(pool, key=lambda pair: len(pair[0])):
            if (len(batch) + 1) * len(conversation[0]) > self.TOKENS:
                yield batch
                batch = []
            batch.append(conversation)
        yield batch

    def pad(self, batch: list) -> tuple[Tensor, Tensor]:
        length = len(batch[-1][0])
        tokens = [[*tokens, *[0] * (length - len(tokens))] for tokens, _ in batch]
        wanted = [[*wanted, *[-100] * (length - len(wanted))] for _, wanted in batch]
        return torch.tensor(tokens), torch.tensor(wanted)


def rate_scale(step: int, steps: int) -> float:
    """Learning rate over time: 30 steps up, level for nearly half, then down to a fiftieth."""
    warm_up = min(1.0, (step + 1) / 30)
    done = step / steps
    return warm_up * (1.0 if done < 0.45 else max(0.02, (1 - done) / 0.55))


def loss_of(model: TinyChat, tokens: Tensor, wanted: Tensor) -> Tensor:
    chosen = wanted != -100
    with torch.autocast("cpu", torch.bfloat16):
        logits = model.logits(model(tokens)[chosen])
    return functional.cross_entropy(logits.float(), wanted[chosen])


class Progress:
    def __init__(self, steps: int, every: int = 50):
        self.steps, self.every = steps, every
        self.begin = time.monotonic()
        self.losses: list[float] = []

    def add(self, step: int, loss: float) -> None:
        self.losses.append(loss)
        if (step + 1) % self.every == 0 or step + 1 == self.steps:
            mean = sum(self.losses) / len(self.losses)
            seconds = time.monotonic() - self.begin
            print(f"{step + 1}/{self.steps} loss {mean:.4f}, {seconds:.0f} s", flush=True)
            self.losses = []


def train(steps: int) -> tuple[TinyChat, Tokenizer]:
    torch.set_num_threads(1)  # more threads add in another order
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(7)
    tokenizer = train_tokenizer()
    model = TinyChat()
    batches = iter(Batches(tokenizer, model.shape.context, seed=42))
    optimizer = Optimizer(model)
    progress = Progress(steps)
    for step in range(steps):
        loss = loss_of(model, *next(batches))
        loss.backward()
        optimizer.step(rate_scale(step, steps))
        progress.add(step, loss.item())
    return model, tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the GGUF (default: %(default)s)")
    parser.add_argument(
        "--steps", type=int, default=1400, help="batches of about 3,072 tokens (default: %(default)s)"
    )
    arguments = parser.parse_args()
    write_gguf(arguments.output, *train(arguments.steps))
    print(f"{arguments.output}: {arguments.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
