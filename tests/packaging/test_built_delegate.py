"""The wheels executorch-ggml of make wheels, beside headrace's wheel and ExecuTorch (make test-wheels)."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import pytest
from elf import ROOT, is_elf, needed_libraries, run_paths
from environments import QUICK_START, environment_of_wheels, run

DIST = ROOT / "build/wheels/dist"
if not os.environ.get("HEADRACE_TEST_WHEELS"):
    pytest.skip("takes minutes: make test-wheels runs it", allow_module_level=True)
if not list(DIST.glob("executorch_ggml-*.whl")):
    pytest.skip("no wheel has been built: make wheels builds them", allow_module_level=True)

from wheels.check import check_wheel

WHEELS = sorted(DIST.glob("executorch_ggml-*.whl"))
# The door's tests that reach what passes between the C++ libraries of both: weights by their names,
# options, kinds of tensors, traces, errors, threads.
DOOR_TESTS = (
    "options",
    "external_weights",
    "profile",
    "damaged_programs",
    "half_floats",
    "states",
    "threads",
)


@pytest.fixture(params=WHEELS, ids=lambda wheel: wheel.name.removesuffix(".whl"))
def wheel(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with both wheels, which borrows every other package from this one."""
    pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
    folder = tmp_path_factory.mktemp("executorch") / "venv"
    return environment_of_wheels(DIST, "executorch_ggml", folder).parent


def test_the_wheel_keeps_its_promises(wheel: Path):
    assert "1 libraries, fits manylinux" in check_wheel(wheel)


def test_the_wheel_requires_the_versions_that_its_delegate_is_made_for(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("dist-info/METADATA"))
        required = re.findall(r"^Requires-Dist: (.*)$", archive.read(name).decode(), re.MULTILINE)
        names = archive.namelist()
    version = re.search(r"project\(headrace VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert required[0] == f"headrace=={version}"
    assert [re.sub("==.*", "", line) for line in required[1:]] == ["torch", "executorch"]
    assert {"executorch_ggml/__init__.py", "executorch_ggml/ops/linear.py"} <= set(names)
    assert not [name for name in names if name.startswith(("headrace/", "webnn/"))]
    assert any(name.endswith("licenses/parts/executorch.txt") for name in names)


def test_the_delegate_takes_libraries_of_its_neighbors_alone(wheel: Path, tmp_path: Path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (delegate,) = filter(is_elf, tmp_path.rglob("*"))
    places = ["$ORIGIN/../headrace/lib", "$ORIGIN/../executorch/lib", "$ORIGIN/../headrace/lib/headrace"]
    assert run_paths(delegate) == places
    names = needed_libraries(delegate)
    assert {"libheadrace.so", "libheadrace-c++.so", "libexecutorch.so"} <= set(names)
    assert not [name for name in names if name.startswith(("libstdc++", "libggml", "libgcc"))]


def test_the_quick_start_runs(environment: Path, tmp_path: Path):
    difference, path = run(environment / "python", "-c", QUICK_START, cwd=tmp_path).splitlines()[-2:]
    assert float(difference) <= 1e-5
    assert Path(path).is_relative_to(environment.parent)


def test_the_doors_own_tests_pass(environment: Path, tmp_path: Path):
    files = [ROOT / f"tests/executorch/test_{name}.py" for name in DOOR_TESTS]
    pytest_quietly = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    (program,) = environment.parent.glob("lib/python*/site-packages/headrace/bin/headrace")
    own = {"HEADRACE_PROGRAM": str(program)}  # which remote hosts run
    printed = run(environment / "python", *pytest_quietly, *files, cwd=tmp_path, **own)
    assert int(re.search(r"(\d+) passed", printed)[1]) > 30
