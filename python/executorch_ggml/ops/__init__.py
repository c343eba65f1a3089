"""One function for each ATen op that the catalog can express; importing a module fills the table."""

from . import (
    attention,
    creation,
    elementwise,
    images,
    indexing,
    linear,
    movement,
    normalization,
    quantized,
    recurrent,
    reduction,
)

__all__ = [
    "attention",
    "creation",
    "elementwise",
    "images",
    "indexing",
    "linear",
    "movement",
    "normalization",
    "quantized",
    "recurrent",
    "reduction",
]
