"""`pip install .` and `pip install -e .` by a Python that has pip and nothing else."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from elf import ROOT
from environments import PROGRAM, RESULT, build_settings, run, start, wheel_folder

# What venv itself may put there.
BARE = {"pip", "setuptools"}


@dataclass(frozen=True)
class Installation:
    bin: Path
    is_editable: bool

    @property
    def packages(self) -> Path:
        (folder,) = self.bin.parent.glob("lib/python*/site-packages")
        return folder


def bare_environment(folder: Path) -> Path:
    """The bin folder of a new environment; that it is bare is checked."""
    run(sys.executable, "-m", "venv", folder)
    listed = run(folder / "bin/python", "-m", "pip", "list", "--format=freeze").split()
    assert {line.split("==")[0] for line in listed} <= BARE
    assert start(folder / "bin/python", "-c", "import numpy").returncode != 0
    return folder / "bin"


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "editable"])
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("install")
    bin_folder = bare_environment(folder / "venv")
    pip = [bin_folder / "python", "-m", "pip", "--disable-pip-version-check"]
    reached = start(*pip, "download", "--no-deps", "--dest", folder / "reached", "scikit-build-core")
    if reached.returncode:
        pytest.skip(f"pip downloads nothing here: {reached.stderr.strip().splitlines()[-1]}")
    with wheel_folder() as build:
        # Stubs and extension of an earlier build must not stand in for those of this one.
        shutil.rmtree(build / "python", ignore_errors=True)
        run(*pip, "install", *(["-e"] if request.param else []), ".", cwd=ROOT, **build_settings())
    return Installation(bin_folder, request.param)


def test_a_graph_runs(installation: Installation, tmp_path: Path):
    result, *mapped = run(installation.bin / "python", "-c", PROGRAM, cwd=tmp_path).splitlines()
    assert result == RESULT
    (extension,) = (path for path in mapped if Path(path).name.startswith("_core"))
    assert extension.startswith(f"{installation.packages}/headrace/")


def test_the_program_lists_the_devices(installation: Installation, tmp_path: Path):
    assert "CPU" in run(installation.bin / "headrace", "devices", cwd=tmp_path)


def test_program_and_libraries_are_the_installations_own(installation: Installation, tmp_path: Path):
    program = """
from headrace._built import built_file
from headrace._wasi_nn import find_library
print(built_file("bin/headrace"), find_library())
"""
    files = run(installation.bin / "python", "-c", program, cwd=tmp_path).split()
    assert all(file.startswith(f"{installation.packages}/headrace/") for file in files), files


def test_the_example_of_the_page_on_webnn_runs(installation: Installation, tmp_path: Path):
    page = (ROOT / "docs/start/webnn.md").read_text()
    example, output = re.search(r"^```python\n(.*?)^```\n+```\n(.*?)^```", page, re.M | re.S).groups()
    assert run(installation.bin / "python", "-c", example, cwd=tmp_path).strip() == output.strip()


def test_stubs_are_installed_beside_the_extension(installation: Installation):
    for extension in ("_core", "_llm"):
        assert (installation.packages / f"headrace/{extension}.pyi").exists()
    assert "def conv2d(" in (installation.packages / "webnn/__init__.pyi").read_text()


def test_sources_are_the_checkouts_where_they_may_be_edited(installation: Installation, tmp_path: Path):
    program = "import headrace, webnn; print(headrace.__file__, webnn.__file__)"
    files = run(installation.bin / "python", "-c", program, cwd=tmp_path).split()
    folder = ROOT / "python" if installation.is_editable else installation.packages
    assert files == [str(folder / name / "__init__.py") for name in ("headrace", "webnn")]


def test_without_executorch_its_door_says_what_to_install(installation: Installation, tmp_path: Path):
    done = start(installation.bin / "python", "-c", "import executorch_ggml", cwd=tmp_path)
    assert done.returncode != 0
    assert "executorch_ggml needs" in done.stderr
    assert 'pip install "headrace[executorch]"' in done.stderr


def test_with_executorch_programs_run_where_there_is_a_delegate(installation: Installation, tmp_path: Path):
    if not find_spec("executorch"):
        pytest.skip("ExecuTorch is not installed: make executorch installs it")
    borrowed = Path(find_spec("numpy").origin).parents[1]
    program = f"""
import sys; sys.path.append({str(borrowed)!r})
import executorch_ggml; print(executorch_ggml.runtime_path())
"""
    done = start(installation.bin / "python", "-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # A wheel is built without a delegate; an editable installation takes the one that make build has built.
    delegate = ROOT / "build/lib/libexecutorch_ggml_runtime.so" if installation.is_editable else None
    assert done.stdout.strip() == str(delegate)
    assert ("can export programs and not run them" in done.stderr) == (delegate is None)
