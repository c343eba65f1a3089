"""GreedySearch and BeamSearch beside ONNX Runtime's, which come from the same decoder."""

from __future__ import annotations

from typing import Any

import headrace
import numpy as np
import pytest
from generations import END, PAD, VOCABULARY, decoder, fed, for_prompts, generation, one, prompts, scripted
from operator_cases_base import F32, I32
from peers import on_headrace, on_onnx_runtime

LONGEST = 20


def until_all_have_ended(sequences: np.ndarray, prompt: int) -> np.ndarray:
    """What ONNX Runtime leaves behind the step in which the last sequence ends is whatever memory held."""
    ended = (sequences[:, prompt:] == PAD).all(0)
    steps = np.flatnonzero(ended)
    kept = sequences.copy()
    if len(steps):
        kept[:, prompt + steps[0] :] = PAD
    return kept


def rules(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    """Inputs that change the scores, each for itself."""
    allowed = np.ones(VOCABULARY, I32)
    allowed[rng.integers(END + 1, VOCABULARY, 4)] = 0
    first = np.ones((rows, VOCABULARY), I32)
    first[:, ::2] = 0
    mask = np.ones((rows, 6), I32)
    mask[-1, :2] = 0
    return {
        "min_length": one(12),
        "repetition_penalty": one(1.7, F32),
        "vocab_mask": allowed,
        "prefix_vocab_mask": first,
        "attention_mask": mask,
    }


RULES = sorted(rules(np.random.default_rng(0), 1))


@pytest.mark.parametrize("rule", ["", *RULES])
@pytest.mark.parametrize("seed", range(4))
def test_greedy_search_gives_the_same_tokens(seed: int, rule: str) -> None:
    rng = np.random.default_rng(seed)
    graph, ids = decoder(rng), prompts(rng, 3, 6)
    feeds = {"input_ids": ids, "max_length": one(LONGEST)}
    if rule:
        feeds[rule] = rules(rng, 3)[rule]
    model = generation("GreedySearch", graph, feeds)
    expected = until_all_have_ended(on_onnx_runtime(model, fed(feeds))["sequences"], 6)
    np.testing.assert_array_equal(on_headrace(model, fed(feeds))["sequences"], expected)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_no_ngram_occurs_twice(length: int) -> None:
    rng = np.random.default_rng(length)
    feeds = {"input_ids": prompts(rng, 2, 5), "max_length": one(14)}
    model = generation("GreedySearch", decoder(rng), feeds, eos_token_id=-1, no_repeat_ngram_size=length)
    expected = on_onnx_runtime(model, fed(feeds))["sequences"]
    np.testing.assert_array_equal(on_headrace(model, fed(feeds))["sequences"], expected)


def test_a_sequence_that_has_ended_stays_so_while_others_go_on() -> None:
    scores = np.zeros((8, 8))
    for token, after in {1: 2, 2: END, 4: 4, PAD: 5, 5: 6, 6: 7, 7: 1}.items():
        scores[token, after] = 1
    feeds = {"input_ids": np.array([[1], [4], [5]], I32), "max_length": one(8)}
    model = generation("GreedySearch", scripted(scores), feeds)
    sequences = on_headrace(model, fed(feeds))["sequences"]
    assert sequences.tolist() == [[1, 2] + [PAD] * 6, [4] * 8, [5, 6, 7, 1, 2, PAD, PAD, PAD]]
    np.testing.assert_array_equal(sequences, on_onnx_runtime(model, fed(feeds))["sequences"])


def test_what_follows_the_end_of_all_sequences_is_padding() -> None:
    scores = np.eye(8)[[1, 2, END, 0, 0, 0, 0, 0]]
    feeds = {"input_ids": np.array([[1, 1]], I32), "max_length": one(9)}
    model = generation("GreedySearch", scripted(scores), feeds, pad_token_id=7)
    assert on_headrace(model, fed(feeds))["sequences"].tolist() == [[1, 1, 2, 7, 7, 7, 7, 7, 7]]


def beams(rng: np.random.Generator, rule: str, rows: int = 3, **numbers: Any) -> dict[str, np.ndarray]:
    feeds = {
        "input_ids": prompts(rng, rows, 6),
        "max_length": one(LONGEST),
        "min_length": one(0),
        "num_beams": one(numbers.get("beams", 4)),
        "num_return_sequences": one(numbers.get("wanted", 3)),
        "length_penalty": one(numbers.get("length_penalty", 1), F32),
        "repetition_penalty": one(1, F32),
    }
    return feeds | ({rule: rules(rng, rows)[rule]} if rule else {})


def same_beams(model: Any, feeds: dict[str, np.ndarray]) -> None:
    expected = on_onnx_runtime(model, fed(feeds))
    actual = on_headrace(model, fed(feeds))
    np.testing.assert_array_equal(actual["sequences"], expected["sequences"])
    np.testing.assert_allclose(actual["scores"], expected["scores"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rule", ["", *RULES])
@pytest.mark.parametrize("seed", range(3))
def test_beam_search_gives_the_same_sequences_and_scores(seed: int, rule: str) -> None:
    rng = np.random.default_rng(seed + 10)
    feeds = beams(rng, rule)
    same_beams(generation("BeamSearch", decoder(rng), feeds, 2), feeds)


@pytest.mark.parametrize("early", [0, 1])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
@pytest.mark.parametrize(("count", "wanted"), [(1, 1), (2, 1), (5, 5)])
def test_beams_end_as_length_penalty_and_early_stopping_say(
    count: int, wanted: int, penalty: float, early: int
) -> None:
    rng = np.random.default_rng(count)
    feeds = beams(rng, "", beams=count, wanted=wanted, length_penalty=penalty)
    same_beams(generation("BeamSearch", decoder(rng), feeds, 2, early_stopping=early), feeds)


@pytest.mark.parametrize("op", ["GreedySearch", "BeamSearch"])
def test_prompts_of_other_lengths_follow_one_another(op: str) -> None:
    rng = np.random.default_rng(5)
    feeds = beams(rng, "") if op == "BeamSearch" else {"input_ids": None, "max_length": one(LONGEST)}
    feeds["input_ids"] = prompts(rng, 2, 4)
    model = generation(op, decoder(rng), feeds, eos_token_id=-1)
    ours = headrace.load(model, device="cpu")
    for rows, length in ((2, 4), (1, 9), (3, 1)):
        ids = prompts(rng, rows, length)
        expected = on_onnx_runtime(model, {"input_ids": ids})["sequences"]
        np.testing.assert_array_equal(ours(input_ids=ids)["sequences"], expected)


def test_a_prompt_as_long_as_max_length_is_an_error() -> None:
    rng = np.random.default_rng(6)
    feeds = {"input_ids": prompts(rng, 1, 5), "max_length": one(5)}
    model = headrace.load(generation("GreedySearch", decoder(rng), feeds), device="cpu")
    with pytest.raises(ValueError, match=r"generate.*max_length.* is 0; at least 1"):
        model(fed(feeds))


@pytest.mark.parametrize("rule", ["", *RULES])
@pytest.mark.parametrize("op", ["GreedySearch", "BeamSearch"])
def test_the_first_step_is_that_of_a_decoder_of_its_own(op: str, rule: str) -> None:
    feeds = beams(np.random.default_rng(8), rule)
    if op == "GreedySearch":
        feeds = {key: x for key, x in feeds.items() if key in ("input_ids", "max_length", rule)}
    both = {"init_decoder": for_prompts(np.random.default_rng(9))}
    # What one decoder for all steps makes, and ONNX Runtime of the two.
    graph = decoder(np.random.default_rng(9))
    expected = on_headrace(generation(op, graph, feeds), fed(feeds))["sequences"]
    model = generation(op, graph, feeds, **both)
    sequences = on_headrace(model, fed(feeds))["sequences"]
    np.testing.assert_array_equal(sequences, expected)
    theirs = until_all_have_ended(on_onnx_runtime(model, fed(feeds))["sequences"], 6)
    np.testing.assert_array_equal(sequences, theirs)


def same_token_scores(model: Any, feeds: dict[str, np.ndarray]) -> int:
    """How many steps have scores; ONNX Runtime leaves whatever memory held behind them."""
    expected = on_onnx_runtime(model, fed(feeds))["token_scores"]
    actual = on_headrace(model, fed(feeds))["token_scores"]
    assert actual.shape == expected.shape
    steps = int((actual != 0).any((1, 2, 3)).sum())
    assert not actual[steps:].any()
    np.testing.assert_allclose(actual[:steps], expected[:steps], rtol=1e-4, atol=1e-5)
    return steps


@pytest.mark.parametrize("apart", [False, True])
def test_each_tokens_scores_stand_beside_the_sequences(apart: bool) -> None:
    feeds = beams(np.random.default_rng(11), "min_length")
    own = {"init_decoder": for_prompts(np.random.default_rng(12))} if apart else {}
    model = generation("BeamSearch", decoder(np.random.default_rng(12)), feeds, 3, eos_token_id=-1, **own)
    assert same_token_scores(model, feeds) == LONGEST - 6


def test_scores_of_steps_that_there_are_not_are_0() -> None:
    scores = np.log(np.full((8, 8), 1e-4) + np.eye(8)[[1, 2, END, END, END, END, END, END]])
    feeds = beams(np.random.default_rng(13), "", beams=2, wanted=1) | {"input_ids": np.array([[1]], I32)}
    model = generation("BeamSearch", scripted(scores), feeds, 3, early_stopping=1)
    assert 1 < same_token_scores(model, feeds) < LONGEST - 1


def test_generations_of_other_decoders_are_refused_by_name() -> None:
    rng = np.random.default_rng(7)
    feeds = {"input_ids": prompts(rng, 1, 5), "max_length": one(9)}
    with pytest.raises(ValueError, match=r"generate.*model_type is 1.*GreedySearch is of decoders alone"):
        headrace.load(generation("GreedySearch", decoder(rng), feeds, model_type=1), device="cpu")
    graph = decoder(rng)
    del graph.output[-1]
    with pytest.raises(ValueError, match=r"generate.*decoder"):
        headrace.load(generation("GreedySearch", graph, feeds), device="cpu")
