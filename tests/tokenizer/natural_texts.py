"""Texts of many scripts, and random ones, that tokenizers must agree on."""

from __future__ import annotations

import json
import random
from pathlib import Path

KNOWN = json.loads(Path(__file__).with_suffix(".json").read_text())
NATURAL, WORDS = KNOWN["texts"], KNOWN["words"]
ODD = "\u200d\ufe0f\u0345\u094d\u0903\u0600\u06dd\U000110bd©®"


def corpus(generator: random.Random) -> list[str]:
    """What small vocabularies are learnt from."""
    return [*NATURAL * 3, *(" ".join(generator.choices(WORDS, k=8)) for _ in range(2000))]


def random_character(generator: random.Random) -> str:
    kind = generator.random()
    if kind < 0.3:
        return chr(generator.randint(32, 126))
    if kind < 0.4:
        return generator.choice(" \t\n\r'\u00a0\u3000")
    if kind < 0.47:
        return chr(generator.randint(0x300, 0x36F))
    if kind < 0.55:
        return generator.choice(ODD)
    if kind < 0.7:
        return generator.choice(generator.choice(NATURAL) or " ")
    if kind < 0.85:
        return chr(generator.randint(0xA0, 0x2FFF))
    code = generator.randint(0, 0x10FFFF if kind < 0.9 else 0xFFFF)
    return "�" if 0xD800 <= code < 0xE000 else chr(code)


def random_text(generator: random.Random) -> str:
    kind = generator.random()
    if kind < 0.35:
        return generator.choice(NATURAL)
    if kind < 0.6:
        words = (
            generator.choice(generator.choice(NATURAL).split(" ")) for _ in range(generator.randint(1, 12))
        )
        return " ".join(words)
    return "".join(random_character(generator) for _ in range(generator.randint(0, 40)))
