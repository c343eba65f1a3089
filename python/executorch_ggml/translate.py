"""From ATen nodes of an exported program to ops of the catalog."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from headrace._core import GraphWriter

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

Value = int


class Unsupported(Exception):
    """Why a node stays with ExecuTorch's own kernels."""


def dtype_name(dtype: torch.dtype) -> str:
    if dtype not in DTYPES:
        raise Unsupported(f"dtype {dtype}")
    return DTYPES[dtype]


def extent(dim: int | torch.SymInt) -> int | tuple[str, int, int]:
    """A number, or (symbol, least, most). Expressions of symbols are inferred, never given."""
    if isinstance(dim, int):
        return dim
    expression = dim.node.expr
    if expression.is_number:
        return int(expression)
    if not expression.is_symbol:
        raise Unsupported(f"extent {expression} is an expression")
    bounds = dim.node.shape_env.bound_sympy(expression)
    most = int(bounds.upper) if bounds.upper.is_finite else 2**62
    return str(expression), 0 if most == 0 else 1, most


def extents(shape: Any) -> list[int | tuple[str, int, int]]:
    return [extent(dim) for dim in shape]


def bytes_of(tensor: torch.Tensor) -> np.ndarray:
    """The elements' bytes, in order."""
    dense = tensor.detach().cpu().contiguous()
    return dense.reshape(-1).view(torch.uint8).numpy() if dense.numel() else np.zeros(0, np.uint8)


class Translator:
    """A graph in the making. ATen arguments come as the FX graph has them."""

    def __init__(self) -> None:
        self.writer = GraphWriter()
        self.values: dict[torch.fx.Node, Any] = {}  # a value, or a list of values for a tuple
        self.label = ""  # of the ops that are added: the node's name

    # --- operands -----------------------------------------------------------------------------------

    def value(self, arg: Any) -> Value:
        """A tensor argument."""
        if not isinstance(arg, torch.fx.Node):
            raise Unsupported(f"{arg!r} where a tensor is expected")
        return self.values[arg]

    def optional(self, arg: Any) -> Value | None:
        return None if arg is None else self.value(arg)

    def number(self, arg: Any) -> int | float | bool:
        """A scalar argument that is known now."""
        if isinstance(arg, torch.fx.Node):
            arg = arg.meta["val"]
        if isinstance(arg, torch.SymInt):
            arg = extent(arg)
        if not isinstance(arg, (int, float, bool)):
            raise Unsupported(f"scalar {arg!r} is known only at run time")
        return arg

    def dtype(self, value: Value) -> str:
        return self.writer.dtype(value)

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
        try:
            return self.writer.op(name, operands, attributes, self.label)
        except ValueError as error:
            raise Unsupported(str(error)) from None

    def op(self, name: str, *operands: Value | None, **attributes: Any) -> Value:
        return self.ops(name, list(operands), **attributes)[0]

    def constant(self, tensor: torch.Tensor, key: str = "") -> Value:
        dtype = dtype_name(tensor.dtype)
        return self.writer.constant(dtype, list(tensor.shape), bytes_of(tensor), key)

    def scalar(self, number: float | int | bool, dtype: str) -> Value:
        torch_dtype = next(t for t, name in DTYPES.items() if name == dtype)
        return self.constant(torch.tensor(number, dtype=torch_dtype))

    def cast(self, value: Value, dtype: str) -> Value:
        return value if self.dtype(value) == dtype else self.op("cast", value, data_type=f"dtype:{dtype}")

    def reshape(self, value: Value, shape: list[Any]) -> Value:
        return value if self.shape(value) == shape else self.op("reshape", value, new_shape=shape)

    def transpose(self, value: Value, permutation: list[int]) -> Value:
        if permutation == list(range(len(permutation))):
            return value
        return self.op("transpose", value, permutation=permutation)


# --- the table ----------------------------------------------------------------------------------------

Lowering = Callable[[Translator, torch.fx.Node], Any]
LOWERINGS: dict[str, Lowering] = {}


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Registers a function for ATen overloads, such as "aten.add.Tensor"."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            LOWERINGS[name] = function
        return function

    return register


def target_name(node: torch.fx.Node) -> str:
    """ "aten.add.Tensor", of the ATen or the edge dialect alike."""
    target = node.target
    if target is operator.getitem:
        return "getitem"
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
    if name == "getitem":
        parts = translator.values[node.args[0]]
        if node.args[1] >= len(parts) or parts[node.args[1]] is None:
            raise Unsupported(f"result {node.args[1]} of {target_name(node.args[0])}")
        translator.values[node] = parts[node.args[1]]
        return
    if name not in LOWERINGS:
        raise Unsupported("no lowering")
    translator.label = node.name
    result = LOWERINGS[name](translator, node)
    expected = node.meta.get("val")
    if isinstance(expected, torch.Tensor):
        result = translator.cast(result, dtype_name(expected.dtype))
        if translator.rank(result) != expected.dim():
            raise Unsupported(f"rank {translator.rank(result)} where ATen has {expected.dim()}")
    translator.values[node] = result


def why_not(node: torch.fx.Node) -> str | None:
    """None when a node can be delegated, else the reason: a trial with operands of its operands' types."""
    translator = Translator()
    producer = node.args[0] if target_name(node) == "getitem" else None
    try:
        if isinstance(producer, torch.fx.Node):
            if reason := why_not(producer):
                return reason
            _declare(translator, producer)
            translate(translator, producer)
        else:
            _declare(translator, node)
        translate(translator, node)
    except Unsupported as error:
        return str(error)
    return None


def _declare(translator: Translator, node: torch.fx.Node) -> None:
    for index, operand in enumerate(node.all_input_nodes):
        val = operand.meta.get("val")
        if isinstance(val, torch.Tensor):
            translator.values[operand] = translator.writer.input(
                f"operand{index}", dtype_name(val.dtype), extents(val.shape)
            )
        elif isinstance(val, (tuple, list)):
            raise Unsupported("an operand is a tuple")
