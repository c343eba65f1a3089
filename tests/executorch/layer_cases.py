"""Layers as op_cases.py has ops: export keeps them whole, or takes them apart when it is told to."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from op_cases import IMAGE, X, floats, on, whole


def lstm(x: torch.Tensor, *weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
    start = torch.zeros(1, x.shape[1], weights[1].shape[1])
    return torch.lstm(x, (start, start), weights, True, 1, 0.0, False, False, False)


def heads() -> tuple[torch.Tensor, ...]:
    return floats(1, 2, 4, 8), floats(1, 2, 6, 8), floats(1, 2, 6, 8)


LAYERS = {
    "linear": (F.linear, lambda: (floats(*X), floats(3, 5), floats(3))),
    "linear_without_bias": (F.linear, lambda: (floats(4, 5), floats(3, 5))),
    "mm": (lambda a, b: a @ b, lambda: (floats(3, 4), floats(4, 5))),
    "addmm": (
        lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2),
        lambda: (floats(5), floats(3, 4), floats(4, 5)),
    ),
    "attention": (F.scaled_dot_product_attention, heads),
    "attention_causal": (
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        on(1, 2, 6, 8),
    ),
    "attention_masked": (
        lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask > 0, scale=0.3),
        lambda: (*heads(), torch.tensor([[1.0] * 6, [0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0], [1.0] * 6])),
    ),
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (5,), w, b),
        lambda: (floats(*X), floats(5), floats(5)),
    ),
    "layer_norm_plain": (lambda x: F.layer_norm(x, (4, 5), eps=0.1), on(*X)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (5,), w, 1e-6), lambda: (floats(*X), floats(5))),
    "group_norm": (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        lambda: (floats(2, 4, 5, 3), floats(4), floats(4)),
    ),
    "batch_norm": (
        F.batch_norm,
        lambda: (floats(2, 3, 4, 5), floats(3), torch.rand(3) + 0.5, floats(3), floats(3)),
    ),
    "silu": (F.silu, on(*X)),
    "gelu": (F.gelu, on(*X)),
    "hardswish": (F.hardswish, on(*X)),
    "hardsigmoid": (lambda x: F.hardsigmoid(x * 3), on(*X)),
    "relu6": (lambda x: F.relu6(x * 5), on(*X)),
    "softmax": (lambda x: (F.softmax(x, -1), F.softmax(x, 1)), on(*X)),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, 1), on(*IMAGE)),
    "adaptive_average": (lambda x: F.adaptive_avg_pool2d(x, 1), on(*IMAGE)),
    "upsample": (lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), on(1, 2, 4, 5)),
    "conv": (
        lambda x, w, b: F.conv2d(x, w, b, 2, 1),
        lambda: (floats(2, 3, 7, 6), floats(4, 3, 3, 3), floats(4)),
    ),
    "conv3d": (F.conv3d, lambda: (floats(1, 2, 4, 5, 4), floats(3, 2, 2, 2, 2), floats(3))),
    "conv_transpose3d": (
        F.conv_transpose3d,
        lambda: (floats(1, 2, 3, 3, 3), floats(2, 3, 2, 2, 2), floats(3)),
    ),
    "lstm": (lstm, lambda: (floats(4, 2, 3), floats(20, 3), floats(20, 5), floats(20), floats(20))),
    "embedding": (
        lambda i, w: F.embedding(i, w),
        lambda: (torch.tensor([[1, 0, 5], [2, 2, 4]]), floats(6, 3)),
    ),
    "alias": (lambda x: torch.ops.aten.alias(x) * 2, on(*X)),
    "compared": (
        lambda x, y, i: (x <= y, x >= 0.5, x != y[0, 0, 0], i != 2, i == 2, i == i.flip(0), i.le(i.flip(0))),
        lambda: (floats(*X), floats(*X), whole(1, 2, 3, 2)),
    ),
    "scaled": (lambda x: torch.ops.aten.mul.Scalar(x, 0.3), on(*X)),
    "positions": (
        lambda i: (torch.cumsum(i, 1) * i, (i.bool() & (i > 1)).any(1)),
        lambda: (whole(0, 2, 1)[None],),
    ),
}

# What export without anything kept whole makes of MLP, MiniLM, ViT, Qwen3 with and without a cache, Whisper,
# MobileNetV2, ResNet-18, an LSTM, a UNet block and a mixture of experts.
DECOMPOSED = [
    "aten._native_batch_norm_legit_no_training.default",
    "aten._softmax.default",
    "aten.add.Tensor",
    "aten.addmm.default",
    "aten.alias_copy.default",
    "aten.any.dim",
    "aten.arange.start_step",
    "aten.bitwise_and.Tensor",
    "aten.bmm.default",
    "aten.cat.default",
    "aten.convolution.default",
    "aten.cos.default",
    "aten.cumsum.default",
    "aten.div.Tensor",
    "aten.embedding.default",
    "aten.eq.Scalar",
    "aten.eq.Tensor",
    "aten.exp.default",
    "aten.expand_copy.default",
    "aten.flip.default",
    "aten.full.default",
    "aten.full_like.default",
    "aten.gather.default",
    "aten.ge.Scalar",
    "aten.gelu.default",
    "aten.hardtanh.default",
    "aten.index.Tensor",
    "aten.index_put.default",
    "aten.le.Tensor",
    "aten.logical_not.default",
    "aten.max_pool2d_with_indices.default",
    "aten.mean.dim",
    "aten.mm.default",
    "aten.mul.Scalar",
    "aten.mul.Tensor",
    "aten.native_group_norm.default",
    "aten.native_layer_norm.default",
    "aten.ne.Scalar",
    "aten.neg.default",
    "aten.permute_copy.default",
    "aten.pow.Tensor_Scalar",
    "aten.relu.default",
    "aten.repeat.default",
    "aten.rsqrt.default",
    "aten.scalar_tensor.default",
    "aten.sigmoid.default",
    "aten.sin.default",
    "aten.slice_copy.Tensor",
    "aten.split_with_sizes_copy.default",
    "aten.squeeze_copy.dims",
    "aten.sub.Tensor",
    "aten.sum.dim_IntList",
    "aten.tanh.default",
    "aten.topk.default",
    "aten.unsqueeze_copy.default",
    "aten.upsample_nearest2d.vec",
    "aten.view_copy.default",
    "aten.where.self",
    "dim_order_ops._clone_dim_order.default",
    "dim_order_ops._to_dim_order_copy.default",
]
