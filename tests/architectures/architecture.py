"""A published architecture: a module with random weights, its inputs at two shapes, what is open."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torchvision_ops  # noqa: F401  # before transformers and timm import torchvision
from torch import nn

Inputs = tuple[torch.Tensor, ...]


@dataclass
class Architecture:
    """module(*make(**sizes)) gives a tensor, or a tuple of them.

    dimensions: of each input, the names of its open axes.
    sizes: two sets of numbers for these names, the first for the export.
    """

    module: nn.Module
    make: Callable[..., Inputs | torch.Tensor]
    names: list[str]
    dimensions: list[dict[int, str]]
    sizes: list[dict[str, int]]
    tolerance: float = 1e-4
    compare: Callable[[list, list], str] | None = None  # in place of values: what is wrong, "" for nothing
    outputs: list[str] = field(default_factory=list)

    def inputs(self, which: int) -> Inputs:
        torch.manual_seed(which)
        made = self.make(**self.sizes[which])
        return made if isinstance(made, tuple) else (made,)


ARCHITECTURES: dict[str, Callable[[bool], Architecture]] = {}


def published(*names: str) -> Callable:
    """Registers a function of (name, whether at its published size) under each name."""

    def register(function: Callable) -> Callable:
        for name in names:
            assert name not in ARCHITECTURES, f"{name} is there twice"
            ARCHITECTURES[name] = lambda whole, name=name: function(name, whole)
        return function

    return register


class Call(nn.Module):
    """A module called in another way, for example without what of its result nobody needs."""

    def __init__(self, module: nn.Module, call: Callable) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.call(self.module, *inputs)


def settled(module: nn.Module) -> nn.Module:
    """Ready for inference, with normalisations whose statistics and scales are not those of a new module."""
    generator = torch.Generator().manual_seed(1)
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._NormBase) and part.running_mean is not None:
            part.running_mean.normal_(0, 0.1, generator=generator)
            part.running_var.uniform_(0.5, 1.5, generator=generator)
    for name, weight in module.named_parameters():
        if weight.dim() == 1 and name.endswith("gamma"):  # scales of layers that begin as nearly 0
            weight.data.uniform_(0.5, 1, generator=generator)
    return module.eval().requires_grad_(False)


def picture(batch: int, height: int, width: int, channels: int = 3) -> torch.Tensor:
    """Smooth shapes with some noise, normalised as photographs are."""
    coarse = torch.randn(batch, channels, 6, 6)
    smooth = nn.functional.interpolate(coarse, (height, width), mode="bicubic", align_corners=False)
    return smooth + 0.1 * torch.randn(batch, channels, height, width)


def sound(batch: int, samples: int) -> torch.Tensor:
    """Tones with harmonics and some noise."""
    time = torch.arange(samples) / 16000
    pitch = torch.rand(batch, 1) * 200 + 100
    waves = sum(torch.sin(6.2832 * pitch * k * time) / k for k in range(1, 6))
    return 0.3 * waves + 0.02 * torch.randn(batch, samples)


def tokens(*shape: int, below: int, least: int = 3) -> torch.Tensor:
    """At least `least`: special tokens come first in vocabularies."""
    return torch.randint(least, below, shape)


@contextlib.contextmanager
def seeded(seed: int = 0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
