#!/usr/bin/env python3
"""Published architectures through both doors with open dimensions: a line for each; a failure fails the run.

A process each, since exporters leave gigabytes behind. The list is what fits in an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

CHECK = Path(__file__).resolve().parent / "check.py"
SECONDS = 600  # of CPU time for one, whatever else the machine does
WAIT = 6 * SECONDS

# What is worth a door of its own; "onnx" is torch.onnx.export(dynamo=True).
RUNS: list[tuple[str, tuple[str, ...]]] = [
    ("torchvision.resnet18", ("onnx", "onnx-older", "executorch")),
    ("torchvision.mobilenet_v3_small", ("onnx", "executorch")),
    ("torchvision.efficientnet_b0", ("onnx",)),
    ("torchvision.convnext_tiny", ("onnx",)),
    ("torchvision.densenet121", ("onnx",)),
    ("torchvision.inception_v3", ("onnx",)),
    ("torchvision.regnet_y_400mf", ("onnx",)),
    ("torchvision.maxvit_t", ("onnx-older",)),
    ("torchvision.swin_v2_t", ("onnx-older",)),
    ("torchvision.deeplabv3_resnet50", ("onnx", "executorch")),
    ("torchvision.retinanet_resnet50_fpn", ("onnx",)),
    ("torchvision.ssdlite_whole", ("onnx-older",)),
    ("torchvision.r3d_18", ("onnx", "executorch")),
    ("torchvision.raft_small", ("onnx-older",)),
    ("timm.davit_tiny", ("onnx-older",)),
    ("timm.edgenext_xx_small", ("onnx-older",)),
    ("timm.efficientvit_b0", ("onnx-older",)),
    ("timm.focalnet_tiny_srf", ("onnx-older",)),
    ("timm.hrnet_w18_small", ("onnx-older",)),
    ("timm.mobilenetv4_conv_small", ("onnx", "executorch")),
    ("timm.pvt_v2_b0", ("onnx-older",)),
    ("timm.volo_d1_224", ("onnx-older",)),
    ("timm.xcit_nano_12_p16_224", ("onnx-older",)),
    ("transformers.SegFormer", ("onnx", "onnx-older", "executorch")),
    ("transformers.Detr", ("onnx", "onnx-older")),
    ("transformers.DPT", ("onnx",)),
    ("transformers.DepthAnything", ("onnx",)),
    ("transformers.Beit", ("onnx",)),
    ("transformers.CLIP", ("onnx",)),
    ("transformers.Bert", ("onnx", "executorch")),
    ("transformers.DebertaV2", ("onnx", "onnx-older")),
    ("transformers.MPNet", ("onnx",)),
    ("transformers.ModernBert", ("onnx",)),
    ("transformers.T5", ("onnx",)),
    ("transformers.Wav2Vec2", ("onnx", "executorch")),
    ("transformers.SpeechT5HifiGan", ("onnx",)),
    ("transformers.Sam", ("onnx-older",)),
    ("transformers.PatchTST", ("onnx",)),
    ("transformers.TimeSeriesTransformer", ("onnx-older",)),
    ("transformers.SeamlessM4T", ("onnx-older",)),
    ("transformers.Moonshine", ("onnx",)),
    ("transformers.Kosmos2", ("onnx-older",)),
    ("transformers.LayoutLMv3", ("onnx", "onnx-older")),
    ("transformers.Pix2Struct", ("onnx",)),
    ("crnn_gru", ("onnx-older",)),
    ("cached.GPT2LMHead", ("onnx", "executorch")),
    ("cached.LlamaForCausalLM", ("onnx", "executorch")),
    ("cached.T5", ("onnx", "executorch")),
    ("cached.Whisper", ("onnx", "executorch")),
]


def _limit_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 10))


def result_of(name: str, door: str, small: bool) -> dict:
    command = [sys.executable, str(CHECK), name, "--door", door, *(["--small"] if small else [])]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=WAIT, check=False, preexec_fn=_limit_time
        )
    except subprocess.TimeoutExpired:
        return {"passes": False, "error": f"it took more than {WAIT} s"}
    if done.returncode == -signal.SIGXCPU:
        return {"passes": False, "error": f"it took more than {SECONDS} s of CPU time"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"passes": False, "error": done.stderr[-400:]}


def line_of(name: str, door: str, found: dict, seconds: float) -> str:
    if "not exported" in found:
        return f"{name:40} {door:11} not exported by PyTorch: {found['not exported'][:80]}"
    errors = " ".join(e if isinstance(e, str) else f"{e:.0e}" for e in found.get("errors", []))
    verdict = "ok" if found["passes"] else "FAILED"
    rest = found.get("error", "") or f"{errors}  open: {', '.join(found.get('open', [])) or '-'}"
    return f"{name:40} {door:11} {verdict:6} {seconds:4.0f} s  {rest}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="parts of names")
    parser.add_argument("--small", action="store_true", help="with a few layers: to try this program")
    arguments = parser.parse_args()
    failures = passed = 0
    for name, doors in RUNS:
        if arguments.only and not any(part in name for part in arguments.only):
            continue
        for door in doors:
            start = time.monotonic()
            found = result_of(name, door, arguments.small)
            print(line_of(name, door, found, time.monotonic() - start), flush=True)
            passed += found["passes"]
            failures += not found["passes"] and "not exported" not in found
    print(f"{passed} pass, {failures} fail")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
