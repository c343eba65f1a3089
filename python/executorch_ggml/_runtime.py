"""The native delegate. It registers itself when it is loaded."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NAME = "libexecutorch_ggml_runtime.so"


def runtime_path() -> Path | None:
    """$EXECUTORCH_GGML_RUNTIME, the library beside this package, or the checkout's."""
    package = Path(__file__).resolve().parent
    chosen = os.environ.get("EXECUTORCH_GGML_RUNTIME")
    candidates = [Path(chosen)] if chosen else [package / NAME, package.parents[1] / "build/lib" / NAME]
    return next((path for path in candidates if path.exists()), None)


def load_runtime() -> bool:
    """False where the library is not built: programs can then be exported and not run here."""
    path = runtime_path()
    if path is None:
        return False
    # ExecuTorch's own libraries must be there before ours, which uses the same registry.
    import executorch.extension.pybindings.portable_lib  # noqa: F401

    ctypes.CDLL(str(path), ctypes.RTLD_LOCAL)
    return True
