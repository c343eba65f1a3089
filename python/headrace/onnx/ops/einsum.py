"""Einsum as products of matrices."""

from __future__ import annotations

import string

from ..graph import Extent, Graph, Operand, is_number, product
from ..registry import Node, invalid_if, reads
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


def _diagonal(g: Graph, x: Operand, labels: str) -> tuple[Operand, str]:
    """Where a letter is there twice, the elements whose indices are the same in both dimensions."""
    for letter in dict.fromkeys(labels):
        while labels.count(letter) > 1:
            first, second = labels.index(letter), labels.rindex(letter)
            rest = [i for i in range(len(labels)) if i not in (first, second)]
            sizes = g.shape(x)
            count = sizes[first]
            both = (count, sizes[second])
            invalid_if(
                not any(isinstance(d, Extent) for d in both) and both[0] != both[1],
                f"dimensions '{letter}' are {count} and {sizes[second]}",
            )
            flat = g.reshape(
                g.transpose(x, [*rest, first, second]), [*(sizes[i] for i in rest), count * count]
            )
            x = g.op("gather", flat, g.times(g.positions(count), count + 1), axis=len(rest))
            labels = "".join(labels[i] for i in rest) + letter
    return x, labels


def _without_ones(g: Graph, operands: list[tuple[Operand, str]]) -> list[tuple[Operand, str]]:
    """A single element goes with all of another operand: without that dimension."""
    found: list[tuple[Operand, str]] = []
    for x, labels in operands:
        sizes = dict(zip(labels, g.shape(x), strict=True))
        longer = {
            letter
            for other, its in operands
            for letter, size in zip(its, g.shape(other), strict=True)
            if is_number(sizes.get(letter, 0), 1) and not is_number(size, 1)
        }
        kept = "".join(letter for letter in labels if letter not in longer)
        found.append((g.reshape(x, [sizes[letter] for letter in kept]), kept))
    return found


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
    y = product_of(
        g, _grouped(g, a, left, [batch, rows, inner]), _grouped(g, b, right, [batch, inner, columns])
    )
    sizes |= dict(zip(batch, g.shape(y), strict=False))  # one of the two may be 1
    labels = batch + rows + columns
    return g.reshape(y, [sizes[c] for c in labels]), labels


@reads("Einsum")
def einsum(g: Graph, node: Node) -> Operand:
    terms, result = _labels(g, node)
    operands = [_diagonal(g, node.operand(i), term) for i, term in enumerate(terms)]
    operands = _without_ones(g, operands)
    terms = [term for _, term in operands]
    x, labels = operands[0]
    for i in range(1, len(terms)):
        kept = set(result).union(*terms[i + 1 :])
        x, labels = _pair(g, x, operands[i][0], labels, terms[i], kept)
    x, labels = _without(g, x, labels, set(result))
    x = g.transpose(x, [labels.index(letter) for letter in result])
    return x if x is not node.x else g.op("identity", x)
