"""The ops of test_ops.py: by group and name, a function and what makes its inputs."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def whole(*values: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


X = (3, 4, 5)
IMAGE = (1, 2, 7, 6)


def on(*shape: int):
    """Normally distributed inputs, one for each case that it is used in."""
    return lambda: (floats(*shape),)


def put_behind(x: torch.Tensor, i: torch.Tensor, j: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, i, j] = values
    return y


UNARY = (
    {
        name: (getattr(torch, name), on(*X))
        for name in [
            "abs",
            "atan",
            "ceil",
            "cos",
            "cosh",
            "asinh",
            "erf",
            "exp",
            "expm1",
            "floor",
            "neg",
            "relu",
            "round",
            "sigmoid",
            "sign",
            "sin",
            "sinh",
            "square",
            "tan",
            "tanh",
            "trunc",
        ]
    }
    | {
        name: (getattr(torch, name), lambda low=low: (torch.rand(3, 5) * 0.9 + low,))
        for name, low in {
            "acos": 0,
            "asin": -0.5,
            "atanh": -0.5,
            "acosh": 1,
            "log": 0.05,
            "log10": 0.05,
            "log2": 0.05,
            "log1p": -0.5,
            "sqrt": 0,
            "rsqrt": 0.1,
            "reciprocal": 0.1,
        }.items()
    }
    | {
        "atan2": (torch.atan2, lambda: (floats(*X), floats(*X))),
        "round_decimals": (lambda x: torch.round(x, decimals=2), on(*X)),
        "round_tens": (lambda x: torch.round(x * 50, decimals=-1), on(*X)),
        "elu": (lambda x: F.elu(x, 0.7), on(*X)),
        "selu": (F.selu, on(*X)),
        "celu": (lambda x: F.celu(x, 1.7), on(*X)),
        "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), on(*X)),
        "prelu": (F.prelu, lambda: (floats(2, 3, 4), torch.rand(3))),
        "glu": (lambda x: F.glu(x, 1), on(*X)),
        "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), on(*X)),
        "softplus": (lambda x: F.softplus(x, 2.0), on(*X)),
        "logsigmoid": (F.logsigmoid, on(*X)),
        "mish": (F.mish, on(*X)),
        "threshold": (lambda x: F.threshold(x, 0.3, -2.0), on(*X)),
        "hardtanh": (lambda x: F.hardtanh(x, -0.4, 0.9), on(*X)),
        "hardswish": (F.hardswish, on(*X)),
        "softshrink": (lambda x: F.softshrink(x, 0.3), on(*X)),
        "clamp_tensor": (torch.clamp, lambda: (floats(*X), -torch.ones(5), torch.ones(5))),
        "round_integers": (lambda i: torch.floor(i) + torch.trunc(i), lambda: (torch.arange(5),)),
    }
)

ARITHMETIC = {
    "div_floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), lambda: (floats(*X) * 5, floats(*X))),
    "div_floor_near": (lambda x: torch.div(x, 0.1, rounding_mode="floor"), lambda: (torch.arange(6) * 0.5,)),
    "div_floor_zero": (
        lambda x, y: torch.floor_divide(x, y),
        lambda: (torch.tensor([1.0, -1.0, 3.0]), torch.tensor([0.0, 0.0, 2.0])),
    ),
    "div_trunc": (lambda x: torch.div(x, 0.7, rounding_mode="trunc"), lambda: (floats(*X) * 5,)),
    "integer_floor": (lambda a: a // 3, lambda: (torch.arange(-7, 8),)),
    "integer_trunc": (
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        lambda: (whole(-7, 7, -8), whole(2, -2, 3)),
    ),
    "remainder": (torch.remainder, lambda: (floats(*X) * 5, floats(*X))),
    "remainder_integers": (lambda a: a % -3, lambda: (torch.arange(-7, 8),)),
    "fmod": (torch.fmod, lambda: (floats(*X) * 5, floats(*X))),
    "fmod_scalar": (lambda x: torch.fmod(x, 0.7), lambda: (floats(*X) * 5,)),
    "pow": (lambda x, y: torch.pow(x.abs(), y), lambda: (floats(*X), floats(*X))),
    "pow_of_scalar": (lambda x: torch.pow(2.0, x), on(*X)),
    "promotion": (lambda x, i: x * i + 2, lambda: (floats(3, 4), torch.arange(4))),
    "integers": (lambda i: (i * 3 - 7).clamp(0, 9), lambda: (torch.arange(12),)),
    "alpha": (
        lambda x, y: torch.add(x, y, alpha=0.3) - torch.rsub(x, y, alpha=2),
        lambda: (floats(5), floats(5)),
    ),
    "baddbmm": (
        lambda a, b, c: torch.baddbmm(a, b, c, alpha=0.5),
        lambda: (floats(2, 3, 5), floats(2, 3, 4), floats(2, 4, 5)),
    ),
    "sdpa_mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m > 0),
        lambda: (floats(1, 2, 4, 8), floats(1, 2, 6, 8), floats(1, 2, 6, 8), torch.ones(4, 6)),
    ),
    "cdist": (torch.cdist, lambda: (floats(2, 3, 4), floats(2, 5, 4))),
    "cdist_3": (lambda a, b: torch.cdist(a, b, p=3.0), lambda: (floats(3, 4), floats(5, 4))),
    "cdist_max": (lambda a, b: torch.cdist(a, b, p=math.inf), lambda: (floats(3, 4), floats(5, 4))),
    "pdist": (lambda a: F.pdist(a, 1.0), on(5, 4)),
}

LOGIC = {
    "isnan": (torch.isnan, lambda: (torch.tensor([1.0, math.nan, math.inf]),)),
    "isinf": (torch.isinf, lambda: (torch.tensor([1.0, math.nan, -math.inf]),)),
    "where": (lambda x, y: torch.where(x > y, x, 0.5), lambda: (floats(*X), floats(*X))),
    "logic": (lambda x, y: (x > 0) & ~(y < 0) | (x == y), lambda: (floats(*X), floats(*X))),
    "logical": (
        lambda i, j: torch.logical_or(torch.logical_and(i, j), torch.logical_not(i)) ^ (i > j),
        lambda: (whole(0, 1, 2), whole(3, 0, 4)),
    ),
    "bits": (lambda i, j: (i & j) | (i ^ 5), lambda: (torch.arange(-4, 4), torch.arange(8))),
    "bitwise_not": (
        lambda i, j: (~i, ~j),
        lambda: (torch.arange(4, dtype=torch.uint8), torch.arange(-2, 2, dtype=torch.int32)),
    ),
    "shifts": (
        lambda i, j: (i << j, i >> j, i << 3, torch.bitwise_right_shift(i, 1)),
        lambda: (torch.arange(-4, 4), torch.arange(8)),
    ),
    "masked_fill": (lambda x, m: x.masked_fill(m > 0, -2.0), lambda: (floats(*X), floats(4, 5))),
    "any_all": (lambda x: (torch.any(x > 1.5, 2), torch.all(x < 1, 0), torch.any(x > 9)), on(*X)),
}

REDUCTIONS = {
    "mean": (lambda x: (torch.mean(x), torch.mean(x, (0, 2))), on(*X)),
    "prod": (lambda x: (torch.prod(x, 1), torch.prod(x)), on(*X)),
    "extremes": (lambda x: (*torch.max(x, 1), *torch.min(x, -1, keepdim=True), x.max(), x.min()), on(*X)),
    "arg": (lambda x: (torch.argmax(x), torch.argmin(x, 1), torch.argmax(x, keepdim=True)), on(*X)),
    "var": (lambda x: (torch.var(x, (1, 2), correction=1), torch.std(x, 0), torch.var(x)), on(*X)),
    "cumsum": (lambda x: torch.cumsum(x, 1), on(*X)),
    "log_softmax": (lambda x: (torch.log_softmax(x, -1), torch.logsumexp(x, 1), F.softmin(x, 0)), on(*X)),
    "norm": (lambda x: (torch.linalg.vector_norm(x, 3, 1), F.normalize(x, dim=-1)), on(*X)),
    "sort": (lambda x: (*torch.sort(x, 1), *torch.sort(x, 0, descending=True)), on(*X)),
    "sort_ties": (lambda i: torch.sort(i, stable=True, descending=True)[1], lambda: (whole(2, 1, 2, 1, 3),)),
    "topk": (lambda x: (*torch.topk(x, 2), *torch.topk(x, 3, 1, largest=False)), on(*X)),
    "median": (
        lambda x: (torch.median(x), *torch.median(x, 1), torch.median(x, 2, keepdim=True)[0]),
        on(*X),
    ),
    "median_nan": (lambda x: torch.median(x), lambda: (torch.tensor([1.0, math.nan, 3.0]),)),
    "instance_norm": (lambda x, w: F.instance_norm(x, weight=w), lambda: (floats(2, 3, 4, 5), floats(3))),
}

MOVEMENT = {
    "reflect": (lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"), on(1, *X)),
    "reflect_3d": (lambda x: F.pad(x, (1, 2, 1, 1, 2, 1), mode="reflect"), on(1, 2, *X)),
    "replicate": (lambda x: F.pad(x, (2, 1, 1, 2), mode="replicate"), on(1, *X)),
    "replicate_1d": (lambda x: F.pad(x, (2, 1), mode="replicate"), on(*X)),
    "circular": (lambda x: F.pad(x, (2, 1, 1, 2), mode="circular"), on(1, *X)),
    "constant_pad": (lambda x: F.pad(x, (2, 1), value=0.5), on(*X)),
    "crop_pad": (lambda x: F.pad(x, (-1, 2, 1, -2), value=0.5), on(*X)),
    "slices": (lambda x: (x[:, 1:], x[..., -2:], x[:2, ::2], x[1:-1]), on(*X)),
    "select": (lambda x: x[:, 1] + x[:, -2], on(*X)),
    "slice_scatter": (lambda x, y: torch.slice_scatter(x, y, 1, 1, 3), lambda: (floats(3, 4), floats(3, 2))),
    "slice_scatter_step": (
        lambda x, y: torch.slice_scatter(x, y, 1, 1, 4, 2),
        lambda: (floats(3, 4), floats(3, 2)),
    ),
    "select_scatter": (lambda x, y: torch.select_scatter(x, y, 0, 1), lambda: (floats(3, 4), floats(4))),
    "flip": (lambda x: torch.flip(x, (0, 2)), on(*X)),
    "roll": (lambda x: torch.roll(x, (1, -2), (0, 2)), on(*X)),
    "repeat": (lambda x: (x.repeat(2, 1, 3), torch.repeat_interleave(x, 2, 1)), on(*X)),
    "unbind": (lambda x: x[:, 1] + x[..., -1].sum(0) + torch.unbind(x)[2], on(4, 4, 4)),
    "chunks": (lambda x: (*torch.chunk(x, 2, 1), *torch.split(x, [1, 4], 2)), on(*X)),
    "cat": (
        lambda x, i: (torch.cat((x, x * 2), 1), torch.cat((x, i)), torch.stack((x, x), -1)),
        lambda: (floats(3, 4), torch.arange(8).reshape(2, 4)),
    ),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), on(2, 8, 3, 4)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), on(2, 3, 4, 6)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 2), on(2, 4, 3, 3)),
    "diagonal": (lambda x: (torch.diagonal(x, 1, 1, 2), torch.diagonal(x, -1, 0, 2)), on(*X)),
    "as_strided": (lambda x: torch.as_strided(x, (2, 3), (4, 1), 2), on(3, 4)),
    "triangles": (lambda x: torch.tril(x) + torch.triu(x, 1), on(4, 4)),
    "unfold": (lambda x: F.unfold(x, (3, 2), dilation=(2, 1), padding=(1, 0), stride=(1, 2)), on(*IMAGE)),
    "fold": (lambda x: F.fold(x, (5, 6), (2, 3), padding=(1, 0), stride=(2, 1)), on(2, 18, 12)),
    "created": (
        lambda x: x + torch.arange(5) + torch.full((4, 1), 0.5) + torch.zeros_like(x) + torch.ones(1),
        on(*X),
    ),
}

INDEXING = {
    "gather": (lambda x, i: x.gather(1, i), lambda: (floats(3, 4), torch.tensor([[0, 1], [3, 3], [1, 2]]))),
    "index": (lambda x, i: x[:, i], lambda: (floats(*X), whole(3, 0, -1))),
    "index_pair": (
        lambda x, i, j: (x[i, j], x[:, i, j], x[i, :, j]),
        lambda: (floats(4, 4, 5), whole(3, 0, -1), whole(0, 1, 2)),
    ),
    "index_broadcast": (
        lambda x, i, j: x[i, j],
        lambda: (floats(*X), whole(2, 0).reshape(2, 1), whole(0, 1, -1)),
    ),
    "index_select": (lambda x, i: torch.index_select(x, -1, i), lambda: (floats(*X), whole(4, 0))),
    "index_put": (
        lambda x, i, v: torch.index_put(x, (i,), v),
        lambda: (floats(*X), whole(2, 0), floats(2, 4, 5)),
    ),
    "index_put_pair": (
        put_behind,
        lambda: (floats(*X), whole(2, 0), whole(-1, 3), floats(3, 2)),
    ),
    "index_put_one": (lambda x, i: torch.index_put(x, (i,), x[0, 0, 0]), lambda: (floats(*X), whole(2, 0))),
    "accumulate": (
        lambda x, i, j, v: torch.index_put(x, (i, j), v, accumulate=True),
        lambda: (floats(*X), whole(2, 0, -1), whole(-1, 3, 3), floats(3, 5)),
    ),
    "put_mask": (lambda x: torch.index_put(x, (x > 0.5,), torch.tensor(7.0)), on(*X)),
    "index_add": (
        lambda x, i, v: torch.index_add(x, 1, i, v),
        lambda: (floats(*X), whole(2, 2), floats(3, 2, 5)),
    ),
    "index_copy": (
        lambda x, i, v: torch.index_copy(x, 1, i, v),
        lambda: (floats(*X), whole(2, 0), floats(3, 2, 5)),
    ),
    "index_fill": (lambda x, i: torch.index_fill(x, 1, i, -3.0), lambda: (floats(*X), whole(2, 0))),
    "scatter": (
        lambda x, i, y: (x.scatter(1, i, y), x.scatter(1, i, 0.5)),
        lambda: (floats(3, 4), torch.tensor([[0], [3], [1]]), floats(3, 2)),
    ),
    "scatter_add": (
        lambda x, i, y: torch.scatter_add(x, 0, i, y),
        lambda: (floats(3, 4), torch.tensor([[0, 1], [2, 1], [0, 1]]), floats(3, 4)),
    ),
    "masked_scatter": (torch.masked_scatter, lambda: (floats(3, 4), floats(3, 4) > 0, floats(12))),
    "embedding_bag_sum": (
        lambda i, o, w: F.embedding_bag(i, w, o, mode="sum"),
        lambda: (whole(1, 2, 4, 5, 4, 3), whole(0, 2, 2), floats(6, 3)),
    ),
    "embedding_bag_mean": (
        lambda i, w: F.embedding_bag(i, w, mode="mean"),
        lambda: (torch.tensor([[1, 2], [3, 3]]), floats(6, 3)),
    ),
    "embedding_bag_ends": (
        lambda i, o, w: F.embedding_bag(i, w, o, mode="mean", include_last_offset=True),
        lambda: (whole(1, 2, 4, 5, 4, 3), whole(0, 2, 6), floats(6, 3)),
    ),
    "embedding_bag_max": (
        lambda i, o, w: F.embedding_bag(i, w, o, mode="max"),
        lambda: (whole(1, 2, 4, 5, 4, 3), whole(0, 2, 2), floats(6, 3)),
    ),
} | {
    f"scatter_{how}{'' if own else '_without'}": (
        lambda x, i, y, how=how, own=own: torch.scatter_reduce(x, 1, i, y, how, include_self=own),
        lambda: (floats(3, 4), torch.tensor([[0, 1, 0], [2, 2, 2], [3, 1, 0]]), floats(3, 3)),
    )
    for how in ("sum", "prod", "mean", "amax", "amin")
    for own in (True, False)
}

POOLS = {
    "max_ceil": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), on(*IMAGE)),
    "max_dilated": (lambda x: F.max_pool2d(x, 2, 1, dilation=2), on(*IMAGE)),
    "max_indices": (lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), on(*IMAGE)),
    "max_1d": (lambda x: F.max_pool1d(x, 3, 2, 1), on(2, 3, 9)),
    "max_3d": (lambda x: F.max_pool3d(x, 2, 2, 1, ceil_mode=True), on(1, 2, 5, 6, 7)),
    "average_padded": (lambda x: F.avg_pool2d(x, 3, 2, 1), on(*IMAGE)),
    "average_uncounted": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), on(*IMAGE)),
    "average_ceil": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), on(*IMAGE)),
    "average_divisor": (
        lambda x: F.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True, divisor_override=5),
        on(2, *IMAGE[1:]),
    ),
    "average_no_batch": (lambda x: F.avg_pool2d(x, 2), on(*IMAGE[1:])),
    "average_1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), on(2, 3, 8)),
    "average_3d": (lambda x: F.avg_pool3d(x, 2, 2, 1, ceil_mode=True), on(1, 2, 5, 6, 7)),
    "adaptive_average": (
        lambda x: (
            F.adaptive_avg_pool2d(x, (3, 4)),
            F.adaptive_avg_pool2d(x, (7, 3)),
            F.adaptive_avg_pool2d(x, 1),
        ),
        on(*IMAGE),
    ),
    "adaptive_average_1d": (
        lambda x: (F.adaptive_avg_pool1d(x, 4), F.adaptive_avg_pool1d(x, 3)),
        on(2, 3, 9),
    ),
    "adaptive_average_3d": (
        lambda x: (F.adaptive_avg_pool3d(x, (2, 3, 4)), F.adaptive_avg_pool3d(x, 1)),
        on(1, 2, 4, 6, 7),
    ),
    "adaptive_max": (
        lambda x: (F.adaptive_max_pool2d(x, (3, 4)), F.adaptive_max_pool2d(x, (7, 2), return_indices=True)),
        on(*IMAGE),
    ),
    "adaptive_max_3d": (
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 4), return_indices=True),
        on(1, 2, 4, 6, 7),
    ),
}

IMAGES = {
    "conv1d": (lambda x, w: F.conv1d(x, w, stride=2, padding=1), lambda: (floats(2, 3, 9), floats(4, 3, 3))),
    "conv2d_same": (
        lambda x, w: F.conv2d(x, w, padding="same"),
        lambda: (floats(1, 4, 5, 6), floats(4, 4, 3, 4)),
    ),
    "conv_transpose1d": (
        lambda x, w: F.conv_transpose1d(x, w, stride=2),
        lambda: (floats(2, 3, 5), floats(3, 4, 3)),
    ),
    "conv_transpose": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
        lambda: (floats(1, 3, 5, 5), floats(3, 4, 3, 3)),
    ),
    "conv3d": (
        lambda x, w, b: F.conv3d(x, w, b, stride=(2, 1, 2), padding=(1, 0, 1), dilation=(1, 2, 1)),
        lambda: (floats(2, 3, 5, 6, 7), floats(4, 3, 3, 2, 2), floats(4)),
    ),
    "conv3d_groups": (
        lambda x, w: F.conv3d(x, w, groups=2, dilation=(2, 1, 1)),
        lambda: (floats(1, 4, 5, 4, 4), floats(6, 2, 2, 2, 2)),
    ),
    "conv_transpose3d": (
        lambda x, w, b: F.conv_transpose3d(x, w, b, stride=2, padding=1, output_padding=1, groups=2),
        lambda: (floats(1, 4, 3, 4, 3), floats(4, 2, 3, 2, 3), floats(4)),
    ),
    "conv_transpose3d_padded": (
        lambda x, w: F.conv_transpose3d(x, w, padding=(3, 0, 1), dilation=(1, 2, 1)),
        lambda: (floats(1, 2, 6, 4, 3), floats(2, 3, 2, 2, 3)),
    ),
    "bilinear": (lambda x: F.interpolate(x, (7, 9), mode="bilinear"), on(1, 2, 4, 5)),
    "bilinear_aligned": (
        lambda x: F.interpolate(x, (7, 3), mode="bilinear", align_corners=True),
        on(1, 2, 4, 5),
    ),
    "bilinear_factor": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), on(1, 2, 4, 5)),
    "bicubic": (lambda x: F.interpolate(x, (7, 9), mode="bicubic"), on(1, 2, 4, 5)),
    "linear": (lambda x: F.interpolate(x, 9, mode="linear"), on(2, 3, 5)),
    "trilinear": (lambda x: F.interpolate(x, (4, 5, 3), mode="trilinear"), on(1, 2, 3, 4, 5)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=3, mode="nearest"), on(1, 2, 4, 5)),
    "nearest_uneven": (lambda x: F.interpolate(x, (7, 3), mode="nearest"), on(1, 2, 4, 5)),
    "nearest_factor": (lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest"), on(1, 2, 4, 5)),
    "nearest_1d": (lambda x: F.interpolate(x, 7, mode="nearest"), on(2, 3, 5)),
    "nearest_3d": (lambda x: F.interpolate(x, (4, 5, 3), mode="nearest"), on(1, 2, 3, 4, 5)),
} | {
    f"grid_{mode}_{padding}_{aligned}": (
        lambda x, g, mode=mode, padding=padding, aligned=aligned: F.grid_sample(x, g, mode, padding, aligned),
        lambda: (floats(2, 3, 5, 6), floats(2, 4, 3, 2)),
    )
    for mode, padding, aligned in (
        ("bilinear", "zeros", False),
        ("bilinear", "border", True),
        ("bilinear", "reflection", False),
        ("nearest", "reflection", True),
        ("nearest", "zeros", False),
    )
}

GROUPS = {
    "unary": UNARY,
    "arithmetic": ARITHMETIC,
    "logic": LOGIC,
    "reductions": REDUCTIONS,
    "movement": MOVEMENT,
    "indexing": INDEXING,
    "pools": POOLS,
    "images": IMAGES,
}
