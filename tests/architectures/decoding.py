"""Greedy decoding with caches that grow: prompts through PyTorch, then steps of one token by any runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tiny_models
import torch
from architecture import Architecture, settled, tokens
from caches import Cached, cached_step, cross_step, step_architecture, with_cache

Arrays = dict[str, np.ndarray]


@dataclass
class Decoding:
    """A step as an architecture, and what the first one is given. Caches are results 1, 2, ... of a step."""

    architecture: Architecture
    first: Arrays  # without the token
    caches: list[str]  # inputs that are a step's results
    token: int

    def steps(self, run: Callable[[Arrays], list[np.ndarray]], count: int) -> list[int]:
        """The tokens that a runtime decodes. run: a step's results in order."""
        feeds, found = dict(self.first), [self.token]
        for _ in range(count):
            feeds["ids"] = np.array([[found[-1]]])
            logits, *caches = run(feeds)
            found.append(int(logits[0, -1].argmax()))
            feeds |= dict(zip(self.caches, caches, strict=True))
            if "mask" in feeds:
                feeds["mask"] = np.ones((1, feeds["mask"].shape[1] + 1), np.int64)
        return found


def _arrays(values: tuple) -> list[np.ndarray]:
    return [value.contiguous().numpy() for value in values]


def decoder_only(base: str, whole: bool, prompt: int = 16) -> Decoding:
    """base: such as "LlamaForCausalLM" """
    torch.manual_seed(0)
    return _decoder_only(with_cache(base, whole), prompt, 1000)


def _decoder_only(
    architecture: Architecture, prompt: int, vocabulary: int = tiny_models.VOCABULARY
) -> Decoding:
    torch.manual_seed(1)
    ids, mask = tokens(1, prompt, below=vocabulary), torch.ones(1, prompt, dtype=torch.long)
    with torch.no_grad():
        logits, *past = architecture.module(ids, mask)
    names = architecture.names[2:]
    first = dict(zip(names, _arrays(past), strict=True))
    first["mask"] = np.ones((1, prompt + 1), np.int64)
    return Decoding(architecture, first, names, int(logits[0, -1].argmax()))


def with_encoder(base: str, whole: bool, prompt: int = 4, heard: int = 32) -> Decoding:
    """base: "T5", "Whisper" or "Bart", whose encoder's results are random here."""
    torch.manual_seed(0)
    return _with_encoder(*step_architecture(base, whole), prompt, heard, 1000)


def _with_encoder(
    architecture: Architecture, model: Any, prompt: int, heard: int, vocabulary: int
) -> Decoding:
    torch.manual_seed(1)
    hidden = torch.randn(1, heard, model.config.d_model)
    with torch.no_grad():
        cache = _first_pass(model, tokens(1, prompt, below=vocabulary), hidden)
    first = {"hidden": hidden.numpy()}
    first |= dict(zip(architecture.names[2:], _arrays(cache[1:]), strict=True))
    own = [name for name in architecture.names[2:] if "cross" not in name]
    return Decoding(architecture, first, own, int(cache[0][0, -1].argmax()))


def _first_pass(model: Any, ids: torch.Tensor, hidden: torch.Tensor) -> tuple:
    from transformers import DynamicCache, EncoderDecoderCache
    from transformers.modeling_outputs import BaseModelOutput

    out = model(
        encoder_outputs=BaseModelOutput(last_hidden_state=hidden),
        decoder_input_ids=ids,
        past_key_values=EncoderDecoderCache(DynamicCache(), DynamicCache()),
        use_cache=True,
    )
    kept = out.past_key_values
    layers = zip(kept.self_attention_cache.layers, kept.cross_attention_cache.layers, strict=True)
    return out.logits, *(t for own, other in layers for t in (own.keys, own.values, other.keys, other.values))


DECODINGS: dict[str, Callable[[bool], Decoding]] = {
    "gpt2": lambda whole: decoder_only("GPT2LMHead", whole),
    "llama": lambda whole: decoder_only("LlamaForCausalLM", whole),
    "t5": lambda whole: with_encoder("T5", whole),
    "whisper": lambda whole: with_encoder("Whisper", whole),
}


def _tiny_decoder(make: Callable[[], Any]) -> Decoding:
    model = tiny_models.seeded(make)
    return _decoder_only(cached_step(Cached(settled(model)), tiny_models.VOCABULARY), 5)


def _tiny_with_encoder(make: Callable[[], Any]) -> Decoding:
    model = tiny_models.seeded(make)
    return _with_encoder(
        *cross_step(model, model.config, 2, tiny_models.VOCABULARY), 3, 6, tiny_models.VOCABULARY
    )


TINY_DECODINGS: dict[str, Callable[[], Decoding]] = {
    "gpt2": lambda: _tiny_decoder(tiny_models.gpt2),
    "llama": lambda: _tiny_decoder(tiny_models.llama),
    "t5": lambda: _tiny_with_encoder(tiny_models.t5),
    "whisper": lambda: _tiny_with_encoder(tiny_models.whisper),
}
