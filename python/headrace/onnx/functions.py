"""Functions: nodes that stand for others, by the model's own word or by ONNX's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, defs

from .graph import Extent, Graph, Operand
from .registry import Node, Refused
from .source import DTYPES, check_operator_set, domain_named, opsets

_ELEMENT_TYPES = {dtype: number for number, dtype in DTYPES.items()}


@dataclass
class Function:
    """A body, with what its parameters are where a call does not say."""

    name: str
    proto: FunctionProto
    defaults: dict[str, AttributeProto]

    @property
    def versions(self) -> dict[str, int]:
        """Of operator sets. Errors: ValueError for those that are not read."""
        versions = opsets(self.proto.opset_import)
        if "" in versions:
            check_operator_set(versions[""], self.name)
        return versions


class Library:
    """The functions that a model brings along; those that ONNX defines come when they are asked for."""

    def __init__(self, functions: Iterable[FunctionProto]) -> None:
        self._own = {(domain_named(f.domain), f.name, f.overload): f for f in functions}

    def own(self, node: Node, proto: NodeProto) -> Function | None:
        """The model's function for a node."""
        found = self._own.get((node.domain, node.op, proto.overload))
        if found is None:
            return None
        return Function(f"function '{found.name}'", found, {a.name: a for a in found.attribute_proto})

    def standard(self, g: Graph, node: Node, proto: NodeProto) -> Function | None:
        """What ONNX makes of an operator with these attributes and inputs; None where that is nothing."""
        if not defs.has(node.op, node.opset, node.domain):
            return None
        schema = defs.get_schema(node.op, node.opset, node.domain)
        content = _body(schema, g, node, proto)
        if content is None:
            return None
        body = content if isinstance(content, FunctionProto) else FunctionProto.FromString(content)
        defaults = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}
        return Function(f"ONNX's definition of {node.op}", body, defaults)


def _body(schema: defs.OpSchema, g: Graph, node: Node, proto: NodeProto) -> bytes | FunctionProto | None:
    """By the newest rules that the model's operator set has, or else by the oldest there are."""

    def version(among: list[int]) -> int:
        return max((v for v in among if v <= node.opset), default=min(among))

    try:
        if schema.has_function:
            return schema.get_function_with_opset_version(version(schema.function_opset_versions))
        if schema.has_context_dependent_function:
            types = [_type(g, x).SerializeToString() for x in node.inputs]
            return schema.get_context_dependent_function_with_opset_version(
                version(schema.context_dependent_function_opset_versions), proto.SerializeToString(), types
            )
    except (RuntimeError, ValueError, TypeError, onnx.checker.ValidationError) as error:
        raise Refused(f"ONNX cannot define it by other operators: {error}") from None
    return None


def _type(g: Graph, x: Operand | None) -> TypeProto:
    if x is None:
        return TypeProto()
    shape = [str(d) if isinstance(d, Extent) else d for d in g.shape(x)]
    return onnx.helper.make_tensor_type_proto(_ELEMENT_TYPES[x.dtype], shape)
