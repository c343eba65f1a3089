"""ONNX export: a graph as an ONNX model (https://onnx.ai) of operator set 21.

Every operator is written by one function, registered by its name in `registry.LOWERINGS`.
"""

from . import (
    activation,
    compositions,
    elementwise,
    images,
    indexing,
    linear_algebra,
    movement,
    normalization,
    quantization,
    recurrent,
    reduction,
    resample,
)
from .export import export, write_model
from .registry import LOWERINGS

__all__ = [
    "LOWERINGS",
    "activation",
    "compositions",
    "elementwise",
    "export",
    "images",
    "indexing",
    "linear_algebra",
    "movement",
    "normalization",
    "quantization",
    "recurrent",
    "reduction",
    "resample",
    "write_model",
]
