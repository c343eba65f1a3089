"""dispatch: tensors, device tensors and arrays, mixed; in place; nothing half done."""

import asyncio
import contextlib
import itertools
import threading
import time

import numpy as np
import pytest
import webnn

F32 = "float32"
RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 3)).astype(np.float32)
B = RNG.standard_normal((3, 3)).astype(np.float32)
KINDS = ("tensor", "host", "device", "array", "strided")


@pytest.fixture
def graph(builder):
    """sum and product of a and b: the outputs need both inputs, the product until it is complete."""
    a, b = (builder.input(name, [3, 3], F32) for name in "ab")
    return builder.build({"sum": builder.add(a, b), "product": builder.matmul(a, b)})


def place(context, graph, kind, value):
    """Something of that kind that holds the value."""
    if kind == "array":
        return value.copy()
    if kind == "strided":
        wide = np.zeros((3, 6), np.float32)[:, ::2]
        wide[:] = value
        return wide
    if kind == "device":
        tensor = context.create_device_tensor(graph, [3, 3], F32)
        tensor.write(value)
        return tensor
    tensor = (
        context.create_host_tensor([3, 3], F32)
        if kind == "host"
        else context.create_tensor([3, 3], F32, readable=True, writable=True)
    )
    context.write_tensor(tensor, value)
    return tensor


def content(context, placed):
    return placed.copy() if isinstance(placed, np.ndarray) else context.read_tensor(placed)


@pytest.mark.parametrize(
    "call", ["dispatch", "dispatch_with_device_tensors", "dispatch_with_host_tensors", "async"]
)
@pytest.mark.parametrize("kinds", list(itertools.product(KINDS, repeat=2)), ids="-".join)
def test_tensors_and_arrays_mix(context, graph, kinds, call):
    inputs = {"a": place(context, graph, kinds[0], A), "b": place(context, graph, kinds[1], B)}
    nothing = np.zeros((3, 3), np.float32)
    outputs = {
        "sum": place(context, graph, kinds[1], nothing),
        "product": place(context, graph, kinds[0], nothing),
    }

    async def asynchronously():
        async with webnn.AsyncMLContext(context) as asynchronous:
            await asynchronous.dispatch(graph, inputs, outputs)

    result = (
        asyncio.run(asynchronously()) if call == "async" else getattr(context, call)(graph, inputs, outputs)
    )
    assert result is None
    np.testing.assert_allclose(content(context, outputs["sum"]), A + B, rtol=1e-6)
    np.testing.assert_allclose(content(context, outputs["product"]), A @ B, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(content(context, inputs["a"]), A)


@pytest.mark.parametrize("output", ["sum", "product"])
@pytest.mark.parametrize("own", ["a", "b"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_output_may_be_an_input(context, graph, kind, own, output):
    placed = {"a": place(context, graph, kind, A), "b": place(context, graph, kind, B)}
    other = next(name for name in ("sum", "product") if name != output)
    elsewhere = np.zeros((3, 3), np.float32)
    a, b = A.astype(np.float64), B.astype(np.float64)
    for _ in range(3):
        context.dispatch(graph, placed, {output: placed[own], other: elsewhere})
        results = {"sum": a + b, "product": a @ b}
        np.testing.assert_allclose(elsewhere, results[other], rtol=1e-4, atol=1e-5)
        a, b = (results[output], b) if own == "a" else (a, results[output])
        np.testing.assert_allclose(content(context, placed["a"]), a, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(content(context, placed["b"]), b, rtol=1e-4, atol=1e-5)


def test_compute_may_write_into_its_inputs(context, graph):
    a, b = A.copy(), B.copy()
    results = context.compute(graph, {"a": a, "b": b}, {"sum": b, "product": a})
    assert results["sum"] is b and results["product"] is a
    np.testing.assert_allclose(b, A + B, rtol=1e-6)
    np.testing.assert_allclose(a, A @ B, rtol=1e-5, atol=1e-6)


def test_a_view_of_an_input_may_take_an_output(context, builder):
    """Rows move down by one in the memory they are read from."""
    x = builder.input("x", [7, 4], F32)
    graph = builder.build({"y": builder.mul(x, builder.constant(np.float32(2)))})
    rows = RNG.standard_normal((8, 4)).astype(np.float32)
    expected = np.concatenate([rows[:1], rows[:7] * 2])
    context.dispatch(graph, {"x": rows[:7]}, {"y": rows[1:]})
    np.testing.assert_array_equal(rows, expected)


def test_a_tensor_in_place_is_not_copied(context, builder):
    x = builder.input("x", [1024, 64], F32)
    graph = builder.build({"y": builder.add(x, builder.constant(np.float32(1)))})
    cache = context.create_tensor([1024, 64], F32, readable=True)
    for _ in range(2):
        context.dispatch(graph, {"x": cache}, {"y": cache})
    before = context.buffer_stats
    for _ in range(10):
        context.dispatch(graph, {"x": cache}, {"y": cache})
    stats = graph.run_stats
    assert (stats["inputs_copied"], stats["outputs_copied"]) == (0, 0)
    assert context.buffer_stats["allocations"] == before["allocations"]  # two blocks of memory take turns
    assert (context.read_tensor(cache) == 12).all()


def test_an_array_in_place_is_copied_once(context, builder):
    x = builder.input("x", [1024, 64], F32)
    graph = builder.build({"y": builder.add(x, builder.constant(np.float32(1)))})
    cache = np.zeros([1024, 64], np.float32)
    context.dispatch(graph, {"x": cache}, {"y": cache})
    assert (cache == 1).all()
    assert graph.run_stats["outputs_copied"] == 1
    context.dispatch(graph, {"x": cache}, {"y": np.empty_like(cache)})
    assert graph.run_stats["outputs_copied"] == 0


def test_one_tensor_may_be_two_inputs(context, graph):
    a = place(context, graph, "device", A)
    product = np.zeros((3, 3), np.float32)
    context.dispatch(graph, {"a": a, "b": a}, {"sum": a, "product": product})
    np.testing.assert_allclose(a.read(), A + A, rtol=1e-6)
    np.testing.assert_allclose(product, A @ A, rtol=1e-5, atol=1e-6)


def test_inputs_of_other_dtypes_and_kinds_are_converted_as_in_compute(context, graph):
    total, product = np.zeros((3, 3)), np.zeros((3, 3), np.float32)
    context.dispatch(graph, {"a": A.astype(np.float64), "b": B.tolist()}, {"sum": total, "product": product})
    np.testing.assert_allclose(total, A + B, rtol=1e-6)  # float64 holds every float32


def frozen(value):
    array = value.copy()
    array.flags.writeable = False
    return array


def destroyed(context):
    tensor = context.create_tensor([3, 3], F32)
    tensor.destroy()
    return tensor


def foreign(context):
    return webnn.ML().create_context(accelerated=False).create_tensor([3, 3], F32)


BAD_INPUTS = [
    (lambda c: None, ValueError, "dispatch: Missing input: b; the graph's inputs are a, b"),
    (
        lambda c: np.zeros((3, 2), np.float32),
        ValueError,
        r"input 'b' has shape \[3, 2\], the graph declares \[3, 3\]",
    ),
    (lambda c: np.zeros(9, np.float32), ValueError, r"input 'b' has shape \[9\]"),
    (
        lambda c: c.create_tensor([9], F32),
        ValueError,
        r"input 'b' has shape \[9\], the graph declares \[3, 3\]",
    ),
    (
        lambda c: c.create_tensor([3, 3], "int32"),
        ValueError,
        "input 'b' is int32, the graph declares float32",
    ),
    (lambda c: "text", ValueError, "input 'b' is str128; it must be float32"),
    (lambda c: object(), ValueError, "input 'b' is object; it must be float32"),
    (destroyed, RuntimeError, "input 'b': the tensor has been destroyed"),
    (foreign, ValueError, "input 'b': the tensor belongs to another context"),
]
BAD_OUTPUTS = [
    (lambda c: None, ValueError, "Missing output: product"),
    (lambda c: np.zeros((3, 2), np.float32), ValueError, r"output 'product': the array has shape \[3, 2\]"),
    (
        lambda c: np.zeros((2, 3, 3), np.float32),
        ValueError,
        r"output 'product': the array has shape \[2, 3, 3\]",
    ),
    (
        lambda c: np.zeros((3, 3), np.int32),
        ValueError,
        "output 'product' cannot take the result: the array is int32",
    ),
    (lambda c: frozen(A), ValueError, "output 'product' cannot take the result: the array is read-only"),
    (lambda c: [[0.0] * 3] * 3, ValueError, "output 'product' cannot take the result: a list is no array"),
    (
        lambda c: c.create_tensor([9], F32),
        ValueError,
        r"output 'product' has shape \[9\], the graph declares",
    ),
    (
        lambda c: c.create_tensor([3, 3], "float16"),
        ValueError,
        "output 'product' is float16, the graph declares",
    ),
    (lambda c: c.create_constant_tensor(A), ValueError, "output 'product': the tensor is constant"),
    (destroyed, RuntimeError, "output 'product': the tensor has been destroyed"),
    (foreign, ValueError, "output 'product': the tensor belongs to another context"),
]


@pytest.mark.parametrize(
    ("where", "make", "error", "message"),
    [("inputs", *row) for row in BAD_INPUTS] + [("outputs", *row) for row in BAD_OUTPUTS],
)
@pytest.mark.parametrize("kind", ["tensor", "array", "strided"])
def test_what_does_not_fit_is_named_before_anything_is_written(
    context, graph, kind, where, make, error, message
):
    given = {
        "inputs": {"a": A.copy(), "b": B.copy()},
        "outputs": {"sum": place(context, graph, kind, A), "product": place(context, graph, kind, A)},
    }
    bad = make(context)
    name = {"inputs": "b", "outputs": "product"}[where]
    given[where].pop(name)
    if bad is not None:
        given[where][name] = bad
    with pytest.raises(error, match=message):
        context.dispatch(graph, given["inputs"], given["outputs"])
    np.testing.assert_array_equal(content(context, given["outputs"]["sum"]), A)


@pytest.mark.parametrize("where", ["inputs", "outputs"])
def test_unknown_names_are_named(context, graph, where):
    outputs = {"sum": A.copy(), "product": A.copy()}
    given = {"inputs": {"a": A, "b": B}, "outputs": dict(outputs)}
    given[where]["c"] = A.copy()
    with pytest.raises(ValueError, match=f"dispatch: the graph has no {where[:-1]} 'c'"):
        context.dispatch(graph, given["inputs"], given["outputs"])
    np.testing.assert_array_equal(outputs["sum"], A)


@pytest.mark.parametrize("call", ["compute", "dispatch"])
def test_names_are_texts(context, graph, call):
    results = {"sum": A.copy(), "product": A.copy()}
    for inputs, outputs in (({"a": A, "b": B, 3: A}, results), ({"a": A, "b": B}, results | {3: A.copy()})):
        with pytest.raises(TypeError, match=f"{call}: a name is a str, not a int"):
            getattr(context, call)(graph, inputs, outputs)
    with pytest.raises(ValueError, match=rf"{call}: a name is no text that UTF-8 can hold: '\\ud800'"):
        getattr(context, call)(graph, {"a": A, "b": B, "\ud800": A}, results)


@pytest.mark.parametrize("kind", ["tensor", "device"])
def test_compute_refuses_tensors_to_write_to(context, graph, kind):
    with pytest.raises(TypeError, match="compute: output 'sum' is a tensor; dispatch writes to tensors"):
        context.compute(graph, {"a": A, "b": B}, {"sum": place(context, graph, kind, A)})


@pytest.mark.parametrize("kind", KINDS)
def test_two_outputs_need_memory_of_their_own(context, graph, kind):
    both = place(context, graph, kind, A)
    with pytest.raises(ValueError, match="overlaps the memory of output"):
        context.dispatch(graph, {"a": A, "b": B}, {"sum": both, "product": both})
    np.testing.assert_array_equal(content(context, both), A)


def test_interleaved_columns_of_one_array_take_two_outputs(context, graph):
    columns = np.zeros((3, 6), np.float32)
    context.dispatch(graph, {"a": A, "b": B}, {"sum": columns[:, ::2], "product": columns[:, 1::2]})
    np.testing.assert_allclose(columns[:, ::2], A + B, rtol=1e-6)
    np.testing.assert_allclose(columns[:, 1::2], A @ B, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="output 'sum' overlaps the memory of output 'product'"):
        context.dispatch(graph, {"a": A, "b": B}, {"sum": columns[:, ::2], "product": columns[:, :3]})


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_shapes_that_depend_on_the_inputs_are_checked_before_the_run(context, builder, kind):
    x = builder.input("x", [{"name": "n", "maxSize": 8}, 2], F32)
    graph = builder.build({"y": builder.transpose(x)})
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    make = np.zeros if kind == "array" else lambda shape, _: context.create_tensor(shape, F32, readable=True)
    good, turned = make([2, 3], np.float32), make([3, 2], np.float32)  # as many bytes
    with pytest.raises(ValueError, match=r"output 'y'.* shape \[3, 2\]"):
        context.dispatch(graph, {"x": rows}, {"y": turned})
    assert not np.asarray(turned).any()
    context.dispatch(graph, {"x": rows}, {"y": good})
    np.testing.assert_array_equal(np.asarray(good), rows.T)
    with pytest.raises(ValueError, match=r"n \(dimension 0\) is 9; at most 8 is possible"):
        context.dispatch(graph, {"x": np.zeros((9, 2), np.float32)}, {"y": good})


def test_reading_waits_for_a_dispatch_in_place_and_sees_its_result(context, builder):
    """Readers and writers in other threads see whole contents only."""
    x = builder.input("x", [1024, 1024], F32)  # large, so that threads meet while runs go on
    graph = builder.build({"y": builder.add(x, builder.constant(np.float32(1)))})
    counter = context.create_tensor([1024, 1024], F32, readable=True)
    torn = []

    def count():
        for _ in range(20):
            context.dispatch(graph, {"x": counter}, {"y": counter})

    def look():
        for _ in range(40):
            seen = context.read_tensor(counter)
            if (seen != seen[0, 0]).any():
                torn.append(seen)

    threads = [threading.Thread(target=work) for work in (count, count, look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not torn
    assert (context.read_tensor(counter) == 40).all()


def test_a_tensor_destroyed_while_it_changes_in_place_stays_destroyed(context, builder):
    x = builder.input("x", [256, 256], F32)
    y = x
    for _ in range(6):
        y = builder.matmul(y, x)
    graph = builder.build({"y": y})
    for _ in range(5):
        tensor = context.create_tensor([256, 256], F32, readable=True)

        def dispatch(tensor=tensor):
            with contextlib.suppress(RuntimeError):  # destroyed before the dispatch began
                context.dispatch(graph, {"x": tensor}, {"y": tensor})

        thread = threading.Thread(target=dispatch)
        thread.start()
        time.sleep(0.001)
        tensor.destroy()
        thread.join()
        with pytest.raises(RuntimeError, match="destroyed"):
            context.read_tensor(tensor)


def test_calls_on_tensors_take_device_tensors_and_name_what_is_none(context, graph):
    tensor = context.create_device_tensor(graph, [3, 3], F32, device=None)
    context.write_tensor(tensor, A)
    np.testing.assert_array_equal(context.read_tensor(tensor), A)
    with pytest.raises(TypeError, match="read_tensor: a ndarray is no MLTensor"):
        context.read_tensor(A)
    with pytest.raises(TypeError, match="write_tensor: a list is no MLTensor"):
        context.write_tensor([1], A)


def test_device_tensors_belong_to_a_graph_of_their_context(context, graph):
    other = webnn.ML().create_context(accelerated=False)
    with pytest.raises(ValueError, match="create_device_tensor: the graph belongs to another context"):
        other.create_device_tensor(graph, [3, 3], F32)
    with pytest.raises(TypeError):
        context.create_device_tensor("graph", [3, 3], F32)
