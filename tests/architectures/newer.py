"""Encoders, hybrids of convolutions and attention, vocoders and readers of lines, a few of each."""

from __future__ import annotations

from typing import Any

import torch
from architecture import Architecture, Call, picture, published, settled, tokens
from images import of_pictures

_WIDTHS: dict[str, Any] = dict(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=1000
)
_TEXTS = {0: "batch", 1: "length"}
_LENGTHS = [{"batch": 2, "length": 24}, {"batch": 3, "length": 37}]
_ENCODERS: dict[str, dict[str, Any]] = {
    "Ernie": {},
    "RemBert": {"input_embedding_size": 32, "output_embedding_size": 32},
    "Esm": {"pad_token_id": 1, "mask_token_id": 4, "position_embedding_type": "rotary"},
    "Splinter": {},
}
_DECODERS: dict[str, dict[str, Any]] = {
    "Lfm2": {"num_key_value_heads": 2, "layer_types": ["conv", "full_attention"]},
    "Nemotron": {"num_key_value_heads": 2},
    "BioGpt": {},
    "Olmo": {"num_key_value_heads": 2},
}


def _ids_and_mask(batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, length * 3 // 4 :] = 0
    return tokens(batch, length, below=100, least=5), mask


@published(*(f"transformers.{name}" for name in _ENCODERS))
def encoder(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    config = getattr(transformers, f"{base}Config")(**_WIDTHS, **_ENCODERS[base])
    module = getattr(transformers, f"{base}Model")(config)
    call = Call(module, lambda m, ids, mask: m(input_ids=ids, attention_mask=mask)[0])
    return Architecture(settled(call), _ids_and_mask, ["ids", "mask"], [_TEXTS] * 2, _LENGTHS)


@published(*(f"transformers.{name}ForCausalLM" for name in _DECODERS))
def whole_text(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.").removesuffix("ForCausalLM")
    config = getattr(transformers, f"{base}Config")(**_WIDTHS, **_DECODERS[base])
    module = getattr(transformers, f"{base}ForCausalLM")(config)
    call = Call(module, lambda m, ids: m(input_ids=ids, use_cache=False).logits)

    def make(batch: int, length: int) -> tuple:
        return (tokens(batch, length, below=1000),)

    return Architecture(settled(call), make, ["ids"], [_TEXTS], _LENGTHS)


@published("transformers.MgpStr")
def reader_of_lines(name: str, whole: bool) -> Architecture:
    from transformers import MgpstrConfig, MgpstrForSceneTextRecognition

    config = MgpstrConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4)
    call = Call(MgpstrForSceneTextRecognition(config), lambda m, x: tuple(m(pixel_values=x).logits))
    return Architecture(
        settled(call),
        lambda batch: (picture(batch, 32, 128),),
        ["image"],
        [{0: "batch"}],
        [{"batch": 2}, {"batch": 3}],
    )


@published("transformers.UnivNet")
def vocoder(name: str, whole: bool) -> Architecture:
    from transformers import UnivNetConfig, UnivNetModel

    config = UnivNetConfig(model_hidden_channels=8, kernel_predictor_hidden_channels=16)
    call = Call(UnivNetModel(config), lambda m, x, noise: m(input_features=x, noise_sequence=noise)[0])

    def make(batch: int, frames: int) -> tuple:
        return torch.randn(batch, frames, config.num_mel_bins), torch.randn(batch, frames, 64)

    axes = {0: "batch", 1: "frames"}
    sizes = [{"batch": 2, "frames": 9}, {"batch": 1, "frames": 14}]
    return Architecture(settled(call), make, ["features", "noise"], [axes, axes], sizes)


_TIMM: dict[str, dict[str, Any]] = {
    "starnet_s1": {},
    "mobileone_s0": {},
    "fasternet_t0": {},
    "tiny_vit_5m_224": {"is_open": False},
    "mvitv2_tiny": {"is_open": False},
    "repghostnet_050": {},
    "rdnet_tiny": {},
    "shvit_s1": {},
    "nextvit_small": {},
    "efficientvit_m0": {"is_open": False},
}


@published(*(f"timm.{name}" for name in _TIMM))
def newer_of_timm(name: str, whole: bool) -> Architecture:
    import timm

    options = dict(_TIMM[name.removeprefix("timm.")])
    return of_pictures(timm.create_model(name.removeprefix("timm."), pretrained=False), 224, **options)
