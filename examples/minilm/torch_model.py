"""all-MiniLM-L6-v2 as a PyTorch module, to be exported through the ExecuTorch door."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .model import HEADS, HIDDEN, LAYER_NORM_EPSILON, LAYERS, MASKED_SCORE, map_safetensors, model_file

INNER = 4 * HIDDEN


def _norm() -> nn.LayerNorm:
    return nn.LayerNorm(HIDDEN, eps=LAYER_NORM_EPSILON)


class _Layer(nn.Module):
    """One BERT layer: x [B, S, 384], score_bias [B, 1, 1, S]."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.inner, self.outer = nn.Linear(HIDDEN, INNER), nn.Linear(INNER, HIDDEN)
        self.attention_norm, self.output_norm = _norm(), _norm()

    def forward(self, x: torch.Tensor, score_bias: torch.Tensor) -> torch.Tensor:
        def heads(t: torch.Tensor) -> torch.Tensor:
            return t.view(t.shape[0], t.shape[1], HEADS, -1).transpose(1, 2)

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=score_bias)
        x = self.attention_norm(x + self.output(context.transpose(1, 2).reshape(x.shape)))
        return self.output_norm(x + self.outer(F.gelu(self.inner(x))))


# Where the published weights of a layer go.
_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "output_norm": "output.LayerNorm",
}


class MiniLMModule(nn.Module):
    """input_ids and attention_mask, int64 [B, S], to sentence embeddings, float32 [B, 384] of length 1."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30522, HIDDEN)
        self.positions = nn.Parameter(torch.empty(512, HIDDEN))
        self.kind = nn.Parameter(torch.empty(HIDDEN))
        self.norm = _norm()
        self.layers = nn.ModuleList(_Layer() for _ in range(LAYERS))

    @classmethod
    def pretrained(cls) -> MiniLMModule:
        """With the published weights."""
        module = cls().eval()
        module.load_state_dict(_state(map_safetensors(model_file("model.safetensors"))))
        return module

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        mask = attention_mask.to(torch.float32)
        score_bias = ((1.0 - mask) * MASKED_SCORE)[:, None, None, :]
        x = self.norm(self.words(input_ids) + self.positions[: input_ids.shape[1]] + self.kind)
        for layer in self.layers:
            x = layer(x, score_bias)
        total = (x * mask[:, :, None]).sum(1)
        mean = total / mask.sum(1, keepdim=True).clamp(min=1e-9)
        return mean / mean.pow(2).sum(1, keepdim=True).sqrt().clamp(min=1e-12)


def _state(weights: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    def tensor(name: str) -> torch.Tensor:
        return torch.from_numpy(weights[name].copy())

    state = {
        "words.weight": tensor("embeddings.word_embeddings.weight"),
        "positions": tensor("embeddings.position_embeddings.weight"),
        "kind": tensor("embeddings.token_type_embeddings.weight")[0],
    }
    pairs = {"norm": "embeddings.LayerNorm"}
    for i in range(LAYERS):
        pairs |= {f"layers.{i}.{ours}": f"encoder.layer.{i}.{theirs}" for ours, theirs in _NAMES.items()}
    for ours, theirs in pairs.items():
        for part in ("weight", "bias"):
            state[f"{ours}.{part}"] = tensor(f"{theirs}.{part}")
    return state
