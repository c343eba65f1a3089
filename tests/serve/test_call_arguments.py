"""The arguments of forced calls, in every template of llama.cpp's tree that calls tools: random weights."""

from __future__ import annotations

import re
from typing import Literal

import pydantic
import pytest
from serve_program import TEMPLATES, in_tree


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True)


class Place(Strict):
    row: int
    side: Literal["left", "right"]


class Move(Strict):
    piece: Literal["king", "queen"]
    day: str = pydantic.Field(pattern="^[0-9]{2}-(may|june)$")
    code: str = pydantic.Field(min_length=2, max_length=4)
    to: Place
    ranks: list[bool] = pydantic.Field(min_length=1, max_length=2)
    loud: bool
    mode: Literal["fast", "slow"] | None = None


SCHEMA = Move.model_json_schema()
#: In its place: a template can take what only has a reference, and no type, for a text.
SCHEMA["properties"]["to"] = SCHEMA.pop("$defs")["Place"]
TOOL = {"type": "function", "function": {"name": "move", "parameters": SCHEMA}}
BODY = {
    "messages": [{"role": "user", "content": "Go on."}],
    "max_tokens": 900,
    "tools": [TOOL],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
}
#: Templates whose arguments stand between marks of their own, or in a notation of their own.
FORMS = {
    "marks of GLM 4.6": "GLM-4.6.jinja",
    "marks of GLM 4.7": "GLM-4.7-Flash.jinja",
    "marks of Qwen 3 Coder": "Qwen3-Coder.jinja",
    "marks of Qwen 3.5": "Qwen3.5-4B.jinja",
    "marks of Nemotron 3": "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja",
    "marks of DeepSeek 3.2": "deepseek-ai-DeepSeek-V3.2.jinja",
    "marks of DeepSeek 4": "deepseek-ai-DeepSeek-V4.jinja",
    "nested marks of MiniMax M3": "MiniMax-M3.jinja",
    "marks of MiniCPM 5": "openbmb-MiniCPM5-1B.jinja",
    "marks of Kimi K3": "Kimi-K3.jinja",
    "marks of Ling 3": "inclusionai-ling-3.0-flash.jinja",
    "marks of Hunyuan 3": "tencent-Hy3.jinja",
    "marks of Laguna": "poolside-Laguna-XS.2.jinja",
    "marks of Muse": "muse-glimmer.jinja",
    "Python of LFM 2": "LFM2-8B-A1B.jinja",
    "dictionaries of Gemma 4": "google-gemma-4-31B-it.jinja",
    "JSON of Qwen 3": "Qwen-Qwen3-0.6B.jinja",
    "JSON behind a name of Functionary 3.2": "meetkai-functionary-medium-v3.2.jinja",
}


@pytest.fixture(scope="module", params=FORMS.values(), ids=[re.sub(r"\W+", "-", name) for name in FORMS])
def server(request, serve, models):
    more = ["--ctx-size", 8192, "--parallel", 1, "--chat-template-file", in_tree(TEMPLATES / request.param)]
    return serve(*more, model=models / "stories.gguf")


def test_arguments_of_a_forced_call_follow_their_schema(server):
    """They are those of a model that knows nothing, so that only the grammar keeps them right."""
    calls = []
    for seed in range(16):
        choice = server.json("/v1/chat/completions", {**BODY, "seed": seed})["choices"][0]
        if choice["finish_reason"] == "length":
            continue  # it went on with a thought that may come before
        (call,) = choice["message"]["tool_calls"]
        assert not (choice["message"].get("content") or "").strip()
        calls.append(Move.model_validate_json(call["function"]["arguments"]))
        if len(calls) == 5:
            break
    assert len(calls) == 5
    assert len({call.model_dump_json() for call in calls}) > 1
