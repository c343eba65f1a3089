"""`headrace` and `python -m headrace`: the native program, from the wheel or from the checkout's build.

`headrace wasm` is Python: it runs guests under wasmtime's Python package. So is what reads ONNX models:
`headrace convert`, and a `.onnx` file as the graph of run, bench or inspect becomes a graph file first.
"""

from __future__ import annotations

import os
import sys

from ._built import built_file


def main() -> None:
    if sys.argv[1:2] == ["wasm"]:
        from headrace.wasm import main as run_wasm

        sys.exit(run_wasm(sys.argv[2:]))
    if sys.argv[1:2] == ["convert"]:
        from headrace.onnx_program import convert

        sys.exit(convert(sys.argv[2:]))
    try:
        program = built_file("bin/headrace")
    except FileNotFoundError as error:
        sys.exit(f"headrace: {error}")
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)  # bench asks it for ONNX Runtime
    if sys.argv[1:2] and sys.argv[1] in ("run", "bench", "inspect"):
        from headrace.onnx_program import run_converted

        run_converted(program, sys.argv[1:])
    os.execv(program, ["headrace", *sys.argv[1:]])


if __name__ == "__main__":
    main()
