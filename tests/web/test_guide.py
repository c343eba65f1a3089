"""The page of docs/web.md, as it stands there, in Debian's Chromium."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from browser import opened
from provision.base import ROOT
from serve_program import free_port, wait_for

PAGE = (ROOT / "docs/web.md").read_text()
PORT = "8000"


def block(start: str) -> str:
    """What stands between a line of three backquotes with that and the next."""
    (found,) = re.findall(rf"^```{re.escape(start)}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found


@pytest.fixture
def folder(tmp_path):
    if not (ROOT / "node/native/web/headrace-threads-relaxed.wasm").exists():
        pytest.skip("the modules are not built: make web builds them")
    (tmp_path / "index.html").write_text(block('html title="index.html"'))
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/headrace").symlink_to(ROOT / "node")
    return tmp_path


def shown_by(folder, command: list[str], port: int) -> str:
    """The page's lines, once there are two, where a command serves the folder."""
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as server:
        try:
            with opened() as browser:
                wait_for(lambda: answers(browser, f"http://localhost:{port}/"), what="the server")
                wait_for(lambda: browser.texts("#result") != [""], what="the page")
                return "\n".join(browser.texts("p"))
        finally:
            server.kill()


def answers(browser, url: str) -> bool:
    try:
        browser.open(url)
    except AssertionError:  # nobody listens yet
        return False
    return True


def test_the_page_shows_what_the_guide_says(folder):
    port = free_port()
    (folder / "serve.py").write_text(block('python title="serve.py"').replace(PORT, str(port)))
    told = block("text").replace("threads: 2", f"threads: {min(len(os.sched_getaffinity(0)), 16)}")
    assert shown_by(folder, [sys.executable, "serve.py"], port) == told.rstrip()


def test_a_server_without_the_headers_shows_the_same_with_one_thread(folder):
    port = free_port()
    told = block("text").replace("threads: 2", "threads: 1")
    assert shown_by(folder, [sys.executable, "-m", "http.server", str(port)], port) == told.rstrip()
