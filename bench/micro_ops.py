"""Single operators against ONNX Runtime: the sizes of real models, one graph each.

    python bench/micro_ops.py [--threads 1 2] [--rounds N]

ONNX Runtime runs the graph that `MLContext.convert_to_onnx` makes of ours.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import webnn
from headrace._cli import ab_timing

if TYPE_CHECKING:
    from collections.abc import Iterator

Build = "Callable[[webnn.MLGraphBuilder, Operands], webnn.MLOperand]"


class Operands:
    """Inputs of a graph in the making, with values, and constants."""

    def __init__(self, builder: webnn.MLGraphBuilder) -> None:
        self.builder = builder
        self.values: dict[str, np.ndarray] = {}
        self.random = np.random.default_rng(0)

    def input(self, *shape: int) -> webnn.MLOperand:
        """float32 between 0.1 and 1.1, within the domain of every function"""
        name = f"x{len(self.values)}"
        self.values[name] = self.random.random(shape, np.float32) + np.float32(0.1)
        return self.builder.input(name, list(shape), "float32")

    def indices(self, count: int, below: int) -> webnn.MLOperand:
        name = f"x{len(self.values)}"
        self.values[name] = self.random.integers(0, below, count, np.int32)
        return self.builder.input(name, [count], "int32")

    def constant(self, *shape: int) -> webnn.MLOperand:
        return self.builder.constant(self.random.standard_normal(shape, np.float32) * np.float32(0.05))


def matmul(m: int, n: int, k: int) -> Build:
    return lambda b, x: b.matmul(x.input(m, k), x.constant(k, n))


def conv(image: tuple[int, ...], filter: tuple[int, ...], stride: int = 1, groups: int = 1) -> Build:
    pad = filter[2] // 2
    return lambda b, x: b.conv2d(
        x.input(*image), x.constant(*filter), padding=[pad] * 4, strides=[stride] * 2, groups=groups
    )


def unary(name: str) -> Build:
    return lambda b, x: getattr(b, name)(x.input(128, 1536))


def reduction(name: str, shape: tuple[int, ...], axes: list[int]) -> Build:
    return lambda b, x: getattr(b, name)(x.input(*shape), axes=axes)


OPERATORS: dict[str, Build] = {
    "matmul 512x512x512": matmul(512, 512, 512),
    "matmul 1024x1024x1024": matmul(1024, 1024, 1024),
    "matmul 128x384x384": matmul(128, 384, 384),
    "matmul 128x1536x384": matmul(128, 1536, 384),
    "matmul 1x4096x4096": matmul(1, 4096, 4096),
    "conv 3x3 64-64 @56": conv((1, 64, 56, 56), (64, 64, 3, 3)),
    "conv 1x1 256-64 @56": conv((1, 256, 56, 56), (64, 256, 1, 1)),
    "conv 7x7/2 3-64 @224": conv((1, 3, 224, 224), (64, 3, 7, 7), stride=2),
    "depthwise 3x3 32 @112": conv((1, 32, 112, 112), (32, 1, 3, 3), groups=32),
    "conv transposed 2x2/2 64-32 @56": lambda b, x: b.conv_transpose2d(
        x.input(1, 64, 56, 56), x.constant(64, 32, 2, 2), strides=[2, 2]
    ),
    **{
        f"{name} 196k": unary(name)
        for name in (
            "tanh",
            "exp",
            "gelu",
            "sigmoid",
            "erf",
            "log",
            "sqrt",
            "relu",
            "neg",
            "sin",
            "reciprocal",
        )
    },
    **{
        f"{name} 196k": unary(name)
        for name in ("leaky_relu", "elu", "hard_swish", "hard_sigmoid", "softplus", "softsign", "clamp")
    },
    "add 1M": lambda b, x: b.add(x.input(1024, 1024), x.input(1024, 1024)),
    "add a row to 1M": lambda b, x: b.add(x.input(1024, 1024), x.input(1024)),
    "mul a column with 1M": lambda b, x: b.mul(x.input(1024, 1024), x.input(1024, 1)),
    "pow 1M": lambda b, x: b.pow(x.input(1024, 1024), x.constant(1)),
    "max 1M": lambda b, x: b.max(x.input(1024, 1024), x.input(1024, 1024)),
    "greater + where 1M": lambda b, x: b.where(
        b.greater(x.input(1024, 1024), x.constant(1)), x.input(1024, 1024), x.constant(1)
    ),
    "softmax 1536x128": lambda b, x: b.softmax(x.input(1536, 128), 1),
    "layer norm 128x384": lambda b, x: b.layer_normalization(
        x.input(128, 384), scale=x.constant(384), bias=x.constant(384), axes=[1]
    ),
    "instance norm 64 @56": lambda b, x: b.instance_normalization(x.input(1, 64, 56, 56)),
    "batch norm 64 @56": lambda b, x: b.batch_normalization(x.input(1, 64, 56, 56), x.input(64), x.input(64)),
    "transpose 128x1536": lambda b, x: b.transpose(x.input(128, 1536)),
    "transpose heads 512x16x64": lambda b, x: b.transpose(x.input(1, 512, 16, 64), permutation=[0, 2, 1, 3]),
    **{
        f"{name} rows of 1024x1024": reduction(name, (1024, 1024), [1])
        for name in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_l2")
    },
    "reduce_mean all of 1M": reduction("reduce_mean", (1024, 1024), [0, 1]),
    "reduce_mean columns of 1024x1024": reduction("reduce_mean", (1024, 1024), [0]),
    "reduce_mean 64 @56": reduction("reduce_mean", (1, 64, 56, 56), [2, 3]),
    "arg_max rows of 1024x1024": lambda b, x: b.arg_max(x.input(1024, 1024), 1),
    "max pool 3x3/2 64 @112": lambda b, x: b.max_pool2d(
        x.input(1, 64, 112, 112), window_dimensions=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]
    ),
    "average pool 2x2/2 64 @112": lambda b, x: b.average_pool2d(
        x.input(1, 64, 112, 112), window_dimensions=[2, 2], strides=[2, 2]
    ),
    "resample linear 32 @56 to 112": lambda b, x: b.resample2d(
        x.input(1, 32, 56, 56), mode="linear", sizes=[112, 112]
    ),
    "resample nearest 32 @56 to 112": lambda b, x: b.resample2d(x.input(1, 32, 56, 56), sizes=[112, 112]),
    "gather 128 rows of 30000x384": lambda b, x: b.gather(x.constant(30000, 384), x.indices(128, 30000)),
    "concat 2 x 64 @56": lambda b, x: b.concat([x.input(1, 64, 56, 56), x.input(1, 64, 56, 56)], 1),
    "slice half of 64 @56": lambda b, x: b.slice(x.input(1, 64, 56, 56), [0, 16, 0, 0], [1, 32, 56, 56]),
    "pad 64 @56": lambda b, x: b.pad(x.input(1, 64, 56, 56), [0, 0, 1, 1], [0, 0, 1, 1]),
    "expand 1024 to 1M": lambda b, x: b.expand(x.input(1, 1024), [1024, 1024]),
    "cumulative sum 1024x1024": lambda b, x: b.cumulative_sum(x.input(1024, 1024), 1),
    "triangular 1024x1024": lambda b, x: b.triangular(x.input(1024, 1024)),
    "cast 1M to int32": lambda b, x: b.cast(x.input(1024, 1024), "int32"),
    "cast 1M to float16": lambda b, x: b.cast(x.input(1024, 1024), "float16"),
}


def case(name: str, build: Build, threads: int) -> ab_timing.Case:
    options = ab_timing.set_threads(threads)
    context = webnn.ML().create_context(accelerated=False)
    builder = context.create_graph_builder()
    operands = Operands(builder)
    graph = builder.build({"y": build(builder, operands)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        context.convert_to_onnx(graph, str(path))
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    inputs = operands.values
    return ab_timing.Case(
        name,
        threads,
        ours=lambda: context.compute(graph, inputs)["y"],
        peer=lambda: session.run(["y"], inputs)[0],
        tolerance=2e-3,
    )


def cases(threads: int) -> Iterator[ab_timing.Case]:
    for name, build in OPERATORS.items():
        yield case(name, build, threads)


if __name__ == "__main__":
    ab_timing.run([cases], __doc__)
