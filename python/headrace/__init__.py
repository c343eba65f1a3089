"""Headrace: models from anywhere on ggml."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._core import (
    BufferPool,
    DeviceInfo,
    Executable,
    Graph,
    Session,
    Tensor,
    TensorInfo,
    TextEncoder,
    Tokenizer,
    UnsupportedError,
    compile,
    devices,
    load_graph,
    num_threads,
    print_graph,
    save_graph,
    set_num_threads,
)
from ._core import __version__ as __version__

if TYPE_CHECKING:
    from .language_model import LanguageModel
    from .loading import load
    from .model import Model
    from .sentence_encoder import SentenceEncoder, TextEmbedding

__all__ = [
    "BufferPool",
    "DeviceInfo",
    "Executable",
    "Graph",
    "LanguageModel",
    "Model",
    "SentenceEncoder",
    "Session",
    "Tensor",
    "TensorInfo",
    "TextEmbedding",
    "TextEncoder",
    "Tokenizer",
    "UnsupportedError",
    "compile",
    "devices",
    "load",
    "load_graph",
    "num_threads",
    "print_graph",
    "save_graph",
    "set_num_threads",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    """Models and embedders bring NumPy along, LanguageModel llama.cpp; the rest does without."""
    if name == "Model":
        from .model import Model

        return Model
    if name == "load":
        from .loading import load

        return load
    if name in ("SentenceEncoder", "TextEmbedding"):
        from . import sentence_encoder

        return getattr(sentence_encoder, name)
    if name == "LanguageModel":
        from .language_model import LanguageModel

        return LanguageModel
    if name in ("onnx", "onnxruntime", "ray"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")
