"""Texts per second of /v1/embeddings, and of PyPI's fastembed with the same ONNX model."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from raw_http import Connection, request_bytes

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

#: Requests at once at most; and of each case how many, and texts in each.
CLIENTS = 8
CASES = ((1, 1), (CLIENTS, 1), (1, 32), (CLIENTS, 32))
#: Words of a text; a few are long, as paragraphs among titles are.
LENGTHS = (4, 8, 12, 16, 24, 40, 120)
VOCABULARY = """
water river mill stone wheel bread market morning winter light house garden road letter music night horse
village child story window table paper city bridge train summer forest mountain cloud doctor school
teacher engine signal number question answer reason method system result measure memory language model
old new small large quick slow bright dark early late first last open closed simple strange quiet loud
runs makes gives takes finds keeps leaves turns opens builds reads writes learns carries holds follows
the a of to in and with from by under over between before after without about
"""
#: Cosine of two programs' vectors of a text, at least.
AGREEMENT = 0.999
#: Largest difference of a number in the vectors of two programs that have the same ONNX model.
SAME = 1e-5
NAME = "headrace/all-MiniLM-L6-v2"


def model_file(run: Callable[[list[object]], str]) -> Path:
    """MiniLM with the f32 weights that the ONNX model has."""
    path = ROOT / "build/models/minilm-f32.gguf"
    if not path.exists():
        run([sys.executable, ROOT / "tools/minilm_to_gguf.py", "--type", "f32", "--output", path])
    return path


def make_texts(seed: str, count: int) -> list[str]:
    generator, known = random.Random(seed), VOCABULARY.split()
    return [" ".join(generator.choices(known, k=generator.choice(LENGTHS))) for _ in range(count)]


def body_of(texts: Sequence[str]) -> bytes:
    return json.dumps({"input": list(texts), "encoding_format": "float"}).encode()


async def embed(connection: Connection, request: bytes) -> bytes:
    answer = await connection.ask(request)
    if answer.status != 200:
        raise RuntimeError(f"/v1/embeddings: {answer.status}: {answer.body[:300]!r}")
    return answer.body


async def vectors_of(port: int) -> np.ndarray:
    """Vectors of the texts that are compared: float [texts, width]"""
    connection = Connection(port)
    body = await embed(connection, request_bytes("/v1/embeddings", body_of(make_texts("agreement", 16))))
    connection.close()
    return np.array([entry["embedding"] for entry in json.loads(body)["data"]])


async def texts_per_second(port: int, texts: Sequence[str], batch: int, clients: int) -> float:
    """The speed with clients that each send the next request when they have the vectors of the one before."""
    batches = [texts[i : i + batch] for i in range(0, len(texts), batch)]
    requests = iter([request_bytes("/v1/embeddings", body_of(some)) for some in batches])
    sizes = []

    async def client() -> None:
        connection = Connection(port)
        for request in requests:
            body = await embed(connection, request)
            sizes.append(body.count(b'"embedding":['))
        connection.close()

    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    seconds = time.perf_counter() - begin
    if sum(sizes) != len(texts):
        raise RuntimeError(f"{len(texts)} texts were sent, and {sum(sizes)} vectors came")
    return len(texts) / seconds


def compare(vectors: dict[str, np.ndarray]) -> list[dict]:
    """Prints the least cosine of any text. Raises SystemExit when two programs disagree."""
    rows = []
    for (name, ours), (other, theirs) in combinations(vectors.items(), 2):
        norms = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
        least = float(np.min(np.sum(ours * theirs, axis=1) / norms))
        print(f"{name} and {other}: cosine of {len(ours)} texts at least {least:.6f}", flush=True)
        rows.append({"case": "agreement", "sides": [name, other], "cosine": least})
        if not least >= AGREEMENT:
            raise SystemExit(f"{name} and {other} disagree: {least} is below {AGREEMENT}")
        if {name, other} == {"graph", "fastembed"} and (apart := float(np.abs(ours - theirs).max())) > SAME:
            raise SystemExit(
                f"{name} and {other} disagree: a number differs by {apart}, {SAME} at most is due"
            )
    return rows


def onnx_folder() -> Path:
    """MiniLM as fastembed reads it: an ONNX model and its tokenizer's files."""
    import onnx
    from minilm.model import model_file as published
    from minilm.onnx_model import build_onnx

    folder = ROOT / "build/models/minilm-onnx"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model.onnx").exists():
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            shutil.copy(published(name), folder)
        shutil.copy(published("tokenizer.json").parent / "config.json", folder)
        onnx.save(build_onnx(published("model.safetensors")), folder / "model.onnx")
    return folder


def graph_file(run: Callable[[list[object]], str], headrace: Path) -> Path:
    """The ONNX model as headrace serve takes it, with its tokenizer's files beside it."""
    path = onnx_folder() / "model.hrg"
    if not path.exists():
        run([headrace, "convert", onnx_folder() / "model.onnx", path])
    return path


def fastembed_model(threads: int) -> Any:
    """None, with the reason printed, where it cannot be compared with."""
    sys.path.append(str(ROOT / "build/fastembed"))
    try:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType
    except ImportError as error:
        print(f"fastembed is left out: {error}", flush=True)
        return None
    # The ONNX model's first output is pooled and normalised already.
    TextEmbedding.add_custom_model(
        model=NAME,
        pooling=PoolingType.DISABLED,
        normalization=False,
        sources=ModelSource(hf=NAME),
        dim=384,
        model_file="model.onnx",
    )
    return TextEmbedding(NAME, specific_model_path=str(onnx_folder()), threads=threads)


def fastembed_vectors(model: Any) -> np.ndarray:
    return np.array(list(model.embed(make_texts("agreement", 16))))


def fastembed_texts_per_second(model: Any, texts: Sequence[str], batch: int) -> float:
    begin = time.perf_counter()
    vectors = list(model.embed(texts, batch_size=batch))
    if len(vectors) != len(texts):
        raise RuntimeError(f"{len(texts)} texts were given, and {len(vectors)} vectors came")
    return len(texts) / (time.perf_counter() - begin)
