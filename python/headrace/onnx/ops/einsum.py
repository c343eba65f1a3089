"""Einsum as products of matrices."""

from __future__ import annotations

import string

from ..graph import Graph, Operand, product
from ..registry import Node, invalid_if, reads, refuse_if
from .linear_algebra import product_of


def _labels(g: Graph, node: Node) -> tuple[list[str], str]:
    """Of each operand and of the result; an ellipsis becomes letters, the last of them for the last one."""
    equation = node.get("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    invalid_if(
        len(terms) != len(node.inputs),
        f"equation '{equation}' has {len(terms)} terms for {len(node.inputs)} inputs",
    )
    free = [letter for letter in string.ascii_letters if letter not in equation]
    longest = 0
    for i, term in enumerate(terms):
        if "..." in term:
            hidden = g.rank(node.operand(i)) - len(term.replace("...", ""))
            invalid_if(hidden < 0, f"'{term}' of equation '{equation}' has more dimensions than input {i}")
            terms[i] = term.replace("...", "".join(free[:hidden][::-1]))
            longest = max(longest, hidden)
        rank = g.rank(node.operand(i))
        invalid_if(
            len(terms[i]) != rank,
            f"'{term}' of equation '{equation}' is for another rank than input {i}'s {rank}",
        )
    every = "".join(free[:longest][::-1])
    if arrow:
        result = right.replace("...", every)
    else:
        letters = sorted(set("".join(terms)) - set(every))
        result = every + "".join(c for c in letters if "".join(terms).count(c) == 1)
    missing = set(result) - set("".join(terms))
    invalid_if(
        missing or len(set(result)) != len(result),
        f"the result '{right}' of equation '{equation}' has a letter that no input has, or one twice",
    )
    return terms, result


def _without(g: Graph, x: Operand, labels: str, kept: set[str]) -> tuple[Operand, str]:
    """Summed over the dimensions that nobody needs any more."""
    axes = [i for i, letter in enumerate(labels) if letter not in kept]
    if axes:
        x = g.op("reduce_sum", x, axes=axes)
    return x, "".join(letter for letter in labels if letter in kept)


def _grouped(g: Graph, x: Operand, labels: str, groups: list[str]) -> Operand:
    """Transposed into the groups' order; all but the first become one dimension each."""
    order = [labels.index(letter) for group in groups for letter in group]
    x = g.transpose(x, order)
    sizes, shape, at = g.shape(x), [], 0
    for i, group in enumerate(groups):
        part = sizes[at : at + len(group)]
        shape += part if i == 0 else [product(part)]
        at += len(group)
    return g.reshape(x, shape)


def _pair(g: Graph, a: Operand, b: Operand, left: str, right: str, kept: set[str]) -> tuple[Operand, str]:
    a, left = _without(g, a, left, kept | set(right))
    b, right = _without(g, b, right, kept | set(left))
    batch = "".join(c for c in left if c in right and c in kept)
    inner = "".join(c for c in left if c in right and c not in kept)
    rows = "".join(c for c in left if c not in right)
    columns = "".join(c for c in right if c not in left)
    sizes = dict(zip(left, g.shape(a), strict=True)) | dict(zip(right, g.shape(b), strict=True))
    for letter in batch:  # one of the two may be 1
        own = g.shape(a)[left.index(letter)]
        sizes[letter] = own if sizes[letter] == 1 else sizes[letter]
    y = product_of(
        g, _grouped(g, a, left, [batch, rows, inner]), _grouped(g, b, right, [batch, inner, columns])
    )
    labels = batch + rows + columns
    return g.reshape(y, [sizes[c] for c in labels]), labels


@reads("Einsum")
def einsum(g: Graph, node: Node) -> Operand:
    terms, result = _labels(g, node)
    for term in terms:
        refuse_if(
            len(set(term)) != len(term),
            f"'{term}' of equation '{node.get('equation')}' has a dimension twice, which is a diagonal",
            "Take the diagonal before it (Gather, or Mul with EyeLike and ReduceSum), or outside the model",
        )
    x, labels = node.x, terms[0]
    for i in range(1, len(terms)):
        kept = set(result).union(*terms[i + 1 :])
        x, labels = _pair(g, x, node.operand(i), labels, terms[i], kept)
    x, labels = _without(g, x, labels, set(result))
    x = g.transpose(x, [labels.index(letter) for letter in result])
    return x if x is not node.x else g.op("identity", x)
