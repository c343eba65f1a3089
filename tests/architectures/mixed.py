"""Pictures with texts, prompts and layouts; series of numbers; speech to text: small ones of each kind."""

from __future__ import annotations

from typing import Any

import torch
from architecture import Architecture, Call, picture, published, settled, sound, tokens

_WIDTHS: dict[str, Any] = dict(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128
)
_TEXTS = {0: "batch", 1: "length"}
_LENGTHS = [{"batch": 2, "length": 24}, {"batch": 3, "length": 37}]
_BATCHES = [{"batch": 2}, {"batch": 3}]


def _ids_and_mask(batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, length * 3 // 4 :] = 0
    return tokens(batch, length, below=100), mask


@published("transformers.Sam")
def segments_by_points(name: str, whole: bool) -> Architecture:
    from transformers import (
        SamConfig,
        SamMaskDecoderConfig,
        SamModel,
        SamPromptEncoderConfig,
        SamVisionConfig,
    )

    vision = SamVisionConfig(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=256,
        window_size=7,
        global_attn_indexes=[1],
        mlp_dim=128,
        output_channels=64,
        num_pos_feats=32,
    )
    prompts = SamPromptEncoderConfig(hidden_size=64, image_size=256)
    decoder = SamMaskDecoderConfig(hidden_size=64, mlp_dim=128, num_attention_heads=4, iou_head_hidden_dim=64)
    config = SamConfig(
        vision_config=vision.to_dict(),
        prompt_encoder_config=prompts.to_dict(),
        mask_decoder_config=decoder.to_dict(),
    )

    def call(m: Any, image: torch.Tensor, points: torch.Tensor, labels: torch.Tensor) -> tuple:
        found = m(pixel_values=image, input_points=points, input_labels=labels)
        return found.pred_masks, found.iou_scores

    def make(batch: int, prompts: int, points: int) -> tuple:
        places = torch.rand(batch, prompts, points, 2) * 256
        return picture(batch, 256, 256), places, torch.ones(batch, prompts, points, dtype=torch.long)

    open_axes = {0: "batch", 1: "prompts", 2: "points"}
    return Architecture(
        settled(Call(SamModel(config), call)),
        make,
        ["image", "points", "labels"],
        [{0: "batch"}, open_axes, open_axes],
        [{"batch": 2, "prompts": 3, "points": 2}, {"batch": 1, "prompts": 2, "points": 4}],
    )


@published("transformers.PatchTST", "transformers.PatchTSMixer")
def patches_of_series(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    options = dict(context_length=64, patch_length=8, patch_stride=8, prediction_length=12, d_model=32)
    config = getattr(transformers, f"{base}Config")(**options, num_input_channels=3, num_hidden_layers=2)
    module = getattr(transformers, f"{base}ForPrediction")(config)
    call = Call(module, lambda m, x: m(past_values=x).prediction_outputs)
    return Architecture(
        settled(call), lambda batch: (torch.randn(batch, 64, 3),), ["past"], [{0: "batch"}], _BATCHES
    )


@published("transformers.TimeSeriesTransformer")
def forecast(name: str, whole: bool) -> Architecture:
    from transformers import TimeSeriesTransformerConfig, TimeSeriesTransformerModel

    lags, before, after = [1, 2, 3], 18, 6
    config = TimeSeriesTransformerConfig(
        prediction_length=after, context_length=before, lags_sequence=lags, num_time_features=2, d_model=32
    )

    def call(m: Any, *inputs: torch.Tensor) -> torch.Tensor:
        names = ("past_values", "past_time_features", "past_observed_mask")
        names += ("future_values", "future_time_features")
        return m(**dict(zip(names, inputs, strict=True)), use_cache=False)[0]

    def make(batch: int) -> tuple:
        count = before + max(lags)
        past, future = (torch.randn(batch, n).abs() + 1 for n in (count, after))
        return (
            *(past, torch.randn(batch, count, 2), torch.ones(batch, count)),
            *(future, torch.randn(batch, after, 2)),
        )

    names = ["past", "past_times", "observed", "future", "future_times"]
    module = settled(Call(TimeSeriesTransformerModel(config), call))
    return Architecture(module, make, names, [{0: "batch"}] * 5, _BATCHES)


@published("transformers.SeamlessM4T", "transformers.SeamlessM4Tv2")
def spoken_to_text(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    config = getattr(transformers, f"{base}Config")(
        vocab_size=200,
        t2u_vocab_size=200,
        hidden_size=64,
        speech_encoder_layers=2,
        speech_encoder_attention_heads=4,
        speech_encoder_intermediate_size=128,
        encoder_layers=2,
        encoder_ffn_dim=128,
        encoder_attention_heads=4,
        decoder_layers=2,
        decoder_ffn_dim=128,
        decoder_attention_heads=4,
        num_adapter_layers=1,
    )
    module = getattr(transformers, f"{base}ForSpeechToText")(config)
    call = Call(module, lambda m, x, ids: m(input_features=x, decoder_input_ids=ids, use_cache=False).logits)
    return Architecture(
        settled(call),
        lambda batch, frames, written: (torch.randn(batch, frames, 160), tokens(batch, written, below=150)),
        ["features", "ids"],
        [{0: "batch", 1: "frames"}, {0: "batch", 1: "written"}],
        [{"batch": 2, "frames": 64, "written": 5}, {"batch": 3, "frames": 96, "written": 7}],
    )


@published("transformers.Moonshine")
def samples_to_text(name: str, whole: bool) -> Architecture:
    from transformers import MoonshineConfig, MoonshineForConditionalGeneration

    config = MoonshineConfig(
        vocab_size=200,
        hidden_size=48,
        intermediate_size=96,
        encoder_num_hidden_layers=2,
        decoder_num_hidden_layers=2,
        encoder_num_attention_heads=4,
        decoder_num_attention_heads=4,
    )
    call = Call(
        MoonshineForConditionalGeneration(config),
        lambda m, x, ids: m(input_values=x, decoder_input_ids=ids, use_cache=False).logits,
    )
    return Architecture(
        settled(call),
        lambda batch, samples, written: (sound(batch, samples), tokens(batch, written, below=150)),
        ["samples", "ids"],
        [{0: "batch", 1: "samples"}, {0: "batch", 1: "written"}],
        [{"batch": 2, "samples": 8000, "written": 5}, {"batch": 3, "samples": 12345, "written": 7}],
    )


@published("transformers.Kosmos2")
def grounded_text(name: str, whole: bool) -> Architecture:
    from transformers import Kosmos2Config, Kosmos2ForConditionalGeneration

    text = dict(vocab_size=300, embed_dim=64, layers=2, ffn_dim=128, attention_heads=4)
    vision = {**_WIDTHS, "image_size": 56, "patch_size": 14}
    config = Kosmos2Config(
        text_config={**text, "max_position_embeddings": 128}, vision_config=vision, latent_query_num=8
    )

    def call(m: Any, image: torch.Tensor, ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        given = {"pixel_values": image, "input_ids": ids, "image_embeds_position_mask": places}
        return m(**given, use_cache=False).logits

    def make(batch: int, length: int) -> tuple:
        places = torch.zeros(batch, length, dtype=torch.long)
        places[:, 2:10] = 1
        return picture(batch, 56, 56), tokens(batch, length, below=200), places

    module = settled(Call(Kosmos2ForConditionalGeneration(config), call))
    return Architecture(module, make, ["image", "ids", "places"], [{0: "batch"}, _TEXTS, _TEXTS], _LENGTHS)


@published("transformers.Blip")
def captions(name: str, whole: bool) -> Architecture:
    from transformers import BlipConfig, BlipForConditionalGeneration

    text = {**_WIDTHS, "vocab_size": 300, "encoder_hidden_size": 64, "max_position_embeddings": 64}
    vision = {**_WIDTHS, "image_size": 64, "patch_size": 16}
    config = BlipConfig(text_config={**text, "bos_token_id": 290, "sep_token_id": 291}, vision_config=vision)

    def call(m: Any, image: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return m(pixel_values=image, input_ids=ids, attention_mask=mask).logits

    module = settled(Call(BlipForConditionalGeneration(config), call))
    return Architecture(
        module,
        lambda batch, length: (picture(batch, 64, 64), *_ids_and_mask(batch, length)),
        ["image", "ids", "mask"],
        [{0: "batch"}, _TEXTS, _TEXTS],
        _LENGTHS,
    )


@published("transformers.LayoutLMv3")
def pages(name: str, whole: bool) -> Architecture:
    from transformers import LayoutLMv3Config, LayoutLMv3Model

    config = LayoutLMv3Config(
        **_WIDTHS,
        vocab_size=300,
        coordinate_size=10,
        shape_size=12,
        input_size=64,
        max_2d_position_embeddings=128,
        max_position_embeddings=80,
    )

    def make(batch: int, length: int) -> tuple:
        ids, mask = _ids_and_mask(batch, length)
        boxes = torch.randint(0, 60, (batch, length, 4))
        boxes[..., 2:] += boxes[..., :2]
        return ids, boxes, mask, picture(batch, 64, 64)

    def call(m: Any, *inputs: torch.Tensor) -> torch.Tensor:
        names = ("input_ids", "bbox", "attention_mask", "pixel_values")
        return m(**dict(zip(names, inputs, strict=True)))[0]

    module = settled(Call(LayoutLMv3Model(config), call))
    names = ["ids", "boxes", "mask", "image"]
    return Architecture(module, make, names, [_TEXTS, _TEXTS, _TEXTS, {0: "batch"}], _LENGTHS)


@published("transformers.VideoMAE", "transformers.Timesformer", "transformers.Vivit")
def clips(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    patches = {"tubelet_size": [2, 16, 16]} if base == "Vivit" else {"patch_size": 16}
    config = getattr(transformers, f"{base}Config")(**_WIDTHS, **patches, image_size=32, num_frames=4)
    call = Call(getattr(transformers, f"{base}Model")(config), lambda m, x: m(pixel_values=x)[0])
    return Architecture(
        settled(call),
        lambda batch: (picture(batch * 4, 32, 32).view(batch, 4, 3, 32, 32),),
        ["clip"],
        [{0: "batch"}],
        _BATCHES,
    )


@published("transformers.Perceiver")
def latents(name: str, whole: bool) -> Architecture:
    from transformers import PerceiverConfig, PerceiverForMaskedLM

    config = PerceiverConfig(
        num_latents=16,
        d_latents=64,
        d_model=32,
        num_self_attends_per_block=2,
        num_self_attention_heads=4,
        num_cross_attention_heads=4,
        vocab_size=100,
        max_position_embeddings=64,
        qk_channels=32,
        v_channels=64,
    )
    call = Call(PerceiverForMaskedLM(config), lambda m, ids, mask: m(inputs=ids, attention_mask=mask).logits)
    return Architecture(
        settled(call),
        lambda batch: _ids_and_mask(batch, 64),
        ["ids", "mask"],
        [{0: "batch"}] * 2,
        _BATCHES,
    )


@published("transformers.Pix2Struct")
def patches_to_text(name: str, whole: bool) -> Architecture:
    from transformers import Pix2StructConfig, Pix2StructForConditionalGeneration

    text = dict(vocab_size=200, hidden_size=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
    vision = dict(hidden_size=64, patch_embed_hidden_size=48, d_ff=128, d_kv=16, seq_len=64)
    config = Pix2StructConfig(
        text_config=text, vision_config={**vision, "num_hidden_layers": 2, "num_attention_heads": 4}
    )

    def make(batch: int, patches: int, written: int) -> tuple:
        rows = torch.randn(batch, patches, 50)
        rows[..., :2] = torch.randint(1, 30, (batch, patches, 2)).float()  # where a patch is
        return rows, tokens(batch, written, below=150)

    def call(m: Any, patches: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return m(flattened_patches=patches, decoder_input_ids=ids, use_cache=False).logits

    return Architecture(
        settled(Call(Pix2StructForConditionalGeneration(config), call)),
        make,
        ["patches", "ids"],
        [{0: "batch", 1: "patches"}, {0: "batch", 1: "written"}],
        [{"batch": 2, "patches": 20, "written": 5}, {"batch": 3, "patches": 33, "written": 7}],
    )
