"""Published architectures that nothing here was tuned for: Headrace beside ONNX Runtime and OpenVINO.

    make bench-published [MODELS="convnext_tiny swin_tiny"]

Exact products beside ONNX Runtime and OpenVINO in f32, precision="fast" beside OpenVINO as it comes. All
read the same ONNX file, with random weights, run in processes of their own and take turns. Outputs are
compared first.
Results: a table and build/bench/published.json.
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import zoo_peers
from headrace._cli import ab_timing
from zoo_peers import OUT, Side, alternating, choose_models, cosine, median_ratio, timing_parser

if TYPE_CHECKING:
    import torch

EXACT, FAST = "Headrace on ONNX", "Headrace fast"
PEERS = {"ONNX Runtime": EXACT, "OpenVINO": EXACT, "OpenVINO as it comes": FAST}
TOLERANCE = 1e-3  # of the largest magnitude, between exact programs
LEAST = 1e-6  # of the largest magnitude that a network may give


def _of_images(base: str, size: int = 224, **options: object) -> Callable[[], tuple]:
    """A network of transformers whose first result is its features."""

    def make() -> tuple:
        import torch
        import transformers

        config = getattr(transformers, f"{base}Config")(**options)
        module = getattr(transformers, f"{base}Model")(config)
        return module, lambda m, x: m(pixel_values=x)[0], (torch.randn(1, 3, size, size),)

    return make


def _of_texts(base: str, model: str = "Model", **options: object) -> Callable[[], tuple]:
    """An encoder of 128 tokens."""

    def make() -> tuple:
        import torch
        import transformers

        config = getattr(transformers, f"{base}Config")(**options)
        module = getattr(transformers, base + model)(config)
        ids = torch.randint(3, 1000, (1, 128))
        return (
            module,
            lambda m, ids, mask: m(input_ids=ids, attention_mask=mask)[0],
            (ids, torch.ones_like(ids)),
        )

    return make


def _of_sound(base: str, **options: object) -> Callable[[], tuple]:
    """An encoder of a second of sound."""

    def make() -> tuple:
        import torch
        import transformers

        config = getattr(transformers, f"{base}Config")(**options)
        module = getattr(transformers, f"{base}Model")(config)
        return module, lambda m, x: m(x)[0], (torch.randn(1, 16000),)

    return make


def _hifigan() -> tuple:
    import torch
    import transformers

    module = transformers.SpeechT5HifiGan(transformers.SpeechT5HifiGanConfig())
    return module, lambda m, x: m(x), (torch.randn(1, 40, 80),)


CASES: dict[str, Callable[[], tuple]] = {
    "convnext_tiny": _of_images("ConvNext"),
    "efficientnet_b0": _of_images(
        "EfficientNet", width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280
    ),
    "swin_tiny": _of_images("Swin"),
    "segformer_b0": _of_images("Segformer"),
    "mobilevit_s": _of_images("MobileViT", 256),
    "regnet_y": _of_images("RegNet"),
    "deberta_v3_small": _of_texts(
        "DebertaV2",
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
        num_hidden_layers=6,
        vocab_size=8192,
        relative_attention=True,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
    ),
    "t5_encoder": _of_texts("T5", "EncoderModel", vocab_size=8192),
    "wav2vec2": _of_sound("Wav2Vec2"),
    "hifigan": _hifigan,
    "convnextv2_tiny": _of_images("ConvNextV2"),
    "swinv2_tiny": _of_images("Swinv2", 256, image_size=256, window_size=8),
    "focalnet_tiny": _of_images("FocalNet"),
    "pvt_v2_b0": _of_images("PvtV2"),
    "conformer": _of_sound("Wav2Vec2Conformer", num_hidden_layers=4),
}


def _settle(module: torch.nn.Module, run: Callable[[], object]) -> None:
    """Weights and statistics with which deep networks give more than next to nothing."""
    import torch

    norms = [part for part in module.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
        torch.nn.init.ones_(norm.weight)
    for part in module.modules():
        if isinstance(part, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(part.weight)
    if norms:
        module.train()
        run()


def write(case: str, folder: Path) -> None:
    import torch

    class Call(torch.nn.Module):
        def __init__(self, module: torch.nn.Module, call: Callable) -> None:
            super().__init__()
            self.module, self.call = module, call

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return self.call(self.module, *inputs)

    torch.manual_seed(0)
    module, call, inputs = CASES[case]()
    _settle(module, lambda: call(module, *inputs))
    module.eval().requires_grad_(False)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "inputs.npz", *[x.numpy() for x in inputs])
    torch.onnx.export(Call(module, call), inputs, str(folder / "model.onnx"), dynamo=False, opset_version=17)
    (folder / "facts.json").write_text(json.dumps({"weights": None}))


def compare(case: str, threads: int, rounds: int, seconds: float) -> dict:
    folder = OUT / "published" / case
    sides: list[Side] = []
    try:
        for name in (EXACT, FAST):
            sides.append(Side(name, case, folder, threads))
        for name in PEERS:
            try:
                sides.append(Side(name, case, folder, threads))
            except zoo_peers.UnavailableError as error:
                print(f"{case}: {name} cannot run it: {error}", flush=True)
        got = {side.name: side.output(folder).astype(np.float64) for side in sides}
        if not np.abs(got[EXACT]).max() > LEAST:
            sys.exit(f"error: {case} gives next to nothing: times would be those of denormal numbers")
        for name in {"ONNX Runtime", "OpenVINO"} & got.keys():
            difference = np.abs(got[name] - got[EXACT]).max() / np.abs(got[EXACT]).max()
            if not difference <= TOLERANCE:
                sys.exit(f"error: {case}: {name} and {EXACT} differ by {difference:.1e} of the largest")
        times = alternating(sides, rounds, seconds)
    finally:
        for side in sides:
            side.close()
    return {
        "case": case,
        "threads": threads,
        "median_ms": {name: statistics.median(list_) / 1e3 for name, list_ in times.items()},
        "ratio": {
            peer: median_ratio(times[ours], times[peer]) for peer, ours in PEERS.items() if peer in times
        },
        "cosine": {name: cosine(y, got[EXACT]) for name, y in got.items()},
    }


def show(row: dict) -> None:
    print(
        f"{row['case']:18} {row['threads']}T  exact {row['median_ms'][EXACT]:8.2f} ms   "
        + "   ".join(f"{peer} {ratio:5.2f}" for peer, ratio in row["ratio"].items())
        + f"   fast {row['median_ms'][FAST]:8.2f} ms, cosine {row['cosine'][FAST]:.6f}",
        flush=True,
    )


def main() -> None:
    parser = timing_parser(__doc__)
    parser.add_argument("--keep", action="store_true", help="time the files of the last call")
    arguments = parser.parse_args()
    choose_models(parser, arguments, list(CASES))
    host = ab_timing.machine()
    ab_timing.print_machine(host, arguments.rounds)
    rows: list[dict] = []
    for case in arguments.models:
        folder = OUT / "published" / case
        if not (arguments.keep and (folder / "facts.json").exists()):
            zoo_peers.models("--write", case, folder, script="published.py")
        for threads in arguments.threads:
            rows.append(compare(case, threads, arguments.rounds, arguments.seconds))
            show(rows[-1])
    path = OUT / "published.json"
    path.write_text(json.dumps({"machine": host, "results": rows}, indent=2) + "\n")
    print(f"\nresults: {path}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        warnings.filterwarnings("ignore")
        logging.disable(logging.WARNING)
        write(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
