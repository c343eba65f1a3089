"""Vectors of texts, asked for and given as at other servers: OpenAI's POST /v1/embeddings."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .request import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS = ("input", "model", "encoding_format", "dimensions", "user")
MOST_TEXTS = 2048
ENCODINGS = ("float", "base64")


@dataclass(frozen=True)
class EmbeddingRequest:
    texts: tuple[str, ...]
    encoding: str = "float"

    @classmethod
    def read(cls, value: object) -> EmbeddingRequest:
        """Errors: RequestError."""
        if not isinstance(value, dict):
            raise RequestError("the request must be an object with 'input'")
        for key in value:
            if key not in KEYS:
                raise RequestError(f"'{key}' is not known; a request has {', '.join(KEYS)}")
        if value.get("dimensions") is not None:
            raise RequestError("'dimensions' is not taken: vectors are as long as the model makes them")
        encoding = value.get("encoding_format") or "float"
        if encoding not in ENCODINGS:
            raise RequestError(f"'encoding_format' is {encoding!r}; it must be one of {', '.join(ENCODINGS)}")
        return cls(_texts(value.get("input")), encoding)

    def answer(self, model: str, vectors: Sequence[Sequence[float]], tokens: int) -> dict[str, object]:
        return {
            "object": "list",
            "model": model,
            "data": [
                {"object": "embedding", "index": index, "embedding": self._encoded(vector)}
                for index, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    def _encoded(self, vector: Sequence[float]) -> Sequence[float] | str:
        if self.encoding == "float":
            return vector
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _texts(value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not 0 < len(texts) <= MOST_TEXTS:
        raise RequestError(f"'input' must be a text or a list of 1 to {MOST_TEXTS} texts")
    for index, text in enumerate(texts):
        if not isinstance(text, str) or not text:
            raise RequestError(
                f"text {index} of 'input' must be a text that is not empty; lists of tokens are not taken"
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise RequestError(f"text {index} of 'input' holds half of a surrogate pair") from None
    return tuple(texts)
