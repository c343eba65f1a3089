"""Debian's Chromium, driven over W3C's WebDriver protocol (https://www.w3.org/TR/webdriver2/)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager

import pytest
import requests
from serve_program import free_port, wait_for

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key that the protocol gives
ENTER = "\ue007"


class Browser:
    def __init__(self, driver: str, binary: str) -> None:
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=420,800"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        options = {"binary": binary, "args": arguments}
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}
        self._url = f"{driver}/session"
        self._patience = 60  # seconds
        session = self._ask("POST", "", {"capabilities": wanted})
        self._url += "/" + session["sessionId"]
        self.process_id = session["capabilities"]["goog:processID"]

    def _ask(self, method: str, path: str, body: object = None):
        reply = requests.request(method, self._url + path, json=body, timeout=self._patience).json()["value"]
        assert not (isinstance(reply, dict) and "error" in reply), reply
        return reply

    def wait_for_scripts(self, seconds: float) -> None:
        """As long as that; it is half a minute else."""
        self._patience = seconds + 30
        self._ask("POST", "/timeouts", {"script": int(1000 * seconds)})

    def open(self, url: str) -> None:
        self._ask("POST", "/url", {"url": url})

    def back(self) -> None:
        self._ask("POST", "/back", {})

    def run(self, script: str, *arguments: object):
        """The value of a function's body in the page."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, css: str) -> Element:
        (found,) = self._ask("POST", "/elements", {"using": "css selector", "value": css})
        return Element(self, found[ELEMENT])

    def texts(self, css: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", css)

    def complaints(self) -> list[str]:
        """What the page's console has as errors."""
        entries = self._ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def devtools(self, command: str, **parameters: object):
        """A command of Chromium's own protocol (https://chromedevtools.github.io/devtools-protocol)."""
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    @contextmanager
    def another_tab(self):
        """The browser's calls go to a new tab, which is closed in the end."""
        first = self._ask("GET", "/window")
        self._ask("POST", "/window", {"handle": self._ask("POST", "/window/new", {"type": "tab"})["handle"]})
        try:
            yield
        finally:
            self._ask("DELETE", "/window")
            self._ask("POST", "/window", {"handle": first})

    def quit(self) -> None:
        self._ask("DELETE", "")


class Element:
    def __init__(self, browser: Browser, number: str) -> None:
        self._ask = lambda what, body: browser._ask("POST", f"/element/{number}/{what}", body)

    def type(self, text: str) -> None:
        self._ask("value", {"text": text})

    def click(self) -> None:
        self._ask("click", {})


@contextmanager
def opened():
    """A browser; skips where there is none."""
    program, binary = shutil.which("chromedriver"), shutil.which("chromium")
    if not program or not binary:
        pytest.skip("no Chromium: apt install chromium chromium-driver")
    port = free_port()
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    driver = subprocess.Popen([program, f"--port={port}"], start_new_session=True, **output)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: _is_ready(url), what="chromedriver")
        browser = Browser(url, binary)
        yield browser
        browser.quit()
    finally:
        os.killpg(driver.pid, signal.SIGKILL)  # with the browser, where a test broke off
        driver.wait()


def _is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/status", timeout=5).json()["value"]["ready"]
    except requests.ConnectionError:
        return False
