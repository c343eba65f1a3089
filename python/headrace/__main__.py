"""`headrace` and `python -m headrace`: the native program, from the wheel or from the checkout's build.

Both are one program. What is Python in it is `headrace wasm`, which runs guests under wasmtime's package; the
native program, started by itself, hands that over to here (src/cli/python.h).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ._built import built_file


def native_program() -> Path:
    """The package's or the checkout's."""
    try:
        return built_file("bin/headrace")
    except FileNotFoundError as error:
        sys.exit(f"headrace: {error}")


def main() -> None:
    command, rest = sys.argv[1:2], sys.argv[2:]
    if command == ["wasm"]:
        from headrace.wasm import main as run_wasm

        sys.exit(run_wasm(rest))
    program = native_program()
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)  # which answers what is Python's
    os.execv(program, ["headrace", *sys.argv[1:]])


if __name__ == "__main__":
    main()
