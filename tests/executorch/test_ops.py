"""Single ATen ops against eager PyTorch, each as one delegate."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
import torch.nn.functional as F
from executorch_ggml import _runtime
from torch import nn

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


class Call(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


X = (3, 4, 5)
CASES = {
    "isnan": (torch.isnan, lambda: (torch.tensor([1.0, float("nan"), float("inf")]),)),
    "isinf": (torch.isinf, lambda: (torch.tensor([1.0, float("nan"), -float("inf")]),)),
    "clamp_tensor": (
        lambda x, a, b: torch.clamp(x, a, b),
        lambda: (floats(*X), -torch.ones(5), torch.ones(5)),
    ),
    "trunc": (torch.trunc, lambda: (floats(*X) * 3,)),
    "div_floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), lambda: (floats(*X) * 5, floats(*X))),
    "div_trunc": (lambda x: torch.div(x, 0.7, rounding_mode="trunc"), lambda: (floats(*X) * 5,)),
    "mean_all": (torch.mean, lambda: (floats(*X),)),
    "prod": (lambda x: torch.prod(x, 1), lambda: (floats(*X),)),
    "any": (lambda x: torch.any(x > 1.5, 2), lambda: (floats(*X),)),
    "max_dim": (lambda x: tuple(torch.max(x, 1)), lambda: (floats(*X),)),
    "min_dim": (lambda x: tuple(torch.min(x, -1, keepdim=True)), lambda: (floats(*X),)),
    "var": (lambda x: torch.var(x, (1, 2), correction=1), lambda: (floats(*X),)),
    "reflect": (lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"), lambda: (floats(1, *X),)),
    "replicate": (lambda x: F.pad(x, (2, 1, 1, 2), mode="replicate"), lambda: (floats(1, *X),)),
    "constant_pad": (lambda x: F.pad(x, (2, 1), value=0.5), lambda: (floats(*X),)),
    "scatter": (
        lambda x, i, y: x.scatter(1, i, y),
        lambda: (floats(3, 4), torch.tensor([[0], [3], [1]]), floats(3, 1)),
    ),
    "gather": (lambda x, i: x.gather(1, i), lambda: (floats(3, 4), torch.tensor([[0, 1], [3, 3], [1, 2]]))),
    "slice_scatter": (lambda x, y: torch.slice_scatter(x, y, 1, 1, 3), lambda: (floats(3, 4), floats(3, 2))),
    "select_scatter": (lambda x, y: torch.select_scatter(x, y, 0, 1), lambda: (floats(3, 4), floats(4))),
    "bilinear": (lambda x: F.interpolate(x, (7, 9), mode="bilinear"), lambda: (floats(1, 2, 4, 5),)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=3, mode="nearest"), lambda: (floats(1, 2, 4, 5),)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2), lambda: (floats(2, 3, 8),)),
    "cumsum": (lambda x: torch.cumsum(x, 1), lambda: (floats(*X),)),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), lambda: (floats(*X),)),
    "where": (lambda x, y: torch.where(x > y, x, 0.5), lambda: (floats(*X), floats(*X))),
    "logic": (lambda x, y: (x > 0) & ~(y < 0) | (x == y), lambda: (floats(*X), floats(*X))),
    "promotion": (lambda x, i: x * i + 2, lambda: (floats(3, 4), torch.arange(4))),
    "integers": (lambda i: (i * 3 - 7).clamp(0, 9), lambda: (torch.arange(12),)),
    "flip": (lambda x: torch.flip(x, (0, 2)), lambda: (floats(*X),)),
    "repeat": (lambda x: x.repeat(2, 1, 3), lambda: (floats(*X),)),
    "index": (lambda x, i: x[:, i], lambda: (floats(*X), torch.tensor([3, 0, 1]))),
    "unbind": (lambda x: x[:, 1] + x[..., -1].sum(0), lambda: (floats(4, 4, 4),)),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), lambda: (floats(*X),)),
    "conv_transpose": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
        lambda: (floats(1, 3, 5, 5), floats(3, 4, 3, 3)),
    ),
    "baddbmm": (
        lambda a, b, c: torch.baddbmm(a, b, c, alpha=0.5),
        lambda: (floats(2, 3, 5), floats(2, 3, 4), floats(2, 4, 5)),
    ),
    "sdpa_mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m > 0),
        lambda: (floats(1, 2, 4, 8), floats(1, 2, 6, 8), floats(1, 2, 6, 8), torch.ones(4, 6)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_op_is_delegated_and_equals_eager(name, lower):
    torch.manual_seed(0)
    function, inputs = CASES[name]
    program = lower(Call(function), inputs())
    assert (program.delegates, program.left) == (1, [])
    program.check()
