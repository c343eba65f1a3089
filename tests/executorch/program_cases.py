"""Programs of a few ops as torch.export gives them: each must lower, load from a file and give the values of
eager PyTorch, whatever is delegated of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

R = torch.randn
torch.manual_seed(0)  # inputs are made as this module is imported


class Call(nn.Module):
    """Any function of a module's parts and of its inputs."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, nn.Module):
                self.add_module(name, part)
            else:
                self.register_buffer(name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


@dataclass
class Case:
    function: Callable[..., Any] | nn.Module
    inputs: tuple
    shapes: tuple | None = None  # of the inputs, for torch.export
    others: list[tuple] = field(default_factory=list)  # inputs of further runs
    parts: dict[str, Any] = field(default_factory=dict)
    left: tuple[str, ...] | None = ()  # ops that ExecuTorch keeps; None: not looked at

    def module(self) -> nn.Module:
        is_module = isinstance(self.function, nn.Module)
        return (self.function if is_module else Call(self.function, **self.parts)).eval()

    def dynamic_shapes(self) -> tuple | None:
        if self.shapes is None or isinstance(self.function, nn.Module):
            return self.shapes
        return (self.shapes,)


def rows(name: str = "n", least: int = 1, most: int = 16) -> Any:
    return Dim(name, min=least, max=most)


n, m, even = rows(), rows("m"), 2 * rows("half", 1, 8)

# Extents that several ops compute, each in its own way.
COMPUTED = {
    "a past and a token": Case(
        lambda _, past, x: torch.cat([past, x], -2) + torch.arange(past.shape[2] + 1)[:, None],
        (R(1, 2, 5, 4), R(1, 2, 1, 4)),
        ({2: n}, None),
        [(R(1, 2, 9, 4), R(1, 2, 1, 4))],
    ),
    "heads repeated over a past and a token": Case(
        lambda _, past, x: (
            torch.cat([past, x], -2)[:, :, None].expand(-1, -1, 2, -1, -1).reshape(1, 4, -1, 4)
        ),
        (R(1, 2, 5, 4), R(1, 2, 1, 4)),
        ({2: Dim.DYNAMIC(min=1, max=16)}, None),  # a named one has a guard that PyTorch cannot prove
        [(R(1, 2, 9, 4), R(1, 2, 1, 4))],
    ),
    "sums in two orders": Case(
        lambda _, x, y: torch.cat([torch.cat([x, y]), torch.cat([y, x])]) + torch.cat([x, y, y, x]),
        (R(3), R(4)),
        ({0: n}, {0: m}),
        [(R(5), R(2))],
    ),
    "rows after others": Case(
        lambda _, x, y: torch.cat([x, y])[x.shape[0] :] + y,
        (R(5, 3), R(6, 3)),
        ({0: n}, {0: m}),
        [(R(9, 3), R(2, 3))],
        left=None,
    ),
    "twice the rows less one": Case(
        lambda _, x: torch.arange(x.shape[0] * 2 - 1) + 1, (R(5, 3),), ({0: n},), [(R(9, 3),)]
    ),
    "pairs of rows": Case(
        lambda _, x: x.view(x.shape[0] // 2, 2, 3).sum(1), (R(6, 3),), ({0: even},), [(R(10, 3),), (R(2, 3),)]
    ),
    "both halves": Case(
        lambda _, x: x[: x.shape[0] // 2] + x[x.shape[0] // 2 :],
        (R(6, 3),),
        ({0: even},),
        [(R(10, 3),)],
        left=None,
    ),
    "halves changing places": Case(
        lambda _, x: torch.cat(x.chunk(2)[::-1]) * 2, (R(6, 3),), ({0: even},), [(R(10, 3),)], left=None
    ),
    "three products of extents": Case(
        lambda _, x, y, z: (x[:, None, None] * y[None, :, None] * z).reshape(-1) + 1,
        (R(3), R(4), R(5)),
        ({0: n}, {0: m}, {0: rows("k")}),
        [(R(4), R(5), R(2))],
    ),
    "a product that is taken apart again": Case(
        lambda _, x, y: (
            (x[:, None] + y).reshape(-1, 1).expand(-1, 3).reshape(x.shape[0], y.shape[0], 3).sum(1)
        ),
        (R(3), R(4)),
        ({0: n}, {0: m}),
        [(R(4), R(5))],
    ),
    "patches of a strided convolution": Case(
        lambda s, x: s.conv(x).flatten(2).transpose(1, 2) @ s.w,
        (R(2, 3, 9, 8),),
        ({2: rows("h", 8, 64)},),
        [(R(2, 3, 11, 8),), (R(2, 3, 12, 8),)],
        {"conv": nn.Conv2d(3, 4, 3, 2, 1), "w": R(4, 5)},
    ),
    "strided convolutions in a row": Case(
        nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1), nn.Flatten(2)),
        (R(2, 3, 9, 8),),
        ({2: rows("h", 8, 64)},),
        [(R(2, 3, 11, 8),), (R(2, 3, 12, 8),)],
    ),
    "down and up again": Case(
        lambda s, x: torch.cat([s.up(s.down(x)), F.avg_pool2d(x, 2).repeat(1, 1, 2, 2)], 1) + x[:, :1],
        (R(1, 3, 8, 8),),
        ({2: 2 * rows("h", 2, 30)},),
        [(R(1, 3, 12, 8),)],
        {"down": nn.Conv2d(3, 4, 2, 2), "up": nn.ConvTranspose2d(4, 3, 2, 2)},
    ),
    "all tokens but the first": Case(
        lambda s, x: x[:, 1:].reshape(-1, x.shape[2]) @ s.w,
        (R(2, 5, 4),),
        ({0: n, 1: rows("m", 4, 16)},),
        [(R(3, 9, 4),)],
        {"w": R(4, 2)},
    ),
    "a causal mask": Case(
        lambda _, x: torch.full((x.shape[0], x.shape[0]), float("-inf")).triu(1) + x @ x.T,
        (R(5, 3),),
        ({0: n},),
        [(R(9, 3),)],
    ),
    "a mask that is given": Case(
        lambda _, q, k, mask: F.scaled_dot_product_attention(q, k, k, attn_mask=mask),
        (R(1, 2, 3, 8), R(1, 2, 5, 8), R(3, 5)),
        ({2: n}, {2: m}, {0: n, 1: m}),
        [(R(1, 2, 4, 8), R(1, 2, 7, 8), R(4, 7))],
    ),
    "the largest of two": Case(
        lambda _, x, y: (torch.zeros(max(x.shape[0], y.shape[0])) + 1, x * 2, y * 2),
        (R(5), R(6)),
        ({0: n}, {0: m}),
        [(R(9), R(2))],
        left=None,
    ),
    "windows of an image": Case(
        lambda _, x: x.view(2, x.shape[1] // 2, 2, 2, 2, 3).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 3),
        (R(2, 6, 4, 3),),
        ({1: even},),
        [(R(2, 8, 4, 3),)],
    ),
    "an extent as a number and as a result": Case(
        lambda _, x: (x * x.shape[0], x.sum(0) / x.shape[0]), (R(5, 3),), ({0: n},), [(R(9, 3),)], left=None
    ),
}

# Ops that export keeps whole where all of them in a program can be delegated.
KEPT_WHOLE = {
    "upsampling to any size": Case(
        nn.Upsample(scale_factor=2), (R(2, 3, 8, 8),), ({2: rows("h", 4, 64)},), [(R(2, 3, 9, 8),)], left=None
    ),
    "upsampling to a size that is known and to one that is not": Case(
        lambda _, x, y: (F.interpolate(x, scale_factor=2), F.interpolate(y, scale_factor=2) * 2),
        (R(1, 2, 3, 3), R(1, 2, 4, 4)),
        (None, {2: rows("h", 3, 20)}),
        [(R(1, 2, 3, 3), R(1, 2, 7, 4))],
        left=None,
    ),
    "average of windows of any size": Case(
        nn.AdaptiveAvgPool2d(3), (R(1, 2, 9, 9),), ({2: rows("h", 9, 64)},), [(R(1, 2, 12, 9),)], left=None
    ),
    "nine dimensions": Case(
        lambda s, x: (
            F.silu(x),
            F.gelu(x),
            F.layer_norm(x, (2,)),
            s.linear(x),
            F.rms_norm(x, (2,)),
            x.sum(0) * 2,
        ),
        (R(2, 1, 2, 1, 2, 1, 2, 1, 2),),
        parts={"linear": nn.Linear(2, 3)},
        left=None,
    ),
    "integers in a linear layer": Case(
        lambda _, x, w: (F.linear(x, w), F.linear(x.float(), w.float())),
        (torch.ones(2, 3, dtype=torch.long), torch.ones(4, 3, dtype=torch.long)),
        left=None,
    ),
    "branches": Case(
        lambda s, x: torch.cond((x @ x).sum() > 0, lambda y: F.silu(s.linear(y)), F.gelu, (F.silu(x),)) @ x,
        (torch.ones(3, 3),),
        others=[(-torch.eye(3),), (R(3, 3),)],
        parts={"linear": nn.Linear(3, 3)},
        left=None,
    ),
}

EMPTY = {
    "a cache that is empty yet": Case(lambda _, x: torch.cat([torch.tensor([]), x], -2), (R(1, 2, 3, 4),)),
    "a cache that is empty yet, for any length": Case(
        lambda s, x: torch.cat([torch.tensor([]), s.linear(x)], -2) * 2,
        (R(1, 2, 3, 4),),
        ({2: n},),
        [(R(1, 2, 7, 4),)],
        {"linear": nn.Linear(4, 4)},
    ),
    "nothing of other types": Case(
        lambda _, x, y: (
            torch.cat([torch.tensor([], dtype=torch.long), x]),
            torch.cat([y, torch.tensor([])]),
        ),
        (torch.ones(2, 3, dtype=torch.long), R(3, 2)),
    ),
    "only nothing": Case(lambda _, x: (torch.cat([torch.tensor([]), torch.tensor([])]), x * 2), (R(3),)),
    "an empty constant as a result": Case(
        lambda s, x: (s.c, s.c * 2, x + 1), (R(3),), parts={"c": torch.zeros(0, 4)}
    ),
    "an empty argument": Case(
        lambda _, x, e: (e * 2, torch.cat([x, e]), x + e.sum(), e), (R(3, 4), torch.zeros(0, 4))
    ),
    "empty matrices": Case(
        lambda _, x, w: (x @ w, x[:, :0] @ w.T[:0], (x[:0] @ x.T).sum()), (R(3, 4), torch.zeros(4, 0))
    ),
    "empty layers": Case(nn.Sequential(nn.Linear(4, 0), nn.Linear(0, 4), nn.LayerNorm(4)), (R(2, 4),)),
    "empty parts": Case(
        lambda _, x: (
            x[:0] * 2,
            x[2:2],
            x[:, 3:].softmax(0),
            x[:0].sum(0),
            F.pad(x[:0], (1, 1, 1, 1)),
            *x.split([0, 4]),
        ),
        (R(4, 3),),
    ),
    "empty indices": Case(
        lambda s, x, i: (
            x[s.i],
            F.embedding(i, x),
            x.index_select(1, s.i),
            torch.where(x[:0] > 0, x[:0], 0.0),
        ),
        (R(4, 3), torch.zeros(0, dtype=torch.long)),
        parts={"i": torch.zeros(0, dtype=torch.long)},
    ),
    "an empty state": Case(lambda s, x: (s.b.add_(1), x * 2)[1], (R(2),), parts={"b": torch.zeros(0, 3)}),
    "no images": Case(nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2)), (R(0, 3, 8, 8),)),
}

CONSTANTS = {
    "a constant that nothing reads": Case(lambda s, x: x + torch.zeros_like(s.c), (R(4),), parts={"c": R(4)}),
    "constants as results": Case(
        lambda s, x: (s.c, torch.ones(3), torch.tensor(5), x * 2, s.c), (R(2),), parts={"c": R(3)}
    ),
    "constants that are no dense rows": Case(
        lambda s, x: x @ s.c + s.e, (R(3, 3),), parts={"c": R(3, 3).T, "e": torch.ones(1).expand(3, 3)}
    ),
    "a constant of nine dimensions": Case(
        lambda s, x: (x * s.c, x * 2), (R(2),), parts={"c": R(1, 1, 1, 1, 1, 1, 1, 1, 2)}, left=None
    ),
    "no arguments": Case(lambda s: (s.c * 2, s.c), (), parts={"c": R(3)}),
}

STATES = {
    "named as an argument": Case(
        lambda s, x: (s.in0.add_(x), s.in0 * s.out0)[1],
        (R(3),),
        others=[(R(3),)],
        parts={"in0": R(3), "out0": R(3)},
    ),
    "overwritten without a look": Case(
        lambda s, x: (s.b.copy_(x), x * 2)[1],
        (R(3),),
        others=[(R(3),)],
        parts={"b": torch.zeros(3)},
        left=None,
    ),
    "a counter without dimensions": Case(
        lambda s, x: (s.b.add_(1), x + s.b)[1], (R(3),), others=[(R(3),)], parts={"b": torch.tensor(0)}
    ),
    "a row of it": Case(
        lambda s, x: (s.b.__setitem__(slice(1, 2), x), s.b * 2)[1],
        (R(1, 3),),
        others=[(R(1, 3),)],
        parts={"b": R(4, 3)},
    ),
}

ARGUMENTS = {
    "results that are arguments": Case(lambda _, x, y: (x, y, x + y, x), (R(2), R(2))),
    "arguments that nothing reads": Case(lambda _, x, y, z: y * 2, (R(2), R(3), torch.tensor(1))),
    "numbers without dimensions": Case(
        lambda _, x, y: (x + y, x.exp(), x.reshape(1), torch.stack([x, y]), x * torch.arange(3)),
        (torch.tensor(1.5), torch.tensor(2.5)),
    ),
    "complex numbers beside others": Case(
        lambda _, x: (torch.fft.rfft(x).abs(), x.exp() + 1), (R(3, 8),), left=None
    ),
    "a number that a tensor holds": Case(
        lambda _, x, i: x * i.item() + 1, (R(4), torch.tensor(2)), left=None
    ),
    "places of a mask": Case(lambda _, x: x[x > 0] * 2 + 1, (R(5, 6),), left=None),
    "rows repeated by the rows of another": Case(
        lambda _, x, y: x.repeat(y.shape[0], 1) + 1,
        (R(5, 3), R(6, 3)),
        ({0: n}, {0: m}),
        [(R(9, 3), R(2, 3))],
        left=None,
    ),
}
GROUPS = {
    "computed extents": COMPUTED,
    "kept whole": KEPT_WHOLE,
    "empty": EMPTY,
    "constants": CONSTANTS,
    "states": STATES,
    "arguments": ARGUMENTS,
}
