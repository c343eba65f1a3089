"""`python -m headrace.onnxruntime [-m MODULE | -c CODE | SCRIPT]`: a program that imports onnxruntime."""

from __future__ import annotations

import os
import runpy
import sys

from .answering import answer_imports, answer_in_children

_USAGE = """usage: python -m headrace.onnxruntime (-m MODULE | -c CODE | SCRIPT) [ARGUMENTS]

Runs a Python program as python itself does, with Headrace where it imports onnxruntime.

Examples:
    python -m headrace.onnxruntime app.py ARGUMENTS
    python -m headrace.onnxruntime -m magika photo.png

Exit status: that of the program, 2 the command line is wrong"""


def main(arguments: list[str]) -> None:
    is_word = arguments[:1] in (["-m"], ["-c"])
    if not arguments or (is_word and len(arguments) < 2) or arguments[0] in ("-h", "--help"):
        is_asked = arguments[:1] in (["-h"], ["--help"])
        print(_USAGE, file=sys.stdout if is_asked else sys.stderr)
        sys.exit(0 if is_asked else 2)
    answer_imports()
    answer_in_children(os.environ)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
