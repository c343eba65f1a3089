"""What a connection is after an answer, and by which names a server of this machine may be called."""

from __future__ import annotations

import http.client
import json
import socket

import pytest
from http_bytes import exchange, request, statuses
from serve_program import wait_for
from wrong_values import is_error_of

SHORT = {"prompt": "1+1=", "n_predict": 3, "temperature": 0, "ignore_eos": True}
#: Is read for more than a second.
LONG = {"prompt": "a fox " * 3000, "n_predict": 3, "temperature": 0, "ignore_eos": True}
EVIL = "evil.example:8080"


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny")


@pytest.fixture(scope="module")
def busy(serve):
    """A prompt may be long, and takes its time."""
    return serve("--ctx-size", 16384, "--batch-size", 64, "--ubatch-size", 64, "--metrics", "--context-shift")


def until_it_closes(port: int, data: bytes) -> bytes:
    """Raises TimeoutError where the connection is kept, as those that rest are."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(data)
        received = b""
        while piece := client.recv(1 << 16):
            received += piece
        return received


@pytest.mark.parametrize("header", ["", "Connection: keep-alive\r\n"], ids=["closing", "keeping"])
def test_a_client_of_http_1_0_gets_its_stream_without_chunks(server, header):
    data = request("POST", "/completion", json.dumps({**SHORT, "stream": True}).encode(), header)
    received = until_it_closes(server.port, data.replace(b"HTTP/1.1", b"HTTP/1.0"))
    head, _, body = received.lower().partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head and head.count(b"connection: close") == 1
    events = [json.loads(line[6:]) for line in body.splitlines() if line]
    assert events[-1]["stop"] and len(events) > 1


def final_of(received: bytes) -> tuple[bytes, bytes]:
    """Head and body of the response behind the interim ones."""
    while received.startswith(b"HTTP/1.1 100 "):
        received = received.partition(b"\r\n\r\n")[2]
    head, _, body = received.partition(b"\r\n\r\n")
    return head, body


@pytest.mark.parametrize("slow", [False, True], ids=["at once", "after a second"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_client_that_closes_its_end_gets_its_answer(server, busy, slow, streams):
    asked, body = (busy, {**LONG, "cache_prompt": False}) if slow else (server, SHORT)
    data = request("POST", "/completion", json.dumps({**body, "stream": streams}).encode())
    head, answer = final_of(exchange(asked.port, data, seconds=60, closes=True))
    assert head.startswith(b"HTTP/1.1 200 "), head
    if streams:
        lines = [line for line in answer.splitlines() if line.startswith(b"data: ")]
        assert json.loads(lines[-1][6:])["stop"]
    else:
        assert json.loads(answer)["tokens_predicted"] == 3


def test_pythons_client_may_close_its_end(busy):
    connection = http.client.HTTPConnection("127.0.0.1", busy.port, timeout=60)
    body = json.dumps({**LONG, "cache_prompt": False})
    connection.request("POST", "/completion", body, {"Content-Type": "application/json"})
    connection.sock.shutdown(socket.SHUT_WR)
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)["tokens_predicted"]) == (200, 3)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_client_that_leaves_behind_its_closed_end_is_noticed(busy, streams):
    body = {**LONG, "ignore_eos": True, "n_predict": -1, "stream": streams, "cache_prompt": False}
    before = busy.count("headrace_requests_cancelled_total")
    with socket.create_connection(("127.0.0.1", busy.port)) as client:
        client.sendall(request("POST", "/completion", json.dumps(body).encode()))
        client.shutdown(socket.SHUT_WR)
        wait_for(lambda: busy.busy_slots() == 1)
    wait_for(lambda: busy.busy_slots() == 0, 2.0, "the slot to be free")
    wait_for(lambda: busy.count("headrace_requests_cancelled_total") == before + 1)


def test_requests_that_come_at_once_are_answered_one_after_the_other(server):
    data = request("GET", "/health") * 3
    assert statuses(exchange(server.port, data, closes=True)) == [200] * 3


@pytest.mark.parametrize("path", ["/nothing", "/v1/chat/completions"])
def test_after_an_error_the_connection_takes_the_next_request(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("POST", path, b"{}", {"Content-Type": "application/json"})
    first = connection.getresponse()
    assert first.status >= 400 and first.read()
    assert first.getheader("Connection") is None
    own = connection.sock
    connection.request("GET", "/health")
    assert connection.getresponse().read() == b'{"status":"ok"}' and connection.sock is own
    connection.close()


@pytest.mark.parametrize(
    "data",
    [
        request("BREW", "/health"),
        b"GET /health HTTP/1.1\r\nno header\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        request("GET", "/nothing", headers="Connection: close\r\n"),
        request("POST", "/completion").replace(b"Length: 0", b"Length: 99999999"),
    ],
    ids=["an unknown method", "no header", "by the client's wish", "a large body"],
)
def test_an_error_that_ends_the_connection_ends_it_at_once(server, data):
    received = until_it_closes(server.port, data)
    assert len(statuses(received)) == 1 and received.lower().count(b"connection: close") == 1
    assert is_error_of("/completion", json.loads(received.partition(b"\r\n\r\n")[2]))


@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/messages", "/api/tags", "/health", "/", "/slots", "/completion"]
)
def test_a_page_that_calls_this_machine_by_its_own_name_is_refused(server, path):
    """Its name server has led the browser here: origin and host are the same then."""
    for method in ("GET", "POST", "OPTIONS"):
        headers = {"Host": EVIL, "Origin": f"http://{EVIL}"}
        answer = server.ask(method, path, json=SHORT if method == "POST" else None, headers=headers)
        assert answer.status_code == 403 and "--allowed-hosts" in answer.text and EVIL in answer.text
        assert is_error_of(path, answer.json())


def test_names_of_this_machine_and_those_that_are_allowed_are_taken(server, serve):
    assert statuses(exchange(server.port, b"GET /health HTTP/1.0\r\n\r\n", closes=True)) == [200]
    named = serve("--allowed-hosts", "llm.example,box")
    for name in ("localhost", "LOCALHOST:1", "127.0.0.1", "127.0.1.1:80", "[::1]:80", "app.localhost"):
        for asked in (server, named):
            assert asked.get("/v1/models", headers={"Host": name}).status_code == 200, name
    for name, status in {"llm.example": 200, "box:80": 200, "llm.example.evil": 403, EVIL: 403}.items():
        assert named.get("/v1/models", headers={"Host": name}).status_code == status, name


@pytest.mark.parametrize("arguments", [{"key": "secret"}, {"host": "0.0.0.0"}], ids=["a key", "any address"])
def test_a_server_that_asks_for_keys_or_that_others_reach_has_any_name(serve, arguments):
    key, host = arguments.get("key", ""), arguments.get("host", "127.0.0.1")
    server = serve("--host", host, key=key)
    assert server.get("/v1/models", headers={"Host": EVIL}).status_code == 200
