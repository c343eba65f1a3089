"""What is a model, and what a session says of it: headrace.onnxruntime beside ONNX Runtime."""

from __future__ import annotations

import time
from pathlib import Path
from types import ModuleType
from typing import Any

import headrace.onnxruntime as ours
import numpy as np
import onnx
import pytest
from both_sides import same
from onnx import TensorProto, helper, numpy_helper
from small_models import (
    ADD,
    FLOAT,
    INT64,
    NETWORK,
    constant,
    made,
    node,
    optional,
    sequence,
    tensor,
    tensor_type,
)

STATE = "onnxruntime_pybind11_state."
RELU = [node("Relu", ["x"], ["z"])]
ONE_IN, ONE_OUT = [tensor("x", FLOAT, [1])], [tensor("z", FLOAT, [1])]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("/nowhere/model.onnx", "NoSuchFile"),
        (b"no model", "InvalidProtobuf"),
        (ADD[: len(ADD) // 2], "InvalidProtobuf"),
        (b"", "InvalidArgument"),
        (made([node("Foo", ["x"], ["z"])], ONE_IN, ONE_OUT), "InvalidGraph"),
        (made([node("Foo", ["x"], ["z"], domain="my")], ONE_IN, ONE_OUT), "InvalidGraph"),
        (made([node("Add", ["x", "q"], ["z"])], ONE_IN, ONE_OUT), "InvalidArgument"),
        (made([node("Add", ["x", "z"], ["q"]), node("Relu", ["q"], ["z"])], ONE_IN, ONE_OUT), "Fail"),
        (made([node("Relu", ["x"], ["q"])], ONE_IN, ONE_OUT), "Fail"),
        (made([node("Relu", ["x"], ["z"])] * 2, ONE_IN, ONE_OUT), "Fail"),
        (made([node("Add", ["x", "y"], ["z"])], [*ONE_IN, tensor("y", INT64, [1])], ONE_OUT), "Fail"),
        (
            made(
                [node("MatMul", ["x", "y"], ["z"])],
                [tensor("x", FLOAT, [2, 3]), tensor("y", FLOAT, [2, 3])],
                [tensor("z", FLOAT, None)],
            ),
            "Fail",
        ),
        (made(RELU, ONE_IN, ONE_OUT, opset=99), "Fail"),
        (
            made(
                [node("Foo", ["x"], ["z"], domain="my")], ONE_IN, ONE_OUT, sets=[helper.make_opsetid("my", 1)]
            ),
            "Fail",
        ),
        (made(RELU, ONE_IN, ONE_OUT, opset=0), "InvalidGraph"),
        (made([node("Relu", ["x", "x"], ["z"])], ONE_IN, ONE_OUT), "InvalidGraph"),
        (made([node("Add", ["x"], ["z"])], ONE_IN, ONE_OUT), "InvalidGraph"),
        (made([node("LeakyRelu", ["x"], ["z"], alpha="a")], ONE_IN, ONE_OUT), "InvalidGraph"),
        (made([node("Upsample", ["x"], ["z"], mode="nearest")], ONE_IN, ONE_OUT), "InvalidGraph"),
        (made(RELU, ONE_IN * 2, ONE_OUT), "Fail"),
        (made(RELU, ONE_IN, ONE_OUT, [TensorProto(name="w", data_type=0, dims=[1])]), "Fail"),
    ],
    ids=[
        "file",
        "bytes",
        "cut",
        "nothing",
        "operator",
        "domain",
        "input",
        "cycle",
        "output",
        "twice",
        "types",
        "shapes",
        "opset",
        "version",
        "no opset",
        "inputs",
        "no input",
        "attribute",
        "removed",
        "names",
        "type",
    ],
)
def test_what_is_no_model_is_an_error_of_the_same_class(tmp_path: Path, source: Any, error: str) -> None:
    assert same(lambda o: o.InferenceSession(source)) == STATE + error
    if isinstance(source, bytes):
        (tmp_path / "model.onnx").write_bytes(source)
        assert same(lambda o: o.InferenceSession(tmp_path / "model.onnx")) == STATE + error


@pytest.mark.parametrize("source", [3, None, bytearray(ADD), ""])
def test_what_is_neither_a_path_nor_bytes_is_a_type_error(source: Any) -> None:
    assert same(lambda o: o.InferenceSession(source)) == "builtins.TypeError"


def test_operators_that_are_not_read_are_not_implemented() -> None:
    """Those of ONNX, and of others that a library would bring."""
    strings = made(
        [node("StringConcat", ["x", "x"], ["z"])],
        [tensor("x", TensorProto.STRING, [1])],
        [tensor("z", TensorProto.STRING, [1])],
        opset=20,
    )
    with pytest.raises(Exception, match=r"NOT_IMPLEMENTED.*STRING") as raised:
        ours.InferenceSession(strings)
    assert type(raised.value).__name__ == "NotImplemented"
    with pytest.raises(Exception, match=r"NOT_IMPLEMENTED.*\.ort.*use the ONNX model"):
        ours.InferenceSession("model.ort")


def test_what_is_not_read_of_an_operator_is_not_implemented_whatever_the_remedy_is() -> None:
    model = made(
        [node("SimplifiedLayerNormalization", ["x", "w"], ["y", "z"])],
        [tensor("x", FLOAT, ["n", 3])],
        [tensor("y", FLOAT, None), tensor("z", FLOAT, None)],
        [constant("w", [1, 1, 1])],
    )
    with pytest.raises(Exception, match=r"given out\..*Export the model for inference, without") as raised:
        ours.InferenceSession(model)
    assert type(raised.value).__name__ == "NotImplemented"


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        (
            "dimensions={'n': 1, 'm': 2} (--dimension NAME=N). Export",
            "add_free_dimension_override_by_name('n', 1) and "
            "add_free_dimension_override_by_name('m', 2). Export",
        ),
        (
            "fix those with dimensions={...} (--dimension NAME=N); otherwise",
            "fix those with add_free_dimension_override_by_name(NAME, NUMBER); otherwise",
        ),
        ("dimensions={'x': [1, 3]} (--shape x=1,3)", "dimensions={'x': [1, 3]} (--shape x=1,3)"),
    ],
)
def test_advice_about_open_dimensions_is_in_the_words_of_session_options(advice: str, said: str) -> None:
    from headrace.onnxruntime.errors import of_loading, of_running

    assert str(of_loading(ValueError(advice), [])).endswith(said)
    assert str(of_running(ValueError(advice))).endswith(said)


def test_the_operators_that_are_not_read_are_listed() -> None:
    from headrace._core import onnx_operators
    from headrace.onnxruntime.errors import NOT_READ

    read = {name for domain, name, _ in onnx_operators() if domain == ""}
    known = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    assert known - read == NOT_READ


@pytest.mark.parametrize("name", ["model.onnx", "model.bin", "no_ending"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(ADD)
    for path in (tmp_path / name, str(tmp_path / name)):
        same(
            lambda o, path=path: o.InferenceSession(path).run(
                None, {"x": np.ones((2, 3), np.float32), "y": np.ones((1, 3), np.float32)}
            )
        )


def test_external_data_lies_beside_a_file_of_any_name(tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.arange(512, dtype=np.float32), "w")
    model = onnx.load_from_string(
        made([node("Add", ["x", "w"], ["z"])], [tensor("x", FLOAT, [512])], [tensor("z", FLOAT, [512])])
    )
    model.graph.initializer.append(weights)
    path = tmp_path / "model.bin"
    onnx.save(model, path, save_as_external_data=True, location="w.data", size_threshold=0)
    same(lambda o: o.InferenceSession(str(path)).run(None, {"x": np.ones(512, np.float32)}))


def declared(o: ModuleType, model: bytes, options: Any = None) -> list[Any]:
    session = o.InferenceSession(model, options)
    return [
        [(a.name, a.type, a.shape) for a in args] for args in (session.get_inputs(), session.get_outputs())
    ]


IDENTITY = [node("Identity", ["x"], ["z"])]


@pytest.mark.parametrize(
    "model",
    [
        ADD,
        NETWORK,
        made(IDENTITY, [tensor("x", FLOAT, None)], [tensor("z", FLOAT, None)]),
        made(IDENTITY, [tensor("x", FLOAT, [None, "a", ""])], [tensor("z", FLOAT, None)]),
        made(IDENTITY, [tensor("x", FLOAT, [-1, 2])], [tensor("z", FLOAT, None)]),
        made(IDENTITY, [tensor("x", FLOAT, ["b", 0])], [tensor("z", FLOAT, ["b", 0])]),
        made(IDENTITY, [tensor("x", TensorProto.FLOAT16, [])], [tensor("z", TensorProto.FLOAT16, [])]),
        made(
            [node("MatMul", ["x", "y"], ["z"])],
            [tensor("x", FLOAT, ["a", 3]), tensor("y", FLOAT, [3, "b"])],
            [helper.make_empty_tensor_value_info("z")],
        ),
        made(
            [node("MatMul", ["x", "y"], ["z"])],
            [tensor("x", FLOAT, ["a", 3]), tensor("y", FLOAT, [3, 4])],
            [tensor("z", FLOAT, ["q", "r"])],
        ),
        made(
            [node("SequenceConstruct", ["x", "x"], ["z"])],
            [tensor("x", FLOAT, ["n"])],
            [sequence("z", FLOAT, None)],
        ),
        made(
            [node("SequenceAt", ["x", "i"], ["z"])],
            [sequence("x", FLOAT, None), tensor("i", INT64, [])],
            [tensor("z", FLOAT, None)],
        ),
        made(
            [node("OptionalHasElement", ["x"], ["z"])],
            [optional("x", tensor_type(["n", 2]))],
            [tensor("z", TensorProto.BOOL, [])],
        ),
        made(
            [node("OptionalHasElement", ["x"], ["z"])],
            [optional("x", helper.make_sequence_type_proto(tensor_type(["n"])))],
            [tensor("z", TensorProto.BOOL, [])],
        ),
        made(
            [node("Add", ["x", "w"], ["z"])],
            [tensor("x", FLOAT, [2]), tensor("w", FLOAT, [2])],
            [tensor("z", FLOAT, [2])],
            [constant("w", [1, 1])],
            ir_version=3,
            opset=8,
        ),
    ],
)
def test_inputs_and_outputs_are_described_alike(model: bytes) -> None:
    inputs, outputs = same(lambda o: declared(o, model))
    assert inputs and outputs
    same(lambda o: [str(a) for a in o.InferenceSession(model).get_inputs()])


def test_dimensions_may_be_fixed_by_options() -> None:
    def options(o: ModuleType) -> Any:
        made_options = o.SessionOptions()
        made_options.add_free_dimension_override_by_name("n", 5)
        made_options.add_free_dimension_override_by_name("nobody's", 7)
        return made_options

    assert same(lambda o: declared(o, ADD, options(o)))[0][0][2] == [5, 3]
    y = np.ones((1, 3), np.float32)
    for rows, error in ((5, None), (2, STATE + "InvalidArgument")):
        feeds = {"x": np.ones((rows, 3), np.float32), "y": y}
        result = same(lambda o, feeds=feeds: o.InferenceSession(ADD, options(o)).run(None, feeds))
        assert error is None or result == error


def test_dimensions_may_be_fixed_by_what_they_denote() -> None:
    model = onnx.load_from_string(ADD)
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"

    def options(o: ModuleType) -> Any:
        made_options = o.SessionOptions()
        made_options.add_free_dimension_override_by_denotation("DATA_BATCH", 4)
        return made_options

    assert same(lambda o: declared(o, model.SerializeToString(), options(o)))[0][0][2] == [4, 3]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"producer_name": "a maker", "domain": "a.domain", "doc_string": "what it is", "model_version": 3},
    ],
)
def test_metadata_is_the_files(fields: dict) -> None:
    model = onnx.load_from_string(made(RELU, ONE_IN, ONE_OUT, **fields))
    model.graph.doc_string = "of the graph"
    if fields:
        helper.set_model_props(model, {"labels": "a\nb", "ключ": "значение"})

    def meta(o: ModuleType) -> dict:
        found = o.InferenceSession(model.SerializeToString()).get_modelmeta()
        names = [
            "producer_name",
            "graph_name",
            "domain",
            "description",
            "graph_description",
            "version",
            "custom_metadata_map",
        ]
        return {name: getattr(found, name) for name in names}

    assert same(meta)["custom_metadata_map"] == ({"labels": "a\nb", "ключ": "значение"} if fields else {})


@pytest.mark.parametrize(
    "providers",
    [
        None,
        [],
        ["CPUExecutionProvider"],
        ["CUDAExecutionProvider", "CPUExecutionProvider"],
        ["CUDAExecutionProvider"],
        [("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})],
        ["CPUExecutionProvider", "CPUExecutionProvider"],
        ["Nonsense"],
        [("CPUExecutionProvider", {}, 3)],
        3,
    ],
)
def test_providers_are_noted_and_warned_about_alike(providers: Any, capsys: pytest.CaptureFixture) -> None:
    found = same(
        lambda o: (lambda s: (s.get_providers(), s.get_provider_options()))(
            o.InferenceSession(ADD, providers=providers)
        )
    )
    assert found in ((["CPUExecutionProvider"], {"CPUExecutionProvider": {}}), "builtins.TypeError")
    assert capsys.readouterr().out.count("Falling back to ['CPUExecutionProvider']") in (0, 2), (
        "both say so, or none"
    )


@pytest.mark.parametrize("options", [[], [{}], [3], [{"a": 1}, {}], 3])
def test_provider_options_are_checked_alike(options: Any, capsys: pytest.CaptureFixture) -> None:
    names = ["CPUExecutionProvider"]
    same(lambda o: o.InferenceSession(ADD, providers=names, provider_options=options).get_providers())
    assert capsys.readouterr().out.count("Falling back to") in (0, 2)
    same(
        lambda o: o.InferenceSession(
            ADD, providers=names, provider_options=options, enable_fallback=0
        ).get_providers()
    )


def test_providers_may_be_set_later() -> None:
    def later(o: ModuleType) -> list[str]:
        session = o.InferenceSession(ADD)
        session.set_providers(["CUDAExecutionProvider"])
        return session.get_providers()

    assert same(later) == ["CPUExecutionProvider"]


def test_headraces_own_options_reach_headrace() -> None:
    weights = np.random.default_rng(2).normal(size=(256, 256)).astype(np.float32)
    model = made(
        [node("MatMul", ["x", "w"], ["z"])],
        [tensor("x", FLOAT, ["n", 256])],
        [tensor("z", FLOAT, ["n", 256])],
        [constant("w", weights)],
    )
    x = np.random.default_rng(4).normal(size=(3, 256)).astype(np.float32)
    options = ours.SessionOptions()
    options.add_session_config_entry("headrace.weights", "q4_0")
    apart = np.abs(ours.InferenceSession(model, options).run(None, {"x": x})[0] - x @ weights).max()
    assert 1e-3 < apart < 50, "weights of 4 bits are used"
    options.add_session_config_entry("headrace.memory", "little")
    with pytest.raises(Exception, match=r"INVALID_ARGUMENT.*memory 'little' is none of normal, low"):
        ours.InferenceSession(model, options)
    options.add_session_config_entry("headrace.memory", "low")
    options.add_session_config_entry("headrace.precision", "fast")
    options.add_session_config_entry("headrace.packed_cache", "off")
    options.add_session_config_entry("headrace.tuning", "off")
    ours.InferenceSession(model, options).run(None, {"x": x})
    with pytest.raises(
        Exception, match=r"no configuration 'headrace.colour'; Headrace's own are headrace.device"
    ):
        options.add_session_config_entry("headrace.colour", "red")
    options.optimized_model_filepath = "optimised.onnx"
    with pytest.raises(Exception, match=r"NOT_IMPLEMENTED.*optimised.onnx: .*headrace.packed_cache"):
        ours.InferenceSession(model, options)


def test_threads_reach_headrace() -> None:
    options = ours.SessionOptions()
    options.intra_op_num_threads = 1
    session = ours.InferenceSession(NETWORK, options)
    options.intra_op_num_threads = 7
    assert session.get_session_options().intra_op_num_threads == 1, "a session has options of its own"
    session.run(None, {"x": np.ones((2, 4), np.float32)})
    assert session._program.model.session.stats["threads"] == 1


def test_the_file_says_what_it_is_in_a_moment(tmp_path: Path) -> None:
    """Weights are skipped."""
    weights = np.ones((4000, 4000), np.float32)
    model = made(
        [node("MatMul", ["x", "w"], ["z"])],
        [tensor("x", FLOAT, ["n", 4000])],
        [tensor("z", FLOAT, ["n", 4000])],
        [constant("w", weights)],
    )
    (tmp_path / "large.onnx").write_bytes(model)
    from headrace.onnx import open_model

    begin = time.perf_counter()
    assert [info.name for info in open_model(tmp_path / "large.onnx").inputs] == ["x"]
    assert time.perf_counter() - begin < 0.1


def test_joining_a_sequence_of_nothing_is_an_error_of_the_same_class() -> None:
    model = made(
        [node("ConcatFromSequence", ["x"], ["z"], axis=0)],
        [sequence("x", FLOAT, None)],
        [tensor("z", FLOAT, None)],
    )
    assert same(lambda o: o.InferenceSession(model).run(None, {"x": []})) == STATE + "Fail"
