"""Random cases of single operators: what ONNX Runtime computes, at run time and beforehand."""

from __future__ import annotations

from collections import Counter

import headrace
import numpy as np
import onnx
import operator_fuzz
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from operator_cases_base import values
from operator_fuzz import drawn
from peers import on_headrace
from random_cases import FAR, MAKERS

INT64 = onnx.TensorProto.INT64

EACH = 10  # cases of an operator; other numbers to look further than the suite does: SEED
SEED = 0


@pytest.mark.parametrize("name", MAKERS)
def test_random_cases_give_what_onnx_runtime_gives(name: str) -> None:
    outcomes, failures = Counter(), []
    for seed in range(SEED, SEED + EACH):
        failures += [f"seed {seed}: {what}" for what in operator_fuzz.compare(drawn(name, seed), outcomes)]
    assert not failures, "\n".join(failures)
    assert outcomes["computed"] >= EACH, outcomes


def test_space_to_depth_undoes_depth_to_space_in_both_modes() -> None:
    """ONNX Runtime does not know the mode yet."""
    x = values(2, 12, 4, 6)
    for mode, b in (("DCR", 2), ("CRD", 2), ("CRD", 1)):
        node = helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=b, mode=mode)
        back = helper.make_node("DepthToSpace", ["y"], ["z"], blocksize=b, mode=mode)
        given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)
        results = [helper.make_empty_tensor_value_info(name) for name in "yz"]
        graph = helper.make_graph([node, back], "case", [given], results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)])
        y, z = ReferenceEvaluator(model).run(None, {"x": x})
        actual = on_headrace(model, {"x": x})
        np.testing.assert_array_equal(actual["y"], y)
        np.testing.assert_array_equal(z, x)
        np.testing.assert_array_equal(actual["z"], x)


# --- slices -----------------------------------------------------------------------------------------------


def _slice_model(
    extent: int | str, start: int, end: int, step: int, x: np.ndarray | None = None
) -> onnx.ModelProto:
    """A model on x [2, extent], which may be a constant."""
    parts = {"start": start, "end": end, "axis": 1, "step": step}
    constants = [helper.make_tensor(name, INT64, [1], [n]) for name, n in parts.items()]
    if x is not None:
        constants.append(onnx.numpy_helper.from_array(x, "x"))
    given = [] if x is not None else [helper.make_tensor_value_info("x", INT64, [2, extent])]
    node = helper.make_node("Slice", ["x", *parts], ["y"])
    graph = helper.make_graph([node], "case", given, [helper.make_empty_tensor_value_info("y")], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _random_slice(rng: np.random.Generator) -> tuple[int, int, int]:
    start, end = (int(rng.choice(FAR)) if rng.random() < 0.25 else int(rng.integers(-8, 9)) for _ in range(2))
    step = int(rng.choice(FAR)) if rng.random() < 0.1 else int(rng.choice([1, 1, 2, 3, -1, -1, -2, -3]))
    return start, end, step


def _part(x: np.ndarray, start: int, end: int, step: int) -> np.ndarray:
    """As NumPy has it, but a start before the first element is that on the way back, too."""
    return x[:, max(start, -x.shape[1]) if x.shape[1] else start : end : step]


@pytest.mark.parametrize("end", [5, 4, 6, 2**31 - 1, 2**63 - 1])
def test_a_slice_backwards_to_an_end_past_its_start_is_empty(end: int) -> None:
    x = np.arange(10).reshape(2, 5)
    assert on_headrace(_slice_model(5, -1, end, -1), {"x": x})["y"].shape == (2, 0)
    assert on_headrace(_slice_model(5, -1, end, -1, x), {})["y"].shape == (2, 0)


def test_slices_clamp_their_ends_as_onnx_has_it() -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(150):
        extent, (start, end, step) = int(rng.integers(0, 7)), _random_slice(rng)
        x = np.arange(2 * extent).reshape(2, extent)
        expected = _part(x, start, end, step)
        what = f"{extent} elements [{start}:{end}:{step}]"
        at_run_time = on_headrace(_slice_model(extent, start, end, step), {"x": x})["y"]
        beforehand = on_headrace(_slice_model(extent, start, end, step, x), {})["y"]
        np.testing.assert_array_equal(at_run_time, expected, what)
        np.testing.assert_array_equal(beforehand, expected, what)


def test_slices_of_open_extents_are_right_or_errors() -> None:
    rng = np.random.default_rng(SEED + 1)
    outcomes, backwards = Counter(), 0
    for _ in range(120):
        start, end, step = _random_slice(rng)
        try:
            model = headrace.load(_slice_model("n", start, end, step), device="cpu")
        except ValueError as error:
            assert "dimensions={" in str(error)
            outcomes["refused"] += 1
            continue
        for extent in (1, 2, 3, 5, 8, 9):
            x = np.arange(2 * extent).reshape(2, extent)
            try:
                y = model({"x": x})["y"]
            except ValueError:
                outcomes["error"] += 1
                continue
            what = f"{extent} elements [{start}:{end}:{step}]"
            np.testing.assert_array_equal(y, _part(x, start, end, step), what)
            outcomes["computed"] += 1
            backwards += step < 0
    assert outcomes["computed"] >= 250 and backwards >= 80, outcomes
