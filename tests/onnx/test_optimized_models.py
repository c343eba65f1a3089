"""Files that ONNX Runtime has saved with ORT_ENABLE_ALL: channels in blocks, as its kernels read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import headrace
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(0)
BLOCKED = "com.microsoft.nchwc"
F32 = np.float32


def reals(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F32)


def model_of(
    nodes: list, constants: dict[str, np.ndarray], channels: int, domains: tuple[str, ...]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", channels, "height", "width"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    sets = [helper.make_opsetid(domain, 18 if not domain else 1) for domain in domains]
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def network() -> onnx.ModelProto:
    """Filters of images, whole, depthwise and in groups, with odd numbers of channels; pools; sums."""
    node = helper.make_node
    constants = {
        "w0": reals(20, 3, 3, 3),
        "w1": reals(20, 1, 3, 3),
        "w2": reals(32, 20, 1, 1),
        "w3": reals(32, 16, 3, 3),
        "w4": reals(6, 64, 3, 3),
        "b0": reals(20),
        "b3": reals(32),
        "scales": np.array([1, 1, 2, 2], F32),
    }
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1] * 4),
        node("Relu", ["c0"], ["r0"]),
        node("Conv", ["r0", "w1"], ["c1"], pads=[1] * 4, group=20),
        node("Add", ["c1", "r0"], ["a1"]),
        node("Conv", ["a1", "w2"], ["c2"]),
        node("Sigmoid", ["c2"], ["s2"]),
        node("MaxPool", ["s2"], ["p2"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        node("Conv", ["p2", "w3", "b3"], ["c3"], pads=[1] * 4, group=2),
        node("AveragePool", ["c3"], ["p3"], kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
        node("Concat", ["p3", "p2"], ["j"], axis=1),
        node(
            "Resize",
            ["j", "", "scales"],
            ["u"],
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        node("Conv", ["u", "w4"], ["c4"], strides=[2, 2]),
        node("GlobalAveragePool", ["c4"], ["g"]),
        node("Mul", ["c4", "g"], ["y"]),
    ]
    return model_of(nodes, constants, 3, ("",))


def saved(content: onnx.ModelProto, path: Path, wanted: set[str]) -> onnxruntime.InferenceSession:
    """The file that ONNX Runtime makes of it, which has at least these operators on blocks."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(content.SerializeToString(), options)
    written = {n.op_type for n in onnx.load(path).graph.node if n.domain == BLOCKED}
    if not written:
        pytest.skip("this ONNX Runtime writes no blocks on this processor")
    assert wanted <= written
    return session


def assert_same(path: Path, session: onnxruntime.InferenceSession) -> None:
    model = headrace.load(path)
    for shape in [(2, 3, 12, 18), (1, 3, 21, 10)]:
        x = reals(*shape)
        expected = session.run(None, {"x": x})[0]
        np.testing.assert_allclose(model(x)["y"], expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


def test_a_file_with_channels_in_blocks_computes_what_onnx_runtime_computes(tmp_path: Path) -> None:
    path = tmp_path / "all.onnx"
    assert_same(path, saved(network(), path, {"Conv", "MaxPool", "AveragePool", "ReorderOutput"}))


@pytest.mark.parametrize("how", ["half_pixel", "align_corners", "asymmetric", "nearest"])
def test_images_with_channels_in_blocks_are_enlarged(how: str, tmp_path: Path) -> None:
    path = tmp_path / "all.onnx"
    way = {"coordinate_transformation_mode": how, "mode": "linear"}
    if how == "nearest":
        way = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["small"]),
        helper.make_node("Resize", ["small", "", "scales"], ["large"], **way),
        helper.make_node("Conv", ["large", "v"], ["y"]),
    ]
    scales = np.array([1, 1, 2, 3], F32)
    constants = {"w": reals(32, 3, 3, 3), "v": reals(16, 32, 3, 3), "scales": scales}
    assert_same(path, saved(model_of(nodes, constants, 3, ("",)), path, {"Upsample"}))


def in_blocks(filter: np.ndarray, block: int) -> np.ndarray:
    """[o, i, h, w] as [o / b, i / b, h, w, b of i, b of o], with zeros for what there is not."""
    o, i, h, w = filter.shape
    wide = np.zeros((-(-o // block) * block, -(-i // block) * block, h, w), F32)
    wide[:o, :i] = filter
    parts = wide.reshape(wide.shape[0] // block, block, wide.shape[1] // block, block, h, w)
    return np.ascontiguousarray(parts.transpose(0, 2, 4, 5, 3, 1)).reshape(wide.shape)


def blocked(filter: np.ndarray, block: int, kept: int) -> onnx.ModelProto:
    node = helper.make_node
    nodes = [
        node("ReorderInput", ["x"], ["xb"], domain=BLOCKED),
        node("Conv", ["xb", "w"], ["yb"], domain=BLOCKED),
        node("ReorderOutput", ["yb"], ["y"], "back", domain=BLOCKED, channels=kept),
    ]
    return model_of(nodes, {"w": in_blocks(filter, block)}, filter.shape[1], ("", BLOCKED))


@pytest.mark.parametrize(("outputs", "inputs", "block"), [(24, 16, 8), (16, 24, 8), (32, 12, 16)])
def test_filters_say_how_wide_the_blocks_are_whatever_the_processor(
    outputs: int, inputs: int, block: int
) -> None:
    if inputs < block:  # such a filter lies in blocks of outputs only, and reads plain images
        plain = reals(outputs, inputs, 3, 3)
        parts = plain.reshape(outputs // block, block, inputs, 3, 3).transpose(0, 2, 3, 4, 1)
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["yb"], domain=BLOCKED),
            helper.make_node("ReorderOutput", ["yb"], ["y"], domain=BLOCKED, channels=outputs),
        ]
        content = model_of(
            nodes, {"w": np.ascontiguousarray(parts).reshape(plain.shape)}, inputs, ("", BLOCKED)
        )
    else:
        plain = reals(outputs, inputs, 3, 3)
        content = blocked(plain, block, outputs)
    x = reals(2, inputs, 7, 9)
    conv = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], {"w": plain}, inputs, ("",))
    expected = onnxruntime.InferenceSession(conv.SerializeToString()).run(None, {"x": x})[0]
    y = headrace.load(content)(x)["y"]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda: blocked(reals(24, 16, 1, 1), 8, 9), ["'back'", "9 channels of 24", "ORT_ENABLE_EXTENDED"]),
        (lambda: blocked(reals(24, 16, 1, 1), 8, 0), ["'back'", "0 channels of 24"]),
        (lambda: without_blocks(), ["20 outputs", "blocks of 8"]),
    ],
)
def test_what_cannot_lie_in_blocks_is_refused(content: Any, words: list[str]) -> None:
    with pytest.raises(ValueError) as error:
        headrace.load(content())
    assert all(word in str(error.value) for word in words), error.value


def without_blocks() -> onnx.ModelProto:
    node = helper.make_node("Conv", ["x", "w"], ["y"], domain=BLOCKED)
    return model_of([node], {"w": reals(20, 16, 1, 1)}, 16, ("", BLOCKED))


@pytest.mark.parametrize("is_function", [True, False])
def test_blocks_whose_operators_the_model_does_not_import_are_no_fault(is_function: bool) -> None:
    nodes = [
        helper.make_node("ReorderInput", ["x"], ["a"], domain=BLOCKED),
        helper.make_node("ReorderOutput", ["a"], ["y"], domain=BLOCKED, channels=3),
    ]
    x = reals(1, 3, 2, 2)
    if is_function:
        model = model_of([helper.make_node("f", ["x"], ["y"], domain="own")], {}, 3, ("", "own"))
        sets = [helper.make_opsetid("", 18), helper.make_opsetid(BLOCKED, 1)]
        model.functions.append(helper.make_function("own", "f", ["x"], ["y"], nodes, sets))
        np.testing.assert_array_equal(headrace.load(model)(x)["y"], x)
    else:
        with pytest.raises(ValueError, match=BLOCKED):
            headrace.load(model_of(nodes, {}, 3, ("",)))
