"""Architectures of transformers in widths that PyTorch's older exporter writes in a second or two."""

from __future__ import annotations

from collections.abc import Callable

import tiny_models
import torch
from architecture import Architecture, Call, picture, settled, sound, tokens
from caches import Cached, cached_step
from images import of_pictures


def encoder() -> Architecture:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    )
    module = Call(BertModel(config), lambda m, ids, mask: m(input_ids=ids, attention_mask=mask)[0])

    def make(batch: int, length: int) -> tuple:
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[0, length * 3 // 4 :] = 0
        return tokens(batch, length, below=100), mask

    sizes = [{"batch": 2, "length": 9}, {"batch": 3, "length": 14}]
    return Architecture(settled(module), make, ["ids", "mask"], [{0: "batch", 1: "length"}] * 2, sizes)


def segmentation() -> Architecture:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(
        depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 16, 16], decoder_hidden_size=16, num_labels=5
    )
    module = Call(SegformerForSemanticSegmentation(config), lambda m, x: m(pixel_values=x).logits)
    return of_pictures(module, 64)


def shifted_windows() -> Architecture:
    from transformers import SwinConfig, SwinModel

    config = SwinConfig(
        image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4
    )
    module = Call(SwinModel(config), lambda m, x: m(pixel_values=x)[0])
    return Architecture(
        settled(module),
        lambda batch: picture(batch, 32, 32),
        ["image"],
        [{0: "batch"}],
        [{"batch": 2}, {"batch": 1}],
    )


def speech() -> Architecture:
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    config = Wav2Vec2Config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        conv_dim=(16, 16, 16),
        conv_kernel=(10, 3, 2),
        conv_stride=(5, 2, 2),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    )
    module = Call(Wav2Vec2Model(config), lambda m, x: m(input_values=x)[0])
    return Architecture(
        settled(module),
        sound,
        ["samples"],
        [{0: "batch", 1: "samples"}],
        [{"batch": 2, "samples": 800}, {"batch": 1, "samples": 1234}],
    )


def decoder() -> Architecture:
    return cached_step(Cached(settled(tiny_models.llama())), tiny_models.VOCABULARY)


TINY: dict[str, Callable[[], Architecture]] = {
    "an encoder of text": encoder,
    "segmentation of any height and width": segmentation,
    "windows that are shifted": shifted_windows,
    "an encoder of speech": speech,
    "a decoder whose cache grows": decoder,
}
