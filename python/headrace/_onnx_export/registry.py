"""Which function writes which operator, and in which dtype it may compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .writer import ONNX_TYPES, Shape, Writer

# dtypes for which ONNX Runtime has no kernel, and what stands in for them. Each scheme is exact:
# float16 is computed in float32 and rounded once, as our own kernels do;
REAL = {"float16": "float32"}
# integers that wrap may be computed in any wider type, and unsigned ones as signed ones;
WRAPPING = REAL | {"int8": "int32", "uint8": "int32", "uint32": "int64", "uint64": "int64"}
# moving elements needs any type of enough bits.
MOVED = {"int4": "int8", "uint4": "uint8"}


@dataclass
class Node:
    """One operation as its function sees it: inputs already in the dtype in which it computes."""

    op: str
    label: str
    attributes: dict[str, Any]
    inputs: list[str | None]
    shapes: list[Shape | None]
    dtypes: list[str | None]
    out_shapes: list[Shape]
    out_dtypes: list[str]
    constants: list[Callable[[], Any] | None]  # an input's value where that is known

    @property
    def title(self) -> str:
        return f"{self.op} ({self.label})" if self.label else self.op

    @property
    def x(self) -> str:
        """The first input."""
        assert self.inputs[0] is not None
        return self.inputs[0]

    @property
    def dtype(self) -> str:
        """The dtype in which to compute."""
        assert self.dtypes[0] is not None
        return self.dtypes[0]

    @property
    def shape(self) -> Shape:
        """The first input's shape."""
        assert self.shapes[0] is not None
        return self.shapes[0]

    def axis(self, name: str = "axis") -> int:
        """An attribute that is a dimension of the first input, counted from the front."""
        return self.attributes[name] % max(len(self.shape), 1)

    def value(self, i: int) -> Any:
        """Input i as an array where it is a constant, else None."""
        read = self.constants[i]
        return read() if read else None

    def impossible(self, why: str) -> ValueError:
        return ValueError(f"convert_to_onnx: {self.title}: {why}")

    def fixed(self, dim: Any, what: str) -> int:
        """An extent that the ONNX operator wants to know in advance."""
        if not isinstance(dim, int):
            raise self.impossible(f"{what} '{dim[0]}' is dynamic, and ONNX needs a number")
        return dim


Result = str | list[str]
Function = Callable[[Writer, Node], Result]


@dataclass(frozen=True)
class Lowering:
    function: Function
    through: Mapping[str, str]
    operands: int


LOWERINGS: dict[str, Lowering] = {}


def lowers(
    *ops: str, through: Mapping[str, str] | None = None, operands: int = 0
) -> Callable[[Function], Function]:
    """Registers a function for operators.

    Inputs with the first input's dtype come in `through`'s dtype for it, and outputs of that dtype are
    converted back. Functions of optional inputs say how many there can be: absent ones are None.
    """

    def register(function: Function) -> Function:
        for op in ops:
            LOWERINGS[op] = Lowering(function, through or {}, operands)
        return function

    return register


def lower(writer: Writer, node: Node) -> list[str]:
    """Writes one operation and returns its outputs, in their declared dtypes."""
    if node.op not in LOWERINGS:
        raise node.impossible("there is no ONNX form of this operator")
    lowering = LOWERINGS[node.op]
    for dtype in [*node.dtypes, *node.out_dtypes]:
        if dtype and dtype not in ONNX_TYPES:  # graph files may hold more types than WebNN has
            raise node.impossible(f"{dtype} is not a WebNN data type")
    for field in (node.inputs, node.shapes, node.dtypes, node.constants):
        field.extend([None] * (lowering.operands - len(field)))
    declared = node.dtype
    computed = lowering.through.get(declared, declared)
    if computed != declared:
        for i, dtype in enumerate(node.dtypes):
            if dtype == declared:
                node.inputs[i] = writer.cast(node.inputs[i], computed)
                node.dtypes[i] = computed
    result = lowering.function(writer, node)
    results = [result] if isinstance(result, str) else result
    if computed == declared:
        return results
    return [
        writer.cast(name, dtype) if dtype == declared else name
        for name, dtype in zip(results, node.out_dtypes, strict=True)
    ]
