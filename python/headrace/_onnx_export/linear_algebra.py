"""Products of matrices."""

from __future__ import annotations

from .registry import REAL, Node, lowers
from .writer import Writer


@lowers("matmul", through=REAL)
def matmul(w: Writer, n: Node) -> str:
    return w.node("MatMul", n.inputs)


@lowers("gemm", through=REAL, operands=3)
def gemm(w: Writer, n: Node) -> str:
    a = n.attributes
    return w.node(
        "Gemm",
        n.inputs,
        alpha=a["alpha"],
        beta=a["beta"],
        transA=int(a["a_transpose"]),
        transB=int(a["b_transpose"]),
    )


_ACTIVATIONS = {"relu": "Relu", "gelu": "Gelu", "tanh": "Tanh", "sigmoid": "Sigmoid"}


def activated(w: Writer, y: str, activation: str) -> str:
    """What a fused operator applies to its sums."""
    if activation == "silu":
        return w.node("Mul", [y, w.node("Sigmoid", [y])])
    return y if activation == "none" else w.node(_ACTIVATIONS[activation], [y])


@lowers("fused_matmul", through=REAL, operands=4)
def fused_matmul(w: Writer, n: Node) -> str:
    """What low-power contexts make of a product with quantised weights, whose values are exported."""
    a, b, bias, residual = n.inputs
    if n.attributes["transpose_b"]:
        b = w.node("Transpose", [b], perm=[1, 0])
    y = w.node("MatMul", [a, b])
    if bias is not None:
        y = w.node("Add", [y, bias])
    y = activated(w, y, n.attributes["activation"])
    return y if residual is None else w.node("Add", [y, residual])
