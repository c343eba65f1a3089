"""Options of `headrace serve`: llama-server's names, from arguments, the environment and a file."""

from __future__ import annotations

import json
import socket

import pytest
import requests
from serve_program import MODEL, STORY, free_port, serve_arguments_are_refused


@pytest.mark.parametrize(
    "flag,says",
    [
        ("--paralel", "did you mean '--parallel'"),
        ("--ctx_sise", "did you mean '--ctx-size'"),
        ("--frobnicate", "--help lists them"),
        ("--hf-repo", "downloads nothing"),
        ("--mmproj-url", "downloads nothing"),
        ("--ssl-key-file", "proxy"),
    ],
)
def test_a_flag_that_is_not_taken_says_why(flag, says):
    said = serve_arguments_are_refused(MODEL, flag, "x")
    assert flag.replace("_", "-") in said and says in said


WRONG = [
    ["--port", "x"],
    ["--port", "70000"],
    ["--parallel", "0"],
    ["--temp"],
    ["--temp", "hot"],
    ["--slot-save-path", "/no/such/folder"],
    ["--api-key-file", "/no/such/file"],
    ["--api-key", ""],
    ["--api-key", ","],
    ["--timeout", "0"],
    ["--metrics=1"],
    ["stray"],
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_value_is_refused_with_its_name(arguments):
    name = arguments[0].partition("=")[0].lstrip("-")
    assert name in serve_arguments_are_refused(MODEL, *arguments)


@pytest.mark.parametrize(
    "host,says", [("no host", "'no host' is no address: "), ("192.0.2.1", "is no address of this machine")]
)
def test_a_host_that_is_not_this_machines_is_told_apart_from_a_port_that_is_taken(host, says):
    said = serve_arguments_are_refused(MODEL, "--host", host, status=1)
    assert says in said and "--port" not in said


def test_an_option_is_no_value_of_the_one_before_it():
    said = serve_arguments_are_refused(MODEL, "-fa", "--port", 0)
    assert "-fa needs a value" in said and "not the option --port" in said


def test_a_second_model_is_told_how_several_are_served():
    assert "--models-dir FOLDER" in serve_arguments_are_refused(MODEL, "other.gguf")


def test_a_value_that_the_engine_refuses_is_named():
    assert "pooling" in serve_arguments_are_refused(MODEL, "--pooling", "sum", status=1)


def test_no_model_is_an_error_that_says_how_to_name_one():
    assert "headrace serve model.gguf" in serve_arguments_are_refused("--port", 0)


def settings_of(server) -> dict:
    return server.json("/props")["default_generation_settings"]["params"]


def test_arguments_come_before_the_environment_and_that_before_a_file(serve, tmp_path):
    (tmp_path / "serve.ini").write_text(
        "# the operator's\ntemp = 0.1\ntop-k = 11\nn-predict = 3\nalias = from-file\nslots = off\n"
    )
    variables = {"LLAMA_ARG_TOP_K": "22", "LLAMA_ARG_N_PREDICT": "4"}
    server = serve("--config", tmp_path / "serve.ini", "--n-predict", 5, **variables)
    settings = settings_of(server)
    assert (settings["temperature"], settings["top_k"], settings["n_predict"]) == (pytest.approx(0.1), 22, 5)
    assert server.json("/v1/models")["data"][0]["id"] == "from-file"
    assert server.get("/slots").status_code == 501
    assert server.json("/completion", {"prompt": STORY, "ignore_eos": True})["tokens_predicted"] == 5


def test_a_wrong_line_of_the_file_is_named(tmp_path):
    (tmp_path / "serve.ini").write_text("temp = 0.1\nparalel = 3\n")
    said = serve_arguments_are_refused(MODEL, "--config", tmp_path / "serve.ini")
    assert "serve.ini, line 2" in said and "did you mean '--parallel'" in said


@pytest.mark.parametrize(
    "order", [["--kv-unified", "--parallel", 4], ["--parallel", 4, "--kv-unified"]], ids=str
)
def test_one_request_may_have_the_whole_context_wherever_that_is_said(serve, order):
    server = serve(*order, "--ctx-size", 256)
    answer = server.json("/completion", {"prompt": "x", "n_predict": 150, "ignore_eos": True})
    assert answer["tokens_predicted"] == 150


def test_requests_share_the_context_where_their_number_is_named(serve):
    server = serve("--parallel", 4, "--ctx-size", 256)
    assert server.json("/props")["default_generation_settings"]["n_ctx"] == 64
    assert server.post("/completion", {"prompt": "x " * 100}).status_code == 400


def test_it_listens_at_a_socket_file_and_at_several_addresses(serve, tmp_path):
    server = serve("--host", f"127.0.0.1,{tmp_path}/serve.sock")
    assert f"{tmp_path}/serve.sock" in server.log()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{tmp_path}/serve.sock")
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = b""
        while piece := client.recv(4096):
            received += piece
    assert b'{"status":"ok"}' in received


def test_a_port_in_use_is_an_error_that_names_it(serve):
    server = serve()
    assert str(server.port) in serve_arguments_are_refused(MODEL, "--port", server.port, status=1)


def test_keys_may_stand_in_a_file(serve, tmp_path):
    (tmp_path / "keys").write_text("# of the team\nfirst\r\n\nsecond\n")
    server = serve("--api-key-file", tmp_path / "keys", port=free_port())
    statuses = [
        requests.get(server.url + "/props", headers={"Authorization": f"Bearer {key}"}).status_code
        for key in ("first", "second", "# of the team", "")
    ]
    assert statuses == [200, 200, 401, 401]


def test_the_log_is_lines_or_json_objects_with_the_requests_ids(serve):
    server = serve("--log-json")
    response = server.get("/v1/models")
    lines = [line for line in server.log().splitlines() if response.headers["X-Request-Id"] in line]
    (entry,) = [json.loads(line) for line in lines]
    assert (entry["method"], entry["path"], entry["status"]) == ("GET", "/v1/models", 200)
