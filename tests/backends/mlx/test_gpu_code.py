"""The code for GPUs, compiled where its toolkit is: nothing here runs on a GPU."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from mlx_programs import ROOT

GPU = ROOT / "src/backends/mlx/gpu"
WHEEL = Path(sysconfig.get_path("purelib")) / "mlx/include"

# What Metal's language has and C++ has not.
METAL_IN_CPP = """#pragma once
#include <cmath>
#include <cstdint>
#define device
#define constant const
using uint = unsigned;
using half = float;
namespace metal {}
"""


def compile_or_fail(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-4000:]


def toolkit_program(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    return found or pytest.skip(f"{name} is not installed: it is of the CUDA toolkit")


def ggml_headers():
    stored = re.search(r'HEADRACE_GGML_DIR "([^"]+)"', (ROOT / "build/setup.cmake").read_text())
    return Path(stored[1]) / "include" if stored else pytest.skip("make build has not set ggml up")


def test_the_kernels_for_cuda_compile(tmp_path):
    nvcc = toolkit_program("nvcc")
    source = GPU / "cuda_kernels.cu"
    warnings = "-Wall,-Wextra,-Werror"
    compile_or_fail(
        nvcc, "-std=c++20", "-Xcompiler", warnings, f"-I{ROOT}/src", "-c", source, "-o", tmp_path / "o"
    )


def test_what_starts_them_compiles_against_mlxs_headers():
    toolkit = Path(toolkit_program("nvcc")).resolve()
    folders = [toolkit.parent.parent / "include", Path("/usr/local/cuda/include")]
    cuda = next((folder for folder in folders if (folder / "cuda.h").exists()), None)
    if not cuda or not WHEEL.exists() or not shutil.which("g++"):
        pytest.skip(f"of cuda.h, the wheel of MLX and g++ one is missing: {cuda}, {WHEEL}")
    headers = [f"-I{ROOT}/src", "-isystem", WHEEL, "-isystem", cuda, "-isystem", ggml_headers()]
    compile_or_fail(
        "g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *headers, GPU / "cuda.cpp"
    )


def test_the_kernels_for_metal_are_correct_but_for_metals_own_words(tmp_path):
    shutil.which("g++") or pytest.skip("g++ is not installed, which reads the kernels as C++")
    (tmp_path / "metal_stdlib").write_text(METAL_IN_CPP)
    text = (GPU / "write_unit.h").read_text() + (GPU / "write_kernels.metal").read_text()
    assert "std::" not in text, "Metal's library has no namespace std"
    names = re.findall(r'host_name\("(\w+)"\)', text)
    assert [f"write_{size}" for size in (1, 2, 4, 8)] == names
    # C++ has no place for an attribute in an instantiation.
    source = tmp_path / "kernels.cpp"
    source.write_text(re.sub(r"\[\[[^\]]*\]\]", "", text).replace("#pragma once", "", 1))
    compile_or_fail(
        "g++",
        "-std=c++14",
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-D__METAL_VERSION__=310",
        f"-I{tmp_path}",
        source,
    )
