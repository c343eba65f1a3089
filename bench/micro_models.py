"""Single products, convolutions and other operators as models of the zoo, so that every peer can run them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import zoo
from torch import nn


class Function(nn.Module):
    """An operator without weights."""

    def __init__(self, call: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.call = call

    def forward(self, *x: torch.Tensor) -> torch.Tensor:
        return self.call(*x)


def _product(rows: int, columns: int, depth: int) -> zoo.Model:
    return zoo.Model(nn.Linear(depth, columns, bias=False), (torch.randn(rows, depth),))


def _convolution(
    channels: int, filters: int, side: int, window: int, stride: int = 1, groups: int = 1
) -> zoo.Model:
    module = nn.Conv2d(channels, filters, window, stride, padding=window // 2, groups=groups, bias=False)
    return zoo.Model(module, (torch.randn(1, channels, side, side),))


def _function(call: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> zoo.Model:
    return zoo.Model(Function(call), tuple(torch.randn(shape) for shape in shapes))


def _tiny_sums() -> zoo.Model:
    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            x = x + y
        return x

    return _function(add, (4,), (4,))


MICRO: dict[str, Callable[[], zoo.Model]] = {
    "gemm_512": lambda: _product(512, 512, 512),
    "gemm_1024": lambda: _product(1024, 1024, 1024),
    "gemm_2048": lambda: _product(2048, 2048, 2048),
    "gemm_128x384x384": lambda: _product(128, 384, 384),
    "gemm_128x1536x384": lambda: _product(128, 1536, 384),
    "gemv_4096x4096": lambda: _product(1, 4096, 4096),
    "conv_3x3_64_64_56": lambda: _convolution(64, 64, 56, 3),
    "conv_1x1_256_64_56": lambda: _convolution(256, 64, 56, 1),
    "conv_7x7_3_64_224": lambda: _convolution(3, 64, 224, 7, 2),
    "depthwise_3x3_32_112": lambda: _convolution(32, 32, 112, 3, groups=32),
    "tanh_196k": lambda: _function(torch.tanh, (128, 1536)),
    "exp_196k": lambda: _function(torch.exp, (128, 1536)),
    "gelu_196k": lambda: _function(nn.functional.gelu, (128, 1536)),
    "softmax_1536x128": lambda: _function(lambda x: torch.softmax(x, 1), (1536, 128)),
    "layer_norm_128x384": lambda: zoo.Model(nn.LayerNorm(384), (torch.randn(128, 384),)),
    "transpose_128x1536": lambda: _function(lambda x: x.t().contiguous(), (128, 1536)),
    "sum_1m": lambda: _function(lambda x: x.sum(1), (1024, 1024)),
    "add_1m": lambda: _function(torch.add, (1024, 1024), (1024, 1024)),
    "relu_1m": lambda: _function(torch.relu, (1024, 1024)),
    "100_adds_of_4": _tiny_sums,
    "gemm_128x1536x384_q8_0": lambda: _product(128, 1536, 384),
    "gemm_128x1536x384_q4_0": lambda: _product(128, 1536, 384),
    "gemv_4096x4096_q8_0": lambda: _product(1, 4096, 4096),
    "gemv_4096x4096_q4_0": lambda: _product(1, 4096, 4096),
}


def weights_of(case: str) -> str | None:
    """The format that a case's name ends in."""
    return next((f for f in ("q8_0", "q4_0") if case.endswith(f)), None)
