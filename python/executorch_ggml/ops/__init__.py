"""One function for each ATen op that the catalog can express; importing a module fills the table."""

from . import (
    attention,
    convolution,
    creation,
    division,
    elementwise,
    indexing,
    linear,
    logic,
    movement,
    normalization,
    ordering,
    padding,
    pooling,
    quantized,
    reduction,
    resampling,
)

__all__ = [
    "attention",
    "convolution",
    "creation",
    "division",
    "elementwise",
    "indexing",
    "linear",
    "logic",
    "movement",
    "normalization",
    "ordering",
    "padding",
    "pooling",
    "quantized",
    "reduction",
    "resampling",
]
