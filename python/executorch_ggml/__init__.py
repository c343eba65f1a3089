"""Runs exported PyTorch programs on ggml: an ExecuTorch backend.

from executorch.exir import to_edge_transform_and_lower
from executorch_ggml import GgmlPartitioner

program = to_edge_transform_and_lower(exported, partitioner=[GgmlPartitioner()]).to_executorch()

Importing the package registers the delegate "GgmlBackend" with ExecuTorch's runtime in this process.
"""

from ._runtime import load_runtime, runtime_path, set_options
from .backend import GgmlBackend
from .partitioner import GgmlPartitioner

load_runtime()

__all__ = ["GgmlBackend", "GgmlPartitioner", "runtime_path", "set_options"]
