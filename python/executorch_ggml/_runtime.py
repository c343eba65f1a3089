"""The native delegate. It registers itself when it is loaded."""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from pathlib import Path

NAME = "libexecutorch_ggml_runtime.so"


def runtime_path() -> Path | None:
    """$EXECUTORCH_GGML_RUNTIME, the library beside this package, or the checkout's."""
    chosen = os.environ.get("EXECUTORCH_GGML_RUNTIME")
    # An editable installation has the sources in one of the package's folders and the library in another.
    folders = [Path(folder) for folder in sys.modules[__package__].__path__]
    checkout = Path(__file__).resolve().parents[2] / "build/lib"
    candidates = [Path(chosen)] if chosen else [folder / NAME for folder in (*folders, checkout)]
    return next((path for path in candidates if path.exists()), None)


def load_runtime() -> bool:
    """False, with a warning, where the library is not built: programs can then be exported and not run."""
    path = runtime_path()
    if path is None:
        warnings.warn(
            f"{NAME} is not there, so this process can export programs and not run them. It is built where "
            "ExecuTorch is installed when Headrace is: pip install executorch==1.5.1, then install Headrace "
            "again (in a checkout: make executorch), or set EXECUTORCH_GGML_RUNTIME to its path.",
            RuntimeWarning,
            stacklevel=3,
        )
        return False
    # ExecuTorch's own libraries must be there before ours, which uses the same registry.
    import executorch.extension.pybindings.portable_lib  # noqa: F401

    ctypes.CDLL(str(path), ctypes.RTLD_LOCAL)
    return True
