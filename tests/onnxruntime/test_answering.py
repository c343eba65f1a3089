"""Programs whose `import onnxruntime` headrace.onnxruntime answers, and the processes that they start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import headrace
import pytest
from small_models import ADD

HERE = str(Path(headrace.__file__).parent / "onnxruntime")


def ran(*arguments: Any, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace.onnxruntime", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def said(*arguments: Any, folder: Path | None = None) -> list[str]:
    done = ran(*arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_exceptions_can_be_named_by_the_package_alone() -> None:
    lines = said(
        "-c",
        """
import onnxruntime
try:
    onnxruntime.InferenceSession("/nowhere/model.onnx")
except onnxruntime.capi.onnxruntime_pybind11_state.NoSuchFile as error:
    print(type(error).__module__)
print(onnxruntime.capi.onnxruntime_inference_collection.InferenceSession is onnxruntime.InferenceSession)
""",
    )
    assert lines == ["onnxruntime.capi.onnxruntime_pybind11_state", "True"]


def test_every_way_to_import_it_finds_headraces() -> None:
    lines = said(
        "-c",
        """
import onnxruntime, sys
import onnxruntime.capi.onnxruntime_pybind11_state as state
from onnxruntime.capi._pybind_state import InvalidArgument
from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
import headrace.onnxruntime, headrace.onnxruntime.errors, importlib
print(onnxruntime.__file__, state.__file__, sep="\\n")
print(onnxruntime is headrace.onnxruntime, InferenceSession is onnxruntime.InferenceSession)
print(state.InvalidArgument is InvalidArgument is headrace.onnxruntime.errors.InvalidArgument)
print(importlib.import_module("onnxruntime.capi") is headrace.onnxruntime.capi)
print(onnxruntime.__spec__.name, state.__spec__.name)
""",
    )
    assert lines[0] == f"{HERE}/__init__.py" and lines[1].startswith(f"{HERE}/capi/")
    assert lines[2:5] == ["True True", "True", "True"]
    assert lines[5] == "headrace.onnxruntime headrace.onnxruntime.capi.onnxruntime_pybind11_state"


def test_those_who_look_whether_it_is_there_find_it() -> None:
    lines = said(
        "-c",
        """
import importlib.metadata, importlib.util
print(*(importlib.util.find_spec(name) is not None for name in ("onnxruntime", "onnxruntime.capi")))
print(importlib.metadata.version("onnxruntime"), importlib.metadata.version("numpy") != "")
import onnxruntime
print(onnxruntime.__version__)
""",
    )
    assert lines[0] == "True True"
    assert lines[1].split() == [lines[2], "True"]


def test_errors_are_caught_by_the_names_of_onnxruntime() -> None:
    assert said(
        "-c",
        f"""
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, NoSuchFile
for call in (lambda: onnxruntime.InferenceSession("nowhere.onnx"),
             lambda: onnxruntime.InferenceSession({ADD!r}).run(["q"], {{n: [[1, 2, 3.0]] for n in "xy"}})):
    try:
        call()
    except (InvalidArgument, NoSuchFile) as error:
        print(type(error).__module__, type(error).__name__)
""",
    ) == [f"onnxruntime.capi.onnxruntime_pybind11_state {name}" for name in ("NoSuchFile", "InvalidArgument")]


def test_what_is_not_here_is_no_module() -> None:
    done = ran("-c", "import onnxruntime.quantization")
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'onnxruntime.quantization': Headrace answers" in done.stderr


def test_a_script_runs_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("HERE = 'beside'")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside, onnxruntime\n"
        "print(__name__, sys.argv[1:], beside.HERE, onnxruntime.get_build_info()[:8])\nsys.exit(7)"
    )
    done = ran(script, "-m", "--flag")
    assert (done.returncode, done.stdout.strip()) == (7, "__main__ ['-m', '--flag'] beside Headrace")


def test_a_module_runs_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program/__main__.py").write_text(
        "import sys, onnxruntime as o; print(sys.argv[1:], o.get_build_info()[:8])"
    )
    assert said("-m", "program", "-c", "x", folder=tmp_path) == ["['-c', 'x'] Headrace"]


def test_processes_that_a_program_starts_have_it_too(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
import multiprocessing, subprocess, sys

def info(_):
    import onnxruntime.capi.onnxruntime_pybind11_state as state
    import onnxruntime
    return onnxruntime.get_build_info()[:8], state.Fail.__name__

if __name__ == "__main__":
    code = "import onnxruntime as o; print(o.get_build_info()[:8])"
    print(subprocess.check_output([sys.executable, "-c", code], text=True), end="")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(*pool.map(info, [0])[0])
""")
    assert said(script) == ["Headrace", "Headrace Fail"]


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["-m"], 2), (["--help"], 0)])
def test_what_is_no_program_is_told_how_to_call_it(arguments: list[str], code: int) -> None:
    done = ran(*arguments)
    assert done.returncode == code
    assert "usage: python -m headrace.onnxruntime (-m MODULE" in (done.stderr if code else done.stdout)


def test_an_import_that_came_before_is_not_replaced() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import onnxruntime\nfrom headrace.onnxruntime.answering import answer_imports\nanswer_imports()",
        ],
        capture_output=True,
        text=True,
    )
    assert "RuntimeError: onnxruntime is imported already, from " in done.stderr


def test_programs_may_be_written_for_headrace() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import headrace.onnxruntime as onnxruntime, sys\n"
            "print(onnxruntime.get_device(), 'onnxruntime' in sys.modules, 'onnx' in sys.modules)",
        ],
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["CPU", "False", "False"], done.stderr
