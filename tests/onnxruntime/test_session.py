"""Runs, and what they refuse: headrace.onnxruntime beside ONNX Runtime."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import headrace.onnxruntime as ours
import numpy as np
import pytest
from both_sides import same
from onnx import helper
from small_models import (
    ADD,
    BOOL,
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
X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((1, 3), np.float32)


def running(model: bytes, names: Any, feeds: Any, *options: Any) -> Callable[[ModuleType], Any]:
    return lambda o: o.InferenceSession(model).run(names, feeds, *options)


@pytest.mark.parametrize("names", [None, [], ["z"], ("z",), ["z", "z"]])
def test_outputs_come_in_the_order_of_their_names(names: Any) -> None:
    results = same(running(ADD, names, {"x": X, "y": Y}))
    assert len(results) == len(names or ["z"])
    np.testing.assert_array_equal(results[0], X + 1)


def test_an_output_may_be_listed_twice() -> None:
    """As exporters list a value that a program returns twice."""
    output = tensor("z", FLOAT, ["n"])
    model = made([node("Relu", ["x"], ["z"])], [tensor("x", FLOAT, ["n"])], [output, output])
    feeds = {"x": np.array([-1, 2], np.float32)}
    results = same(lambda o: o.InferenceSession(model).run(None, feeds))
    np.testing.assert_array_equal(results, [[0, 2], [0, 2]])
    assert same(lambda o: [x.name for x in o.InferenceSession(model).get_outputs()]) == ["z", "z"]


def test_some_outputs_may_be_asked_for() -> None:
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    y, h = same(running(NETWORK, None, {"x": x}))
    np.testing.assert_array_equal(same(running(NETWORK, ["h"], {"x": x}))[0], h)
    np.testing.assert_array_equal(same(running(NETWORK, ["h", "y"], {"x": x}))[1], y)


@pytest.mark.parametrize(
    "x",
    [
        [[1, 2, 3]],
        [[1.0, 2.0, 3.0], [4, 5, 6]],
        [np.ones(3, np.float32)],
        np.ones((0, 3), np.float32),
        np.ones((3, 5), np.float32).T[:, :3],
        np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3)),
    ],
    ids=["integers", "lists", "a list of arrays", "no rows", "a view", "columns first"],
)
def test_what_is_an_array_of_the_type_may_be_fed(x: Any) -> None:
    (z,) = same(running(ADD, None, {"x": x, "y": Y}))
    np.testing.assert_array_equal(z, np.asarray(x, np.float32) + 1)


@pytest.mark.parametrize(
    ("names", "feeds", "error"),
    [
        (None, {"x": X}, "builtins.ValueError"),
        (None, {}, "builtins.ValueError"),
        (None, {"x": X, "y": Y, "more": Y}, STATE + "InvalidArgument"),
        (["q"], {"x": X, "y": Y}, STATE + "InvalidArgument"),
        (None, {"x": X.astype(np.float64), "y": Y}, STATE + "InvalidArgument"),
        (None, {"x": X.astype(np.int64), "y": Y}, STATE + "InvalidArgument"),
        (None, {"x": X.astype(object), "y": Y}, STATE + "InvalidArgument"),
        (None, {"x": X.astype(str), "y": Y}, STATE + "InvalidArgument"),
        (None, {"x": X.astype(np.complex64), "y": Y}, "builtins.RuntimeError"),
        (None, {"x": X[0], "y": Y}, STATE + "InvalidArgument"),
        (None, {"x": np.ones((2, 4), np.float32), "y": Y}, STATE + "InvalidArgument"),
        (None, {"x": X, "y": X}, STATE + "InvalidArgument"),
        (None, {"x": None, "y": Y}, STATE + "Fail"),
        (None, {"x": 1.5, "y": Y}, "builtins.RuntimeError"),
        (None, {"x": "text", "y": Y}, "builtins.RuntimeError"),
        (None, {"x": {}, "y": Y}, "builtins.RuntimeError"),
        (None, {1: X, "x": X, "y": Y}, "builtins.TypeError"),
        (None, [X, Y], "builtins.AttributeError"),
        (None, None, "builtins.AttributeError"),
        ("z", {"x": X, "y": Y}, "builtins.TypeError"),
        ([1], {"x": X, "y": Y}, "builtins.TypeError"),
    ],
)
def test_what_does_not_fit_is_an_error_of_the_same_class(names: Any, feeds: Any, error: str) -> None:
    assert same(running(ADD, names, feeds)) == error


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({"x": X, "y": Y, "more": Y}, "Invalid input name: more"),
        ({"x": X.astype(np.float64), "y": Y}, "Actual: (tensor(double)) , expected: (tensor(float))"),
        ({"x": X[0], "y": Y}, "Invalid rank for input: x Got: 1 Expected: 2"),
        ({"x": np.ones((2, 4), np.float32), "y": Y}, "index: 1 Got: 4 Expected: 3"),
        ({"x": X}, "Required inputs (['y']) are missing from input feed (['x'])."),
    ],
)
def test_messages_say_what_was_given_and_what_is_due(feeds: dict, words: str) -> None:
    def message(o: ModuleType) -> bool:
        with pytest.raises(Exception) as raised:
            o.InferenceSession(ADD).run(None, feeds)
        return words in str(raised.value)

    assert same(message)


def test_what_goes_wrong_in_a_node_is_an_error_of_the_same_class() -> None:
    gather = made(
        [node("Gather", ["x", "i"], ["z"])],
        [tensor("x", FLOAT, ["a"]), tensor("i", INT64, ["c"])],
        [tensor("z", FLOAT, None)],
    )
    add = made(
        [node("Add", ["x", "y"], ["z"])],
        [tensor("x", FLOAT, ["a"]), tensor("y", FLOAT, ["b"])],
        [tensor("z", FLOAT, None)],
    )
    assert same(running(gather, None, {"x": X[0], "i": np.array([5])})) == STATE + "InvalidArgument"
    assert same(running(add, None, {"x": X[0], "y": np.ones(2, np.float32)})) == STATE + "Fail"


def test_a_name_may_have_two_sizes_and_any_size_may_be_0() -> None:
    """ONNX Runtime warns at most; Headrace's own models take a name as one number of at least 1."""
    model = made(
        [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("MatMul", ["x", "t"], ["z"])],
        [tensor("x", FLOAT, ["k", "b", "b"])],
        [tensor("z", FLOAT, None)],
    )
    for shape in ((2, 3, 3), (2, 3, 4), (1, 5, 2), (0, 3, 3), (2, 0, 4), (2, 3, 3)):
        (z,) = same(running(model, None, {"x": np.ones(shape, np.float32)}))
        assert z.shape == (shape[0], shape[1], shape[1])
    session, reloaded = ours.InferenceSession(model), []
    session._program._load, load = lambda d: reloaded.append(d) or load(d), session._program._load
    for shape in ((2, 3, 3), (2, 3, 4), (3, 6, 4), (1, 5, 2)):
        session.run(None, {"x": np.ones(shape, np.float32)})
    assert len(reloaded) == 1, "one more reading serves all sizes"


def test_an_input_without_a_shape_takes_any() -> None:
    model = made([node("Neg", ["x"], ["z"])], [tensor("x", FLOAT, None)], [tensor("z", FLOAT, None)])
    for shape in ((2,), (2, 3), (), (4, 1, 2), (2, 3)):
        (z,) = same(running(model, None, {"x": np.ones(shape, np.float32)}))
        assert z.shape == shape


def test_sequences_are_lists() -> None:
    model = made(
        [node("SequenceAt", ["x", "i"], ["z"])],
        [sequence("x", FLOAT, None), tensor("i", INT64, [])],
        [tensor("z", FLOAT, None)],
    )
    parts = [np.ones((2, 2), np.float32), np.zeros((3, 2), np.float32)]
    for at in (0, 1, -1):
        np.testing.assert_array_equal(
            same(running(model, None, {"x": parts, "i": np.array(at)}))[0], parts[at]
        )
    assert same(running(model, None, {"x": parts, "i": np.array(2)})) == STATE + "InvalidArgument"
    assert same(running(model, None, {"x": X, "i": np.array(0)})) == STATE + "InvalidArgument"
    for wrong in (tuple(parts), 3, [parts[0].astype(np.float64)], [parts[0], parts[0].astype(np.float64)]):
        assert same(running(model, None, {"x": wrong, "i": np.array(0)})) == "builtins.RuntimeError"
    assert same(running(model, None, {"x": None, "i": np.array(0)})) == STATE + "Fail"
    both = made(
        [node("SequenceConstruct", ["x", "x"], ["z"])],
        [tensor("x", FLOAT, ["n"])],
        [sequence("z", FLOAT, None)],
    )
    (made_list,) = same(running(both, None, {"x": X[0]}))
    assert len(made_list) == 2 and isinstance(made_list, list)


def test_optionals_are_values_or_none() -> None:
    has = made(
        [node("OptionalHasElement", ["x"], ["z"])],
        [optional("x", tensor_type(["n"]))],
        [tensor("z", BOOL, [])],
    )
    for feeds, expected in (({"x": X[0]}, True), ({"x": None}, False), ({}, False)):
        assert same(running(has, None, feeds))[0] == expected
    gives = made(
        [node("Optional", ["x"], ["z"])], [tensor("x", FLOAT, ["n"])], [optional("z", tensor_type(["n"]))]
    )
    np.testing.assert_array_equal(same(running(gives, None, {"x": X[0]}))[0], X[0])
    none = made(
        [node("Optional", [], ["z"], type=tensor_type(["n"]))],
        [tensor("x", FLOAT, ["n"])],
        [optional("z", tensor_type(["n"]))],
    )
    assert same(running(none, None, {"x": X[0]})) == [None]


@pytest.mark.parametrize(
    "name",
    [
        "FLOAT",
        "DOUBLE",
        "FLOAT16",
        "INT8",
        "UINT8",
        "INT16",
        "UINT16",
        "INT32",
        "UINT32",
        "INT64",
        "UINT64",
        "BOOL",
    ],
)
def test_every_type_goes_in_and_out(name: str) -> None:
    from onnx import TensorProto

    number = getattr(TensorProto, name)
    model = made([node("Identity", ["x"], ["z"])], [tensor("x", number, ["n"])], [tensor("z", number, ["n"])])
    x = np.array([0, 1, 1]).astype(helper.tensor_dtype_to_np_dtype(number))
    (z,) = same(running(model, None, {"x": x}))
    assert z.dtype == x.dtype
    assert same(lambda o: [a.type for a in o.InferenceSession(model).get_inputs()])[0].startswith("tensor(")


def test_run_options_are_looked_at() -> None:
    def ended(o: ModuleType) -> Any:
        options = o.RunOptions()
        options.terminate = True
        return o.InferenceSession(ADD).run(None, {"x": X, "y": Y}, options)

    assert same(ended) == STATE + "Fail"
    assert same(running(ADD, None, {"x": X, "y": Y}, 3)) == "builtins.TypeError"
    same(lambda o: o.InferenceSession(ADD).run(None, {"x": X, "y": Y}, o.RunOptions()))


def test_a_run_may_be_awaited_by_a_callback() -> None:
    def called(o: ModuleType, y: np.ndarray) -> tuple:
        answer, done = [], threading.Event()

        def callback(results: list, user: Any, error: str) -> None:
            answer.append((results, user, error))
            done.set()

        o.InferenceSession(ADD).run_async(None, {"x": X, "y": y}, callback, "me")
        assert done.wait(30)
        return answer[0]

    results, user, error = same(lambda o: called(o, Y))
    assert (len(results), user, error) == (1, "me", "")
    assert same(lambda o: called(o, Y.astype(np.int8)))[2].startswith("Unexpected input data type")


def test_a_program_that_ends_waits_for_its_runs() -> None:
    program = (
        "import sys, numpy as np, headrace.onnxruntime as o\n"
        f"session = o.InferenceSession({ADD!r})\n"
        "feeds = {name: np.ones((1, 3), np.float32) for name in 'xy'}\n"
        "session.run_async(None, feeds, lambda results, user, error: print(results[0].sum(), user), 'me')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "6.0 me\n", "")


def test_threads_may_run_a_session_at_the_same_time() -> None:
    session, wrong = ours.InferenceSession(NETWORK), []
    x = np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32)
    expected = session.run(["y"], {"x": x})[0]

    def work(rows: int) -> None:
        for _ in range(50):
            if not np.array_equal(session.run(["y"], {"x": x[:rows]})[0], expected[:rows]):
                wrong.append(rows)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (6, 6, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_initializer_that_a_caller_replaces_is_refused() -> None:
    model = made(
        [node("Add", ["x", "w"], ["z"])],
        [tensor("x", FLOAT, [2]), tensor("w", FLOAT, [2])],
        [tensor("z", FLOAT, [2])],
        [constant("w", [1, 1])],
    )
    assert same(
        lambda o: [
            [a.name for a in o.InferenceSession(model).get_overridable_initializers()],
            [a.name for a in o.InferenceSession(model).get_inputs()],
        ]
    ) == [["w"], ["x"]]
    np.testing.assert_array_equal(same(running(model, None, {"x": X[0, :2]}))[0], [1, 2])
    with pytest.raises(
        Exception, match=r"NOT_IMPLEMENTED.*'w' is an initializer.*write the value into the model"
    ):
        ours.InferenceSession(model).run(None, {"x": X[0, :2], "w": X[0, :2]})
