"""`headrace` and `python -m headrace`: the native program, from the wheel or from the checkout's build.

Both are one program. What reads ONNX models is Python: `headrace convert`, and a `.onnx` file as the graph of
run, bench or inspect becomes a graph file first. So is `headrace wasm`, which runs guests under wasmtime's
package. The native program, started by itself, hands these over to here (src/cli/python.h).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ._built import built_file


def native_program() -> Path:
    """The one that handed over to Python, or else the package's or the checkout's."""
    if os.environ.get("HEADRACE_PROGRAM"):
        return Path(os.environ["HEADRACE_PROGRAM"])
    try:
        return built_file("bin/headrace")
    except FileNotFoundError as error:
        sys.exit(f"headrace: {error}")


def main() -> None:
    command, rest = sys.argv[1:2], sys.argv[2:]
    if command == ["wasm"]:
        from headrace.wasm import main as run_wasm

        sys.exit(run_wasm(rest))
    if command == ["convert"]:
        from headrace._cli.onnx import convert

        sys.exit(convert(rest))
    program = native_program()
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)  # which answers what is Python's
    if command and command[0] in ("run", "bench", "inspect"):
        from headrace._cli.onnx import run_converted

        run_converted(program, sys.argv[1:])
    os.execv(program, ["headrace", *sys.argv[1:]])


if __name__ == "__main__":
    main()
