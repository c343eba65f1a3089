"""Functions of single elements: activations, roots, powers of e, trigonometry."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Graph, Operand, known
from ..registry import OPERATORS, Node, invalid_if, reads
from .randomness import dropped

# fmt: off
UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp",
    "Floor": "floor", "Identity": "identity", "Log": "log", "Neg": "neg", "Reciprocal": "reciprocal",
    "Round": "round_even", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh",
    "Softplus": "softplus", "Softsign": "softsign", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}
# fmt: on


def _unary(op: str) -> Any:
    def read(g: Graph, node: Node) -> Operand:
        x = node.x
        if op == "abs" and x.dtype in ("u8", "u16", "u32", "u64"):
            return x
        return g.op(op, x)

    return read


for _name, _op in UNARY.items():
    OPERATORS["", _name] = _unary(_op)


def with_attributes(op: str, **defaults: float) -> Any:
    def read(g: Graph, node: Node) -> Operand:
        return g.op(op, node.x, **{name: float(node.get(name, value)) for name, value in defaults.items()})

    return read


OPERATORS["", "Elu"] = with_attributes("elu", alpha=1.0)
OPERATORS["", "LeakyRelu"] = with_attributes("leaky_relu", alpha=0.01)
OPERATORS["", "HardSigmoid"] = with_attributes("hard_sigmoid", alpha=0.2, beta=0.5)


@reads("Relu")
def relu(g: Graph, node: Node) -> Operand:
    return g.op("relu", node.x) if node.x.dtype not in ("u8", "u16", "u32", "u64") else node.x


@reads("HardSwish")
def hard_swish(g: Graph, node: Node) -> Operand:
    return g.op("hard_swish", node.x)


@reads("Selu")
def selu(g: Graph, node: Node) -> Operand:
    alpha, gamma = node.get("alpha", 1.6732631921768188), node.get("gamma", 1.0507010221481323)
    return g.times(g.op("elu", node.x, alpha=float(alpha)), gamma)


@reads("Celu")
def celu(g: Graph, node: Node) -> Operand:
    """max(0, x) + min(0, alpha (e^(x / alpha) - 1))"""
    x, alpha = node.x, float(node.get("alpha", 1.0))
    invalid_if(alpha == 0, "alpha is 0, by which it divides")
    if alpha == 1:
        return g.op("elu", x)
    quotient = g.op("div", x, known(alpha, x.dtype))
    below = g.op("elu", quotient) if alpha > 0 else g.plus(g.op("exp", quotient), -1.0)
    below = g.op("min", g.times(below, alpha), known(0, x.dtype))
    return g.op("add", g.op("relu", x), below)


@reads("ThresholdedRelu")
def thresholded_relu(g: Graph, node: Node) -> Operand:
    x = node.x
    above = g.op("greater", x, known(node.get("alpha", 1.0), x.dtype))
    return g.op("where", above, x, known(0, x.dtype))


@reads("Shrink")
def shrink(g: Graph, node: Node) -> Operand:
    """x + bias below -lambd, x - bias above lambd, else 0"""
    x, bias, limit = node.x, node.get("bias", 0.0), node.get("lambd", 0.5)
    low = g.op("lesser", x, known(-limit, x.dtype))
    high = g.op("greater", x, known(limit, x.dtype))
    inner = g.op("where", high, g.op("sub", x, known(bias, x.dtype)), known(0, x.dtype))
    return g.op("where", low, g.op("add", x, known(bias, x.dtype)), inner)


@reads("Mish")
def mish(g: Graph, node: Node) -> Operand:
    return g.op("mul", node.x, g.op("tanh", g.op("softplus", node.x)))


@reads("Swish")
def swish(g: Graph, node: Node) -> Operand:
    """x sigmoid(alpha x)"""
    return scaled_silu(g, node.x, node.get("alpha", 1.0))


def scaled_silu(g: Graph, x: Operand, alpha: float) -> Operand:
    """x sigmoid(alpha x)"""
    return g.op("silu", x) if alpha == 1 else g.op("glu", g.times(x, alpha), x, activation="sigmoid")


@reads("Gelu")
def gelu(g: Graph, node: Node) -> Operand:
    if node.get("approximate", "none") == "none":
        return g.op("gelu", node.x)
    invalid_if(node.get("approximate") != "tanh", f"approximate is '{node.get('approximate')}'; none or tanh")
    return g.op("gelu_tanh", node.x)


@reads("PRelu")
def prelu(g: Graph, node: Node) -> Operand:
    return g.op("prelu", node.x, node.operand(1))


@reads("Clip")
def clip(g: Graph, node: Node) -> Operand:
    """The bounds are attributes before operator set 11, and inputs after it."""
    x = node.x
    if node.opset < 11:
        bounds = {"min_value": node.get("min"), "max_value": node.get("max")}
        bounds = {name: float(value) for name, value in bounds.items() if value is not None}
        return g.op("clamp", x, **bounds) if bounds else x
    low, high = node.optional(1), node.optional(2)
    if all(b is None or (b.array is not None and b.array.dtype != object) for b in (low, high)):
        bounds = {
            name: b.array.reshape(-1)[0].item()
            for name, b in (("min_value", low), ("max_value", high))
            if b is not None and b.array.size == 1
        }
        if not (len(bounds) == 2 and bounds["min_value"] > bounds["max_value"]):
            return g.op("clamp", x, **bounds) if bounds else x
    if low is not None:
        x = g.op("max", x, low)
    return x if high is None else g.op("min", x, high)


@reads("Dropout")
def dropout(g: Graph, node: Node) -> list[Operand]:
    """In inference the input itself."""
    training = node.optional(2)
    if training is not None and (training.array is None or training.array.any()):
        ratio = node.optional(1) or known(0.5, "f32")
        return dropped(g, node, node.x, ratio, training)[: max(len(node.outputs), 1)]
    x = g.op("identity", node.x)
    if not node.wants(1):
        return [x]
    dtype = "bool" if node.opset >= 10 else node.x.dtype
    return [x, g.filled(np.True_ if dtype == "bool" else 1, dtype, g.shape(node.x))]
