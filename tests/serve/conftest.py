"""Fixtures of the tests of `headrace serve`. Where one fails, what its servers said stands beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # serve_program.py and others

import serve_models
import serve_program


@pytest.fixture(autouse=True, scope="session")
def the_server_is_built():
    shown = subprocess.run([serve_program.HEADRACE, "serve", "--help"], capture_output=True)
    if shown.returncode:
        pytest.skip("the program was built without language models (HEADRACE_GGML=system)")


@pytest.fixture(scope="module")
def serve():
    """Starts servers, which the module's end stops; one that crashed or does not stop then is an error."""
    started = []

    def start(*arguments, **options):
        started.append(serve_program.Served(*arguments, **options))
        return started[-1]

    yield start
    statuses = [server.stop() for server in started]
    assert set(statuses) <= {0}, [server.log()[-2000:] for server in started]


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    """A folder with the models of serve_models.py."""
    folder = tmp_path_factory.mktemp("models")
    serve_models.write_all(folder)
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for server in serve_program.running:
            report.sections.append((f"what the server at {server.url} said", server.log()[-4000:]))
    return report
