"""How applications are built: from the command line, with replicas by need, never of what is no model."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from callers import ENDLESS, MODEL, Caller, wait_until

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")

import headrace.ray


def test_serve_run_of_the_command_line_starts_it(cluster):
    import ray
    from ray import serve

    command = [
        sys.executable, "-m", "ray.serve.scripts", "run", "--non-blocking", "--name", "typed",
        "--route-prefix", "/typed", "--address", ray.get_runtime_context().gcs_address,
        "headrace.ray:app", f"model={MODEL}", "replicas=1", "cpus=0.25", "streams=2", 'config={"n_ctx": 256}',
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run(command, check=True, env=environment, timeout=240, stdin=subprocess.DEVNULL)
    try:
        caller = Caller(cluster, "/typed", None)
        wait_until(lambda: caller.send(None, "GET", "/statistics").status == 200, 120, "the application")
        assert caller.say(prompt="What is 2+3?") == "2+3=5"
        status, reply = caller.whole(prompt="word " * 300)
        assert (status, reply["error"]["code"]) == (400, "prompt_too_long")
        assert "the context holds 256" in reply["error"]["message"]
    finally:
        serve.delete("typed")


def test_a_long_queue_brings_a_second_replica(cluster):
    from ray import serve

    application = headrace.ray.application(
        MODEL, {"context_shift": True}, replicas=1, max_replicas=2, cpus=0.25, streams=1
    )
    handle = serve.run(application, name="grows", route_prefix="/grows")
    caller = Caller(cluster, "/grows", handle)
    responses = []
    try:
        assert len(caller.statistics()) == 1
        responses = [handle.options(stream=True).stream.remote({"prompt": "Tell.", "parameters": ENDLESS})]
        next(responses[0])
        time.sleep(1)
        assert len(caller.statistics()) == 1, "one request is what one replica runs"
        responses += [
            handle.options(stream=True).stream.remote({"prompt": "Tell.", "parameters": ENDLESS})
            for _ in range(3)
        ]
        wait_until(lambda: len(caller.statistics()) == 2, 180, "a second replica")
    finally:
        for response in responses:
            response.cancel()
        serve.delete("grows")


def cut(tmp_path, size):
    path = tmp_path / f"cut-{size}.gguf"
    path.write_bytes(MODEL.read_bytes()[:size])
    return path


def test_a_file_that_is_no_model_is_refused_before_it_takes_the_place_of_one(chat, tmp_path):
    from ray import serve

    with pytest.raises(FileNotFoundError, match=r"absent\.gguf does not exist on this host.*check_model"):
        serve.run(headrace.ray.application(tmp_path / "absent.gguf"), name="chat", route_prefix="/chat")
    other = tmp_path / "other.gguf"
    other.write_bytes(b"<html>")
    with pytest.raises(ValueError, match="does not start with 'GGUF'"):
        headrace.ray.app({"model": str(other)})
    whole = MODEL.stat().st_size
    for size, message in ((4, "damaged"), (30, "damaged"), (5000, "damaged"), (whole // 2, "not complete")):
        with pytest.raises(ValueError, match=message):
            headrace.ray.application(cut(tmp_path, size))
    assert chat.say(prompt="What is 2+3?") == "2+3=5", "what was served still is"
    headrace.ray.application(tmp_path / "absent.gguf", check_model=False)
    headrace.ray.app({"model": "absent.gguf", "check_model": "false"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "'model' is missing"),
        ({"model": "m", "replica": "2"}, "'replica' is not known; there are model, config"),
        ({"model": "m", "replicas": "two"}, "replicas is 'two'"),
        ({"model": "m", "config": "n_ctx=5"}, "config is 'n_ctx=5'"),
        ({"model": "m", "check_model": "maybe"}, "check_model is 'maybe': it must be true or false"),
        ({"model": "m", "replicas": "0"}, "replicas is 0; it must be 1 or more"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        headrace.ray.app(arguments)
