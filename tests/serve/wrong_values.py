"""Values of wrong types for the documented fields of every endpoint, and the shapes of errors."""

from __future__ import annotations

TEXT = [3, 1.5, True, ["x"], {"a": 1}]
INTEGER = ["many", 1.5, [1], {"a": 1}]
NUMBER = ["hot", [1], {"a": 1}, True]
FLAG = ["maybe", [True], {"a": 1}]
OBJECT = [3, "x", True, [1]]
TEXT_OR_LIST = [3, True, {"a": 1}, [[1]], [{"a": 1}]]
PROMPT = [3, True, {"a": 1}, [None], [{"a": 1}], [[None]], [[-1]], [10**9], [1.5]]
MESSAGES = [
    3,
    "Hi",
    {"a": 1},
    [3],
    ["Hi"],
    [[]],
    [{"role": 3, "content": "x"}],
    [{"role": "user", "content": 3}],
]

HELLO = [{"role": "user", "content": "Hello"}]
ENGINE = {
    "n_predict": INTEGER, "temperature": NUMBER, "top_k": INTEGER, "top_p": NUMBER, "min_p": NUMBER,
    "repeat_penalty": NUMBER, "seed": INTEGER, "stop": TEXT_OR_LIST, "grammar": TEXT,
    "logit_bias": [3, "x", True],
    "timeout_ms": INTEGER, "priority": ["soon", {"a": 1}], "cache_prompt": FLAG, "ignore_eos": FLAG,
    "mirostat": INTEGER,
    "n_keep": INTEGER, "samplers": [3, {"a": 1}], "session": TEXT,
}  # fmt: skip
OPENAI = {
    "temperature": [*NUMBER, 2.5, -0.5], "top_p": [*NUMBER, 1.5], "n": INTEGER, "stream": FLAG,
    "stop": TEXT_OR_LIST, "max_tokens": INTEGER, "presence_penalty": [*NUMBER, 3],
    "frequency_penalty": [*NUMBER, -3], "logit_bias": [3, "x", True], "seed": INTEGER,
    "stream_options": OBJECT, "model": TEXT,
}  # fmt: skip
#: OpenAI's, which change no answer here.
LABELS = {"user": TEXT, "metadata": OBJECT, "service_tier": TEXT, "store": FLAG, "prompt_cache_key": TEXT}
#: An answer's form by a schema, and what is no schema.
FORM = {"type": "json_schema"}
NO_SCHEMA = {"type": "nope"}
TOOLS = [
    3,
    "x",
    {"a": 1},
    [3],
    ["x"],
    [{"type": "function"}],
    [{"type": "function", "function": {"name": 3}}],
]

#: By path: a body that is right, and by field values that are wrong.
BODIES = {
    "/v1/chat/completions": (
        {"messages": HELLO, "max_tokens": 2},
        {
            **OPENAI, "messages": MESSAGES, "logprobs": FLAG, "top_logprobs": INTEGER, "tools": TOOLS,
            "tool_choice": [3, "x", [], {}], "functions": [3, "x", [3], [{"name": 3}]], **LABELS,
            "response_format": [
                3, "x", [], {"type": 3}, FORM, {**FORM, "json_schema": 3},
                *({**FORM, "json_schema": {"schema": wrong}} for wrong in (3, NO_SCHEMA)),
            ],
            "max_completion_tokens": INTEGER,
            "parallel_tool_calls": FLAG, "reasoning_effort": [3, []], "chat_template_kwargs": OBJECT,
            "id_slot": INTEGER,
        },
    ),
    "/v1/completions": (
        {"prompt": "Hello", "max_tokens": 2},
        {
            **OPENAI, **LABELS, "n_predict": INTEGER, "prompt": PROMPT, "echo": FLAG,
            "logprobs": ["x", [1], {"a": 1}], "suffix": TEXT,
        },
    ),
    "/v1/responses": (
        {"input": "Hello", "max_output_tokens": 2},
        {
            "input": [3, True, {"a": 1}, [3], [{"type": "dance"}], [{"role": "user", "content": 3}]],
            "instructions": TEXT,
            "max_output_tokens": INTEGER, "temperature": NUMBER, "top_p": NUMBER, "stream": FLAG,
            "tools": [3, "x", [3], [{"type": "web_search"}]], "reasoning": OBJECT, "model": TEXT, **LABELS,
            "text": [*OBJECT, *({"format": {**FORM, "schema": wrong}} for wrong in (3, NO_SCHEMA))],
        },
    ),
    "/v1/messages": (
        {"model": "tiny", "messages": HELLO, "max_tokens": 2},
        {
            "messages": [*MESSAGES, [{"role": "user", "content": [{"type": "dance"}]}]],
            "max_tokens": INTEGER, "model": TEXT,
            "system": [3, {"a": 1}, [3]], "stop_sequences": [3, "x", [3]], "stream": FLAG,
            "temperature": NUMBER,
            "top_p": NUMBER, "top_k": INTEGER, "tools": [3, "x", [3], [{"name": 3}]], "thinking": OBJECT,
            "tool_choice": OBJECT, "metadata": [*OBJECT, {"user_id": 3}], "service_tier": TEXT,
            "output_config": [*OBJECT, *({"format": {**FORM, "schema": wrong}} for wrong in (3, NO_SCHEMA))],
        },
    ),
    "/v1/messages/count_tokens": (
        {"model": "tiny", "messages": HELLO},
        {"messages": MESSAGES, "system": [3, {"a": 1}], "tools": [3, [3]]},
    ),
    "/api/chat": (
        {"model": "tiny", "messages": HELLO, "stream": False, "options": {"num_predict": 2}},
        {
            "model": TEXT, "messages": MESSAGES, "format": [3, "xml", [1], NO_SCHEMA], "stream": FLAG,
            "options": [*OBJECT, *({name: {}} for name in ("temperature", "stop", "num_predict"))],
            "tools": TOOLS,
        },
    ),
    "/api/generate": (
        {"model": "tiny", "prompt": "Hello", "stream": False, "options": {"num_predict": 2}},
        {
            "model": TEXT, "prompt": TEXT, "system": TEXT, "raw": FLAG, "options": OBJECT,
            "format": [3, "xml"], "stream": FLAG,
        },
    ),
    "/api/show": ({"model": "tiny"}, {"model": TEXT}),
    "/completion": (
        {"prompt": "Hello", "n_predict": 2},
        {
            **ENGINE, "prompt": PROMPT, "stream": FLAG, "n_probs": INTEGER, "post_sampling_probs": FLAG,
            "id_slot": INTEGER,
            "response_fields": [3, "x", [3]], "return_tokens": FLAG, "json_schema": [3, "x", {"type": 3}],
        },
    ),
    "/tokenize": ({"content": "Hello"}, {"content": TEXT[:3], "add_special": FLAG, "with_pieces": FLAG}),
    "/detokenize": ({"tokens": [1, 2]}, {"tokens": [3, "x", {"a": 1}, ["x", {}], [-1], [10**12], [1.5]]}),
    "/apply-template": (
        {"messages": HELLO},
        {"messages": MESSAGES, "tools": TOOLS, "add_generation_prompt": FLAG},
    ),
}  # fmt: skip


def is_error_of(path: str, body: object) -> bool:
    """Whether that has the shape of errors of the API that the path belongs to."""
    if not isinstance(body, dict):
        return False
    error = body.get("error")
    if path.startswith("/api/"):
        return list(body) == ["error"] and isinstance(error, str) and bool(error)
    if not isinstance(error, dict) or not isinstance(error.get("message"), str) or not error["message"]:
        return False
    if path.startswith("/v1/messages"):
        return body.get("type") == "error" and isinstance(error.get("type"), str)
    return isinstance(error.get("type"), str) and isinstance(error.get("code"), int) and "param" in error
