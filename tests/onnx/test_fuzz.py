"""Changed models end in a model or a ValueError, and soon; drawn ones give ONNX Runtime's results."""

from __future__ import annotations

import control_flow_fuzz
import model_fuzz
import pytest

MODELS = model_fuzz.seeds()


@pytest.mark.parametrize("start", range(0, 800, 100))
def test_changed_models_give_a_model_or_a_value_error(start: int) -> None:
    contents = {seed: model_fuzz.Mutation(seed, MODELS).content() for seed in range(start, start + 100)}
    found = {seed: model_fuzz.outcome(content) for seed, content in contents.items()}
    assert not {seed: what for seed, what in found.items() if what}


def test_changes_are_the_same_for_the_same_seed() -> None:
    first, again, other = (model_fuzz.Mutation(seed, MODELS).content() for seed in (7, 7, 8))
    assert first == again != other


def test_branches_loops_and_scans_in_one_another_are_onnx_runtimes() -> None:
    peer = control_flow_fuzz.Peer()
    found = {seed: control_flow_fuzz.outcome(seed, peer) for seed in range(150)}
    assert not {seed: what for seed, what in found.items() if what not in ("", "refused")}
    assert sum(what == "" for what in found.values()) > 100
