"""Runs exported PyTorch programs on ggml: an ExecuTorch backend.

from executorch.exir import to_edge_transform_and_lower
from executorch_ggml import GgmlPartitioner

program = to_edge_transform_and_lower(exported, partitioner=[GgmlPartitioner()]).to_executorch()

Importing the package registers the delegate "GgmlBackend" with ExecuTorch's runtime in this process.
"""

from ._runtime import load_runtime, runtime_path, set_options

try:
    from .backend import GgmlBackend
    from .gguf_weights import GgufWeights
    from .partitioner import GgmlPartitioner
except ModuleNotFoundError as error:
    package = (error.name or "").partition(".")[0]
    if package not in ("torch", "executorch"):
        raise
    raise ModuleNotFoundError(
        f"executorch_ggml needs {package}, which this environment lacks: "
        'pip install "headrace[executorch]" (in a checkout: pip install ".[executorch]")',
        name=package,
    ) from None

load_runtime()

__all__ = ["GgmlBackend", "GgmlPartitioner", "GgufWeights", "runtime_path", "set_options"]
