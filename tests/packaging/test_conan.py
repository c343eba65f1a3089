"""The Conan package, made of exported sources, and the example that uses it (make test-conan)."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from elf import ROOT, is_elf, private_to_this_machine, resolved_libraries
from environments import run

if not os.environ.get("HEADRACE_TEST_CONAN"):
    pytest.skip("compiles everything again: make test-conan runs it", allow_module_level=True)
pytest.importorskip("conan", reason="conan is not installed: make test-conan installs it")

CONAN = Path(sys.prefix, "bin/conan")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Conan of one's own, with the package in its cache."""
    folder = tmp_path_factory.mktemp("conan")
    run(CONAN, "profile", "detect", CONAN_HOME=str(folder))
    run(CONAN, "create", ROOT, "--no-remote", CONAN_HOME=str(folder))
    return folder


@pytest.fixture(scope="module")
def package(home: Path) -> Path:
    (found,) = [path.parent for path in home.glob("p/**/p/conaninfo.txt")]
    return found


@pytest.fixture(scope="module")
def program(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built as its conanfile says from a copy outside the checkout."""
    folder = tmp_path_factory.mktemp("consumer")
    source = shutil.copytree(ROOT / "examples/cpp_embedding", folder / "source")
    build = folder / "build"
    run(CONAN, "install", source, f"--output-folder={build}", "--no-remote", CONAN_HOME=str(home))
    settings = ["-DCMAKE_TOOLCHAIN_FILE=conan_toolchain.cmake", "-DCMAKE_BUILD_TYPE=Release"]
    run("cmake", "-S", source, "-B", build, *settings)
    run("cmake", "--build", build)
    return build / "cpp_embedding"


def test_the_recipe_says_what_the_project_is(home: Path):
    version = re.search(r"project\(headrace VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    listed = run(CONAN, "list", "headrace/*", CONAN_HOME=str(home))
    assert f"headrace/{version}" in listed


def test_the_example_computes(program: Path, package: Path, tmp_path: Path):
    lines = [line for line in run(program, cwd=tmp_path).splitlines() if line.startswith("batch")]
    probabilities = [[float(number) for number in line.split(":")[1].split()] for line in lines]
    assert len(probabilities) == 3
    assert all(abs(sum(row) - 1) < 1e-3 for row in probabilities)
    assert resolved_libraries(program)["libheadrace.so"].startswith(f"{package}/")


def test_the_package_needs_no_library_of_the_checkout_or_of_the_systems_development_packages(package: Path):
    binaries = list(filter(is_elf, package.rglob("*")))
    assert {"libheadrace.so", "libheadrace_llm.so", "headrace"} <= {binary.name for binary in binaries}
    for binary in binaries:
        for name, path in resolved_libraries(binary).items():
            assert path != "not found", f"{binary.name} does not find {name}"
            assert not path.startswith(tuple(private_to_this_machine())), f"{binary.name} loads {path}"
            if re.match(r"lib(fmt|hwy|ggml)", name):
                assert Path(path).resolve().is_relative_to(package.resolve()), f"{binary.name} loads {path}"


def test_the_licenses_of_all_parts_are_inside(package: Path):
    found = {path.name for path in (package / "licenses").rglob("*") if path.is_file()}
    assert {"LICENSE", "llama.cpp-and-ggml.txt", "cpp-httplib.txt", "fmt.txt", "hwy.txt"} <= found
