"""Whether two servers give the same greedy answers, and how near a tie was where they part."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

from raw_http import Connection, request_bytes
from serve_load import words

#: Words of the prompts, and tokens that are generated from each.
PROMPTS, TOKENS, CANDIDATES = (4, 16, 64, 300), 32, 10
#: Both round activations, each its own way: below this distance (of logarithms) either choice is right. With
#: random weights of 0.6B in q8_0 the first token of one chat differs by 0.3.
TIE = 0.5


@dataclass(frozen=True)
class Choice:
    """A token, and the logarithms of the likeliest ones' probabilities."""

    token: int
    likeliest: dict[int, float]

    def lead(self, other: int) -> float:
        """How far the chosen one is ahead of another; infinite for one that is not among the likeliest."""
        return self.likeliest[self.token] - self.likeliest.get(other, float("-inf"))


@dataclass(frozen=True)
class Parting:
    """The first token that differs, and each side's lead of its own choice over the other's."""

    index: int
    leads: tuple[float, float]

    @property
    def is_tie(self) -> bool:
        return max(self.leads) <= TIE

    def __str__(self) -> str:
        ours, theirs = self.leads
        return f"part at token {self.index}, by {ours:.3f} here and {theirs:.3f} there"


def choices_of(answer: dict) -> list[Choice]:
    """The tokens in an answer of /completion or /v1/chat/completions with probabilities."""
    entries = (
        answer["choices"][0]["logprobs"]["content"]
        if "choices" in answer
        else answer["completion_probabilities"]
    )
    return [
        Choice(entry["id"], {top["id"]: top["logprob"] for top in entry["top_logprobs"]}) for entry in entries
    ]


def parting(ours: Sequence[Choice], theirs: Sequence[Choice]) -> Parting | None:
    """The first difference; None where all tokens are the same. ValueError: one answer is shorter."""
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} and {len(theirs)} tokens")
    for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine.token != other.token:
            return Parting(index, (mine.lead(other.token), other.lead(mine.token)))
    return None


def requests() -> list[tuple[str, bytes]]:
    generator = random.Random("agreement")
    settings = {"n_predict": TOKENS, "temperature": 0, "ignore_eos": True}
    all_requests = []
    for count in PROMPTS:
        text = words(generator, count)
        completion = {"prompt": text, "n_probs": CANDIDATES, **settings}
        chat = {"messages": [{"role": "user", "content": text}], "logprobs": True, "top_logprobs": CANDIDATES}
        for name, path, body in (
            ("completion", "/completion", completion),
            ("chat", "/v1/chat/completions", {**chat, **settings}),
        ):
            all_requests.append((f"{name} of {count} words", request_bytes(path, json.dumps(body).encode())))
    return all_requests


async def answers_of(port: int) -> dict[str, list[Choice]]:
    """Each request's greedy answer."""
    connection, found = Connection(port), {}
    for name, request in requests():
        answer = await connection.ask(request)
        if answer.status != 200:
            raise RuntimeError(f"{name}: {answer.status}: {answer.body[:300]!r}")
        found[name] = choices_of(answer.json())
    connection.close()
    return found


def report(ours: dict[str, list[Choice]], theirs: dict[str, list[Choice]]) -> list[dict]:
    """Prints where answers part. Raises SystemExit where they part and neither side was near a tie."""
    rows, wrong = [], []
    for name, mine in ours.items():
        found = parting(mine, theirs[name])
        rows.append({"case": f"agreement, {name}", "tokens": len(mine), "equal": found is None})
        if found is not None:
            rows[-1] |= {"parted_at": found.index, "leads": found.leads}
            print(f"{name}: the answers {found}", flush=True)
            wrong += [] if found.is_tie else [name]
    if wrong:
        raise SystemExit(f"the servers disagree beyond a tie ({TIE}): {', '.join(wrong)}")
    equal = sum(row["equal"] for row in rows)
    print(f"greedy answers: {equal} of {len(rows)} equal, the others part at ties", flush=True)
    return rows
