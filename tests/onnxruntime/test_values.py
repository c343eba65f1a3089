"""OrtValue, IOBinding, options and the process's own: headrace.onnxruntime beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import headrace.onnxruntime as ours
import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from both_sides import same
from small_models import ADD, FLOAT, NETWORK, made, node, sequence, tensor

STATE = "onnxruntime_pybind11_state."
X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((1, 3), np.float32)


def value(o: ModuleType, array: Any, *place: Any) -> Any:
    return o.OrtValue.ortvalue_from_numpy(array, *place)


@pytest.mark.parametrize(
    "array", [X, np.array(3), X.astype(np.float16), X.astype(bool), X.T, np.zeros((0, 2), np.int8)]
)
def test_a_value_describes_its_array(array: np.ndarray) -> None:
    def said(o: ModuleType) -> list[Any]:
        v = value(o, array)
        return [
            v.shape(),
            v.data_type(),
            v.element_type(),
            v.device_name(),
            v.has_value(),
            v.is_tensor(),
            v.is_tensor_sequence(),
            v.is_sparse_tensor(),
            v.tensor_size_in_bytes(),
            v.numpy(),
            np.asarray(v),
            v.__dlpack_device__(),
        ]

    np.testing.assert_array_equal(same(said)[-2], array)


def test_a_value_shows_the_arrays_memory() -> None:
    def shown(o: ModuleType) -> tuple[bool, bool, np.ndarray]:
        array = X.copy()
        v = value(o, array)
        v.update_inplace(2 * X)
        return v.data_ptr() == array.ctypes.data, np.shares_memory(v.numpy(), array), array

    is_same, shares, array = same(shown)
    assert is_same and shares
    np.testing.assert_array_equal(array, 2 * X)


@pytest.mark.parametrize(
    "call",
    [
        lambda o: value(o, [1, 2]),
        lambda o: value(o, np.array(["a"])),
        lambda o: value(o, X, "cuda", 0),
        lambda o: value(o, X, "nowhere", 0),
        lambda o: value(o, X).update_inplace(X[0]),
        lambda o: value(o, X).update_inplace([1]),
        lambda o: o.OrtValue.ortvalue_from_numpy_with_onnx_type(X, 10),
        lambda o: o.OrtValue.ortvalue_from_shape_and_type([2], 16).numpy(),
    ],
)
def test_what_is_no_value_is_an_error_of_the_same_class(call: Any) -> None:
    assert same(call).startswith("builtins.")


def test_values_are_made_of_shapes_and_types() -> None:
    for element_type in (np.int32, "float32", 7, 16, np.dtype("bool")):
        said = same(
            lambda o, t=element_type: (lambda v: [v.shape(), v.data_type(), v.element_type()])(
                o.OrtValue.ortvalue_from_shape_and_type([2, 3], t)
            )
        )
        assert said[0] == [2, 3]
    bits = np.array([0x3F80, 0x4000], np.uint16)
    same(lambda o: o.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16).data_type())
    np.testing.assert_array_equal(same(lambda o: np.from_dlpack(o.OrtValue.from_dlpack(X))), X)


def test_runs_take_and_give_values() -> None:
    def run(o: ModuleType, x: np.ndarray, *more: Any) -> list[Any]:
        feeds = {"x": value(o, x), "y": value(o, Y), **dict.fromkeys(more, value(o, Y))}
        made_values = o.InferenceSession(ADD).run_with_ort_values(None, feeds)
        return [[v.numpy(), v.data_type()] for v in made_values]

    same(lambda o: run(o, X))
    same(lambda o: o.InferenceSession(ADD).run(None, {"x": value(o, X), "y": Y}))
    assert same(lambda o: run(o, X, "more")) == STATE + "InvalidArgument"
    assert same(lambda o: run(o, X.astype(np.float64))) == STATE + "InvalidArgument"
    assert same(lambda o: run(o, X[0])) == STATE + "InvalidArgument"
    assert (
        same(lambda o: o.InferenceSession(ADD).run_with_ort_values(None, {"x": value(o, X)}))
        == "builtins.ValueError"
    )
    assert (
        same(lambda o: o.InferenceSession(ADD).run_with_ort_values(None, {"x": X, "y": Y}))
        == "builtins.AttributeError"
    )


def test_a_sequence_is_a_value_too() -> None:
    model = made(
        [node("SequenceConstruct", ["x", "x"], ["z"])],
        [tensor("x", FLOAT, ["n"])],
        [sequence("z", FLOAT, None)],
    )

    def said(o: ModuleType) -> list[Any]:
        (v,) = o.InferenceSession(model).run_with_ort_values(None, {"x": value(o, X[0])})
        return [v.is_tensor(), v.is_tensor_sequence(), v.data_type(), v.has_value()]

    assert same(said) == [False, True, "seq(tensor(float))", True]
    for call in ("numpy", "shape", "data_ptr"):

        def fails(o: ModuleType, call: str = call) -> Any:
            (v,) = o.InferenceSession(model).run_with_ort_values(None, {"x": value(o, X[0])})
            return getattr(v, call)()

        assert same(fails) == "builtins.RuntimeError"


def bound(o: ModuleType, bind: Any, model: bytes = ADD) -> Any:
    session = o.InferenceSession(model)
    binding = session.io_binding()
    given = bind(o, binding)
    session.run_with_iobinding(binding)
    return [binding.copy_outputs_to_cpu(), [v.numpy() for v in binding.get_outputs()], given]


def test_bindings_read_and_write_where_they_are_told() -> None:
    def on_arrays(o: ModuleType, b: Any) -> None:
        b.bind_cpu_input("x", X)
        b.bind_ortvalue_input("y", value(o, Y))
        b.bind_output("z")

    def into_a_value(o: ModuleType, b: Any) -> np.ndarray:
        on_arrays(o, b)
        array = np.zeros((2, 3), np.float32)
        b.bind_ortvalue_output("z", value(o, array))
        return array

    places = np.zeros((4, 2, 3), np.float32)

    def by_addresses(o: ModuleType, b: Any) -> np.ndarray:
        b.bind_input("x", "cpu", 0, np.float32, [2, 3], X.ctypes.data)
        b.bind_input("y", "cpu", 0, 1, (1, 3), Y.ctypes.data)
        place = places[list((ours, theirs)).index(o)]
        b.bind_output("z", "cpu", 0, np.float32, [2, 3], place.ctypes.data)
        return place

    for bind in (on_arrays, into_a_value, by_addresses):
        copies, values, given = same(lambda o, bind=bind: bound(o, bind))
        np.testing.assert_array_equal(copies[0], X + 1)
        np.testing.assert_array_equal(values[0], X + 1)
        assert given is None or np.array_equal(given, X + 1)


def test_results_are_written_into_the_arrays_that_outputs_are_bound_to() -> None:
    """Where the graph has their dtype: a truth value is an integer there, and is copied."""
    session = ours.InferenceSession(ADD)
    array = np.zeros((2, 3), np.float32)
    b = session.io_binding()
    b.bind_cpu_input("x", X)
    b.bind_cpu_input("y", Y)
    b.bind_ortvalue_output("z", value(ours, array))
    session.run_with_iobinding(b)
    np.testing.assert_array_equal(array, X + 1)
    results, _ = session._program.run({"x": X, "y": Y}, into={"z": array})
    assert results["z"] is array


def test_truth_values_are_copied_into_bound_arrays() -> None:
    model = made(
        [node("Greater", ["x", "y"], ["z"])],
        [tensor("x", FLOAT, [3]), tensor("y", FLOAT, [3])],
        [tensor("z", onnx.TensorProto.BOOL, [3])],
    )

    def bind(o: ModuleType, b: Any) -> np.ndarray:
        array = np.zeros(3, bool)
        b.bind_cpu_input("x", np.array([1, 2, 3], np.float32))
        b.bind_cpu_input("y", np.array([2, 1, 3], np.float32))
        b.bind_ortvalue_output("z", value(o, array))
        return array

    assert same(lambda o: bound(o, bind, model))[2].tolist() == [False, True, False]


def test_a_binding_runs_again_with_what_lies_in_its_arrays() -> None:
    def twice(o: ModuleType) -> list[np.ndarray]:
        session, x = o.InferenceSession(ADD), X.copy()
        b = session.io_binding()
        b.bind_cpu_input("x", x)
        b.bind_cpu_input("y", Y)
        b.bind_output("z")
        session.run_with_iobinding(b)
        first = b.copy_outputs_to_cpu()
        x *= 3
        session.run_with_iobinding(b)
        return first + b.copy_outputs_to_cpu()

    np.testing.assert_array_equal(same(twice)[1], 3 * X + 1)


def test_outputs_come_in_the_order_in_which_they_are_bound() -> None:
    x = np.ones((2, 4), np.float32)

    def bind(o: ModuleType, b: Any) -> None:
        b.bind_cpu_input("x", x)
        for name in ("h", "y"):
            b.bind_output(name)

    copies = same(lambda o: bound(o, bind, NETWORK))[0]
    np.testing.assert_array_equal(
        copies[1], same(lambda o: o.InferenceSession(NETWORK).run(["y"], {"x": x}))[0]
    )


@pytest.mark.parametrize(
    "bind",
    [
        lambda o, b: b.bind_cpu_input("q", X),
        lambda o, b: b.bind_cpu_input("x", [[1, 2, 3.0]]),
        lambda o, b: b.bind_cpu_input("x", X),
        lambda o, b: (b.bind_cpu_input("x", X), b.bind_output("z")),
        lambda o, b: (b.bind_cpu_input("x", X), b.bind_cpu_input("y", Y)),
        lambda o, b: (
            b.bind_cpu_input("x", X.astype(np.float64)),
            b.bind_cpu_input("y", Y),
            b.bind_output("z"),
        ),
        lambda o, b: (b.bind_cpu_input("x", X), b.bind_cpu_input("y", Y), b.bind_output("q")),
        lambda o, b: (
            b.bind_cpu_input("x", X),
            b.bind_cpu_input("y", Y),
            b.bind_ortvalue_output("z", value(o, np.zeros((3, 3), np.float32))),
        ),
        lambda o, b: (
            b.bind_cpu_input("x", X),
            b.bind_cpu_input("y", Y),
            b.bind_ortvalue_output("z", value(o, X.astype(np.float64))),
        ),
        lambda o, b: b.bind_output("z", "cpu", 0, None, None, X.ctypes.data),
    ],
)
def test_what_cannot_be_bound_is_an_error_of_the_same_class(bind: Any) -> None:
    assert same(lambda o: bound(o, bind)) in ("builtins.RuntimeError", "builtins.ValueError")


def test_a_binding_belongs_to_its_session() -> None:
    assert same(
        lambda o: o.InferenceSession(ADD).run_with_iobinding(o.InferenceSession(ADD).io_binding())
    ) == ("builtins.ValueError")

    def cleared(o: ModuleType) -> list:
        b = o.InferenceSession(ADD).io_binding()
        b.bind_cpu_input("x", X)
        b.bind_output("z")
        b.clear_binding_inputs()
        b.clear_binding_outputs()
        return b.get_outputs()

    assert same(cleared) == []


def public(of: Any) -> dict[str, Any]:
    return {n: getattr(of, n) for n in dir(of) if not n.startswith("_") and not callable(getattr(of, n))}


@pytest.mark.parametrize("kind", ["SessionOptions", "RunOptions"])
def test_options_have_the_same_names_and_defaults(kind: str) -> None:
    mine, peers = public(getattr(ours, kind)()), public(getattr(theirs, kind)())
    assert {n: str(v) for n, v in mine.items()} == {n: str(v) for n, v in peers.items()}
    assert len(mine) >= 5


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("intra_op_num_threads", "1"),
        ("intra_op_num_threads", 1.0),
        ("intra_op_num_threads", 2),
        ("logid", 3),
        ("logid", "a"),
        ("enable_profiling", True),
        ("graph_optimization_level", 1),
        ("no_such_option", 1),
        ("log_severity_level", np.int64(3)),
    ],
)
def test_options_are_checked_alike(name: str, given: Any) -> None:
    def set_it(o: ModuleType) -> Any:
        options = o.SessionOptions()
        setattr(options, name, given)
        return getattr(options, name)

    same(set_it)


def test_options_keep_entries() -> None:
    def entries(o: ModuleType) -> list[str]:
        options, of_run = o.SessionOptions(), o.RunOptions()
        options.add_session_config_entry("session.use_env_allocators", "1")
        of_run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        return [
            options.get_session_config_entry("session.use_env_allocators"),
            of_run.get_run_config_entry("memory.enable_memory_arena_shrinkage"),
        ]

    assert same(entries) == ["1", "cpu:0"]
    assert same(lambda o: o.SessionOptions().get_session_config_entry("nothing")) == "builtins.RuntimeError"
    assert same(lambda o: o.RunOptions().get_run_config_entry("nothing")) == "builtins.RuntimeError"
    assert (
        same(lambda o: o.SessionOptions().add_provider("CUDAExecutionProvider", {}))
        == STATE + "InvalidArgument"
    )
    assert same(
        lambda o: (lambda s: (s.add_provider("CPUExecutionProvider", {}), s.has_providers()))(
            o.SessionOptions()
        )
    )[1]


@pytest.mark.parametrize("name", ["GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder"])
def test_enumerations_print_and_convert_alike(name: str) -> None:
    said = same(
        lambda o: sorted(
            (n, repr(m), str(m), int(m), m.name) for n, m in getattr(o, name).__members__.items()
        )
    )
    assert len(said) >= 2
    assert same(lambda o: getattr(o, name)(0) == next(iter(getattr(o, name).__members__.values())))


def test_the_process_has_one_of_these() -> None:
    assert same(lambda o: [o.__version__, o.get_version_string(), o.get_device(), o.get_all_providers()])
    assert "CPUExecutionProvider" in ours.get_available_providers()
    assert set(ours.get_available_providers()) <= set(theirs.get_available_providers())
    assert same(lambda o: o.set_default_logger_severity(9)) == "builtins.RuntimeError"
    assert same(lambda o: o.set_default_logger_severity("a")) == "builtins.TypeError"
    same(
        lambda o: [
            o.set_default_logger_severity(4),
            o.set_seed(3),
            o.disable_telemetry_events(),
            o.has_collective_ops(),
        ]
    )


def test_whatever_is_public_here_is_public_there() -> None:
    from headrace.onnxruntime.capi import onnxruntime_pybind11_state as our_state
    from onnxruntime.capi import onnxruntime_pybind11_state as their_state

    assert set(ours.__all__) - {"__version__"} - {"preload_dlls"} <= set(dir(theirs))
    assert set(our_state.__all__) - {"SessionIOBinding"} <= set(dir(their_state))
    errors = {
        n
        for n in dir(their_state)
        if isinstance(getattr(their_state, n), type) and issubclass(getattr(their_state, n), Exception)
    }
    assert errors <= set(our_state.__all__)
    for public_class in ("InferenceSession", "IOBinding", "OrtValue"):
        missing = {n for n in dir(getattr(theirs, public_class)) if not n.startswith("_")} - set(
            dir(getattr(ours, public_class))
        )
        assert missing == NOT_HERE.get(public_class, set())


#: What docs/onnxruntime.md says is not here.
NOT_HERE = {
    "InferenceSession": {
        "create_ortvalue_from_shape_and_type",
        "get_input_epdevices",
        "get_provider_graph_assignment_info",
        "get_tuning_results",
        "release_captured_graph",
        "run_with_ortvaluevector",
        "set_ep_dynamic_options",
        "set_tuning_results",
    },
    "OrtValue": {"as_sparse_tensor", "ort_value_from_sparse_tensor"},
}


def test_what_is_not_here_is_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/onnxruntime.md").read_text()
    assert not [name for names in NOT_HERE.values() for name in names if f"`{name}`" not in text]


def test_an_output_of_floats_of_8_bits_is_an_array_of_bytes() -> None:
    model = made(
        [node("Cast", ["x"], ["z"], to=onnx.TensorProto.FLOAT8E4M3FN)],
        [tensor("x", FLOAT, [3])],
        [tensor("z", onnx.TensorProto.FLOAT8E4M3FN, [3])],
    )

    def shown(o: ModuleType) -> np.ndarray:
        feeds = {"x": value(o, np.array([0, 1, 2], np.float32))}
        return o.InferenceSession(model).run_with_ort_values(None, feeds)[0].numpy()

    assert same(shown).dtype == np.uint8


def test_memory_of_a_device_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(RuntimeError, match=r"device 'npu' with the number 0: Headrace has .*'gpu' or 'cpu'"):
        value(ours, X, "npu")
    with pytest.raises(Exception, match="Unsupported device type: nowhere"):
        ours.OrtDevice("nowhere")
    with pytest.raises(RuntimeError, match="'gpu' with the number 99"):
        ours.InferenceSession(ADD).io_binding().bind_output("z", "gpu", 99)
