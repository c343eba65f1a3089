"""What is no model, is damaged, or cannot be expressed: a clear error, whatever the bytes are."""

from __future__ import annotations

import math

import headrace
import numpy as np
import onnx
import pytest
from headrace.onnx import import_graph, open_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser


def model(source: str, opset: int = 21, others: str = "") -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}{others}]>' + source)


def small() -> onnx.ModelProto:
    """A model with most kinds of fields: attributes, initializers, shapes, a branch."""
    made = model("""g (float[n, 3] x, int64[2] i) => (float[n, 4] y, float[a, b] z) {
        w = Constant<value = float[3, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>()
        p = MatMul(x, w)
        s = Shape(p)
        r = Reshape(p, s)
        y = LeakyRelu<alpha = 0.2>(r)
        t = Transpose<perm = [1, 0]>(y)
        z = Gather<axis = 0>(t, i)
    }""")
    made.graph.initializer.append(numpy_helper.from_array(np.ones((40, 40), np.float32), "unused"))
    return made


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 64, b"GGUF" + bytes(99), b"not a model", bytes(range(256)) * 9]
)
def test_what_is_no_model_is_named(content: bytes, tmp_path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.onnx: this is no ONNX model"):
        headrace.load(path)


def test_truncated_files_are_refused_or_complete(tmp_path) -> None:
    content = small().SerializeToString()
    for length in range(0, len(content) - 1, 7):
        with pytest.raises(ValueError, match="the ONNX model: "):
            headrace.load(content[:length])


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_bytes_give_a_model_or_a_value_error(data: st.DataObject) -> None:
    content = bytearray(small().SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(content) - 1, 700)))
        kind = data.draw(st.integers(0, 2))
        if kind == 0:
            content[at] = data.draw(st.integers(0, 255))
        elif kind == 1:
            del content[at : at + data.draw(st.integers(1, 4))]
        else:
            content[at:at] = data.draw(st.binary(min_size=1, max_size=4))
    try:
        loaded = headrace.load(bytes(content), device="cpu")
        shapes = {t.name: [2 if isinstance(d, str) else d for d in t.shape] for t in loaded.inputs}
        types = {t.name: t.dtype for t in loaded.inputs}
        if all(math.prod(shape) < 2**20 for shape in shapes.values()):
            loaded({name: np.ones(shape, types[name]) for name, shape in shapes.items()})
    except ValueError as error:
        assert str(error)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_models_with_other_attributes_and_shapes_give_a_value_error_at_most(data: st.DataObject) -> None:
    """Well-formed as bytes, and nonsense: numbers of any size where extents, axes and pads belong."""
    import operator_cases

    case = data.draw(st.sampled_from(operator_cases.CASES))
    made = case.model()
    number = st.sampled_from([-(2**63), -(2**31), -7, -1, 0, 1, 2, 3, 5, 1000, 2**31, 2**40, 2**63 - 1])
    node = made.graph.node[0]
    for attribute in node.attribute:
        if data.draw(st.booleans()):
            continue
        if attribute.type == onnx.AttributeProto.INT:
            attribute.i = data.draw(number)
        elif attribute.type == onnx.AttributeProto.INTS:
            attribute.ints[:] = [data.draw(number) for _ in range(data.draw(st.integers(0, 5)))]
        elif attribute.type == onnx.AttributeProto.FLOAT:
            attribute.f = data.draw(st.sampled_from([0.0, -1.0, float("nan"), float("inf"), 1e30]))
    for tensor in made.graph.initializer:
        if tensor.data_type == TensorProto.INT64 and data.draw(st.booleans()):
            values = np.array([data.draw(number) for _ in range(int(np.prod(tensor.dims)))], np.int64)
            tensor.CopyFrom(numpy_helper.from_array(values.reshape(list(tensor.dims)), tensor.name))
    try:
        loaded = headrace.load(made, device="cpu")
        sizes = (math.prod(d for d in t.shape if isinstance(d, int)) for t in loaded.outputs)
        if all(size < 2**20 for size in sizes):
            loaded(case.feeds)
    except (ValueError, MemoryError) as error:
        assert str(error)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("y = NonMaxSuppression(x, x)", r"boxes and scores have 2 and 2 dimensions, not 3"),
        ("y = SequenceAt(x, i)", r"\(SequenceAt, ai\.onnx opset 21\): input 0 is no sequence, but a tensor"),
        ("y = Unique<axis = 5>(x)", r"axis 5 is outside the 2 dimensions"),
        ("n = Constant<value_int = -7>() y = HannWindow(n)", r"the size is -7; at least 0 is right"),
        ("y = Relu(y)", r"output 'y' \(Relu\) waits for that of 'y' \(Relu\)"),
        ("y = Relu(missing)", r"\(Relu, .*: input 'missing' is computed by no node before it"),
        ("y = Nonsense(x)", r"\(Nonsense, .*: this operator is not read. docs/onnx-operators.md lists"),
        ("y = MatMull(x, x)", r"not read. docs/onnx-operators.md .* \(did you mean MatMul\?\); export"),
        ("y, y = Split<num_outputs = 2>(x)", r"\(Split, .*: there is a value 'y' before it already"),
        ("y = Cast<to = 8>(x)", r"\(Cast, ai\.onnx opset 21\): the target type is STRING; there are FLOAT"),
        ("y = Transpose<perm = [0, 5]>(x)", r"\(Transpose, ai\.onnx opset 21\)"),
        ("y = Softmax<axis = 7>(x)", r"axis 7 is outside the 2 dimensions of the input"),
        ("y = Reshape(x, x)", r"the shape \(input 1\) has the shape \[2, 3\]; it is a list"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_node(source: str, message: str) -> None:
    made = model(f"g (float[2, 3] x, int64[2] i) => (float[a, b] y) {{ {source} }}")
    with pytest.raises(ValueError, match=message):
        headrace.load(made)


@pytest.mark.parametrize(
    ("source", "may_help"),
    [
        ("y = MatMull(x, w)", False),
        ("y = acme.Op(x)", False),
        ("y = MatMul(x, w)", False),
        (
            "s = Shape(x) one = Constant<value_int = 1>() b = Greater(s, one) "
            "t = Compress<axis = 0>(s, b) y = Reshape(x, t)",
            True,
        ),
    ],
)
def test_fixing_dimensions_is_advised_only_where_numbers_might_help(source: str, may_help: bool) -> None:
    made = parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21, "acme": 3]>
        g (float[batch, 3] x) => (float[a, b] y)
            <float[2, 5] w = {{{", ".join("1" * 10)}}}> {{ {source} }}""")
    with pytest.raises(ValueError) as refused:
        open_model(made).read({})
    assert ("dimensions={'batch': 1}" in str(refused.value)) == may_help, str(refused.value)


IMAGE = "float[1, 2, 5, 5] x"


@pytest.mark.parametrize(
    ("inputs", "call", "opset", "message"),
    [
        (IMAGE, "LpPool<p = 0, kernel_shape = [2, 2]>(x)", 21, "p is 0; at least 1.* has to correct it"),
        (IMAGE, "GlobalLpPool<p = 0>(x)", 21, "p is 0; at least 1.* has to correct it"),
        (IMAGE, "LRN<size = 0>(x)", 21, "size is 0; at least 1.* has to correct it"),
        (IMAGE, "MaxPool<kernel_shape = [2, 2], strides = [0, 1]>(x)", 21, r"strides \[0, 1\].* at least 1"),
        (
            IMAGE,
            "AveragePool<kernel_shape = [2, 2], dilations = [0, 1]>(x)",
            21,
            r"dilations \[0, 1\].* at least 1",
        ),
        (IMAGE, "DepthToSpace<blocksize = 0>(x)", 21, "blocksize is 0, .* has to correct it"),
        (IMAGE, "SpaceToDepth<blocksize = 0>(x)", 21, "blocksize is 0, .* has to correct it"),
        (IMAGE + ", float[2, 2, 3, 3] w", "Conv<group = 0>(x, w)", 21, "group"),
        (
            IMAGE + ", float[2, 2, 3, 3] w",
            "Conv<strides = [0, 1]>(x, w)",
            21,
            r"strides \[0, 1\].* at least 1",
        ),
        (IMAGE + ", float[2, 2, 3, 3] w", "ConvTranspose<group = 0>(x, w)", 21, "group"),
        (
            IMAGE + ", float[2] s, float[2] b",
            "GroupNormalization<num_groups = 0>(x, s, b)",
            21,
            "num_groups is 0, ",
        ),
        (
            IMAGE,
            'Einsum<equation = "ab->a">(x)',
            21,
            "'ab' of equation 'ab->a' is for another rank than input 0's 4",
        ),
        (
            "float[4, 1, 1] x, float[4, 1] w",
            "GRU<clip = 3.0>(x, w, w)",
            21,
            "input 1 has 2 dimensions, not 3",
        ),
        (
            "float[4, 1, 1] x, float[1, 1, 1] w",
            'RNN<activations = ["Step"]>(x, w, w)',
            21,
            "activation 'Step' is none of Affine, Elu, ",
        ),
        ("float[4, 1, 1] x, float[1, 1, 1] w", "RNN<clip = -0.7>(x, w, w)", 21, "clip is -0.7; it must be"),
        ("float[2, 3] x", "Transpose<perm = [0]>(x)", 21, r"perm is \[0\]; it has each of 0 to 1 once"),
        ("float[n, m] x", "Transpose<perm = [1, -2]>(x)", 21, r"perm is \[1, -2\]; it has each"),
        ("float[1, 3] x", "Squeeze<axes = [0, -2]>(x)", 11, r"the axes \[0, -2\] have one twice"),
        ("float[n, m] x", "ReduceMax<axes = [1, 1]>(x)", 13, r"the axes \[1, 1\] have one twice"),
        ("float[2, 3] x", "BitwiseNot(x)", 21, "the input is f32"),
        ("float x, float[1] s", "com.microsoft.BranchwiseRMSNorm(x, s)", 21, "the input is a scalar"),
        ("float x", "com.microsoft.BranchwiseRMSNorm(x)", 21, "the input is a scalar"),
        (
            "float[2, 3] x",
            'com.microsoft.FusedGemm<activation = "Erf">(x, x)',
            21,
            "activation is 'Erf'; Clip, ",
        ),
        (
            "float[2, 64] x, uint8[8, 2, 16] w, float[16] s",
            "com.microsoft.MatMulNBits<K = 64, N = 8, bits = 3, block_size = 32>(x, w, s)",
            21,
            "bits is 3; 2, 4 and 8 are read. Quantise the model",
        ),
        (
            "float[2, 64] x, uint8[8, 2, 16] w, float[16] s",
            "com.microsoft.MatMulNBits<K = 64, N = 8, bits = 4, block_size = 0>(x, w, s)",
            21,
            "N is 8, K 64 and block_size 0; each must be at least 1",
        ),
    ],
)
def test_what_an_operator_has_that_is_not_read_is_named_with_the_remedy(
    inputs: str, call: str, opset: int, message: str
) -> None:
    made = model(f"g ({inputs}) => (float y) {{ y = {call} }}", opset, ', "com.microsoft" : 1')
    made.graph.output[0].type.tensor_type.ClearField("shape")
    made.graph.node[0].name = "this one"
    op = made.graph.node[0].op_type
    with pytest.raises(ValueError, match=message) as error:
        headrace.load(made)
    said = str(error.value)
    assert f"node 'this one' ({op}, " in said
    remedies = (
        "xport the model",
        "has to correct it",
        "Quantise the model",
        "Save the model",
        "Take the",
        "author",
    )
    assert any(remedy in said for remedy in remedies), said


@pytest.mark.parametrize("shape", ["1, 1, 4, 4", "a, b, h, w"])
@pytest.mark.parametrize(
    ("operands", "attributes", "message"),
    [
        ("x, none, scales, sizes", "", "scales .input 2. and sizes .input 3.; one of them decides"),
        ("x, none, none, odd", "", r"the sizes are \[1, 1, 0, 8\]; each is at least 1"),
        ("x, none, none, less", "", r"the sizes are \[1, 1, -3, 8\]; each is at least 1"),
        ("x, none, none, two", "<axes = [2, 2]>", r"the axes \[2, 2\] have one twice"),
        ("x, none, none, two", "<axes = [-1, 3]>", r"the axes \[-1, 3\] have one twice"),
    ],
)
def test_images_of_no_size_or_two_are_refused(
    shape: str, operands: str, attributes: str, message: str
) -> None:
    made = model(f"""g (float[{shape}] x) => (float[c, d, e, f] y) {{
        scales = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()
        sizes = Constant<value_ints = [1, 1, 8, 8]>()
        odd = Constant<value_ints = [1, 1, 0, 8]>()
        less = Constant<value_ints = [1, 1, -3, 8]>()
        two = Constant<value_ints = [5, 7]>()
        y = Resize{attributes}({operands.replace("none", "")})
    }}""")
    with pytest.raises(ValueError, match=rf"\(Resize, ai.onnx opset 21\): .*{message}"):
        headrace.load(made)


@pytest.mark.parametrize("call", ["Div(a, b)", "Mod(a, b)", "Mod<fmod = 1>(a, b)"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "uint64"])
def test_whole_numbers_are_not_divided_by_0(call: str, dtype: str) -> None:
    made = model(f"g ({dtype}[n] a, {dtype}[n] b) => ({dtype}[n] y) {{ y = {call} }}")
    made.graph.node[0].name = "part"
    loaded = headrace.load(made, device="cpu")
    a, b = np.array([7, 100], dtype), np.array([2, 7], dtype)
    assert loaded(a, b)["y"].tolist() == ([3, 14] if "Div" in call else [1, 2])
    with pytest.raises(ValueError, match=r"\((Div|Mod) 'part'\): a divisor is 0; any other number is right"):
        loaded(a, np.array([2, 0], dtype))


def test_numbers_that_are_known_are_not_divided_by_0() -> None:
    made = model("g (int64[n] a) => (int64[n] y) { b = Constant<value_ints = [0]>() y = Div(a, b) }")
    with pytest.raises(ValueError, match="a divisor is 0"):
        headrace.load(made, device="cpu")(np.arange(3))


@pytest.mark.parametrize("equation", ["", "->", "ij,jk", "ij->ik", "ij->ii", "i j -> j i ->", "\x00"])
def test_equations_that_are_none_are_refused(equation: str) -> None:
    node = helper.make_node("Einsum", ["x"], ["y"], equation=equation)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "xy"]
    made = helper.make_model(
        helper.make_graph([node], "g", infos[:1], infos[1:]),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    with pytest.raises(ValueError, match=r"\(Einsum, "):
        headrace.load(made)


def test_cycles_are_refused() -> None:
    """The error names two of its nodes, not one that only waits for them."""
    wires = [("c", "d"), ("b", "a"), ("a", "b"), ("b", "c")]
    nodes = [helper.make_node("Relu", [x], [y]) for x, y in wires]
    info = helper.make_tensor_value_info("d", TensorProto.FLOAT, [2])
    made = helper.make_model(helper.make_graph(nodes, "g", [], [info]))
    with pytest.raises(ValueError, match=r"output '[ab]' \(Relu\) waits for that of '[ab]' .*not be a cycle"):
        headrace.load(made)


@pytest.mark.parametrize("opset", [0, 999])
def test_operator_sets_that_are_not_read_are_named(opset: int) -> None:
    made = small()
    made.opset_import[0].version = opset
    with pytest.raises(ValueError, match=rf"it imports operator set {opset} of ai.onnx; 1 to \d+ are read"):
        headrace.load(made)


def test_messages_of_a_later_form_are_refused() -> None:
    made = small()
    made.ir_version = 99
    with pytest.raises(ValueError, match="its ir_version is 99; versions up to 14 are read"):
        headrace.load(made)


def test_operators_of_foreign_domains_are_named() -> None:
    made = model("g (float[2] x) => (float[2] y) { y = acme.Magic(x) }", others=', "acme" : 3')
    with pytest.raises(
        ValueError, match=r"\(Magic, acme opset 3\): operators of the domain 'acme' are not read"
    ):
        headrace.load(made)


def test_the_node_is_named_with_what_to_fix() -> None:
    made = model("g (float[2, 3] x, int64[width] shape) => (float[a, b] y) { y = Reshape(x, shape) }")
    made.graph.node[0].name = "shaped"
    with pytest.raises(
        ValueError, match=r"node 'shaped' \(Reshape, ai.onnx opset 21\): .*dimension 'width'.*"
    ) as error:
        import_graph(made)
    assert "dimensions={'width': 1} (--dimension width=1)" in str(error.value)
    fixed = headrace.load(made, device="cpu", dimensions={"width": 2})
    assert fixed(np.ones((2, 3), np.float32), np.array([3, 2]))["y"].shape == (3, 2)


def test_an_extent_that_is_open_is_refused_only_with_its_number() -> None:
    made = model(
        "g (float[batch, 4] x) => (float[a, b] y, float[c, d] z) {"
        "t = Constant<value_ints = [3, 3]>() y, z = Split(x, t) }"
    )
    halves = headrace.load(made, device="cpu")
    assert halves(np.ones((6, 4), np.float32))["z"].shape == (3, 4)
    with pytest.raises(ValueError, match=r"split.*batch = 5 and 6 must be equal"):
        halves(np.ones((5, 4), np.float32))


def test_inputs_that_are_no_tensors_or_of_unread_types_are_named() -> None:
    made = small()
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    with pytest.raises(ValueError, match="input 'x': it is STRING; there are FLOAT, "):
        headrace.load(made)
    made = small()
    made.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(
        ValueError, match=r"input 'x': its shape is not in the model\. Give it with dimensions=\{'x': "
    ):
        headrace.onnx.convert(made, "unwritten.hrg")
    loaded = headrace.load(made, dimensions={"x": [2, 3]}, device="cpu")
    assert loaded(np.ones((2, 3), np.float32), np.array([0, 3]))["z"].shape == (2, 2)


def test_tensors_of_wrong_sizes_and_sparse_ones_are_named() -> None:
    made = small()
    made.graph.initializer[0].raw_data = b"1234"
    with pytest.raises(ValueError, match="initializer 'unused' cannot be read"):
        headrace.load(made)
    made = small()
    sparse = made.graph.sparse_initializer.add()
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "thin"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int64), "places"))
    sparse.dims[:] = [4]
    with pytest.raises(ValueError, match="initializer 'thin' is sparse; store it as a dense tensor"):
        headrace.load(made)


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/hostname", ""])
def test_external_data_stays_in_the_models_folder(location: str, tmp_path) -> None:
    made = small()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    (tmp_path.parent / "outside.bin").write_bytes(bytes(6400))
    with pytest.raises(ValueError, match="initializer 'unused' cannot be read: its data is in"):
        headrace.load(path)


@pytest.mark.parametrize("nodes", ["t = Relu(x) t = Abs(x) y = Relu(t)", "y = Add(x, missing)"])
def test_wrong_names_are_not_said_to_depend_on_dimensions(nodes: str) -> None:
    with pytest.raises(ValueError, match="what wrote the model has to correct it") as raised:
        headrace.load(model(f"g (float[n] x) => (float[n] y) {{ {nodes} }}"))
    assert "dimensions" not in str(raised.value)


def test_sparse_constants_are_named() -> None:
    values = helper.make_tensor("c", TensorProto.FLOAT, [1], [5.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, [1], [1]), [3])
    made = model("g (float[3] x) => (float[3] y) { c = Constant() y = Add(x, c) }")
    made.graph.node[0].attribute.append(helper.make_attribute("sparse_value", sparse))
    with pytest.raises(ValueError, match="'sparse_value' is a sparse tensor; store it as a dense one"):
        headrace.load(made)
