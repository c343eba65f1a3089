"""ONNX models on the command line."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path


def _dimension(text: str) -> tuple[str, int]:
    name, equals, number = text.rpartition("=")
    if not equals or not name or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=NUMBER")
    return name, int(number)


def _parser(program: str, **options: object) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(program, **options)
    parser.add_argument(
        "--dimension",
        action="append",
        default=[],
        type=_dimension,
        metavar="NAME=N",
        help="fix a dimension of the model's inputs that is open otherwise",
    )
    return parser


def _write(model: str, graph: str | Path, dimensions: list[tuple[str, int]]) -> str | None:
    """Writes the graph file; the reason where that fails."""
    try:
        from headrace.onnx import convert as write

        write(model, graph, dict(dimensions))
    except (ImportError, OSError, ValueError, RuntimeError, MemoryError) as error:
        return str(error)
    return None


def convert(arguments: list[str]) -> int:
    """`headrace convert model.onnx model.hrg`: the exit status."""
    parser = _parser(
        "headrace convert",
        description="Writes an ONNX model as a graph file, which every other command and interface reads.",
    )
    parser.add_argument("model", help="the ONNX model")
    parser.add_argument("graph", help="graph file to write: .hrg, .webnn or .json")
    given = parser.parse_args(arguments)
    error = _write(given.model, given.graph, given.dimension)
    if error is not None:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    size = Path(given.graph).stat().st_size
    print(f"{given.graph}: {size / 1e6:.1f} MB")
    return 0


def run_converted(program: Path, arguments: list[str]) -> None:
    """Runs the native program on the graph of a .onnx file among the arguments; returns if there is none."""
    at = next((i for i, a in enumerate(arguments) if a.lower().endswith(".onnx") and "=" not in a), None)
    if at is None:
        return
    known, rest = _parser("headrace " + arguments[0], add_help=False).parse_known_args(arguments[1:])
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        model = arguments[at]
        graph = os.path.join(folder, Path(model).stem + ".hrg")
        error = _write(model, graph, known.dimension)
        if error is not None:
            sys.exit(f"headrace: {error}")
        command = [arguments[0], *(graph if a == model else a for a in rest)]
        signal.signal(signal.SIGINT, lambda *_: None)  # the program's to answer; the folder is ours to remove
        status = subprocess.run([program, *command]).returncode
    sys.exit(status if status >= 0 else 128 - status)
