"""headrace.Tokenizer beside Hugging Face's library: the same tokens of all kinds of texts; damaged files are
errors."""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

import headrace
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parent))

import natural_texts
import tokenizer_kinds
from tokenizer_kinds import KINDS

TEXTS = 1500


def check(theirs, seed: str, count: int = TEXTS) -> None:
    """Texts, pairs, lengths that cut, with and without special tokens."""
    theirs.no_truncation()
    theirs.no_padding()
    ours = headrace.Tokenizer.parse(theirs.to_str())
    generator = random.Random(seed)
    for _ in range(count):
        text = natural_texts.random_text(generator)
        pair = natural_texts.random_text(generator) if generator.random() < 0.3 else None
        special = generator.random() < 0.8
        most = generator.randint(4, 24) if generator.random() < 0.3 else 0
        if most:
            theirs.enable_truncation(most)
        else:
            theirs.no_truncation()
        expected = theirs.encode(text, pair, add_special_tokens=special)
        got = ours.encode(text, pair, most_tokens=most, special=special)
        assert got == (expected.ids, expected.type_ids), (text, pair, most, special)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_hugging_faces_library(kind):
    check(KINDS[kind](), kind)


def test_tokens_of_the_published_model_are_theirs():
    check(tokenizer_kinds.minilm(), "minilm", 2 * TEXTS)


@pytest.fixture(scope="module")
def roberta():
    theirs = KINDS["roberta"]()
    return theirs, headrace.Tokenizer.parse(theirs.to_str())


@pytest.fixture(scope="module")
def bert():
    theirs = KINDS["bert-uncased"]()
    return theirs, headrace.Tokenizer.parse(theirs.to_str())


@settings(max_examples=300, deadline=None)
@given(text=st.text(), pair=st.none() | st.text())
def test_any_text_has_the_same_tokens(bert, roberta, text, pair):
    for theirs, ours in (bert, roberta):
        expected = theirs.encode(text, pair)
        assert ours.encode(text, pair) == (expected.ids, expected.type_ids)


@pytest.mark.parametrize("strategy", ["longest_first", "only_first", "only_second"])
@pytest.mark.parametrize("direction", ["left", "right"])
def test_texts_are_cut_as_the_file_says(strategy, direction):
    theirs = KINDS["bert-uncased"]()
    theirs.enable_truncation(24, strategy=strategy, direction=direction)
    ours = headrace.Tokenizer.parse(theirs.to_str())
    for first, second in (
        ("the quick " * 8, "lazy dog " * 8),
        ("dog " * 9, "water " * 30),
        ("fox " * 30, "x " * 9),
    ):
        try:
            expected = theirs.encode(first, second)
        except Exception as error:  # the library raises no other kind
            assert "too short" in str(error)
            with pytest.raises(ValueError, match="are too many"):
                ours.encode(first, second)
        else:
            assert ours.encode(first, second) == (expected.ids, expected.type_ids)


def test_special_tokens_are_known(bert):
    theirs, ours = bert
    assert ours.token_id("[SEP]") == theirs.token_to_id("[SEP]") and ours.token_id("none such") is None
    assert ours.padding_id == theirs.token_to_id("[PAD]")
    assert len(ours) == theirs.get_vocab_size()


def paths_of(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield from paths_of(child, (*path, key))


def replaced(file, path, value):
    if not path:
        return value
    copy = json.loads(json.dumps(file))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


SMALL = json.loads(KINDS["bert-uncased"]().to_str())
SMALL["model"]["vocab"] = dict(list(SMALL["model"]["vocab"].items())[:40])
PATHS = [path for path in paths_of(SMALL) if "vocab" not in path or len(path) < 4]
ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
    st.just({"type": "Sequence"}),
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(path=st.sampled_from(PATHS), value=ODD_VALUES)
def test_a_changed_file_is_read_or_refused(path, value):
    begin = time.monotonic()
    try:
        headrace.Tokenizer.parse(json.dumps(replaced(SMALL, path, value))).encode(
            "the quick [SEP] fox é", "dog"
        )
    except ValueError as error:
        assert str(error)
    assert time.monotonic() - begin < 5


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(data):
    text = bytearray(json.dumps(SMALL).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        if data.draw(st.booleans()):
            text[place] = data.draw(st.integers(0, 255))
        else:
            del text[place : place + data.draw(st.integers(1, 200))]
    whole = bytes(text).decode("utf-8", "replace")
    try:
        headrace.Tokenizer.parse(whole).encode("the quick [SEP] fox é")
    except ValueError as error:
        assert str(error)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200), text=st.text(max_size=20))
def test_damaged_rules_of_characters_are_read_or_refused(data, text):
    import base64

    for rules in (data, (len(data) & ~3).to_bytes(4, "little") + data):
        coded = base64.b64encode(rules).decode()
        file = SMALL | {"normalizer": {"type": "Precompiled", "precompiled_charsmap": coded}}
        try:
            headrace.Tokenizer.parse(json.dumps(file)).encode(text)
        except ValueError as error:
            assert "normalizer" in str(error) or "added_tokens" in str(error)
