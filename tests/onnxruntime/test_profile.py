"""Traces: headrace.onnxruntime beside ONNX Runtime."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from both_sides import SIDES, same
from small_models import ADD, NETWORK


def profiled(o: ModuleType, folder: Path, runs: int = 2) -> tuple[str, list[dict]]:
    options = o.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / o.__name__)
    (folder / "network.onnx").write_bytes(NETWORK)
    session = o.InferenceSession(folder / "network.onnx", options)
    for _ in range(runs):
        session.run(None, {"x": np.ones((3, 4), np.float32)})
    path = session.end_profiling()
    return path, json.loads(Path(path).read_text())


def test_a_trace_is_of_the_same_form(tmp_path: Path) -> None:
    fields, kinds = [], []
    for side in SIDES.values():
        path, events = profiled(side, tmp_path)
        assert re.fullmatch(rf".*/{side.__name__}_\d{{4}}-\d\d-\d\d_\d\d-\d\d-\d\d_\d+\.json", path)
        fields.append({tuple(sorted(event)) for event in events})
        named = [event for event in events if event["cat"] == "Session" and "Executor" not in event["name"]]
        kinds.append(sorted((event["cat"], event["name"]) for event in named))
        nodes = [event for event in events if event["cat"] == "Node"]
        assert {"first_kernel_time", "second_kernel_time"} <= {event["name"] for event in nodes}
        assert all({"op_name", "provider", "node_index"} <= set(event["args"]) for event in nodes)
        assert all(event["args"]["op_name"].isidentifier() for event in nodes)
        for event in events:
            assert event["ph"] == "X" and event["dur"] >= 0 and event["ts"] >= 0
    assert fields[0] == fields[1]
    assert kinds[0] == kinds[1] and ("Session", "model_run") in kinds[0]


def test_nodes_lie_within_their_run(tmp_path: Path) -> None:
    _, events = profiled(SIDES["headrace"], tmp_path, runs=1)
    (run,) = (event for event in events if event["name"] == "model_run")
    nodes = [event for event in events if event["cat"] == "Node"]
    assert len(nodes) >= 2
    assert all(
        run["ts"] <= node["ts"] and node["ts"] + node["dur"] <= run["ts"] + run["dur"] + 2 for node in nodes
    )


def test_profiled_runs_give_the_same(tmp_path: Path) -> None:
    options = SIDES["headrace"].SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    session, x = SIDES["headrace"].InferenceSession(NETWORK, options), np.ones((3, 4), np.float32)
    plain = SIDES["headrace"].InferenceSession(NETWORK).run(["h", "y"], {"x": x})
    for given, expected in zip(session.run(["h", "y"], {"x": x}), plain, strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-6)


def test_a_session_without_profiling_has_no_file() -> None:
    assert same(lambda o: o.InferenceSession(ADD).end_profiling()) == ""


@pytest.mark.parametrize("side", SIDES)
def test_times_begin_where_the_session_says(side: str, tmp_path: Path) -> None:
    assert SIDES[side].InferenceSession(ADD).get_profiling_start_time_ns() == 0
    options = SIDES[side].SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    before = time.time_ns()
    session = SIDES[side].InferenceSession(ADD, options)
    assert before <= session.get_profiling_start_time_ns() <= time.time_ns()
    session.end_profiling()
