"""Lookups by index."""

from __future__ import annotations

import torch

from ..translate import Translator, Unsupported, Value, lowers


@lowers("aten.embedding.default")
def embedding(t: Translator, node: torch.fx.Node) -> Value:
    return t.op("gather", t.value(node.args[0]), t.value(node.args[1]), axis=0)


@lowers("aten.index_select.default")
def index_select(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    return t.op("gather", x, t.value(node.args[2]), axis=t.axis(x, node.args[1]))


@lowers("aten.gather.default")
def gather(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    return t.op("gather_elements", x, t.value(node.args[2]), axis=t.axis(x, node.args[1]))


@lowers("aten.index.Tensor")
def index(t: Translator, node: torch.fx.Node) -> Value:
    """One index tensor along one dimension."""
    x, indices = t.value(node.args[0]), node.args[1]
    given = [i for i, tensor in enumerate(indices) if tensor is not None]
    if len(given) != 1:
        raise Unsupported("several index tensors")
    picks = t.value(indices[given[0]])
    if t.dtype(picks) not in ("i32", "i64"):
        raise Unsupported("a mask as index")
    return t.op("gather", x, picks, axis=given[0])


@lowers("aten.scatter.src", "aten.scatter.value")
def scatter(t: Translator, node: torch.fx.Node) -> Value:
    """src has the shape of the indices here; ATen also takes larger ones."""
    x, indices = t.value(node.args[0]), t.value(node.args[2])
    if "value" in str(node.target):
        scalar = t.scalar(t.number(node.args[3]), t.dtype(x))
        updates = t.op("expand", scalar, new_shape=t.shape(indices))
    else:
        updates = t.value(node.args[3])
        if t.shape(updates) != t.shape(indices):
            raise Unsupported("updates that are larger than the indices")
    return t.op("scatter_elements", x, indices, updates, axis=t.axis(x, node.args[1]))
