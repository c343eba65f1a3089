"""Which ATen ops have a lowering, as Markdown: `python -m executorch_ggml.coverage [FILE]`."""

from __future__ import annotations

import argparse
import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

from . import ops  # fills the table
from .translate import LOWERINGS

BACKWARD = "a gradient: programs for inference have none"
RANDOM = "random numbers: results could not be reproduced"
EXTENTS = "arithmetic of extents, which ExecuTorch does outside of delegates"
COMPLEX = "complex numbers, which the catalog does not have"
REASONS = {
    "aten._adaptive_avg_pool2d_backward.default": BACKWARD,
    "aten.avg_pool2d_backward.default": BACKWARD,
    "aten.convolution_backward.default": BACKWARD,
    "aten.embedding_dense_backward.default": BACKWARD,
    "aten.max_pool2d_with_indices_backward.default": BACKWARD,
    "aten.native_group_norm_backward.default": BACKWARD,
    "aten.native_layer_norm_backward.default": BACKWARD,
    "aten.rand.default": RANDOM,
    "aten.randn.default": RANDOM,
    "aten.randperm.default": RANDOM,
    "aten.sym_is_contiguous.default": EXTENTS,
    "aten.sym_numel.default": EXTENTS,
    "aten.sym_size.int": EXTENTS,
    "aten.sym_storage_offset.default": EXTENTS,
    "aten.sym_stride.int": EXTENTS,
    "aten._local_scalar_dense.default": "makes a number of a tensor, which leaves the delegate",
    "aten._fft_c2r.default": COMPLEX,
    "aten._fft_r2c.default": COMPLEX,
    "aten.nonzero.default": "the result's extent depends on the data",
    "aten._native_batch_norm_legit.default": "training: changes the running statistics in place",
    "aten.atan2.out": "writes into an operand; export gives atan2.default",
    "aten.resize_.default": "changes an operand in place; export leaves none",
}


def core_aten() -> list[str]:
    """The overloads that PyTorch tags as core, such as "aten.add.Tensor"."""
    names = []
    for name in sorted(dir(torch.ops.aten)):
        packet = getattr(torch.ops.aten, name)
        for overload in getattr(packet, "overloads", list)():
            if torch.Tag.core in getattr(packet, overload).tags:
                names.append(f"aten.{name}.{overload}")
    return names


def lowering(name: str) -> Callable[..., Any] | None:
    """The edge dialect has copying forms of ops that give views."""
    base, overload = name.rsplit(".", 1)
    return LOWERINGS.get(name) or LOWERINGS.get(f"{base}_copy.{overload}")


def covered(name: str) -> bool:
    return lowering(name) is not None


def _texts(argument: ast.expr, known: dict[str, Any]) -> Iterator[str]:
    """The strings that an argument can be: written or chosen there, or bound by the enclosing function."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    elif isinstance(argument, ast.IfExp):
        yield from _texts(argument.body, known)
        yield from _texts(argument.orelse, known)
    elif isinstance(argument, ast.Name) and isinstance(known.get(argument.id), str):
        yield known[argument.id]


@cache
def catalog_ops(function: Callable[..., Any]) -> frozenset[str]:
    """The catalog's ops that a lowering names, itself or in the functions that it calls."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)).strip().rstrip(","))
    except (SyntaxError, OSError):  # a lambda within an expression
        return frozenset()
    bound = inspect.getclosurevars(function)
    known = dict(bound.globals) | dict(bound.nonlocals)
    found: set[str] = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method in ("op", "ops"):
            found.update(_texts(call.args[0], known))
        elif method in ("cast", "transpose", "reshape"):  # the translator's own
            found.add(method)
        called = known.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if _is_ours(called) and "op" in (parameters := list(inspect.signature(called).parameters)):
            found.update(_texts(call.args[parameters.index("op")], known))
    for name in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
        used = known.get(name)
        for called in used.values() if isinstance(used, dict) else [used]:
            if _is_ours(called) and called != function:
                found |= catalog_ops(called)
    return frozenset(found)


def _is_ours(function: Any) -> bool:
    return inspect.isfunction(function) and function.__module__.startswith(ops.__name__)


def page() -> str:
    names = core_aten()
    done = [name for name in names if covered(name)]

    def is_core(name: str) -> bool:
        return name in names or name.replace("_copy.", ".") in names

    others = sum(not is_core(name) for name in LOWERINGS)
    lines = [
        "# ATen ops of the ExecuTorch door",
        "",
        "Written by `python -m executorch_ggml.coverage` from the table of lowerings; `make docs` renews it.",
        "",
        f"{len(LOWERINGS)} overloads have a lowering:",
        "",
        f"- {len(LOWERINGS) - others} of core ATen: {len(done)} of its overloads, and copying forms that",
        "  the edge dialect has.",
        f"- {others} others: ops that export keeps whole for this backend, quantisation, and some that pass",
        "  export only with a `compile_config` ([what falls back](executorch.md#what-falls-back)).",
        "",
        "A node also needs operands that its lowering can take, in their data types as in their shapes:",
        "`GgmlPartitioner(report=True)` gives the reason for each that is not delegated, and so falls back",
        "to ExecuTorch's own kernels.",
        "",
        "## Core ATen",
        "",
        f"{len(done)} of {len(names)} overloads have a lowering. The others:",
        "",
        "| overload | why not |",
        "|---|---|",
        *(f"| {name} | {REASONS.get(name, 'not written yet')} |" for name in names if name not in done),
        "",
        "## Lowerings",
        "",
        "The catalog's ops are those that the lowering's code names; an empty cell: none, or computed names.",
        "",
        "| overload | core | the catalog's ops |",
        "|---|---|---|",
    ]
    for name, function in sorted(LOWERINGS.items()):
        core = "yes" if is_core(name) else ""
        lines.append(f"| {name} | {core} | {', '.join(sorted(catalog_ops(function)))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m executorch_ggml.coverage", description="Print which ATen ops have a lowering."
    )
    parser.add_argument("file", nargs="?", type=Path, help="where to write the page, in place of printing it")
    file = parser.parse_args().file
    if file:
        file.write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
