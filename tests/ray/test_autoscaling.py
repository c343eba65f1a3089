"""How many replicas the queues ask for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

from headrace.ray.autoscaling import QueueDepth


def context(running=(), waiting=(), queued=0.0, bounds=(1, 10)):
    metrics = {"running": dict(enumerate(running)), "waiting": dict(enumerate(waiting))}
    return SimpleNamespace(
        aggregated_metrics=metrics,
        total_queued_requests=queued,
        capacity_adjusted_min_replicas=bounds[0],
        capacity_adjusted_max_replicas=bounds[1],
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (context(), 1),
        (context(running=[4.0]), 1),
        (context(running=[8.0]), 1),
        (context(running=[8.0], waiting=[1.0]), 2),
        (context(running=[8.0, 8.0], waiting=[12.0, 4.0]), 4),
        (context(running=[8.0], queued=9.0), 3),
        (context(running=[8.0] * 4, waiting=[80.0] * 4), 10),
        (context(running=[0.0] * 4, bounds=(2, 10)), 2),
    ],
)
def test_replicas_are_as_many_as_run_all_that_runs_and_waits(state, expected):
    assert QueueDepth(streams=8)(state) == (expected, {})


def test_before_anything_was_reported_the_lower_bound_holds():
    state = context(queued=None)
    state.aggregated_metrics = None
    assert QueueDepth(streams=8)(state) == (1, {})
