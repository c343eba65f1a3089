"""Models of real architectures with random weights, each with the sizes that it must run at.

Widths and layer counts are those of the smallest published model where that stays fast, and less otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Model:
    module: nn.Module
    inputs: tuple
    dynamic_shapes: Any = None
    more: list[tuple] = field(default_factory=list)  # inputs of other sizes
    fresh: Callable[[], None] = lambda: None  # before a comparison: forgets what the module remembers

    def __post_init__(self) -> None:
        if self.dynamic_shapes and isinstance(self.module, Call):
            self.dynamic_shapes = (self.dynamic_shapes,)  # forward takes them as one argument, *inputs


class Call(nn.Module):
    """A module called in another way, for example without the parts of its result that nobody needs."""

    def __init__(self, module: nn.Module, call: Callable) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.call(self.module, *inputs)


def _sizes(name: str, most: int, make: Callable[[int], tuple], dimensions: tuple) -> dict[str, Any]:
    """A dynamic extent, with its least, its largest and some size between."""
    dim = torch.export.Dim(name, min=1, max=most)
    shapes = tuple({axis: dim} if axis is not None else None for axis in dimensions)
    return {
        "inputs": make(5),
        "dynamic_shapes": shapes,
        "more": [make(1), make(2), make(most // 2 + 1), make(most)],
    }


def tokens(*shape: int, below: int) -> torch.Tensor:
    return torch.randint(0, below, shape)


# --- classifiers ----------------------------------------------------------------------------------------


def mlp() -> Model:
    module = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))
    return Model(module, **_sizes("batch", 32, lambda n: (torch.randn(n, 1024),), (0,)))


def _with_statistics(module: nn.Module) -> nn.Module:
    """Batch normalisation that does something: its statistics are 0 and 1 in a new module."""
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_(0, 0.1)
            norm.running_var.uniform_(0.5, 1.5)
    return module.eval()


def _classifier(module: nn.Module, size: int) -> Model:
    module = Call(_with_statistics(module), lambda m, x: m(pixel_values=x, return_dict=False)[0])
    return Model(module, **_sizes("batch", 6, lambda n: (torch.randn(n, 3, size, size),), (0,)))


def mobilenet_v2() -> Model:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    config = MobileNetV2Config(image_size=96, num_labels=1000, tf_padding=False)
    return _classifier(MobileNetV2ForImageClassification(config), 96)


def resnet18() -> Model:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        embedding_size=64,
        hidden_sizes=[64, 128, 256, 512],
        depths=[2, 2, 2, 2],
        layer_type="basic",
        num_labels=1000,
    )
    return _classifier(ResNetForImageClassification(config), 96)


def vit_tiny() -> Model:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=192,
        num_hidden_layers=12,
        num_attention_heads=3,
        intermediate_size=768,
        image_size=96,
        patch_size=16,
        attn_implementation="sdpa",
    )
    return _classifier(ViTModel(config, add_pooling_layer=False), 96)


class TextTagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.lstm = nn.LSTM(64, 128, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(256, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.embed(ids))[0])


def lstm() -> Model:
    return Model(TextTagger(), (tokens(2, 10, below=100),))


# --- transformers over text -----------------------------------------------------------------------------


def minilm() -> Model:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=1000,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        attn_implementation="sdpa",
    )
    module = Call(
        BertModel(config), lambda m, ids, mask: m(input_ids=ids, attention_mask=mask, return_dict=False)[0]
    )

    def make(length: int) -> tuple:
        mask = torch.ones(1, length, dtype=torch.long)
        mask[:, length // 2 + 1 :] = 0
        return tokens(1, length, below=1000), mask

    return Model(module, **_sizes("length", 128, make, (1, 1)))


def qwen3_model(layers: int = 2, vocabulary: int = 4096) -> nn.Module:
    """The widths of Qwen3-0.6B."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=layers,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        attn_implementation="sdpa",
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM(config).eval()


def qwen3() -> Model:
    module = Call(qwen3_model(), lambda m, ids: m(input_ids=ids, use_cache=False, return_dict=False)[0])
    return Model(module, **_sizes("length", 64, lambda n: (tokens(1, n, below=4096),), (1,)))


def qwen3_with_cache() -> Model:
    from executorch_ggml.llm import ExportableDecoder

    module = ExportableDecoder(qwen3_model(), max_length=64)
    sizes = _sizes(
        "length", 64, lambda n: (tokens(1, n, below=4096), torch.zeros(1, dtype=torch.long)), (1, None)
    )
    return Model(module, **sizes, fresh=module.past.reset)


def mixture_of_experts() -> Model:
    """Its experts' weights are gathered and multiplied in a batch: the loop over experts that the model has
    by default depends on data and cannot be exported."""
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    config = Qwen3MoeConfig(
        vocab_size=512,
        hidden_size=128,
        intermediate_size=256,
        moe_intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        num_experts=8,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        attn_implementation="sdpa",
        experts_implementation="batched_mm",
    )
    model = Qwen3MoeForCausalLM(config)
    module = Call(model, lambda m, ids: m(input_ids=ids, use_cache=False, return_dict=False)[0])
    return Model(module, (tokens(1, 12, below=512),))


# --- speech and images ----------------------------------------------------------------------------------


def _whisper_config() -> Any:
    from transformers import WhisperConfig

    return WhisperConfig(
        vocab_size=1000,
        d_model=384,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        encoder_ffn_dim=1536,
        decoder_ffn_dim=1536,
        max_source_positions=150,
        max_target_positions=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        attn_implementation="sdpa",
    )


def whisper_encoder() -> Model:
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    module = Call(WhisperEncoder(_whisper_config()), lambda m, x: m(x, return_dict=False)[0])
    return Model(module, **_sizes("batch", 6, lambda n: (torch.randn(n, 80, 300),), (0,)))


class WhisperStep(nn.Module):
    """Some tokens through the decoder, which remembers the ones before and sees the encoder's result."""

    def __init__(self) -> None:
        from executorch_ggml.llm import KeyValueBuffers
        from transformers.models.whisper.modeling_whisper import WhisperDecoder

        super().__init__()
        config = _whisper_config()
        self.decoder = WhisperDecoder(config).eval().requires_grad_(False)
        self.past = KeyValueBuffers(config, 64)

    def forward(self, ids: torch.Tensor, heard: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        from transformers import DynamicCache, EncoderDecoderCache

        cache = EncoderDecoderCache(self.past.at(position), DynamicCache())
        hidden = self.decoder(
            input_ids=ids,
            encoder_hidden_states=heard,
            past_key_values=cache,
            use_cache=True,
            return_dict=False,
        )[0]
        return F.linear(hidden, self.decoder.embed_tokens.weight)


def whisper_decoder() -> Model:
    module, heard = WhisperStep(), torch.randn(1, 150, 384)

    def make(length: int) -> tuple:
        return tokens(1, length, below=1000), heard, torch.zeros(1, dtype=torch.long)

    return Model(module, **_sizes("length", 64, make, (1, None, None)), fresh=module.past.reset)


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int, time: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.time = nn.Linear(time, outer)
        self.norm2, self.conv2 = nn.GroupNorm(32, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class CrossAttention(nn.Module):
    def __init__(self, width: int, context: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(context, width, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        def split(t: torch.Tensor) -> torch.Tensor:
            return t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)

        y = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(context)), split(self.v(context)))
        return self.out(y.transpose(1, 2).reshape(x.shape))


class ImageTransformer(nn.Module):
    def __init__(self, width: int, context: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(32, width, eps=1e-6)
        self.into, self.back = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own, self.cross = CrossAttention(width, width, heads), CrossAttention(width, context, heads)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        batch, width, rows, columns = x.shape
        h = self.into(self.norm(x)).permute(0, 2, 3, 1).reshape(batch, rows * columns, width)
        y = self.norms[0](h)
        h = h + self.own(y, y)
        h = h + self.cross(self.norms[1](h), context)
        value, gate = self.up(self.norms[2](h)).chunk(2, -1)
        h = h + self.down(value * F.gelu(gate))
        return self.back(h.reshape(batch, rows, columns, width).permute(0, 3, 1, 2)) + x


class UNetBlock(nn.Module):
    """Down, middle and up, as in a diffusion model, with a time and a text to attend to."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = (
            Residual(64, 128, 256),
            Residual(128, 128, 256),
            Residual(256, 64, 256),
        )
        self.attend = ImageTransformer(128, 96, 4)
        self.down, self.up = nn.Conv2d(128, 128, 3, 2, 1), nn.Conv2d(128, 128, 3, padding=1)
        self.time = nn.Linear(64, 256)

    def forward(self, x: torch.Tensor, step: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        frequencies = torch.exp(-9.21 * torch.arange(32, dtype=torch.float32) / 32)
        angles = step[:, None].float() * frequencies[None]
        time = F.silu(self.time(torch.cat([angles.cos(), angles.sin()], -1)))
        h = self.attend(self.first(x, time), text)
        m = self.up(F.interpolate(self.middle(self.down(h), time), scale_factor=2.0, mode="nearest"))
        return self.last(torch.cat([m, h], 1), time)


def unet_block() -> Model:
    return Model(UNetBlock(), (torch.randn(1, 64, 16, 16), torch.tensor([10]), torch.randn(1, 7, 96)))


MODELS: dict[str, Callable[[], Model]] = {
    "mlp": mlp,
    "mobilenet_v2": mobilenet_v2,
    "resnet18": resnet18,
    "vit_tiny": vit_tiny,
    "lstm": lstm,
    "minilm": minilm,
    "qwen3": qwen3,
    "qwen3_with_cache": qwen3_with_cache,
    "mixture_of_experts": mixture_of_experts,
    "whisper_encoder": whisper_encoder,
    "whisper_decoder": whisper_decoder,
    "unet_block": unet_block,
}
