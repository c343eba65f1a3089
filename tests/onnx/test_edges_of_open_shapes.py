"""Where open shapes become empty, meet floats that round, or have long names: as ONNX Runtime has it."""

from __future__ import annotations

from typing import Any

import headrace
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from peers import assert_same, on_onnx_runtime

RNG = np.random.default_rng(7)


def rows(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def parsed(text: str, opset: int = 20) -> Any:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]>\n{text}')


CASES = {
    "a part to the front, whose length is a remainder of the extent": (
        """g (float[a, b] x) => (float[c, b] y) {
            z = Constant<value_ints = [0]>()
            two = Constant<value_ints = [2]>()
            n = Shape<start = 0, end = 1>(x)
            k = Mod(two, n)
            p = Slice(x, z, k, z)
            s = Slice(x, k, n, z)
            y = Concat<axis = 0>(s, p) }""",
        [{"x": rows(5, 2)}, {"x": rows(2, 2)}],
    ),
    "a condition that is longer than the axis": (
        "g (float[a, b] x, bool[n] c) => (float[m, b] y) { y = Compress<axis = 0>(x, c) }",
        [
            {"x": rows(2, 3), "c": np.array([1, 0, 1], bool)},
            {"x": rows(2, 3), "c": np.array([0, 0, 1, 1], bool)},
            {"x": rows(2, 3), "c": np.array([0, 1], bool)},
        ],
    ),
    "a range in steps of two that leads away from its end": (
        """g (float[n] x, float[m] w) => (int64[k] y) {
            a = Shape(x)
            b = Shape(w)
            none = Constant<value_ints = [0]>()
            first = Squeeze(a, none)
            last = Squeeze(b, none)
            two = Constant<value_int = 2>()
            y = Range(first, last, two) }""",
        [{"x": rows(7), "w": rows(3)}, {"x": rows(2), "w": rows(7)}],
    ),
    "elements of what is empty, by no indices": (
        """g (float[n, 3] x) => (float[k, 3] y) {
            zero = Constant<value_float = 0.0>()
            axis = Constant<value_ints = [1]>()
            total = ReduceMax<keepdims = 0>(x, axis)
            is_kept = Greater(total, zero)
            found = NonZero(is_kept)
            first = Constant<value_ints = [0]>()
            places = Squeeze(found, first)
            kept = Gather<axis = 0>(x, places)
            count = Shape<start = 0, end = 1>(kept)
            order = ConstantOfShape<value = int64[1] {0}>(count)
            y = Gather<axis = 0>(kept, order) }""",
        [{"x": -np.abs(rows(4, 3))}, {"x": rows(6, 3) + 1}],
    ),
    "an extent times a float that rounds": (
        """g (float[n] x) => (float[k] y) {
            n = Shape(x)
            wide = Cast<to = 1>(n)
            part = Constant<value_floats = [0.65]>()
            product = Mul(wide, part)
            below = Floor(product)
            k = Cast<to = 7>(below)
            z = Constant<value_ints = [0]>()
            y = Slice(x, z, k, z) }""",
        [{"x": rows(180)}, {"x": rows(20)}, {"x": rows(37)}],
    ),
    "steps of a third of the extent": (
        """g (float[n] x) => (float[k] y) {
            n = Shape(x)
            three = Constant<value_ints = [3]>()
            step = Div(n, three)
            z = Constant<value_ints = [0]>()
            y = Slice(x, z, n, z, step) }""",
        [{"x": rows(3)}, {"x": rows(7)}, {"x": rows(10)}],
    ),
    "a range of which open extents say whether it goes up or down": (
        """g (float[n] x, float[m] w) => (int64[k] y) {
            a = Shape(x)
            b = Shape(w)
            none = Constant<value_ints = [0]>()
            n = Squeeze(a, none)
            m = Squeeze(b, none)
            z = Constant<value_int = 0>()
            step = Sub(n, m)
            y = Range(z, n, step) }""",
        [{"x": rows(7), "w": rows(5)}, {"x": rows(9), "w": rows(2)}, {"x": rows(3), "w": rows(5)}],
    ),
    "a margin that an extent decides to add or to take away": (
        """g (float[a, b] x, float[c, b] w) => (float[c, b] y) {
            own = Shape<start = 0, end = 1>(x)
            wanted = Shape<start = 0, end = 1>(w)
            z = Constant<value_ints = [0]>()
            two = Constant<value_ints = [2]>()
            missing = Sub(wanted, own)
            before = Div(missing, two)
            after = Sub(missing, before)
            pads = Concat<axis = 0>(before, z, after, z)
            padded = Pad(x, pads)
            y = Add(padded, w) }""",
        [{"x": rows(4, 2), "w": rows(8, 2)}, {"x": rows(8, 2), "w": rows(4, 2)}],
    ),
    "parts of parts whose ends lie behind one another": (
        """g (float[n, m] x) => (float[k, m] y) {
            a = Constant<value_ints = [-3]>()
            b = Constant<value_ints = [2]>()
            c = Constant<value_ints = [1]>()
            z = Constant<value_ints = [0]>()
            p = Slice(x, a, b, z)
            q = Slice(p, c, a, z)
            r = Slice(x, z, b, z)
            y = Concat<axis = 0>(p, q, r) }""",
        [{"x": rows(2, 2)}, {"x": rows(4, 3)}, {"x": rows(9, 1)}],
    ),
    "maxima back in images of any size": (
        """g (float[n, c, h, w] x) => (float[n, c, k, m] y) {
            small, places = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
            y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(small, places) }""",
        [{"x": rows(1, 2, 4, 6)}, {"x": rows(2, 1, 6, 2)}],
    ),
    "lengths with long names": (
        """g (float[decoder_sequence_length_padded] x, float[encoder_sequence_length_padded] w)
            => (float[k] y) {
            n = Shape(w)
            z = Constant<value_ints = [0]>()
            y = Slice(x, z, n, z) }""",
        [{"x": rows(3), "w": rows(5)}, {"x": rows(5), "w": rows(3)}],
    ),
}


# Bounds of windows along an axis whose extent is a long formula; most are empty where it is small.
WINDOWS = [(2, 1, 1), (2, -2, 1), (-2, 1, 1), (-1, -2, 1), (1, 3, 2), (1, 2, -1), (-2, 1, -1), (1, -2, -1)]
CASES |= {
    f"a window from {start} to {end} by {step} of parts whose lengths are formulas": (
        f"""g (float[n, m] x) => (float[k, m] y) {{
            two_back = Constant<value_ints = [-2]>()
            three = Constant<value_ints = [3]>()
            four = Constant<value_ints = [4]>()
            z = Constant<value_ints = [0]>()
            start = Constant<value_ints = [{start}]>()
            end = Constant<value_ints = [{end}]>()
            step = Constant<value_ints = [{step}]>()
            p = Slice(x, two_back, three, z)
            q = Slice(x, two_back, four, z)
            parts = Concat<axis = 0>(p, q)
            y = Slice(parts, start, end, z, step) }}""",
        [{"x": rows(n, 2)} for n in (1, 3, 4, 5, 9)],
    )
    for start, end, step in WINDOWS
}


@pytest.mark.parametrize("name", CASES)
def test_edges_of_open_shapes_are_as_onnx_runtime_has_them(name: str) -> None:
    text, feeds = CASES[name]
    model = parsed(text)
    loaded = headrace.load(model, device="cpu")
    for fed in feeds:
        assert_same(loaded(fed)["y"], on_onnx_runtime(model, fed)["y"])


def test_a_hundred_sums_with_an_extent_that_is_counted_in_another_way_have_one_extent() -> None:
    sums = "\n".join(
        f"""v{i} = Reshape(s{i}, wanted)
            t{i} = Transpose<perm = [0, 2, 1]>(v{i})
            w{i} = Reshape(t{i}, flat)
            s{i + 1} = Add(s{i}, w{i})"""
        for i in range(100)
    )
    model = parsed(
        f"""g (float[samples, 6] x) => (float[k, 6] y) {{
            n = Shape<start = 0, end = 1>(x)
            two = Constant<value_ints = [2]>()
            three = Constant<value_ints = [3]>()
            less = Sub(n, three)
            half = Div(less, two)
            rest = Constant<value_ints = [-1, 2]>()
            six = Constant<value_ints = [6]>()
            wanted = Concat<axis = 0>(half, rest)
            flat = Concat<axis = 0>(half, six)
            z = Constant<value_ints = [0]>()
            first = Constant<value_ints = [4]>()
            s0 = Slice(x, first, n, z, two)
            {sums}
            y = Identity(s100) }}"""
    )
    loaded = headrace.load(model, device="cpu")
    assert isinstance(loaded, headrace.Model)  # read once, not for each shape
    for samples in (7, 8, 12):
        fed = {"x": rows(samples, 6) / 2**100}
        assert_same(loaded(fed)["y"], on_onnx_runtime(model, fed)["y"])


def test_a_cache_that_goes_into_attention_may_be_empty() -> None:
    model = parsed(
        """g (float[1, 2, 1, 4] q, float[1, 2, 1, 4] k, float[1, 2, 1, 4] v, float[1, 2, past, 4] pk,
              float[1, 2, past, 4] pv) =>
             (float[1, 2, 1, 4] y, float[1, 2, total, 4] nk, float[1, 2, total, 4] nv) {
            y, nk, nv = Attention(q, k, v, , pk, pv) }""",
        23,
    )
    loaded = headrace.load(model, device="cpu")
    new = {name: rows(1, 2, 1, 4) for name in "qkv"}
    for past in (0, 3):
        fed = {**new, "pk": rows(1, 2, past, 4), "pv": rows(1, 2, past, 4)}
        actual = loaded(fed)
        for name, expected in on_onnx_runtime(model, fed).items():
            assert_same(actual[name], expected)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "gates"), [("GRU", 3), ("RNN", 1), ("LSTM", 4)])
def test_sequences_of_a_batch_have_lengths_of_their_own(op: str, gates: int, direction: str) -> None:
    ways = 2 if direction == "bidirectional" else 1
    node = helper.make_node(
        op, ["x", "w", "r", "b", "lengths", "h"], ["y", "last"], hidden_size=6, direction=direction
    )
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "batch", 5]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, ["batch"]),
        helper.make_tensor_value_info("h", TensorProto.FLOAT, [ways, "batch", 6]),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "last")]
    weights = {
        "w": rows(ways, 6 * gates, 5),
        "r": rows(ways, 6 * gates, 6) / 3,
        "b": rows(ways, 12 * gates),
    }
    constants = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    loaded = headrace.load(model, device="cpu")
    for steps, lengths in ((7, [7, 3]), (4, [2, 4, 1]), (4, [0, 4])):
        batch = len(lengths)
        fed = {
            "x": rows(steps, batch, 5),
            "lengths": np.array(lengths, np.int32),
            "h": rows(ways, batch, 6),
        }
        actual = loaded(fed)
        for name, expected in on_onnx_runtime(model, fed).items():
            assert_same(actual[name], expected)
