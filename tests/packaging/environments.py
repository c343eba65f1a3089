"""Virtual environments that take nothing from the one that runs the tests."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from elf import ROOT

# Runs where the package is installed: prints what it computed, then every file that the process has mapped.
PROGRAM = """
import numpy as np, headrace, webnn
context = webnn.ML().create_context(accelerated=False)
builder = context.create_graph_builder()
x = builder.input("x", [2, 3], "float32")
w = builder.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
graph = builder.build({"y": builder.relu(builder.matmul(x, w))})
result = context.compute(graph, {"x": np.array([[1, 0, -1], [0, 1, 0]], np.float32)})
print(result["y"].tolist())
print(*{line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if line.count("/")}, sep="\\n")
"""
RESULT = "[[0.0, 0.0, 0.0, 0.0], [4.0, 5.0, 6.0, 7.0]]"

# The same layer of an ONNX model: writes model.onnx.
WRITE_MODEL = """
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
weights = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "w")
nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", k]) for name, k in (("x", 3), ("y", 4)))
graph = helper.make_graph(nodes, "layer", [x], [y], [weights])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), "model.onnx")
"""

# The quick start of the ExecuTorch door, then where the delegate came from.
QUICK_START = """
import torch
import torch.nn as nn
from torch.export import export
from executorch.exir import to_edge_transform_and_lower
from executorch_ggml import GgmlBackend, GgmlPartitioner, runtime_path

class MyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 8)
        self.leaky_relu = nn.LeakyReLU(0.1)

    def forward(self, x):
        return self.leaky_relu(self.linear(x))

model = MyModel().eval()
exported = export(model, (torch.randn(2, 4),))
edge = to_edge_transform_and_lower(exported, partitioner=[GgmlPartitioner()])
et_program = edge.to_executorch()

with open("model.pte", "wb") as f:
    f.write(et_program.buffer)

from executorch.runtime import Runtime
x = torch.randn(2, 4)
program = Runtime.get().load_program("model.pte")
(y,) = program.load_method("forward").execute([x])
print(float((y - model(x)).abs().max()))
print(runtime_path())
"""

# The user's settings that would help or hinder.
HIDDEN = {"CMAKE_ARGS", "LD_LIBRARY_PATH", "PIP_NO_BUILD_ISOLATION", "VIRTUAL_ENV"}


def start(*command: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command without what belongs to the tests' own environment; the result may be a failure."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in HIDDEN and not name.startswith(("PYTHON", "SKBUILD_"))
    }
    own = Path(sys.prefix, "bin")
    inherited["PATH"] = os.pathsep.join(p for p in os.get_exec_path() if Path(p) != own)
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=cwd,
        env={**inherited, **environment},
    )


def run(*command: object, cwd: Path | None = None, **environment: str) -> str:
    """What a command that must succeed prints."""
    done = start(*command, cwd=cwd, **environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def interpreters() -> list[tuple[tuple[int, int], Path]]:
    """Pythons of this machine with their versions: the one that runs the tests, then those on the PATH."""
    ask = "import sys; print(*sys.version_info[:2])"
    found = {sys.version_info[:2]: Path(sys.executable)}
    for minor in range(11, 16):
        path = shutil.which(f"python3.{minor}")
        if path and (done := start(path, "-c", ask)).returncode == 0:  # pyenv has names of absent ones
            found.setdefault(tuple(map(int, done.stdout.split())), Path(path))
    return list(found.items())


def write_model(folder: Path) -> None:
    run(sys.executable, "-c", WRITE_MODEL, cwd=folder)


def environment_of_wheels(dist: Path, companion: str, folder: Path) -> Path:
    """The Python of a new environment with the wheels that dist has for this machine, headrace's and the
    companion's. It borrows every other package from the one that runs the tests.
    """
    abi = "cp312-abi3" if sys.version_info >= (3, 12) else f"cp3{sys.version_info.minor}"
    wheels = [*dist.glob(f"headrace-*-{abi}-*_{os.uname().machine}.whl")]
    wheels += dist.glob(f"{companion}-*_{os.uname().machine}.whl")
    if len(wheels) != 2:
        pytest.skip("make wheels has not built both for this machine")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", folder / "bin/python"]
    run(*pip, "install", "--no-deps", "--no-index", *wheels)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(f"{Path(find_spec('numpy').origin).parents[1]}\n")
    return folder / "bin/python"


@contextmanager
def wheel_folder() -> Iterator[Path]:
    """The folder in which pip compiles the package, for one at a time: files' tests run side by side."""
    folder = ROOT / "build/wheel"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def build_settings() -> dict[str, str]:
    """A wheel's build: a job for each CPU, and compilers by the names that the makefile's build has
    for them. ccache then knows what that compiled.
    """
    cache = (ROOT / "build/CMakeCache.txt").read_text()
    compilers = re.findall(r"^(CMAKE_C(?:XX)?_COMPILER):\w+=(.*)$", cache, re.MULTILINE)
    return {
        "CMAKE_BUILD_PARALLEL_LEVEL": str(len(os.sched_getaffinity(0))),
        "CMAKE_ARGS": " ".join(f"-D{variable}={compiler}" for variable, compiler in compilers),
    }
