"""What a build or a device cannot do has an exception of its own, which is what was raised before, too."""

from __future__ import annotations

import pickle

import headrace
import numpy as np
import onnx
import pytest
import webnn


def unknown_operator() -> onnx.ModelProto:
    return onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21, "elsewhere" : 1]>
        g (float[2] x) => (float[2] y) { y = elsewhere.Magic(x) }""")


def test_a_model_with_an_operator_that_is_not_read_is_unsupported_and_a_value_error():
    with pytest.raises(headrace.UnsupportedError, match="Magic") as error:
        headrace.load(unknown_operator())
    assert isinstance(error.value, ValueError)
    assert pickle.loads(pickle.dumps(error.value)).args == error.value.args


def test_a_wrong_argument_is_a_value_error_alone():
    with pytest.raises(ValueError, match="this is no ONNX model") as error:
        headrace.load(b"no model")
    assert not isinstance(error.value, headrace.UnsupportedError)


def test_webnn_raises_the_same(tmp_path):
    builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
    x = builder.input("x", [2], "float32")
    graph = builder.build({"y": builder.add(x, builder.constant(np.float32(1)))})
    writer = headrace._core.GraphWriter()
    writer.output("y", writer.op("relu", [writer.input("x", "bf16", [2])])[0])
    headrace.save_graph(writer.finish(), tmp_path / "own.hrg")
    with pytest.raises(headrace.UnsupportedError, match=r"save the graph as \.hrg"):
        headrace.save_graph(headrace.load_graph(tmp_path / "own.hrg"), tmp_path / "own.webnn")
    with pytest.raises(headrace.UnsupportedError, match=r"save the graph as \.hrg"):
        webnn.MLGraph.load(str(tmp_path / "own.hrg")).save(str(tmp_path / "own.json"))
    graph.save(str(tmp_path / "fine.json"))


def test_language_models_raise_both():
    module = pytest.importorskip("headrace.language_model", reason="built without llama.cpp")
    made = module.LanguageModelError("unsupported", "no vectors")
    assert isinstance(made, headrace.UnsupportedError)
    assert isinstance(made, RuntimeError)
    assert (made.code, str(made)) == ("unsupported", "no vectors")
    again = pickle.loads(pickle.dumps(made))
    assert (type(again), again.code, str(again)) == (type(made), "unsupported", "no vectors")
    assert type(module.LanguageModelError("busy", "full")) is module.LanguageModelError


def test_a_model_names_its_inputs_and_outputs():
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float[n] a, float[n] b) => (float[n] y) { y = Add(a, b) }"""
    model = headrace.load(onnx.parser.parse_model(text))
    assert (model.input_names, model.output_names) == (["a", "b"], ["y"])
