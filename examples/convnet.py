"""A small convolutional classifier as a WebNN graph on ggml, checked by ONNX Runtime.

    python examples/convnet.py [--threads N]

The weights are random (seeded, scaled as He et al. 2015 do, so that activations keep their size): the
point is that both engines give the same classes, not that the classes mean something.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

import headrace
import numpy as np
import onnxruntime
import webnn
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

IMAGE_SHAPE = (1, 3, 64, 64)
CLASSES = 10
# Input and output channels and stride of the three 3x3 convolutions.
CONVOLUTIONS = ((3, 16, 2), (16, 32, 1), (32, 64, 1))
DEPTHWISE_CHANNELS = 64
EPSILON = 1e-5
TOLERANCE = 1e-5

Weights = dict[str, np.ndarray]


def make_weights(seed: int = 0) -> Weights:
    """float32 weights: filters [out, in / groups, 3, 3], statistics [out], dense [64, 10]."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int, fan_in: int) -> np.ndarray:
        return (rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)

    weights = {}
    for index, (inputs, outputs, _) in enumerate(CONVOLUTIONS):
        weights[f"filter{index}"] = normal(outputs, inputs, 3, 3, fan_in=9 * inputs)
        weights[f"mean{index}"] = rng.normal(0.0, 0.1, outputs).astype(np.float32)
        weights[f"variance{index}"] = rng.uniform(0.5, 1.5, outputs).astype(np.float32)
        weights[f"scale{index}"] = rng.uniform(0.5, 1.5, outputs).astype(np.float32)
        weights[f"bias{index}"] = rng.normal(0.0, 0.1, outputs).astype(np.float32)
    weights["depthwise"] = normal(DEPTHWISE_CHANNELS, 1, 3, 3, fan_in=9)
    weights["depthwise_bias"] = rng.normal(0.0, 0.1, DEPTHWISE_CHANNELS).astype(np.float32)
    # Twice the usual size sets the classes clearly apart.
    weights["dense"] = 2.0 * normal(DEPTHWISE_CHANNELS, CLASSES, fan_in=DEPTHWISE_CHANNELS)
    weights["dense_bias"] = rng.normal(0.0, 0.1, CLASSES).astype(np.float32)
    return weights


def make_images() -> Weights:
    """A few float32 [1, 3, 64, 64] images with values from 0 to 1, by what they show."""
    y, x = np.mgrid[0:64, 0:64] / 63.0
    red, green, blue = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)
    patterns = {
        "disc": red * ((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.1),
        "stripes": green * (np.sin(40.0 * x) > 0),
        "checkerboard": (red + green) * ((np.floor(8 * x) + np.floor(8 * y)) % 2),
        "gradient": blue * x * y,
        "noise": np.random.default_rng(1).random((3, 64, 64)),
    }
    return {name: np.asarray(image, np.float32).reshape(IMAGE_SHAPE) for name, image in patterns.items()}


def build_webnn(builder: webnn.MLGraphBuilder, weights: Mapping[str, np.ndarray]) -> webnn.MLGraph:
    """image float32 [1, 3, 64, 64] → logits and probabilities, float32 [1, 10]"""
    constants = {
        name: builder.constant(value, list(value.shape), "float32") for name, value in weights.items()
    }
    x = builder.input("image", list(IMAGE_SHAPE), "float32")
    for index, (_, _, stride) in enumerate(CONVOLUTIONS):
        x = builder.conv2d(x, constants[f"filter{index}"], strides=[stride, stride], pads=[1, 1, 1, 1])
        x = builder.batch_normalization(
            x,
            constants[f"mean{index}"],
            constants[f"variance{index}"],
            scale=constants[f"scale{index}"],
            bias=constants[f"bias{index}"],
            epsilon=EPSILON,
        )
        x = builder.relu(x)
        if index == 0:
            x = builder.max_pool2d(x, window_dimensions=[2, 2], strides=[2, 2])
    x = builder.conv2d(
        x,
        constants["depthwise"],
        pads=[1, 1, 1, 1],
        groups=DEPTHWISE_CHANNELS,
        bias=constants["depthwise_bias"],
    )
    x = builder.average_pool2d(builder.relu(x), window_dimensions=[2, 2], strides=[2, 2])
    x = builder.reshape(builder.global_average_pool(x), [1, DEPTHWISE_CHANNELS])
    logits = builder.gemm(x, constants["dense"], c=constants["dense_bias"])
    return builder.build({"logits": logits, "probabilities": builder.softmax(logits, 1)})


def build_onnx(weights: Mapping[str, np.ndarray]) -> bytes:
    """The same network as a serialized ONNX model."""
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = []
    x = "image"

    def node(kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    for i, (_, _, stride) in enumerate(CONVOLUTIONS):
        x = node("Conv", x, f"filter{i}", strides=[stride, stride], **conv)
        statistics = (f"{name}{i}" for name in ("scale", "bias", "mean", "variance"))
        x = node("Relu", node("BatchNormalization", x, *statistics, epsilon=EPSILON))
        if i == 0:
            x = node("MaxPool", x, **pool)
    x = node("Relu", node("Conv", x, "depthwise", "depthwise_bias", group=DEPTHWISE_CHANNELS, **conv))
    x = node("Flatten", node("GlobalAveragePool", node("AveragePool", x, **pool)))
    nodes.append(helper.make_node("Gemm", [x, "dense", "dense_bias"], ["logits"]))
    nodes.append(helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1))

    def value(name: str, *shape: int) -> object:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        nodes,
        "convnet",
        [value("image", *IMAGE_SHAPE)],
        [value("logits", 1, CLASSES), value("probabilities", 1, CLASSES)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString()


class Convnet:
    """The classifier on both engines. Results: {"logits", "probabilities"}, float32 [1, 10]."""

    def __init__(self, threads: int, weights: Mapping[str, np.ndarray]) -> None:
        headrace.set_num_threads(threads)
        self._context = webnn.ML().create_context(accelerated=False)
        self._graph = build_webnn(self._context.create_graph_builder(), weights)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._peer = onnxruntime.InferenceSession(
            build_onnx(weights), options, providers=["CPUExecutionProvider"]
        )

    def run(self, image: np.ndarray) -> Weights:
        return self._context.compute(self._graph, {"image": image})

    def run_peer(self, image: np.ndarray) -> Weights:
        logits, probabilities = self._peer.run(["logits", "probabilities"], {"image": image})
        return {"logits": logits, "probabilities": probabilities}


def milliseconds(run: Callable[[np.ndarray], Weights], image: np.ndarray, repeats: int = 20) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        run(image)
    return (time.perf_counter() - begin) / repeats * 1e3


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="A convolutional WebNN graph on ggml, checked by ONNX Runtime."
    )
    parser.add_argument(
        "--threads", type=positive, default=2, metavar="N", help="of either engine (default: 2)"
    )
    net = Convnet(parser.parse_args().threads, make_weights())

    differences = []
    images = make_images()
    for name, image in images.items():
        ours, peer = net.run(image), net.run_peer(image)
        differences += [np.abs(ours[key] - peer[key]).max() for key in peer]
        best = int(ours["probabilities"].argmax())
        print(f"{name:14} class {best}  probability {ours['probabilities'][0, best]:.4f}")
    print(f"\nHeadrace on ggml    {milliseconds(net.run, images['disc']):8.3f} ms per image")
    print(f"ONNX Runtime        {milliseconds(net.run_peer, images['disc']):8.3f} ms per image")
    worst = np.max(differences)
    print(f"largest difference  {worst:8.1e}")
    if not worst <= TOLERANCE:  # true for NaN as well
        sys.exit(f"error: Headrace and ONNX Runtime disagree by {worst:.1e}, more than {TOLERANCE}")


if __name__ == "__main__":
    main()
