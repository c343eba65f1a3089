"""The wheels of make wheels, where nothing else is installed and on other CPUs (make test-wheels)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from elf import ROOT, is_elf, native_ggml, needed_libraries, run_paths
from environments import PROGRAM, RESULT, interpreters, run, write_model

DIST = ROOT / "build/wheels/dist"
if not os.environ.get("HEADRACE_TEST_WHEELS"):
    pytest.skip("takes minutes: make test-wheels runs it", allow_module_level=True)
if not list(DIST.glob("headrace-*.whl")):
    pytest.skip("no wheel has been built: make wheels builds them", allow_module_level=True)

from emulated_python import EmulatedPython, emulator
from wheels.check import check_wheel

WHEELS = sorted(DIST.glob("headrace-*.whl"))
# By architecture: CPUs of QEMU, and the library of ggml that suits each best.
CPUS = {
    "x86_64": {"Nehalem": "sse42", "SandyBridge": "sandybridge", "Haswell": "haswell", "EPYC": "haswell"},
    "aarch64": {"cortex-a53": "armv8.0_1", "neoverse-n1": "armv8.2_2", "max": "armv8.6_2|armv9.2_2"},
}
API_TESTS = ("webnn_errors", "webnn_states", "webnn_dispatch", "webnn_extensions", "webnn_several_graphs")
LANES = ("libheadrace.so", "libheadrace_llm.so", "libheadrace_serve.so")
RELEASES = {"cp311-cp311": "bookworm", "cp312-abi3": "trixie"}
MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
CHAT = f"""
from headrace import LanguageModel
with LanguageModel({os.fspath(MODEL)!r}, config={{"log_level": "none"}}) as model:
    print(model.generate("What is 2+3?", {{"temperature": 0}}).text)
"""
# Loads model.onnx, writes x.npy, then prints where the package is and what it computes.
ONNX = """
import headrace, numpy as np
data = np.array([[1, 0, -1], [0, 1, 0]], np.float32)
np.save("x.npy", data)
print(headrace.__file__.partition("lib/python")[0])
print(headrace.load("model.onnx")(x=data)["y"].tolist())
"""


def tag(wheel: Path) -> str:
    return re.search(r"(cp\w+-\w+)-manylinux", wheel.name)[1]


def arch(wheel: Path) -> str:
    return re.search(r"manylinux_2_28_(\w+)\.whl", wheel.name)[1]


def fits(wheel: Path, version: tuple[int, int]) -> bool:
    return version >= (3, 12) if tag(wheel) == "cp312-abi3" else version == (3, 11)


@pytest.fixture(scope="module", params=WHEELS, ids=lambda wheel: wheel.name.removesuffix(".whl"))
def wheel(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def emulated(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> EmulatedPython:
    if not emulator(arch(wheel)):
        pytest.skip(f"qemu-{arch(wheel)} is not installed: make test-wheels installs it")
    site = tmp_path_factory.mktemp("site")
    python = EmulatedPython.install(arch(wheel), RELEASES[tag(wheel)], site)
    python.unpack(wheel)
    return python


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an empty environment with the wheel; installing must not take long."""
    if arch(wheel) != os.uname().machine:
        pytest.skip("not for this machine")
    if not (fitting := [path for version, path in interpreters() if fits(wheel, version)]):
        pytest.skip(f"no Python on this machine takes {tag(wheel)}")
    folder = tmp_path_factory.mktemp("empty") / "venv"
    run(fitting[0], "-m", "venv", folder)
    started = time.monotonic()
    run(folder / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", wheel)
    assert time.monotonic() - started < 15
    return folder / "bin"


def test_the_wheel_keeps_its_promises(wheel: Path):
    assert "fits manylinux" in check_wheel(wheel)


def test_libraries_are_found_by_places_relative_to_themselves(unpacked: Path):
    binaries = list(filter(is_elf, unpacked.rglob("*")))
    assert {"libheadrace.so", "libheadrace_llm.so", "libheadrace-ggml.so", "headrace"} <= {
        binary.name for binary in binaries
    }
    for binary in binaries:
        assert all(entry.startswith("$ORIGIN") for entry in run_paths(binary)), binary
        names = needed_libraries(binary)
        # Those of an installed llama.cpp, and the system's C++ library.
        assert not [name for name in names if name.startswith(("libggml", "libllama", "libstdc++", "libc++"))]


def shown(unpacked: Path, library: str, kinds: str) -> set[str]:
    """The symbols of nm's kinds that a library defines for others."""
    command = ["nm", "-D", "--defined-only", unpacked / "headrace/lib" / library]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name for _, kind, name in map(str.split, listed.splitlines()) if kind in kinds}


def test_what_is_inside_a_library_stays_inside(unpacked: Path):
    for library in LANES:
        names = shown(unpacked, library, "TWVBDR")
        assert names
        assert not [name for name in names if not re.match("_ZN?K?[OR]?(T[ISVT]N?K?)?8headrace", name)]


def test_the_program_and_the_libraries_hold_nothing_twice(unpacked: Path):
    assert set(LANES) <= set(needed_libraries(unpacked / "headrace/bin/headrace"))
    strong = [shown(unpacked, library, "TBDR") for library in LANES]
    assert len(set.union(*strong)) == sum(map(len, strong))


def test_a_graph_runs_with_the_wheels_own_libraries(environment: Path, tmp_path: Path):
    result, *mapped = run(environment / "python", "-c", PROGRAM, cwd=tmp_path).splitlines()
    assert result == RESULT
    ours = [path for path in mapped if "ggml" in path or "headrace" in path]
    assert all(path.startswith(f"{environment.parent}/") for path in ours)
    assert len([path for path in ours if "libggml-cpu-" in path]) == 1


def test_importing_is_quick(environment: Path, tmp_path: Path):
    program = "import time; t = time.perf_counter(); import headrace; print(time.perf_counter() - t)"
    times = [float(run(environment / "python", "-c", program, cwd=tmp_path)) for _ in range(5)]
    assert min(times) < 0.15, times


def test_errors_of_the_library_are_pythons(environment: Path, tmp_path: Path):
    """They cross from one library into another."""
    program = """
import headrace
try: headrace.load_graph("absent.hrg")
except OSError as error: print("OSError", error)
"""
    assert run(environment / "python", "-c", program, cwd=tmp_path).startswith("OSError")


def test_a_language_model_and_the_program_run(environment: Path, tmp_path: Path):
    assert run(environment / "python", "-c", CHAT, cwd=tmp_path).strip() == "2+3=5"
    assert "CPU" in run(environment / "headrace", "devices", cwd=tmp_path)


def test_onnx_models_run_from_python_and_the_command_line(environment: Path, tmp_path: Path):
    write_model(tmp_path)
    printed = run(environment / "python", "-c", ONNX, cwd=tmp_path)
    assert printed.splitlines() == [f"{environment.parent}/", RESULT]
    run(environment / "headrace", "convert", "model.onnx", "model.hrg", cwd=tmp_path)
    options = ("--input", "x=x.npy", "--output", "y=y.npy")
    for model in ("model.onnx", "model.hrg"):
        run(environment / "headrace", "run", model, *options, cwd=tmp_path)
        assert np.load(tmp_path / "y.npy").tolist() == json.loads(RESULT)
        (tmp_path / "y.npy").unlink()


def test_both_kinds_of_models_share_ggml_with_another_one_in_the_process(environment: Path, tmp_path: Path):
    """As a program does that has loaded an installed llama.cpp."""
    other = native_ggml()
    if not other:
        pytest.skip("the checkout's own build has set up no ggml")
    first = f"import ctypes; ctypes.CDLL({str(other / 'lib/libggml.so')!r}, ctypes.RTLD_GLOBAL)\n"
    assert run(environment / "python", "-c", first + PROGRAM, cwd=tmp_path).startswith(RESULT)
    assert run(environment / "python", "-c", first + CHAT, cwd=tmp_path).strip() == "2+3=5"


@pytest.mark.parametrize("index", range(4))
def test_every_cpu_gets_the_library_that_suits_it(emulated: EmulatedPython, index: int):
    cpus = list(CPUS[emulated.arch].items())
    if index >= len(cpus):
        pytest.skip("no other CPU of this architecture is tried")
    cpu, variant = cpus[index]
    done = emulated.command(cpu, "python", "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(RESULT)
    (loaded,) = re.findall(r"libggml-cpu-([\w.]+)\.so", done.stdout)
    assert re.fullmatch(variant, loaded)
    done = emulated.command(cpu, "python", "-c", CHAT)
    assert done.stdout.strip() == "2+3=5", done.stderr


def test_the_program_runs_on_the_oldest_cpu(emulated: EmulatedPython, tmp_path: Path):
    oldest = next(iter(CPUS[emulated.arch]))
    program = emulated.site / "headrace/bin/headrace"
    assert "CPU" in emulated.command(oldest, program, "devices").stdout


def test_the_tests_of_pythons_api_pass_on_the_oldest_and_the_newest_cpu(emulated: EmulatedPython):
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        if not (emulated.site / name).exists():
            (emulated.site / name).symlink_to(Path(find_spec(name).origin).parent)
    if not (emulated.site / "py.py").exists():  # pytest's own, beside its folders
        (emulated.site / "py.py").symlink_to(Path(find_spec("py").origin))
    files = [ROOT / "tests/python" / f"test_{name}.py" for name in API_TESTS]
    cpus = list(CPUS[emulated.arch])
    for cpu in (cpus[0], cpus[-1]):
        done = emulated.command(cpu, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
        assert done.returncode == 0, done.stdout[-4000:]
        assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 50
