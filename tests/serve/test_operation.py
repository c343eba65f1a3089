"""What operators see of a server: its log, its health, its metrics, its slots, and errors of HTTP itself."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from http_bytes import body_of, exchange, request, statuses
from serve_program import (
    ENDLESSLY,
    LLAMA_CPP,
    MODEL,
    ROOT,
    STORY,
    Served,
    endless_answer,
    free_port,
    in_tree,
    running,
    serve_arguments_are_refused,
    start,
    wait_for,
)

sys.path.insert(0, str(ROOT / "tools"))

import rpc_hosts

GREEDY = {"temperature": 0}
HELLO = [{"role": "user", "content": "What is 2+3?"}]


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny", "--metrics", "--max-body-mib", 1, "--parallel", 2)


def json_lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_log_of_json_has_nothing_else_and_all_of_a_request():
    server = Served("--log-json", "--alias", "tiny", "--prio", 2, "--rope-freq-base", -5)
    response = server.post("/v1/chat/completions", {"messages": HELLO, **GREEDY})
    story = {"prompt": STORY, "stream": True, "n_predict": 3, "ignore_eos": True}
    list(server.post("/completion", story).iter_lines())
    server.post("/v1/chat/completions", {"messages": 3})
    assert server.stop() == 0
    lines = json_lines(server.log())
    (entry,) = [line for line in lines if line.get("request_id") == response.headers["X-Request-Id"]]
    usage = response.json()["usage"]
    assert (entry["level"], entry["method"], entry["path"], entry["status"]) == (
        "info", "POST", "/v1/chat/completions", 200,
    )  # fmt: skip
    assert (entry["model"], entry["prompt_tokens"], entry["generated_tokens"]) == (
        "tiny", usage["prompt_tokens"], usage["completion_tokens"],
    )  # fmt: skip
    assert entry["ms"] >= entry["prompt_ms"] > 0 and entry["generate_ms"] >= 0 and entry["queued_ms"] >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"])
    (stream,) = [line for line in lines if line.get("path") == "/completion"]
    assert stream["generated_tokens"] == 3
    messages = [line["message"] for line in lines if "message" in line]
    for said in ("--prio has no effect", "tiny listens at http://", "stopping"):
        assert any(said in message for message in messages), messages


def test_the_log_tells_of_streams_that_had_no_end():
    server = Served("--log-json", *ENDLESSLY, "--parallel", 2)
    for left in range(1, 6):  # before its first piece, or after some
        with endless_answer(server):
            pass  # the client leaves
        wait_for(lambda left=left: server.log().count("the client went away") == left)
    with endless_answer(server) as answer:
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping" in server.log())
        server.process.send_signal(signal.SIGTERM)  # without waiting for answers
        *_, last = filter(None, answer.iter_lines())
    assert server.process.wait(timeout=60) == 0
    running.remove(server)
    said = json.loads(last.removeprefix(b"data: "))["error"]["message"]
    errors = [line["error"] for line in json_lines(server.log()) if line.get("path") == "/completion"]
    assert errors == ["the client went away"] * 5 + [said]


def test_probes_of_health_are_not_in_the_log():
    server = Served("--log-json")
    assert server.get("/health").status_code == 200
    assert server.get("/v1/models").status_code == 200
    assert server.stop() == 0
    assert [line["path"] for line in json_lines(server.log()) if "path" in line] == ["/v1/models"]


def test_a_start_that_fails_is_told_in_json_too(tmp_path):
    process, output = start(tmp_path / "none.gguf", "--log-json")
    assert process.wait(timeout=30) == 1
    (line,) = json_lines(output.read_text())
    assert line["level"] == "error" and "none.gguf" in line["message"]


def test_lines_of_text_have_the_model_and_its_tokens(serve):
    server = serve("--alias", "tiny")
    response = server.post("/v1/chat/completions", {"messages": HELLO, **GREEDY})
    (line,) = [line for line in server.log().splitlines() if response.headers["X-Request-Id"] in line]
    assert f"tiny: {response.json()['usage']['prompt_tokens']} tokens of prompt" in line


@contextmanager
def loading_server(*arguments: object):
    """One whose model lies on a machine that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = free_port()
        device = f"rpc://127.0.0.1:{silent.getsockname()[1]}"
        process, output = start(MODEL, "--port", port, "--threads", 1, "--device", device, *arguments)
        try:

            def listens() -> bool:
                with socket.socket() as probe:
                    return probe.connect_ex(("127.0.0.1", port)) == 0

            wait_for(listens, what="the server's port")
            yield process, f"http://127.0.0.1:{port}", output
        finally:
            process.kill()
            process.wait()


def test_the_log_tells_why_a_request_was_refused(serve):
    server = serve()
    assert server.post("/v1/chat/completions", {"messages": []}).status_code == 400
    (line,) = [line for line in server.log().splitlines() if " 400 " in line]
    assert '"messages is empty; it must have at least one message"' in line.replace("'", "")


@pytest.mark.parametrize(
    "flag,name,path", [("--embeddings", "vectors", "/v1/embeddings"), ("--reranking", "ranker", "/v1/rerank")]
)
def test_a_model_that_writes_nothing_is_announced_by_what_it_does(serve, models, flag, name, path):
    log = serve(flag, model=models / f"{name}.gguf").log()
    assert f"{path} -H" in log and "in a browser" not in log and "/v1/chat/completions" not in log


def test_while_the_model_is_loaded_clients_hear_when_to_come_back():
    with loading_server() as (_, url, _):
        for method, path in (("GET", "/health"), ("POST", "/v1/chat/completions"), ("POST", "/api/chat")):
            response = requests.request(method, url + path, json={}, timeout=10)
            assert response.status_code == 503 and int(response.headers["Retry-After"]) > 0, path


def test_a_stream_is_written_to_its_end_after_a_signal():
    server = Served()
    body = {"prompt": "Once", "n_predict": 300, "ignore_eos": True, "stream": True}
    with requests.post(server.url + "/completion", json=body, stream=True, timeout=60) as response:
        lines = (line for line in response.iter_lines() if line)
        next(lines)
        server.process.send_signal(signal.SIGTERM)
        assert b'"stop":true' in list(lines)[-1]
    assert server.process.wait(timeout=60) == 0
    running.remove(server)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_at_once_that_is_loading(stop):
    with loading_server() as (process, _, output):
        process.send_signal(stop)
        assert process.wait(timeout=5) == 0, output.read_text()


def test_health_tells_that_the_engine_is_lost():
    with rpc_hosts.hosts(1, in_namespaces=False) as (host,):
        host.serve()
        server = Served(
            "--rpc", host.device.removeprefix("rpc://"), "-ngl", 99, "--fit-target", 0, "--no-repack"
        )
        body = {"prompt": "1+1=", "n_predict": 1, **GREEDY}
        assert server.json("/health") == {"status": "ok"}
        assert server.json("/completion", body)["content"] == "2"
        host.fail()

        def is_failing() -> bool:
            server.post("/completion", body)
            return server.get("/health").status_code == 500

        wait_for(is_failing, what="a failing engine")
        assert "lost" in server.get("/health").json()["error"]["message"]
        server.process.kill()
        server.process.wait()
        running.remove(server)


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(server):
    """Only its head comes."""
    for path, shape in (("/v1/chat/completions", dict), ("/api/chat", str)):
        head = request("POST", path).replace(b"Content-Length: 0", b"Content-Length: 99999999")
        begin = time.monotonic()
        received = exchange(server.port, head, seconds=10)
        assert statuses(received) == [413] and time.monotonic() - begin < 5
        assert isinstance(body_of(received)["error"], shape)
    response = server.post("/tokenize", {"content": "x" * (8 << 20)})
    assert response.status_code == 413, "a client that sends it all the same hears it, too"


def test_a_method_that_a_path_does_not_take_is_answered_with_those_that_it_takes(server):
    for method, path, allowed in (
        ("GET", "/v1/chat/completions", {"POST", "OPTIONS"}),
        ("DELETE", "/props", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("PUT", "/slots/0", {"POST", "OPTIONS"}),
    ):
        response = server.ask(method, path)
        assert response.status_code == 405 and set(response.headers["Allow"].split(", ")) == allowed


def test_a_target_may_name_the_server(server):
    for target in ("http://x/health", f"http://127.0.0.1:{server.port}/v1/models?a=b"):
        received = exchange(server.port, request("GET", target, headers="Connection: close\r\n"))
        assert statuses(received) == [200], received


def test_a_file_of_a_socket_that_nobody_listens_at_is_replaced(serve, tmp_path):
    path = tmp_path / "serve.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    server = serve("--host", f"127.0.0.1,{path}")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    assert f"{path}" in server.log()


def test_every_metric_that_llama_server_documents_is_there(serve):
    readme = in_tree(LLAMA_CPP / "tools/server/README.md")
    documented = re.findall(r"^\| `(llamacpp:\w+)` \| (\w+)", readme.read_text(), re.MULTILINE)
    assert len(documented) >= 15
    server = serve("--metrics", "--spec-default")
    server.json(
        "/completion", {"prompt": "1,2,1,2,1,2,1,2,1,2,", "n_predict": 60, "ignore_eos": True, **GREEDY}
    )
    text = server.get("/metrics").text
    for name, kind in documented:
        assert f"# TYPE {name} {kind.lower()}\n" in text, name
        assert re.search(rf"^{name}(?:{{.*}})? [\d.e+]+$", text, re.MULTILINE), name


def test_llama_servers_metrics_measure_what_they_say(server):
    before = server.metrics()
    answers = [
        server.json("/completion", {"prompt": STORY, "n_predict": 20, "ignore_eos": True, "seed": i})
        for i in (1, 2)
    ]
    after = server.metrics()

    def grown(name: str) -> float:
        return after["llamacpp:" + name] - before["llamacpp:" + name]

    assert grown("tokens_predicted_total") == 40
    assert 0 < grown("prompt_seconds_total") < 20 and 0 < grown("tokens_predicted_seconds_total") < 20
    assert after["llamacpp:n_tokens_max"] >= answers[0]["tokens_evaluated"] + 19
    assert 1 <= after["llamacpp:n_busy_slots_per_decode"] <= 2
    for speed, count, seconds in (
        ("predicted_tokens_seconds", "tokens_predicted_total", "tokens_predicted_seconds_total"),
        ("prompt_tokens_seconds", "prompt_tokens_total", "prompt_seconds_total"),
    ):
        average = after["llamacpp:" + count] / after["llamacpp:" + seconds]
        assert after["llamacpp:" + speed] == pytest.approx(average, rel=0.01)


def test_metrics_of_one_name_are_of_one_model(serve, models):
    server = serve("--metrics", "--embed", models / "vectors.gguf")
    names = [line.rpartition(" ")[0] for line in server.get("/metrics").text.splitlines() if line[0] != "#"]
    assert len(names) == len(set(names))


def test_a_busy_slot_has_the_parameters_of_its_request(serve):
    server = serve(*ENDLESSLY, "--parallel", 2)
    assert all("params" not in slot for slot in server.json("/slots"))
    with endless_answer(server, top_k=7, n_predict=100_000, temperature=0.5):
        (slot,) = wait_for(lambda: [slot for slot in server.json("/slots") if slot["is_processing"]])
        params = slot["params"]
        assert (params["top_k"], params["n_predict"], params["max_tokens"]) == (7, 100_000, 100_000)
        assert params["temperature"] == pytest.approx(0.5) and params["stream"] is True
        assert {"samplers", "seed", "lora", "dry_multiplier"} <= params.keys()
        (following,) = slot["next_token"]
        assert following["n_remain"] == 100_000 - following["n_decoded"]
    wait_for(lambda: server.busy_slots() == 0)
    (slot,) = [slot for slot in server.json("/slots") if "params" in slot]
    assert slot["params"]["top_k"] == 7 and slot["next_token"][0]["has_next_token"] is False


def test_a_slot_shows_its_last_request(serve):
    server = serve("--parallel", 2)
    body = {"prompt": "Hello, who are you?", "n_predict": 3, "temperature": 0, "ignore_eos": True, "top_k": 9}
    for cached in (0, 1):
        answer = server.json("/completion", body)
        (slot,) = [slot for slot in server.json("/slots") if "params" in slot]
        assert slot["n_prompt_tokens"] == answer["tokens_evaluated"] + 3
        assert slot["n_prompt_tokens_cache"] == answer["timings"]["cache_n"]
        assert slot["n_prompt_tokens_processed"] == answer["timings"]["prompt_n"]
        assert (slot["n_prompt_tokens_cache"] > 0) == bool(cached)
        assert slot["params"]["top_k"] == 9 and slot["next_token"][0]["n_decoded"] == 3
    for wrong in ({"priority": "no such"}, {"grammar": 'root ::= "'}, {"lora": [{"id": 9, "scale": 1}]}):
        assert server.post("/completion", {"prompt": "a", **wrong}).status_code == 400
        assert not any(slot["is_processing"] for slot in server.json("/slots"))


UNIT = ROOT / "examples/systemd/headrace.service"


def test_the_unit_keeps_keys_as_credentials_and_has_a_folder_of_its_own(tmp_path):
    """What systemd would do, done by hand."""
    unit = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if re.match(r"\w+=", line))
    assert unit["LoadCredential"] == "keys:/etc/headrace/keys" and unit["StateDirectory"] == "headrace"
    (tmp_path / "keys").write_text("secret\n")
    (tmp_path / "serve.ini").write_text(f"model = {MODEL}\nport = 0\nthreads = 1\n")
    command = unit["ExecStart"].replace("${CREDENTIALS_DIRECTORY}", str(tmp_path))
    program, *arguments = command.replace("/etc/headrace", str(tmp_path)).split()
    assert Path(program).name == "headrace" and arguments[0] == "serve"
    process, output = start(*arguments[1:])
    try:
        said = wait_for(lambda: re.search(r"listens at (http://[\d.:]+)", output.read_text()), 30)
        assert requests.get(said[1] + "/props").status_code == 401
        assert requests.get(said[1] + "/props", headers={"Authorization": "Bearer secret"}).status_code == 200
        (tmp_path / "keys").write_text("another\n")
        subprocess.run(unit["ExecReload"].replace("$MAINPID", str(process.pid)).split(), check=True)
        other = {"Authorization": "Bearer another"}
        assert wait_for(lambda: requests.get(said[1] + "/props", headers=other).status_code == 200, 30)
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0


@pytest.mark.parametrize("form", [[], ["--log-json"]], ids=["text", "JSON"])
def test_a_file_has_all_lines(serve, models, tmp_path, form):
    """Beside the first model, which writes the engine's lines, a second does not take the file away."""
    file = tmp_path / "log"
    more = ["--embed", models / "vectors.gguf", "--verbosity", 4]
    server = serve(*more, "--log-file", file, *form)
    said = server.get("/v1/models").headers["X-Request-Id"]
    server.json("/v1/embeddings", {"input": "the fox"})
    lines = wait_for(
        lambda: [x for x in file.read_text().splitlines() if said in x], what="the request's line"
    )
    whole = file.read_text().splitlines()
    assert len(lines) == 1 and any("listens at" in line for line in whole)
    assert any("llama" in line for line in whole) and "llama" not in server.log()
    if form:
        assert all(json.loads(line)["time"] for line in whole)
    else:
        assert all(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z (info |warn |error|debug) ", line) for line in whole)


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    said = serve_arguments_are_refused(MODEL, "--log-file", tmp_path / "none" / "log")
    assert "--log-file" in said and "No such file" in said
