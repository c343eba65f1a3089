"""The native delegate. It registers itself when it is loaded."""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from pathlib import Path

NAME = "libexecutorch_ggml_runtime.so"
MOST_BYTES = 256  # of an option's text, in ExecuTorch
_library: ctypes.CDLL | None = None


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

    global _library
    _library = ctypes.CDLL(str(path), ctypes.RTLD_LOCAL)
    return True


def set_options(
    num_threads: int | None = None,
    device: str | None = None,
    packed_kernels: bool | None = None,
    *,
    host_timeout_ms: int | None = None,
    packed_cache: str | None = None,
    precision: str | None = None,
) -> None:
    """Sets options of the programs that are loaded afterwards in this process; what is None stays.

    num_threads: of a run; 0: as many as CPUs. device: "cpu", a name from `headrace devices` or
    "rpc://host:port", or several of those with commas between them; whether it exists shows when a program is
    loaded. packed_kernels: False leaves the CPU's work to ggml's kernels. host_timeout_ms: a remote host that
    is silent for so long is lost; 60000 at first. packed_cache: where packed weights are kept, so that later
    starts map them: "on" (~/.cache/headrace/packed), a folder, "off", or "" for what the environment variable
    HEADRACE_PACKED_CACHE says. precision: "exact", or "fast", which lets products of f32 be rounded where
    that is faster: CPUs that multiply bf16 round to that what they multiply.
    """
    if _library is None:
        raise RuntimeError(f"{NAME} is not loaded in this process, so there is nothing to set options of")
    if num_threads is not None and not 0 <= num_threads < 2**31:
        raise ValueError(f"num_threads is {num_threads}; it must be 0 (as many as CPUs) or more")
    if device is not None and not 0 < len(device.encode()) < MOST_BYTES:
        raise ValueError(f"device is {device!r}; a device's name of less than {MOST_BYTES} bytes is wanted")
    if host_timeout_ms is not None and not 100 <= host_timeout_ms <= 2**30:
        raise ValueError(f"host_timeout_ms is {host_timeout_ms}; it must be 100 to {2**30}")
    set_option = _library.headrace_executorch_set_option
    if packed_kernels not in (None, True, False):
        raise ValueError(f"packed_kernels is {packed_kernels!r}; it must be True or False")
    if packed_cache is not None and len(packed_cache.encode()) >= MOST_BYTES:
        raise ValueError(
            f"packed_cache is {packed_cache!r}; a path of less than {MOST_BYTES} bytes is wanted"
        )
    if precision not in (None, "exact", "fast"):
        raise ValueError(f"precision is {precision!r}; it must be 'exact' or 'fast'")
    options = (
        ("num_threads", b"i", num_threads),
        ("device", b"s", device),
        ("packed_kernels", b"b", packed_kernels),
        ("host_timeout_ms", b"i", host_timeout_ms),
        ("packed_cache", b"s", packed_cache),
        ("precision", b"s", precision),
    )
    for name, kind, value in options:
        if value is None:
            continue
        number, text = (0, value.encode()) if isinstance(value, str) else (int(value), None)
        error = set_option(name.encode(), ctypes.c_char(kind), ctypes.c_int(number), text)
        if error:
            raise RuntimeError(
                f"ExecuTorch refuses the option {name} with error {error:#x}; its log says why"
            )
