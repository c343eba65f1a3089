#!/usr/bin/env python3
"""Writes the pages of docs/ that are made from tables of the program: `make docs`.

They are tracked, so that links to them lead somewhere; tests/tools/test_reference_pages.py compares each with
what is written here.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/bin/headrace"
LANGUAGE_MODELS = ROOT / "build/lib/libheadrace_llm.so"
NO_LANGUAGE_MODELS = "this build, on the system's ggml, has no language models"
NO_EXECUTORCH = "ExecuTorch is not installed: make executorch installs it"


@dataclass(frozen=True)
class Page:
    """A page in docs/: the command that prints it, and why it cannot be made here, if so."""

    name: str
    command: tuple
    obstacle: str = ""

    @property
    def path(self):
        return ROOT / "docs" / self.name

    def text(self):
        options = {"stdout": subprocess.PIPE, "text": True, "encoding": "utf-8", "check": True}
        return subprocess.run(self.command, cwd=ROOT, **options).stdout


@dataclass(frozen=True)
class CommandLine(Page):
    """The page on the command line: what is written by hand, and below it the help of every command."""

    HEADING = "\n## Options\n"

    def text(self):
        written = self.path.read_text(encoding="utf-8").partition(self.HEADING)[0]
        parts = [written + self.HEADING]
        for command in re.findall(r"^  ([a-z][a-z-]*)", self.help(), re.MULTILINE):
            parts.append(f"### headrace {command}\n\n```text\n{self.help(command)}\n```\n")
        return "\n".join(parts)

    def help(self, *command):
        """What --help prints, without the program's place on this machine."""
        environment = {**os.environ, "COLUMNS": "110", "HEADRACE_PYTHON": sys.executable}
        options = {"stdout": subprocess.PIPE, "text": True, "encoding": "utf-8", "check": True}
        arguments = (*self.command, *command, "--help")
        shown = subprocess.run(arguments, cwd=ROOT, env=environment, **options).stdout
        lines = (line.rstrip() for line in shown.replace(str(self.command[0]), "headrace").splitlines())
        return "\n".join(lines).strip()


def pages():
    """Every reference page, with what this machine lacks for it."""
    no_language = "" if LANGUAGE_MODELS.exists() else NO_LANGUAGE_MODELS
    no_executorch = "" if find_spec("executorch") else NO_EXECUTORCH
    return [
        Page("implementation-status.md", (PROGRAM, "ops", "--webnn")),
        Page("parameters.md", (PROGRAM, "parameters"), no_language),
        CommandLine("command-line.md", (PROGRAM,), no_language),
        Page("onnx-operators.md", (sys.executable, "tools/onnx_operators_page.py")),
        Page("onnxruntime-options.md", (sys.executable, "tools/onnxruntime_options_page.py")),
        Page("llama-server-flags.md", (PROGRAM, "serve", "--llama-server-flags"), no_language),
        Page("executorch-ops.md", (sys.executable, "-m", "executorch_ggml.coverage"), no_executorch),
    ]


def main():
    for page in pages():
        if page.obstacle:
            print(f"docs/{page.name} stays as it is: {page.obstacle}")
        else:
            page.path.write_text(page.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
