"""Speech: encoders, recognisers, synthesis."""

from __future__ import annotations

from typing import Any

import torch
from architecture import Architecture, Call, published, settled, sound, tokens
from images import of_config

_WAVES = ["Wav2Vec2", "Hubert", "WavLM", "SEW", "SEWD", "Data2VecAudio", "UniSpeech", "Wav2Vec2Conformer"]


@published(*(f"transformers.{name}" for name in _WAVES))
def of_waves(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    config = of_config(base, getattr(transformers, f"{base}Config")(), whole)
    kind = "Model" if base in ("Hubert", "SEW", "SEWD") else "ForCTC"
    module = getattr(transformers, f"{base}{kind}")(config)
    return Architecture(
        settled(Call(module, lambda m, x: m(input_values=x)[0])),
        lambda batch, samples: (sound(batch, samples),),
        ["samples"],
        [{0: "batch", 1: "samples"}],
        [{"batch": 2, "samples": 16000}, {"batch": 1, "samples": 23456}],
    )


@published("transformers.Wav2Vec2Masked")
def of_masked_waves(name: str, whole: bool) -> Architecture:
    import transformers

    config = of_config(
        name, transformers.Wav2Vec2Config(feat_extract_norm="layer", do_stable_layer_norm=True), whole
    )
    module = transformers.Wav2Vec2ForCTC(config)

    def make(batch: int, samples: int) -> tuple:
        mask = torch.ones(batch, samples, dtype=torch.long)
        mask[0, samples * 3 // 4 :] = 0
        return sound(batch, samples), mask

    return Architecture(
        settled(Call(module, lambda m, x, mask: m(input_values=x, attention_mask=mask)[0])),
        make,
        ["samples", "mask"],
        [{0: "batch", 1: "samples"}] * 2,
        [{"batch": 2, "samples": 16000}, {"batch": 3, "samples": 23456}],
    )


@published("transformers.Whisper")
def whisper(name: str, whole: bool) -> Architecture:
    import transformers

    config = transformers.WhisperConfig()
    config = of_config(name, config, whole, {"encoder_layers": 2, "decoder_layers": 2})
    module = transformers.WhisperModel(config)

    def make(batch: int, written: int) -> tuple:
        return torch.randn(batch, 80, 3000), tokens(batch, written, below=1000)

    return Architecture(
        settled(
            Call(module, lambda m, x, ids: m(input_features=x, decoder_input_ids=ids, use_cache=False)[0])
        ),
        make,
        ["features", "ids"],
        [{0: "batch"}, {0: "batch", 1: "written"}],
        [{"batch": 2, "written": 5}, {"batch": 1, "written": 9}],
    )


@published("transformers.Speech2Text")
def speech_to_text(name: str, whole: bool) -> Architecture:
    import transformers

    config = of_config(
        name, transformers.Speech2TextConfig(), whole, {"encoder_layers": 2, "decoder_layers": 2}
    )
    module = transformers.Speech2TextModel(config)

    def make(batch: int, frames: int, written: int) -> tuple:
        return torch.randn(batch, frames, 80), tokens(batch, written, below=1000)

    return Architecture(
        settled(
            Call(module, lambda m, x, ids: m(input_features=x, decoder_input_ids=ids, use_cache=False)[0])
        ),
        make,
        ["features", "ids"],
        [{0: "batch", 1: "frames"}, {0: "batch", 1: "written"}],
        [{"batch": 2, "frames": 120, "written": 5}, {"batch": 1, "frames": 201, "written": 9}],
    )


@published("transformers.ASTForAudioClassification")
def spectrogram_classifier(name: str, whole: bool) -> Architecture:
    import transformers

    config = of_config(name, transformers.ASTConfig(), whole)
    module = transformers.ASTForAudioClassification(config)
    return Architecture(
        settled(Call(module, lambda m, x: m(input_values=x).logits)),
        lambda batch: (torch.randn(batch, 1024, 128),),
        ["features"],
        [{0: "batch"}],
        [{"batch": 2}, {"batch": 1}],
    )


@published("transformers.SpeechT5HifiGan")
def vocoder(name: str, whole: bool) -> Architecture:
    import transformers

    module = transformers.SpeechT5HifiGan(transformers.SpeechT5HifiGanConfig())
    return Architecture(
        settled(module),
        lambda batch, frames: (torch.randn(batch, frames, 80),),
        ["spectrogram"],
        [{0: "batch", 1: "frames"}],
        [{"batch": 2, "frames": 20}, {"batch": 1, "frames": 33}],
    )


@published("transformers.SpeechT5")
def speech_t5(name: str, whole: bool) -> Architecture:
    import transformers

    config = of_config(name, transformers.SpeechT5Config(), whole, {"encoder_layers": 2, "decoder_layers": 2})
    config.encoder_layerdrop = config.decoder_layerdrop = 0.0
    module = transformers.SpeechT5ForSpeechToText(config)

    def make(batch: int, samples: int, written: int) -> tuple:
        return sound(batch, samples), tokens(batch, written, below=80)

    return Architecture(
        settled(
            Call(module, lambda m, x, ids: m(input_values=x, decoder_input_ids=ids, use_cache=False).logits)
        ),
        make,
        ["samples", "ids"],
        [{0: "batch", 1: "samples"}, {0: "batch", 1: "written"}],
        [{"batch": 2, "samples": 16000, "written": 5}, {"batch": 1, "samples": 23456, "written": 9}],
    )


def statistics(ours: list, theirs: list) -> str:
    """Compares results that random draws are part of: shapes, and amplitudes within a factor of two."""
    for a, b in zip(ours, theirs, strict=True):
        if a.ndim != b.ndim or a.shape[:-1] != b.shape[:-1]:
            return f"shapes {a.shape} and {b.shape}"
        if not 0.5 < (float(abs(a).mean()) + 1e-9) / (float(abs(b).mean()) + 1e-9) < 2:
            return f"mean amplitudes {abs(a).mean()} and {abs(b).mean()}"
    return ""


@published("transformers.Vits")
def vits(name: str, whole: bool) -> Architecture:
    import transformers

    config = transformers.VitsConfig(noise_scale=0.0 if False else 0.667)
    module = transformers.VitsModel(config)

    def make(batch: int, length: int) -> tuple:
        return (tokens(batch, length, below=30),)

    return Architecture(
        settled(Call(module, lambda m, ids: m(input_ids=ids).waveform)),
        make,
        ["ids"],
        [{0: "batch", 1: "length"}],
        [{"batch": 1, "length": 20}, {"batch": 1, "length": 31}],
        compare=statistics,
    )


@published("transformers.Encodec", "transformers.Dac", "transformers.Mimi")
def codec(name: str, whole: bool) -> Architecture:
    import transformers

    base = name.removeprefix("transformers.")
    module: Any = getattr(transformers, f"{base}Model")(getattr(transformers, f"{base}Config")())

    def run(m: Any, x: torch.Tensor) -> torch.Tensor:
        codes = m.encode(x)
        return codes.audio_codes.float() if base != "Dac" else codes.quantized_representation

    if base == "Dac":
        run = lambda m, x: m(x).audio_values  # noqa: E731
    if base == "Encodec":
        run = lambda m, x: m.decoder(m.encoder(x))  # noqa: E731
    if base == "Mimi":
        run = lambda m, x: m.encoder(x)  # noqa: E731
    return Architecture(
        settled(Call(module, run)),
        lambda batch, samples: (sound(batch, samples)[:, None],),
        ["samples"],
        [{0: "batch", 2: "samples"}],
        [{"batch": 2, "samples": 6400}, {"batch": 1, "samples": 9600}],
    )
