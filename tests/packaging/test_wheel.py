"""The wheel: built from the checkout, installed into an empty environment, used from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from elf import ROOT, private_to_this_machine, run_paths
from environments import PROGRAM, QUICK_START, RESULT, build_settings, run, wheel_folder

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in build/wheel, which stays: another run compiles only what has changed."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder]
    with wheel_folder():
        run(*PIP, "wheel", ROOT, *options, **build_settings())
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment's bin folder: the wheel, and of this environment's packages numpy alone."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    run(*PIP, "--python", folder / "bin/python", "install", "--no-deps", "--no-index", wheel)
    (packages,) = folder.glob("lib/python*/site-packages")
    numpy = Path(find_spec("numpy").origin).parent
    for part in (numpy, numpy.with_name("numpy.libs")):
        if part.exists():
            (packages / part.name).symlink_to(part)
    return folder / "bin"


def test_a_graph_runs_with_the_wheels_own_libraries(environment: Path, tmp_path: Path):
    result, *mapped = run(environment / "python", "-c", PROGRAM, cwd=tmp_path).splitlines()
    assert result == RESULT
    installed = {Path(path).name for path in mapped if path.startswith(f"{environment.parent}/")}
    assert any(name.startswith("_core") for name in installed)
    assert {"libheadrace.so", "libggml.so.0"} <= installed, installed
    numpy = str(Path(find_spec("numpy").origin).parent)
    borrowed = [path for path in mapped if path.startswith(tuple(private_to_this_machine()))]
    assert not [path for path in borrowed if not path.startswith(numpy)], borrowed


def test_the_program_is_a_console_script(environment: Path, tmp_path: Path):
    for command in (["headrace"], ["python", "-m", "headrace"]):
        printed = run(environment / command[0], *command[1:], "devices", cwd=tmp_path)
        assert "CPU" in printed


def test_a_language_model_answers_with_the_wheels_own_libraries(environment: Path, tmp_path: Path):
    model = ROOT / "models/tiny-chat-q8_0.gguf"
    program = f"""
from headrace import LanguageModel
with LanguageModel({os.fspath(model)!r}, config={{"log_level": "none"}}) as model:
    print(model.generate("What is 2+3?", {{"temperature": 0}}).text)
print(*{{line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if "/" in line}}, sep="\\n")
"""
    answer, *mapped = run(environment / "python", "-c", program, cwd=tmp_path).splitlines()
    assert answer == "2+3=5"
    installed = {Path(path).name for path in mapped if path.startswith(f"{environment.parent}/")}
    assert {"libheadrace_llm.so", "libggml.so.0"} <= installed, installed
    assert any(name.startswith("_llm") for name in installed)
    assert not [path for path in mapped if path.startswith(tuple(private_to_this_machine()))]


def test_the_wheel_holds_both_packages_and_says_what_it_is(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("dist-info/METADATA"))
    assert {"headrace/__init__.py", "webnn/__init__.py", "headrace/lib/libheadrace.so"} <= set(names)
    assert not [name for name in names if "minilm" in name]  # a demo's
    for extension in ("_core", "_llm"):
        assert len([name for name in names if re.match(rf"headrace/{extension}[^/]*\.so$", name)]) == 1
    assert any(name.endswith("licenses/LICENSE") for name in names)
    version = re.search(r"project\(headrace VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    for line in (f"Version: {version}", "License-Expression: Apache-2.0"):
        assert line in metadata.splitlines()
    required = re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)
    assert [line for line in required if "extra ==" not in line] == ["numpy>=1.26"]


def test_building_the_wheel_leaves_the_checkouts_extension_alone(wheel: Path):
    extensions = [
        path for name in ("_core", "_llm") for path in (ROOT / "python/headrace").glob(f"{name}*.so")
    ]
    assert len(extensions) == 2, "make build puts them there"
    listed = subprocess.run(["readelf", "-d", *extensions], capture_output=True, text=True, check=True).stdout
    assert f"{ROOT}/build/lib" in listed


def test_the_wheel_carries_type_stubs_with_every_operator(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        files = {"headrace/py.typed", "webnn/py.typed", "headrace/_core.pyi", "headrace/_llm.pyi"}
        assert files <= set(archive.namelist())
        stub = archive.read("webnn/__init__.pyi").decode()
    assert "def conv2d(" in stub and "class MLContext" in stub


@pytest.fixture(scope="module")
def with_executorch(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's own environment, which borrows every other package from this one."""
    pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
    folder = tmp_path_factory.mktemp("executorch") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    run(*PIP, "--python", folder / "bin/python", "install", "--no-deps", "--no-index", wheel)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(f"{Path(find_spec('numpy').origin).parents[1]}\n")
    return folder


def test_the_quick_start_runs_with_the_wheels_own_delegate(with_executorch: Path, tmp_path: Path):
    difference, path = run(with_executorch / "bin/python", "-c", QUICK_START, cwd=tmp_path).splitlines()[-2:]
    assert float(difference) <= 1e-5
    assert Path(path).is_relative_to(with_executorch)
    assert (tmp_path / "model.pte").stat().st_size > 0


def test_the_delegate_looks_for_libraries_only_beside_itself(with_executorch: Path):
    (delegate,) = with_executorch.rglob("libexecutorch_ggml_runtime.so")
    assert run_paths(delegate) == ["$ORIGIN/../headrace/lib", "$ORIGIN/../executorch/lib"]


def test_the_wheel_holds_the_executorch_door(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        assert {"executorch_ggml/__init__.py", "executorch_ggml/ops/linear.py"} <= set(archive.namelist())
