"""Decoders whose caches are arguments that grow, and decoders over a whole text."""

from __future__ import annotations

from typing import Any

import torch
from architecture import Architecture, Call, published, settled, tokens
from images import of_config
from torch import nn

_SMALL = {
    "num_hidden_layers": 2,
    "n_layer": 2,
    "n_layers": 2,
    "num_layers": 2,
    "vocab_size": 4096,
    "decoder_layers": 2,
    "num_decoder_layers": 2,
}
# Widths of published models; transformers' defaults are those of models with billions of weights.
_WIDTHS = dict(
    hidden_size=576, intermediate_size=1536, num_hidden_layers=12, num_attention_heads=9, vocab_size=32000
)
_DECODERS: dict[str, dict[str, Any]] = {
    "GPT2LMHead": {},
    "GPTNeoForCausalLM": {
        "hidden_size": 768,
        "num_layers": 12,
        "attention_types": [[["global", "local"], 6]],
        "num_heads": 12,
    },
    "GPTNeoXForCausalLM": {**_WIDTHS},
    "GPTJForCausalLM": {"n_embd": 768, "n_layer": 12, "n_head": 12},
    "OPTForCausalLM": {},
    "BloomForCausalLM": {"hidden_size": 768, "n_layer": 12, "n_head": 12, "vocab_size": 32000},
    "LlamaForCausalLM": {**_WIDTHS, "num_key_value_heads": 3},
    "MistralForCausalLM": {**_WIDTHS, "num_key_value_heads": 3, "sliding_window": 32},
    "Qwen2ForCausalLM": {**_WIDTHS, "num_key_value_heads": 3},
    "Qwen3ForCausalLM": {**_WIDTHS, "num_key_value_heads": 3, "head_dim": 64},
    "GemmaForCausalLM": {**_WIDTHS, "num_key_value_heads": 1, "head_dim": 64},
    "Gemma2ForCausalLM": {**_WIDTHS, "num_key_value_heads": 3, "head_dim": 64, "sliding_window": 32},
    "Gemma3ForCausalLM": {**_WIDTHS, "num_key_value_heads": 3, "head_dim": 64, "sliding_window": 32},
    "PhiForCausalLM": {**_WIDTHS},
    "Phi3ForCausalLM": {**_WIDTHS, "num_key_value_heads": 3, "pad_token_id": 0},
    "FalconForCausalLM": {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "vocab_size": 32000,
    },
    "StableLmForCausalLM": {**_WIDTHS, "num_key_value_heads": 9},
    "SmolLM3ForCausalLM": {**_WIDTHS, "num_key_value_heads": 3, "pad_token_id": 0},
    "Olmo2ForCausalLM": {**_WIDTHS, "num_key_value_heads": 9},
    "CohereForCausalLM": {**_WIDTHS, "num_key_value_heads": 9},
    "Starcoder2ForCausalLM": {**_WIDTHS, "num_key_value_heads": 3},
    "GraniteForCausalLM": {**_WIDTHS, "num_key_value_heads": 9},
    "Glm4ForCausalLM": {**_WIDTHS, "num_key_value_heads": 3, "head_dim": 64, "pad_token_id": 0},
    "CodeGenForCausalLM": {"n_embd": 768, "n_layer": 12, "n_head": 12},
    "XGLMForCausalLM": {"d_model": 768, "num_layers": 12, "attention_heads": 12, "vocab_size": 32000},
}


class Cached(nn.Module):
    """(ids, mask, keys and values of the past ...) to (logits, keys and values with the tokens ...)"""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor) -> tuple:
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        out = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        return out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values))


def causal_model(base: str, whole: bool) -> Any:
    import transformers

    stem = base.removesuffix("ForCausalLM").removesuffix("LMHead")
    config = getattr(transformers, f"{stem}Config")(**_DECODERS[base])
    if hasattr(config, "layer_types") and config.layer_types and not whole:
        config.layer_types = (
            ["sliding_attention", "full_attention"] if "Gemma" in base else config.layer_types[:2]
        )
    config = of_config(base, config, whole, _SMALL)
    if base == "GPTNeoForCausalLM" and not whole:
        config.attention_types, config.attention_layers = [[["global", "local"], 1]], ["global", "local"]
    name = f"{stem}LMHeadModel" if base.endswith("LMHead") else base
    return getattr(transformers, name)(config), config


def with_cache(base: str, whole: bool) -> Architecture:
    model, config = causal_model(base, whole)
    return cached_step(Cached(settled(model)), min(1000, config.vocab_size))


def cached_step(module: Cached, vocabulary: int) -> Architecture:
    """Some tokens after others; the caches' widths are those that the model gives."""
    with torch.no_grad():
        ids = tokens(2, 3, below=vocabulary)
        past = module(ids, torch.ones(2, 3, dtype=torch.long))[1:]
    kinds = [(t.shape[1], t.shape[3]) for t in past]
    layers = len(kinds) // 2

    def make(batch: int, past: int, new: int) -> tuple:
        mask = torch.ones(batch, past + new, dtype=torch.long)
        mask[0, : past // 3] = 0
        return (
            tokens(batch, new, below=vocabulary),
            mask,
            *(torch.randn(batch, heads, past, width) for heads, width in kinds),
        )

    names = ["ids", "mask", *(f"past_{kind}.{i}" for i in range(layers) for kind in ("key", "value"))]
    dims = [{0: "batch", 1: "new"}, {0: "batch", 1: "past+new"}, *[{0: "batch", 2: "past"}] * (2 * layers)]
    sizes = [{"batch": 2, "past": 11, "new": 3}, {"batch": 3, "past": 40, "new": 2}]
    outputs = ["logits", *(f"present_{kind}.{i}" for i in range(layers) for kind in ("key", "value"))]
    return Architecture(module, make, names, dims, sizes, outputs=outputs)


@published(*(f"cached.{name}" for name in _DECODERS))
def cached(name: str, whole: bool) -> Architecture:
    return with_cache(name.removeprefix("cached."), whole)


@published(*(f"transformers.{name}" for name in _DECODERS))
def decoder(name: str, whole: bool) -> Architecture:
    model, _ = causal_model(name.removeprefix("transformers."), whole)

    def make(batch: int, length: int) -> tuple:
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[0, : length // 3] = 0
        return tokens(batch, length, below=1000), mask

    module = Call(model, lambda m, ids, mask: m(input_ids=ids, attention_mask=mask, use_cache=False).logits)
    return Architecture(
        settled(module),
        make,
        ["ids", "mask"],
        [{0: "batch", 1: "length"}] * 2,
        [{"batch": 2, "length": 14}, {"batch": 3, "length": 45}],
    )


@published("transformers.Mamba", "transformers.Mamba2", "transformers.Rwkv", "transformers.FalconH1")
def state_space(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    options: dict[str, Any] = {"num_hidden_layers": 24 if whole else 2}
    if base == "Mamba2":
        options |= {"hidden_size": 768, "num_heads": 24, "head_dim": 64, "n_groups": 1, "chunk_size": 32}
    if base == "FalconH1":
        options |= {**_WIDTHS, "num_key_value_heads": 3, "num_hidden_layers": 2}
    config = getattr(transformers, f"{base}Config")(**options)
    module = getattr(transformers, f"{base}Model")(config)
    return Architecture(
        settled(Call(module, lambda m, ids: m(input_ids=ids, use_cache=False)[0])),
        lambda batch, length: (tokens(batch, length, below=1000),),
        ["ids"],
        [{0: "batch", 1: "length"}],
        [{"batch": 2, "length": 16}, {"batch": 3, "length": 29}],
    )


class Step(nn.Module):
    """A decoder with attention to an encoder's results, whose both caches are arguments."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, hidden: torch.Tensor, *past: torch.Tensor) -> tuple:
        from transformers import DynamicCache, EncoderDecoderCache
        from transformers.modeling_outputs import BaseModelOutput

        own, other, layers = DynamicCache(), DynamicCache(), len(past) // 4
        for i in range(layers):
            own.update(past[4 * i], past[4 * i + 1], i)
            other.update(past[4 * i + 2], past[4 * i + 3], i)
        cache = EncoderDecoderCache(own, other)
        out = self.model(
            encoder_outputs=BaseModelOutput(last_hidden_state=hidden),
            decoder_input_ids=ids,
            past_key_values=cache,
            use_cache=True,
        )
        kept = out.past_key_values
        return out.logits, *(
            t for layer in kept.self_attention_cache.layers for t in (layer.keys, layer.values)
        )


def pair_model(base: str, whole: bool) -> tuple[Any, Any, int]:
    import transformers

    if base == "T5":
        config = of_config(base, transformers.T5Config(), whole, _SMALL)
        return transformers.T5ForConditionalGeneration(config), config, config.num_decoder_layers
    if base == "Bart":
        config = of_config(base, transformers.BartConfig(), whole, _SMALL)
        return transformers.BartForConditionalGeneration(config), config, config.decoder_layers
    config = of_config(base, transformers.WhisperConfig(), whole, {**_SMALL, "vocab_size": 60000})
    return transformers.WhisperForConditionalGeneration(config), config, config.decoder_layers


@published("cached.T5", "cached.Whisper", "cached.Bart")
def pair_with_cache(name: str, whole: bool) -> Architecture:
    return step_architecture(name.removeprefix("cached."), whole)[0]


def step_architecture(base: str, whole: bool) -> tuple[Architecture, Any]:
    """A step of the decoder, and the model that it is of."""
    return cross_step(*pair_model(base, whole), 1000)


def cross_step(model: nn.Module, config: Any, layers: int, vocabulary: int) -> tuple[Architecture, nn.Module]:
    heads = getattr(config, "num_heads", None) or config.decoder_attention_heads
    width = getattr(config, "d_kv", None) or config.d_model // heads

    def make(batch: int, past: int, new: int, heard: int) -> tuple:
        one = lambda n: torch.randn(batch, heads, n, width)  # noqa: E731
        caches = [one(n) for _ in range(layers) for n in (past, past, heard, heard)]
        return tokens(batch, new, below=vocabulary), torch.randn(batch, heard, config.d_model), *caches

    kinds = ("key", "value", "cross_key", "cross_value")
    names = ["ids", "hidden", *(f"past_{kind}.{i}" for i in range(layers) for kind in kinds)]
    own, other = {0: "batch", 2: "past"}, {0: "batch", 2: "heard"}
    dims = [{0: "batch", 1: "new"}, {0: "batch", 1: "heard"}, *[own, own, other, other] * layers]
    sizes = [
        {"batch": 2, "past": 11, "new": 3, "heard": 17},
        {"batch": 3, "past": 40, "new": 2, "heard": 29},
    ]
    outputs = ["logits", *(f"present_{kind}.{i}" for i in range(layers) for kind in ("key", "value"))]
    return Architecture(settled(Step(model)), make, names, dims, sizes, outputs=outputs), model
