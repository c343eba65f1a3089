"""Causal language models of transformers in a form that torch.export takes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class KeyValueBuffers(nn.Module):
    """The keys and values of past tokens as registered buffers.

    A transformers cache keeps them in plain attributes, which export would freeze into constants. As buffers
    that a method changes they become states of the delegate: they live from call to call and are shared by
    the methods of a program that name the same buffers.
    """

    def __init__(
        self, config: Any, max_length: int, batch: int = 1, dtype: torch.dtype = torch.float32
    ) -> None:
        from transformers import StaticCache
        from transformers.configuration_utils import get_head_shapes

        super().__init__()
        if max_length < 1 or batch < 1:
            raise ValueError(f"max_length is {max_length} and batch {batch}; both must be at least 1")
        self.cache = StaticCache(config=config, max_cache_len=max_length)
        if any(layer.is_sliding for layer in self.cache.layers):
            raise ValueError(
                f"{type(config).__name__} has layers with a sliding window, whose cache moves: "
                "set config.layer_types to 'full_attention' where the window is not needed"
            )
        self.cache.early_initialization(batch, *get_head_shapes(config), dtype, "cpu")
        for i, layer in enumerate(self.cache.layers):
            self.register_buffer(f"keys_{i}", layer.keys, persistent=False)
            self.register_buffer(f"values_{i}", layer.values, persistent=False)

    def at(self, position: torch.Tensor) -> Any:
        """The cache for a call whose first token has this position (int64, one element)."""
        for i, layer in enumerate(self.cache.layers):
            layer.keys, layer.values = getattr(self, f"keys_{i}"), getattr(self, f"values_{i}")
            layer.cumulative_length = position.reshape(()).clone()  # the layer adds to it in place
        return self.cache

    def reset(self) -> None:
        """Forgets all tokens: for eager use, since a loaded program starts empty."""
        for buffer in self.buffers():
            buffer.zero_()


class ExportableDecoder(nn.Module):
    """A causal language model with a cache of max_length tokens.

    forward(input_ids int64[batch, tokens], position int64[1]) -> logits[batch, 1 or tokens, vocabulary]

    position is that of the first of the tokens, so a prompt is one call (or several, in pieces), and each
    further token another. last_only: give the logits of the last token alone, which is what generating needs.
    """

    def __init__(self, model: nn.Module, max_length: int, batch: int = 1, last_only: bool = True) -> None:
        super().__init__()
        config = model.config.get_text_config()
        self.model = model.eval().requires_grad_(False)
        self.past = KeyValueBuffers(config, max_length, batch, model.dtype)
        self.last_only, self.max_length = last_only, max_length

    def forward(self, input_ids: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        return self.model(
            input_ids=input_ids,
            past_key_values=self.past.at(position),
            use_cache=True,
            logits_to_keep=1 if self.last_only else 0,
            return_dict=False,
        )[0]

    def export(self, tokens: int | None = None) -> torch.export.ExportedProgram:
        """For calls with exactly this many tokens, or with any number from 1 to max_length."""
        batch = self.past.keys_0.shape[0]
        if tokens is not None and not 1 <= tokens <= self.max_length:
            raise ValueError(f"tokens is {tokens}; it must lie in 1..{self.max_length}, the cache's length")
        # Sizes 0 and 1 are special to torch.export, so a range needs an example in between.
        example = torch.zeros(batch, tokens or min(self.max_length, 3), dtype=torch.long)
        length = torch.export.Dim("tokens", min=1, max=self.max_length)
        shapes = None if tokens else ({1: length}, None)
        position = torch.zeros(1, dtype=torch.long)
        return torch.export.export(self, (example, position), dynamic_shapes=shapes, strict=False)
