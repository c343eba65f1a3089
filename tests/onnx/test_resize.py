"""Resize in all combinations of its attributes and operands, static, open and fed: as ONNX Runtime has it."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from operator_cases_base import F32, I32, I64, U8
from peers import assert_same, on_headrace, on_onnx_runtime
from random_cases_base import Random, chance, pick, some
from random_cases_networks import TRANSFORMATIONS

SCALES = (0.5, 1, 2, 1.5, 0.7, 3, 2.6, 0.33, 1 / 3, 0.9)
CASES = 160


def _attributes(rng: Random, rank: int) -> dict[str, Any]:
    inner = [rank - 2, rank - 1]
    options = {
        "mode": pick(rng, ("nearest", "linear", "cubic")),
        "coordinate_transformation_mode": pick(rng, TRANSFORMATIONS),
        "nearest_mode": pick(rng, ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
        "axes": pick(rng, (None, inner, inner[::-1], inner[:1], [-2, -1], [*inner, 0])),
    }
    for name, values in {
        "antialias": (0, 1, 1),
        "exclude_outside": (0, 1, 1),
        "cubic_coeff_a": (-0.5, -0.75),
        "extrapolation_value": (0.0, 2.5),
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    }.items():
        options[name] = pick(rng, values) if chance(rng, 0.3) else None
    return {name: value for name, value in options.items() if value is not None}


def _numbers(rng: Random, shape: list[int], options: dict[str, Any]) -> dict[str, np.ndarray]:
    """The region, and sizes or scales."""
    rank = len(shape)
    axes = [a % rank for a in options.get("axes") or range(rank)]
    is_inner = [a >= rank - 2 or chance(rng, 0.15) for a in axes]
    given = {}
    if options["coordinate_transformation_mode"] == "tf_crop_and_resize":
        begins = [pick(rng, (0.0, 0.25, 0.4, -0.2)) if inner else 0.0 for inner in is_inner]
        ends = [pick(rng, (1.0, 0.75, 0.6, 1.3)) if inner else 1.0 for inner in is_inner]
        given["roi"] = np.array([*begins, *ends], F32)
    if chance(rng):
        sizes = [int(rng.integers(1, 10)) if i else shape[a] for i, a in zip(is_inner, axes, strict=True)]
        return given | {"sizes": np.array(sizes, I64)}
    return given | {"scales": np.array([pick(rng, SCALES) if inner else 1 for inner in is_inner], F32)}


def _model(
    x: np.ndarray, numbers: dict[str, np.ndarray], options: dict[str, Any], is_open: bool, is_fed: bool
) -> onnx.ModelProto:
    names = [name if name in numbers else "" for name in ("roi", "scales", "sizes")]
    node = helper.make_node("Resize", ["x", *names], ["y"], "part", **options)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    shape = [f"d{i}" for i in range(x.ndim)] if is_open else x.shape
    inputs, constants = [helper.make_tensor_value_info("x", kind, shape)], []
    for name, array in numbers.items():
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        if is_fed:
            inputs.append(helper.make_tensor_value_info(name, dtype, array.shape))
        else:
            constants.append(helper.make_tensor(name, dtype, array.shape, array))
    result = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph([node], "resized", inputs, [result], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def _is_onnxs(options: dict[str, Any], is_fed: bool) -> bool:
    """Where ONNX's own tests and definition want something else."""
    is_negative = any(a < 0 for a in options.get("axes", ()))
    by_scale = options["coordinate_transformation_mode"] == "align_corners" and is_fed
    return by_scale or (is_negative and options.get("keep_aspect_ratio_policy", "stretch") != "stretch")


def test_all_combinations_are_as_onnx_runtime_has_them() -> None:
    outcomes, failures = {"same": 0, "refused by both": 0}, []
    for seed in range(CASES):
        rng = np.random.default_rng([seed, 24])
        shape = [*some(rng, 1, 3, pick(rng, (2, 2, 0, 1, 3))), *some(rng, 1, 7, 2)]
        dtype = pick(rng, (F32, F32, F32, I32, U8))
        x = rng.uniform(0, 40, shape).astype(dtype)
        options = _attributes(rng, len(shape))
        numbers = _numbers(rng, shape, options)
        for is_open, is_fed in ((False, False), (True, False), (False, True), (True, True)):
            model = _model(x, numbers, options, is_open, is_fed)
            feeds = {"x": x} | (numbers if is_fed else {})
            expected = actual = None
            with contextlib.suppress(Exception):  # what ONNX Runtime does not know
                expected = on_onnx_runtime(model, feeds)["y"]
            try:
                actual = on_headrace(model, feeds)["y"]
            except ValueError as error:
                refused = str(error)
            if expected is None or _is_onnxs(options, is_fed):
                outcomes["refused by both"] += actual is None
                continue
            case = f"{seed} {dtype.__name__}{shape} {options} {numbers} open={is_open} fed={is_fed}"
            if actual is None:
                if "mode is cubic, and the image is" not in refused:
                    failures.append(f"{case}: {refused}")
                continue
            try:
                # One off: integers between three axes, and weights that ONNX Runtime rounds to 22 bits.
                assert_same(actual, expected, ulps=int(x.ndim in (3, 5) or bool(options.get("antialias"))))
                outcomes["same"] += 1
            except AssertionError as error:
                failures.append(f"{case}: {' '.join(str(error).split())[:300]}")
    assert not failures, "\n".join(failures)
    assert outcomes["same"] > 2 * CASES and outcomes["refused by both"] > CASES / 2, outcomes


def test_integers_that_shrink_are_rounded_after_each_axis_from_the_last_one_on() -> None:
    rng = np.random.default_rng(0)
    for mode, size, (dtype, low, high) in itertools.product(
        ("linear", "cubic"), (2, 4), ((U8, 0, 256), (I32, -900, 900))
    ):
        x, sizes = rng.integers(low, high, (1, 2, 8, 8)).astype(dtype), np.array([1, 2, size, 3], I64)
        for is_open, is_fed in itertools.product((False, True), repeat=2):
            model = _model(x, {"sizes": sizes}, {"mode": mode, "antialias": 1}, is_open, is_fed)
            feeds = {"x": x} | ({"sizes": sizes} if is_fed else {})
            expected = on_onnx_runtime(model, feeds)["y"]
            assert_same(on_headrace(model, feeds)["y"], expected, ulps=1)


def test_negative_bytes_that_shrink_stay_negative() -> None:
    """ONNX Runtime makes them 0."""
    x, sizes = np.full((1, 1, 4, 4), -7, np.int8), np.array([1, 1, 2, 2], I64)
    model = _model(x, {"sizes": sizes}, {"mode": "linear", "antialias": 1}, False, False)
    np.testing.assert_array_equal(on_headrace(model, {"x": x})["y"], x[:, :, :2, :2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "nearest", "antialias": 1}, "antialias=1, and mode is nearest; .* Set antialias to 0"),
        ({"mode": "linear", "exclude_outside": 1}, "exclude_outside=1, and mode is linear with antialias=0"),
        ({"keep_aspect_ratio_policy": "not_larger"}, "'not_larger', and it has scales .*Give sizes"),
    ],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_what_contradicts_itself_is_refused(options: dict[str, Any], message: str, is_open: bool) -> None:
    x, scales = np.ones((1, 1, 4, 4), F32), np.array([1, 1, 2, 2], F32)
    model = _model(x, {"scales": scales}, options, is_open, False)
    with pytest.raises(ValueError, match=rf"\(Resize, ai.onnx opset 19\): .*{message}"):
        on_headrace(model, {"x": x})


def test_a_scale_that_leaves_nothing_gives_an_empty_image() -> None:
    x, scales = np.ones((1, 2, 1, 4), F32), np.array([1, 1, 0.5, 2], F32)
    for is_open in (False, True):
        model = _model(x, {"scales": scales}, {"mode": "linear"}, is_open, False)
        assert on_headrace(model, {"x": x})["y"].shape == (1, 2, 0, 8)


def test_a_middle_that_is_missed_by_rounding_is_a_middle() -> None:
    """1 / (2/7) is 3.4999998 in single precision."""
    x, sizes = np.arange(7, dtype=F32).reshape(1, 7), np.array([1, 2], I64)
    for nearest, second in (("round_prefer_ceil", 4), ("round_prefer_floor", 3)):
        options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": nearest}
        for is_open in (False, True):
            model = _model(x, {"sizes": sizes}, options, is_open, False)
            np.testing.assert_array_equal(on_headrace(model, {"x": x})["y"], [[0, second]])
