"""Greedy decoding with caches that grow: prompts through PyTorch, then steps of one token by any runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from architecture import Architecture, settled, tokens
from decoders import Cached, cached_step, cross_step, step_architecture, with_cache

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


def _decoder_only(architecture: Architecture, prompt: int, vocabulary: int = 100) -> Decoding:
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


def _tiny_decoder(model: Any) -> Decoding:
    return _decoder_only(cached_step(Cached(settled(model)), 100), 5)


def _tiny_gpt2() -> Decoding:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3)
    return _tiny_decoder(GPT2LMHeadModel(config))


def _tiny_llama() -> Decoding:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=100,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.3,
    )
    return _tiny_decoder(LlamaForCausalLM(config))


def _tiny_t5() -> Decoding:
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=100,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=1,
        num_decoder_layers=2,
        num_heads=4,
        initializer_factor=4.0,
    )
    return _with_encoder(*cross_step(T5ForConditionalGeneration(config), config, 2, 100), 3, 6, 100)


def _tiny_whisper() -> Decoding:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(0)
    config = WhisperConfig(
        vocab_size=100,
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=50,
        max_target_positions=80,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        init_std=0.3,
    )
    model = WhisperForConditionalGeneration(config)
    return _with_encoder(*cross_step(model, config, 2, 100), 3, 6, 100)


TINY_DECODINGS: dict[str, Callable[[], Decoding]] = {
    "gpt2": _tiny_gpt2,
    "llama": _tiny_llama,
    "t5": _tiny_t5,
    "whisper": _tiny_whisper,
}
