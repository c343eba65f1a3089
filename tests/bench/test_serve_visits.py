"""The checks of bench/serve_stress.py fail on what they must fail on."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from raw_http import Answer, Head
from serve_stress import State, Tally, checks
from serve_visits import FORMS, check_start, grammar


def form(path: str, *, streams: bool = False):
    return next(each for each in FORMS if each.path == path and (each.text is None) == streams)


def test_an_answer_with_its_own_identity_passes():
    form("/completion").check("s1-0", Answer(Head(200, {}), b'{"content": "s1-0"}'))
    events = [(0.0, json.dumps({"content": text}).encode()) for text in ("s1", "-0", "")]
    form("/completion", streams=True).check("s1-0", Answer(Head(200, {}), events=events))


def test_an_answer_that_is_somebody_elses_is_found():
    with pytest.raises(ValueError, match="mixed answers: 's1-0' was asked for, 's2-0' came"):
        form("/completion").check("s1-0", Answer(Head(200, {}), b'{"content": "s2-0"}'))


def test_one_wrong_choice_of_several_is_found():
    body = b'{"choices": [{"text": "s1-0"}, {"text": "s2-0"}]}'
    with pytest.raises(ValueError, match="mixed answers"):
        form("/v1/completions").check("s1-0", Answer(Head(200, {}), body))


def test_a_failure_within_a_stream_is_found():
    events = [(0.0, b'{"error": {"message": "lost"}}')]
    with pytest.raises(ValueError, match="an error in a stream"):
        form("/completion", streams=True).check("s1-0", Answer(Head(200, {}), events=events))


def test_what_was_read_until_a_client_left_begins_the_answer():
    check_start("s1-0", "")
    check_start("s1-0", "s1-0 s1-")
    with pytest.raises(ValueError, match="mixed answers"):
        check_start("s1-0", "s1-0 s2")


def test_a_grammar_allows_one_text():
    assert grammar("a") == 'root ::= "a"'
    assert grammar("a ", 3) == 'root ::= ("a "){3}'


IDLE = State(resident_kib=1000, descriptors=4, threads=5, busy_slots=0)


def failures(after: State = IDLE, status: int = 0, made: int = 10, **problems: int) -> list[str]:
    tally = Tally(visits=Counter(answered=made), problems=Counter(problems))
    return [what for is_met, what in checks(tally, (IDLE, IDLE, after), status, 10) if not is_met]


def test_a_server_that_is_as_it_was_passes():
    assert failures() == []
    assert failures(State(1020, 4, 9, 0)) == []


@pytest.mark.parametrize(
    ("what", "arguments"),
    [
        ("memory", {"after": State(1021, 4, 5, 0)}),
        ("descriptors", {"after": State(1000, 5, 5, 0)}),
        ("busy slots", {"after": State(1000, 4, 5, 1)}),
        ("exit status -11", {"status": -11}),
        ("9 requests", {"made": 9}),
        ("1 mixed answers", {"mixed": 1}),
        ("2 other wrong answers", {"lost": 2}),
    ],
)
def test_each_thing_that_is_not_as_it_was_fails_alone(what, arguments):
    (failure,) = failures(**arguments)
    assert what in failure
