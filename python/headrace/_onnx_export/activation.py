"""Activation functions."""

from __future__ import annotations

import math

from .elementwise import is_float
from .registry import REAL, Node, lowers
from .writer import Writer


def affine(w: Writer, x: str, alpha: float, beta: float, dtype: str) -> str:
    """alpha x + beta, leaving out what changes nothing."""
    if alpha != 1:
        x = w.node("Mul", [x, w.constant(alpha, dtype)])
    return w.node("Add", [x, w.constant(beta, dtype)]) if beta != 0 else x


def unit_clip(w: Writer, x: str, dtype: str) -> str:
    return w.node("Clip", [x, w.constant(0, dtype), w.constant(1, dtype)])


for _op, _onnx_op in {
    "sigmoid": "Sigmoid",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "gelu": "Gelu",
}.items():

    @lowers(_op, through=REAL)
    def direct(w: Writer, n: Node, onnx_op: str = _onnx_op) -> str:
        return w.node(onnx_op, [n.x])


@lowers("elu", through=REAL)
def elu(w: Writer, n: Node) -> str:
    return w.node("Elu", [n.x], alpha=n.attributes["alpha"])


@lowers("leaky_relu", through=REAL)
def leaky_relu(w: Writer, n: Node) -> str:
    return w.node("LeakyRelu", [n.x], alpha=n.attributes["alpha"])


@lowers("hard_sigmoid", through=REAL)
def hard_sigmoid(w: Writer, n: Node) -> str:
    alpha, beta = n.attributes["alpha"], n.attributes["beta"]
    return unit_clip(w, affine(w, n.x, alpha, beta, n.dtype), n.dtype)


@lowers("hard_swish", through=REAL)
def hard_swish(w: Writer, n: Node) -> str:
    if not {"alpha", "beta"} & set(n.attributes):
        return w.node("HardSwish", [n.x])
    alpha, beta = n.attributes.get("alpha", 1 / 6), n.attributes.get("beta", 0.5)
    return w.node("Mul", [n.x, unit_clip(w, affine(w, n.x, alpha, beta, n.dtype), n.dtype)])


@lowers("linear", through=REAL)
def linear(w: Writer, n: Node) -> str:
    y = affine(w, n.x, n.attributes["alpha"], n.attributes["beta"], n.dtype)
    return w.node("Identity", [y]) if y == n.x else y


@lowers("relu", through=REAL)
def relu(w: Writer, n: Node) -> str:
    if is_float(n.dtype):
        return w.node("Relu", [n.x])
    return w.node("Max", [n.x, w.constant(0, n.dtype)])


@lowers("prelu", through=REAL)
def prelu(w: Writer, n: Node) -> str:
    """Not PRelu, which ONNX Runtime has for floats only."""
    x, slope = n.inputs
    negative = w.node("Less", [x, w.constant(0, n.dtype)])
    return w.where(negative, w.node("Mul", [x, slope]), x)


@lowers("softmax", through=REAL)
def softmax(w: Writer, n: Node) -> str:
    return w.node("Softmax", [n.x], axis=n.axis())


@lowers("clamp", through=REAL)
def clamp(w: Writer, n: Node) -> str:
    """Bounds outside an integer type become its limits, as in our own kernels."""
    bounds = [_bound(n, "min_value"), _bound(n, "max_value")]
    if bounds == [None, None]:
        return w.node("Identity", [n.x])
    if is_float(n.dtype):  # without a bound, ONNX Runtime cuts infinities off
        bounds = [end if b is None else b for b, end in zip(bounds, (-math.inf, math.inf), strict=True)]
    return w.node("Clip", [n.x, *(b if b is None else w.constant(b, n.dtype) for b in bounds)])


def _bound(n: Node, name: str) -> float | int | None:
    value = n.attributes.get(name)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if is_float(n.dtype):
        return value
    bits = int(n.dtype.lstrip("uint"))
    low = 0 if n.dtype.startswith("u") else -(2 ** (bits - 1))
    high = low + 2**bits - 1
    if isinstance(value, float) and math.isinf(value):
        return low if value < 0 else high
    return min(max(int(value), low), high)
