"""GET /metrics: what the replicas of an application say to Prometheus, as one page."""

from __future__ import annotations

import re
import socket
import subprocess
import urllib.request

import pytest
from callers import MODEL, ROOT, wait_until

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

from headrace.ray.metrics import merged

ONE = """\
# HELP requests_total requests
# TYPE requests_total counter
requests_total{model="a b{1}"} 3
# HELP waiting requests that wait
# TYPE waiting gauge
waiting 0
"""
OTHER = """\
# HELP requests_total requests
# TYPE requests_total counter
requests_total{model="a b{1}"} 4
# HELP seconds of steps
# TYPE seconds histogram
seconds_bucket{le="+Inf"} 2
seconds_sum 1.5
"""


def test_samples_of_a_metric_stay_together_and_say_whose_they_are():
    assert merged({"x": ONE, "y": OTHER}) == (
        "# HELP requests_total requests\n"
        "# TYPE requests_total counter\n"
        'requests_total{replica="x",model="a b{1}"} 3\n'
        'requests_total{replica="y",model="a b{1}"} 4\n'
        "# HELP waiting requests that wait\n"
        "# TYPE waiting gauge\n"
        'waiting{replica="x"} 0\n'
        "# HELP seconds of steps\n"
        "# TYPE seconds histogram\n"
        'seconds_bucket{replica="y",le="+Inf"} 2\n'
        'seconds_sum{replica="y"} 1.5\n'
    )


def test_an_application_without_replicas_has_an_empty_page():
    assert merged({}) == ""


def test_each_replica_tells_what_headrace_serve_would(chat):
    chat.say(messages=[{"role": "user", "content": "What is 2+3?"}])
    response = chat.send(None, "GET", "/metrics")
    page = response.read().decode()
    assert (response.status, response.getheader("Content-Type")) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    counted = re.findall(r'^headrace_requests_total\{replica="(\S+)",model="(\S+)"\} (\d+)$', page, re.M)
    assert {model for _, model, _ in counted} == {MODEL.name}
    assert len({replica for replica, _, _ in counted}) == len(counted) == 2
    assert sum(int(count) for _, _, count in counted) > 0
    assert page.count("# TYPE headrace_time_to_first_token_seconds histogram\n") == 1


def test_the_names_are_those_of_the_program(chat):
    chat.say(messages=[{"role": "user", "content": "What is 2+3?"}])
    page = chat.send(None, "GET", "/metrics").read().decode()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [ROOT / "build/bin/headrace", "serve", MODEL, "--metrics", "--port", str(port), "--log-disable"]
    server = subprocess.Popen(command)
    try:
        of_program = wait_until(lambda: page_of(port), what="the server")
    finally:
        server.terminate()
        server.wait(30)
    assert names(page) == names(of_program)


def page_of(port: int) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
            return response.read().decode()
    except OSError:
        return None


def names(page: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+ \S+)$", page, re.MULTILINE))
