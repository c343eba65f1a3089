"""Functions of the model and of ONNX: parameters, defaults, nesting, operator sets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import defs, helper, parser
from onnx.reference import ReferenceEvaluator
from peers import assert_same, on_headrace, on_onnx_runtime

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def model(source: str, *functions: str, opset: int = 21, body: str = "") -> onnx.ModelProto:
    """A graph with functions of the domain "local"."""
    head = f'<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>'
    return parser.parse_model(head + source + body + "".join(functions))


def function(source: str, opset: int = 21) -> str:
    return f'<domain: "local", opset_import: ["" : {opset}, "local" : 1]>' + source


SCALED = function(
    "scaled <factor: float = 0.5> (x) => (y) { c = Constant<value_float: float = @factor>() y = Mul(x, c) }"
)


def y_of(*parts: str, opset: int = 21) -> np.ndarray:
    return on_headrace(model(*parts, opset=opset), {"x": X})["y"]


@pytest.mark.parametrize(
    ("call", "factor"),
    [
        ("local.scaled<factor = 3.0>(x)", 3),
        ("local.scaled(x)", 0.5),
        ("local.twice<factor = 3.0>(x)", 9),
        ("local.twice(x)", 4),
        ("local.mixed<factor = 3.0>(x)", 1.5),
    ],
)
def test_parameters_are_the_calls_or_the_functions_own(call: str, factor: float) -> None:
    twice = function("""twice <factor: float = 2.0> (x) => (y) {
        a = local.scaled<factor: float = @factor>(x) y = local.scaled<factor: float = @factor>(a) }""")
    mixed = function("""mixed <factor: float = 2.0> (x) => (y) {
        a = local.scaled<factor: float = @factor>(x) y = local.scaled(a) }""")
    made = model(f"g (float[n, 3] x) => (float[n, 3] y) {{ y = {call} }}", SCALED, twice, mixed)
    assert np.array_equal(on_headrace(made, {"x": X})["y"], factor * X)


def test_parameters_without_a_value_leave_the_attribute_out() -> None:
    softened = function("softened <slope> (x) => (y) { y = LeakyRelu<alpha: float = @slope>(x) }")
    for call, slope in (("local.softened(x)", 0.01), ("local.softened<slope = 0.25>(x)", 0.25)):
        actual = y_of(f"g (float[n, 3] x) => (float[n, 3] y) {{ y = {call} }}", softened)
        np.testing.assert_allclose(actual, np.where(X < 0, slope * X, X), rtol=1e-6)


def test_functions_see_their_own_names_only() -> None:
    """Names of the caller mean other things in the function, also in its branches."""
    chosen = function("""chosen <which: int = 0> (a) => (y) {
        c = Constant<value_int: int = @which>() flag = Cast<to = 9>(c)
        y = If (flag) <
            then_branch = t () => (x) { x = Neg(a) }, else_branch = e () => (z) { z = local.scaled(a) }
        > }""")
    source = """g (float[n, 3] x) => (float[n, 3] y) {
        a = Relu(x) b = local.chosen<which = 1>(x) c = local.chosen(x) d = Add(a, b) y = Add(d, c) }"""
    actual = y_of(source, chosen, SCALED)
    np.testing.assert_allclose(actual, np.maximum(X, 0) - X + 0.5 * X)
    with pytest.raises(ValueError, match=r"input 'x' |not output of any previous|invalid"):
        y_of(
            "g (float[n, 3] x) => (float[n, 3] y) { y = local.f(x) }", function("f (a) => (y) { y = Neg(x) }")
        )


def test_functions_are_read_by_their_own_operator_set() -> None:
    """Softmax before operator set 13 has the axes from axis 1 on as one."""
    old = function("old (x) => (y) { y = Softmax(x) }", opset=12)
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    made = model("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = local.old(x) }", old)
    expected = np.exp(x) / np.exp(x).sum((1, 2), keepdims=True)
    np.testing.assert_allclose(on_headrace(made, {"x": x})["y"], expected, rtol=1e-5)


def test_optional_inputs_and_several_outputs() -> None:
    clipped = function("clipped (x, low, high) => (y, z) { y = Clip(x, low, high) z = Neg(y) }")
    source = """g (float[n, 3] x) => (float[n, 3] y, float[n, 3] u) {
        two = Constant<value = float {2}>() zero = Constant<value = float {0}>()
        u, t = local.clipped(x, , two)
        v, y = local.clipped(x, zero) }"""
    actual = on_headrace(model(source, clipped), {"x": X})
    assert np.array_equal(actual["u"], np.minimum(X, 2)) and np.array_equal(actual["y"], -np.maximum(X, 0))


def test_functions_take_precedence_over_operators_of_their_name() -> None:
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        g (float[n, 3] x) => (float[n, 3] y) { y = com.microsoft.QuickGelu(x) }
        <domain: "com.microsoft", opset_import: ["" : 21]> QuickGelu (x) => (y) { y = Neg(x) }""")
    assert np.array_equal(on_headrace(made, {"x": X})["y"], -X)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize(
    "attributes", ["", "<periodic = 0>", "<output_datatype = 11>", "<output_datatype = 10>"]
)
def test_windows(op: str, attributes: str) -> None:
    for size in (2, 10, 400):
        made = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]> g () => (float[n] y) {{
            s = Constant<value = int64 {{{size}}}>() y = {op}{attributes}(s) }}""")
        actual = on_headrace(made, {})["y"]
        assert_same(actual, ReferenceEvaluator(made).run(None, {})[0], 1e-6)
        if "10" not in attributes:
            del made.graph.output[0].type.tensor_type.shape.dim[:]
            made.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(actual.dtype)
            made.graph.output[0].type.tensor_type.shape.dim.add(dim_param="n")
            assert_same(actual, on_onnx_runtime(made, {})["y"], 1e-6)


@pytest.mark.parametrize(
    ("source", "inputs", "opset"),
    [
        ("SwiGLU", 2, 28),
        ("CausalConvWithState", 2, 27),
        ("CenterCropPad<axes = [0, 1]>", 2, 21),
        ("NegativeLogLikelihoodLoss", 2, 21),
        ("SoftmaxCrossEntropyLoss", 2, 21),
        ('SoftmaxCrossEntropyLoss<reduction = "none">', 2, 21),
    ],
)
def test_operators_that_onnx_makes_of_others(source: str, inputs: int, opset: int) -> None:
    if opset > defs.onnx_opset_version():
        pytest.skip(f"this onnx ends before operator set {opset}")
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal((2, 3)).astype(np.float32)}
    second, kind = rng.standard_normal((2, 3)).astype(np.float32), "float[2, 3]"
    constants = ""
    if "Conv" in source:
        given["x"], second, kind = (
            np.ones((1, 2, 5), np.float32),
            np.ones((2, 1, 3), np.float32),
            "float[2, 1, 3]",
        )
    elif "Loss" in source:
        second, kind = np.array([2, 0]), "int64[2]"
    elif "Crop" in source:
        constants, kind = "z = Constant<value = int64[2] {4, 2}>() ", ""
    if kind:
        given["z"] = second
    shape, others = ", ".join(map(str, given["x"].shape)), f", {kind} z" if kind else ""
    results = "y, s" if "Conv" in source else "y"
    made = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : {opset}]>
        g (float[{shape}] x{others}) => (float y) {{ {constants} {results} = {source}(x, z) }}""")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    assert_same(on_headrace(made, given)["y"], ReferenceEvaluator(made).run(None, given)[0], 1e-5)


def test_definitions_may_have_loops() -> None:
    if not defs.has("LinearAttention", 27):
        pytest.skip("this onnx has no LinearAttention")
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 27]>
        g (float[1, 300, 8] q, float[1, 300, 8] k, float[1, 300, 8] v) => (float[1, 300, 8] y) {
            y, s = LinearAttention<q_num_heads = 2, kv_num_heads = 2, update_rule = "linear">(q, k, v) }""")
    random = np.random.default_rng(0)
    given = {name: random.uniform(-1, 1, [1, 300, 8]).astype(np.float32) for name in "qkv"}
    assert_same(on_headrace(made, given)["y"], ReferenceEvaluator(made).run(None, given)[0], 1e-4)


@pytest.mark.parametrize(
    ("call", "body", "message"),
    [
        ("local.f(x)", "f (x) => (y) { y = local.f(x) }", "64 deep|recursive|invalid"),
        ("local.f(x)", "f (x) => (y) { y = local.h(x) } ", "domain 'local' are not read|invalid"),
        ("local.f(x, x)", "f (x) => (y) { y = Neg(x) }", "function 'f' has 1 inputs; the node has 2|invalid"),
        (
            "local.f(x)",
            "f (x, z) => (y) { y = Add(x, z) }",
            "in function 'f', which .* calls: input 1 is missing",
        ),
        ("local.f(x)", "f (x) => (y) { y = Softmax<axis = 9>(x) }", "in function 'f', .*axis 9 is outside"),
    ],
)
def test_calls_that_do_not_fit_are_explained(call: str, body: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        y_of(f"g (float[n, 3] x) => (float[n, 3] y) {{ y = {call} }}", function(body))


def test_functions_of_operator_sets_that_are_not_read_are_named() -> None:
    with pytest.raises(ValueError, match=r"function 'f': it imports operator set 999 of ai.onnx"):
        y_of(
            "g (float[n, 3] x) => (float[n, 3] y) { y = local.f(x) }",
            function("f (x) => (y) { y = Neg(x) }", 999),
        )


@pytest.mark.parametrize("version", [3, 4, 10])
def test_initializers_need_not_be_inputs(version: int) -> None:
    """Also in IR version 3, as onnx.version_converter leaves them."""
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 8]>
        g (float[n, 3] x) => (float[n, 3] y) <float[3] w = {1, 2, 3}> { y = Mul(x, w) }""")
    made.ir_version = version
    assert np.array_equal(on_headrace(made, {"x": X})["y"], X * [1, 2, 3])


def test_models_as_the_version_converter_leaves_them_are_read() -> None:
    """The model has IR version 3 and an initializer that is no input."""
    made = parser.parse_model("""<ir_version: 3, opset_import: ["" : 10]>
        g (float[n, 3] x) => (float[n, 5] y) { y = Pad<pads = [0, 1, 0, 1], value = 7.0>(x) }""")
    converted = onnx.version_converter.convert_version(made, 13)
    own = {tensor.name for tensor in converted.graph.initializer}
    assert converted.ir_version == 3 and own - {info.name for info in converted.graph.input}
    assert np.array_equal(
        on_headrace(converted, {"x": X})["y"], np.pad(X, ((0, 0), (1, 1)), constant_values=7)
    )
