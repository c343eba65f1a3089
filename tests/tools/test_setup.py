"""tools/setup.py: what the environment asks ggml's build for."""

import shutil
import subprocess

import pytest
import setup
from setup import SetupError, build_ggml, cuda_flags, native_target


def test_a_cached_build_serves_a_compiler_under_all_its_names(monkeypatch, tmp_path):
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("g++ is not installed")
    machine = subprocess.run(
        [compiler, "-dumpmachine"], capture_output=True, text=True, check=True
    ).stdout.strip()
    longer = tmp_path / f"{machine}-g++"
    longer.symlink_to(compiler)
    monkeypatch.setenv("CXX", compiler)
    plain = native_target()
    monkeypatch.setenv("CXX", str(longer))
    shown = subprocess.run([longer, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith(machine)
    assert native_target() == plain


def test_cuda_is_built_for_the_gpus_that_are_named_or_else_for_those_of_the_machine(monkeypatch):
    monkeypatch.delenv("CUDAARCHS", raising=False)
    monkeypatch.setenv("HEADRACE_CUDA", "OFF")
    assert cuda_flags() == []
    monkeypatch.setenv("HEADRACE_CUDA", "ON")
    assert cuda_flags() == ["-DGGML_CUDA=ON"]
    monkeypatch.setenv("CUDAARCHS", "80;90")
    assert cuda_flags() == ["-DGGML_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=80;90"]


def test_a_machine_without_gpus_is_told_how_to_build_for_others(monkeypatch, tmp_path):
    def no_gpu(name, command):
        raise SetupError("no GPU was detected")

    monkeypatch.delenv("CUDAARCHS", raising=False)
    monkeypatch.setattr(setup, "CACHE", tmp_path)
    monkeypatch.setattr(setup, "run_logged", no_gpu)
    monkeypatch.setattr(setup, "fetch_llama_cpp", lambda python: setup.pinned_source())
    monkeypatch.setattr(setup, "ggml_version", lambda source: setup.GGML_VERSION)
    monkeypatch.setenv("HEADRACE_CUDA", "ON")
    with pytest.raises(SetupError, match=r"(?s)no GPU was detected.*CUDAARCHS=80"):
        build_ggml()
    monkeypatch.setenv("HEADRACE_CUDA", "OFF")
    with pytest.raises(SetupError) as plain:
        build_ggml()
    assert str(plain.value) == "no GPU was detected"
