"""Models over several hosts, as a user starts them: serve-rpc there, chat and devices here."""

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import webnn

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import rpc_hosts  # noqa: E402

HEADRACE = ROOT / "build/bin/headrace"
MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
STORY = "Tell me a story about a fox."
REASON = rpc_hosts.why_no_namespaces()


def headrace(*arguments, timeout=60):
    return subprocess.run(
        [HEADRACE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False
    )


@pytest.fixture(autouse=True, scope="module")
def language_models_are_built():
    if headrace("parameters").returncode:
        pytest.skip("the program was built without language models (HEADRACE_GGML=system)")


def chat(hosts, prompt=STORY, **parameters):
    """The answer over those hosts, each with an equal share of the layers; nothing after a failure."""
    # Hosts compute with ggml's own kernels; ours round otherwise.
    config = {"temp": 0, "log_level": "none", "fit_margin_mib": 0, "repack": False, **parameters}
    if hosts:
        config["tensor_split"] = [1] * len(hosts)
    devices = [argument for host in hosts for argument in ("--device", host.device)]
    return headrace("chat", MODEL, *devices, "--parameters", json.dumps(config), "--prompt", prompt)


@pytest.fixture(scope="module")
def local_answer():
    result = chat([])
    assert result.returncode == 0, result.stderr
    assert len(result.stdout) > 40
    return result.stdout


@pytest.fixture(
    params=[
        "loopback",
        pytest.param(
            "namespaces", marks=pytest.mark.skipif(bool(REASON), reason=f"no network namespaces: {REASON}")
        ),
    ]
)
def three_hosts(request):
    with rpc_hosts.hosts(3, in_namespaces=request.param == "namespaces") as hosts:
        yield hosts


def test_a_model_over_one_to_three_hosts_answers_as_the_local_one(three_hosts, local_answer):
    for host in three_hosts:
        host.serve()
    for count in (1, 2, 3):
        result = chat(three_hosts[:count])
        assert result.stdout == local_answer, result.stderr


def forms_of(hosts):
    """The ways to name several devices on a command line."""
    names = [host.device for host in hosts]
    repeated = [argument for name in names for argument in ("--device", name)]
    return [repeated, ["--device", ",".join(names)], ["--device", ", ".join(names)]]


@pytest.fixture(scope="module")
def loopback_hosts():
    with rpc_hosts.hosts(2, in_namespaces=False) as hosts:
        for host in hosts:
            host.serve()
        yield hosts


def test_chat_takes_hosts_in_every_form(loopback_hosts, local_answer):
    config = {
        "temp": 0,
        "fit_margin_mib": 0,
        "repack": False,
        "tensor_split": [1, 1],
        "log": {"level": "info"},
    }
    for devices in forms_of(loopback_hosts):
        result = headrace("chat", MODEL, *devices, "--parameters", json.dumps(config), "--prompt", STORY)
        assert result.stdout == local_answer, result.stderr
        for host in loopback_hosts:
            assert re.search(rf"{re.escape(host.device)}: [1-9]\d* of \d+ layers", result.stderr), (
                result.stderr
            )


@pytest.fixture
def graph(tmp_path):
    """y = gelu(x · w), x [4, 32]."""
    builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
    x = builder.input("x", [4, 32], "float32")
    w = builder.constant(np.random.default_rng(0).standard_normal((32, 8)).astype(np.float32))
    path = tmp_path / "graph.hrg"
    builder.build({"y": builder.gelu(builder.matmul(x, w))}).save(str(path))
    return path


def test_run_takes_hosts_in_every_form_and_computes_as_here(loopback_hosts, graph, tmp_path):
    headrace("run", graph, "--output", f"y={tmp_path}/local.npy")
    expected = np.load(tmp_path / "local.npy")
    for number, devices in enumerate(forms_of(loopback_hosts)):
        result = headrace("run", graph, *devices, "--output", f"y={tmp_path}/{number}.npy")
        assert result.returncode == 0, result.stderr
        np.testing.assert_allclose(np.load(tmp_path / f"{number}.npy"), expected, rtol=1e-5, atol=1e-5)
    listed = headrace("devices", ", ".join(host.device for host in loopback_hosts))
    assert listed.returncode == 0, listed.stderr
    for host in loopback_hosts:
        assert host.device in listed.stdout


def test_a_graphs_lost_host_is_an_error_after_the_time_that_the_command_line_gives_it(graph):
    with rpc_hosts.hosts(2, in_namespaces=False) as hosts:
        for host in hosts:
            host.serve()
        long = [
            "--device",
            ",".join(host.device for host in hosts),
            "--host-timeout-ms",
            400,
            "--peer",
            "none",
        ]
        running = subprocess.Popen(
            list(map(str, [HEADRACE, "bench", graph, *long, "--runs", 1_000_000])),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(2)  # it runs for minutes
        assert running.poll() is None, running.stderr.read()
        hosts[0].freeze()
        hosts[1].freeze()
        _, errors = running.communicate(timeout=30)
        assert running.returncode == 1, "an error, not a signal"
        assert re.search(r"device 'rpc://127\.0\.0\.1:\d+' was lost: no answer for 0\.4 s", errors), errors
    for command in ("run", "bench", "inspect"):
        refused = headrace(command, graph, "--device", "rpc://127.0.0.1:1", "--host-timeout-ms", 5)
        assert refused.returncode == 1 and "host_timeout_ms is 5; it must be 100" in refused.stderr
        absent = headrace(command, graph, "--device", "rpc://127.0.0.1:1")
        assert absent.returncode == 1 and "serve-rpc" in absent.stderr and "Traceback" not in absent.stderr


NO_NETEM = rpc_hosts.why_no_netem()


@pytest.mark.skipif(bool(REASON or NO_NETEM), reason=f"no netem on links: {REASON or NO_NETEM}")
@pytest.mark.parametrize(
    "link", [{"delay_ms": 5}, {"delay_ms": 1, "mbit": 20}, {"delay_ms": 1, "loss": 0.02}], ids=str
)
def test_links_that_the_kernel_slows_down_change_no_answer(local_answer, link):
    with rpc_hosts.hosts(2, in_namespaces=True) as hosts:
        for host in hosts:
            host.serve(**link)
        shown = headrace("devices", hosts[0].device).stdout
        round_trip, rate = re.search(r"round trip (\S+) ms, (\d+) MB/s", shown).groups()
        assert float(round_trip) >= 2 * link["delay_ms"]
        assert "mbit" not in link or float(rate) <= link["mbit"] / 8 * 1.3
        result = chat(hosts)
        assert result.stdout == local_answer, result.stderr


@pytest.mark.skipif(bool(REASON), reason=f"no network namespaces: {REASON}")
def test_a_host_that_is_unplugged_in_an_answer_is_a_clear_error_and_answers_again_when_it_is_back(
    local_answer,
):
    with rpc_hosts.hosts(2, in_namespaces=True) as hosts:
        for host in hosts:
            host.serve()
        devices = [argument for host in hosts for argument in ("--device", host.device)]
        config = {"temp": 0, "tensor_split": [1, 1], "fit_margin_mib": 0, "n_ctx": 4096, "ignore_eos": True}
        answer = subprocess.Popen(
            [HEADRACE, "chat", MODEL, *devices, "--parameters", json.dumps({**config, "log_level": "none"}),
             "--prompt", STORY],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        answer.stdout.read(20)
        hosts[1].plug("down")
        start = time.monotonic()
        _, errors = answer.communicate(timeout=60)
        # TCP notices that nothing comes back after about ten seconds, before host_timeout_ms is over.
        assert time.monotonic() - start < 30
        assert answer.returncode == 1, "an error, not a signal"
        assert f"{hosts[1].device}' was lost" in errors, errors
        assert hosts[1].device in chat(hosts).stderr, "it cannot be reached"
        hosts[1].plug("up")
        result = chat(hosts)
        assert result.stdout == local_answer, result.stderr


def test_links_that_are_slow_and_lose_packets_change_no_answer(three_hosts, local_answer):
    three_hosts[0].serve(delay_ms=5)
    three_hosts[1].serve(delay_ms=1, mbit=100)
    three_hosts[2].serve(delay_ms=1, loss=0.02)
    result = chat(three_hosts)
    assert result.stdout == local_answer, result.stderr


def test_a_host_that_dies_in_an_answer_is_a_clear_error_and_the_next_answer_comes_when_it_is_back(
    three_hosts, local_answer
):
    for host in three_hosts:
        host.serve()
    devices = [argument for host in three_hosts for argument in ("--device", host.device)]
    config = {"temp": 0, "log_level": "none", "tensor_split": [1, 1, 1], "timeout_ms": 30000}
    endless = {"n_ctx": 4096, "ignore_eos": True}
    # The one that serves an answer of many tokens, which takes a while, dies in its middle.
    long_one = subprocess.Popen(
        [HEADRACE, "chat", MODEL, *devices, "--parameters", json.dumps(config | endless),
         "--prompt", STORY, "--prompt", "unreached"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    long_one.stdout.read(20)
    three_hosts[1].fail()
    start = time.monotonic()
    _, errors = long_one.communicate(timeout=60)
    assert long_one.returncode == 1, "an error, not a signal"
    assert re.search(rf"{re.escape(three_hosts[1].device)}' was lost", errors), errors
    assert time.monotonic() - start < 30
    assert three_hosts[1].device in chat(three_hosts).stderr
    three_hosts[1].serve()
    assert chat(three_hosts).stdout == local_answer


def test_devices_measures_hosts_and_names_those_that_do_not_answer(three_hosts):
    three_hosts[0].serve()
    device = three_hosts[0].device
    result = headrace("devices", device)
    assert result.returncode == 0, result.stderr
    line = next(line for line in result.stdout.splitlines() if line.startswith(device))
    measured = re.search(r"rpc +(\d+) +(\d+) +RPC \d+\.\d+\.\d+, round trip (\S+) ms, (\d+) MB/s", line)
    assert measured and all(float(number) > 0 for number in measured.groups()), line
    available = int(re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())[1]) // 1024
    free, total = int(measured[1]), int(measured[2])
    assert free < total, "what is in use is not free"
    assert free < available + 0.2 * total  # a control group's limit may leave less
    three_hosts[0].fail()
    result = headrace("devices", "--device", device)
    assert result.returncode == 1
    assert device in result.stderr and "serve-rpc" in result.stderr


def test_a_delay_of_the_link_shows_in_the_measured_round_trip(three_hosts):
    three_hosts[0].serve(delay_ms=20)
    shown = headrace("devices", three_hosts[0].device).stdout
    assert float(re.search(r"round trip (\S+) ms", shown)[1]) >= 40


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_serving_where_others_can_connect_takes_a_flag(host):
    result = headrace("serve-rpc", "--host", host, "--port", 0)
    assert result.returncode == 1
    for word in ("neither passwords nor encryption", "ssh -L", "--allow-public"):
        assert word in result.stderr


def test_serving_an_unknown_device_or_a_port_in_use_is_an_error():
    result = headrace("serve-rpc", "--port", 0, "--device", "TPU7")
    assert result.returncode == 1 and "TPU7" in result.stderr and "CPU" in result.stderr
    with rpc_hosts.hosts(1, in_namespaces=False) as hosts:
        hosts[0].serve()
        result = headrace("serve-rpc", "--port", hosts[0].port)
        assert result.returncode == 1 and "in use" in result.stderr


def test_the_server_says_who_comes_and_goes_and_no_more(local_answer):
    with rpc_hosts.hosts(1, in_namespaces=False) as hosts:
        hosts[0].serve()
        assert chat(hosts).stdout == local_answer
        server = hosts[0].processes[0]
        server.terminate()
        lines = server.stdout.read().splitlines()
    assert lines, "it says who connects"
    assert [line for line in lines if not re.fullmatch(r"\S+Z info  client \d+ (connected|left)", line)] == []


def test_the_server_outlives_clients_that_send_garbage_and_serves_several_at_once(local_answer):
    with rpc_hosts.hosts(1, in_namespaces=False) as hosts:
        hosts[0].serve()
        hello = bytes([14]) + (24).to_bytes(8, "little") + bytes(24)
        garbage = [b"GET / HTTP/1.1\r\n\r\n", bytes(1000), b"\xff" * 64, hello + b"\xff" * 500]
        # GRAPH_COMPUTE and SET_TENSOR of sizes and contents that fit nothing, and a tensor of no known type
        garbage += [hello + bytes([c]) + (400).to_bytes(8, "little") + b"\x7f" * 400 for c in range(18)]
        held = []
        for message in garbage[:10]:
            held.append(socket.create_connection(("127.0.0.1", hosts[0].port)))
            held[-1].sendall(message)
        for message in garbage[10:]:
            with socket.create_connection(("127.0.0.1", hosts[0].port)) as client:
                client.sendall(message)
        result = chat(hosts)
        assert result.stdout == local_answer, result.stderr
        assert hosts[0].processes[0].poll() is None
        for client in held:
            client.close()
