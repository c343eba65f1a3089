"""cmake --install, and a program elsewhere that uses what it installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from elf import ROOT, is_elf, private_to_this_machine, resolved_libraries, run_paths

if not shutil.which(os.environ.get("CXX", "c++")):
    pytest.skip("no C++ compiler to build a program with", allow_module_level=True)


def run(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation that was moved after it was made: nothing in it may know where it was installed."""
    folder = tmp_path_factory.mktemp("package")
    run("cmake", "--install", ROOT / "build", "--prefix", folder / "installed")
    return (folder / "installed").rename(folder / "moved")


@pytest.fixture(scope="module")
def program(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built against the installation from a copy outside the checkout."""
    folder = tmp_path_factory.mktemp("embedding")
    source = shutil.copytree(ROOT / "examples/cpp_embedding", folder / "source")
    # The same configuration CMake would use for a stranger: nothing but the prefix.
    run("cmake", "-S", source, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder / "build")
    return folder / "build/cpp_embedding"


def test_the_example_computes_the_same_as_numpy(program: Path, tmp_path: Path):
    lines = [line for line in run(program, cwd=tmp_path).splitlines() if line.startswith("batch")]
    weights = np.array([[1, 0, -1], [0, 1, 0], [0.5, 0, 1], [0, -1, 0.25]])
    expected = []
    for batch in (1, 2):
        scores = (np.arange(batch * 4) - 4).reshape(batch, 4) @ weights + [0.1, 0, -0.1]
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        expected += list(exponentials / exponentials.sum(axis=1, keepdims=True))
    printed = [[float(number) for number in line.split(":")[1].split()] for line in lines]
    np.testing.assert_allclose(printed, expected, atol=1e-4)


def test_every_library_is_found_and_none_in_the_checkout_or_the_cache(prefix: Path, program: Path):
    binaries = [program, *filter(is_elf, prefix.rglob("*"))]
    assert any(binary.name == "libheadrace.so" for binary in binaries)
    for binary in binaries:
        for name, path in resolved_libraries(binary).items():
            assert path != "not found", f"{binary.name} does not find {name}"
            assert not path.startswith(tuple(private_to_this_machine())), f"{binary.name} loads {path}"
        if prefix in binary.parents:
            assert all(entry.startswith("$ORIGIN") for entry in run_paths(binary)), binary


def test_ggml_is_the_installed_one(prefix: Path):
    if not list(prefix.glob("lib*/headrace/libggml*")):
        pytest.skip("built with the system's ggml, which is not installed again")
    libraries = resolved_libraries(prefix / "bin/headrace")
    ours = {name for name, path in libraries.items() if Path(path).resolve().is_relative_to(prefix)}
    assert ours == {name for name in libraries if name.startswith("libggml")}
    assert len(ours) >= 2


def test_the_interface_asks_for_no_other_package(prefix: Path):
    """What a user's compiler sees: the package's files and the public headers."""
    package = "".join(path.read_text() for path in prefix.rglob("cmake/headrace/*.cmake"))
    # The MLX backend's own header works on ggml's tensors, and is for programs that have ggml.
    public = [path for path in prefix.rglob("include/headrace/*.h") if path.name != "ggml-mlx.h"]
    headers = "".join(path.read_text() for path in public)
    for dependency in ("fmt", "hwy", "flatbuffers", "ggml.h", "find_dependency"):
        assert dependency not in package, dependency
        assert f"<{dependency}" not in headers and f'"{dependency}' not in headers, dependency


def test_the_licenses_of_what_is_inside_are_installed(prefix: Path):
    licenses = prefix / "share/doc/headrace"
    assert "Apache License" in (licenses / "LICENSE").read_text()
    parts = {path.stem for path in (licenses / "parts").iterdir() if path.read_text().strip()}
    expected = {"fmt", "hwy", "flatbuffers", "xxhash", "cli11", "nlohmann-json"}
    if list(prefix.glob("lib*/headrace/libggml*")):
        expected |= {"llama.cpp-and-ggml", "cpp-httplib", "hash-sha256", "hash-rotate-bits", "hash-xxhash"}
    assert parts == expected if Path("/usr/share/doc/libfmt-dev").exists() else parts


def test_a_newer_minor_version_is_refused(prefix: Path, tmp_path: Path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p NONE)\nfind_package(headrace 0.3 REQUIRED)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert 'compatible with requested version "0.3"' in done.stderr


def test_the_installed_program_lists_the_cpu(prefix: Path, tmp_path: Path):
    assert "CPU" in run(prefix / "bin/headrace", "devices", cwd=tmp_path)


def test_the_chat_example_answers_and_remembers(prefix: Path, tmp_path: Path):
    if not list(prefix.glob("lib*/libheadrace_llm.so")):
        pytest.skip("built without language models")
    source = shutil.copytree(ROOT / "examples/cpp_chat", tmp_path / "source")
    run("cmake", "-S", source, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    said = subprocess.run(
        [tmp_path / "build/cpp_chat", ROOT / "models/tiny-chat-q8_0.gguf"],
        input="My name is Ada.\nWhat is my name?\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 0, said.stderr
    assert "Nice to meet you, Ada!" in said.stdout
    assert "Your name is Ada." in said.stdout
