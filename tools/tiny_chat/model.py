"""A decoder of the llama architecture. Its parameters have the names of the GGUF's tensors."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    vocabulary: int = 512
    context: int = 512
    width: int = 256
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 64
    feed_forward: int = 512
    rope_base: float = 10000.0
    norm_epsilon: float = 1e-5


def linear(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


def rope_turns(shape: Shape) -> Tensor:
    """How far each pair of a head is turned at each position: complex64 [context, head_size / 2]"""
    frequencies = shape.rope_base ** (-torch.arange(0, shape.head_size, 2) / shape.head_size)
    angles = torch.outer(torch.arange(shape.context).float(), frequencies)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Turns neighbouring pairs of the last axis, which llama.cpp does for this architecture."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns[:, None]).flatten(-2).type_as(x)


class Block(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        width, keys = shape.width, shape.kv_heads * shape.head_size
        self.attn_norm = nn.RMSNorm(width, shape.norm_epsilon)
        self.attn_q = linear(width, shape.heads * shape.head_size)
        self.attn_k = linear(width, keys)
        self.attn_v = linear(width, keys)
        self.attn_output = linear(shape.heads * shape.head_size, width)
        self.ffn_norm = nn.RMSNorm(width, shape.norm_epsilon)
        self.ffn_gate = linear(width, shape.feed_forward)
        self.ffn_up = linear(width, shape.feed_forward)
        self.ffn_down = linear(shape.feed_forward, width)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        x = x + self.attention(self.attn_norm(x), turns)
        inner = self.ffn_norm(x)
        return x + self.ffn_down(functional.silu(self.ffn_gate(inner)) * self.ffn_up(inner))

    def attention(self, x: Tensor, turns: Tensor) -> Tensor:
        heads = (-1, self.shape.head_size)  # [B, T, heads, head_size]
        query = rotate(self.attn_q(x).unflatten(-1, heads), turns)
        key = rotate(self.attn_k(x).unflatten(-1, heads), turns)
        value = self.attn_v(x).unflatten(-1, heads)
        shared = self.shape.heads // self.shape.kv_heads
        mixed = functional.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.repeat_interleave(shared, 2).transpose(1, 2),
            value.repeat_interleave(shared, 2).transpose(1, 2),
            is_causal=True,
        )
        return self.attn_output(mixed.transpose(1, 2).flatten(-2))


class TinyChat(nn.Module):
    """Tokens [B, T] → hidden states [B, T, width]; `logits` turns those into scores of the next token."""

    def __init__(self, shape: Shape = Shape()):
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocabulary, shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = nn.RMSNorm(shape.width, shape.norm_epsilon)
        self.register_buffer("turns", rope_turns(shape), persistent=False)
        self.initialize()

    def initialize(self) -> None:
        nn.init.normal_(self.token_embd.weight, std=0.02)
        for name, matrix in self.blk.named_parameters():
            if matrix.ndim == 2:  # What adds to the residual stream starts small.
                gain = 0.3 if "output" in name or "down" in name else 0.7
                nn.init.normal_(matrix, std=gain * matrix.shape[1] ** -0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.token_embd(tokens)
        for block in self.blk:
            x = block(x, self.turns[: tokens.shape[1]])
        return self.output_norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, self.token_embd.weight)
