"""What a caller feeds and the operator does not take is an error with the operator's name."""

from __future__ import annotations

import headrace
import numpy as np
import pytest
from onnx import parser
from peers import on_onnx_runtime

X = np.arange(12, dtype=np.float32).reshape(3, 4)
SLICE = """(float[n, m] x, int64[a] start, int64[a] end, int64[a] axes, int64[a] steps) => (float[p, q] y)
    { y = Slice(x, start, end, axes, steps) }"""
RNN = """(float[steps, batch, 4] x, int32[batch] lengths) => (float[s, d, b, 2] y) {
    w = Constant<value = float[1, 2, 4] {1, 2, 3, 4, 5, 6, 7, 8}>()
    r = Constant<value = float[1, 2, 2] {1, 2, 3, 4}>()
    y = RNN<hidden_size = 2>(x, w, r, , lengths) }"""
REGIONS = """(float[n, 1, 3, 4] x, float[k, 4] boxes, int64[k] which) => (float[k, 1, 1, 1] y)
    { y = RoiAlign(x, boxes, which) }"""
REVERSE = "(float[n, m] x, int64[m] lengths) => (float[n, m] y) { y = ReverseSequence(x, lengths) }"

# The model, what it is fed beside x, what is refused, and with what message.
REFUSED = {
    "steps of nothing": (
        SLICE,
        {"start": [0], "end": [3], "axes": [0], "steps": [1]},
        {"steps": [0]},
        r"\(Slice 'y'\): the distance of a step is 0; at least 1",
    ),
    "axes of a part that are given twice": (
        SLICE,
        {"start": [0, 1], "end": [3, 3], "axes": [0, 1], "steps": [1, 1]},
        {"axes": [1, -1]},
        r"\(Slice 'y'\): how often an axis is given is 2; at most 1",
    ),
    "axes of a part that do not exist": (
        SLICE,
        {"start": [0], "end": [3], "axes": [0], "steps": [1]},
        {"axes": [2]},
        r"\(Slice 'y'\): index 2 is outside the extent 2",
    ),
    "new axes that are given twice": (
        "(float[n, m] x, int64[2] axes) => (float[a, b, c, d] y) { y = Unsqueeze(x, axes) }",
        {"axes": [0, 3]},
        {"axes": [1, -3]},
        r"\(Unsqueeze 'y'\): how often an axis is given is 2; at most 1",
    ),
    "axes of sums that are given twice": (
        "(float[n, m] x, int64[2] axes) => (float[a, b] y) { y = ReduceSum(x, axes) }",
        {"axes": [0, 1]},
        {"axes": [1, -1]},
        r"\(ReduceSum 'y'\): how often an axis is given is 2; at most 1",
    ),
    "divisors of 0": (
        "(int64[n] x, int64[n] by) => (int64[n] y) { y = Mod(x, by) }",
        {"x": [7, 8], "by": [2, -3]},
        {"x": [7, 8], "by": [2, 0]},
        r"\(Mod 'y'\): a divisor is 0; any other number is right",
    ),
    "margins along an axis that is given twice": (
        "(float[n, m] x, int64[4] pads, int64[2] axes) => (float[a, b] y) { y = Pad(x, pads, , axes) }",
        {"pads": [1, 0, 0, 1], "axes": [0, 1]},
        {"axes": [1, 1]},
        r"\(Pad 'y'\): how often an axis is given is 2; at most 1",
    ),
    "frames that do not go on": (
        "(float[1, length, 1] x, int64 step, float[width] window) => (float[a, b, c, d] y) "
        "{ y = STFT(x, step, window) }",
        {"x": np.ones((1, 12, 1), np.float32), "step": 3, "window": np.ones(4, np.float32)},
        {"step": 0},
        r"\(STFT 'y'\): the frame_step is 0; at least 1",
    ),
    "extents that are negative": (
        "(float[n, m] x, int64[2] pads) => (float[a, m] y) { axis = Constant<value_ints = [0]>() "
        "y = Pad(x, pads, , axis) }",
        {"pads": [0, -3]},
        {"pads": [-2, -2]},
        r"\(Pad 'y'\): element 0 is -1, which cannot be the extent",
    ),
    "sequences longer than the input": (
        REVERSE,
        {"lengths": [3, 1, 2, 0]},
        {"lengths": [3, 1, 4, 0]},
        r"\(ReverseSequence 'y'\): the length of a sequence is 4; at most 3",
    ),
    "sequences of a negative length": (
        REVERSE,
        {"lengths": [3, 1, 2, 0]},
        {"lengths": [3, 1, -1, 0]},
        r"\(ReverseSequence 'y'\): the length of a sequence is -1; at least 0",
    ),
    "states of sequences longer than the input": (
        RNN,
        {"x": X.reshape(3, 1, 4), "lengths": np.array([2], np.int32)},
        {"lengths": np.array([4], np.int32)},
        r"\(RNN 'y'\): the length of a sequence is 4; at most 3",
    ),
    "ranges in steps of nothing": (
        "(int64 x, int64 end, int64 step) => (int64[k] y) { y = Range(x, end, step) }",
        {"x": 1, "end": 5, "step": 2},
        {"step": 0},
        r"\(Range 'y'\): the distance of a step is 0; at least 1",
    ),
    "classes of no number": (
        """(int64[n] x, int64 depth) => (float[n, d] y) {
        values = Constant<value_floats = [0.0, 1.0]>() y = OneHot(x, depth, values) }""",
        {"x": [0, 1], "depth": 3},
        {"depth": 0},
        r"\(OneHot 'y'\): the depth is 0; at least 1",
    ),
    "places of maxima outside the image": (
        """(float[n, 1, 2] x, int64[n, 1, 2] places) => (float[n, 1, k] y) {
        y = MaxUnpool<kernel_shape = [2], strides = [2]>(x, places) }""",
        {"x": X[:2, :2].reshape(2, 1, 2), "places": [[[0, 3]], [[5, 6]]]},
        {"places": [[[0, 3]], [[5, 8]]]},
        r"\(MaxUnpool 'y'\): the place of a maximum is 8; at most 7",
    ),
    "regions of images that do not exist": (
        REGIONS,
        {"x": X.reshape(1, 1, 3, 4), "boxes": np.ones([2, 4], np.float32), "which": [0, 0]},
        {"which": [0, 1]},
        r"\(RoiAlign 'y'\): the number of a region's image is 1; at most 0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_operator_does_not_take_is_an_error_that_names_it(name: str) -> None:
    text, good, bad, message = REFUSED[name]
    model = headrace.load(
        parser.parse_model(f'<ir_version: 9, opset_import: ["" : 19]> g {text}'), device="cpu"
    )

    def run(feeds: dict) -> None:
        model({k: v if isinstance(v, np.ndarray) else np.array(v, np.int64) for k, v in feeds.items()})

    run({"x": X, **good})
    with pytest.raises(ValueError, match=message):
        run({"x": X, **good, **bad})
    run({"x": X, **good})


def test_a_node_without_a_name_is_named_by_its_result() -> None:
    text = "g (float[n, m] x, float[k, l] w) => (float[n, l] y) { y = MatMul(x, w) }"
    model = headrace.load(
        parser.parse_model(f'<ir_version: 9, opset_import: ["" : 19]> {text}'), device="cpu"
    )
    with pytest.raises(ValueError, match=r"^matmul \(y\): the extents m = 4 and k = 3 must be equal"):
        model({"x": X, "w": X})


# Lists whose length the operator's rules give, and the model leaves open; and extents that must be others.
OPEN_LISTS = {
    "Pad": ('y = Pad<mode = "reflect">(x, a)', {"a": [0, 1, 1, 0]}),
    "Tile": ("y = Tile(x, a)", {"a": [2, 1]}),
    "Split": ("y, z = Split<axis = 1>(x, a)", {"a": [1, 3]}),
    "CenterCropPad": ("y = CenterCropPad(x, a)", {"a": [5, 2]}),
    "Expand": ("y = Expand(x, a)", {"a": [2, 3, 4]}),
    "Slice": ("y = Slice(x, a, b)", {"a": [1, 0], "b": [3, 2]}),
}


@pytest.mark.parametrize("name", OPEN_LISTS)
def test_a_list_of_numbers_may_have_an_open_length(name: str) -> None:
    text, lists = OPEN_LISTS[name]
    inputs = ", ".join(["float[n, m] x", *(f"int64[{key}0] {key}" for key in lists)])
    outputs = "float[p, q] y, float[p, r] z" if name == "Split" else "float[p, q] y"
    if name == "Expand":
        outputs = "float[p, q, r] y"
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 19]> g ({inputs}) => ({outputs}) {{ {text} }}'
    )
    feeds = {"x": X, **{key: np.array(values, np.int64) for key, values in lists.items()}}
    for key, expected in on_onnx_runtime(model, feeds).items():
        np.testing.assert_array_equal(headrace.load(model, device="cpu")(feeds)[key], expected)


def test_a_list_of_another_length_than_the_operators_is_an_error() -> None:
    text = "g (float[n, m] x, int64[k] a) => (float[p, q] y) { y = Tile(x, a) }"
    model = headrace.load(
        parser.parse_model(f'<ir_version: 9, opset_import: ["" : 19]> {text}'), device="cpu"
    )
    with pytest.raises(ValueError, match="the extents k = 3 and 2 must be equal"):
        model({"x": X, "a": np.array([1, 2, 3])})


def test_boxes_and_groups_of_channels_may_have_open_extents() -> None:
    boxes = parser.parse_model("""<ir_version: 9, opset_import: ["" : 19]>
        g (float[a, b, c] x, float[a, k, b] scores) => (int64[n, 3] y) {
            most = Constant<value_ints = [2]>() y = NonMaxSuppression(x, scores, most) }""")
    random = np.random.default_rng(0)
    feeds = {
        "x": random.random((1, 6, 4), np.float32),
        "scores": random.random((1, 2, 6), np.float32),
    }
    expected = on_onnx_runtime(boxes, feeds)["y"]
    np.testing.assert_array_equal(headrace.load(boxes, device="cpu")(feeds)["y"], expected)
    groups = parser.parse_model("""<ir_version: 9, opset_import: ["" : 21]>
        g (float[n, c, h] x, float[c] scale, float[c] bias) => (float[n, c, h] y) {
            y = GroupNormalization<num_groups = 3>(x, scale, bias) }""")
    feeds = {"x": random.random((2, 6, 4), np.float32), "scale": np.arange(6, dtype=np.float32)}
    feeds["bias"] = feeds["scale"][::-1].copy()
    expected = on_onnx_runtime(groups, feeds)["y"]
    np.testing.assert_allclose(headrace.load(groups, device="cpu")(feeds)["y"], expected, atol=1e-5)


def test_a_place_that_is_cut_out_of_a_list_cuts_others() -> None:
    """As torch.nn.EmbeddingBag is exported."""
    model = parser.parse_model("""<ir_version: 9, opset_import: ["" : 19]>
        g (float[n, m] x, int64[1] i, int64[k] offsets) => (float[p, q] y) {
            one = Constant<value_ints = [1]>()
            next = Add(i, one) last = Add(next, one)
            start = Slice(offsets, i, next) end = Slice(offsets, next, last)
            y = Slice(x, start, end) }""")
    loaded = headrace.load(model, device="cpu")
    for i in (0, 1):
        feeds = {"x": X, "i": np.array([i]), "offsets": np.array([0, 1, 3])}
        np.testing.assert_array_equal(loaded(feeds)["y"], on_onnx_runtime(model, feeds)["y"])
