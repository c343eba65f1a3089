"""What OpenAI's and Anthropic's APIs refuse is refused here, in their shapes; other APIs stay as they are."""

from __future__ import annotations

import pytest
from http_bytes import body_of, exchange, request
from serve_program import QWEN3, in_tree
from wrong_values import is_error_of

SUM = [{"role": "user", "content": "What is 2+3?"}]
MESSAGES = {"model": "tiny", "max_tokens": 2000}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWERED = [*SUM, CALLING, {"role": "tool", "tool_call_id": "c1", "content": "5"}]
USE = {"type": "tool_use", "id": "t1", "name": "add", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "5"}
OBJECT = {"type": "object"}


def tool(name: str) -> dict:
    return {"type": "function", "function": {"name": name, "parameters": OBJECT}}


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny", "--temp", 0, "--n-predict", 4)


@pytest.fixture(scope="module")
def vectors(serve, models):
    return serve("--embeddings", model=models / "vectors.gguf")


@pytest.fixture(scope="module")
def caller(serve):
    """Its template shows calls as objects."""
    return serve("--chat-template-file", in_tree(QWEN3), "--n-predict", 4, "--ctx-size", 2048)


CHAT = "/v1/chat/completions"
OPENAI = [
    (CHAT, "temperature", {"temperature": 2.1}),
    (CHAT, "logit_bias", {"logit_bias": {"5": 101}}),
    (CHAT, "stop", {"stop": list("abcde")}),
    (CHAT, "reasoning_effort", {"reasoning_effort": "extreme"}),
    (CHAT, "service_tier", {"service_tier": "fastest"}),
    (CHAT, "verbosity", {"verbosity": "endless"}),
    (CHAT, "top_logprobs", {"logprobs": True, "top_logprobs": 21}),
    (CHAT, "tools[0].function.name", {"tools": [tool("get weather")]}),
    (CHAT, "tools", {"tools": [tool("add"), tool("add")]}),
    (CHAT, "messages[1].role", {"messages": [*SUM, ANSWERED[2]]}),
    (CHAT, "messages[2].tool_call_id", {"messages": [*SUM, CALLING, {**ANSWERED[2], "tool_call_id": "c2"}]}),
    (CHAT, "messages[1].tool_calls", {"messages": [*SUM, CALLING, *SUM]}),
    (CHAT, "session", {"session": "x" * 257}),
    (CHAT, "session_id", {"session_id": "x" * 257}),
    (CHAT, "messages", {"messages": SUM * 10_001}),
    ("/v1/completions", "temperature", {"temperature": 2.1}),
    ("/v1/completions", "logprobs", {"logprobs": 6}),
    ("/v1/completions", "logprobs", {"logprobs": 1, "echo": True, "stream": True}),
    ("/v1/completions", "stop", {"stop": list("abcde")}),
    ("/v1/completions", "logit_bias", {"logit_bias": {"5": -101}}),
    ("/v1/completions", "session", {"session": "mine"}),
    ("/v1/responses", "reasoning.effort", {"reasoning": {"effort": "extreme"}}),
    ("/v1/responses", "text.verbosity", {"text": {"verbosity": "endless"}}),
    ("/v1/responses", "service_tier", {"service_tier": "fastest"}),
    ("/v1/responses", "session", {"session": "x" * 257}),
    ("/v1/responses", "input", {"input": SUM * 10_001}),
    ("/v1/responses", "tools[0].name", {"tools": [{"type": "function", "name": "a b"}]}),
]  # fmt: skip
RIGHT = {CHAT: {"messages": SUM}, "/v1/completions": {"prompt": "Say"}, "/v1/responses": {"input": "Say"}}


@pytest.mark.parametrize(("path", "field", "more"), OPENAI, ids=lambda value: str(value)[:40])
def test_what_openai_refuses_is_refused_by_name(server, path, field, more):
    answer = server.post(path, {**RIGHT[path], **more})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, field), answer.text
    assert error["type"] == "invalid_request_error" and field in error["message"]


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("messages.0.content.1.text", {"messages": [{"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": ""}]}]}),
        ("messages.1.content", {"messages": [*SUM, {"role": "assistant", "content": "It is "}]}),
        ("messages.1", {"messages": [*SUM, {"role": "assistant", "content": [USE]}, *SUM]}),
        ("messages.1.content.1.id", {"messages": [*SUM, {"role": "assistant", "content": [USE, USE]}]}),
        ("messages.0.content.0.tool_use_id", {"messages": [{"role": "user", "content": [RESULT]}]}),
        ("tools", {"tools": [{"name": "add", "input_schema": OBJECT}] * 2}),
        ("tools.0.name", {"tools": [{"name": "a.b", "input_schema": OBJECT}]}),
        ("tools.0.input_schema.type", {"tools": [{"name": "add", "input_schema": {"type": "array"}}]}),
        ("thinking.budget_tokens", {"thinking": {"type": "enabled", "budget_tokens": 1023}}),
        ("thinking.budget_tokens", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("stop_sequences.0", {"stop_sequences": [" \n"]}),
        ("temperature", {"temperature": 1.1}),
        ("session", {"session": "x" * 257}),
        ("messages", {"messages": SUM * 10_001}),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_anthropic_refuses_is_refused_in_its_words(server, field, more):
    answer = server.post("/v1/messages", {**MESSAGES, "messages": SUM, **more})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error"), answer.text
    assert error["message"].startswith(f"{field}: ") and is_error_of("/v1/messages", answer.json())


def test_thoughts_between_calls_may_be_longer_than_the_answer_where_the_client_says_so(server):
    tools = [{"name": "add", "input_schema": OBJECT}]
    thinking = {"type": "enabled", "budget_tokens": 4000}
    body = {**MESSAGES, "messages": SUM, "tools": tools, "thinking": thinking}
    headers = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
    assert server.ask("POST", "/v1/messages", json=body).status_code == 400
    assert server.ask("POST", "/v1/messages", json=body, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/completion", "/infill", "/v1/completions", "/api/generate"])
def test_a_text_belongs_to_no_session(server, path):
    body = {"prompt": "Say", "session": "mine", "model": "tiny", "raw": True, "stream": False}
    answer = server.post(path, body)
    if path == "/infill":
        assert answer.status_code == 501
        return
    assert answer.status_code == 400 and "'session' is of chats" in answer.text
    assert is_error_of(path, answer.json())


def test_a_session_goes_on_in_ollamas_generate(server):
    for prompt in ("My name is Ada.", "What is my name?"):
        body = {"model": "tiny", "prompt": prompt, "session": "generated", "stream": False}
        answer = server.json("/api/generate", {**body, "options": {"num_predict": 20}})
    assert answer["response"] == "Your name is Ada."


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/completion", {"prompt": "Say", "temperature": 5, "stop": list("abcdef"), "n_probs": 9}),
        ("/completion", {"prompt": "Say", "logit_bias": [[5, 1000]], "top_logprobs": 30}),
        ("/apply-template", {"messages": [*SUM, ANSWERED[2]], "tools": [tool("get weather")] * 2}),
        ("/apply-template", {"messages": [*SUM, CALLING], "temperature": 5}),
        (
            "/api/chat",
            {
                "model": "tiny",
                "messages": SUM,
                "stream": False,
                "tools": [tool("a.b")] * 2,
                "options": {"temperature": 5, "stop": list("abcdef")},
            },
        ),
    ],
)
def test_apis_that_take_more_go_on_to(server, path, body):
    assert server.post(path, body).status_code == 200


def test_arguments_in_a_history_that_cannot_be_read_are_named(caller):
    broken = {**CALL, "function": {"name": "add", "arguments": '{"a": 2'}}
    messages = [*SUM, {**CALLING, "tool_calls": [CALL, {**broken, "id": "c2"}]}, ANSWERED[2]]
    answer = caller.post(CHAT, {"messages": [*messages, {**ANSWERED[2], "tool_call_id": "c2"}]})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == "messages[1].tool_calls[1].function.arguments"
    item = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 2'}
    output = {"type": "function_call_output", "call_id": "c1", "output": "5"}
    answer = caller.post("/v1/responses", {"input": [*SUM, item, output], "instructions": "Be brief."})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input[1].arguments")


@pytest.mark.parametrize(
    ("texts", "field"), [([], "input"), (["a", ""], "input[1]"), (["a"] * 2049, "input")], ids=len
)
def test_texts_that_openai_makes_no_vectors_of_are_refused(vectors, texts, field):
    answer = vectors.post("/v1/embeddings", {"input": texts})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, field), answer.text
    if len(texts) != 0:
        assert vectors.post("/embeddings", {"input": texts[-2:]}).status_code == 200, "as llama-server does"
    assert vectors.post("/v1/embeddings", {"input": ""}).status_code == 200, "likewise"


@pytest.mark.parametrize("part", ["bytes=0-10", "bytes=999999999-", "bytes=-5", "bytes=0-1, 7-"])
def test_who_asks_for_a_part_gets_all_of_it(server, part):
    whole = server.get("/").text
    for path in ("/", "/health"):
        answer = server.get(path, headers={"Range": part})
        assert answer.status_code == 200 and "Content-Range" not in answer.headers
        assert path != "/" or answer.text == whole
    assert server.get("/").headers["Accept-Ranges"] == "none"
    assert server.ask("HEAD", "/health").headers["Accept-Ranges"] == "none"


def test_a_range_that_is_none_is_an_error_with_a_body(server):
    received = exchange(server.port, request("GET", "/", headers="Range: lines=some\r\n"))
    assert received.startswith(b"HTTP/1.1 416 ") and "Range" in body_of(received)["error"]["message"]
