"""Graphs that compute next to nothing: what a call through Python and a node cost.

The slope between 1 and 100 chained adds is the cost of a node; what remains is the cost of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import webnn
from headrace._cli import ab_timing
from onnx import TensorProto, helper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Inputs = dict[str, np.ndarray]


def onnx_session(
    nodes: Sequence[tuple[str, list[str], str]], inputs: Inputs, options: onnxruntime.SessionOptions
) -> onnxruntime.InferenceSession:
    """A session of (operator, inputs, output) nodes on float32; the last node's output is the graph's."""
    output = helper.make_tensor_value_info(nodes[-1][2], TensorProto.FLOAT, None)
    graph = helper.make_graph(
        [helper.make_node(kind, operands, [result]) for kind, operands, result in nodes],
        "tiny",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in inputs.items()],
        [output],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def matmul_relu(threads: int) -> ab_timing.Case:
    """y = relu(a @ b), all float32 [4, 4]"""
    options = ab_timing.set_threads(threads)
    rng = np.random.default_rng(0)
    inputs = {name: rng.standard_normal((4, 4), np.float32) for name in "ab"}
    context = webnn.ML().create_context(accelerated=False)
    builder = context.create_graph_builder()
    a, b = (builder.input(name, [4, 4], "float32") for name in "ab")
    graph = builder.build({"y": builder.relu(builder.matmul(a, b))})
    session = onnx_session([("MatMul", ["a", "b"], "m"), ("Relu", ["m"], "y")], inputs, options)
    return ab_timing.Case(
        "4x4 matmul + relu",
        threads,
        ours=lambda: context.compute(graph, inputs)["y"],
        peer=lambda: session.run(["y"], inputs)[0],
        tolerance=1e-6,
        target_us=20.0,
    )


def chain_name(count: int) -> str:
    return f"{count} add{'s' if count > 1 else ''} of 4 floats"


def chained_adds(threads: int, count: int, target_ratio: float | None = None) -> ab_timing.Case:
    """x + b + b + ..., float32 [4]; b is an input, so no compiler can fold the sum."""
    options = ab_timing.set_threads(threads)
    inputs = {"x": np.arange(4, dtype=np.float32), "b": np.full(4, 0.1, np.float32)}
    context = webnn.ML().create_context(accelerated=False)
    builder = context.create_graph_builder()
    y, b = (builder.input(name, [4], "float32") for name in "xb")
    for _ in range(count):
        y = builder.add(y, b)
    graph = builder.build({"y": y})
    names = ["x", *(f"y{index}" for index in range(count - 1)), "y"]
    nodes = [("Add", [names[index], "b"], names[index + 1]) for index in range(count)]
    session = onnx_session(nodes, inputs, options)
    return ab_timing.Case(
        chain_name(count),
        threads,
        ours=lambda: context.compute(graph, inputs)["y"],
        peer=lambda: session.run(["y"], inputs)[0],
        target_ratio=target_ratio,
    )


def cases(threads: int) -> Iterator[ab_timing.Case]:
    yield matmul_relu(threads)
    yield chained_adds(threads, 1)
    yield chained_adds(threads, 100, target_ratio=1.0)


def overheads(results: list[ab_timing.Result]) -> str:
    """The cost of a call and of a node, for each number of threads."""
    ours = {(result.name, result.threads): result.ours_us for result in results}
    lines = []
    for threads in sorted({result.threads for result in results}):
        one, hundred = ours[chain_name(1), threads], ours[chain_name(100), threads]
        node = (hundred - one) / 99
        lines.append(
            f"overhead of ours, {threads} thread{'s' if threads > 1 else ''}: "
            f"{one - node:.1f} µs a call and {node:.3f} µs a node"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    ab_timing.run([cases], __doc__, overheads)
