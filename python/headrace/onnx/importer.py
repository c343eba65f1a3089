"""Walks a model's nodes and gives each to the function that reads its operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, defs

from headrace import _core

from .extents import Dim, Extent, Undecided
from .folding import folded
from .graph import Graph, Operand
from .registry import MICROSOFT, OPERATORS, Node, Refused
from .source import Source, array_of, dtype_named, opsets

Dimensions = Mapping[str, int | list[int]]


class Importer:
    """One model on its way into one graph."""

    def __init__(self, source: Source, dimensions: Dimensions) -> None:
        self.model, self.folder, self.title = source.model, source.folder, source.title
        self.tensors = source.tensors
        self.versions = opsets(source.model)
        self.given, self.used = dict(dimensions), set()
        self.named = {
            dim.dim_param for info in source.model.graph.input for dim in info.type.tensor_type.shape.dim
        }
        self.graph = Graph()

    def run(self) -> _core.Graph:
        graph = self.model.graph
        values: dict[str, Operand | None] = {"": None}
        self._read_constants([*graph.initializer, *self.tensors], values)
        if graph.sparse_initializer:
            name = graph.sparse_initializer[0].values.name
            raise ValueError(f"{self.title}: initializer '{name}' is sparse; store it as a dense tensor")
        for info in graph.input:
            if info.name not in values:
                values[info.name] = self._input(info)
        unknown = sorted(set(self.given) - self.used)
        if unknown:
            names = ", ".join(self.graph.dimensions) or "none"
            raise ValueError(
                f"{self.title}: no input has a dimension {unknown}; run-time dimensions: {names}"
            )
        self._read_nodes(graph, values)
        for info in graph.output:
            self._output(info.name, values)
        return self.graph.writer.finish()

    # --- the interface ------------------------------------------------------------------------------

    def _input(self, info: onnx.ValueInfoProto) -> Operand:
        what = f"{self.title}: input '{info.name}'"
        if not info.type.HasField("tensor_type"):
            kind = info.type.WhichOneof("value") or "without a type"
            raise ValueError(f"{what} is {kind}; only tensors are read")
        tensor = info.type.tensor_type
        dtype = dtype_named(tensor.elem_type, what)
        try:
            return self.graph.input(info.name, dtype, self._input_shape(info, tensor))
        except (Refused, ValueError) as error:
            raise ValueError(f"{what}: {error}") from None

    def _input_shape(self, info: onnx.ValueInfoProto, tensor: Any) -> list[Dim]:
        whole = self.given.get(info.name)
        if isinstance(whole, (list, tuple)):
            self.used.add(info.name)
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
                    raise Refused(f"extent {axis} is {dim.dim_value}")
                shape.append(dim.dim_value)
            else:
                shape.append(self._dimension(name))
        return shape

    def _dimension(self, name: str) -> Dim:
        """A number where one is given. "past + new" of two other dimensions is their sum."""
        if name in self.given:
            self.used.add(name)
            return self._size(self.given[name], name)
        parts = [part.strip() for part in name.split("+")]
        if len(parts) == 2 and set(parts) <= self.named:
            first, second = (self._dimension(part) for part in parts)
            if isinstance(first, int) and isinstance(second, Extent):
                return Extent({(): first, **second.terms})  # in this order, which the extent's name has
            return first + second
        return Extent.named(name)

    def _size(self, value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise Refused(f"dimensions['{name}'] is {value!r}; it must be a number of at least 0")
        return int(value)

    def _output(self, name: str, values: dict[str, Operand | None]) -> None:
        """An operator's result; inputs and constants are copied, and truth values are bool."""
        g, operand = self.graph, values[name]
        try:
            if operand.dtype == "bool":
                result = g.writer.op("cast", [g.value(operand)], {"data_type": "dtype:bool"}, name)[0]
            elif operand.dtype == "bf16":
                result = g.value(g.cast(operand, "f32"))
            else:
                result = g.writer.op("identity", [g.value(operand)], {}, name)[0]
            g.writer.output(name, result)
        except (Refused, ValueError) as error:
            raise ValueError(f"{self.title}: output '{name}': {error}") from None

    # --- the content --------------------------------------------------------------------------------

    def _read_constants(self, tensors: Iterable[onnx.TensorProto], values: dict[str, Operand | None]) -> None:
        for tensor in tensors:
            array, dtype = array_of(tensor, self.folder, f"{self.title}: initializer '{tensor.name}'")
            values[tensor.name] = Operand(dtype, array=array)

    def _read_nodes(self, graph: onnx.GraphProto, values: dict[str, Operand | None]) -> None:
        for proto in graph.node:
            node = self._node(proto, values)
            self.graph.label = node.name
            try:
                results = self._results(node, values)
            except Undecided as error:
                raise self._error(node, f"whether {error} is open") from None
            except (Refused, ValueError) as error:
                raise self._error(node, str(error)) from None
            except (IndexError, TypeError, KeyError, OverflowError, MemoryError) as error:
                raise self._error(node, f"its inputs and attributes do not go together: {error}") from None
            for name, result in zip(proto.output, results, strict=False):
                if name and result is None:
                    raise self._error(node, f"output '{name}' is not computed")
                values[name] = result
            values[""] = None
            for name in proto.output[len(results) :]:
                if name:
                    raise self._error(node, f"output '{name}' is not computed")

    def _error(self, node: Node, reason: str) -> ValueError:
        is_open = any(x is not None and x.value is not None and self.graph.is_open(x) for x in node.inputs)
        if is_open and "dimensions={" not in reason:
            names = ", ".join(f"'{name}': 1" for name in self.graph.dimensions)
            reason += f". Fixing dimensions may help: dimensions={{{names}}} (--dimension NAME=N)"
        return ValueError(f"{self.title}: {node.title}: {reason}")

    def _results(self, node: Node, values: dict[str, Operand | None]) -> list[Operand | None]:
        if node.op == "If" and not node.domain:
            return self._branch(node, values)
        known = folded(self.graph, node)
        if known is not None:
            return known
        function = OPERATORS.get((node.domain, node.op))
        if function is None:
            raise Refused(self._no_function(node))
        result = function(self.graph, node)
        return list(result) if isinstance(result, (list, tuple)) else [result]

    def _no_function(self, node: Node) -> str:
        if node.domain not in ("", MICROSOFT):
            return (
                f"operators of the domain '{node.domain}' are not read; export the model without them, or "
                "with their functions in the model"
            )
        if not node.domain and not defs.has(node.op, node.opset):
            return "this operator is not in the operator set that the model imports"
        if node.op in ("NonZero", "Unique"):
            return "the size of its result is known only at run time; of constants it is computed beforehand"
        return (
            "this operator is not read. `python -m headrace.onnx.coverage` lists those that are; export the "
            "model so that it uses them, or compute this part outside the model"
        )

    def _branch(self, node: Node, values: dict[str, Operand | None]) -> list[Operand | None]:
        condition = node.x.array
        if condition is None or condition.dtype == object or condition.size != 1:
            raise Refused(
                "the condition is known only at run time, and only one branch can be read. Where it comes "
                "from dimensions, fix those with dimensions={...} (--dimension NAME=N), or export without it"
            )
        branch = node.attributes["then_branch" if condition.reshape(-1)[0] else "else_branch"]
        inner = dict(values)
        self._read_constants(branch.initializer, inner)
        self._read_nodes(branch, inner)
        return [inner[info.name] for info in branch.output]

    def _node(self, proto: onnx.NodeProto, values: dict[str, Operand | None]) -> Node:
        domain = proto.domain.removeprefix("ai.onnx")
        node = Node(
            op=proto.op_type,
            domain=domain,
            opset=self.versions.get(domain, 1),
            name=proto.name,
            inputs=[],
            outputs=list(proto.output),
        )
        for name in proto.input:
            if name not in values:
                raise self._error(node, f"input '{name}' is computed by no node before it")
            node.inputs.append(values[name])
        for attribute in proto.attribute:
            node.attributes[attribute.name] = self._attribute(node, attribute)
        return node

    def _attribute(self, node: Node, attribute: AttributeProto) -> Any:
        if attribute.type == AttributeProto.TENSOR:
            what = f"{self.title}: {node.title}: attribute '{attribute.name}'"
            array, dtype = array_of(attribute.t, self.folder, what)
            return Operand(dtype, array=array)
        if attribute.ref_attr_name:
            raise self._error(node, f"attribute '{attribute.name}' refers to a function's parameter")
        try:
            value = onnx.helper.get_attribute_value(attribute)
        except (ValueError, UnicodeDecodeError) as error:
            raise self._error(node, f"attribute '{attribute.name}': {error}") from None
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, (list, tuple)) or type(value).__name__ == "RepeatedScalarContainer":
            return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value]
        return value
