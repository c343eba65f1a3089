"""tools/stubs.py in the environments that a build gives it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import stubs

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "tools/stubs.py"

IMPORTED = """
import sys
before = set(sys.modules)
import webnn
roots = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(roots - set(sys.stdlib_module_names) - {"headrace", "webnn"}))
"""


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter without packages."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin/python"


def with_path(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_a_build_requires_what_importing_webnn_takes():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(stubs.NEEDED)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    required = {re.match(r"[\w.-]+", line)[0] for line in project["build-system"]["requires"]}
    assert set(stubs.NEEDED) <= required


def test_what_is_missing_is_named(bare_python: Path):
    done = subprocess.run([bare_python, GENERATOR, "--check"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "has no numpy, which importing webnn takes" in done.stderr


def test_requirements_that_the_environment_shows_are_found(bare_python: Path, tmp_path: Path):
    numpy = Path(find_spec("numpy").origin).parent
    for part in (numpy, numpy.with_name("numpy.libs")):
        if part.exists():
            (tmp_path / part.name).symlink_to(part)
    output = tmp_path / "__init__.pyi"
    arguments = [
        "--packages",
        ROOT / "python",
        "--core",
        ROOT / "python/headrace/_core.pyi",
        "--output",
        output,
    ]
    subprocess.run([bare_python, GENERATOR, *arguments], env=with_path(tmp_path), check=True)
    assert output.read_text() == (ROOT / "python/webnn/__init__.pyi").read_text()


def test_the_builds_command_keeps_the_environment(tmp_path: Path):
    commands = subprocess.run(
        ["ninja", "-C", ROOT / "build", "-t", "commands", "webnn_stub"],
        capture_output=True,
        text=True,
        check=True,
    )
    (command,) = (line for line in commands.stdout.splitlines() if GENERATOR.name in line)
    # Python imports this module at its start from wherever the environment leads it.
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'found')!r}, 'w')")
    subprocess.run(command, shell=True, cwd=ROOT / "build", env=with_path(tmp_path), check=True)
    assert (tmp_path / "found").exists()
