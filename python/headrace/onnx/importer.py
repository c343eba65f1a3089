"""Walks a model's nodes and gives each to the function that reads its operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import onnx
from onnx import AttributeProto, defs

from headrace import _core

from .control_flow import CONTROL_FLOW
from .folding import folded
from .functions import Function, Library
from .graph import Graph, Operand, Undecided
from .interface import Dimensions, Interface, perhaps_empty
from .limits import Budget
from .oldest import modernised
from .ratios import Patience, impatient, patient
from .registry import AS_DEFINED, MICROSOFT, OPERATORS, Invalid, Node, Refused, invalid_if, shortened
from .source import Source, array_of, domain_named, opsets, read_model


def read(source: Any, dimensions: Dimensions | None = None) -> tuple[_core.Graph, Interface]:
    """A model as a graph, and what is known of its outputs. source: a path, bytes, an onnx.ModelProto or what
    read_model made. Errors: import_graph's.
    """
    found, patience = source if isinstance(source, Source) else read_model(source), Patience()
    try:
        return _read(found, dimensions, patience)
    except ValueError:
        if not patience.was_needed:
            raise
    return _read(found, dimensions, impatient())


def _read(source: Source, dimensions: Dimensions | None, patience: Patience) -> tuple[_core.Graph, Interface]:
    importer = Importer(source, dimensions or {})
    with patient(patience):
        return importer.run(), importer.interface


class _Unreadable(ValueError):
    """Says already which node cannot be read, and why."""


@dataclass
class Scope:
    """What names mean to some nodes: the model's, a branch's or a function's."""

    values: dict[str, Operand | None]
    versions: dict[str, int]
    # A function's parameters: attributes of its call, and the names that those see which are graphs.
    parameters: dict[str, tuple[AttributeProto, Scope]] = field(default_factory=dict)
    caller: str = ""  # the node of the model whose function this is
    where: str = ""  # the function and that node, for messages
    depth: int = 0


@dataclass
class Branch:
    """A graph that is an attribute, with the names that it sees."""

    graph: onnx.GraphProto
    scope: Scope


class Importer:
    """One model on its way into one graph."""

    def __init__(self, source: Source, dimensions: Dimensions) -> None:
        self.model, self.folder, self.title = source.model, source.folder, source.title
        self.tensors = source.tensors
        self.library = Library(source.model.functions)
        self.graph = Graph(Budget(_count(source.model), source.model.ByteSize()))
        graph = source.model.graph
        self.interface = Interface(self.graph, self.title, graph.input, dimensions, perhaps_empty(graph))

    def run(self) -> _core.Graph:
        """The graph, before any pass. Errors: ValueError."""
        try:
            return self._content()
        except _Unreadable as error:
            raise ValueError(str(error)) from None
        finally:
            self.graph.forget()

    def _content(self) -> _core.Graph:
        graph = self.model.graph
        scope = Scope({"": None}, opsets(self.model.opset_import))
        self._read_constants([*graph.initializer, *self.tensors], scope)
        self._refuse_sparse(graph)
        for info in graph.input:
            if info.name not in scope.values:
                scope.values[info.name] = self.interface.input(info)
        self.interface.check_dimensions()
        self._read_nodes(graph.node, scope)
        for info in graph.output:
            self.interface.output(info.name, scope.values.get(info.name))
        self.interface.finish()
        return self.graph.writer.finish()

    def _read_constants(self, tensors: Iterable[onnx.TensorProto], scope: Scope) -> None:
        for tensor in tensors:
            what = f"{self.title}: initializer '{tensor.name}'"
            scope.values[tensor.name] = self._constant(tensor, what, scope)

    def _constant(self, tensor: onnx.TensorProto, what: str, scope: Scope) -> Operand:
        array, dtype = array_of(tensor, self.folder, what)
        if scope.depth == 0:
            self.graph.budget.data(array)
        return Operand(dtype, array=array)

    def _refuse_sparse(self, graph: onnx.GraphProto) -> None:
        if graph.sparse_initializer:
            name = graph.sparse_initializer[0].values.name
            raise _Unreadable(f"{self.title}: initializer '{name}' is sparse; store it as a dense tensor")

    # --- nodes --------------------------------------------------------------------------------------

    def _read_nodes(self, nodes: Iterable[onnx.NodeProto], scope: Scope) -> None:
        self.graph.budget.nodes(len(nodes), scope.depth)
        for proto in nodes:
            node = self._node(proto, scope)
            self.graph.label, self.graph.operator = node.name, node.short_title
            results = self._checked_results(node, proto, scope)
            for name, result in zip(proto.output, results, strict=False):
                if name and result is None:
                    raise self._error(node, f"output '{name}' is not computed", scope)
                scope.values[name] = result
            scope.values[""] = None
            for name in proto.output[len(results) :]:
                if name:
                    raise self._error(node, f"output '{name}' is not computed", scope)

    def _checked_results(self, node: Node, proto: onnx.NodeProto, scope: Scope) -> list[Operand | None]:
        try:
            results = self._results(node, proto, scope)
            for result in results:
                if result is not None and result.array is not None:
                    self.graph.budget.made(result.array)
            return results
        except _Unreadable:
            raise
        except Undecided as error:
            reason = f"it depends on whether {error}, which is open until the model is called"
            raise self._error(node, reason, scope) from None
        except Refused as error:
            raise self._error(node, str(error), scope, error.remedy) from None
        except ValueError as error:
            raise self._error(node, str(error), scope) from None
        except MemoryError as error:
            raise self._error(node, f"there is not enough memory for it: {error}", scope) from None
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            reason = f"{self._shown(node)} do not go together ({type(error).__name__}: {error})"
            raise self._error(node, reason, scope) from None

    def _error(self, node: Node, reason: str, scope: Scope, remedy: str | None = None) -> _Unreadable:
        """With the remedy; where extents are open, that may be to fix them."""
        remedy = Refused("").remedy if remedy is None else remedy
        is_open = any(x is not None and x.value is not None and self.graph.is_open(x) for x in node.inputs)
        if is_open and "dimensions={" not in remedy:
            names = ", ".join(f"'{name}': 1" for name in self.graph.dimensions)
            remedy = f"Fixing dimensions may help: dimensions={{{names}}} (--dimension NAME=N). {remedy}"
        return _Unreadable(f"{self.title}: {node.title}{scope.where}: {reason}. {remedy}")

    def _shown(self, node: Node) -> str:
        """Inputs and attributes, for messages."""
        inputs = ", ".join(
            "none" if x is None else f"{x.dtype}{self.graph.shape(x) if isinstance(x, Operand) else ''}"
            for x in node.inputs
        )
        attributes = ", ".join(
            f"{name}={value}"
            for name, value in node.attributes.items()
            if not isinstance(value, (Operand, Branch))
        )
        return f"its inputs ({shortened(inputs)}) and attributes ({shortened(attributes)})"

    def _results(self, node: Node, proto: onnx.NodeProto, scope: Scope) -> list[Operand | None]:
        function = self.library.own(node, proto)
        if function is not None:
            return self._called(function, node, proto, scope)
        if node.op in CONTROL_FLOW and not node.domain:
            return CONTROL_FLOW[node.op](self, node)
        node = modernised(self.graph, node)
        known = folded(self.graph, node)
        if known is not None:
            return known
        read = OPERATORS.get((node.domain, node.op))
        result = AS_DEFINED if read is None else read(self.graph, node)
        if result is AS_DEFINED:
            function = self.library.standard(self.graph, node, _resolved(proto, scope))
            if function is None:
                raise self._no_function(node)
            return self._called(function, node, proto, scope)
        return list(result) if isinstance(result, (list, tuple)) else [result]

    def _no_function(self, node: Node) -> Refused:
        if node.domain not in ("", MICROSOFT):
            return Refused(
                f"operators of the domain '{node.domain}' are not read",
                "Export the model without them, or with their functions in the model",
            )
        if not node.domain and not defs.has(node.op, node.opset):
            return Refused(
                "this operator is not in the operator set that the model imports",
                "onnx.version_converter.convert_version changes the set",
            )
        return Refused(
            "this operator is not read",
            "`python -m headrace.onnx.coverage` lists those that are; export the model so that it uses them, "
            "compute this part outside the model, or run the model with ONNX Runtime",
        )

    @contextmanager
    def inside(self, body: Graph) -> Iterator[None]:
        """Nodes that are read meanwhile become ops of that graph."""
        outer, self.graph = self.graph, body
        try:
            yield
        finally:
            self.graph = outer

    def read_body(self, branch: Branch, inputs: list[Operand]) -> list[Operand]:
        """The results of a graph that is an attribute, as part of the graph that is made now."""
        outer, graph = branch.scope, branch.graph
        invalid_if(
            len(graph.input) != len(inputs),
            f"its body has {len(graph.input)} inputs; it is given {len(inputs)}",
        )
        inner = replace(outer, values=dict(outer.values), depth=outer.depth + 1)
        self._refuse_sparse(graph)
        self._read_constants(graph.initializer, inner)
        inner.values.update(zip((info.name for info in graph.input), inputs, strict=True))
        label, operator = self.graph.label, self.graph.operator
        self._read_nodes(graph.node, inner)
        self.graph.label, self.graph.operator = label, operator
        results = [inner.values.get(info.name) for info in graph.output]
        missing = [info.name for info, x in zip(graph.output, results, strict=True) if x is None]
        invalid_if(missing, f"its body computes no '{next(iter(missing), '')}'")
        return results

    def _called(
        self, function: Function, node: Node, proto: onnx.NodeProto, scope: Scope
    ) -> list[Operand | None]:
        """The results of a function's nodes, which see its parameters only."""
        body, values = function.proto, {"": None}
        invalid_if(
            len(node.inputs) > len(body.input),
            f"{function.name} has {len(body.input)} inputs; the node has {len(node.inputs)}",
        )
        for i, name in enumerate(body.input):
            values[name] = node.inputs[i] if i < len(node.inputs) else None
        given = {a.name: found for a in proto.attribute if (found := _meant(a, scope)) is not None}
        defaults = {name: (a, scope) for name, a in function.defaults.items()}
        caller = scope.caller or node.title
        inner = Scope(
            values=values,
            versions=function.versions,
            parameters=defaults | given,
            caller=caller,
            where=f" in {function.name}, which {caller} calls",
            depth=scope.depth + 1,
        )
        self._read_nodes(body.node, inner)
        return [inner.values.get(name) for name in body.output]

    def _node(self, proto: onnx.NodeProto, scope: Scope) -> Node:
        domain = domain_named(proto.domain)
        node = Node(
            op=proto.op_type,
            domain=domain,
            opset=scope.versions.get(domain, 1),
            name=proto.name,
            inputs=[],
            outputs=list(proto.output),
        )
        for name in proto.input:
            if name not in scope.values:
                reason, remedy = f"input '{name}' is computed by no node before it", Invalid("").remedy
                raise self._error(node, reason, scope, remedy)
            node.inputs.append(scope.values[name])
        for attribute in proto.attribute:
            found = _meant(attribute, scope)
            if found is not None:
                node.attributes[attribute.name] = self._attribute(node, attribute.name, *found)
        return node

    def _attribute(self, node: Node, name: str, attribute: AttributeProto, scope: Scope) -> Any:
        what = f"attribute '{name}'"
        if attribute.type == AttributeProto.TENSOR:
            return self._constant(attribute.t, f"{self.title}: {node.title}: {what}", scope)
        if attribute.type == AttributeProto.GRAPH:
            return Branch(attribute.g, scope)
        try:
            value = onnx.helper.get_attribute_value(attribute)
        except (ValueError, UnicodeDecodeError) as error:
            raise self._error(node, f"{what}: {error}", scope, Invalid("").remedy) from None
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, (list, tuple)) or type(value).__name__ == "RepeatedScalarContainer":
            return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value]
        return value


def _meant(attribute: AttributeProto, scope: Scope) -> tuple[AttributeProto, Scope] | None:
    """Where it refers to a function's parameter, that; None where the call leaves it out."""
    if attribute.ref_attr_name:
        return scope.parameters.get(attribute.ref_attr_name)
    return attribute, scope


def _resolved(proto: onnx.NodeProto, scope: Scope) -> onnx.NodeProto:
    """The node with its parameters' values."""
    if not any(a.ref_attr_name for a in proto.attribute):
        return proto
    result = onnx.NodeProto()
    result.CopyFrom(proto)
    del result.attribute[:]
    for attribute in proto.attribute:
        found = _meant(attribute, scope)
        if found is not None:
            result.attribute.add().CopyFrom(found[0])
            result.attribute[-1].name = attribute.name
    return result


def _count(model: onnx.ModelProto) -> int:
    """Nodes, also of branches and functions."""

    def within(nodes: Iterable[onnx.NodeProto]) -> int:
        return sum(
            1 + sum(within(g.node) for a in node.attribute for g in ([a.g] if a.HasField("g") else a.graphs))
            for node in nodes
        )

    return within(model.graph.node) + sum(within(f.node) for f in model.functions)
