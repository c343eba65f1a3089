"""Layer, RMS, group and batch normalisation."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, arguments, lowers, merged
from .movement import product


def _last_axes(t: Translator, x: Value, shape: list[int]) -> list[int]:
    return list(range(t.rank(x) - len(shape), t.rank(x)))


def _layer_norm(t: Translator, a: dict[str, Any]) -> Value:
    x = t.value(a["input"])
    return t.op(
        "layer_normalization",
        x,
        t.optional(a["weight"]),
        t.optional(a["bias"]),
        axes=_last_axes(t, x, a["normalized_shape"]),
        epsilon=float(t.number(a["eps"])),
    )


@lowers("aten.layer_norm.default")
def layer_norm(t: Translator, node: torch.fx.Node) -> Value:
    return _layer_norm(t, arguments(node))


@lowers("aten.native_layer_norm.default")
def native_layer_norm(t: Translator, node: torch.fx.Node) -> list[Value | None]:
    return [_layer_norm(t, arguments(node)), None, None]


@lowers("aten.rms_norm.default")
def rms_norm(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    # PyTorch computes smaller floats in f32, and takes that one's epsilon.
    computed = torch.promote_types(node.meta["val"].dtype, torch.float32)
    eps = torch.finfo(computed).eps if a["eps"] is None else float(t.number(a["eps"]))
    dimensions = len(a["normalized_shape"])
    return t.op("rms_norm", t.value(a["input"]), t.optional(a["weight"]), dimensions=dimensions, epsilon=eps)


def _group_norm(
    t: Translator, x: Value, groups: int, weight: Value | None, bias: Value | None, eps: float
) -> Value:
    shape = t.shape(x)
    batch, channels, *rest = shape
    if not isinstance(channels, int):
        raise Unsupported("groups of an unknown number of channels")
    flat = t.reshape(x, [batch, groups, merged([channels // groups, *rest])])
    y = t.reshape(t.op("layer_normalization", flat, axes=[2], epsilon=eps), shape)
    column = [channels, *[1] * len(rest)]
    if weight is not None:
        y = t.op("mul", y, t.reshape(weight, column))
    return y if bias is None else t.op("add", y, t.reshape(bias, column))


@lowers("aten.group_norm.default")
def group_norm(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    weight, bias, eps = t.optional(a["weight"]), t.optional(a["bias"]), float(t.number(a["eps"]))
    return _group_norm(t, t.value(a["input"]), a["num_groups"], weight, bias, eps)


@lowers("aten.native_group_norm.default")
def native_group_norm(t: Translator, node: torch.fx.Node) -> list[Value | None]:
    x, weight, bias, _, _, _, groups, eps = node.args
    y = _group_norm(t, t.value(x), groups, t.optional(weight), t.optional(bias), float(t.number(eps)))
    return [y, None, None]


def _batch_norm(
    t: Translator, x: Value, mean: Value, variance: Value, weight: Any, bias: Any, eps: Any
) -> Value:
    options = {"axis": 1, "epsilon": float(t.number(eps))}
    return t.op("batch_normalization", x, mean, variance, t.optional(weight), t.optional(bias), **options)


@lowers("aten._native_batch_norm_legit_no_training.default")
def batch_norm(t: Translator, node: torch.fx.Node) -> list[Value | None]:
    x, weight, bias, mean, variance, _, eps = node.args
    return [_batch_norm(t, t.value(x), t.value(mean), t.value(variance), weight, bias, eps), None, None]


@lowers("aten._native_batch_norm_legit.no_stats")
def batch_norm_by_itself(t: Translator, node: torch.fx.Node) -> list[Value | None]:
    """By the batch's own statistics; instance normalisation becomes this."""
    a = arguments(node)
    x = t.value(a["input"])
    axes = [axis for axis in range(t.rank(x)) if axis != 1]
    mean = t.op("reduce_mean", x, axes=axes, keep_dimensions=True)
    square = t.op("reduce_sum_square", t.op("sub", x, mean), axes=axes)
    count = product([t.shape(x)[axis] for axis in axes])
    variance = t.op("div", square, t.scalar(count, t.dtype(x)))
    flat = t.reshape(mean, [t.shape(x)[1]])
    return [_batch_norm(t, x, flat, variance, a["weight"], a["bias"], a["eps"]), None, None]


@lowers("aten.native_dropout.default")
def dropout(t: Translator, node: torch.fx.Node) -> list[Value | None]:
    a = arguments(node)
    if a["train"] and a["p"]:
        raise Unsupported("random numbers")
    return [t.value(a["input"]), None]
