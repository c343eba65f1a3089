"""What OpenAI's responses may ask for besides a text: it is given, or refused by name."""

from __future__ import annotations

import openai
import pytest
from serve_models import write_script_model
from serve_program import QWEN3, STORY, ask_openai, in_tree

GREEDY = {"model": "tiny", "temperature": 0}
LOGPROBS = "message.output_text.logprobs"
THOUGHTS = ["<think>\n", "two and", " three", "\n</think>\n\n"]


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny")


@pytest.fixture(scope="module")
def responses(server):
    return ask_openai(server).responses


@pytest.fixture(scope="module")
def thinker(serve, tmp_path_factory):
    template = in_tree(QWEN3)
    path = tmp_path_factory.mktemp("thinker") / "script.gguf"
    write_script_model(path, [*THOUGHTS, "It is", " five."])
    return serve("--ctx-size", 4096, "--parallel", 1, "--chat-template-file", template, model=path)


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("background", {"background": True}),
        ("previous_response_id", {"previous_response_id": "resp_1", "store": True}),
        ("include[0]", {"include": ["file_search_call.results"]}),
        ("prompt", {"prompt": {"id": "pmpt_1"}}),
        ("conversation", {"conversation": "conv_1"}),
        ("context_management", {"extra_body": {"context_management": [{"type": "compaction"}]}}),
        ("truncation", {"truncation": "some"}),
        ("top_logprobs", {"top_logprobs": 21}),
        ("tool_choice", {"tool_choice": "required"}),
        ("tools[0].type", {"tools": [{"type": "web_search"}]}),
    ],
)
def test_what_would_make_another_answer_is_refused_by_name(responses, field, more):
    with pytest.raises(openai.BadRequestError) as caught:
        responses.create(input="What is 2+3?", **more, **GREEDY)
    assert caught.value.param == field


def test_what_makes_no_other_answer_is_taken(responses):
    more = {"background": False, "store": True, "include": ["reasoning.encrypted_content"]}
    more |= {"truncation": "disabled", "tool_choice": "auto", "text": {"verbosity": "high"}}
    response = responses.create(input="What is 2+3?", **more, **GREEDY)
    assert response.output_text == "2+3=5" and response.store is False and response.background is False


def test_logprobs_come_with_the_text_that_they_are_of(responses):
    options = {"input": "What is 2+3?", "include": [LOGPROBS], "top_logprobs": 2, **GREEDY}
    (item,) = responses.create(**options).output
    tokens = item.content[0].logprobs
    assert "".join(token.token for token in tokens) == "2+3=5"
    assert {len(token.top_logprobs) for token in tokens} == {2}
    events = list(responses.create(stream=True, **options))
    deltas = [
        token for event in events if event.type == "response.output_text.delta" for token in event.logprobs
    ]
    (done,) = [event for event in events if event.type == "response.output_text.done"]
    for streamed in (deltas, done.logprobs, events[-1].response.output[0].content[0].logprobs):
        assert [token.token for token in streamed] == [token.token for token in tokens]
    assert not responses.create(input="What is 2+3?", **GREEDY).output[0].content[0].logprobs


def test_thoughts_are_counted_and_not_in_the_texts_logprobs(thinker):
    options = {"input": "What is 2+3?", "include": [LOGPROBS], **GREEDY}
    whole = ask_openai(thinker).responses.create(**options)
    streamed = list(ask_openai(thinker).responses.create(stream=True, **options))[-1].response
    thoughts = len(thinker.tokens("two and three", parse_special=False))
    for response in (whole, streamed):
        reasoning, message = response.output
        assert (reasoning.type, reasoning.status, message.status) == ("reasoning", "completed", "completed")
        assert 0 < response.usage.output_tokens_details.reasoning_tokens <= thoughts + 4
        assert "".join(token.token for token in message.content[0].logprobs).strip() == "It is five."
    chat = ask_openai(thinker).chat.completions
    usage = chat.create(messages=[{"role": "user", "content": "What is 2+3?"}], **GREEDY).usage
    counted = whole.usage.output_tokens_details.reasoning_tokens
    assert usage.completion_tokens_details.reasoning_tokens == counted
    plain = {"messages": [{"role": "user", "content": "Hi"}], "extra_body": {"reasoning_format": "none"}}
    assert chat.create(**plain, **GREEDY).usage.completion_tokens_details.reasoning_tokens == 0


def test_the_item_in_which_an_answer_was_cut_is_incomplete(responses, thinker):
    options = {"input": STORY, "max_output_tokens": 3, **GREEDY}
    events = list(responses.create(stream=True, **options))
    (done,) = [event.item for event in events if event.type == "response.output_item.done"]
    for item in (responses.create(**options).output[0], done, events[-1].response.output[0]):
        assert (item.type, item.status) == ("message", "incomplete") and item.content[0].text
    assert events[-1].type == "response.incomplete"
    (item,) = ask_openai(thinker).responses.create(**{**options, "max_output_tokens": 2}).output
    assert (item.type, item.status) == ("reasoning", "incomplete")


def test_truncation_leaves_out_the_oldest_messages_of_a_long_conversation(responses):
    talk = [{"role": role, "content": "What is 2+3? " * 12} for role in ("user", "assistant") * 6]
    talk.append({"role": "user", "content": "What is 2+3?"})
    with pytest.raises(openai.BadRequestError, match="context"):
        responses.create(input=talk, **GREEDY)
    assert responses.create(input=talk, truncation="auto", **GREEDY).output_text == "2+3=5"


def test_thoughts_that_are_sent_back_stand_in_the_message_they_came_before(thinker):
    client = ask_openai(thinker)
    first = client.responses.create(input="What is 2+3?", **GREEDY)
    begun = [{"role": "user", "content": "What is 2+3?"}, *[item.model_dump() for item in first.output]]
    again = [*begun, {"role": "user", "content": "Sure?"}]
    assert client.responses.create(input=again, **GREEDY).output_text == "It is five."
