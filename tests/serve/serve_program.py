"""`headrace serve` as a user starts it, and what it is asked."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from provision.ggml import pinned_source

ROOT = Path(__file__).resolve().parents[2]
HEADRACE = ROOT / "build/bin/headrace"
#: Answers a closed domain; 512 tokens of context and of vocabulary.
MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
#: llama.cpp's tree, where tools/provision/ggml.py finds or puts it.
LLAMA_CPP = Path(os.environ.get("LLAMA_CPP_DIR") or pinned_source())
TEMPLATES = LLAMA_CPP / "models/templates"
QWEN3 = TEMPLATES / "Qwen-Qwen3-0.6B.jinja"
STORY = "Tell me a story about a fox."
#: A body of /completion whose answer only ends when somebody ends it.
ENDLESS = {"prompt": "Once", "n_predict": -1, "ignore_eos": True, "temperature": 0}
#: A server that such an answer does not stop.
ENDLESSLY = ("--context-shift",)

running: list[Served] = []
logs = tempfile.TemporaryDirectory(prefix="headrace-serve-")  # until the interpreter ends


def in_tree(path: Path) -> Path:
    """A file or folder of llama.cpp's tree; a test that needs one which is not there is skipped."""
    if not path.exists():
        pytest.skip(f"{path.name} of llama.cpp's tree is not in the cache folder: make setup fetches it")
    return path


def free_port() -> int:
    """One that the system gives to no client meanwhile: those are above."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


def environment(**more: str) -> dict[str, str]:
    """The machine's, but for what would be options of the server."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_")}
    return {**others, **more}


def start(*arguments: object, **variables: str) -> tuple[subprocess.Popen, Path]:
    """The process, and the file that its stdout and stderr go to."""
    output, name = tempfile.mkstemp(dir=logs.name)
    command = [HEADRACE, "serve", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=output, stderr=output, env=environment(**variables))
    os.close(output)
    return process, Path(name)


def wait_for(condition, seconds: float = 20.0, what: str = "it"):
    """What the condition gives as soon as that is true."""
    end = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.01)


class Served:
    """A server that listens. port: 0 lets it choose."""

    def __init__(
        self, *arguments: object, model: Path | None = MODEL, port: int = 0, key: str = "", **variables: str
    ):
        self.key = key
        keys = ["--api-key", key] if key else []
        common = ["--port", port, "--threads", 1]
        models = [model] if model else []
        self.process, self.output = start(*models, *common, *keys, *arguments, **variables)
        running.append(self)
        wait_for(self._is_ready, 60, "the server to listen")
        self.url = re.search(r"listens at (http://[^\s,]+)", self.log())[1]
        self.port = int(re.search(r":(\d+)", self.url)[1])
        self.session = requests.Session()
        self.session.trust_env = False

    def _is_ready(self) -> bool:
        if self.process.poll() is not None:
            running.remove(self)
            pytest.fail(f"the server ended with {self.process.returncode}: {self.log()}")
        return "listens at" in self.log()

    def log(self) -> str:
        return self.output.read_text(errors="replace")

    def ask(self, method: str, path: str, **options) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        headers.update(options.pop("headers", {}))
        return self.session.request(method, self.url + path, headers=headers, timeout=60, **options)

    def get(self, path: str, **options) -> requests.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: object = None, **options) -> requests.Response:
        return self.ask("POST", path, json=body, **options)

    def json(self, path: str, body: object = None) -> dict | list:
        """What a good request gives: GET without a body, POST with one."""
        response = self.get(path) if body is None else self.post(path, body)
        assert response.status_code == 200, response.text
        return response.json()

    def events(self, path: str, body: dict) -> list[dict]:
        """The data of a stream's events; "[DONE]" is left out."""
        response = self.post(path, {**body, "stream": True})
        assert response.status_code == 200, response.text
        assert response.headers["Content-Type"].startswith("text/event-stream")
        lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]

    def tokens(self, text: str, **options) -> list[int]:
        return self.json("/tokenize", {"content": text, **options})["tokens"]

    def prompt_tokens(self, messages: list[dict]) -> list[int]:
        """What a chat's prompt is made of."""
        text = self.json("/apply-template", {"messages": messages})["prompt"]
        return self.tokens(text, add_special=True, parse_special=True)

    def busy_slots(self) -> int:
        return sum(slot["is_processing"] for slot in self.json("/slots"))

    def metrics(self) -> dict[str, float]:
        """By name and labels, as they are written."""
        response = self.get("/metrics")
        assert response.status_code == 200, response.text
        lines = [line for line in response.text.splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def count(self, name: str) -> float:
        """A number of the only model."""
        return next(value for key, value in self.metrics().items() if key.startswith(name + "{"))

    def stop(self) -> int:
        """Its exit status after SIGTERM."""
        if self in running:
            running.remove(self)
        self.session.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            pytest.fail(f"the server did not stop: {self.log()[-4000:]}")


def serve_arguments_are_refused(*arguments: object, status: int = 2, **variables: str) -> str:
    """What the program says when it does not start. status: 2 where its arguments are wrong, else 1."""
    process, output = start(*arguments, **variables)
    try:
        assert process.wait(timeout=30) == status, output.read_text()
    finally:
        process.kill()
    return output.read_text()


def ask_openai(server: Served, key: str = "", checks_types: bool = True):
    """OpenAI's client of that server; what fails is not tried again.

    checks_types: an answer without a field that its type has is an error. Wrong are the types of vectors in
    base64, and of pieces of completions.
    """
    from openai import OpenAI

    options = {"base_url": server.url + "/v1", "api_key": key or server.key or "none"}
    return OpenAI(**options, max_retries=0, timeout=60, _strict_response_validation=checks_types)


@contextmanager
def endless_answer(server: Served, key: str = "", path: str = "/completion", **more: object):
    """An answer that is written as long as the block runs, and then by a client that leaves."""
    headers = {"Authorization": f"Bearer {key or server.key}"}
    body = {**ENDLESS, "stream": True, **more}
    with requests.post(server.url + path, json=body, headers=headers, stream=True, timeout=60) as response:
        assert response.status_code == 200, response.text
        yield response
