"""Unmodified programs of llama.cpp with the library in GGML_BACKEND_PATH."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import gguf
import numpy as np
import pytest
from mlx_programs import ROOT, program, run

CHAT_MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
EVERYTHING = ["-ngl", "99", "-ot", "token_embd=MLX0"]


def test_llama_bench_computes_all_of_a_model_on_the_device(peers, library, small_model):
    command = [peers / "llama-bench", "-m", small_model, "-p", "32", "-n", "4", "-r", "1", "-v", *EVERYTHING]
    output = run(command, library).stdout
    assert re.search(r"\| MLX .*tg4 \|\s+[\d.]+", output), output[-2000:]
    assert set(re.findall(r"splits = (\d+)", output)) == {"1"}


def perplexity(model, text, *arguments, library=None):
    command = [program("llama-perplexity"), "-m", model, "-f", text, "-c", "128", "-t", "2", *arguments]
    output = run(command, library).stdout
    found = re.search(r"Final estimate: PPL = ([\d.]+)", output)
    assert found, output[-2000:]
    return float(found[1])


def test_llama_perplexity_finds_the_same_on_the_device_as_on_the_cpu(peers, library, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("What is the capital of France? The capital of France is Paris. " * 60)
    on_cpu = perplexity(CHAT_MODEL, text, "--device", "none")
    on_mlx = perplexity(CHAT_MODEL, text, "--device", "MLX0", *EVERYTHING, library=library)
    assert on_mlx == pytest.approx(on_cpu, rel=0.01)  # ggml's CPU rounds activations to 8 bits


@contextmanager
def server(peers, *arguments, library=None):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, **({"GGML_BACKEND_PATH": str(library)} if library else {})}
    command = [peers / "llama-server", "--port", port, "-m", CHAT_MODEL, "-c", "512", *arguments]
    process = subprocess.Popen(
        [str(part) for part in command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, "llama-server did not start"
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def answer(url):
    request = {"messages": [{"role": "user", "content": "What is the capital of France?"}], "temperature": 0}
    body = json.dumps({**request, "max_tokens": 32}).encode()
    headers = {"Content-Type": "application/json"}
    call = urllib.request.Request(f"{url}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(call, timeout=120) as response:
        return json.load(response)["choices"][0]["message"]["content"]


def test_llama_server_answers_on_the_device_as_on_the_cpu(peers, library):
    with server(peers, "--device", "none") as url:
        on_cpu = answer(url)
    with server(peers, "--device", "MLX0", *EVERYTHING, library=library) as url:
        assert answer(url) == on_cpu
    assert on_cpu


def anonymous_bytes(pid):
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"Anonymous:\s+(\d+)", rollup)[1]) * 1024


def write_q4_0_model(path, layers=12, width=2048, hidden=8192, vocabulary=512):
    """A llama of 455 MB, nearly all of it matrices of random codes, without a tokenizer."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(vocabulary)
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(width // 128)
    writer.add_head_count_kv(width // 512)
    writer.add_layer_norm_rms_eps(1e-5)
    random = np.random.default_rng(1)

    def matrix(name, rows, columns):
        blocks = random.integers(0, 256, (rows, columns // 32, 18), dtype=np.uint8)
        blocks[..., :2] = np.array([0.002], np.float16).view(np.uint8)
        writer.add_tensor(name, blocks.reshape(rows, -1), raw_dtype=gguf.GGMLQuantizationType.Q4_0)

    matrix("token_embd.weight", vocabulary, width)
    matrix("output.weight", vocabulary, width)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    sizes = {"attn_q": width, "attn_k": width // 4, "attn_v": width // 4, "attn_output": width}
    for layer in range(layers):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(width, np.float32))
        for name, rows in {**sizes, "ffn_gate": hidden, "ffn_up": hidden}.items():
            matrix(f"blk.{layer}.{name}.weight", rows, width)
        matrix(f"blk.{layer}.ffn_down.weight", width, hidden)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_quantised_weights_are_in_memory_once(peers, library, tmp_path):
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
    assert most < 1.4 * model.stat().st_size  # 6 bits a weight for 4.5 are 1.33


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
