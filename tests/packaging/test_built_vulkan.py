"""The wheels headrace-vulkan that make wheels has built, beside headrace's wheel (make test-wheels)."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from elf import ROOT, is_elf, needed_libraries, run_paths
from environments import environment_of_wheels, run

DIST = ROOT / "build/wheels/dist"
if not os.environ.get("HEADRACE_TEST_WHEELS"):
    pytest.skip("takes minutes: make test-wheels runs it", allow_module_level=True)
if not list(DIST.glob("headrace_vulkan-*.whl")):
    pytest.skip("HEADRACE_VULKAN=ON make wheels has not built one", allow_module_level=True)

from wheels.check import check_wheel

WHEELS = sorted(DIST.glob("headrace_vulkan-*.whl"))
DEVICES = """
import headrace
print(*(device.name for device in headrace.devices()))
"""
# A line with the product that Vulkan0 computes.
PRODUCT = """
import numpy as np, webnn
context = webnn.ML().create_context(device="Vulkan0")
builder = context.create_graph_builder()
x = builder.input("x", [2, 3], "float32")
w = builder.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
graph = builder.build({"y": builder.matmul(x, w)})
result = context.compute(graph, {"x": np.array([[1, 0, -1], [0, 1, 0]], np.float32)})
print(result["y"].tolist())
"""


@pytest.fixture(params=WHEELS, ids=lambda wheel: wheel.name.removesuffix(".whl"))
def wheel(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with both wheels, which borrows NumPy from this one."""
    folder = tmp_path_factory.mktemp("vulkan") / "venv"
    return environment_of_wheels(DIST, "headrace_vulkan", folder)


def test_the_wheel_keeps_its_promises(wheel: Path):
    assert "1 libraries, fits manylinux" in check_wheel(wheel)


def test_the_backend_takes_headraces_ggml_and_the_systems_loader_alone(wheel: Path, tmp_path: Path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (backend,) = filter(is_elf, tmp_path.rglob("*"))
    assert run_paths(backend) == ["$ORIGIN"]
    names = needed_libraries(backend)
    assert {"libheadrace-ggml-base.so", "libheadrace-c++.so", "libvulkan.so.1"} <= set(names)
    assert not [name for name in names if name.startswith(("libstdc++", "libggml", "libgcc"))]


def test_headrace_finds_the_backend_and_computes_there(environment: Path, tmp_path: Path):
    # Whatever Vulkan's first device is, a driver that computes on the CPU, too.
    names, product = run(
        environment, "-c", DEVICES + PRODUCT, cwd=tmp_path, GGML_VK_VISIBLE_DEVICES="0"
    ).splitlines()
    assert "Vulkan0" in names.split()
    assert product == "[[-8.0, -8.0, -8.0, -8.0], [4.0, 5.0, 6.0, 7.0]]"


def test_a_machine_without_a_vulkan_device_has_its_cpu(environment: Path, tmp_path: Path):
    names = run(environment, "-c", DEVICES, cwd=tmp_path, VK_DRIVER_FILES="none", VK_ICD_FILENAMES="none")
    assert "CPU" in names.upper().split()
    assert "Vulkan0" not in names.split()
