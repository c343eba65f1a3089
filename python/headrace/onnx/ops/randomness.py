"""Random numbers: by the model's seed or one that is drawn when the model is read, others in each run."""

from __future__ import annotations

import math
import secrets

import numpy as np

from ..graph import Dim, Graph, Operand, known
from ..registry import Node, invalid_if, reads
from ..source import dtype_named

_OTHER = 0x5DEECE66D  # of the second sequence of the same seed


def _seed(node: Node) -> int:
    if "seed" in node.attributes:
        return int(np.float32(node.get("seed")).view(np.uint32))
    return secrets.randbits(48)


def uniform(g: Graph, seed: int, shape: list[Dim]) -> Operand:
    """Numbers in [0, 1), f32."""
    return g.op("random_uniform", g.run_number(), seed=seed, new_shape=shape)


def _normal(g: Graph, seed: int, shape: list[Dim]) -> Operand:
    """By Box and Muller."""
    radius, angle = uniform(g, seed, shape), uniform(g, seed ^ _OTHER, shape)
    left = g.op("linear", radius, alpha=-1.0, beta=1.0)  # in (0, 1]
    distance = g.op("sqrt", g.times(g.op("log", left), -2.0))
    return g.op("mul", distance, g.op("cos", g.times(angle, 2 * math.pi)))


def _drawn(g: Graph, node: Node, shape: list[Dim], dtype: str) -> Operand:
    if node.op.startswith("RandomNormal"):
        y = _normal(g, _seed(node), shape)
        y = g.op("linear", y, alpha=float(node.get("scale", 1.0)), beta=float(node.get("mean", 0.0)))
    else:
        low, high = float(node.get("low", 0.0)), float(node.get("high", 1.0))
        y = g.op("linear", uniform(g, _seed(node), shape), alpha=high - low, beta=low)
    return g.cast(y, dtype)


@reads("RandomNormal", "RandomUniform")
def random(g: Graph, node: Node) -> Operand:
    shape = [int(n) for n in node.get("shape") or []]
    return _drawn(g, node, shape, dtype_named(node.get("dtype", 1), "dtype"))


@reads("RandomNormalLike", "RandomUniformLike")
def random_like(g: Graph, node: Node) -> Operand:
    dtype = dtype_named(node.attributes["dtype"], "dtype") if "dtype" in node.attributes else node.x.dtype
    return _drawn(g, node, g.shape(node.x), dtype)


@reads("Bernoulli")
def bernoulli(g: Graph, node: Node) -> Operand:
    """1 with the input's probability. (ONNX's own definition by other operators has the other one.)"""
    x = node.x
    dtype = dtype_named(node.attributes["dtype"], "dtype") if "dtype" in node.attributes else x.dtype
    drawn = uniform(g, _seed(node), g.shape(x))
    return g.cast(g.op("lesser", drawn, g.cast(x, "f32")), dtype)


@reads("Multinomial")
def multinomial(g: Graph, node: Node) -> Operand:
    """Each sample is the largest of the logarithms with Gumbel's noise."""
    x, count = node.x, int(node.get("sample_size", 1))
    invalid_if(g.rank(x) != 2 or count < 1, f"the input is {g.shape(x)} and sample_size {count}")
    batch, classes = g.shape(x)
    dtype = dtype_named(node.get("dtype", 6), "dtype")
    noise = uniform(g, _seed(node), [batch, count, classes])
    noise = g.op("neg", g.op("log", g.op("neg", g.op("log", g.plus(noise, 2.0**-26)))))
    scores = g.op("add", noise, g.reshape(g.cast(x, "f32"), [batch, 1, classes]))
    return g.cast(g.op("arg_max", scores, axis=2, output_data_type="dtype:i64"), dtype)


def dropped(g: Graph, node: Node, x: Operand, ratio: Operand, training: Operand) -> list[Operand]:
    """Where training holds, some elements become 0 and the others larger; and which ones stay."""
    ratio = g.cast(g.reshape(ratio, []), "f32")
    kept = g.op("greater_or_equal", uniform(g, _seed(node), g.shape(x)), ratio)
    off = g.op("logical_not", g.reshape(training, []))
    kept = g.op("logical_or", kept, off)
    factor = g.op("div", known(1.0, "f32"), g.op("linear", ratio, alpha=-1.0, beta=1.0))
    factor = g.cast(g.op("where", off, known(1.0, "f32"), factor), x.dtype)
    return [g.op("where", kept, g.op("mul", x, factor), known(0, x.dtype)), kept]
