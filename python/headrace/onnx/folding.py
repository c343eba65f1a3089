"""Nodes whose inputs are known, computed while the model is read: above all the arithmetic of shapes.

Extents that are known only at run time take part: arrays of objects hold them as polynomials.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .folds import BROADCAST, FOLDS, INTEGERS, LARGEST, REAL_FOLDS, REALS, TRUTHS, cast_of
from .graph import Graph, Operand, Undecided, known
from .registry import Node
from .source import DTYPES

_LARGEST_RESULTS = 64 * LARGEST  # places of non-zeros are that many, where few elements have many dimensions
_NUMPY_ERRORS = (ValueError, IndexError, TypeError, ZeroDivisionError, KeyError, OverflowError)
_NUMBERS = range(-(2**63), 2**64)  # that run time has; Python's own grow without end
# Without a form in the graph, or cheap here; none of them makes much of little.
_BY_REFERENCE = {
    "NonZero",
    "Compress",
    "ReduceSum",
    "ReduceMax",
    "ReduceMin",
    "ReduceMean",
    "CumSum",
    "CumProd",
    "ArgMax",
    "ArgMin",
    "TopK",
    "Sqrt",
    "Exp",
    "Log",
    "Floor",
    "Ceil",
    "Round",
    "Pow",
    "Mod",
    "Div",
    "Add",
    "Sub",
    "Mul",
    "Reciprocal",
    "Trilu",
    "GatherND",
    "GatherElements",
    "ScatterND",
    "ScatterElements",
    "Sign",
    "Greater",
    "Less",
    "GreaterOrEqual",
    "LessOrEqual",
    "Equal",
    "And",
    "Or",
    "Xor",
    "Not",
    "IsNaN",
    "IsInf",
    "Det",
}


def folded(g: Graph, node: Node) -> list[Operand] | None:
    """The node's results where its inputs are known and few; None where an op has to compute them."""
    given = [x for x in node.inputs if x is not None]
    if node.op == "Identity" and given and not isinstance(given[0], Operand):
        return given  # a sequence or an optional
    if not given or node.domain or any(x.array is None for x in given):
        return None
    if sum(x.array.size for x in given) > LARGEST:
        return None
    if not node.outputs or _is_large_together(node, given):
        return None
    symbolic = any(x.array.dtype == object for x in given)
    results: list[Operand] | None = None
    if node.op in FOLDS and (symbolic or all(x.dtype in INTEGERS for x in given)):
        try:
            results = _by_extents(g, node, given)
        except (Undecided, *_NUMPY_ERRORS):
            pass  # an op, or its error, says the rest
    if results is None and not symbolic and node.op in _BY_REFERENCE:
        results = _by_reference(node)
    if results is not None and sum(x.array.size for x in results) > _LARGEST_RESULTS:
        return None
    return results


def _is_large_together(node: Node, given: list[Operand]) -> bool:
    """Whether operands of few elements broadcast to many."""
    if node.op not in BROADCAST:
        return False
    try:
        return math.prod(np.broadcast_shapes(*(x.array.shape for x in given))) > LARGEST
    except ValueError:
        return False


def _by_extents(g: Graph, node: Node, given: list[Operand]) -> list[Operand] | None:
    if any(x.dtype not in INTEGERS and x.dtype not in REALS for x in given):
        return None
    function = FOLDS[node.op]
    if given[-1].dtype in REALS and node.op in REAL_FOLDS:
        function = REAL_FOLDS[node.op]
    elif node.op == "Cast":
        function = cast_of(given[0].dtype, DTYPES.get(node.get("to")))
    result = function(node, [None if x is None else g.ranges.of_array(x.array) for x in node.inputs])
    if result is None:
        return None
    results = [np.asarray(r) for r in (result if isinstance(result, list) else [result])]
    for item in (item for r in results if r.dtype == object for item in r.flat):
        if isinstance(item, int) and item not in _NUMBERS:
            return None
    return [known(r, _dtype_of_fold(node, given)) for r in results]


def _dtype_of_fold(node: Node, given: list[Operand]) -> str:
    """Of a fold's result."""
    if node.op in TRUTHS:
        return "bool"
    if node.op != "Cast":
        return given[1 if node.op == "Where" else 0].dtype
    return DTYPES[node.get("to")]


def _by_reference(node: Node) -> list[Operand] | None:
    """By the onnx package's own implementation of the operator."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    names = [f"x{i}" if x is not None else "" for i, x in enumerate(node.inputs)]
    outputs = [f"y{i}" for i, _ in enumerate(node.outputs)]
    attributes = {k: v for k, v in node.attributes.items() if v is not None}
    made = onnx.helper.make_node(node.op, names, outputs, **attributes)
    graph = onnx.helper.make_graph(
        [made],
        "node",
        [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.UNDEFINED, None) for n in names if n],
        [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.UNDEFINED, None) for n in outputs],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", node.opset)])
    feeds = {n: x.array for n, x in zip(names, node.inputs, strict=True) if x is not None}
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, feeds)
        return [known(r, _dtype_of(r)) for r in results]
    except Exception:  # whatever NumPy raises; the op in the graph says what is wrong
        return None


def _dtype_of(array: Any) -> str:
    import onnx

    return DTYPES[onnx.helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)]
