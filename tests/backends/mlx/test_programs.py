"""Unmodified programs of llama.cpp with the library in GGML_BACKEND_PATH."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import gguf
import numpy as np
import pytest
from mlx_models import png, write_f32_copy, write_image_encoder, write_q4_0_model
from mlx_programs import ROOT, program, run

CHAT_MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
EVERYTHING = ["-ngl", "99", "-ot", "token_embd=MLX0"]


def test_llama_bench_computes_all_of_a_model_on_the_device(peers, library, small_model):
    command = [peers / "llama-bench", "-m", small_model, "-p", "32", "-n", "4", "-r", "1", "-v", *EVERYTHING]
    output = run(command, library).stdout
    assert re.search(r"\| MLX .*tg4 \|\s+[\d.]+", output), output[-2000:]
    assert set(re.findall(r"splits = (\d+)", output)) == {"1"}


def splits(log):
    """Into how many pieces llama.cpp's schedulers cut their graphs, of whatever kind."""
    return set(re.findall(r"splits = (\d+(?: / \d+)*)", log))


@pytest.fixture(scope="module")
def f32_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("mlx") / "chat-f32.gguf"
    write_f32_copy(CHAT_MODEL, path)
    return path


def perplexity(model, text, *arguments, library=None):
    """What llama-perplexity finds, and all that it prints."""
    command = [program("llama-perplexity"), "-m", model, "-f", text, "-c", "128", "-t", "2", *arguments]
    result = run(command, library)
    found = re.search(r"Final estimate: PPL = ([\d.]+)", result.stdout)
    assert found, f"exit {result.returncode}: {result.stdout[-2000:]}"
    return float(found[1]), result.stdout


def test_llama_perplexity_finds_the_same_on_the_device_as_on_the_cpu(peers, library, tmp_path, f32_model):
    text = tmp_path / "text.txt"
    text.write_text("What is the capital of France? The capital of France is Paris. " * 60)
    on_cpu, _ = perplexity(f32_model, text, "--device", "none")
    on_mlx, log = perplexity(f32_model, text, "--device", "MLX0", *EVERYTHING, "-v", library=library)
    assert on_mlx == pytest.approx(on_cpu, rel=1e-4)
    assert splits(log) == {"1"}


class Server:
    """llama-server with a model, until the end of a with block."""

    def __init__(self, peers, model, log, *arguments, library=None):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {**os.environ, **({"GGML_BACKEND_PATH": str(library)} if library else {})}
        command = [peers / "llama-server", "--port", port, "-m", model, "-c", "512", "-v", *arguments]
        self.url, self.log = f"http://127.0.0.1:{port}", log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [str(part) for part in command], env=environment, stdout=output, stderr=output
            )

    def __enter__(self):
        deadline = time.monotonic() + 240
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5)
                return self
            except OSError:
                running = self.process.poll() is None and time.monotonic() < deadline
                assert running, f"llama-server did not start: {self.log.read_text()[-2000:]}"
                time.sleep(0.2)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def post(self, path, **request):
        body = json.dumps({"temperature": 0, **request}).encode()
        call = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(call, timeout=240) as response:
            return json.load(response)


ON_CPU = ["--device", "none", "--no-mmproj-offload"]
ON_MLX = ["--device", "MLX0", *EVERYTHING]


def test_llama_server_gives_the_same_64_tokens_on_the_device_as_on_the_cpu(
    peers, library, tmp_path, f32_model
):
    request = {"prompt": "What is the capital of France?", "n_predict": 64, "ignore_eos": True}

    def tokens(server):
        return server.post("/completion", return_tokens=True, **request)["tokens"]

    # Flash attention on the CPU is 2e-3 off in log probability, which decides near ties; the other is not.
    cache = ["-ctk", "f32", "-ctv", "f32"]
    with Server(peers, f32_model, tmp_path / "cpu.log", *ON_CPU, *cache, "-fa", "off") as server:
        on_cpu = tokens(server)
    with Server(peers, f32_model, tmp_path / "mlx.log", *ON_MLX, *cache, library=library) as server:
        assert tokens(server) == on_cpu
    assert len(on_cpu) == 64
    assert splits((tmp_path / "mlx.log").read_text()) == {"1"}


@pytest.mark.parametrize("projector", ["gemma3", "mlp"])
def test_llama_server_sees_an_image_on_the_device_as_on_the_cpu(
    peers, library, tmp_path, f32_model, projector
):
    width = gguf.GGUFReader(f32_model).get_field("llama.embedding_length").contents()
    encoder = tmp_path / "encoder.gguf"
    write_image_encoder(encoder, projector, width)
    pixels = np.random.default_rng(3).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    image = {"url": "data:image/png;base64," + base64.b64encode(png(pixels)).decode()}
    content = [{"type": "image_url", "image_url": image}, {"type": "text", "text": "What is this?"}]
    request = {"messages": [{"role": "user", "content": content}], "max_tokens": 8}

    def first_choices(server):
        answer = server.post("/v1/chat/completions", logprobs=True, top_logprobs=5, **request)
        first = answer["choices"][0]["logprobs"]["content"][0]
        return {choice["token"]: choice["logprob"] for choice in first["top_logprobs"]}

    with Server(peers, f32_model, tmp_path / "cpu.log", "--mmproj", encoder, *ON_CPU) as server:
        on_cpu = first_choices(server)
    with Server(
        peers, f32_model, tmp_path / "mlx.log", "--mmproj", encoder, *ON_MLX, library=library
    ) as server:
        assert first_choices(server) == pytest.approx(on_cpu, abs=0.01)
    log = (tmp_path / "mlx.log").read_text()
    assert re.search(r"clip.*using MLX0", log), log[-2000:]
    assert splits(log) == {"1"}


def anonymous_bytes(pid):
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"Anonymous:\s+(\d+)", rollup)[1]) * 1024


def test_quantized_weights_are_in_memory_once(peers, library, tmp_path):
    model = tmp_path / "layers.gguf"
    write_q4_0_model(model)
    command = [peers / "llama-bench", "-m", model, "-p", "0", "-n", "1", "-r", "1", *EVERYTHING]
    process = subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, "GGML_BACKEND_PATH": str(library)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    most = 0
    while process.poll() is None:
        with suppress(OSError, TypeError):  # the process has just ended
            most = max(most, anonymous_bytes(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0
    assert most < 1.25 * model.stat().st_size  # 5 bits a weight for 4.5 are 1.11


def test_settings_that_mean_nothing_are_named_in_the_log(peers, library, small_model):
    command = [peers / "llama-bench", "-m", small_model, "-p", "4", "-n", "0", "-r", "1", "-v", *EVERYTHING]
    log = run(command, library, GGML_MLX_DENY="ROPE,MULMAT", GGML_MLX_WEIGHT_CACHE_MB="1 GB").stdout
    assert log.count("GGML_MLX_DENY names 'MULMAT', which is no op of ggml") == 1
    assert "names 'ROPE'" not in log
    assert log.count("GGML_MLX_WEIGHT_CACHE_MB is '1 GB', which is no number of megabytes") == 1
    assert "pp4" in log


def test_a_host_with_another_ggml_is_refused_with_both_versions(peers, library, tmp_path):
    source = tmp_path / "other.c"
    source.write_text('const char* ggml_version(void) { return "0.1.2"; }\n')
    shutil.which("gcc") or pytest.skip("gcc is not installed, which makes the library that pretends")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", tmp_path / "other.so"], check=True)
    output = run([peers / "llama-bench", "--list-devices"], library, LD_PRELOAD=tmp_path / "other.so").stdout
    assert re.search(r"built for ggml 0\.25\.\d \(\w+\), and this program has ggml 0\.1\.2", output)
    assert "MLX0" not in output


def test_without_mlx_the_program_goes_on_and_the_reason_is_logged(peers, library, tmp_path, small_model):
    moved = tmp_path / library.name
    content = library.read_bytes()
    path = re.search(rb"/[^\0]*/mlx/lib(?=\0)", content)[0]
    moved.write_bytes(content.replace(path, b"/nowhere".ljust(len(path), b"x")))
    output = run([peers / "llama-bench", "-m", small_model, "-p", "8", "-n", "0", "-r", "1"], moved).stdout
    assert re.search(r"failed to load .*libmlx\.so: cannot open", output)
    assert "pp8" in output
