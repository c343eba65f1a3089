"""Collects the nodes and initialisers of an ONNX graph under unique names.

Tensors are handled by name. Shapes are lists of integers and, for dynamic extents, (name, largest) pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

OPSET = 21  # the first with 4-bit integers and blocked quantisation
IR_VERSION = 10

ONNX_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
    "uint32": TensorProto.UINT32,
    "int64": TensorProto.INT64,
    "uint64": TensorProto.UINT64,
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
    "bool": TensorProto.BOOL,
}

Dim = int | tuple[str, int]
Shape = Sequence[Dim]


class Writer:
    """A graph under construction, or the body of a Scan, which sees the outer graph's tensors."""

    def __init__(self, outer: Writer | None = None) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.scope = "graph"  # what new tensors are called
        root = outer._root if outer else self
        self._root = root
        if outer is None:
            self.initializers: list[tuple[TensorProto, np.ndarray]] = []
            self._taken: set[str] = set()
            self._counts: dict[str, int] = {}
            self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
            self._extents: dict[str, tuple[str, int]] = {}
        else:
            self.scope = outer.scope

    def reserve(self, name: str) -> None:
        """Keeps the name of an input or output from being given to another tensor."""
        self._root._taken.add(name)

    def name(self, hint: str) -> str:
        root = self._root
        while True:
            count = root._counts.get(hint, 0)
            root._counts[hint] = count + 1
            name = f"{hint}_{count}" if count else hint
            if name not in root._taken:
                root._taken.add(name)
                return name

    def node(self, op_type: str, inputs: Sequence[str | None], **attributes: Any) -> str:
        """Adds a node with one output and returns that; None stands for an absent input."""
        return self.multi(op_type, inputs, 1, **attributes)[0]

    def multi(self, op_type: str, inputs: Sequence[str | None], outputs: int, **attributes: Any) -> list[str]:
        """Adds a node with several outputs."""
        names = [self.name(f"{self.scope}/{op_type}") for _ in range(outputs)]
        given = [x or "" for x in inputs]
        while given and not given[-1]:
            given.pop()
        present = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(op_type, given, names, name=names[0], **present))
        return names

    def initializer(self, name: str, dtype: str, shape: Sequence[int], data: np.ndarray) -> str:
        """A weight; `data` holds its packed little-endian bytes and is not copied here."""
        tensor = TensorProto(name=name, data_type=ONNX_TYPES[dtype], dims=shape)
        self._root.initializers.append((tensor, data))
        return name

    def constant(self, value: Any, dtype: str) -> str:
        """A small constant; equal ones are shared."""
        array = np.ascontiguousarray(value, dtype=np.dtype(dtype)).reshape(np.shape(value))
        key = (dtype, array.shape, array.tobytes())
        constants = self._root._constants
        if key not in constants:
            data = np.frombuffer(key[2], np.uint8)
            constants[key] = self.initializer(self.name(f"constant_{dtype}"), dtype, array.shape, data)
        return constants[key]

    def ints(self, values: Sequence[int]) -> str:
        """A 1-D int64 constant, the form in which ONNX takes axes and shapes."""
        return self.constant(np.asarray(values, np.int64).reshape(-1), "int64")

    def vector(self, value: float, length: int, dtype: str) -> str:
        """A 1-D constant of equal elements."""
        return self.constant(np.full(length, value, np.dtype(dtype)), dtype)

    def cast(self, x: str, dtype: str) -> str:
        return self.node("Cast", [x], to=ONNX_TYPES[dtype])

    def where(self, condition: str, chosen: str, otherwise: str) -> str:
        return self.node("Where", [condition, chosen, otherwise])

    def transpose(self, x: str, permutation: Sequence[int]) -> str:
        if list(permutation) == list(range(len(permutation))):
            return x
        return self.node("Transpose", [x], perm=list(permutation))

    def reshape(self, x: str, shape: Shape) -> str:
        return self.node("Reshape", [x, self.extents(shape)])

    def squeeze(self, x: str, axes: Sequence[int]) -> str:
        return self.node("Squeeze", [x, self.ints(axes)]) if axes else x

    def unsqueeze(self, x: str, axes: Sequence[int]) -> str:
        return self.node("Unsqueeze", [x, self.ints(axes)]) if axes else x

    def slice(self, x: str, start: int, end: int, axis: int) -> str:
        return self.node("Slice", [x, self.ints([start]), self.ints([end]), self.ints([axis])])

    def note_extents(self, tensor: str, shape: Shape) -> None:
        """Remembers where the value of a dynamic extent can be read at run time."""
        for axis, dim in enumerate(shape):
            if not isinstance(dim, int):
                self._root._extents.setdefault(dim[0], (tensor, axis))

    def extent(self, dim: Dim) -> str:
        """One extent as a 1-D int64 tensor of one element."""
        if isinstance(dim, int):
            return self.ints([dim])
        if dim[0] not in self._root._extents:
            raise ValueError(
                f"convert_to_onnx: the extent {dim[0]} is that of no tensor, and ONNX reads it from one; "
                "give the graph numbers in place of its open dimensions"
            )
        tensor, axis = self._root._extents[dim[0]]
        return self.node("Shape", [tensor], start=axis, end=axis + 1)

    def extents(self, shape: Shape) -> str:
        """A shape as a 1-D int64 tensor: a constant where it is known."""
        if all(isinstance(dim, int) for dim in shape):
            return self.ints(shape)  # type: ignore[arg-type]
        return self.node("Concat", [self.extent(dim) for dim in shape], axis=0)

    def rename(self, first: int, old: str, new: str) -> bool:
        """Renames a tensor that nodes[first:] produce; False when they do not."""
        found = False
        for node in self.nodes[first:]:
            node.input[:] = [new if x == old else x for x in node.input]
            if old in node.output:
                found = True
                node.output[:] = [new if x == old else x for x in node.output]
        return found


def value_info(name: str, dtype: str, shape: Shape) -> onnx.ValueInfoProto:
    """A typed interface tensor; dynamic extents keep their names."""
    dims = [dim if isinstance(dim, int) else dim[0] for dim in shape]
    return helper.make_tensor_value_info(name, ONNX_TYPES[dtype], dims)
