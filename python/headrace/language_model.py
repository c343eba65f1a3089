"""GGUF language models.

from headrace import LanguageModel

model = LanguageModel("model.gguf", {"n_ctx": 4096})
for piece in model.stream("What is the capital of France?", {"temperature": 0}):
    print(piece, end="", flush=True)

Everything is thread-safe, and requests that run at the same time share batches. Parameters are those of
docs/parameters.md: a model's where it is loaded, a request's with each prompt.
"""

from __future__ import annotations

from ._core import UnsupportedError

__all__ = [
    "Conversation",
    "Embeddings",
    "Generation",
    "LanguageModel",
    "LanguageModelError",
    "LanguageModelStatistics",
    "Message",
    "ModelInfo",
    "ParameterWarning",
    "RankScores",
    "RenderedPrompt",
    "Reply",
    "SavedPrompt",
    "Timings",
    "TokenProbability",
    "ToolCall",
    "UnsupportedRequestError",
    "check_model_file",
]


class LanguageModelError(RuntimeError):
    """A call that was refused or failed.

    code: invalid_argument, unsupported, out_of_memory, invalid_state (the model is closed), not_found,
    denied, busy, timed_out, cancelled, prompt_too_long, context_full, io or backend_failure. One of the code
    unsupported is a headrace.UnsupportedError, too.
    """

    # The second has a default, as subclasses that Ray makes of errors take one alone.
    def __new__(cls, code: str, message: str = "") -> LanguageModelError:
        is_unsupported = cls is LanguageModelError and code == "unsupported"
        return super().__new__(UnsupportedRequestError if is_unsupported else cls, code, message)

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class UnsupportedRequestError(LanguageModelError, UnsupportedError):
    """A LanguageModelError of the code unsupported."""


try:
    from ._llm import (
        Conversation,
        Embeddings,
        Generation,
        LanguageModel,
        LanguageModelStatistics,
        Message,
        ModelInfo,
        ParameterWarning,
        RankScores,
        RenderedPrompt,
        Reply,
        SavedPrompt,
        Timings,
        TokenProbability,
        ToolCall,
        check_model_file,
    )
except ModuleNotFoundError as error:
    if error.name != "headrace._llm":
        raise
    raise ModuleNotFoundError(
        "this headrace was built without llama.cpp, which language models need: make build sets it up",
        name=error.name,
    ) from None
