"""Branches, loops and what decides on shapes, against ONNX Runtime where it knows the model."""

from __future__ import annotations

from pathlib import Path

import headrace
import numpy as np
import onnx
import pytest
from onnx import helper, parser
from peers import assert_same, on_onnx_runtime

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'


def model_of(text: str) -> onnx.ModelProto:
    return parser.parse_model(HEAD + text)


def check(model: onnx.ModelProto, *feeds: dict[str, np.ndarray], tmp_path: Path | None = None) -> None:
    """The same as ONNX Runtime for each set of inputs; with a folder by the graph file, too."""
    loaded = [headrace.load(model, device="cpu", threads=1)]
    if tmp_path is not None:
        loaded[0].save(tmp_path / "model.hrg")
        loaded.append(headrace.load(tmp_path / "model.hrg", device="cpu", threads=1))
    for given in feeds:
        expected = on_onnx_runtime(model, given)
        for one in loaded:
            actual = one(given)
            for name, value in expected.items():
                assert_same(actual[name], value, 1e-5)


def test_nodes_may_lie_before_what_they_and_their_bodies_read() -> None:
    model = model_of("""
    chosen (float[n] x) => (float[n] y) {
      late = Neg (x)
      any = ReduceMax <keepdims = 0> (late)
      zero = Constant <value_float = 0.0> ()
      positive = Greater (any, zero)
      y = If <then_branch = a () => (float[n] t) { t = Relu (late) },
              else_branch = b () => (float[n] e) { e = Sub (zero, late) }> (positive)
    }
    """)
    nodes = list(reversed(model.graph.node))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    check(model, {"x": np.float32([1, -2, 3])}, {"x": np.float32([1, 2])})


COUNTING = model_of("""
counted (float[n] x, int64 most) => (float[n] y, float[k] sums) {
  yes = Constant <value_int = 1> ()
  go = Cast <to = 9> (yes)
  y, sums = Loop <body = once (int64 i, bool c, float[n] now) => (bool more, float[n] next, float sum) {
    one = Constant <value_float = 1.0> ()
    next = Add (now, one)
    sum = ReduceSum <keepdims = 0> (next)
    limit = Constant <value_float = 100.0> ()
    more = Less (sum, limit)
  }> (most, go, x)
}
""")


def test_a_loop_ends_by_its_count_or_by_what_it_computes(tmp_path: Path) -> None:
    x = np.array([1, 2, 3], np.float32)
    check(
        COUNTING,
        {"x": x, "most": np.array(4, np.int64)},
        {"x": x, "most": np.array(0, np.int64)},
        {"x": x[:1], "most": np.array(7, np.int64)},
        {"x": x, "most": np.array(2**62, np.int64)},
        tmp_path=tmp_path,
    )


def test_a_loop_without_an_end_meets_the_callers_limit() -> None:
    model = headrace.load(COUNTING, device="cpu", most_iterations=20)
    feeds = {"x": np.array([-1e9], np.float32), "most": np.array(2**62, np.int64)}
    with pytest.raises(ValueError, match="after 20 iterations it would go on"):
        model(feeds)
    assert model({**feeds, "most": np.array(3, np.int64)})["sums"].shape == (3,)


def test_what_a_loop_carries_may_grow() -> None:
    model = model_of("""
    growing (float[n, 2] x, int64 most) => (float[m, 2] y) {
      y = Loop <body = once (int64 i, bool c, float[k, 2] now) => (bool more, float[j, 2] next) {
        more = Identity (c)
        two = Constant <value_float = 2.0> ()
        more_rows = Mul (x, two)
        next = Concat <axis = 0> (now, more_rows)
      }> (most, , x)
    }""")
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    check(model, *({"x": x, "most": np.array(n, np.int64)} for n in (0, 1, 3)))


def test_a_branch_may_decide_on_a_shape(tmp_path: Path) -> None:
    model = model_of("""
    either (float[n] x) => (float[m] y) {
      size = Shape (x)
      four = Constant <value_ints = [4]> ()
      is_long = Greater (size, four)
      y = If <then_branch = long () => (float[2] a) {
        begin = Constant <value_ints = [0]> ()
        end = Constant <value_ints = [2]> ()
        a = Slice (x, begin, end)
      }, else_branch = short () => (float[k] b) {
        b = Concat <axis = 0> (x, x)
      }> (is_long)
    }""")
    check(model, *({"x": np.arange(n, dtype=np.float32)} for n in (3, 4, 5, 9)), tmp_path=tmp_path)


def test_a_loop_in_a_branch_reads_values_of_both_graphs_around_it() -> None:
    model = model_of("""
    nested (float[n] x, bool flag, int64 most) => (float[n] y) {
      three = Constant <value_float = 3.0> ()
      z = Mul (x, three)
      y = If <then_branch = yes () => (float[n] a) {
        w = Add (z, x)
        a = Loop <body = once (int64 i, bool c, float[n] now) => (bool more, float[n] next) {
          more = Identity (c)
          sum = Add (now, w)
          next = Sub (sum, z)
        }> (most, , x)
      }, else_branch = no () => (float[n] b) {
        b = Neg (z)
      }> (flag)
    }""")
    x, most = np.array([1, 2], np.float32), np.array(3, np.int64)
    check(model, *({"x": x, "flag": np.array(flag), "most": most} for flag in (True, False)))


def test_the_best_boxes_are_found_inside_a_model(tmp_path: Path) -> None:
    model = model_of("""
    boxes (float[1, n, 4] boxes, float[1, 2, n] scores, int64[1] most)
        => (float[k, 4] y, int64[k, 3] chosen) {
      overlap = Constant <value_floats = [0.5]> ()
      least = Constant <value_floats = [0.2]> ()
      chosen = NonMaxSuppression (boxes, scores, most, overlap, least)
      column = Constant <value_int = 2> ()
      which = Gather <axis = 1> (chosen, column)
      first = Constant <value_ints = [0]> ()
      flat = Squeeze (boxes, first)
      y = Gather (flat, which)
    }""")
    random = np.random.default_rng(1)
    feeds = []
    for count in (1, 7, 40):
        corners = random.uniform(0, 10, [1, count, 2]).astype(np.float32)
        boxes = np.concatenate([corners, corners + 3], 2)
        scores = random.uniform(0, 1, [1, 2, count]).astype(np.float32)
        feeds.append({"boxes": boxes, "scores": scores, "most": np.array([5], np.int64)})
    check(model, *feeds, tmp_path=tmp_path)


def test_axes_shapes_and_places_are_taken_at_run_time(tmp_path: Path) -> None:
    model = model_of("""
    told (float[a, b, c] x, int64[2] axes, int64[3] shape, int64[2] begin, int64[2] end, int64[2] steps)
        => (float[p, q, r] sums, float[s, t, u] tiled, float[v, w, z] part) {
      sums = ReduceSum <keepdims = 1> (x, axes)
      tiled = Tile (x, shape)
      part = Slice (x, begin, end, axes, steps)
    }""")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def feeds(axes: list[int], begin: list[int], end: list[int], steps: list[int]) -> dict[str, np.ndarray]:
        given = {"axes": axes, "shape": [2, 1, 3], "begin": begin, "end": end, "steps": steps}
        return {"x": x, **{name: np.array(value, np.int64) for name, value in given.items()}}

    check(
        model,
        feeds([0, 2], [0, 1], [2, 3], [1, 2]),
        feeds([-1, 1], [-1, 0], [-100, 2**31], [-1, 1]),
        feeds([2, 1], [3, 5], [1, 1], [-2, -1]),
        tmp_path=tmp_path,
    )


def test_a_shape_that_is_fed_may_keep_and_infer_extents() -> None:
    model = model_of("told (float[a, b] x, int64[3] shape) => (float[p, q, r] y) { y = Reshape (x, shape) }")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    shapes = ([0, 2, 2], [3, -1, 2], [0, 0, 1], [-1, 1, 1])
    check(model, *({"x": x, "shape": np.array(shape, np.int64)} for shape in shapes))
    loaded = headrace.load(model, device="cpu")
    with pytest.raises(ValueError, match="must be equal"):
        loaded(x, np.array([5, 1, 1], np.int64))
    with pytest.raises(ValueError, match="read_extents"):
        loaded(x, np.array([-5, 1, 1], np.int64))


def test_sequences_go_in_and_come_out_as_lists() -> None:
    inputs = [helper.make_tensor_sequence_value_info("x", onnx.TensorProto.FLOAT, None)]
    inputs.append(helper.make_tensor_value_info("at", onnx.TensorProto.INT64, []))
    outputs = [helper.make_tensor_sequence_value_info("y", onnx.TensorProto.FLOAT, None)]
    outputs.append(helper.make_tensor_value_info("joined", onnx.TensorProto.FLOAT, [None, 2]))
    nodes = [
        helper.make_node("SequenceAt", ["x", "at"], ["one"]),
        helper.make_node("Neg", ["one"], ["negative"]),
        helper.make_node("SequenceInsert", ["x", "negative", "at"], ["y"]),
        helper.make_node("ConcatFromSequence", ["y"], ["joined"], axis=0),
    ]
    graph = helper.make_graph(nodes, "sequences", inputs, outputs)
    model = headrace.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), device="cpu")
    parts = [np.full([n, 2], n, np.float32) for n in (1, 3, 2)]
    for at in (0, 2, -1):
        result = model(x=parts, at=np.array(at, np.int64))
        place = at % 3
        expected = [*parts[:place], -parts[place], *parts[place:]]
        assert [part.tolist() for part in result["y"]] == [part.tolist() for part in expected]
        np.testing.assert_array_equal(result["joined"], np.concatenate(expected))
    with pytest.raises(ValueError, match="index 3 is outside the extent 3"):
        model(x=parts, at=np.array(3, np.int64))
    with pytest.raises(ValueError, match="sequences or optionals; load it with the shapes"):
        model.save("model.hrg")
    assert [(x.name, x.kind, x.dtype) for x in model.inputs] == [
        ("x", "sequence", np.float32),
        ("at", "tensor", np.int64),
    ]
    assert [(x.name, x.kind) for x in model.outputs] == [("y", "sequence"), ("joined", "tensor")]


def test_what_a_sequence_of_single_elements_gives_has_one_whatever_their_number() -> None:
    """So PyTorch's older exporter writes repeat_interleave: the shape of each part has a known length."""
    model = model_of("""
    repeated (float[n, 4] x, int64[n] times, int64 at) => (float[k, 4] y) {
      sizes = Shape (times)
      ones = ConstantOfShape <value = int64[1] {1}> (sizes)
      rows = SplitToSequence <axis = 0> (x, ones)
      counts = SplitToSequence <axis = 0> (times, ones)
      row = SequenceAt (rows, at)
      count = SequenceAt (counts, at)
      four = Constant <value_ints = [4]> ()
      shape = Concat <axis = 0> (count, four)
      y = Expand (row, shape)
    }""")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    times = np.array([2, 0, 5])
    check(model, *({"x": x, "times": times, "at": np.array(at)} for at in (0, 1, 2)))
    assert isinstance(headrace.load(model, device="cpu"), headrace.Model)


def test_an_extent_that_is_known_beside_open_ones_chooses_a_branch() -> None:
    """As the older exporter of PyTorch writes squeeze, where one branch alone could be."""
    model = model_of("""
    squeezed (float[n, 1] x) => (float[m] y) {
      sizes = Shape (x)
      place = Constant <value_ints = [-1]> ()
      width = Gather (sizes, place)
      one = Constant <value_ints = [1]> ()
      is_one = Equal (width, one)
      y = If <then_branch = a () => (float[p] s) { s = Squeeze (x, one) },
              else_branch = b () => (float[q, r] t) { t = Identity (x) }> (is_one)
    }""")
    loaded = headrace.load(model, device="cpu")
    assert isinstance(loaded, headrace.Model)
    x = np.arange(3, dtype=np.float32).reshape(3, 1)
    assert loaded(x)["y"].tolist() == [0, 1, 2]


def test_branches_of_other_numbers_of_dimensions_are_refused_with_a_remedy() -> None:
    model = model_of("""
    ranks (float[n, 1] x, bool flag) => (float[m] y) {
      y = If <then_branch = a () => (float[k] p) { one = Constant <value_ints = [1]> ()
        p = Squeeze (x, one) }, else_branch = b () => (float[k, 1] q) { q = Identity (x) }> (flag)
    }""")
    with pytest.raises(ValueError, match="f32 of 1 dimensions in one branch and f32 of 2 dimensions"):
        headrace.load(model, device="cpu")


def test_where_extents_decide_on_a_number_of_dimensions_the_model_is_read_for_each_shape() -> None:
    """PyTorch's older exporter writes squeeze(1) of an open dimension so."""
    model = model_of("""
    squeezed (float[n, m] x) => (float[] y) {
      sizes = Shape (x)
      place = Constant <value_int = 1> ()
      width = Gather (sizes, place)
      one = Constant <value_int = 1> ()
      is_one = Equal (width, one)
      y = If <then_branch = a () => (float[] p) { axis = Constant <value_ints = [1]> ()
        p = Squeeze (x, axis) }, else_branch = b () => (float[] q) { q = Identity (x) }> (is_one)
    }""")
    with pytest.raises(ValueError, match=r"other, and which one is known only at run time.*dimensions={"):
        headrace.onnx.import_graph(model)
    loaded = headrace.load(model, device="cpu")
    for shape in ([3, 1], [3, 2], [1, 1], [3, 1]):
        x = np.ones(shape, np.float32)
        assert_same(loaded(x)["y"], on_onnx_runtime(model, {"x": x})["y"])
    with pytest.raises(ValueError, match=r"dimensions=\{'n': 1, 'm': 1\}.*it cannot be read: .*at run time"):
        loaded.save("model.hrg")
    assert [(x.name, x.kind, x.shape) for x in loaded.inputs] == [("x", "tensor", ["n", "m"])]
    some = headrace.load(model, device="cpu", dimensions={"n": 3})
    assert some.inputs[0].shape == [3, "m"]
    assert [x.name for x in some.outputs] == ["y"]


def test_what_a_loop_collects_in_no_iteration_has_the_extents_that_are_known() -> None:
    model = model_of("""
    never (float[n, m] x, int64 most) => (float[k, n, m] y, float[k, n, m] z) {
      last, y = Loop <body = once (int64 i, bool c, float[n, m] now)
                             => (bool more, float[n, m] a, float[n, m] b) {
        more = Identity (c)
        a = Neg (now)
        b = Add (now, x)
      }> (most, , x)
      z = Add (y, x)
    }""")
    loaded = headrace.load(model, device="cpu")
    for most in (0, 2):
        result = loaded(np.ones([2, 3], np.float32), np.array(most, np.int64))
        assert result["y"].shape == result["z"].shape == (most, 2, 3)


def test_a_loop_that_needs_more_memory_than_there_is_fails_before_it_takes_it() -> None:
    model = model_of("""
    large (float[1] x, int64[1] size) => (float[n] y) {
      one = Constant <value_int = 1> ()
      y = Loop <body = once (int64 i, bool c, float[k] now) => (bool more, float[j] next) {
        more = Identity (c)
        next = Expand (x, size)
      }> (one, , x)
    }""")
    loaded = headrace.load(model, device="cpu")
    x = np.ones(1, np.float32)
    assert loaded(x, np.array([5]))["y"].shape == (5,)
    with pytest.raises(MemoryError, match="iteration 0 needs 4194304 MiB"):
        loaded(x, np.array([2**40]))


def test_a_branch_that_cannot_be_computed_fails_only_when_it_is_taken() -> None:
    """Some recognisers of speech have one branch for each rate, of which the frame's length fits one."""
    model = model_of("""
    rates (float[1, 6] x, int64 rate) => (float[1, k] y) {
      fast = Constant <value_int = 16> ()
      is_fast = Equal (rate, fast)
      y = If <then_branch = a () => (float[1, 6] p) { p = Neg (x) }, else_branch = b () => (float[1, 2] q) {
        w = Constant <value = float[3, 2] {1,1,1,1,1,1}> ()
        q = MatMul (x, w) }> (is_fast)
    }""")
    loaded = headrace.load(model, device="cpu")
    x = np.arange(6, dtype=np.float32).reshape(1, 6)
    np.testing.assert_array_equal(loaded(x, np.array(16))["y"], -x)
    with pytest.raises(
        ValueError, match=r"the model's other branch cannot be computed \(.*MatMul.* is 0; at least 1"
    ):
        loaded(x, np.array(8))


@pytest.mark.parametrize(
    "past_branch",
    [
        "all = Concat <axis = 1> (past, x)",
        "turned = Transpose <perm = [0, 2, 1]> (past)  s = MatMul (x, turned) "
        "p = Softmax (s)  all = MatMul (p, past)",
    ],
)
def test_what_one_branch_alone_reads_may_be_empty(past_branch: str) -> None:
    model = model_of(f"""
    decoder (bool use, float[b,p,2] past, float[b,n,2] x) => (float[b,m,2] y) {{
      y = If <then_branch = a () => (float[b,m,2] all) {{ {past_branch} }},
              else_branch = c () => (float[b,n,2] e) {{ e = Relu (x) }}> (use)
    }}""")
    x = np.arange(6, dtype=np.float32).reshape(1, 3, 2) - 2
    check(
        model,
        {"use": np.array(False), "past": np.zeros((1, 0, 2), np.float32), "x": x},
        {"use": np.array(True), "past": np.zeros((1, 0, 2), np.float32), "x": x},
        {"use": np.array(True), "past": x + 1, "x": x},
    )


def test_what_both_branches_read_is_not_empty() -> None:
    model = model_of("""
    both (bool use, float[n] x) => (float[n] y) {
      y = If <then_branch = a () => (float[n] t) { t = Relu (x) },
              else_branch = c () => (float[n] e) { e = Neg (x) }> (use)
    }""")
    loaded = headrace.load(model, device="cpu", threads=1)
    with pytest.raises(ValueError, match=r"n \(dimension 0\) is 0; at least 1 is needed"):
        loaded({"use": np.array(False), "x": np.zeros(0, np.float32)})
