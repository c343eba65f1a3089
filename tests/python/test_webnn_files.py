"""Graph files of the WebNN graph tools: .webnn text, JSON, and the weights beside them."""

import json

import numpy as np
import pytest
import webnn

W = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
X = np.array([[1, -2, 3], [0, 1, 0]], np.float32)


@pytest.fixture
def graph(builder):
    """y = relu(x · w), x [n, 3]."""
    x = builder.input("x", [{"name": "n", "maxSize": 8}, 3], "float32")
    return builder.build({"y": builder.relu(builder.matmul(x, builder.constant(W)))})


@pytest.mark.parametrize("extension", [".webnn", ".json"])
def test_saved_graphs_compute_the_same(context, graph, tmp_path, extension):
    path = tmp_path / f"model{extension}"
    graph.save(str(path))
    names = {f"model{extension}", "model.manifest.json", "model.weights"}
    assert {file.name for file in tmp_path.iterdir()} == names
    expected = context.compute(graph, {"x": X})["y"]
    for loaded in (context.load_graph(str(path)), webnn.MLGraph.load(str(path))):
        np.testing.assert_array_equal(context.compute(loaded, {"x": X})["y"], expected)


def test_the_manifest_locates_the_weights(graph, tmp_path):
    graph.save(str(tmp_path / "model.webnn"))
    manifest = json.loads((tmp_path / "model.manifest.json").read_text())
    (tensor,) = manifest.pop("tensors").values()
    assert manifest == {"format": "wg-weights-manifest", "version": 1, "endianness": "little"}
    assert (tensor["dataType"], tensor["shape"]) == ("float32", [3, 4])
    content = (tmp_path / "model.weights").read_bytes()
    assert content[:8] == b"WGWT\x01\x00\x00\x00"
    stored = np.frombuffer(content, np.float32, 12, tensor["byteOffset"]).reshape(3, 4)
    np.testing.assert_array_equal(stored, W)


def test_the_json_form_is_plain_json(graph, tmp_path):
    graph.save(str(tmp_path / "model.json"))
    model = json.loads((tmp_path / "model.json").read_text())
    assert (model["format"], model["name"]) == ("webnn-graph-json", "model")
    assert model["inputs"] == {"x": {"dataType": "float32", "shape": [{"name": "n", "maxSize": 8}, 3]}}
    assert [node["op"] for node in model["nodes"]] == ["matmul", "relu"]
    assert model["outputs"] == {"y": "y"}


def test_weights_may_have_other_paths(context, graph, tmp_path):
    path = str(tmp_path / "model.webnn")
    graph.save(path)
    manifest, weights = tmp_path / "m.json", tmp_path / "w.bin"
    (tmp_path / "model.manifest.json").rename(manifest)
    (tmp_path / "model.weights").rename(weights)
    with pytest.raises(OSError, match="pass another manifest_path"):
        context.load_graph(path)
    loaded = context.load_graph(path, manifest_path=str(manifest), weights_path=str(weights))
    assert loaded.get_output_names() == ["y"]
    assert webnn.MLGraph.load(path, str(manifest), str(weights)).operation_count == 2


def test_text_written_by_hand_loads(context, tmp_path):
    path = tmp_path / "hand.webnn"
    path.write_text(
        'webnn_graph "hand" v1 {\n'
        "  inputs { a: f32[2, 2]; }\n"
        "  consts { one: f32[2, 2] @scalar(1.0); }\n"
        "  nodes { sum = add(a, one); low = reduceMin(sum, axes=[1], keepDimensions=true); }\n"
        "  outputs { sum; low; }\n"
        "}\n"
    )
    results = context.compute(context.load_graph(str(path)), {"a": np.array([[1, 2], [4, 3]], np.float32)})
    assert results["sum"].tolist() == [[2, 3], [5, 4]]
    assert results["low"].tolist() == [[2], [4]]


def test_errors_name_file_line_and_column(context, tmp_path):
    path = tmp_path / "bad.webnn"
    path.write_text(
        'webnn_graph "bad" v1 {\n  inputs { a: f32[2]; }\n  nodes { b = nag(a); }\n  outputs { b; }\n}\n'
    )
    with pytest.raises(ValueError, match=r"bad\.webnn': 3:11: there is no WebNN operator 'nag'"):
        context.load_graph(str(path))
    path.with_suffix(".json").write_text("{]")
    with pytest.raises(ValueError, match=r"bad\.json': 1:2: this is not JSON"):
        context.load_graph(str(path.with_suffix(".json")))
