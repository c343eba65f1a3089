"""From ATen nodes of an exported program to ops of the catalog."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import sympy
import torch
from executorch.exir.tensor import dim_order_from_stride
from headrace._core import GraphWriter, factors_of
from headrace._core import product as merged  # of extents that become one

DTYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float64: "f64",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "bool",
}

TORCH_DTYPES = {name: dtype for dtype, name in DTYPES.items()}

MOST_DIMENSIONS = 8
UNBOUNDED = 2**62
Value = int
Extent = int | tuple[str, int, int]  # a number, or (symbol, least, most)
EXTENT_OPS = {torch.ops.aten.sym_size.int, operator.add, operator.sub, operator.mul, operator.floordiv}


class Unsupported(Exception):
    """Why a node stays with ExecuTorch's own kernels."""


def dtype_name(dtype: torch.dtype) -> str:
    if dtype not in DTYPES:
        raise Unsupported(f"dtype {dtype}")
    return DTYPES[dtype]


@cache
def _factors(expression: sympy.Expr) -> list[Extent]:
    """An expression is named by what it says, "(s0 + 1)", in parentheses unless it is a symbol."""
    is_polynomial = expression.is_polynomial(*expression.free_symbols)
    factors: list[Extent] = []
    for factor in sympy.Mul.make_args(sympy.factor(expression) if is_polynomial else expression):
        base, power = factor.as_base_exp()
        if not power.is_Integer or power < 0 or (base.is_number and not (base.is_Integer and base > 0)):
            return [(f"({expression})", 0, UNBOUNDED)]
        name = str(base) if base.is_Symbol else f"({base})"
        factors += [int(base) if base.is_number else (name, 0, UNBOUNDED)] * int(power)
    return factors


def extent(dim: int | torch.SymInt) -> Extent:
    """An expression of symbols is a symbol, too, and a product of them is known to be one."""
    if isinstance(dim, int):
        return dim
    expression = dim.node.expr
    if expression.is_number:
        return int(expression)
    bounds = dim.node.shape_env.bound_sympy(expression)
    # PyTorch's integer infinity says that it is finite.
    most = int(bounds.upper) if bounds.upper < UNBOUNDED else UNBOUNDED
    # Export sees a range from 1 as one from 2, since it treats a size of 1 apart; nothing here does.
    least = 1 if bounds.lower >= 2 else 0
    return merged(_factors(expression))[0], least, most


def extents(shape: Any) -> list[Extent]:
    return [extent(dim) for dim in shape]


def memory_order(val: torch.Tensor) -> list[int]:
    """A tensor's dimensions from the outermost in memory to the innermost, as the program will say it."""
    return [int(dim) for dim in dim_order_from_stride(val.stride())]


def _has_doubtful_order(val: torch.Tensor) -> bool:
    """nonzero says that its result lies column by column, and ExecuTorch's kernel writes it row by row."""
    if all(isinstance(s, int) or s.node.hint is not None for s in val.stride()):
        return False
    wide = [
        dim for dim in memory_order(val) if isinstance(val.shape[dim], torch.SymInt) or val.shape[dim] > 1
    ]
    return wide != sorted(wide)


def is_extent(node: torch.fx.Node) -> bool:
    """A size of a tensor, or arithmetic of sizes."""
    return isinstance(node.meta.get("val"), torch.SymInt) and node.target in EXTENT_OPS


def bytes_of(tensor: torch.Tensor) -> np.ndarray:
    """The elements' bytes, in order."""
    dense = tensor.detach().cpu().contiguous()
    return dense.reshape(-1).view(torch.uint8).numpy() if dense.numel() else np.zeros(0, np.uint8)


class Translator:
    """A graph in the making. ATen arguments come as the FX graph has them.

    is_trial: of one node, whose extents may come from nodes that are not there.
    """

    def __init__(self, is_trial: bool = False) -> None:
        self.writer, self.is_trial = GraphWriter(), is_trial
        self.values: dict[torch.fx.Node, Any] = {}  # a value, or a list of values for a tuple
        self.given: set[str] = set()  # symbols that the inputs' shapes give
        self.made: dict[str, Extent] = {}  # ATen's expressions, and what an op here calls that extent
        self.label = ""  # of the ops that are added: the node's name

    # --- operands -----------------------------------------------------------------------------------

    def value(self, arg: Any) -> Value:
        """A tensor argument."""
        if not isinstance(arg, torch.fx.Node):
            raise Unsupported(f"{arg!r} where a tensor is expected")
        return self.values[arg]

    def optional(self, arg: Any) -> Value | None:
        return None if arg is None else self.value(arg)

    def input(self, name: str, val: torch.Tensor) -> Value:
        if val.dim() > MOST_DIMENSIONS:
            raise Unsupported(f"a tensor of {val.dim()} dimensions; {MOST_DIMENSIONS} are the most")
        shape = extents(val.shape)
        self.given.update(symbol[0] for symbol in shape if isinstance(symbol, tuple))
        return self.writer.input(name, dtype_name(val.dtype), shape)

    def number(self, arg: Any) -> int | float | bool:
        """A scalar argument that is known now."""
        if isinstance(arg, torch.fx.Node):
            arg = arg.meta["val"]
        if isinstance(arg, torch.SymInt):
            arg = extent(arg)
        if isinstance(arg, tuple):
            raise Unsupported(f"the number {arg[0]} is known only at run time")
        if not isinstance(arg, (int, float, bool)):
            raise Unsupported(f"{arg!r} where a number is expected")
        return arg

    def dtype(self, value: Value) -> str:
        return self.writer.dtype(value)

    def is_blocks(self, value: Value) -> bool:
        return self.writer.is_blocks(value)

    def shape(self, value: Value) -> list[int | tuple[str, int, int]]:
        return self.writer.shape(value)

    def rank(self, value: Value) -> int:
        return len(self.shape(value))

    def axis(self, value: Value, dim: int) -> int:
        return dim % max(self.rank(value), 1)

    # --- results ------------------------------------------------------------------------------------

    def ops(self, name: str, operands: list[Value | None], **attributes: Any) -> list[Value]:
        while operands and operands[-1] is None:
            operands = operands[:-1]
        for key, value in attributes.items():
            if isinstance(value, list) and any(isinstance(item, tuple) for item in value):
                attributes[key] = self._known(value, operands)
        try:
            return self.writer.op(name, operands, attributes, self.label)
        except ValueError as error:
            raise Unsupported(str(error)) from None

    def _known(self, shape: list[Extent], operands: list[Value | None]) -> list[Extent]:
        """The shape in the words of this graph. What nothing before it has at run time cannot be had."""
        here = {e for v in operands if v is not None for e in self.shape(v) if isinstance(e, tuple)}
        names = self.given | {symbol[0] for symbol in here}
        names |= {factor[0] for e in here for factor in factors_of(e) if isinstance(factor, tuple)}
        known = [self.named(e) for e in shape]
        for e in known:
            if isinstance(e, int) or e[0] in names or self.is_trial:
                continue
            if any(isinstance(factor, tuple) and factor[0] not in names for factor in factors_of(e)):
                raise Unsupported(f"extent {e[0]} is not one of its operands' or of an input's")
        return known

    def named(self, e: Extent) -> Extent:
        """An extent of ATen's in the words of this graph."""
        if isinstance(e, int) or e[0] in self.made:
            return e if isinstance(e, int) else self.made[e[0]]
        here = [f if isinstance(f, int) else self.made.get(f[0], f) for f in factors_of(e)]
        return merged(here)[0], *e[1:]

    def learn(self, value: Value, shape: Any) -> None:
        """Remembers what a result's extents are called here. Those that ATen leaves open must be open."""
        for ours, theirs in zip(self.shape(value), extents(shape), strict=True):
            if isinstance(theirs, int):
                continue
            if isinstance(ours, int):
                raise Unsupported(f"extent {ours} where ATen has {theirs[0]}")
            if theirs[0] not in self.given:
                self.made.setdefault(theirs[0], ours)

    def op(self, name: str, *operands: Value | None, **attributes: Any) -> Value:
        return self.ops(name, list(operands), **attributes)[0]

    def constant(self, tensor: torch.Tensor, key: str = "") -> Value:
        dtype = dtype_name(tensor.dtype)
        return self.writer.constant(dtype, list(tensor.shape), bytes_of(tensor), key)

    def scalar(self, number: float | int | bool, dtype: str) -> Value:
        try:
            return self.constant(torch.tensor(number, dtype=TORCH_DTYPES[dtype]))
        except (RuntimeError, OverflowError) as error:
            raise Unsupported(f"the number {number} as {dtype}") from error

    def cast(self, value: Value, dtype: str) -> Value:
        return value if self.dtype(value) == dtype else self.op("cast", value, data_type=f"dtype:{dtype}")

    def reshape(self, value: Value, shape: list[Any]) -> Value:
        shape = [self.named(e) for e in shape]
        return value if self.shape(value) == shape else self.op("reshape", value, new_shape=shape)

    def transpose(self, value: Value, permutation: list[int]) -> Value:
        if permutation == list(range(len(permutation))):
            return value
        return self.op("transpose", value, permutation=permutation)

    def expand(self, value: Value, shape: list[Extent]) -> Value:
        return value if self.shape(value) == shape else self.op("expand", value, new_shape=shape)

    def filled(self, number: float | int | bool, dtype: str, shape: list[Extent]) -> Value:
        scalar = self.scalar(number, dtype)
        return self.op("expand", scalar, new_shape=shape) if shape else scalar

    def positions(self, count: Extent, dtype: str = "i64") -> Value:
        """0, 1, 2, ... up to an extent that may be known only at run time."""
        if isinstance(count, int):
            return self.constant(torch.arange(count, dtype=TORCH_DTYPES[dtype]))
        return self.op("cumulative_sum", self.filled(1, dtype, [count]), axis=0, exclusive=True)


# --- the table ----------------------------------------------------------------------------------------

Lowering = Callable[[Translator, torch.fx.Node], Any]
LOWERINGS: dict[str, Lowering] = {}


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Registers a function for ATen overloads, such as "aten.add.Tensor"."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            assert name not in LOWERINGS, f"{name} is lowered twice"
            LOWERINGS[name] = function
        return function

    return register


def target_name(node: torch.fx.Node) -> str:
    """ "aten.add.Tensor", of the ATen or the edge dialect alike."""
    if node.target is operator.getitem:
        return "getitem"
    return overload_name(node.target)


def overload_name(target: Any) -> str:
    schema = getattr(target, "_schema", None)
    if schema is None:
        return str(target)
    overload = schema.overload_name or "default"
    return f"{schema.name.replace('::', '.')}.{overload}"


def arguments(node: torch.fx.Node) -> dict[str, Any]:
    """A node's arguments by their names in the op's schema, those that are left out with its defaults."""
    schema = node.target._schema.arguments
    defaults = {a.name: a.default_value for a in schema if a.has_default_value()}
    return defaults | dict(zip((a.name for a in schema), node.args, strict=False)) | dict(node.kwargs)


def translate(translator: Translator, node: torch.fx.Node) -> None:
    """Adds a node's op; raises Unsupported with the reason."""
    name = target_name(node)
    if is_extent(node):
        return  # shapes say it
    translator.label = node.name
    if name == "getitem":
        parts = translator.values[node.args[0]]
        if node.args[1] >= len(parts) or parts[node.args[1]] is None:
            raise Unsupported(f"result {node.args[1]} of {target_name(node.args[0])}")
        translator.values[node] = parts[node.args[1]]
    elif name in LOWERINGS:
        translator.values[node] = LOWERINGS[name](translator, node)
    else:
        raise Unsupported("no lowering")
    expected = node.meta.get("val")
    if isinstance(expected, torch.Tensor):
        result = translator.cast(translator.values[node], dtype_name(expected.dtype))
        if translator.rank(result) != expected.dim():
            raise Unsupported(f"rank {translator.rank(result)} where ATen has {expected.dim()}")
        translator.learn(result, expected.shape)
        translator.values[node] = result


def why_not(node: torch.fx.Node) -> str | None:
    """None when a node can be delegated, else the reason: a trial with operands of its operands' types."""
    producer = node.args[0] if target_name(node) == "getitem" else None
    if isinstance(producer, torch.fx.Node):
        return first_refused([producer, node], is_trial=True)[1]
    return first_refused([node], is_trial=True)[1]


def first_refused(
    nodes: list[torch.fx.Node], is_trial: bool = False
) -> tuple[torch.fx.Node | None, str | None]:
    """The first of some nodes, in order, that cannot be translated along with those before it, and why."""
    translator, inside = Translator(is_trial), set(nodes)
    for node in nodes:
        try:
            for operand in node.all_input_nodes:
                if operand not in inside and operand not in translator.values:
                    _declare(translator, operand)
            translate(translator, node)
        except Unsupported as error:
            return node, str(error)
    return None, None


def _declare(translator: Translator, operand: torch.fx.Node) -> None:
    val = operand.meta.get("val")
    if isinstance(val, torch.Tensor):
        if _has_doubtful_order(val):
            raise Unsupported(f"ExecuTorch is not clear about the order of {operand.name} in memory")
        translator.values[operand] = translator.input(f"operand{len(translator.values)}", val)
    elif isinstance(val, (tuple, list)):
        raise Unsupported("an operand is a tuple")
