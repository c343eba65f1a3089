"""Models in Ray Data pipelines."""

from __future__ import annotations

import numpy as np
import pytest
from callers import MODEL

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

import webnn
from headrace.language_model import LanguageModelError
from headrace.ray import Predictor, RequestError

GREEDY = {"parameters": {"temperature": 0}, "config": {"n_threads": 1}}
W = np.arange(6, dtype=np.float32).reshape(3, 2)
X = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)


def texts(*values: object) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.fixture(params=[".webnn", ".json", ".hrg"])
def graph(request, tmp_path):
    """y = x · w of two rows, in each form of file."""
    builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    path = tmp_path / f"product{request.param}"
    builder.build({"y": builder.matmul(x, builder.constant(W))}).save(str(path))
    return path


def test_prompts_and_conversations_are_answered_row_by_row():
    predict = Predictor(MODEL, **GREEDY)
    batch = {"prompt": texts(*(f"What is 2+{i}?" for i in range(9))), "number": np.arange(9)}
    answered = predict(batch)
    assert list(answered["answer"]) == [f"2+{i}={2 + i}" for i in range(9)]
    assert list(answered["number"]) == list(range(9))
    messages = np.array([{"role": "user", "content": "What is 2+3?"}], dtype=object)
    assert list(predict({"prompt": texts(messages)})["answer"]) == ["2+3=5"]


def test_a_row_that_fails_ends_the_batch_or_is_recorded():
    long, empty = "word " * 2000, ""
    batch = {"prompt": texts("What is 2+3?", long, empty)}
    with pytest.raises(LanguageModelError, match=r"row 1 of the batch: the prompt has \d+ bytes"):
        Predictor(MODEL, **GREEDY)({"prompt": texts("What is 2+3?", long)})
    with pytest.raises(RequestError, match="row 0 of the batch: 'prompt' is empty"):
        Predictor(MODEL, **GREEDY)({"prompt": texts(empty)})
    result = Predictor(MODEL, on_error="record", **GREEDY)(batch)
    assert list(result["answer"]) == ["2+3=5", None, None]
    assert ["tokens" in error or "empty" in error for error in result["error"]] == [False, True, True]


def test_embeddings_are_vectors_of_their_texts():
    predict = Predictor(MODEL, task="embed", config={"pooling": "mean", "n_threads": 1})
    vectors = predict({"text": texts("a dog", "a cat", "a dog")})["embedding"]
    assert (vectors.shape[0], vectors.dtype) == (3, np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-4)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3


def test_graphs_run_on_as_many_rows_as_they_take(graph):
    predict = Predictor(graph, rows=2, inputs={"x": "feature"}, outputs={"y": "product"}, accelerated=False)
    result = predict({"feature": X, "name": texts(*"abcde")})
    np.testing.assert_allclose(result["product"], X @ W, rtol=1e-5)
    assert list(result["name"]) == list("abcde")


def test_onnx_models_run_on_batches_of_any_size_or_a_fixed_one(graph, tmp_path):
    context = webnn.ML().create_context(accelerated=False)
    builder = context.create_graph_builder()
    x = builder.input("x", [{"name": "batch", "maxSize": 16}, 3], "float32")
    path = str(tmp_path / "model.onnx")
    context.convert_to_onnx(builder.build({"y": builder.matmul(x, builder.constant(W))}), path)
    for options in ({}, {"dimensions": {"batch": 2}, "rows": 2}):
        result = Predictor(path, inputs={"x": "feature"}, accelerated=False, **options)({"feature": X})
        np.testing.assert_allclose(result["y"], X @ W, rtol=1e-5)
    with pytest.raises(ValueError, match="dimensions are for ONNX models"):
        Predictor(graph, dimensions={"batch": 2})


def test_executorch_programs_run_on_batches(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("executorch", reason="ExecuTorch is not installed")
    from executorch.exir import to_edge_transform_and_lower
    from executorch_ggml import GgmlPartitioner, runtime_path

    if runtime_path() is None:
        pytest.skip("libexecutorch_ggml_runtime.so is not built")
    linear = torch.nn.Linear(3, 2)
    exported = torch.export.export(linear, (torch.zeros(2, 3),))
    program = to_edge_transform_and_lower(exported, partitioner=[GgmlPartitioner()]).to_executorch()
    path = tmp_path / "linear.pte"
    path.write_bytes(program.buffer)
    predict = Predictor(path, rows=2, inputs=["feature"], outputs=["product"])
    expected = linear(torch.from_numpy(X)).detach().numpy()
    np.testing.assert_allclose(predict({"feature": X})["product"], expected, rtol=1e-4, atol=1e-5)
    assert predict({"feature": X[:0]})["product"].shape == (0, 2)
    with pytest.raises(ValueError, match=r"has no method 'backward'; there are \['forward'\]"):
        Predictor(path, method="backward")


def test_what_is_no_model_here_is_refused_with_the_remedy(tmp_path, graph):
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(ValueError, match=r"broken\.onnx: this is no ONNX model"):
        Predictor(tmp_path / "broken.onnx")
    with pytest.raises(ValueError, match=r"'\.bin' is no extension of a model; there are \.gguf"):
        Predictor(tmp_path / "model.bin")
    with pytest.raises(FileNotFoundError, match=r"absent\.gguf does not exist on this host"):
        Predictor(tmp_path / "absent.gguf")
    (tmp_path / "broken.pte").write_bytes(b"no program at all")
    with pytest.raises(ValueError, match=r"broken\.pte: ExecuTorch cannot load the program"):
        Predictor(tmp_path / "broken.pte")
    for rows in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"rows is {rows}; it must be 1 or more"):
            Predictor(graph, rows=rows)
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    with pytest.raises(LanguageModelError, match=r"broken\.gguf"):
        Predictor(tmp_path / "broken.gguf")
    with pytest.raises(ValueError, match=r"has no input \['z'\]; there are \['x'\]"):
        Predictor(graph, inputs={"z": "feature"})
    with pytest.raises(ValueError, match=r"the batch has no column \['x'\]; there are \['feature'\]"):
        Predictor(graph)({"feature": X})
    with pytest.raises(ValueError, match="task is 'summarise'; it must be 'generate' or 'embed'"):
        Predictor(MODEL, task="summarise")


def test_a_dataset_is_answered_by_two_actors(cluster):
    import ray

    rows = [{"prompt": f"What is 2+{i % 9}?"} for i in range(24)]
    dataset = ray.data.from_items(rows, override_num_blocks=4).map_batches(
        Predictor,
        fn_constructor_args=[str(MODEL)],
        fn_constructor_kwargs=GREEDY,
        concurrency=2,
        num_cpus=0.25,
        batch_size=6,
    )
    answers = {row["prompt"]: row["answer"] for row in dataset.take_all()}
    assert answers == {f"What is 2+{i}?": f"2+{i}={2 + i}" for i in range(9)}
