"""Models whose convolutions, products and sums are between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace
import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

RNG = np.random.default_rng(11)


class Quantized:
    """A model in the making, in the form of ONNX Runtime's static quantisation."""

    def __init__(
        self, activations: type = np.uint8, weights: type = np.int8, per_channel: bool = True
    ) -> None:
        self.activations, self.weights, self.per_channel = activations, weights, per_channel
        self.nodes: list[Any] = []
        self.stored: list[Any] = []

    def store(self, array: np.ndarray) -> str:
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def linear(self, x: str, scale: float, zero: int) -> str:
        """Rounded to whole numbers and back."""
        of = [self.store(np.float32(scale)), self.store(np.array(zero, self.activations))]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [x, *of]), *of])

    def parameters(self, shape: tuple[int, ...], outputs: int, scale: float, axis: int = 0) -> list[str]:
        """Weights in bytes, and a bias in 32 bits in the unit of the sums, both as real numbers."""
        limits = np.iinfo(self.weights)
        whole = RNG.integers(limits.min, limits.max, shape, self.weights, endpoint=True)
        scales = RNG.uniform(0.001, 0.004, outputs if self.per_channel else ()).astype(np.float32)
        zero = 0 if self.weights is np.int8 else 130
        zeros = np.full(scales.shape, zero, self.weights)
        bias = RNG.integers(-2000, 2000, outputs, np.int32)
        units = (np.float32(scale) * scales).astype(np.float32)
        return [
            self.node(
                "DequantizeLinear", [self.store(whole), self.store(scales), self.store(zeros)], axis=axis
            ),
            self.node("DequantizeLinear", [self.store(bias), self.store(units)], axis=0),
        ]

    def model(self, x: list[int | str], y: str) -> ModelProto:
        self.nodes[-1].output[0], name = "y", y
        assert name == self.nodes[-1].name, "the result is the last node's"
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "quantised", inputs, outputs, self.stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def network(q: Quantized, batch: int | str) -> ModelProto:
    """A stem, a block with a shortcut, a depthwise and a grouped convolution, and a matrix."""
    zero = 128 if q.activations is np.uint8 else -3
    low = np.iinfo(q.activations).min
    x = q.linear("x", 0.03, zero)
    x = q.node("Conv", [x, *q.parameters((16, 3, 7, 7), 16, 0.03)], strides=[2, 2], pads=[3, 3, 3, 3])
    x = q.linear(q.node("Relu", [x]), 0.06, low)
    x = q.linear(q.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 0.06, low)
    y = q.node("Conv", [x, *q.parameters((16, 16, 3, 3), 16, 0.06)], pads=[1, 1, 1, 1])
    y = q.linear(y, 0.2, zero)
    x = q.linear(q.node("Relu", [q.node("Add", [x, y])]), 0.2, low)
    x = q.node("Conv", [x, *q.parameters((16, 1, 3, 3), 16, 0.2)], pads=[1, 1, 1, 1], group=16)
    limits = [q.store(np.float32(0)), q.store(np.float32(6))]
    x = q.linear(q.node("Clip", [x, *limits]), 0.05, low)
    x = q.linear(q.node("Conv", [x, *q.parameters((20, 8, 1, 1), 20, 0.05)], group=2), 0.09, zero)
    x = q.linear(q.node("GlobalAveragePool", [x]), 0.05, zero)
    x = q.linear(q.node("Flatten", [x]), 0.05, zero)
    x = q.linear(q.node("Gemm", [x, *q.parameters((11, 20), 11, 0.05)], transB=1), 0.03, zero)
    return q.model([batch, 3, 37, 41], x)


def rounded_as_real(model: ModelProto, x: np.ndarray) -> np.ndarray:
    """Without its optimiser ONNX Runtime computes in single precision; with it, sums may overflow."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {"x": x})[0]


def implementations(model: headrace.Model) -> list[str]:
    """The nodes' implementations. Those for CPUs with sums of four bytes go by the names of the others."""
    return [node["implementation"].replace("quad_", "int8_") for node in model.session.stats["nodes"]]


FORMS: dict[str, Callable[[], Quantized]] = {
    "bytes without a sign, by channel": Quantized,
    "one scale for all": lambda: Quantized(per_channel=False),
    "bytes with a sign": lambda: Quantized(activations=np.int8),
    "weights without a sign": lambda: Quantized(weights=np.uint8, per_channel=False),
    "weights without a sign, by channel": lambda: Quantized(weights=np.uint8),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [2, "n"])
def test_a_network_stays_in_bytes_and_is_within_a_step(form: str, batch: int | str) -> None:
    model = network(FORMS[form](), batch)
    x = RNG.standard_normal((2, 3, 37, 41)).astype(np.float32)
    loaded = headrace.load(model, device="cpu")
    y = np.array(loaded.session.run({"x": x}, profile=True)["y"])
    steps = np.abs(y - rounded_as_real(model, x)) / 0.03
    assert steps.max() < 1.01
    assert len(np.unique(y)) > 10, "the results say something"
    used = implementations(loaded)
    # The one of 3 x 3 windows with enough channels is filtered, unless its bytes are multiplied by four.
    assert used.count("int8_conv2d") + used.count("int8_winograd_conv2d") == 3
    if not any(node["implementation"] == "quad_conv2d" for node in loaded.session.stats["nodes"]):
        assert used.count("int8_winograd_conv2d") == 1
    for once in ("int8_depthwise_conv2d", "int8_matmul", "int8_add", "max_pool_bytes"):
        assert used.count(once) == 1, once
    # Two are left: of the input, and before and behind the means, which are real numbers.
    assert used.count("quantize_f32") == 2
    assert used.count("dequantize_f32") == 2


def test_sums_that_overflow_elsewhere_are_exact() -> None:
    """The largest bytes times the largest weights, which pairs of 16 bits cannot hold."""
    q = Quantized(per_channel=False)
    whole = np.full((16, 64), 127, np.int8)
    w = q.node("DequantizeLinear", [q.store(whole.T.copy()), q.store(np.float32(0.01)), q.store(np.int8(0))])
    x = q.linear("x", 1.0, 0)
    x = q.linear(q.node("MatMul", [x, w]), 100.0, 0)
    model = q.model([3, 64], x)
    y = headrace.load(model, device="cpu").session.run({"x": np.full((3, 64), 255, np.float32)})["y"]
    assert np.all(np.array(y) == np.float32(20700.0))  # 64 * 255 * 1.27 = 20726.4


def test_operators_on_bytes_run_as_those_between_real_numbers() -> None:
    """QLinearConv, QLinearAdd, QLinearMatMul and QGemm, as ONNX Runtime computes them."""
    q = Quantized()
    scale, zero = q.store(np.float32(0.05)), q.store(np.uint8(128))
    of = [scale, zero]
    x = q.node("QuantizeLinear", ["x", *of])

    def weights(*shape: int) -> str:  # small enough for sums of ONNX Runtime's
        return q.store(RNG.integers(-60, 60, shape, np.int8))

    def scales(count: int) -> list[str]:
        return [
            q.store(RNG.uniform(0.002, 0.01, count).astype(np.float32)),
            q.store(np.zeros(count, np.int8)),
        ]

    bias = q.store(RNG.integers(-900, 900, 6, np.int32))
    conv = q.node("QLinearConv", [x, *of, weights(6, 6, 3, 3), *scales(6), *of, bias], pads=[1, 1, 1, 1])
    y = q.node("QLinearAdd", [x, *of, conv, *of, q.store(np.float32(0.07)), zero], domain="com.microsoft")
    y = q.node("Reshape", [y, q.store(np.array([5, 24], np.int64))])
    of = [q.store(np.float32(0.07)), zero]
    one = [q.store(np.float32(0.005)), q.store(np.int8(0))]
    y = q.node("QLinearMatMul", [y, *of, weights(24, 18), *one, *of])
    bias = q.store(RNG.integers(-900, 900, 7, np.int32))
    y = q.node("QGemm", [y, *of, weights(7, 18), *scales(7), bias, *of], domain="com.microsoft", transB=1)
    model = q.model([1, 6, 4, 5], q.node("DequantizeLinear", [y, *of]))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x = RNG.standard_normal((1, 6, 4, 5)).astype(np.float32)
    loaded = headrace.load(model, device="cpu")
    y = np.array(loaded.session.run({"x": x}, profile=True)["y"])
    assert np.abs(y - rounded_as_real(model, x)).max() <= 0.0701
    used = implementations(loaded)
    assert [used.count(kernel) for kernel in ("int8_conv2d", "int8_add", "int8_matmul")] == [1, 1, 2]


def used_by(model: ModelProto, x: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """What a model gives, and the implementations that computed it."""
    loaded = headrace.load(model, device="cpu")
    y = np.array(loaded.session.run({"x": x}, profile=True)["y"])
    return y, implementations(loaded)


@pytest.mark.parametrize("weights", [np.int8, np.uint8])
@pytest.mark.parametrize("per_channel", [False, True])
def test_dynamic_quantization_rounds_once_for_all_products(weights: type, per_channel: bool) -> None:
    """What quantize_dynamic makes of three products of one value, a bias and a shortcut."""
    q = Quantized(weights=weights, per_channel=per_channel)
    rounded, scale, zero = (f"{name}_of_x" for name in ("rounded", "scale", "zero"))
    q.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], [rounded, scale, zero]))
    limits = np.iinfo(weights)

    def product(columns: int) -> str:
        whole = RNG.integers(limits.min // 2, limits.max // 2, (40, columns), weights)
        shape = columns if per_channel else ()
        zeros = np.full(shape, 0 if weights is np.int8 else 61, weights)
        scales = RNG.uniform(0.001, 0.004, shape).astype(np.float32)
        sums = q.node("MatMulInteger", [rounded, q.store(whole), zero, q.store(zeros)])
        real = q.node("Cast", [sums], to=TensorProto.FLOAT)
        both = q.node("Mul", [scale, q.store(scales)])
        return q.node("Mul", [real, both])

    a, b = product(24), product(24)
    bias = q.store(RNG.standard_normal(24).astype(np.float32))
    a = q.node("Relu", [q.node("Add", [a, bias])])
    c = q.node("Add", [product(24), a])
    model = q.model([3, 7, 40], q.node("Add", [b, c]))
    x = RNG.standard_normal((3, 7, 40)).astype(np.float32)
    y, used = used_by(model, x)
    np.testing.assert_allclose(y, rounded_as_real(model, x), rtol=1e-5, atol=1e-5)
    assert used.count("quantize_by_range_f32") == 1
    assert used.count("int8_matmul") == 3
    assert len(used) <= 5, "bias, activation and sums are computed with the products"


@pytest.mark.parametrize(
    ("bits", "level", "kernel", "tolerance"),
    [(4, 0, "block_gemm_f32", 1e-5), (4, 4, "block_gemm_int8", 0.02), (8, 1, "block_gemm_f32", 1e-5)],
)
@pytest.mark.parametrize("block", [16, 32, 128])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_matrices_of_few_bits_stay_in_blocks(
    bits: int, level: int, kernel: str, tolerance: float, block: int, has_zeros: bool
) -> None:
    """By MatMulNBits, whose accuracy_level says how coarsely the other operand may be rounded."""
    n, k = 40, 256
    q = Quantized()
    # 8 bits less zero points of 8 bits need 9: those near the middle leave them 8.
    low, high = (0, 2**bits) if bits == 4 else (60, 190)
    packed = RNG.integers(low, high if bits == 8 else 256, (n, k // block, block * bits // 8)).astype(
        np.uint8
    )
    inputs = ["x", q.store(packed), q.store(RNG.uniform(0.01, 0.1, n * k // block).astype(np.float32))]
    if has_zeros:
        count = n * -(-(k // block) * bits // 8)
        inputs.append(q.store(RNG.integers(*((0, 256) if bits == 4 else (120, 130)), count).astype(np.uint8)))
    attributes = {"N": n, "K": k, "bits": bits, "block_size": block, "accuracy_level": level}
    y = q.node("MatMulNBits", inputs, domain="com.microsoft", **attributes)
    model = q.model([5, k], y)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x = RNG.standard_normal((5, k)).astype(np.float32)
    y, used = used_by(model, x)
    exact = model.__class__.FromString(model.SerializeToString())
    for attribute in exact.graph.node[0].attribute:
        if attribute.name == "accuracy_level":
            attribute.i = 1
    wanted = rounded_as_real(exact, x)
    assert np.abs(y - wanted).max() <= tolerance * np.abs(wanted).max()
    # Rows are rounded 32 elements at a time: blocks of 16 are read in f32 whatever is allowed.
    assert used == ["block_gemm_f32" if block == 16 else kernel]


@pytest.mark.parametrize("bits", [4, 8])
def test_blocks_of_16_take_the_files_size_in_memory(bits: int) -> None:
    n, k, block = 64, 512, 16
    q = Quantized()
    packed = RNG.integers(0, 256, (n, k // block, block * bits // 8)).astype(np.uint8)
    scales = RNG.uniform(0.01, 0.1, n * k // block).astype(np.float32)
    inputs = ["x", q.store(packed), q.store(scales)]
    y = q.node("MatMulNBits", inputs, domain="com.microsoft", N=n, K=k, bits=bits, block_size=block)
    model = q.model([5, k], y)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    loaded = headrace.load(model, device="cpu")
    assert loaded.executable.stats["constant_bytes"] <= 1.05 * (packed.nbytes + scales.nbytes)
