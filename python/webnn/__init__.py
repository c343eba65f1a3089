"""The W3C Web Neural Network API on ggml.

import numpy as np, webnn

context = webnn.ML().create_context(accelerated=False)
builder = context.create_graph_builder()
x = builder.input("x", [2, 3], "float32")
graph = builder.build({"y": builder.relu(x)})
context.compute(graph, {"x": np.ones((2, 3), np.float32)})["y"]
"""

from headrace._core import MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor

from . import _builder, _dlpack, _export, _extensions, _inspect
from ._async import AsyncMLContext
from ._hub import Hub
from ._ml import ML, devices

_builder.install(MLGraphBuilder)
_extensions.install()
_export.install()
_inspect.install()
_dlpack.install()

__all__ = [
    "ML",
    "AsyncMLContext",
    "Hub",
    "MLContext",
    "MLGraph",
    "MLGraphBuilder",
    "MLOperand",
    "MLTensor",
    "devices",
]
