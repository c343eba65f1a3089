"""Clients that send what no client should: each gets the API's error, and the next request its answer."""

from __future__ import annotations

import json
import socket
import threading
import time

import http_bytes
import pytest
from http_bytes import exchange, request, statuses
from serve_program import MODEL, Served, wait_for
from wrong_values import BODIES, HELLO, is_error_of

OK = request("GET", "/health")
LAST = request("GET", "/nothing", headers="Connection: close\r\n")


@pytest.fixture(scope="module")
def server(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("slots")
    return serve("--alias", "tiny", "--parallel", 2, "--metrics", "--slot-save-path", folder, "--timeout", 2)


@pytest.fixture(autouse=True)
def the_server_answers_the_next_request(request):
    yield
    if "server" not in request.fixturenames:
        return
    server: Served = request.getfixturevalue("server")
    assert server.process.poll() is None, server.log()[-4000:]
    body = {"messages": [{"role": "user", "content": "What is 2+3?"}], "temperature": 0}
    assert server.json("/v1/chat/completions", body)["choices"][0]["message"]["content"] == "2+3=5"


def assert_error(path: str, response, *statuses: int, names: str = "") -> None:
    assert response.status_code in statuses, (response.status_code, response.text[:500])
    assert is_error_of(path, response.json()), response.text
    assert response.headers["Content-Type"].startswith("application/json")
    assert names in response.text
    assert str(MODEL.parent) not in response.text and "/tmp/" not in response.text


@pytest.mark.parametrize("path", BODIES)
def test_the_table_begins_with_what_is_right(server, path):
    assert server.post(path, BODIES[path][0]).status_code == 200


@pytest.mark.parametrize(
    "path,field", [(path, field) for path, (_, fields) in BODIES.items() for field in fields]
)
def test_a_value_of_a_wrong_type_is_refused_by_name(server, path, field):
    right, fields = BODIES[path]
    taken = []
    for value in fields[field]:
        response = server.post(path, {**right, field: value})
        if response.status_code == 200:
            taken.append(value)
        else:
            assert_error(path, response, 400, 404 if field == "model" else 400, names=field)
    assert taken == []


@pytest.mark.parametrize("path", BODIES)
def test_a_body_without_what_is_required_is_refused(server, path):
    response = server.post(path, {})
    if response.status_code != 200:  # nothing to tokenize, say, is something
        assert_error(path, response, 400, 404)


GARBAGE = {
    "nothing": b"",
    "no JSON": b"hello",
    "half of it": b'{"messages": [{"role": "us',
    "a list": b"[1, 2]",
    "a number": b"3",
    "null": b"null",
    "two objects": b"{}{}",
    "a comment": b'{"a": 1} // x',
    "NaN": b'{"temperature": NaN, "prompt": "x"}',
    "a huge number": b'{"n_predict": 1e999, "max_tokens": 1e999, "prompt": "x"}',
    "a long number": b'{"seed": ' + b"9" * 400 + b', "prompt": "x", "messages": 3}',
    "lists 10,000 deep": b'{"messages": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "objects 10,000 deep": b'{"messages": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}",
    "10,000 open lists": b"[" * 10_000,
    "invalid UTF-8": b'{"messages": [{"role": "user", "content": "\xff\xfe"}], "prompt": "\xff\xc3("}',
    "an overlong slash": b'{"prompt": "\xc0\xaf", "content": "\xc0\xaf"}',
    "a lone surrogate": b'{"prompt": "\\ud800", "messages": "\\ud800", "input": "\\udfff"}',
    "bytes": bytes(range(256)) * 8,
    "a BOM in UTF-16": '{"prompt": "x"}'.encode("utf-16"),
}


@pytest.mark.parametrize("path", [*BODIES, "/v1/embeddings", "/infill", "/v1/rerank", "/lora-adapters"])
@pytest.mark.parametrize("kind", GARBAGE)
def test_a_body_that_is_no_request_is_refused(server, path, kind):
    response = server.ask("POST", path, data=GARBAGE[kind], headers={"Content-Type": "application/json"})
    if path in ("/tokenize", "/detokenize", "/apply-template") and response.status_code == 200:
        return  # fields that it has none of
    assert_error(path, response, 400, 404, 501)


def test_texts_with_nulls_and_control_characters_are_texts(server):
    text = "a\0b\x01\x7f\u2028\ufeff"
    tokens = server.tokens(text)
    assert server.json("/detokenize", {"tokens": tokens})["content"] == text
    assert server.post("/completion", {"prompt": text, "n_predict": 1}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/completion", "/tokenize"])
def test_a_body_of_8_mib_is_read_and_answered(server, path):
    large = "a " * (4 << 20)
    body = {"/completion": {"prompt": large}, "/tokenize": {"content": large}}.get(
        path,
        {"model": "tiny", "messages": [{"role": "user", "content": large}], "max_tokens": 1, "stream": False},
    )
    begin = time.monotonic()
    response = server.ask("POST", path, data=json.dumps(body), headers={"Content-Type": "application/json"})
    assert time.monotonic() - begin < 20
    if path == "/tokenize":
        assert len(response.json()["tokens"]) > 1 << 20
    elif path != "/api/chat" or response.status_code != 200:  # Ollama drops what does not fit
        assert_error(path, response, 400)


def test_many_large_fields_and_names_are_refused_or_ignored(server):
    body = {f"field{i}": "x" * 100 for i in range(10_000)} | {
        "prompt": "1+1=",
        "n_predict": 1,
        "x" * 100_000: 1,
    }
    assert server.post("/completion", body).status_code in (200, 400)


def test_chunked_bodies_are_read(server):
    def chunks():
        yield from (b'{"prompt": "1+', b'1=", "temperature": 0,', b' "n_predict": 1}')

    response = server.ask("POST", "/completion", data=chunks(), headers={"Content-Type": "application/json"})
    assert response.json()["content"] == "2"


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
        b"POST /completion HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /completion HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
        b"POST /completion HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{    }",
        b"POST /completion HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /completion HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
        b"POST /completion HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
        b"POST /completion HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        bytes(range(256)) * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    ],
    ids=lambda data: repr(data[:45]),
)
def test_bytes_that_are_no_request_of_http_are_refused_or_dropped(server, data):
    received = exchange(server.port, data, closes=True)
    assert all(400 <= status < 600 for status in statuses(received)) or b"HTTP/9.9" in data
    assert str(MODEL.parent).encode() not in received


def test_a_refused_connection_is_told_so_once(server):
    received = exchange(server.port, request("BREW", "/health"), seconds=1)
    assert statuses(received) == [400] and received.lower().count(b"connection: close") == 1


def test_half_a_request_is_given_up_after_the_timeout(server):
    whole = request("POST", "/completion", b'{"prompt": "1+1="}')
    clients = []
    for end in (1, 20, len(whole) - 5):
        clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=10))
        clients[-1].sendall(whole[:end])
    assert server.json("/health") == {"status": "ok"}, "others are served meanwhile"
    begin = time.monotonic()
    for client in clients:
        while client.recv(4096):
            pass
        client.close()
    assert time.monotonic() - begin < 9


def test_a_client_that_sends_byte_by_byte_is_served(server):
    data = request(
        "POST",
        "/completion",
        b'{"prompt": "1+1=", "n_predict": 1, "temperature": 0}',
        "Connection: close\r\n",
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(data)):
            client.sendall(data[i : i + 1])
        received = b""
        while piece := client.recv(4096):
            received += piece
    assert http_bytes.body_of(received)["content"] == "2"


def test_a_slow_reader_does_not_hold_others_up(serve):
    server = serve("--parallel", 2, "--context-shift", "--timeout", 2)
    body = json.dumps(
        {"prompt": "x", "n_predict": -1, "ignore_eos": True, "stream": True, "n_probs": 20}
    ).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(request("POST", "/completion", body))
        slow.recv(100)
        begin = time.monotonic()
        for _ in range(20):
            assert server.post("/completion", {"prompt": "1+1=", "n_predict": 4}).status_code == 200
        assert time.monotonic() - begin < 5
        wait_for(lambda: server.busy_slots() == 0, 15, "the reader to be given up")


def test_requests_in_a_pipeline_are_answered_in_their_order_or_not_at_all(server):
    """cpp-httplib drops what came with an earlier request."""
    bodies = [{"prompt": "1+1=", "n_predict": 1}, {"prompt": 3}, {"prompt": "1+1=", "n_predict": 1}]
    data = b"".join(request("POST", "/completion", json.dumps(body).encode()) for body in bodies)
    received = statuses(exchange(server.port, data + OK + LAST, seconds=3))
    assert received and received == [200, 400, 200, 200, 404][: len(received)]


def test_a_connection_serves_many_requests_one_after_the_other(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        for _ in range(300):
            client.sendall(OK)
            received = b""
            while b'"ok"}' not in received:
                piece = client.recv(4096)
                assert piece, "the connection was closed"
                received += piece


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_method_that_a_path_does_not_take_is_405(server, method):
    assert_error("/v1/models", server.ask(method, "/v1/models"), 405)
    assert_error("/v1/messages", server.ask(method, "/v1/messages"), 405)
    assert_error("/v1/nothing", server.ask(method, "/v1/nothing"), 404)


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "BREW", "get", "GETGETGETGETGET", "PRI"])
def test_an_unknown_method_is_refused(server, method):
    received = exchange(server.port, request(method, "/health"), closes=True)
    assert all(status >= 400 for status in statuses(received))


def test_head_has_the_headers_of_get_and_no_body(server):
    response = server.ask("HEAD", "/health")
    assert response.status_code == 200 and response.content == b""
    assert server.ask("HEAD", "/v1/models").status_code == 200
    assert server.ask("HEAD", "/nothing").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/..%2f..%2fetc/passwd", "/v1/models/../../etc/passwd", "/%00", "/slots/../props",
     "//health", "/v1/models/%2e%2e", "/slots/-1?action=save", "/slots/99999999999999999999?action=save",
     "/?" + "a=b&" * 2000, "/%zz", "/\u00e9"],
)  # fmt: skip
def test_paths_lead_to_no_file(server, path):
    received = exchange(server.port, request("GET", path, headers="Connection: close\r\n"))
    assert b"root:" not in received and str(MODEL.parent).encode() not in received
    assert server.post("/slots/0?action=restore", {"filename": f"..{path}"}).status_code == 400


def test_browsers_of_other_origins_get_no_permission_unless_asked_for(server, serve):
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for method, path in (("OPTIONS", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/")):
        response = server.ask(method, path, headers=origin)
        assert not [name for name in response.headers if name.lower().startswith("access-control")]
    open_to_one = serve("--cors-origins", "https://good.example,localhost")
    allowed = {
        origin: open_to_one.ask("OPTIONS", "/v1/models", headers={"Origin": origin}).headers.get(
            "Access-Control-Allow-Origin"
        )
        for origin in ("https://good.example", "http://localhost:3000", "http://127.0.0.1:80", "https://evil.example",
                       "https://good.example.evil.example", "http://localhost.evil.example", "null")
    }  # fmt: skip
    assert [origin for origin, answer in allowed.items() if answer] == list(allowed)[:3]
    assert all(answer in (None, origin) for origin, answer in allowed.items())


def test_pages_of_other_origins_cannot_send_what_browsers_do_not_ask_about_first(server):
    body = json.dumps({"prompt": "a", "n_predict": 1})
    for path in ("/completion", "/v1/chat/completions", "/lora-adapters", "/slots/0?action=erase"):
        headers = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
        assert server.ask("POST", path, data=body, headers=headers).status_code == 403, path
    own = {"Origin": server.url, "Content-Type": "text/plain"}
    assert server.ask("POST", "/completion", data=body, headers=own).status_code == 200


def test_every_response_has_an_id_and_no_two_the_same(server):
    ids = [server.get(path).headers["X-Request-Id"] for path in ("/health", "/nothing", "/v1/models") * 3]
    assert len(set(ids)) == len(ids)


def test_the_log_has_no_line_that_a_client_wrote(server):
    exchange(server.port, request("GET", "/x%0d%0aforged GET /admin 200"), closes=True)
    exchange(server.port, request("GET", "/x\x1b[31mred"), closes=True)
    wait_for(lambda: "red" in server.log() or "[31m" in server.log())
    assert not any(line.startswith("forged") for line in server.log().splitlines())
    assert "\x1b" not in server.log()


def test_300_connections_that_say_nothing_keep_no_one_out(server):
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(300)]
    assert server.json("/completion", {"prompt": "1+1=", "n_predict": 1, "temperature": 0})["content"] == "2"
    for client in idle:
        client.close()


def test_more_connections_than_are_served_get_503(serve):
    server = serve("--max-connections", 2)
    held = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(2)]
    for client in held:
        client.sendall(OK)
        assert b" 200 " in client.recv(4096)
    received = exchange(
        server.port, request("POST", "/v1/completions", json.dumps({"prompt": "x"}).encode()), 5
    )
    assert statuses(received) == [503] and b"Retry-After" in received
    for client in held:
        client.close()
    wait_for(
        lambda: (
            statuses(exchange(server.port, request("GET", "/health", headers="Connection: close\r\n")))
            == [200]
        )
    )


def test_wrong_requests_at_once_disturb_no_right_one(server):
    answers = []

    def ask_wrongly():
        for body in (b"{", b"[" * 5000, b'{"prompt": 3}', b"\xff"):
            exchange(server.port, request("POST", "/completion", body, "Connection: close\r\n"))

    def ask():
        body = json.dumps({"messages": HELLO, "temperature": 0}).encode()
        received = exchange(
            server.port, request("POST", "/v1/chat/completions", body, "Connection: close\r\n")
        )
        answers.append(http_bytes.body_of(received)["choices"][0]["message"]["content"])

    threads = [threading.Thread(target=target) for target in [ask_wrongly, ask] * 15]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 15 and len(set(answers)) == 1
