"""Another model in the place of the one that is served, from Serve's configuration file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from callers import MODEL, Caller, Callers, wait_until

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

CONFIGURATION = """
applications:
  - name: swapped
    route_prefix: /swapped
    import_path: headrace.ray:app
    args: {{model: {first}, replicas: 2, cpus: 0.25, streams: 2}}
    deployments:
      - name: model
        user_config: {{model: {model}, config: {{n_threads: 1}}}}
"""


@pytest.fixture
def deploy(cluster, tmp_path):
    """Hands a model to `serve run` as a user would, and returns who asks it."""
    import ray

    address = ray.get_runtime_context().gcs_address

    def deploy_model(first: Path, model: Path) -> Caller:
        path = tmp_path / "serve.yaml"
        path.write_text(CONFIGURATION.format(first=first, model=model))
        command = [
            sys.executable,
            "-m",
            "ray.serve.scripts",
            "run",
            "--non-blocking",
            "--address",
            address,
            path,
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        subprocess.run(command, check=True, env=environment, timeout=240, stdin=subprocess.DEVNULL)
        caller = Caller(cluster, "/swapped", None)
        wait_until(lambda: is_ready(caller), 120, "the application")
        return caller

    yield deploy_model
    from ray import serve

    serve.delete("swapped")


def is_ready(caller: Caller) -> bool:
    response = caller.send(None, "GET", "/statistics")
    return response.status == 200 and len(json.loads(response.read())) == 2


def test_a_model_is_replaced_while_requests_run(deploy, tmp_path):
    other = tmp_path / "other.gguf"
    shutil.copy(MODEL, other)
    caller = deploy(MODEL, MODEL)
    pids = sorted(replica["pid"] for replica in caller.statistics())
    assert len(pids) == 2
    outcomes, done = [], threading.Event()

    def ask(number):
        while not done.is_set():
            outcomes.append(caller.whole(prompt=f"What is 2+{number}?"))

    callers = Callers(ask, *range(4))
    try:
        deploy(MODEL, other)
        served = lambda: {replica["model"] for replica in caller.statistics()}  # noqa: E731
        wait_until(lambda: served() == {str(other)}, 120, "the new model on both replicas")
    finally:
        done.set()
        callers.wait()
    assert len(outcomes) > 20
    assert {status for status, _ in outcomes} == {200}
    assert {reply["text"] for _, reply in outcomes} == {"2+0=2", "2+1=3", "2+2=4", "2+3=5"}
    assert sorted(replica["pid"] for replica in caller.statistics()) == pids, "no replica was restarted"
