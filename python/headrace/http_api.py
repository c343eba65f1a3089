"""The HTTP APIs of `headrace serve` for programs that bring their own HTTP.

from headrace.http_api import HttpApi

api = HttpApi(["-m", "model.gguf", "--parallel", "8"])
body = b'{"messages": [{"role": "user", "content": "Hello"}]}'
answer = api.handle("POST", "/v1/chat/completions", body=body)
print(answer.status, b"".join(answer))
"""

from __future__ import annotations

from .language_model import LanguageModelError

__all__ = ["HttpAnswer", "HttpApi", "LanguageModelError"]

from ._serve import HttpAnswer, HttpApi
