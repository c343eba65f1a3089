"""all-MiniLM-L6-v2 from PyTorch through ExecuTorch on ggml, beside the same model as a WebNN graph.

    python examples/executorch_minilm.py [FILE]

Exports the PyTorch module to a .pte, which is kept in build/demo for the next time, runs it with ExecuTorch's
runtime on every sentence of FILE, and prints the lowest cosine to the WebNN embedding. Fails below 0.99999.
Without PyTorch and ExecuTorch it says so in a line and does nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import statistics
import sys
import time
import warnings
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import headrace
import numpy as np
from semantic_search import DEFAULT_FILE, MIN_COSINE, read_sentences, row_cosines

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build/demo"
TOKENS = 128  # of the exported program; sentences are padded to it
INPUTS = ("input_ids", "attention_mask")


def program_key(weights: Path) -> str:
    """Of everything that the .pte depends on."""
    key = hashlib.sha256()
    for package in ("torch", "executorch"):
        key.update(metadata.version(package).encode())
    packages = Path(headrace.__file__).parent.parent
    model = Path(__file__).resolve().parent / "minilm/torch_model.py"
    sources = [*packages.glob("executorch_ggml/**/*.py"), model]
    for path in [*sorted(sources), Path(__file__), Path(headrace._core.__file__), weights]:
        key.update(hashlib.sha256(path.read_bytes()).digest())
    return key.hexdigest()[:16]


def export(path: Path) -> None:
    """Writes the model as a program that is one delegate."""
    import torch
    from executorch.exir import to_edge_transform_and_lower
    from executorch_ggml import GgmlPartitioner
    from minilm.torch_model import MiniLMModule

    print("exporting MiniLM to a .pte (once, about half a minute)", flush=True)
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Two tensors: export cannot tell apart the uses of one that is given twice.
        inputs = tuple(torch.ones(1, TOKENS, dtype=torch.long) for _ in INPUTS)
        exported = torch.export.export(MiniLMModule.pretrained(), inputs)
        edge = to_edge_transform_and_lower(exported, partitioner=[GgmlPartitioner(strict=True)])
        program = edge.to_executorch()
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob("minilm-*.pte"):
        old.unlink()
    partial = path.with_suffix(".partial")
    partial.write_bytes(program.buffer)
    partial.rename(path)


def load(path: Path) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
    """The program as a function from tokens [1, N] to an embedding [384]."""
    import torch
    from executorch.runtime import Runtime

    program = Runtime.get().load_program(path)
    method = program.load_method("forward")

    def run(tokens: dict[str, np.ndarray]) -> np.ndarray:
        feeds = [torch.from_numpy(tokens[name].astype(np.int64)) for name in INPUTS]
        return method.execute(feeds)[0][0].numpy()

    return run


def padded(tokens: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.pad(values, ((0, 0), (0, TOKENS - values.shape[1]))) for name, values in tokens.items()}


def compare(sentences: list[str]) -> None:
    import webnn
    from minilm.model import MiniLM, model_file

    path = KEPT / f"minilm-{program_key(model_file('model.safetensors'))}.pte"
    if not path.exists():
        export(path)
    import executorch_ggml

    if executorch_ggml.runtime_path() is None:
        sys.exit("error: libexecutorch_ggml_runtime.so is not built: make executorch")
    other = MiniLM(webnn.ML().create_context(accelerated=False))
    texts = [tokens for s in sentences if (tokens := other.tokenize(s))["input_ids"].shape[1] <= TOKENS]
    run = load(path)
    embeddings, milliseconds = [], []
    for text in map(padded, texts):
        begin = time.perf_counter()
        embeddings.append(run(text).copy())
        milliseconds.append((time.perf_counter() - begin) * 1e3)
    cosines = row_cosines(np.stack(embeddings), np.stack([other.run(text) for text in texts]))
    print(f"\nThe same model from PyTorch, through ExecuTorch: {path.relative_to(ROOT)}")
    print(
        f"{len(texts)} sentences      {statistics.median(milliseconds):8.2f} ms per {TOKENS} tokens (median)"
    )
    print(f"lowest cosine to the WebNN embedding  {cosines.min():.8f}")
    if not cosines.min() >= MIN_COSINE:  # true for NaN as well
        sys.exit(f"error: the two doors disagree: cosine {cosines.min():.6f}, below {MIN_COSINE}")


def main() -> None:
    parser = argparse.ArgumentParser(description="MiniLM from PyTorch through ExecuTorch on ggml.")
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE, metavar="FILE", help="UTF-8 text")
    arguments = parser.parse_args()
    if not all(find_spec(package) for package in ("torch", "executorch")):
        print("\nThe ExecuTorch door is left out: make executorch installs PyTorch and ExecuTorch (1.5 GB).")
        return
    compare(read_sentences(arguments.file))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\ninterrupted")
