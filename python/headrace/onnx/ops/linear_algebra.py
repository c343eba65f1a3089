"""Products of matrices."""

from __future__ import annotations

from ..graph import Graph, Operand, is_same
from ..registry import Node, invalid_if, reads, refuse_if


@reads("MatMul")
def matmul(g: Graph, node: Node) -> Operand:
    return product_of(g, node.x, node.operand(1))


def product_of(g: Graph, a: Operand, b: Operand) -> Operand:
    """As numpy.matmul; vectors become rows and columns, and integers are exact."""
    invalid_if(
        0 in (g.rank(a), g.rank(b)),
        f"the operands have {g.rank(a)} and {g.rank(b)} dimensions; 1 is the least",
    )
    is_row, is_column = g.rank(a) == 1, g.rank(b) == 1
    if is_row:
        a = g.reshape(a, [1, *g.shape(a)])
    if is_column:
        b = g.reshape(b, [*g.shape(b), 1])
    y = g.op("matmul", a, b) if a.is_float else _whole_product(g, a, b)
    shape = g.shape(y)
    if is_column:
        shape = shape[:-1]
    if is_row:
        shape = [*shape[: -1 if is_column else -2], *([] if is_column else shape[-1:])]
    return g.reshape(y, shape)


def _whole_product(g: Graph, a: Operand, b: Operand) -> Operand:
    """Every product by itself, since integers wrap: [..., m, k, 1] times [..., 1, k, n], summed over k."""
    rows = g.reshape(a, [*g.shape(a), 1])
    columns = g.reshape(b, [*g.shape(b)[:-2], 1, *g.shape(b)[-2:]])
    products = g.op("mul", rows, columns)
    return g.op("reduce_sum", products, axes=[g.rank(products) - 2])


@reads("Gemm")
def gemm(g: Graph, node: Node) -> Operand:
    """alpha A B + beta C, A and B perhaps transposed"""
    a, b, c = node.x, node.operand(1), node.optional(2)
    alpha, beta = float(node.get("alpha", 1.0)), float(node.get("beta", 1.0))
    invalid_if(
        g.rank(a) != 2 or g.rank(b) != 2, f"A and B have {g.rank(a)} and {g.rank(b)} dimensions, not 2"
    )
    c = None if beta == 0 else c
    if alpha == 1 and beta in (0, 1) and not node.get("transA", 0) and _is_addend(g, a, b, c, node):
        return g.op("gemm", a, b, c, b_transpose=bool(node.get("transB", 0)))
    if node.get("transA", 0):
        a = g.transpose(a, [1, 0])
    if node.get("transB", 0):
        b = g.transpose(b, [1, 0])
    y = product_of(g, a, b)
    whole = alpha.is_integer() and beta.is_integer()
    refuse_if(
        not a.is_float and not whole,
        f"alpha is {alpha} and beta {beta}, and the operands are {a.dtype}; whole numbers are read",
        "Cast the operands to float before it",
    )
    y = g.times(y, alpha if a.is_float else int(alpha))
    if c is None:
        return y
    return g.op("add", y, g.times(c, beta if a.is_float else int(beta)))


def _is_addend(g: Graph, a: Operand, b: Operand, c: Operand | None, node: Node) -> bool:
    """Whether C is what the kernels of the op gemm add: rows as long as the product's."""
    if not a.is_float or c is None or g.rank(c) == 0:
        return a.is_float and c is None
    return is_same(g.shape(c)[-1], g.shape(b)[0 if node.get("transB", 0) else 1])
