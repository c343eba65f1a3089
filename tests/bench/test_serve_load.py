"""What bench/serve.py asks, reads and computes, without a server."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
import serve_load
from make_llm import SIZES, merges
from raw_http import Answer, Events, Head, parse_head, request_bytes
from serve import Table
from serve_agreement import Choice, parting
from serve_load import Load, Ports, arrivals, make_asks, percentile, timed


def test_a_head_gives_its_status_and_headers():
    head = parse_head(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; a=b\r\nConnection: close\r\n\r\n")
    assert head.status == 200
    assert head.is_stream
    assert not head.keeps_alive


@pytest.mark.parametrize("text", [b"ICY 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"])
def test_what_is_no_head_is_refused(text):
    with pytest.raises(ValueError, match=r"no HTTP|no header"):
        parse_head(text)


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_events_are_found_wherever_the_stream_is_cut(size):
    stream = b'data: {"a": 1}\n\n: still there\n\nevent: x\ndata: b\ndata: c\n\ndata: unfinished'
    events, found = Events(), []
    for start in range(0, len(stream), size):
        found += events.feed(stream[start : start + size])
    assert found == [b'{"a": 1}', b"b\nc"]


def test_a_request_with_a_body_says_how_long_it_is():
    head, _, body = request_bytes("/completion", b"{}").partition(b"\r\n\r\n")
    assert head.startswith(b"POST /completion HTTP/1.1\r\n")
    assert b"Content-Length: 2" in head
    assert body == b"{}"


def test_the_same_seed_asks_the_same_and_another_seed_shares_only_the_system_prompt():
    first, again, other = make_asks("a", 30), make_asks("a", 30), make_asks("b", 30)
    assert [ask.request for ask in first] == [ask.request for ask in again]
    assert Counter(ask.kind for ask in first) == {
        "chat": 14, "completion": 8, "document": 2, "embedding": 6,
    }  # fmt: skip
    (one, *_), (another, *_) = ([ask for ask in asks if ask.kind == "chat"] for asks in (first, other))
    assert one.body["messages"][0] == another.body["messages"][0]
    assert one.body["messages"][1] != another.body["messages"][1]


def test_each_word_is_one_token_of_the_smallest_vocabulary():
    pairs = merges()
    tokens = {"".join(next(pairs)) for _ in range(SIZES["small"].vocabulary - 259)}
    words = serve_load.words(random.Random(1), 2000).split()
    assert len(words) == 2000
    assert {f"\u0120{word}" for word in words} <= tokens


def test_arrivals_come_at_the_rate_on_average():
    moments = arrivals("a", 4000, rate=8)
    assert moments == sorted(moments)
    assert moments[-1] == pytest.approx(500, rel=0.05)


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.95, 4), (0.25, 1), (0.0, 1)])
def test_a_percentile_is_one_of_the_values(share, value):
    assert percentile([3, 1, 4, 2], share) == value


def stream(*events: dict) -> Answer:
    data = [(float(at), json.dumps(event).encode()) for at, event in enumerate(events, 1)]
    return Answer(Head(200, {}), events=[*data, (9.0, b"[DONE]")])


def test_latency_counts_from_the_first_event_with_text():
    (ask,) = (ask for ask in make_asks("a", 15) if ask.kind == "document")
    answer = stream(
        {"choices": [{"delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"delta": {"content": "a"}}]},
        {"choices": [{"delta": {"content": "b"}}]},
        {"choices": [], "timings": {"prompt_n": 5, "cache_n": 2, "predicted_n": ask.tokens}},
    )
    found = timed(ask, answer, start=0.5, end=9)
    assert found.first_ms == 1500
    assert found.gaps_ms == [1000]
    assert (found.prompt_tokens, found.cached_tokens, found.tokens) == (7, 2, ask.tokens)


def test_an_answer_of_another_length_is_no_measurement():
    (ask,) = (ask for ask in make_asks("a", 15) if ask.kind == "document")
    with pytest.raises(RuntimeError, match=f"7 tokens came, not {ask.tokens}"):
        timed(ask, stream({"content": "a", "timings": {"prompt_n": 5, "predicted_n": 7}}), start=0, end=1)


def test_a_stream_that_breaks_off_is_no_measurement():
    (ask,) = (ask for ask in make_asks("a", 15) if ask.kind == "document")
    with pytest.raises(RuntimeError, match="without timings"):
        timed(ask, stream({"content": "a"}), start=0, end=1)


def test_vectors_are_asked_for_where_they_are_made_and_each_text_has_one():
    (ask, *_) = (ask for ask in make_asks("a", 15) if ask.kind == "embedding")
    assert (Ports(texts=1, vectors=2).of(ask), ask.path) == (2, "/v1/embeddings")
    body = {"data": [{}] * len(ask.body["input"]), "usage": {"prompt_tokens": 90}}
    found = timed(ask, Answer(Head(200, {}), json.dumps(body).encode()), start=1, end=1.5)
    assert (found.whole_ms, found.prompt_tokens) == (500, 90)
    load = Load(seconds=2, client_seconds=0, vectors=[found])
    assert (load.requests_per_second, load.percentile("vectors", 0.95)) == (0.5, 500)
    body["data"].pop()
    with pytest.raises(RuntimeError, match="8 texts were sent, and 7 vectors came"):
        timed(ask, Answer(Head(200, {}), json.dumps(body).encode()), start=1, end=1.5)


def test_answers_part_at_the_first_other_token_by_the_lead_of_each():
    same = Choice(1, {1: -0.1})
    found = parting([same, Choice(2, {2: -1.0, 3: -1.125})], [same, Choice(3, {3: -1.0, 2: -1.0625})])
    assert found.index == 1
    assert found.leads == (0.125, 0.0625)
    assert found.is_tie
    assert parting([same], [same]) is None


def test_a_token_that_the_other_side_does_not_consider_is_no_tie():
    found = parting([Choice(2, {2: -1.0})], [Choice(3, {3: -1.0, 2: -1.0})])
    assert not found.is_tie


def test_a_table_gives_medians_and_the_ratio_of_the_first_side():
    table = Table()
    for ours, theirs in ((1, 4), (3, 1), (8, 2)):
        table.add("case", "tokens/s", "headrace", ours)
        table.add("case", "tokens/s", "llama-server", theirs)
    (row,) = table.rows()
    assert (row["headrace"], row["llama-server"]) == (3, 2)
    assert row["ratios"] == {"headrace / llama-server": 1.5}
