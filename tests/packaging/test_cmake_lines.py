"""The plain CMake lines of docs/executorch.md, which name a llama.cpp tree and an ExecuTorch package."""

from __future__ import annotations

import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from elf import ROOT, native_ggml, resolved_libraries
from environments import run, start
from provision.ggml import GGML_VERSION, pinned_source

if not find_spec("executorch"):
    pytest.skip("ExecuTorch is not installed: make executorch installs it", allow_module_level=True)
if not pinned_source().exists() or not native_ggml():
    pytest.skip(
        "the tree of llama.cpp and its ggml are not in the cache: make setup", allow_module_level=True
    )

EXECUTORCH = next(iter(find_spec("executorch").submodule_search_locations))


def lines() -> list[list[str]]:
    """The document's, word by word, with this machine's paths."""
    text = (ROOT / "docs/executorch.md").read_text()
    (block,) = re.findall(r"```\w*\n(cmake -B build-delegate -DLLAMA_CPP_DIR.*?)```", text, re.DOTALL)
    block = block.replace("/path/to/llama.cpp", str(pinned_source()))
    block = block.replace("/path/to/site-packages/executorch", EXECUTORCH)
    return [line.partition("#")[0].split() for line in block.splitlines()]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources in a folder of their own, where nothing was set up or built."""
    folder = tmp_path_factory.mktemp("lines") / "checkout"
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.name not in ("build", ".venv", ".git"):
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture(scope="module")
def configured(checkout: Path) -> str:
    return run(*lines()[0], cwd=checkout)


def test_both_are_taken_from_where_they_were_named(configured: str, checkout: Path):
    assert f"ggml {GGML_VERSION} from " in configured
    assert f"ExecuTorch from {EXECUTORCH}" in configured
    known = run("cmake", "--build", "build-delegate", "--target", "help", cwd=checkout)
    assert "executorch_ggml_runtime" in known


@pytest.mark.parametrize("variable", ["LLAMA_CPP_DIR", "EXECUTORCH_DIR"])
def test_another_folder_is_an_error_that_says_so(variable: str, checkout: Path, tmp_path: Path):
    command = [f"-D{variable}={tmp_path}" if variable in word else word for word in lines()[0]]
    done = start(*command, "-B", tmp_path / "build", cwd=checkout)
    assert done.returncode != 0
    message = " ".join(done.stderr.split())  # without CMake's line breaks
    assert f"{variable}={tmp_path} has no" in message


def test_the_library_is_built(configured: str, checkout: Path):
    if not os.environ.get("HEADRACE_TEST_CMAKE_LINES"):
        pytest.skip("compiles everything again: make test-cmake-lines runs it")
    run(*lines()[1], "--parallel", len(os.sched_getaffinity(0)), cwd=checkout)
    library = checkout / "build-delegate/lib/libexecutorch_ggml_runtime.so"
    libraries = resolved_libraries(library)
    assert "not found" not in libraries.values()
    assert libraries["libheadrace.so"] == str(checkout / "build-delegate/lib/libheadrace.so")
    symbols = subprocess.run(["nm", "-DC", library], capture_output=True, text=True, check=True).stdout
    assert "register_backend" in symbols
