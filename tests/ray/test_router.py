"""Which replica a request is sent to."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

from headrace.ray.router import AffinityRouter, bound


class Router(AffinityRouter):
    """Without Serve around it: loads are given."""

    def __init__(self, loads: dict[str, int], **kwargs) -> None:
        self._loads = loads
        self.initialize_state(**kwargs)

    @property
    def replica_queue_len_cache(self):
        return self._loads

    def ranked(self, key: str) -> list[str]:
        replicas = [SimpleNamespace(replica_id=Id(name)) for name in self._loads]
        metadata = SimpleNamespace(session_id=key, internal_request_id="unused")
        pending = SimpleNamespace(metadata=metadata, routing_context=SimpleNamespace(should_backoff=False))
        ranks = asyncio.run(self.choose_replicas(replicas, pending))
        assert pending.routing_context.should_backoff
        assert all(len(rank) == 1 for rank in ranks)
        return [str(rank[0].replica_id) for rank in ranks]


class Id(str):
    """A replica's id, equal to its text as a key of the loads."""

    @property
    def unique_id(self) -> str:
        return str(self)


KEYS = [f"session {i}" for i in range(600)]


def test_the_same_session_is_always_ranked_alike():
    loads = {name: 0 for name in "abc"}
    first = [Router(loads).ranked(key) for key in KEYS]
    backwards = dict(reversed(loads.items()))
    assert first == [Router(backwards).ranked(key) for key in KEYS]


def test_sessions_are_spread_evenly():
    counts = Counter(Router({name: 0 for name in "abcd"}).ranked(key)[0] for key in KEYS)
    assert set(counts) == set("abcd")
    assert max(counts.values()) < 1.3 * len(KEYS) / 4


def test_only_the_sessions_of_a_lost_replica_move():
    before = {key: Router({name: 0 for name in "abc"}).ranked(key) for key in KEYS}
    after = {key: Router({name: 0 for name in "ac"}).ranked(key)[0] for key in KEYS}
    for key, ranked in before.items():
        assert after[key] == (ranked[1] if ranked[0] == "b" else ranked[0])


def test_a_replica_without_room_comes_after_those_that_have_it():
    home, *others = Router({name: 0 for name in "abc"}).ranked("session 1")
    loads = {name: 8 if name == home else 7 for name in "abc"}
    assert Router(loads, streams=8).ranked("session 1") == [*others, home]
    assert Router(loads, streams=9).ranked("session 1") == [home, *others]


def test_where_none_has_room_only_one_with_much_more_to_do_comes_last():
    home, *others = Router({name: 0 for name in "abc"}).ranked("session 1")
    assert Router({name: 12 if name == home else 10 for name in "abc"}, streams=8).ranked("session 1") == [
        home,
        *others,
    ]
    assert Router({name: 20 if name == home else 10 for name in "abc"}, streams=8).ranked("session 1") == [
        *others,
        home,
    ]


@pytest.mark.parametrize(
    ("loads", "expected"), [([0, 0], 8), ([8, 7], 8), ([8, 8], 11), ([40, 20, 30, 9], 32), ([9], 13)]
)
def test_the_bound_is_the_streams_and_then_a_quarter_above_the_mean(loads, expected):
    assert bound(loads, 8, 1.25) == expected
