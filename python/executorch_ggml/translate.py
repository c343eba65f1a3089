"""From ATen nodes of an exported program to ops of the catalog."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np
import sympy
import torch
from executorch.exir.tensor import dim_order_from_stride
from headrace._core import Extent, GraphWriter
from torch.utils._sympy import functions

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
Dim = int | Extent  # of a shape
EXTENT_OPS = {torch.ops.aten.sym_size.int, operator.add, operator.sub, operator.mul, operator.floordiv}


class Unsupported(Exception):
    """Why a node stays with ExecuTorch's own kernels."""


# Whether errors that are no refusals, defects of this package, are raised: in tests. Elsewhere they leave
# their node to ExecuTorch, and the report names them.
raises_defects = False


def reason_of(error: Exception) -> str:
    """Why a node is left, of what its lowering raised."""
    if isinstance(error, Unsupported):
        return str(error)
    if raises_defects:
        raise error
    return f"{DEFECT}{type(error).__name__}: {error}"


DEFECT = "a defect of executorch_ggml, "


def dtype_name(dtype: torch.dtype) -> str:
    if dtype not in DTYPES:
        raise Unsupported(f"dtype {dtype}")
    return DTYPES[dtype]


def merged(extents: Iterable[Dim]) -> Dim:
    """Extents that become one."""
    return reduce(operator.mul, extents, 1)


def is_same(a: list[Dim], b: list[Dim]) -> bool:
    """Whether shapes are equal whatever the symbols' values are."""
    return len(a) == len(b) and all(
        x.equals(y) is True if isinstance(x, Extent) else isinstance(y, int) and x == y
        for x, y in zip(a, b, strict=True)
    )


_FUNCTIONS: dict[Any, Callable[..., Dim]] = {
    sympy.Add: lambda *of: reduce(operator.add, of),
    sympy.Mul: lambda *of: reduce(operator.mul, of),
    functions.FloorDiv: operator.floordiv,
    functions.CleanDiv: operator.floordiv,
    functions.CeilDiv: lambda a, b: a.divided_up(b) if isinstance(a, Extent) else -(-a // b),
    functions.Mod: operator.mod,
    functions.PythonMod: operator.mod,
    functions.Max: lambda *of: Extent.largest(of),
    functions.Min: lambda *of: Extent.smallest(of),
    sympy.Max: lambda *of: Extent.largest(of),
    sympy.Min: lambda *of: Extent.smallest(of),
}


def _translated(expression: sympy.Expr, env: Any) -> Dim | None:
    """SymPy's expression in ours; None where it has functions that ours does not."""
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return Extent.symbol(str(expression), *_bounds(expression, env))
    if expression.is_Pow and expression.exp.is_Integer and 0 <= int(expression.exp) <= 16:
        base = _translated(expression.base, env)
        return None if base is None else merged([base] * int(expression.exp))
    whole, divisor = (
        sympy.fraction(sympy.together(expression))
        if expression.is_Add or expression.is_Mul
        else (
            expression,
            sympy.Integer(1),
        )
    )
    if divisor != 1:  # SymPy's quotient is exact, ours is rounded down, which is the same then
        above, below = _translated(whole, env), _translated(divisor, env)
        return None if above is None or below is None else above // below
    function = _FUNCTIONS.get(expression.func)
    operands = [_translated(argument, env) for argument in expression.args]
    if function is None or any(operand is None for operand in operands):
        return None
    return function(*operands)


def _bounds(expression: sympy.Expr, env: Any) -> tuple[int, int]:
    bounds = env.bound_sympy(expression)
    # PyTorch's integer infinity says that it is finite.
    most = int(bounds.upper) if bounds.upper < UNBOUNDED else UNBOUNDED
    # Export sees a range from 1 as one from 2, since it treats a size of 1 apart; nothing here does.
    return 1 if bounds.lower >= 2 else 0, most


def extent(dim: int | torch.SymInt) -> Dim:
    """An expression of symbols; one that has none in ours is a symbol of that name."""
    if isinstance(dim, int):
        return dim
    expression, env = dim.node.expr, dim.node.shape_env
    if expression.is_number:
        return int(expression)
    translated = _translated(expression, env)
    return Extent.named(str(expression), *_bounds(expression, env)) if translated is None else translated


def is_open(e: Any) -> bool:
    """Whether an extent is known only at run time."""
    return isinstance(e, Extent)


def extents(shape: Any) -> list[Dim]:
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


def is_extent(node: Any) -> bool:
    """A size of a tensor, or arithmetic of sizes."""
    return (
        isinstance(node, torch.fx.Node)
        and isinstance(node.meta.get("val"), torch.SymInt)
        and node.target in EXTENT_OPS
    )


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
        self.made: dict[str, Dim] = {}  # ATen's expressions, and what an op here calls that extent
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
        self.given.update(name for e in shape if is_open(e) for name in e.told)
        return self.written("input", name, dtype_name(val.dtype), shape)

    def written(self, what: str, *arguments: Any) -> Any:
        """The writer's call of that name; what the catalog refuses is the reason."""
        try:
            return getattr(self.writer, what)(*arguments)
        except ValueError as error:
            raise Unsupported(str(error)) from None

    def number(self, arg: Any) -> int | float | bool:
        """A scalar argument that is known now."""
        if isinstance(arg, torch.fx.Node):
            arg = arg.meta["val"]
        if isinstance(arg, torch.SymInt):
            arg = extent(arg)
        if is_open(arg):
            raise Unsupported(f"the number {arg} is known only at run time")
        if not isinstance(arg, (int, float, bool)):
            raise Unsupported(f"{arg!r} where a number is expected")
        return arg

    def extent(self, arg: Any) -> Dim:
        """An integer argument, which may follow from shapes that a run has."""
        if isinstance(arg, torch.fx.Node):
            arg = arg.meta["val"]
        return self.named(extent(arg)) if isinstance(arg, torch.SymInt) else int(self.number(arg))

    def dtype(self, value: Value) -> str:
        return self.writer.dtype(value)

    def is_blocks(self, value: Value) -> bool:
        return self.writer.is_blocks(value)

    def shape(self, value: Value) -> list[Dim]:
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
            if isinstance(value, list) and any(is_open(item) for item in value):
                attributes[key] = self._known(value, operands)
        return self.written("op", name, operands, attributes, self.label)

    def _known(self, shape: list[Dim], operands: list[Value | None]) -> list[Dim]:
        """The shape in the words of this graph. What nothing before it has at run time cannot be had."""
        had = [e for v in operands if v is not None for e in self.shape(v) if is_open(e)]
        names = self.given | {name for e in had for name in e.told}
        known = [self.named(e) for e in shape]
        for e in known:
            if is_open(e) and not self.is_trial and str(e) not in names and not names.issuperset(e.symbols):
                raise Unsupported(f"extent {e} is not one of its operands' or of an input's")
        return known

    def named(self, e: Dim) -> Dim:
        """An extent of ATen's in the words of this graph."""
        if not is_open(e) or not self.made:
            return e
        return self.made[str(e)] if str(e) in self.made else e.substituted(self.made)

    def learn(self, value: Value, shape: Any) -> None:
        """Remembers what a result's extents are called here. Those that ATen leaves open must be open."""
        for ours, theirs in zip(self.shape(value), extents(shape), strict=True):
            if not is_open(theirs):
                continue
            if not is_open(ours):
                raise Unsupported(f"extent {ours} where ATen has {theirs}")
            if str(theirs) not in self.given and not ours.same_form(theirs):
                self.made.setdefault(str(theirs), ours)

    def op(self, name: str, *operands: Value | None, **attributes: Any) -> Value:
        return self.ops(name, list(operands), **attributes)[0]

    def constant(self, tensor: torch.Tensor, key: str = "") -> Value:
        dtype = dtype_name(tensor.dtype)
        return self.written("constant", dtype, list(tensor.shape), bytes_of(tensor), key)

    def scalar(self, number: float | int | bool, dtype: str) -> Value:
        try:
            return self.constant(torch.tensor(number, dtype=TORCH_DTYPES[dtype]))
        except (RuntimeError, OverflowError) as error:
            raise Unsupported(f"the number {number} as {dtype}") from error

    def cast(self, value: Value, dtype: str) -> Value:
        return value if self.dtype(value) == dtype else self.op("cast", value, data_type=f"dtype:{dtype}")

    def reshape(self, value: Value, shape: list[Any]) -> Value:
        shape = [self.named(e) for e in shape]
        return value if is_same(self.shape(value), shape) else self.op("reshape", value, new_shape=shape)

    def transpose(self, value: Value, permutation: list[int]) -> Value:
        if permutation == list(range(len(permutation))):
            return value
        return self.op("transpose", value, permutation=permutation)

    def expand(self, value: Value, shape: list[Dim]) -> Value:
        return value if is_same(self.shape(value), shape) else self.op("expand", value, new_shape=shape)

    def filled(self, number: float | int | bool, dtype: str, shape: list[Dim]) -> Value:
        scalar = self.scalar(number, dtype)
        return self.op("expand", scalar, new_shape=shape) if shape else scalar

    def positions(self, count: Dim, dtype: str = "i64") -> Value:
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
        except Exception as error:  # nothing that export gives may end the lowering
            return node, reason_of(error)
    return None, None


def _declare(translator: Translator, operand: torch.fx.Node) -> None:
    val = operand.meta.get("val")
    check_argument(operand)
    if isinstance(val, torch.Tensor):
        translator.values[operand] = translator.input(f"operand{len(translator.values)}", val)


def check_argument(operand: torch.fx.Node) -> None:
    """Raises where a delegate would not get what the graph says."""
    val = operand.meta.get("val")
    if isinstance(val, (tuple, list)):
        raise Unsupported("an operand is a tuple")
    if isinstance(val, torch.Tensor) and _has_doubtful_order(val):
        raise Unsupported(f"ExecuTorch is not clear about the order of {operand.name} in memory")
