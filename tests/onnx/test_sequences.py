"""Sequences and optionals: of known length and of one that a run tells, through branches and loops."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import headrace
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser
from peers import on_onnx_runtime

HEAD = '<ir_version: 9, opset_import: ["" : 17, "local" : 1]>\n'
FLOATS = helper.make_tensor_sequence_value_info("xs", TensorProto.FLOAT, None)


def model_of(text: str, functions: str = "") -> onnx.ModelProto:
    return parser.parse_model(HEAD + text + functions)


def same(actual: Any, expected: Any) -> None:
    """Values, shapes and dtypes, also within lists."""
    if isinstance(expected, list):
        assert isinstance(actual, list) and len(actual) == len(expected), (actual, expected)
        for one, other in zip(actual, expected, strict=True):
            same(one, other)
    elif expected is None:
        assert actual is None
    else:
        assert actual.dtype == expected.dtype and actual.shape == expected.shape, (actual, expected)
        np.testing.assert_array_equal(actual, expected)


def check(model: onnx.ModelProto, *feeds: dict[str, Any], **options: Any) -> None:
    """The same as ONNX Runtime for each set of inputs."""
    loaded = headrace.load(model, device="cpu", threads=1, **options)
    for given in feeds:
        actual = loaded(given)
        for name, value in on_onnx_runtime(model, given).items():
            same(actual[name], value)


def graph_of(model: onnx.ModelProto, forms: dict[str, Any] | None = None) -> headrace.Graph:
    return headrace._core.load_onnx(model.SerializeToString(), forms or {})


def number(n: int) -> np.ndarray:
    return np.array(n, np.int64)


def parts(*shapes: list[int]) -> list[np.ndarray]:
    return [np.arange(np.prod(s), dtype=np.float32).reshape(s) + 10 * i for i, s in enumerate(shapes)]


SPLIT = """
split (float[n, 3] x, {sizes} sizes, int64 at)
    => (seq(float[]) ys, float[a, b] one, int64 count, seq(float[]) left) {{
  ys = SplitToSequence <axis = {axis}> (x, sizes)
  one = SequenceAt (ys, at)
  count = SequenceLength (ys)
  left = SequenceErase (ys, at)
}}"""


@pytest.mark.parametrize("sizes", [[2, 1, 3], [2, 4], [1, 1, 4]])
def test_parts_of_sizes_that_are_fed_are_a_sequence(sizes: list[int]) -> None:
    model = model_of(SPLIT.format(sizes=f"int64[{len(sizes)}]", axis=0))
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    loaded = headrace.load(model, device="cpu")
    expected = np.split(x, np.cumsum(sizes)[:-1])
    for at in range(-len(sizes), len(sizes)):
        left = [part for i, part in enumerate(expected) if i != at % len(sizes)]
        result = loaded(x=x, sizes=np.array(sizes), at=number(at))
        same(result["ys"], expected)
        same(result["one"], expected[at])
        same(result["left"], left)
        assert result["count"] == len(sizes)
    with pytest.raises(ValueError, match=f"index {len(sizes)} is outside the extent {len(sizes)}"):
        loaded(x=x, sizes=np.array(sizes), at=number(len(sizes)))


def test_the_only_tensor_of_a_sequence_may_be_erased_at_run_time() -> None:
    model = model_of(SPLIT.format(sizes="int64[1]", axis=0))
    session = headrace.Session(headrace.compile(graph_of(model), device="cpu"))
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    result = session.run({"x": x, "sizes": np.array([6]), "at": number(-1)})
    same(result["one"], x)
    assert result["left.elements"].shape == (0,) and result["left.shapes"].shape == (0, 2)


def test_a_part_size_that_is_fed_decides_on_the_number_of_parts() -> None:
    model = model_of("""
    chunks (float[2, n] x, int64 size) => (seq(float[]) ys, int64 count) {
      ys = SplitToSequence <axis = 1> (x, size)
      count = SequenceLength (ys)
    }""")
    x = np.arange(14, dtype=np.float32).reshape(2, 7)
    check(model, *({"x": x, "size": number(n)} for n in (1, 2, 3, 7, 9)))


@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices_of_an_open_axis_are_a_sequence(axis: int, keeps: int) -> None:
    model = model_of(f"""
    slices (float[n, m, k] x, int64 at) => (seq(float[]) ys, float[] one) {{
      ys = SplitToSequence <axis = {axis}, keepdims = {keeps}> (x)
      one = SequenceAt (ys, at)
    }}""")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    check(model, *({"x": x, "at": number(at)} for at in (0, 1, -1)))
    check(model, {"x": x, "at": number(1)}, dimensions={"n": 2, "m": 3, "k": 4})


def test_known_sizes_cut_a_known_extent_into_a_list() -> None:
    model = model_of("""
    known (float[6, 2] x) => (float[2, 2] first, float[4, 2] second, float[c, 2] third, float[2, 6] new) {
      two_four = Constant <value_ints = [2, 4]> ()
      four = Constant <value_int = 4> ()
      zero = Constant <value_int = 0> ()
      last = Constant <value_int = -1> ()
      ys = SplitToSequence (x, two_four)
      first = SequenceAt (ys, zero)
      second = SequenceAt (ys, last)
      zs = SplitToSequence (x, four)
      third = SequenceAt (zs, last)
      rows = SplitToSequence <keepdims = 0> (x)
      new = ConcatFromSequence <axis = -1, new_axis = 1> (rows)
    }""")
    check(model, {"x": np.arange(12, dtype=np.float32).reshape(6, 2)})


LOOP = """
looped (float[n] x, int64 most) => (seq(float[]) ys, float[k] sums) {
  none = SequenceEmpty ()
  yes = Constant <value_int = 1> ()
  go = Cast <to = 9> (yes)
  ys, sums = Loop <body = once (int64 i, bool c, seq(float[]) now)
                          => (bool more, seq(float[]) next, float sum) {
    more = Identity (c)
    f = Cast <to = 1> (i)
    y = Add (x, f)
    next = SequenceInsert (now, y)
    sum = ReduceSum <keepdims = 0> (y)
  }> (most, go, none)
}"""


def test_a_loop_collects_a_sequence_of_as_many_tensors_as_it_goes_round() -> None:
    check(model_of(LOOP), *({"x": np.ones(3, np.float32), "most": number(n)} for n in (1, 3, 0)))


def test_a_loop_of_a_known_number_of_rounds_makes_a_list() -> None:
    text = LOOP.replace(", int64 most)", ")").replace(
        "none =", "most = Constant <value_int = 4> ()\n  none ="
    )
    loaded = headrace.load(model_of(text), device="cpu", dimensions={"n": 2})
    result = loaded(np.zeros(2, np.float32))
    same(result["ys"], [np.full(2, i, np.float32) for i in range(4)])
    same(result["sums"], np.array([0, 2, 4, 6], np.float32))


def test_tensors_of_several_ranks_keep_them_in_a_sequence_of_unknown_length() -> None:
    model = model_of("""
    ranks (float[n] x, int64 most) => (seq(float[]) ys) {
      axis = Constant <value_ints = [0]> ()
      row = Unsqueeze (x, axis)
      first = SequenceConstruct (row, x)
      ys = Loop <body = once (int64 i, bool c, seq(float[]) now) => (bool more, seq(float[]) next) {
        more = Identity (c)
        sum = ReduceSum <keepdims = 0> (x)
        longer = SequenceInsert (now, sum)
        place = Constant <value_int = 0> ()
        next = SequenceInsert (longer, x, place)
      }> (most, , first)
    }""")
    x = np.array([1, 2], np.float32)
    loaded = headrace.load(model, device="cpu")
    for count in (0, 1, 2):
        expected = [x] * count + [x[None], x] + [np.float32(3).reshape(())] * count
        same(loaded(x=x, most=number(count))["ys"], expected)


def test_a_branch_decides_on_the_length_of_a_sequence() -> None:
    model = model_of("""
    either (float[n] x, bool flag) => (seq(float[]) ys, int64 count, float[k] all) {
      ys = If <then_branch = yes () => (seq(float[]) a) { a = SequenceConstruct (x, x, x) },
               else_branch = no () => (seq(float[]) b) {
        y = Concat <axis = 0> (x, x)
        b = SequenceConstruct (y)
      }> (flag)
      count = SequenceLength (ys)
      all = ConcatFromSequence <axis = 0> (ys)
    }""")
    x = np.arange(3, dtype=np.float32)
    check(model, *({"x": x, "flag": np.array(flag)} for flag in (True, False)))


def test_places_that_are_fed_are_counted_from_both_ends() -> None:
    inputs = [FLOATS, *(helper.make_tensor_value_info(n, TensorProto.INT64, []) for n in ("at", "gone"))]
    inputs.append(helper.make_tensor_value_info("new", TensorProto.FLOAT, ["k", 2]))
    nodes = [
        helper.make_node("SequenceInsert", ["xs", "new", "at"], ["more"]),
        helper.make_node("SequenceErase", ["more", "gone"], ["ys"]),
        helper.make_node("SequenceLength", ["ys"], ["count"]),
    ]
    outputs = [helper.make_tensor_sequence_value_info("ys", TensorProto.FLOAT, None)]
    outputs.append(helper.make_tensor_value_info("count", TensorProto.INT64, []))
    model = helper.make_model(
        helper.make_graph(nodes, "places", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)]
    )
    loaded = headrace.load(model, device="cpu")
    xs, new = parts([1, 2], [3, 2], [2, 2]), np.full([4, 2], -1, np.float32)
    for at, gone in ((0, 0), (3, -1), (-1, 2), (-3, -4), (1, 3)):
        expected = list(xs)
        expected.insert(at, new)
        del expected[gone]
        result = loaded(xs=xs, new=new, at=number(at), gone=number(gone))
        same(result["ys"], expected)
        assert result["count"] == 3
    graph = graph_of(model, {"xs": [[1, 2], [3, 2], [2, 2]]})
    session = headrace.Session(headrace.compile(graph, device="cpu"))
    feeds = {**{f"xs[{i}]": x for i, x in enumerate(xs)}, "new": new}
    for at, said in ((4, "is 4; at most 3"), (-4, "is -1; at least 0")):
        with pytest.raises(ValueError, match=f"the place of a tensor in a sequence {said}"):
            session.run({**feeds, "at": number(at), "gone": number(0)})
    with pytest.raises(ValueError, match="index 4 is outside the extent 4"):
        session.run({**feeds, "at": number(0), "gone": number(4)})


OPTIONAL = """
perhaps (bool flag, optional(seq(float[])) given, float[n] x)
    => (bool is_there, seq(float[]) ys, optional(float[]) z) {
  is_there = OptionalHasElement (given)
  ys = If <then_branch = yes () => (seq(float[]) a) { a = OptionalGetElement (given) },
           else_branch = no () => (seq(float[]) b) { b = SequenceConstruct (x) }> (is_there)
  z = If <then_branch = some () => (optional(float[]) c) { c = Optional (x) },
          else_branch = none () => (optional(float[]) d) { d = Optional <type = float[n]> () }> (flag)
}"""


def test_optionals_may_be_empty_at_both_ends_and_in_between() -> None:
    loaded = headrace.load(model_of(OPTIONAL), device="cpu")
    x, xs = np.ones(2, np.float32), parts([2], [1, 3])
    for flag in (True, False):
        for given in (None, xs, []):
            result = loaded(flag=np.array(flag), given=given, x=x)
            assert bool(result["is_there"]) == (given is not None)
            same(result["ys"], [x] if given is None else given)
            same(result["z"], x if flag else None)


def test_a_graph_is_applied_to_each_tensor_of_sequences() -> None:
    model = model_of("""
    mapped (seq(float[]) xs, seq(float[]) ys, float[k] scale)
        => (seq(float[]) sums, seq(int64[m]) shapes) {
      sums, shapes = SequenceMap <body = each (float[] x, float[] y, float[] s)
                                        => (float[] sum, int64[m] size) {
        z = Mul (y, s)
        sum = Add (x, z)
        size = Shape (sum)
      }> (xs, ys, scale)
    }""")
    loaded = headrace.load(model, device="cpu")
    scale = np.array([1, 2], np.float32)
    for shapes in ([[1, 2], [3, 2], [2]], [[2]], []):
        xs, ys = parts(*shapes), parts(*shapes)
        result = loaded(xs=xs, ys=ys, scale=scale)
        same(result["sums"], [x + y * scale for x, y in zip(xs, ys, strict=True)])
        same(result["shapes"], [np.array(shape, np.int64) for shape in shapes])


def test_a_graph_is_applied_to_each_tensor_of_a_sequence_whose_length_a_run_tells() -> None:
    model = model_of("""
    mapped (float[n, 2] x, int64 size) => (seq(float[]) sums, seq(int64[m]) shapes, int64 count) {
      xs = SplitToSequence <axis = 0> (x, size)
      sums, shapes = SequenceMap <body = each (float[] y) => (float[] sum, int64[m] size_of_it) {
        sum = ReduceSum <keepdims = 0> (y)
        size_of_it = Shape (y)
      }> (xs)
      count = SequenceLength (shapes)
    }""")
    graph = graph_of(model)
    session = headrace.Session(headrace.compile(graph, device="cpu"))
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    for size in (1, 2, 5):
        result = session.run({"x": x, "size": number(size)})
        chunks = [x[i : i + size] for i in range(0, 5, size)]
        same(result["sums.elements"], np.array([c.sum() for c in chunks], np.float32))
        same(result["shapes.elements"].reshape(-1, 2), np.array([c.shape for c in chunks], np.int64))
        assert result["count"] == len(chunks)


def test_functions_take_and_give_sequences() -> None:
    model = model_of(
        """
        outer (seq(float[]) xs, float[n] x) => (seq(float[]) ys, float[k] all) {
          ys, all = local.joined (xs, x)
        }""",
        """<domain: "local", opset_import: ["" : 17]> joined (xs, x) => (ys, all) {
          ys = SequenceInsert (xs, x)
          all = ConcatFromSequence <axis = 0> (ys)
        }""",
    )
    xs, x = parts([2], [3]), np.full(4, 5, np.float32)
    result = headrace.load(model, device="cpu")(xs=xs, x=x)
    same(result["ys"], [*xs, x])
    same(result["all"], np.concatenate([*xs, x]))


def test_a_sequence_whose_tensors_shapes_are_given_is_read_once_and_can_be_saved(tmp_path: Path) -> None:
    model = model_of("""
    saved (seq(float[]) xs) => (float[2, k] all) { all = ConcatFromSequence <axis = 1> (xs) }""")
    forms = {"xs": [[2, "n"], [2, 3]]}
    loaded = headrace.load(model, device="cpu", dimensions=forms)
    assert [x.shape for x in loaded.inputs] == forms["xs"]
    loaded.save(tmp_path / "model.hrg")
    for n in (4, 1):
        xs = parts([2, n], [2, 3])
        for one in (loaded, headrace.load(tmp_path / "model.hrg", device="cpu")):
            same(one(*xs)["all"], np.hstack(xs))


PARTS = "k = Constant <{}> () a = SplitToSequence (w, k) y = SequenceAt (a, i)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y = Relu (xs)", "input 0 is a sequence; it must be a tensor"),
        ("y = SequenceAt (x, i)", "input 0 is no sequence, but a tensor"),
        ("y = SequenceAt (xs, xs)", "input 1 is a sequence; it must be a tensor"),
        ("a = SequenceConstruct (x, xs) y = SequenceAt (a, i)", "input 1 is a sequence; it must be a tensor"),
        ("a = Optional (xs) b = Optional (a) y = OptionalGetElement (b)", "input 0 is an optional"),
        ("a = Optional <type = float[n]> () y = OptionalGetElement (a)", "the optional is empty"),
        ("a = SequenceEmpty () y = ConcatFromSequence <axis = 0> (a)", "the sequence is empty"),
        ("a = SequenceEmpty () b = SequenceErase (a) y = SequenceAt (b, i)", "the sequence is empty"),
        ("y = ConcatFromSequence <axis = 2> (xs)", "axis 2 is outside the 1 dimensions of the result"),
        ("k = Constant <value_int = 2> () y = SequenceAt (xs, k)", "position 2 is outside the sequence of 2"),
        (
            "k = Constant <value_int = -4> () a = SequenceInsert (xs, x, k) y = SequenceAt (a, i)",
            "position -4",
        ),
        ("k = Constant <value_ints = [1, 1]> () y = SequenceAt (xs, k)", "the position has 2 elements"),
        ("y = Add (xs, x)", "input 0 is a sequence"),
        (
            "k = Constant <value_int = 0> () a = SplitToSequence (w, k) y = SequenceAt (a, i)",
            "size 0; it is at least",
        ),
        (
            "k = Constant <value_ints = [1, 1]> () a = SplitToSequence (w, k) y = SequenceAt (a, i)",
            "do not add up",
        ),
        (
            "k = Constant <value_ints = [9, 1]> () a = SplitToSequence (w, k) y = SequenceAt (a, i)",
            "of 9 is cut from",
        ),
        ("a = SplitToSequence (i, i) y = SequenceAt (a, i)", "the input is a scalar"),
    ],
)
def test_what_is_no_sequence_or_outside_of_one_is_named(text: str, message: str) -> None:
    model = model_of(f"g (seq(float[]) xs, float[n] x, float[4] w, int64 i) => (float[k] y) {{ {text} }}")
    with pytest.raises(ValueError, match=message):
        graph_of(model, {"xs": [["n"], [3]]})


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (None, "no list of tensors' shapes"),
        ([2, "n"], "no list of tensors' shapes"),
        ([[2], 3], r"dimensions\['xs'\] is \[\[2\], 3\]; it must be one shape, or a list of shapes"),
        ([[2.5]], r"dimensions\['xs'\] is 2.5; it must be a number of at least 0"),
        ([[-1]], r"dimensions\['xs'\] is -1; it must be a number of at least 0"),
    ],
)
def test_a_form_that_does_not_fit_is_named(form: Any, message: str) -> None:
    model = model_of("g (seq(float[]) xs) => (int64 y) { y = SequenceLength (xs) }")
    with pytest.raises(ValueError, match=message):
        graph_of(model, {"xs": form})
    with pytest.raises(ValueError, match=r"input 'xs': it is sequence; a graph has to know of which tensors"):
        graph_of(model)


def chain_of_insertions(count: int) -> onnx.ModelProto:
    steps = " ".join(f"s{i + 1} = SequenceInsert (s{i}, x)" for i in range(count))
    return model_of(
        f"g (float[n] x) => (int64 y) {{ s0 = SequenceEmpty () {steps} y = SequenceLength (s{count}) }}"
    )


def nested_loops(depth: int) -> onnx.ModelProto:
    """Each reads the graph of the next one several times."""
    inner = "s0 = SequenceInsert (t0, x)"
    for i in range(depth):
        inner = f"""s{i + 1} = Loop <body = b{i} (int64 i{i}, bool c{i}, seq(float[]) t{i})
            => (bool d{i}, seq(float[]) s{i}) {{ d{i} = Identity (c{i}) {inner} }}> (most, , t{i + 1})"""
    return model_of(
        f"""g (float[n] x, int64 most) => (int64 y) {{
          t{depth} = SequenceEmpty () {inner} y = SequenceLength (s{depth}) }}"""
    )


REFUSED = {
    "a sequence that grows 4,000 times": (
        lambda: chain_of_insertions(4000),
        "sequences that are made while the model is read have more than 4194304 tensors together",
    ),
    "loops over sequences, 20 deep": (
        lambda: nested_loops(20),
        r"it would become more than \d+ operations.*dimensions=\{'n': 1\} \(",
    ),
    "a trillion slices": (
        lambda: model_of("g (float[1000000000000] x) => (seq(float[]) y) { y = SplitToSequence (x) }"),
        r"it would become more than \d+ operations",
    ),
    "a trillion parts": (
        lambda: model_of("""g (float[1000000000000] x) => (seq(float[]) y) {
          one = Constant <value_int = 1> () y = SplitToSequence (x, one) }"""),
        "more than 4194304 tensors together",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_sequences_that_a_small_model_makes_have_a_limit(name: str) -> None:
    build, message = REFUSED[name]
    model = build()
    started = time.perf_counter()
    with pytest.raises(ValueError, match=message):
        graph_of(model)
    assert time.perf_counter() - started < 30
