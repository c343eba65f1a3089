"""Semantic search: all-MiniLM-L6-v2 as a WebNN graph and as an ONNX model on ggml, checked by ONNX Runtime.

    python examples/semantic_search.py [FILE] [--query TEXT ...] [--threads N] [--top K]

Embeds every sentence of FILE through both doors and with ONNX Runtime, and prints, for each query, the
sentences that mean the most similar thing. Fails if any two embeddings of the same text have a cosine below
0.99999.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import headrace
import numpy as np
import webnn
from minilm.model import MiniLM
from minilm.onnx_model import LoadedMiniLM, OnnxMiniLM

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_FILE = Path(__file__).parent / "data" / "sentences.txt"
DEFAULT_QUERIES = (
    "How do I mend a flat bicycle tyre?",
    "a small animal in hibernation",
    "everything is getting more expensive",
    "why is my computer so slow?",
    "a song to help a child fall asleep",
)
MIN_COSINE = 0.99999
# A line this long that no punctuation ends is taken to run on into the next one.
WRAPPED_LINE = 50

Inputs = dict[str, np.ndarray]


def split_sentences(text: str) -> list[str]:
    """The sentences of `text`: at least one per line, except where a paragraph wraps."""
    sentences = []
    for paragraph in re.split(r"\n\s*\n", text):
        joined = ""
        for line in filter(None, map(str.strip, paragraph.splitlines())):
            joined += line
            wraps = len(line) >= WRAPPED_LINE and not line.endswith((".", "!", "?", ":"))
            joined += " " if wraps else "\n"
        for line in joined.splitlines():
            sentences += re.split(r"(?<=[.!?])\s+(?=\S)", line.strip())
    return [sentence for sentence in sentences if sentence]


def read_sentences(path: Path) -> list[str]:
    """The sentences of a UTF-8 text file; ends the program with a message if there are none."""
    try:
        sentences = split_sentences(path.read_text("utf-8-sig"))
    except OSError as error:
        sys.exit(f"error: cannot read {path}: {error.strerror}")
    except UnicodeDecodeError:
        sys.exit(f"error: {path} is not a text file in UTF-8")
    if not sentences:
        sys.exit(f"error: {path} holds no sentences")
    return sentences


def show_progress(label: str, done: int, total: int) -> None:
    """Keeps one line up to date on a terminal; elsewhere prints only the last state."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{label}: {done}/{total}", end=end, file=sys.stderr, flush=True)
    elif done == total:
        print(f"{label}: {done}/{total}", file=sys.stderr, flush=True)


def embed(label: str, run: Callable[[Inputs], np.ndarray], texts: list[Inputs]) -> tuple[np.ndarray, float]:
    """Embeds tokenized texts one by one: float32 [len(texts), 384], median milliseconds.

    One untimed run of each sequence length comes first, so that compiling and first
    touches do not count.
    """
    for first in {text["input_ids"].shape[1]: text for text in texts}.values():
        run(first)
    embeddings, milliseconds = [], []
    for text in texts:
        begin = time.perf_counter()
        embeddings.append(run(text))
        milliseconds.append((time.perf_counter() - begin) * 1e3)
        show_progress(label, len(embeddings), len(texts))
    return np.stack(embeddings), statistics.median(milliseconds)


def row_cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine of each row of a with the same row of b, in float64: [N]"""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def print_hits(query: str, vector: np.ndarray, sentences: list[str], matrix: np.ndarray, top: int) -> None:
    scores = matrix @ vector  # both have length 1, so this is the cosine
    print(f"\n{query}")
    for index in np.argsort(-scores, kind="stable")[:top]:
        print(f"  {scores[index]:5.3f}  {sentences[index]}")


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return int(text)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Search a text by meaning, with a WebNN graph that runs on ggml."
    )
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        default=DEFAULT_FILE,
        metavar="FILE",
        help="UTF-8 text, a sentence per line or paragraphs (default: %(default)s)",
    )
    parser.add_argument(
        "--query",
        nargs="+",
        action="extend",
        metavar="TEXT",
        help="what to look for (default: five examples)",
    )
    parser.add_argument(
        "--threads",
        type=positive,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="threads of either engine (default: %(default)s)",
    )
    parser.add_argument("--top", type=positive, default=3, metavar="K", help="hits per query (default: 3)")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    sentences = read_sentences(arguments.file)
    queries = arguments.query or list(DEFAULT_QUERIES)

    headrace.set_num_threads(arguments.threads)
    model = MiniLM(webnn.ML().create_context(accelerated=False))
    texts = [model.tokenize(text) for text in sentences + queries]
    ours, our_time = embed("embedding by the WebNN graph", model.run, texts)
    loaded, loaded_time = embed("embedding by the ONNX model", LoadedMiniLM(arguments.threads).run, texts)
    peer, peer_time = embed("embedding by ONNX Runtime", OnnxMiniLM(arguments.threads).run, texts)

    matrix = ours[: len(sentences)]
    for query, vector in zip(queries, ours[len(sentences) :], strict=True):
        print_hits(query, vector, sentences, matrix, arguments.top)

    print(f"\n{len(sentences)} sentences, {arguments.threads} threads")
    print(f"Headrace, WebNN graph  {our_time:8.2f} ms per sentence (median)")
    print(f"Headrace, ONNX model   {loaded_time:8.2f} ms per sentence (median)")
    print(f"ONNX Runtime           {peer_time:8.2f} ms per sentence (median)")
    for name, embeddings in (("WebNN graph", ours), ("ONNX model", loaded)):
        cosines = row_cosines(embeddings, peer)
        print(
            f"{name} beside ONNX Runtime: largest difference {np.abs(embeddings - peer).max():.1e}, ", end=""
        )
        print(f"lowest cosine {cosines.min():.8f}")
        if not cosines.min() >= MIN_COSINE:  # true for NaN as well
            worst = (sentences + queries)[int(np.argmin(cosines))]
            sys.exit(
                f"error: Headrace's {name} and ONNX Runtime disagree: cosine {cosines.min():.6f}, "
                f"below {MIN_COSINE}, for {worst!r}"
            )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\ninterrupted")
