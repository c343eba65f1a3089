"""headrace.LanguageModel: GGUF models, their answers, conversations, vectors and errors."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import threading
from pathlib import Path
from types import MappingProxyType

import headrace
import numpy as np
import pytest
from headrace.language_model import (
    Generation,
    LanguageModel,
    LanguageModelError,
    LanguageModelStatistics,
    RankScores,
    Reply,
    check_model_file,
)
from language_models import CONFIG, ENDLESS, GREEDY, MODEL

QUESTION = "What is the capital of France?"
VECTORS = {"embeddings": True, "n_threads": 1}


@pytest.fixture(scope="module")
def model():
    with LanguageModel(MODEL, CONFIG, {"log_level": "none"}) as model:
        yield model


def error_of(call, *arguments) -> LanguageModelError:
    with pytest.raises(LanguageModelError) as error:
        call(*arguments)
    return error.value


def test_the_package_has_the_class():
    assert headrace.LanguageModel is LanguageModel
    assert "LanguageModel" in headrace.__all__


def test_an_answer_comes_whole_or_in_pieces(model):
    reply = model.generate(QUESTION, GREEDY)
    assert reply.text == reply.content == "The capital of France is Paris."
    assert reply.stop_reason == "end_of_answer"
    # How many pieces there are depends on how fast they are read: one that is late has several tokens.
    generation = model.stream(QUESTION, GREEDY)
    assert "".join(generation) == reply.text
    assert generation.reply.tokens == reply.tokens
    assert generation.generated_tokens <= generation.reply.generated_tokens == len(reply.tokens)
    assert list(generation) == [], "it is over"


def test_a_piece_comes_before_the_answer_is_complete(model):
    generation = model.stream("Tell me a story.", ENDLESS)
    first = next(generation)
    generation.cancel()
    reply = generation.reply
    assert first and reply.text.startswith(first) and reply.stop_reason == "cancelled"


def test_a_reply_says_how_the_answer_came_about(model):
    reply = model.generate(QUESTION, {**GREEDY, "stop": ["Par"]})
    assert (reply.text, reply.stop_reason, reply.stop_detail) == (
        "The capital of France is ",
        "stop_string",
        "Par",
    )
    assert reply.prompt_tokens > 5 and 0 <= reply.cached_tokens <= reply.prompt_tokens
    assert reply.timings.generated_per_second > 0 and reply.timings.queued_ms >= 0
    assert (reply.reasoning, reply.tool_calls, reply.probabilities, reply.warnings) == ("", [], [], [])
    assert (reply.pauses, reply.context_shifts, reply.dropped_messages, reply.drafted_tokens) == (0, 0, 0, 0)
    assert "tiny" in reply.model.lower() or "Q8_0" in reply.model


def test_a_reply_is_a_value(model):
    reply = model.generate("Tell me a story.", {**ENDLESS, "n_predict": 30, "n_probs": 3, "tempratur": 1,
                                                "strict": False})  # fmt: skip
    assert "tempratur" in reply.warnings[0].parameter and reply.warnings[0].message
    assert len(reply.probabilities) == 30
    for token, row in zip(reply.tokens, reply.probabilities, strict=True):
        assert row[0].token == token, "the greedy choice is the likeliest"
        assert [entry.probability for entry in row] == sorted((e.probability for e in row), reverse=True)
    for other in (pickle.loads(pickle.dumps(reply)), copy.deepcopy(reply)):
        assert other == reply and repr(other) == repr(reply)
    assert reply != model.generate(QUESTION, GREEDY) and reply != "text"
    written = json.loads(json.dumps(reply.to_dict()))
    assert written["text"] == reply.text and written["timings"]["prompt_ms"] == reply.timings.prompt_ms
    assert written["probabilities"][0][0]["text"] == reply.probabilities[0][0].text
    assert repr(reply).startswith(f"Reply(text={reply.text!r}, ")
    with pytest.raises(AttributeError):
        reply.text = "another"


def test_messages_are_answered_as_a_conversation(model):
    messages = [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Nice to meet you, Ada!", "reasoning": None, "tool_calls": []},
        {"role": "user", "content": "What is my name?"},
    ]
    assert model.generate(messages, GREEDY).text == "Your name is Ada."
    assert "".join(model.stream(tuple(messages), GREEDY)) == "Your name is Ada."
    assert "Ada" not in model.generate(messages[2:], GREEDY).text


def test_a_conversation_remembers_what_was_said(model):
    conversation = model.conversation(parameters=GREEDY)
    conversation.say("My name is Ada.")
    assert "".join(conversation.stream("What is my name?")) == "Your name is Ada."
    said = conversation.messages
    assert [message.role for message in said] == ["user", "assistant", "user", "assistant"]
    assert said[2].content == "What is my name?" and said[3].content == "Your name is Ada."
    assert model.generate([*said[:2], {"role": "user", "content": "What is my name?"}], GREEDY).text == (
        "Your name is Ada."
    )


def test_a_conversation_of_a_name_goes_on_where_it_was(model):
    model.conversation("ada").say("My name is Ada.", GREEDY)
    assert model.conversation("ada").say("What is my name?", GREEDY).text == "Your name is Ada."
    assert "Ada" not in model.conversation("leo").say("What is my name?", GREEDY).text


def test_a_conversation_that_is_read_in_pieces_is_busy_and_can_be_cancelled(model):
    conversation = model.conversation()
    generation = conversation.stream("Tell me a story.", ENDLESS)
    assert next(generation)
    assert error_of(conversation.say, "What is 2+3?", GREEDY).code == "busy"
    conversation.cancel()
    assert error_of(list, generation).code == "cancelled"
    assert conversation.say("What is 2+3?", GREEDY).text == "2+3=5"


@pytest.mark.parametrize(
    ("prompt", "parameters", "code", "message"),
    [
        ("Hi.", {"tempratur": 1, "strict": True}, "invalid_argument", "did you mean 'temperature'"),
        ("Hi.", {"temperature": "hot"}, "invalid_argument", "it must be a number"),
        ("word " * 2000, {"chat": False}, "prompt_too_long", "the context holds 512"),
        ("Tell me a story.", {**ENDLESS, "timeout_ms": 100}, "timed_out", "100"),
        ([{"role": "user", "content": "word " * 2000}], {}, "prompt_too_long", "the context holds 512"),
        ([{"role": "robot", "content": "Hi."}], {}, "invalid_argument", "role 'robot'"),
    ],
)
def test_errors_have_a_code_and_the_reason(model, prompt, parameters, code, message):
    with pytest.raises(LanguageModelError, match=message) as error:
        model.generate(prompt, parameters)
    assert error.value.code == code
    with pytest.raises(LanguageModelError, match=message):
        list(model.stream(prompt, parameters))
    copy = pickle.loads(pickle.dumps(error.value))
    assert (copy.code, str(copy)) == (code, str(error.value))


def recursive() -> dict[str, object]:
    value: dict[str, object] = {}
    value["again"] = value
    return value


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        (5, TypeError, "parameters must be a mapping of names to values, or None, not int"),
        ([("temperature", 0)], TypeError, "parameters must be a mapping .* not list"),
        ({5: 1}, TypeError, "the name 5 of a parameter must be a str, not int"),
        ({"temperature": 1j}, TypeError, "parameter 'temperature' must be .* not complex"),
        ({"stop": ["a", {"b"}]}, TypeError, r"parameter 'stop\[1\]' must be .* not set"),
        ({"logging": {"level": b"x"}}, TypeError, "parameter 'logging.level' must be .* not bytes"),
        ({"temperature": float("nan")}, ValueError, "parameter 'temperature' is nan; it must be a finite"),
        ({"temperature": np.float32("inf")}, ValueError, "parameter 'temperature' is inf; it must be a"),
        ({"seed": 2**63}, ValueError, "parameter 'seed' is 9223372036854775808, outside the 64-bit range"),
        ({"stop": "\ud800"}, ValueError, "parameter 'stop' has half of a surrogate pair"),
        (recursive(), RecursionError, "maximum recursion depth exceeded"),
    ],
    ids=repr,
)
def test_values_that_are_no_parameters_are_refused_by_name(model, parameters, kind, message):
    for call in (model.generate, model.stream, model.conversation().say):
        with pytest.raises(kind, match=message):
            call("Hi.", parameters)
    with pytest.raises(kind, match=message):
        LanguageModel(MODEL, parameters)


def test_parameters_that_are_given_as_arguments_get_told_where_they_belong(model):
    for call, shown in (
        (lambda **given: LanguageModel(MODEL, **given), r"LanguageModel\(model, {'n_ctx': 128}\)"),
        (lambda **given: model.generate("Hi.", **given), r"generate\(prompt, {'n_ctx': 128}\)"),
        (lambda **given: model.stream("Hi.", **given), r"stream\(prompt, {'n_ctx': 128}\)"),
        (lambda **given: model.conversation().say("Hi.", **given), r"say\(message, {'n_ctx': 128}\)"),
        (lambda **given: model.conversation().stream("Hi.", **given), r"stream\(message, {'n_ctx': 128}\)"),
    ):
        with pytest.raises(TypeError, match="no argument 'n_ctx': parameters are one mapping, .*" + shown):
            call(n_ctx=128)


def test_a_draft_model_that_no_request_asks_for_is_a_warning():
    draft = {**CONFIG, "draft_model": str(MODEL)}
    with LanguageModel(MODEL, draft, {"log_level": "none"}) as model:
        assert [warning.message for warning in model.warnings if "'speculative' true" in warning.message]
        assert model.generate("What is 2+3?", {**GREEDY, "speculative": True}).drafted_tokens > 0
    with LanguageModel(MODEL, {**draft, "speculative": True}, {"log_level": "none"}) as model:
        assert not [warning for warning in model.warnings if warning.parameter == "draft_model"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"temperature": 0, "n_predict": 3, "ignore_eos": True, "stop": []},
        MappingProxyType({"temperature": 0.0, "n_predict": 3, "ignore_eos": True, "stop": ()}),
        {"temperature": np.float32(0), "n_predict": np.int64(3), "ignore_eos": np.bool_(True)},
        {"sampling": {"temperature": None, "top_k": 1}, "n_predict": np.array(3), "ignore_eos": True},
        {"temperature": 0, "n_predict": 3, "ignore_eos": True, "stop": np.array(["never"])},
    ],
    ids=["plain", "any mapping", "NumPy's scalars", "sections", "arrays"],
)
def test_values_are_taken_as_they_are_meant(model, parameters):
    reply = model.generate("Tell me a story.", parameters)
    assert (reply.generated_tokens, reply.stop_reason) == (3, "token_limit")


@pytest.mark.parametrize(
    ("prompt", "kind", "message"),
    [
        (5, TypeError, "the prompt must be a str or a list of messages, not int"),
        (b"Hi.", TypeError, "the prompt must be a str or a list of messages, not bytes"),
        ({"role": "user", "content": "Hi."}, TypeError, "a list of messages, not dict"),
        ([], ValueError, "there are no messages"),
        (["Hi."], TypeError, r"messages\[0\] must be a mapping, not str"),
        ([{"rule": "user"}], ValueError, r"messages\[0\] has the key 'rule'; there are role, content,"),
        ([{"role": "user", "content": 5}], TypeError, r"messages\[0\]\.content must be a str, not int"),
        ([{"role": "user", "tool_calls": "x"}], TypeError, r"messages\[0\]\.tool_calls must be a list"),
        ([{"tool_calls": [{"nam": "x"}]}], ValueError, r"messages\[0\]\.tool_calls\[0\] has the key 'nam'"),
        ("\ud800", ValueError, "the prompt has half of a surrogate pair"),
    ],
)
def test_what_is_no_prompt_is_refused(model, prompt, kind, message):
    with pytest.raises(kind, match=message):
        model.generate(prompt)


def test_many_texts_have_vectors_in_their_order():
    with LanguageModel(MODEL, {**VECTORS, "pooling": "mean"}) as model:
        texts = ["a dog", "What is 2+3?", "a dog"]
        vectors = model.embed(texts)
        assert len(vectors) == 3 and len({len(vector) for vector in vectors}) == 1
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
        np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-4)
        np.testing.assert_allclose(model.embed(texts[1]), vectors[1], atol=1e-4)
        whole = model.embeddings(texts)
        assert whole.tokens == sum(model.embeddings([text]).tokens for text in texts)
        assert whole.vectors[0] == pytest.approx(vectors[0], abs=1e-4) and model.embed([]) == []
        for bad in (5, b"a", [b"a"], ["a", 5]):
            with pytest.raises(TypeError):
                model.embed(bad)
        assert error_of(model.generate, "Hi.").code == "unsupported"


def test_a_model_that_writes_texts_gives_no_vectors_and_no_scores(model):
    with pytest.raises(LanguageModelError, match='"embeddings": true') as error:
        model.embed("a dog")
    assert error.value.code == "unsupported" and isinstance(error.value, headrace.UnsupportedError)
    assert error_of(model.embed_tokens, "a dog").code == "unsupported"
    assert error_of(model.rerank, "a dog", ["an animal"]).code == "unsupported"


def test_tokens_have_vectors_of_their_own_where_they_are_not_pooled():
    with LanguageModel(MODEL, {**VECTORS, "pooling": "none"}) as model:
        vectors = model.embed_tokens("What is 2+3?")
        assert len(vectors) > 5
        assert len({len(vector) for vector in vectors}) == 1
        with pytest.raises(LanguageModelError, match="a vector for each token"):
            model.embed("What is 2+3?")
    with LanguageModel(MODEL, {**VECTORS, "pooling": "last"}) as model:
        last = model.embed("What is 2+3?", {"embd_normalize": -1})
        assert last == pytest.approx(vectors[-1], abs=1e-5)
        with pytest.raises(LanguageModelError, match="are pooled"):
            model.embed_tokens("What is 2+3?")


def test_a_model_without_a_head_for_it_ranks_nothing():
    with LanguageModel(MODEL, {**VECTORS, "pooling": "mean"}) as model:
        assert error_of(model.rerank, "Which animal barks?", ["a dog", "a cat"]).code == "unsupported"
        with pytest.raises(TypeError, match="documents must be a list of str, not str"):
            model.rerank("Which animal barks?", "a dog")
    assert RankScores.scores.__doc__


def test_another_model_takes_the_place_while_requests_run(model, tmp_path):
    other = tmp_path / "other.gguf"
    shutil.copy(MODEL, other)
    generation = model.stream("Tell me a story.", {**ENDLESS, "n_predict": 600})
    first = next(generation)
    model.replace(other, CONFIG)
    assert model.statistics().name == str(other)
    assert model.generate("What is 2+3?", GREEDY).text == "2+3=5"
    assert len(first + "".join(generation)) > 600
    assert generation.reply.generated_tokens == 600


def test_a_load_that_fails_changes_nothing(model, tmp_path):
    name = model.statistics().name
    with pytest.raises(LanguageModelError, match=r"absent\.gguf: there is no such file") as error:
        model.replace(tmp_path / "absent.gguf")
    assert error.value.code == "not_found"
    assert model.statistics().name == name
    with pytest.raises(LanguageModelError, match=r"absent\.gguf"):
        LanguageModel(tmp_path / "absent.gguf")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    assert error_of(LanguageModel, tmp_path / "broken.gguf").code == "invalid_argument"


def test_a_file_is_checked_without_loading_it(tmp_path):
    check_model_file(MODEL)
    half = tmp_path / "half.gguf"
    half.write_bytes(MODEL.read_bytes()[: MODEL.stat().st_size // 2])
    cut_off = error_of(check_model_file, half)
    assert (cut_off.code, "not complete" in str(cut_off)) == ("invalid_argument", True)
    assert error_of(check_model_file, tmp_path / "absent.gguf").code == "not_found"


def test_a_model_may_come_from_bytes():
    with LanguageModel.from_bytes(MODEL.read_bytes(), CONFIG) as model:
        assert model.generate("What is 2+3?", GREEDY).text == "2+3=5"
    with pytest.raises(TypeError, match="from_bytes"):
        LanguageModel(b"model.gguf")
    assert error_of(LanguageModel.from_bytes, b"no model").code == "invalid_argument"


def test_the_models_own_parameters_go_above_those_of_its_surroundings(tmp_path):
    service = {"log_level": "none", "n_ctx": 256, "stopping": {"n_predict": 2, "ignore_eos": True}}
    with LanguageModel(MODEL, {"n_ctx": 512, "stopping": {"n_predict": 4}, "n_threads": 1}, service) as model:
        assert model.statistics().context_tokens == 512
        assert model.generate("Tell me a story.", {"temperature": 0}).generated_tokens == 4
    with pytest.raises(LanguageModelError) as error:
        LanguageModel(MODEL, service={"model_root": str(tmp_path)})
    assert error.value.code in ("denied", "not_found")


def test_statistics_count_requests_and_tokens(model):
    before = model.statistics()
    reply = model.generate("What is 2+3?", GREEDY)
    after = model.statistics()
    assert isinstance(after, LanguageModelStatistics)
    assert (after.submitted, after.finished) == (before.submitted + 1, before.finished + 1)
    assert after.generated_tokens == before.generated_tokens + reply.generated_tokens
    assert after.weight_bytes > 100_000 and after.process_models >= 1 and 0 < after.memory_share_in_use < 1
    assert (after.running, after.waiting) == (0, 0)
    assert json.dumps(after.to_dict())


def test_a_prompt_that_was_read_is_on_disk_for_the_next_load(tmp_path):
    config = {**CONFIG, "n_ctx": 1024, "cache_dir": tmp_path / "cache", "cache_disk": 64}
    prompt = "Paris is a city. " * 60
    parameters = {**GREEDY, "n_predict": 4, "chat": False}
    with LanguageModel(MODEL, config) as model:
        cold = model.generate(prompt, parameters)
        assert model.statistics().disk_cached_tokens == 0
    with LanguageModel(MODEL, config) as model:
        warm = model.generate(prompt, parameters)
        after = model.statistics()
    assert warm.tokens == cold.tokens
    assert warm.cached_tokens == after.disk_cached_tokens >= 256
    assert after.disk_cache_bytes > 0 and after.disk_failures == 0


def test_a_closed_model_takes_no_requests(tmp_path):
    model = LanguageModel(Path(MODEL), CONFIG)
    generation = model.stream("Tell me a story.", ENDLESS)
    next(generation)
    model.close()
    model.close()
    assert error_of(list, generation).code == "cancelled"
    for call in (model.generate, model.stream, model.embed, model.replace):
        with pytest.raises(LanguageModelError, match="the model is closed") as error:
            call("Hi.")
        assert error.value.code == "invalid_state"
    assert error_of(model.statistics).code == "invalid_state"


def test_everything_public_says_what_it_does():
    for cls in (LanguageModel, Generation, Reply, LanguageModelStatistics):
        lacking = [name for name in vars(cls) if name[0] != "_" and not getattr(cls, name).__doc__]
        assert (cls.__doc__, lacking) != (None, []) and not lacking


def test_requests_of_many_threads_run_at_once(model):
    answers = {}

    def ask(number):
        answers[number] = model.generate(f"What is 2+{number}?", GREEDY).text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"2+{number}={2 + number}" for number in range(9)}


def test_texts_are_tokens_and_back(model):
    text = "What is the capital of Spain?"
    tokens = model.tokenize(text, special=False)
    assert len(tokens) > 3
    assert model.detokenize(tokens).strip() == text
    assert model.tokenize(text)[-len(tokens) :] == tokens
    assert max(tokens) < model.info.vocabulary_size
    with pytest.raises(LanguageModelError, match="vocabulary"):
        model.detokenize([model.info.vocabulary_size])
    with pytest.raises(TypeError, match="the text"):
        model.tokenize(b"bytes")


def test_a_rendered_prompt_is_what_a_request_reads(model):
    messages = [{"role": "user", "content": "What is the capital of Spain?"}]
    rendered = model.render(messages)
    assert "capital of Spain" in rendered.text
    assert model.generate(messages, GREEDY).prompt_tokens == len(rendered.tokens)
    assert model.render(messages[0]["content"]) == rendered, "a text alone is the user's message"


def test_the_model_says_what_it_is(model):
    info = model.info
    assert Path(info.path).suffix == ".gguf"
    assert info.chat_template and info.parameters > 0 and info.request_tokens > 0
    assert json.loads(json.dumps(info.to_dict()))["bytes"] == info.bytes


def test_what_was_read_of_a_prompt_can_be_kept_in_a_file(tmp_path):
    prompt = "Tell me a story about a fox. " * 8  # a shorter one is read again sooner than restored
    with LanguageModel(MODEL, {**CONFIG, "cache_ram": 64}) as model:
        expected = model.generate(prompt, GREEDY)
        tokens = model.render(prompt).tokens
        saved = model.save_prompt(tokens, tmp_path / "fox.prompt")
        assert saved.tokens >= len(tokens) and saved.bytes == (tmp_path / "fox.prompt").stat().st_size
        assert model.forget_prompt(tokens) >= len(tokens)
        assert model.generate(prompt, {**GREEDY, "n_predict": 1}).cached_tokens == 0
        assert model.forget_prompt(tokens) > 0
        restored = model.restore_prompt(tmp_path / "fox.prompt")
        assert restored.text[: len(tokens)] == tokens
        again = model.generate(prompt, GREEDY)
        assert again.text == expected.text
        assert again.cached_tokens >= len(tokens) - 1
        with pytest.raises(LanguageModelError, match="there is no such file"):
            model.restore_prompt(tmp_path / "absent")
