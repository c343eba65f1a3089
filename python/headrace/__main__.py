"""`headrace` and `python -m headrace`: the native program, from the wheel or from the checkout's build.

`headrace wasm` is Python: it runs guests under wasmtime's Python package. So is what reads ONNX models:
`headrace convert`, and a `.onnx` file as the graph of run, bench or inspect becomes a graph file first.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    if sys.argv[1:2] == ["wasm"]:
        from headrace.wasm import main as run_wasm

        sys.exit(run_wasm(sys.argv[2:]))
    if sys.argv[1:2] == ["convert"]:
        from headrace._cli.onnx import convert

        sys.exit(convert(sys.argv[2:]))
    package = Path(__file__).resolve().parent
    program = package / "bin/headrace"
    if not program.exists():
        program = package.parents[1] / "build/bin/headrace"
    if not program.exists():
        sys.exit(f"headrace: {program} does not exist; make build compiles it")
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)  # bench asks it for ONNX Runtime
    if sys.argv[1:2] and sys.argv[1] in ("run", "bench", "inspect"):
        from headrace._cli.onnx import run_converted

        run_converted(program, sys.argv[1:])
    os.execv(program, ["headrace", *sys.argv[1:]])


if __name__ == "__main__":
    main()
