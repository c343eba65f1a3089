"""Clients that leave free what they held within a second; a server that is told to stop lets answers end."""

from __future__ import annotations

import json
import random
import signal
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from http_bytes import request
from serve_program import (
    ENDLESS,
    ENDLESSLY,
    MODEL,
    Served,
    endless_answer,
    free_port,
    running,
    start,
    wait_for,
)

SECOND = 1.0
HELLO = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def server(serve):
    """One request at a time, and a context that takes seconds to fill."""
    return serve(*ENDLESSLY, "--parallel", 1, "--ctx-size", 16384, "--batch-size", 64, "--metrics")


def leave(server: Served, path: str, body: dict, after: float) -> None:
    """Sends a request and closes the socket."""
    data = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(request("POST", path, data))
        time.sleep(after)


def is_idle(server: Served) -> bool:
    return server.busy_slots() == 0 and server.count("headrace_requests_running") == 0


def test_a_client_that_leaves_its_stream_frees_the_slot(server):
    with endless_answer(server):
        wait_for(lambda: server.busy_slots() == 1)
    wait_for(lambda: is_idle(server), SECOND)


@pytest.mark.parametrize(
    "path,body",
    [
        ("/completion", ENDLESS),
        ("/v1/completions", {**ENDLESS, "max_tokens": 1_000_000, "n": 2}),
        ("/v1/chat/completions", {"messages": HELLO, "ignore_eos": True}),
        (
            "/v1/messages",
            {"model": "a", "messages": HELLO, "ignore_eos": True, "max_tokens": 10**6},
        ),
        ("/v1/responses", {"input": "Hi", "ignore_eos": True}),
        ("/api/generate", {"model": MODEL.name, "prompt": "Hi", "options": {"ignore_eos": True}}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_client_that_leaves_any_api_frees_the_slot(server, path, body, streams):
    before = server.count("headrace_requests_cancelled_total")
    leave(server, path, {**body, "stream": streams}, after=0.15)
    wait_for(lambda: is_idle(server), SECOND, f"{path} to be left")
    assert server.count("headrace_requests_cancelled_total") > before


def test_a_client_that_leaves_while_its_prompt_is_read_frees_the_slot(server):
    prompt = {"prompt": "a fox " * 1000, "n_predict": 4}
    before = server.count("headrace_requests_cancelled_total")
    start_of_all = time.monotonic()
    leave(server, "/completion", prompt, after=0.3)
    wait_for(lambda: is_idle(server), SECOND)
    left = time.monotonic() - start_of_all
    assert server.count("headrace_requests_cancelled_total") == before + 1
    whole = server.json("/completion", {**prompt, "cache_prompt": False})
    assert whole["timings"]["prompt_ms"] / 1000 > left, "it would have taken longer"


def test_a_client_that_leaves_while_its_prompt_is_read_is_counted_and_logged_once(server):
    def counted() -> dict[str, float]:
        return {name: count for name, count in server.metrics().items() if 'route="/completion"' in name}

    before, lines = counted(), server.log().count("the client went away")
    leaver = threading.Thread(
        target=leave, args=(server, "/completion", {"prompt": "a bear " * 1000, "n_predict": 1}, 0.3)
    )
    leaver.start()
    wait_for(lambda: server.count("headrace_requests_running") == 1, what="the prompt to be read")
    leaver.join()
    wait_for(lambda: is_idle(server) and counted() != before)
    after = counted()
    changed = {name: after[name] - before.get(name, 0) for name in after}
    (name,) = (name for name, count in changed.items() if count)
    assert changed[name] == 1 and 'status="499"' in name
    assert server.json("/health") == {"status": "ok"}
    assert server.log().count("the client went away") == lines + 1


def test_a_client_that_leaves_the_queue_leaves_nothing_in_it(server):
    with endless_answer(server) as first:
        wait_for(lambda: server.busy_slots() == 1)
        for streams in (False, True):
            leaver = threading.Thread(
                target=leave, args=(server, "/completion", {**ENDLESS, "stream": streams}, 0.3)
            )
            leaver.start()
            wait_for(lambda: server.count("headrace_requests_waiting") == 1)
            leaver.join()
            wait_for(lambda: server.count("headrace_requests_waiting") == 0, SECOND)
        assert next(first.iter_lines()), "the first goes on"
    wait_for(lambda: is_idle(server), SECOND)


def test_clients_that_come_and_leave_at_random_mix_no_answers(serve):
    server = serve("--parallel", 4, "--metrics")
    sums = {f"What is {a}+{b}?": f"{a}+{b}={a + b}" for a in range(1, 6) for b in range(1, 6)}
    chance = random.Random(5)
    wrong = []

    def ask(question: str, leaves: bool, wait: float) -> None:
        body = {"messages": [{"role": "user", "content": question}], "temperature": 0}
        if leaves:
            leave(server, "/v1/chat/completions", {**body, "stream": wait > 0.01}, wait)
            return
        answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60).json()
        if (said := answer["choices"][0]["message"]["content"]) != alone[question]:
            wrong.append((question, said))

    alone = {}
    for question in sums:
        body = {"messages": [{"role": "user", "content": question}], "temperature": 0}
        alone[question] = server.json("/v1/chat/completions", body)["choices"][0]["message"]["content"]
    assert sum(alone[question] == answer for question, answer in sums.items()) > len(sums) * 0.8
    asking = [
        threading.Thread(
            target=ask, args=(chance.choice(list(sums)), chance.random() < 0.5, chance.random() * 0.02)
        )
        for _ in range(150)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert wrong == []
    wait_for(lambda: is_idle(server), SECOND)


def test_an_answer_that_is_written_ends_before_the_server_does():
    server = Served(*ENDLESSLY)
    with endless_answer(server, n_predict=2500) as response:
        lines = response.iter_lines()
        first = next(lines)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping" in server.log(), 5)
        events = [json.loads(line[6:]) for line in [first, *lines] if line.startswith(b"data: ")]
    assert events[-1]["stop"] and events[-1]["tokens_predicted"] == 2500
    assert server.process.wait(timeout=10) == 0
    running.remove(server)
    with pytest.raises(requests.ConnectionError):
        requests.get(server.url + "/health", timeout=5)


def test_a_second_signal_ends_an_endless_answer_with_an_error_in_its_stream():
    server = Served(*ENDLESSLY)
    with endless_answer(server) as response:
        lines = response.iter_lines()
        next(lines)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping" in server.log(), 5)
        server.process.send_signal(signal.SIGTERM)
        rest = [line for line in lines if line]
    assert server.process.wait(timeout=10) == 0
    running.remove(server)
    assert b'"error"' in rest[-1]


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_stops_at_once_with_0(stop):
    server = Served()
    server.process.send_signal(stop)
    assert server.process.wait(timeout=5) == 0
    running.remove(server)


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /completion HTTP/1.1\r\nHost: loc",
        b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["headers", "body"],
)
def test_half_of_a_request_does_not_keep_a_server_from_its_end(sent):
    server = Served()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(sent)
        assert server.json("/health") == {"status": "ok"}, "it has come"
        assert server.stop() == 0
        assert client.recv(1) == b""


def test_an_answer_that_nobody_reads_does_not_keep_a_server_from_its_end():
    server = Served("--ctx-size", 4096)
    body = json.dumps({**ENDLESS, "n_predict": 3500, "n_probs": 50, "stream": True}).encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(
            b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        wait_for(lambda: server.busy_slots() == 1, what="the answer to begin")
        server.process.send_signal(signal.SIGTERM)
        time.sleep(SECOND)
        assert server.stop() == 0, "the second signal ends it"


def test_health_tells_loading_from_ready(models):
    """The socket is there before the model, for a moment: a few starts may be needed to see that."""
    seen = set()
    for _ in range(5):
        port = free_port()
        process, output = start(MODEL, "--port", port, "--threads", 1)
        try:
            end = time.monotonic() + 30
            while time.monotonic() < end and 200 not in seen:
                try:
                    health = requests.get(f"http://127.0.0.1:{port}/health", timeout=5)
                except requests.ConnectionError:
                    continue
                seen.add(health.status_code)
                if health.status_code == 503:
                    assert health.json()["error"]["message"] == "Loading model"
                else:
                    assert health.json() == {"status": "ok"}
        finally:
            process.terminate()
            assert process.wait(timeout=20) == 0, output.read_text()
        if seen == {200, 503}:
            return
        seen.discard(200)
    pytest.skip("the model was loaded before the first request each time")


def test_a_model_that_cannot_be_loaded_ends_the_program_with_an_error(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(100))
    for path in (tmp_path / "broken.gguf", tmp_path / "missing.gguf"):
        process, output = start(path, "--port", 0)
        assert process.wait(timeout=30) == 1
        assert path.name in output.read_text()


def test_streams_that_nobody_began_to_read_are_counted_and_ended(server):
    """Else the server would take itself for busy for ever, and give no memory back."""
    generator = random.Random(5)
    data = request("POST", "/completion", json.dumps({**ENDLESS, "stream": True}).encode())

    def counts() -> tuple[float, float]:
        metrics = server.metrics()
        ended = [value for name, value in metrics.items() if 'route="/completion"' in name]
        begun = [value for name, value in metrics.items() if name.startswith("headrace_requests_total")]
        return sum(begun), sum(ended)

    def come_and_go(_: int) -> None:
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                # Closed by a reset: not even the response's head can be written then.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(data)
                time.sleep(generator.uniform(0, 0.05))

    before = counts()
    with ThreadPoolExecutor(40) as pool:
        list(pool.map(come_and_go, range(40)))
    wait_for(lambda: is_idle(server), what="idle slots")

    def are_ended() -> bool:
        # A request is counted a moment after its slot is free.
        begun, ended = (after - earlier for after, earlier in zip(counts(), before, strict=True))
        return ended >= begun > 0

    wait_for(are_ended, what="all requests that began to be counted as ended")
