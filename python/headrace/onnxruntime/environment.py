"""What ONNX Runtime has one of in a process: its version, its log, its random numbers."""

from __future__ import annotations

import operator
from typing import Any

from headrace._core import set_num_threads

#: The version of ONNX Runtime whose interface this is; programs compare it with the one that they need.
__version__ = "1.31.1"


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    return f"Headrace in place of ONNX Runtime {__version__}"


def has_collective_ops() -> bool:
    return False


def set_default_logger_severity(severity: int) -> None:
    """Headrace has no log of its own; the number is checked. Errors: TypeError, RuntimeError."""
    if not 0 <= operator.index(severity) <= 4:
        raise RuntimeError(
            f"Invalid logging severity {severity}. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal"
        )


def set_default_logger_verbosity(level: int) -> None:
    """Sets the verbosity of the same log. Errors: TypeError."""
    operator.index(level)


def set_global_thread_pool_sizes(intra_op: int, inter_op: int) -> None:
    """The threads of sessions that say no number: all share one pool. inter_op has no meaning here."""
    set_num_threads(operator.index(intra_op))


def set_seed(seed: int) -> None:
    """Random operators of a model have the seeds that it gives them. Errors: TypeError."""
    operator.index(seed)


def disable_telemetry_events() -> None:
    """There are none."""


def enable_telemetry_events() -> None:
    """There are none."""


def preload_dlls(*places: Any, **options: Any) -> None:
    """ONNX Runtime loads CUDA's libraries here; Headrace needs none."""
