"""Normalisation by batch statistics, layers, instances, groups, norms and neighbours."""

from __future__ import annotations

from ..graph import Dim, Graph, Operand, known, product
from ..registry import Node, invalid_if, reads, refuse_if


@reads("BatchNormalization")
def batch_normalization(g: Graph, node: Node) -> Operand | list[Operand]:
    x, scale, bias, mean, variance = (node.operand(i) for i in range(5))
    training = node.get("training_mode", 0) if node.opset >= 14 else any(node.wants(i) for i in range(1, 5))
    refuse_if(
        not node.get("spatial", 1),
        "spatial is 0, statistics for every element; only 1 is read, statistics for every channel",
    )
    scale, bias, mean, variance = (g.cast(v, x.dtype) for v in (scale, bias, mean, variance))
    axis = 1 if g.rank(x) > 1 else 0
    if training:
        return _by_batch(g, node, x, scale, bias, mean, variance)
    return g.op(
        "batch_normalization",
        x,
        mean,
        variance,
        scale,
        bias,
        axis=axis,
        epsilon=float(node.get("epsilon", 1e-5)),
    )


def _by_batch(
    g: Graph, node: Node, x: Operand, scale: Operand, bias: Operand, mean: Operand, variance: Operand
) -> list[Operand]:
    """By the batch's own statistics, and the given ones moved towards them."""
    refuse_if(
        node.opset < 14 and any(node.wants(i) for i in (3, 4)),
        "outputs 3 and 4 are wanted, the batch's statistics, which only operator sets before 14 give out",
        "Export the model for inference",
    )
    column = [1, g.shape(x)[1], *[1] * (g.rank(x) - 2)]
    axes = [i for i in range(g.rank(x)) if i != 1]
    own = g.op("reduce_mean", x, axes=axes, keep_dimensions=True)
    apart = g.op("sub", x, own)
    spread = g.op("reduce_mean", g.op("mul", apart, apart), axes=axes, keep_dimensions=True)
    y = g.op("div", apart, g.op("sqrt", g.plus(spread, float(node.get("epsilon", 1e-5)))))
    y = g.op("add", g.op("mul", y, g.reshape(scale, column)), g.reshape(bias, column))
    momentum = float(node.get("momentum", 0.9))
    moved = [
        g.op("add", g.times(old, momentum), g.times(g.reshape(new, g.shape(old)), 1 - momentum))
        for old, new in ((mean, own), (variance, spread))
    ]
    return [y, *moved][: max(len(node.outputs), 1)]


@reads("InstanceNormalization")
def instance_normalization(g: Graph, node: Node) -> Operand:
    x = node.x
    n, c, *sizes = shape = g.shape(x)
    invalid_if(not sizes, f"the input has {len(shape)} dimensions; 3 are the least")
    image = x if len(sizes) == 2 else g.reshape(x, [n, c, 1, product(sizes)])
    options = {"epsilon": float(node.get("epsilon", 1e-5))}
    y = g.op("instance_normalization", image, node.operand(1), node.operand(2), **options)
    return g.reshape(y, shape)


def normalised(g: Graph, x: Operand, axes: list[int], epsilon: float) -> tuple[Operand, Operand, Operand]:
    """x less its mean, divided by its deviation; the mean, and what it was multiplied by."""
    mean = g.op("reduce_mean", x, axes=axes, keep_dimensions=True)
    apart = g.op("sub", x, mean)
    variance = g.op("reduce_mean", g.op("mul", apart, apart), axes=axes, keep_dimensions=True)
    inverse = g.op("reciprocal", g.op("sqrt", g.plus(variance, epsilon)))
    return g.op("mul", apart, inverse), mean, inverse


@reads("LayerNormalization")
def layer_normalization(g: Graph, node: Node) -> list[Operand]:
    x, scale, bias = node.x, node.operand(1), node.optional(2)
    axis = g.axis(x, node.get("axis", -1))
    epsilon = float(node.get("epsilon", 1e-5))
    y = layer_norm(g, x, scale, bias, axis, epsilon)
    if not (node.wants(1) or node.wants(2)):
        return [y]
    stash = g.cast(x, "f32") if node.get("stash_type", 1) == 1 else x
    _, mean, inverse = normalised(g, stash, list(range(axis, g.rank(x))), epsilon)
    return [y, mean, inverse]


def layer_norm(
    g: Graph, x: Operand, scale: Operand | None, bias: Operand | None, axis: int, epsilon: float
) -> Operand:
    """Over the axes from `axis` on; scale and bias may also have other shapes that broadcast."""
    axes = list(range(axis, g.rank(x)))
    inner: list[Dim] = g.shape(x)[axis:]
    whole = [v for v in (scale, bias) if v is not None]
    if all(g.has_shape(v, inner) for v in whole):
        return g.op("layer_normalization", x, scale, bias, axes=axes, epsilon=epsilon)
    y = g.op("layer_normalization", x, axes=axes, epsilon=epsilon)
    y = y if scale is None else g.op("mul", y, scale)
    return y if bias is None else g.op("add", y, bias)


@reads("RMSNormalization", "SimplifiedLayerNormalization")
def rms_normalization(g: Graph, node: Node) -> list[Operand]:
    x, scale = node.x, node.operand(1)
    refuse_if(
        node.wants(1),
        "output 1 is wanted, the inverse deviation, which is not given out",
        "Export the model for inference, without this output",
    )
    axis = g.axis(x, node.get("axis", -1))
    return [rms_norm(g, x, scale, axis, float(node.get("epsilon", 1e-5)))]


def rms_norm(g: Graph, x: Operand, scale: Operand, axis: int, epsilon: float) -> Operand:
    dimensions, dtype = g.rank(x) - axis, scale.dtype
    if g.has_shape(scale, g.shape(x)[axis:]) and scale.dtype == x.dtype:
        return g.op("rms_norm", x, scale, dimensions=dimensions, epsilon=epsilon)
    y = g.op("rms_norm", x, dimensions=dimensions, epsilon=epsilon)
    return g.op("mul", g.cast(y, dtype), scale)


@reads("GroupNormalization")
def group_normalization(g: Graph, node: Node) -> Operand:
    x, groups = node.x, int(node.get("num_groups"))
    n, c, *sizes = shape = g.shape(x)
    c = g.fixed(c, "the number of channels")
    invalid_if(groups < 1 or c % groups, f"num_groups is {groups}, into which {c} channels do not divide")
    wide = g.reshape(x, [n, groups, product([c // groups, *sizes])])
    y = g.op("layer_normalization", wide, axes=[2], epsilon=float(node.get("epsilon", 1e-5)))
    scale, bias = (g.reshape(node.operand(i), [c, *[1] * len(sizes)]) for i in (1, 2))
    return g.op("add", g.op("mul", g.reshape(y, shape), scale), bias)


@reads("LpNormalization")
def lp_normalization(g: Graph, node: Node) -> Operand:
    """x divided by its norm; where that is 0 the result is 0."""
    x, p = node.x, node.get("p", 2)
    invalid_if(p not in (1, 2), f"p is {p}; 1 or 2")
    axis = g.axis(x, node.get("axis", -1))
    norm = g.op(f"reduce_l{p}", x, axes=[axis], keep_dimensions=True)
    zero = known(0, x.dtype)
    safe = g.op("where", g.op("equal", norm, zero), known(1, x.dtype), norm)
    return g.op("div", x, safe)


@reads("MeanVarianceNormalization")
def mean_variance_normalization(g: Graph, node: Node) -> Operand:
    x = node.x
    axes = [g.axis(x, int(a)) for a in node.get("axes") or [0, 2, 3]]
    mean = g.op("reduce_mean", x, axes=axes, keep_dimensions=True)
    apart = g.op("sub", x, mean)  # squared afterwards: means of large squares would cancel
    deviation = g.op("sqrt", g.op("reduce_mean", g.op("mul", apart, apart), axes=axes, keep_dimensions=True))
    return g.op("div", apart, g.plus(deviation, 1e-9))


@reads("LRN")
def local_response_normalization(g: Graph, node: Node) -> Operand:
    """x / (bias + alpha / size * the squares of the channels around it) ^ beta"""
    x, size = node.x, int(node.get("size"))
    invalid_if(size < 1, f"size is {size}; at least 1")
    n, c, *sizes = shape = g.shape(x)
    squares = g.reshape(g.op("mul", x, x), [n, 1, c, product(sizes)])
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    margin = {"beginning_padding": [0, 0, before, 0], "ending_padding": [0, 0, after, 0]}
    squares = g.op("pad", squares, mode="constant", value=0, **margin)
    means = g.op("average_pool2d", squares, window_dimensions=[size, 1])
    base = g.plus(g.times(g.reshape(means, shape), node.get("alpha", 1e-4)), node.get("bias", 1.0))
    return g.op("div", x, g.op("pow", base, known(node.get("beta", 0.75), x.dtype)))
