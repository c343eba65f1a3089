"""BeamSearch of models with an encoder beside ONNX Runtime's."""

from __future__ import annotations

from typing import Any

import headrace
import numpy as np
import onnx
import pytest
from encoder_decoders import FEATURES, model_graphs, text_prompts
from generations import END, VOCABULARY, fed, generation, one
from operator_cases_base import F32, I32
from peers import on_headrace, on_onnx_runtime

LONGEST = 14
FORMS: dict[str, dict[str, Any]] = {
    "caches of the cross attention": {},
    "the first step, too": {"decodes_first": True},
    "and its states": {"decodes_first": True, "sees_states": True},
    "whole sequences": {"ids_width": "new"},
}


def text_model(
    seed: int, feeds: dict[str, np.ndarray], outputs: int = 2, form: str = "", **given: Any
) -> onnx.ModelProto:
    graphs = model_graphs(np.random.default_rng(seed), **FORMS.get(form, {}))
    given = graphs | {"model_type": 1, "decoder_start_token_id": 1} | given
    return generation("BeamSearch", given.pop("decoder"), feeds, outputs, **given)


def beams(seed: int, rows: int = 3, length: int = 6, **changed: Any) -> dict[str, np.ndarray]:
    return {
        "input_ids": text_prompts(np.random.default_rng(seed), rows, length),
        "max_length": one(LONGEST),
        "min_length": one(0),
        "num_beams": one(4),
        "num_return_sequences": one(3),
        "length_penalty": one(1, F32),
        "repetition_penalty": one(1, F32),
    } | changed


def rule(name: str, rows: int, length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    allowed = np.ones(VOCABULARY, I32)
    allowed[rng.integers(END + 1, VOCABULARY, 4)] = 0
    first = np.ones((rows, VOCABULARY), I32)
    first[:, ::2] = 0
    mask = np.ones((rows, length), I32)
    mask[-1, 3:] = 0
    rules = {
        "min_length": one(9),
        "repetition_penalty": one(1.7, F32),
        "vocab_mask": allowed,
        "prefix_vocab_mask": first,
        "attention_mask": mask,
    }
    return {name: rules[name]} if name else {}


RULES = ["min_length", "repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask"]


def row_by_row(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """ONNX Runtime's results of each prompt alone: of some batches it ends one for the scores of another."""
    results = []
    for row in range(len(next(iter(feeds.values())))):
        alone = onnx.ModelProto()
        alone.CopyFrom(model)
        for x in alone.graph.initializer:
            if x.name == "prefix_vocab_mask":
                x.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(x)[row : row + 1], x.name))
        results.append(on_onnx_runtime(alone, {key: x[row : row + 1] for key, x in feeds.items()}))
    return {key: np.concatenate([result[key] for result in results]) for key in results[0]}


def same(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    expected, actual = row_by_row(model, fed(feeds)), on_headrace(model, fed(feeds))
    np.testing.assert_array_equal(actual["sequences"], expected["sequences"])
    np.testing.assert_allclose(actual["scores"], expected["scores"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["", *RULES])
@pytest.mark.parametrize("form", FORMS)
def test_texts_are_continued_to_the_same_sequences(form: str, name: str) -> None:
    for seed in range(3):
        feeds = beams(seed, **rule(name, 3, 6))
        same(text_model(seed + 20, feeds, form=form), feeds)


@pytest.mark.parametrize("early", [0, 1])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
@pytest.mark.parametrize(("count", "wanted"), [(1, 1), (2, 1), (5, 5)])
def test_beams_end_as_length_penalty_and_early_stopping_say(
    count: int, wanted: int, penalty: float, early: int
) -> None:
    form = list(FORMS)[count % 2]
    numbers = {
        "num_beams": one(count),
        "num_return_sequences": one(wanted),
        "length_penalty": one(penalty, F32),
    }
    feeds = beams(count, **numbers)
    same(text_model(count + 30, feeds, form=form, early_stopping=early), feeds)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_no_ngram_occurs_twice(length: int, form: str) -> None:
    feeds = beams(length)
    same(text_model(length + 40, feeds, form=form, eos_token_id=-1, no_repeat_ngram_size=length), feeds)


@pytest.mark.parametrize("form", FORMS)
def test_texts_of_other_lengths_follow_one_another(form: str) -> None:
    model = text_model(50, beams(0), form=form)
    ours = headrace.load(model, device="cpu")
    for rows, length in ((2, 4), (1, 9), (3, 1), (2, 4)):
        feeds = {"input_ids": text_prompts(np.random.default_rng(rows), rows, length)}
        expected = on_onnx_runtime(model, feeds)["sequences"]
        np.testing.assert_array_equal(ours(feeds)["sequences"], expected)


def test_one_token_follows_the_first_one_in_either_form() -> None:
    # Where the encoder's graph makes the first step, ONNX Runtime feeds a token that memory held.
    feeds = beams(1, max_length=one(2))
    expected = on_onnx_runtime(text_model(51, feeds), fed(feeds))["sequences"]
    for form in FORMS:
        np.testing.assert_array_equal(
            on_headrace(text_model(51, feeds, form=form), fed(feeds))["sequences"], expected
        )


@pytest.mark.parametrize("form", FORMS)
def test_each_tokens_scores_stand_beside_the_sequences(form: str) -> None:
    feeds = beams(2)
    model = text_model(52, feeds, 3, form=form, eos_token_id=-1)
    expected, actual = on_onnx_runtime(model, fed(feeds)), on_headrace(model, fed(feeds))
    assert actual["token_scores"].shape == (LONGEST - 1, 3, 4, VOCABULARY)
    np.testing.assert_allclose(actual["token_scores"], expected["token_scores"], rtol=1e-4, atol=1e-5)


def narrowed(graph: onnx.GraphProto, width: int) -> onnx.GraphProto:
    for node in graph.node:
        if "logits" in node.output:
            node.output[0] = "wide_logits"
            bounds = {"begin": [0], "end": [width], "last_axis": [2]}
            graph.initializer.extend(onnx.numpy_helper.from_array(np.array(x), k) for k, x in bounds.items())
            graph.node.append(onnx.helper.make_node("Slice", ["wide_logits", *bounds], ["logits"]))
            graph.output[0].type.tensor_type.shape.dim[2].dim_value = width
            break
    return graph


def test_wider_logits_than_the_vocabulary_count_as_far_as_it_goes() -> None:
    # ONNX Runtime reads the rows of such logits as if they were as wide as the vocabulary.
    feeds, width = beams(3), VOCABULARY - 3
    for form in FORMS:
        actual = on_headrace(text_model(53, feeds, form=form, vocab_size=width), fed(feeds))
        graphs = model_graphs(np.random.default_rng(53), **FORMS[form])
        narrow = {name: narrowed(graph, width) for name, graph in graphs.items()}
        expected = row_by_row(text_model(53, feeds, form=form, **narrow), fed(feeds))
        np.testing.assert_array_equal(actual["sequences"], expected["sequences"])


def test_all_numbers_of_a_search_may_be_fed() -> None:
    feeds = beams(5)
    for form in ("caches of the cross attention", "the first step, too"):
        model = text_model(55, feeds, form=form, told=True)
        ours = headrace.load(model, device="cpu")
        for count, wanted, length, penalty in (
            (4, 3, 12, 1.0),
            (1, 1, 9, 1.0),
            (2, 2, 14, 0.5),
            (4, 3, 12, 1.0),
        ):
            feeds |= {"num_beams": one(count), "num_return_sequences": one(wanted), "max_length": one(length)}
            feeds |= {"length_penalty": one(penalty, F32)}
            expected, actual = on_onnx_runtime(model, feeds), ours(feeds)
            np.testing.assert_array_equal(actual["sequences"], expected["sequences"])
            np.testing.assert_allclose(actual["scores"], expected["scores"], rtol=1e-4, atol=1e-5)


def test_numbers_of_sequences_that_are_fed_are_checked() -> None:
    feeds = beams(6)
    ours = headrace.load(text_model(56, feeds, told=True), device="cpu")
    with pytest.raises(ValueError, match=r"generate.*num_beams is 0; at least 1"):
        ours(feeds | {"num_beams": one(0)})
    with pytest.raises(ValueError, match=r"generate.*num_return_sequences is 5"):
        ours(feeds | {"num_return_sequences": one(5)})


def sounds(
    seed: int, rows: int = 2, frames: int = 7, begun: int = 3, **changed: Any
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    numbers = beams(seed)
    del numbers["input_ids"]
    return (
        {
            "input_features": rng.standard_normal((rows, FEATURES, frames)).astype(F32),
            "decoder_input_ids": rng.integers(END + 1, VOCABULARY, (rows, begun)).astype(I32),
        }
        | numbers
        | changed
    )


def sound_model(seed: int, feeds: dict[str, np.ndarray], outputs: int = 2, **given: Any) -> onnx.ModelProto:
    given = model_graphs(np.random.default_rng(seed), whisper=True, decodes_first=True) | given
    return generation("WhisperBeamSearch", given.pop("decoder"), feeds, outputs, **given)


@pytest.mark.parametrize("name", ["", "min_length", "repetition_penalty", "vocab_mask", "prefix_vocab_mask"])
def test_sounds_are_written_down_as_the_same_sequences(name: str) -> None:
    for seed in range(3):
        feeds = sounds(seed, **rule(name, 2, 6))
        same(sound_model(seed + 60, feeds, early_stopping=seed % 2), feeds)


def test_temperature_divides_the_logarithms_of_all_tokens() -> None:
    for temperature in (0.5, 1.0, 3.0):
        feeds = sounds(4, temperature=one(temperature, F32), logits_processor=one(0))
        same(sound_model(64, feeds), feeds)


def test_sounds_of_other_lengths_follow_one_another() -> None:
    model = sound_model(65, sounds(0))
    ours = headrace.load(model, device="cpu")
    for rows, frames, begun in ((2, 7, 3), (1, 4, 1), (3, 9, 2), (2, 7, 3)):
        feeds = fed(sounds(rows, rows, frames, begun))
        expected = on_onnx_runtime(model, feeds)["sequences"]
        np.testing.assert_array_equal(ours(feeds)["sequences"], expected)


def test_beam_search_of_sounds_is_the_same_operator() -> None:
    feeds = sounds(6)
    model = sound_model(66, feeds)
    expected = on_headrace(model, fed(feeds))["sequences"]
    model.graph.node[0].op_type = "BeamSearch"
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("model_type", 2))
    np.testing.assert_array_equal(on_headrace(model, fed(feeds))["sequences"], expected)
    same(model, feeds)


def refused(message: str, model: onnx.ModelProto) -> None:
    with pytest.raises(ValueError, match=f"generate.*{message}"):
        headrace.load(model, device="cpu")


def test_what_is_no_such_model_is_refused_by_name() -> None:
    feeds = beams(4)
    refused("decoder_start_token_id is -1; at least 0", text_model(54, feeds, decoder_start_token_id=-1))
    refused("model_type is 3", text_model(54, feeds, model_type=3))
    graphs = model_graphs(np.random.default_rng(54))
    del graphs["decoder"].output[-1]
    refused("its decoder has 10 inputs and 4 outputs", text_model(54, feeds, decoder=graphs["decoder"]))
    del graphs["encoder"].output[-1]
    refused("its encoder has 2 inputs and 3 outputs", text_model(54, feeds, encoder=graphs["encoder"]))
    states = model_graphs(np.random.default_rng(54), sees_states=True)["decoder"]
    refused("encoder_hidden_states, which its encoder does not give", text_model(54, feeds, decoder=states))
    del graphs["decoder"].output[1:]
    refused("its decoder has 10 inputs and 1 outputs", text_model(54, feeds, decoder=graphs["decoder"]))
    encoder = model_graphs(np.random.default_rng(54), decodes_first=True)["encoder"]
    encoder.node.append(onnx.helper.make_node("ReduceSum", ["logits"], ["sum"], keepdims=0))
    encoder.output[1].name = "sum"
    refused("encoder_hidden_states, has 0 dimensions", text_model(54, feeds, encoder=encoder))
    refused("model_type 2", sound_model(54, sounds(4), model_type=1))
    refused("the rules of time stamps", sound_model(54, sounds(4, logits_processor=one(1))))
    refused("cross_qk", sound_model(54, sounds(4, cross_qk_layer_head=np.zeros((1, 2), I32))))
    model = text_model(54, feeds)
    del model.graph.node[0].attribute[[a.name for a in model.graph.node[0].attribute].index("encoder")]
    refused("attribute 'encoder' is missing", model)
