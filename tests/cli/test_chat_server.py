"""`headrace chat --server`: a conversation with a server that speaks OpenAI's API."""

from __future__ import annotations

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADRACE = ROOT / "build/bin/headrace"


def chat(*arguments: object, lines: str = "") -> subprocess.CompletedProcess:
    command = [HEADRACE, "chat", *map(str, arguments)]
    return subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(autouse=True, scope="module")
def language_models_are_built():
    if subprocess.run([HEADRACE, "parameters"], capture_output=True, check=False).returncode:
        pytest.skip("the program was built without language models (HEADRACE_GGML=system)")


@pytest.fixture
def server():
    """Says "Hello" to everything, and remembers what it was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, body))
            events = [{"choices": [{"delta": {"content": text}}]} for text in ("Hel", "lo")]
            data = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", asked
        http.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "end,path",
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/llm", "/llm/v1/chat/completions"),
        ("/api/openai/v1", "/api/openai/v1/chat/completions"),
    ],
)
def test_a_url_may_end_before_or_behind_the_version(server, end, path):
    url, asked = server
    done = chat("--server", url + end, "--prompt", "Hi")
    assert done.stdout.strip() == "Hello", done.stderr
    assert [where for where, _ in asked] == [path]


def test_a_model_of_the_server_may_be_named(server):
    url, asked = server
    assert chat("--server", url, "--model", "qwen3", "--prompt", "Hi").returncode == 0
    assert chat("--server", url, "--prompt", "Hi").returncode == 0
    assert [body.get("model") for _, body in asked] == ["qwen3", None]


@pytest.mark.parametrize(
    "url,says",
    [
        ("https://api.example/v1", "--to https://api.example`, and use --server http://127.0.0.1:8081/v1"),
        ("https://api.example", "--to https://api.example`, and use --server http://127.0.0.1:8081\n"),
        ("ftp://x", "must begin with http://"),
        ("http://", "names no host"),
        ("http:///v1", "names no host"),
        ("localhost:8080", "must begin with http://"),
    ],
)
def test_a_url_that_cannot_be_used_says_what_would_do(url, says):
    done = chat("--server", url, "--prompt", "Hi")
    assert done.returncode == 1 and f"'{url}'" in done.stderr and says in done.stderr


def test_lines_that_come_from_a_file_are_answered_in_turn(server):
    url, asked = server
    done = chat("--server", url, lines="Hi\nAgain\n")
    assert (done.returncode, done.stdout.split()) == (0, ["Hello", "Hello"])
    assert [message["content"] for message in asked[1][1]["messages"]] == ["Hi", "Hello", "Again"]


def test_the_status_says_that_a_line_of_a_file_had_no_answer():
    done = chat("--server", "http://127.0.0.1:9", lines="Hi\nAgain\n")
    assert done.returncode == 1
    assert done.stderr.count("Is a server there?") == 1


def test_a_line_with_a_slash_is_a_command(server):
    url, asked = server
    done = chat(
        "--server", url, "--system-prompt", "Be short.", lines="Hi\n/help\n/clear\nAgain\n/quit\nNo\n"
    )
    assert done.returncode == 0 and "/clear" in done.stdout
    texts = [[message["content"] for message in body["messages"]] for _, body in asked]
    assert texts == [["Be short.", "Hi"], ["Be short.", "Again"]]
    unknown = chat("--server", url, lines="/set temp 0\n")
    assert unknown.returncode == 1 and "there is no /set temp 0 with --server" in unknown.stderr
