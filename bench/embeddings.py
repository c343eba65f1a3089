#!/usr/bin/env python3
"""Texts per second of headrace.SentenceEncoder, fastembed and sentence-transformers with the same MiniLM.

fastembed and Headrace read one ONNX file; sentence-transformers runs the published weights by PyTorch, as it
does by default. All have the same threads; rounds alternate, and the best of each counts. Their vectors have
to agree.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from serve_embeddings import SAME, fastembed_model, make_texts, onnx_folder

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

Encode = Callable[[Sequence[str]], np.ndarray]


def headrace_side(threads: int) -> Encode:
    from headrace import SentenceEncoder

    return SentenceEncoder(onnx_folder(), threads=threads).encode


def fastembed_side(threads: int) -> Encode | None:
    model = fastembed_model(threads)
    return model and (lambda texts: np.array(list(model.embed(texts, batch_size=32))))


def sentence_transformers_side(threads: int) -> Encode | None:
    """None, with the reason printed, where it cannot be compared with."""
    sys.path.append(str(ROOT / "build/sentence_transformers"))
    try:
        import torch
        from minilm.model import model_file

        with open(os.devnull, "w") as quiet, contextlib.redirect_stderr(quiet):
            from sentence_transformers import SentenceTransformer
    except ImportError as error:
        print(f"sentence-transformers is left out: {error}", flush=True)
        return None
    torch.set_num_threads(threads)
    model = SentenceTransformer(str(model_file("model.safetensors").parent), device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=32, normalize_embeddings=True)


def rates(sides: dict[str, Encode], parts: Sequence[Sequence[str]], rounds: int) -> dict[str, float]:
    best, count = dict.fromkeys(sides, 0.0), sum(map(len, parts))
    for name in list(sides) * rounds:
        begin = time.perf_counter()
        for part in parts:
            sides[name](part)
        best[name] = max(best[name], count / (time.perf_counter() - begin))
    return best


def check(sides: dict[str, Encode]) -> None:
    """Raises SystemExit where vectors differ."""
    texts = make_texts("agreement", 64)
    ours = sides["headrace"](texts)
    for name, encode in sides.items():
        apart = float(np.abs(encode(texts) - ours).max())
        print(f"headrace and {name}: a number differs by {apart:.1e} at most", flush=True)
        if apart > SAME:
            raise SystemExit(f"headrace and {name} disagree: {SAME} at most is due")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    makers = (headrace_side, fastembed_side, sentence_transformers_side)
    made: dict[str, Any] = {
        make.__name__.removesuffix("_side").replace("_", "-"): make(arguments.threads) for make in makers
    }
    sides = {name: encode for name, encode in made.items() if encode}
    check(sides)
    for title, count, batch in (("one text", 48, 1), ("32 texts", 96, 32), ("256 texts", 256, 256)):
        texts = make_texts(title, count)
        parts = [texts[i : i + batch] for i in range(0, count, batch)]
        best = rates(sides, parts, arguments.rounds)
        others = [rate for name, rate in best.items() if name != "headrace"]
        row = ", ".join(f"{name} {rate:.0f}" for name, rate in best.items())
        factor = f"; {best['headrace'] / max(others):.2f} times the better of the others" if others else ""
        print(f"calls of {title}: {row} texts/s{factor}", flush=True)


if __name__ == "__main__":
    main()
