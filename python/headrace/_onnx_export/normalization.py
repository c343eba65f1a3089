"""Normalisation by channel and over axes."""

from __future__ import annotations

from .registry import REAL, Node, lowers
from .writer import Writer


def _vector(w: Writer, x: str | None, axis: int, rank: int) -> str | None:
    """A vector of one value per channel, ready to be combined with the input."""
    return x and w.unsqueeze(x, list(range(1, rank - axis)))


def _normalized(w: Writer, n: Node, x: str, mean: str, variance: str, affine: list[str | None]) -> str:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias."""
    raised = w.node("Add", [variance, w.constant(n.attributes["epsilon"], n.dtype)])
    y = w.node("Div", [w.node("Sub", [x, mean]), w.node("Sqrt", [raised])])
    scale, bias = affine
    if scale:
        y = w.node("Mul", [y, scale])
    return w.node("Add", [y, bias]) if bias else y


@lowers("batch_normalization", through=REAL, operands=5)
def batch_normalization(w: Writer, n: Node) -> str:
    rank, axis = len(n.shape), n.axis()
    mean, variance, scale, bias = (n.inputs[i] for i in range(1, 5))
    channels = n.shape[axis]
    if axis == 1 and isinstance(channels, int):
        scale = scale or w.vector(1, channels, n.dtype)
        bias = bias or w.vector(0, channels, n.dtype)
        operands = [n.x, scale, bias, mean, variance]
        return w.node("BatchNormalization", operands, epsilon=n.attributes["epsilon"])
    mean, variance, scale, bias = (_vector(w, v, axis, rank) for v in (mean, variance, scale, bias))
    return _normalized(w, n, n.x, mean, variance, [scale, bias])


def _statistics(w: Writer, x: str, axes: list[int]) -> tuple[str, str]:
    mean = w.node("ReduceMean", [x, w.ints(axes)], keepdims=1)
    centered = w.node("Sub", [x, mean])
    return mean, w.node("ReduceMean", [w.node("Mul", [centered, centered]), w.ints(axes)], keepdims=1)


@lowers("instance_normalization", through=REAL, operands=3)
def instance_normalization(w: Writer, n: Node) -> str:
    nchw = n.attributes["layout"] == "nchw"
    axis, axes = (1, [2, 3]) if nchw else (3, [1, 2])
    mean, variance = _statistics(w, n.x, axes)
    affine = [_vector(w, n.inputs[i], axis, 4) for i in (1, 2)]
    return _normalized(w, n, n.x, mean, variance, affine)


@lowers("layer_normalization", through=REAL, operands=3)
def layer_normalization(w: Writer, n: Node) -> str:
    rank = len(n.shape)
    axes = n.attributes.get("axes")
    axes = list(range(1, rank)) if axes is None else [axis % rank for axis in axes]
    scale, bias = n.inputs[1], n.inputs[2]
    if not axes:  # every element is its own mean: x - x, so that NaN stays NaN
        y = w.node("Sub", [n.x, n.x])
        return w.node("Add", [y, bias]) if bias else y
    if scale and axes == list(range(axes[0], rank)):
        return w.node("LayerNormalization", [n.x, scale, bias], axis=axes[0], epsilon=n.attributes["epsilon"])
    mean, variance = _statistics(w, n.x, axes)
    affine = [_spread(w, v, axes, rank) for v in (scale, bias)]
    return _normalized(w, n, n.x, mean, variance, affine)


def _spread(w: Writer, x: str | None, axes: list[int], rank: int) -> str | None:
    """Scale or bias, whose dimensions are in the order of `axes`, aligned with the input."""
    if x is None:
        return None
    x = w.transpose(x, sorted(range(len(axes)), key=lambda i: axes[i]))
    return w.unsqueeze(x, [i for i in range(rank) if i not in axes])
