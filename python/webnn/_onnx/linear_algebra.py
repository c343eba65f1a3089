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
