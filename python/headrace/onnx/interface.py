"""A model's inputs and outputs, whose dimensions may be open or given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx

from .graph import Dim, Extent, Graph, Operand
from .registry import Refused
from .source import dtype_named
from .stored import CARRIERS, element_type

Dimensions = Mapping[str, int | list[int]]


def perhaps_empty(graph: onnx.GraphProto) -> set[str]:
    """Dimensions along which inputs are only joined with others: caches, which begin with nothing."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    joined: set[str] = set()
    others: set[str] = set()
    for info in graph.input:
        dims = info.type.tensor_type.shape.dim
        for axis, dim in enumerate(dims):
            of = readers.get(info.name, [])
            is_joined = bool(of) and all(_joins(node, axis, len(dims)) for node in of)
            (joined if is_joined else others).add(dim.dim_param)
    return joined - others - {""}


def _joins(node: onnx.NodeProto, axis: int, rank: int) -> bool:
    if node.op_type == "Shape":
        return True
    own = next((a.i for a in node.attribute if a.name == "axis"), 0)
    return node.op_type == "Concat" and own % rank == axis


class Interface:
    """Declares them in the graph. Errors: ValueError with the name and what to do."""

    def __init__(
        self,
        graph: Graph,
        title: str,
        inputs: Iterable[onnx.ValueInfoProto],
        given: Dimensions,
        perhaps_empty: Iterable[str] = (),
    ) -> None:
        """perhaps_empty: names of dimensions that may be 0; others are at least 1."""
        self._graph, self._title = graph, title
        self._given, self._used = dict(given), set()
        named = {dim.dim_param for info in inputs for dim in info.type.tensor_type.shape.dim}
        self._named = named - {""}
        self._perhaps_empty = set(perhaps_empty)
        self.declared: dict[str, np.dtype] = {}  # outputs whose elements the graph gives in a wider type

    def input(self, info: onnx.ValueInfoProto) -> Operand:
        what = f"{self._title}: input '{info.name}'"
        if not info.type.HasField("tensor_type"):
            kind = info.type.WhichOneof("value") or "without a type"
            raise ValueError(
                f"{what} is {kind}; only tensors are read. Export the model so that it takes tensors, or run "
                "it with ONNX Runtime"
            )
        tensor = info.type.tensor_type
        dtype = dtype_named(tensor.elem_type, what)
        try:
            return self._graph.input(info.name, dtype, self._shape(info, tensor))
        except (Refused, ValueError, OverflowError, TypeError) as error:
            raise ValueError(f"{what}: {error}") from None

    def check_dimensions(self) -> None:
        """That all that are given belong to an input."""
        unknown = sorted(str(name) for name in set(self._given) - self._used)
        if unknown:
            names = ", ".join(self._graph.dimensions) or "none"
            raise ValueError(
                f"{self._title}: no input has a dimension {unknown}; run-time dimensions: {names}"
            )

    def _shape(self, info: onnx.ValueInfoProto, tensor: Any) -> list[Dim]:
        whole = self._given.get(info.name)
        if isinstance(whole, (list, tuple)):
            self._used.add(info.name)
            return [self._size(d, info.name) for d in whole]
        if not tensor.HasField("shape"):
            raise Refused(
                f"its shape is not in the model; give it with dimensions={{'{info.name}': [1, 3, 224, 224]}}"
            )
        shape: list[Dim] = []
        for axis, dim in enumerate(tensor.shape.dim):
            name = dim.dim_param or f"{info.name}.{axis}"
            if dim.HasField("dim_value"):
                if dim.dim_value < 0:
                    raise Refused(
                        f"extent {axis} is {dim.dim_value}; give the input's shape with "
                        f"dimensions={{'{info.name}': [...]}}"
                    )
                shape.append(dim.dim_value)
            else:
                shape.append(self._dimension(name))
        return shape

    def _dimension(self, name: str) -> Dim:
        """A number where one is given. "past + new" of two other dimensions is their sum."""
        if name in self._given:
            self._used.add(name)
            return self._size(self._given[name], name)
        parts = [part.strip() for part in name.split("+")]
        if len(parts) == 2 and set(parts) <= self._named:
            first, second = (self._dimension(part) for part in parts)
            return first + second
        return Extent.symbol(name, 0 if name in self._perhaps_empty else 1)

    def _size(self, value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise Refused(f"dimensions['{name}'] is {value!r}; it must be a number of at least 0")
        return int(value)

    def output(self, name: str, operand: Operand | None) -> None:
        """An operator's result; inputs and constants are copied, and truth values are bool."""
        g = self._graph
        what = f"{self._title}: output '{name}'"
        if operand is None:
            raise ValueError(f"{what} is computed by no node; remove it, or add the node that computes it")
        try:
            if operand.dtype in CARRIERS or operand.dtype == "bf16":
                self.declared[name] = element_type(operand.dtype)
            if operand.dtype == "bool":
                result = g.writer.op("cast", [g.value(operand)], {"data_type": "dtype:bool"}, name)[0]
            elif operand.dtype == "bf16":
                result = g.value(g.cast(operand, "f32"))
            else:
                result = g.writer.op("identity", [g.value(operand)], {}, name)[0]
            g.writer.output(name, result)
        except Refused as error:
            raise ValueError(f"{what}: {error}. {error.remedy}") from None
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{what}: {error}") from None
