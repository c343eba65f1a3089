"""pywebnn's debugging calls of MLGraph. There [] may be an unknown shape; here it is always a scalar."""

from __future__ import annotations

from typing import Any

from headrace._core import GraphView, MLGraph, NodeView, ValueView, view


def _name(value: ValueView, index: int) -> str:
    return value.name or f"operand_{index}"


def _extents(value: ValueView) -> list[int]:
    """The shape with dynamic extents at their largest."""
    return [dim if isinstance(dim, int) else dim[1] for dim in value.shape]


def _producers(graph: GraphView) -> dict[int, NodeView]:
    return {output: node for node in graph.nodes for output in node.outputs}


def _unknown(graph: GraphView) -> list[int]:
    return [i for i, value in enumerate(graph.values) if not value.shape and value.kind != "constant"]


def debug_operand(self: MLGraph, idx: int) -> str:
    """One line about an operand; it says "not found" when there is none."""
    values = view(self).values
    if not 0 <= idx < len(values):
        return f"Operand[{idx}]: not found"
    value = values[idx]
    name = repr(value.name) if value.name else None
    return f"Operand[{idx}]: name={name}, kind={value.kind}, type={value.data_type}, shape={_extents(value)}"


def count_empty_shapes(self: MLGraph) -> int:
    """Operands of shape []."""
    return sum(not value.shape for value in view(self).values)


def count_scalar_constants(self: MLGraph) -> int:
    """Constants of shape []."""
    return sum(not value.shape and value.kind == "constant" for value in view(self).values)


def count_unknown_shapes(self: MLGraph) -> int:
    """Operands of shape [] that are no constants."""
    return len(_unknown(view(self)))


def count_unknown_shapes_excluding_scalar_ops(self: MLGraph) -> int:
    """The same without the results of reductions over all dimensions, which are rightly scalars."""
    graph = view(self)
    producers = _producers(graph)

    def is_reduced(i: int) -> bool:
        node = producers.get(i)
        return bool(node and node.op.startswith("reduce_") and graph.values[node.inputs[0]].shape)

    return sum(not is_reduced(i) for i in _unknown(graph))


def debug_unknown_shapes_structured(self: MLGraph) -> list[dict[str, Any]]:
    """What count_unknown_shapes counts: id, name, op (None of inputs) and inputs (id, name, shape)."""
    graph = view(self)
    producers = _producers(graph)
    rows = []
    for i in _unknown(graph):
        node = producers.get(i)
        operands = [j for j in node.inputs if j is not None] if node else []
        rows.append(
            {
                "id": i,
                "name": _name(graph.values[i], i),
                "op": node.op if node else None,
                "inputs": [
                    {"id": j, "name": _name(graph.values[j], j), "shape": _extents(graph.values[j])}
                    for j in operands
                ],
            }
        )
    return rows


def debug_unknown_shapes(self: MLGraph) -> list[str]:
    """The same as text, one line an operand."""
    lines = []
    for row in debug_unknown_shapes_structured(self):
        if row["op"] is None:
            lines.append(f"{row['name']} (id={row['id']}, op=<none>)")
            continue
        inputs = ", ".join(f"{operand['name']}{operand['shape']}" for operand in row["inputs"])
        lines.append(f"{row['name']} (id={row['id']}, op={row['op']}, inputs=[{inputs}])")
    return lines


def install() -> None:
    """Adds the functions above to MLGraph."""
    for function in (
        debug_operand,
        count_empty_shapes,
        count_scalar_constants,
        count_unknown_shapes,
        count_unknown_shapes_excluding_scalar_ops,
        debug_unknown_shapes,
        debug_unknown_shapes_structured,
    ):
        setattr(MLGraph, function.__name__, function)
