"""A model's inputs and outputs, whose dimensions may be open or given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx

from .forms import OfOptional, OfSequence, OfTable, OfTensor, Output
from .graph import Dim, Extent, Graph, Operand, known
from .registry import Refused
from .sequences import Optional, Sequence, Table
from .source import dtype_named
from .stored import CARRIERS, element_type

Dimensions = Mapping[str, Any]  # numbers, shapes, and of sequences the tensors' shapes


def perhaps_empty(graph: onnx.GraphProto) -> set[str]:
    """Dimensions along which inputs are only joined with others, or cut apart: caches begin with nothing."""
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
            is_joined = bool(of) and all(_joins(node, info.name, axis, len(dims)) for node in of)
            (joined if is_joined else others).add(dim.dim_param)
    return joined - others - {""}


def _joins(node: onnx.NodeProto, name: str, axis: int, rank: int) -> bool:
    if node.op_type == "Shape":
        return True
    if node.op_type in _CACHES:
        return axis == 2 and list(node.input).index(name) in _CACHES[node.op_type]
    own = next((a.i for a in node.attribute if a.name == "axis"), 0)
    return node.op_type in ("Concat", "SplitToSequence") and own % rank == axis


# Inputs of attention that are past keys and values [batch, heads, past, width].
_CACHES = {"Attention": (4, 5), "MultiHeadAttention": (6, 7)}


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
        self.outputs: list[Output] = []  # the model's
        self._has_output = False

    def input(self, info: onnx.ValueInfoProto) -> Operand:
        what = f"{self._title}: input '{info.name}'"
        if not info.type.HasField("tensor_type"):
            return self._structured(info)
        tensor = info.type.tensor_type
        dtype = dtype_named(tensor.elem_type, what)
        try:
            return self._graph.input(info.name, dtype, self._shape(info, tensor))
        except (Refused, ValueError, OverflowError, TypeError) as error:
            raise ValueError(f"{what}: {error}") from None

    def _structured(self, info: onnx.ValueInfoProto) -> Sequence | Optional | Operand:
        """A sequence or an optional, whose tensors' shapes are given."""
        what = f"{self._title}: input '{info.name}'"
        if info.name not in self._given:
            kind = (info.type.WhichOneof("value") or "without a type").removesuffix("_type")
            raise ValueError(
                f"{what} is {kind}; a graph has to know of which tensors. headrace.load finds that out when"
                f" the model is called; else give their shapes: dimensions={{'{info.name}': [[2, 'n']]}},"
                " None for an empty optional"
            )
        self._used.add(info.name)
        try:
            return self._part(info.name, info.type, self._given[info.name], what)
        except (Refused, ValueError, OverflowError, TypeError) as error:
            raise ValueError(f"{what}: {error}") from None

    def _part(self, name: str, kind: onnx.TypeProto, given: Any, what: str) -> Any:
        if kind.HasField("optional_type"):
            inner = kind.optional_type.elem_type
            return Optional(None if given is None else self._part(name, inner, given, what))
        if kind.HasField("sequence_type"):
            inner = kind.sequence_type.elem_type
            items = [self._part(f"{name}[{i}]", inner, shape, what) for i, shape in enumerate(given)]
            return Sequence(items, dtype_named(inner.tensor_type.elem_type, what))
        if not kind.HasField("tensor_type"):
            raise Refused("only tensors, sequences and optionals of them are read")
        shape = [Extent.named(d, 0) if isinstance(d, str) else self._size(d, name) for d in given]
        return self._graph.input(name, dtype_named(kind.tensor_type.elem_type, what), shape)

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
            return [self._dimension(d) if isinstance(d, str) else self._size(d, info.name) for d in whole]
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
        summands = [part for part in parts if not part.isdecimal()]
        if len(parts) > 1 and summands and set(summands) <= self._named:
            return sum((int(p) if p.isdecimal() else self._dimension(p) for p in parts), 0)
        return Extent.named(name, 0 if name in self._perhaps_empty else 1)

    def _size(self, value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise Refused(f"dimensions['{name}'] is {value!r}; it must be a number of at least 0")
        return int(value)

    def output(self, name: str, value: Any) -> None:
        if value is None:
            what = f"{self._title}: output '{name}'"
            raise ValueError(f"{what} is computed by no node; remove it, or add the node that computes it")
        self.outputs.append(Output(name, self._form(name, value)))

    def finish(self) -> None:
        """A graph has an output, also where the model's are empty sequences and optionals only."""
        if not self._has_output:
            self._tensor("no output", known(0, "u8"))

    def _form(self, name: str, value: Any) -> Any:
        if isinstance(value, Optional):
            flag = None
            if value.is_there is not None:
                flag = self._tensor(f"{name} is there", value.is_there).name
            return OfOptional(None if value.item is None else self._form(name, value.item), flag)
        if isinstance(value, Sequence):
            return OfSequence([self._form(f"{name}[{i}]", x) for i, x in enumerate(value.items)])
        if isinstance(value, Table):
            parts = {"elements": value.flat, "shapes": value.shapes, "ranks": value.ranks}
            return OfTable(
                **{part: self._tensor(f"{name}.{part}", x).name for part, x in parts.items() if x is not None}
            )
        return self._tensor(name, value)

    def _tensor(self, name: str, operand: Operand) -> OfTensor:
        """An operator's result; inputs and constants are copied, and truth values are bool."""
        g = self._graph
        what = f"{self._title}: output '{name}'"
        self._has_output = True
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
            return OfTensor(name)
        except Refused as error:
            raise ValueError(f"{what}: {error}. {error.remedy}") from None
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{what}: {error}") from None
