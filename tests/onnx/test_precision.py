"""Products that may be rounded: precision="fast" of the Python packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import headrace
import numpy as np
import onnx
import pytest
import webnn
from headrace.sentence_encoder import SentenceEncoder
from onnx import helper

HAS_BF16 = "avx512_bf16" in Path("/proc/cpuinfo").read_text()
ROWS, WIDTH = 16, 512


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture
def path(tmp_path) -> Path:
    """y = x · w."""
    tensor = lambda name, rows: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, rows)  # noqa: E731
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [tensor("x", ["n", WIDTH])],
        [tensor("y", ["n", WIDTH])],
        [onnx.numpy_helper.from_array(random(WIDTH, WIDTH), "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a.ravel() @ b.ravel() / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_fast_rounds_what_it_multiplies_and_exact_does_not(path) -> None:
    x = random(ROWS, WIDTH, seed=1)
    exact, fast = (headrace.load(path, device="cpu", precision=name) for name in ("exact", "fast"))
    wanted = x.astype(np.float64) @ random(WIDTH, WIDTH).astype(np.float64)
    np.testing.assert_allclose(exact(x)["y"], wanted, atol=1e-3)
    assert cosine(fast(x)["y"].astype(np.float64), wanted) > 0.9999
    assert not exact.executable.stats["is_fast"]
    assert fast.executable.stats["is_fast"] == HAS_BF16
    assert np.array_equal(fast(x)["y"], exact(x)["y"]) == (not HAS_BF16)


def test_exact_is_what_holds_without_a_word(path) -> None:
    x = random(ROWS, WIDTH, seed=1)
    plain, exact = headrace.load(path, device="cpu"), headrace.load(path, device="cpu", precision="exact")
    np.testing.assert_array_equal(plain(x)["y"], exact(x)["y"])


@pytest.mark.skipif(not HAS_BF16, reason="this processor does not multiply bf16")
def test_weights_take_half_the_memory(path) -> None:
    packed = [
        headrace.compile(
            headrace.load(path, device="cpu", dimensions={"n": ROWS}).graph, precision=name
        ).stats["packed_bytes"]
        for name in ("exact", "fast")
    ]
    assert packed == [4 * WIDTH * WIDTH, 2 * WIDTH * WIDTH]


def test_it_is_said_once_that_nothing_is_faster(path) -> None:
    program = f"""
import headrace
for _ in range(2):
    model = headrace.load({str(path)!r}, device="cpu", precision="fast", packed_kernels=False)
    print(model.executable.stats["is_fast"])
"""
    environment = {**os.environ, "HEADRACE_LOG": "info"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split() == ["False", "False"]
    assert done.stderr.count("warn  precision fast changes nothing") == 1


def test_webnn_contexts_have_it_beside_low_power() -> None:
    x = random(ROWS, WIDTH, seed=1)

    def result(**options: str) -> np.ndarray:
        context = webnn.ML().create_context(accelerated=False, **options)
        builder = context.create_graph_builder()
        y = builder.matmul(
            builder.input("x", [ROWS, WIDTH], "float32"), builder.constant(random(WIDTH, WIDTH))
        )
        graph = builder.build({"y": y})
        return context.compute(graph, {"x": x})["y"]

    exact, fast, low = result(), result(precision="fast"), result(power_preference="low-power")
    assert np.array_equal(fast, exact) == (not HAS_BF16)
    assert cosine(fast, exact) > 0.9999
    np.testing.assert_array_equal(result(power_preference="low-power", precision="fast"), low)
    with pytest.raises(Exception, match="precision 'f16' is none of exact, fast"):
        result(precision="f16")


def test_a_sentence_encoder_refuses_what_is_none(tmp_path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match="precision 'half' is none of exact, fast"):
        SentenceEncoder(tmp_path, precision="half")
