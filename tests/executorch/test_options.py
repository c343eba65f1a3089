"""The backend's options, set from Python."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import re
import sys
import time
from pathlib import Path

import torch
from executorch_ggml import _runtime, set_options
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import rpc_hosts

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


@pytest.fixture(autouse=True)
def restored():
    yield
    set_options(num_threads=0, device="cpu", packed_kernels=True, host_timeout_ms=60000, packed_cache="")
    set_options(precision="exact")


def test_a_program_is_loaded_for_the_device_that_was_chosen(lower, capfd):
    program = lower(nn.Linear(4, 4), (torch.randn(2, 4),))
    set_options(device="abacus")
    with pytest.raises(RuntimeError):
        program.load()
    assert "there is no device 'abacus'; known: cpu" in capfd.readouterr().err
    set_options(device="cpu", num_threads=1)
    program.check()


def test_a_program_computes_the_same_with_ggmls_kernels(lower):
    program = lower(nn.Linear(64, 64), (torch.randn(8, 64),))
    set_options(packed_kernels=False)
    program.check()


def test_packed_weights_are_kept_where_one_wants_them(lower, tmp_path):
    program = lower(nn.Linear(1024, 512), (torch.randn(8, 1024),))
    set_options(packed_cache=str(tmp_path))
    program.check()
    (kept,) = tmp_path.iterdir()
    assert kept.stat().st_size > 4 * 1024 * 512
    program.check()
    assert list(tmp_path.iterdir()) == [kept]


def test_products_are_rounded_where_they_may_be_fast(lower):
    layer, x = nn.Linear(512, 256), torch.randn(8, 512)
    program = lower(layer, (x,))
    set_options(precision="fast")
    found = program.load()(x)[0]
    torch.testing.assert_close(found, layer(x), rtol=0, atol=0.05)
    if "avx512_bf16" in Path("/proc/cpuinfo").read_text():
        assert not torch.allclose(found, layer(x), rtol=1e-5, atol=1e-5)


def test_a_program_runs_on_a_remote_host_and_fails_alone_when_that_is_lost(lower, capfd):
    program = lower(nn.Linear(4, 4), (torch.randn(2, 4),))
    with rpc_hosts.hosts(1, in_namespaces=False) as hosts:
        hosts[0].serve()
        set_options(device=hosts[0].device)
        program.check()
        run = program.load()
        run(*program.inputs)
        hosts[0].fail()
        with pytest.raises(RuntimeError):
            run(*program.inputs)
        # A loss that was noticed between the runs is an attempt at a new connection.
        assert re.search(
            rf"device '{re.escape(hosts[0].device)}'(: no RPC server| was lost)", capfd.readouterr().err
        )
        hosts[0].serve()
        run(*program.inputs)


def test_a_program_over_several_hosts_waits_for_each_as_long_as_it_was_told(lower, capfd):
    program = lower(nn.Linear(4, 4), (torch.randn(2, 4),))
    with rpc_hosts.hosts(2, in_namespaces=False) as hosts:
        for host in hosts:
            host.serve()
        set_options(device=", ".join(host.device for host in hosts), host_timeout_ms=300)
        program.check()
        run = program.load()
        run(*program.inputs)
        for host in hosts:
            host.freeze()
        start = time.monotonic()
        with pytest.raises(RuntimeError):
            run(*program.inputs)
        assert time.monotonic() - start < 30
        assert "was lost: no answer for 0.3 s" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_threads": -1}, "num_threads is -1; it must be 0"),
        ({"device": ""}, "device is ''; a device's name"),
        ({"device": "x" * 256}, "of less than 256 bytes"),
        ({"host_timeout_ms": 10}, "host_timeout_ms is 10; it must be 100 to"),
        ({"packed_cache": "x" * 256}, "a path of less than 256 bytes is wanted"),
        ({"precision": "f16"}, "precision is 'f16'; it must be 'exact' or 'fast'"),
        ({"packed_kernels": "no"}, "packed_kernels is 'no'; it must be True or False"),
    ],
)
def test_values_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        set_options(**options)


def test_without_the_library_there_is_nothing_to_set(monkeypatch):
    monkeypatch.setattr(_runtime, "_library", None)
    with pytest.raises(RuntimeError, match="is not loaded in this process"):
        set_options(num_threads=1)
