"""Programs on the pages run and print what the pages say.

A page is one session in an empty folder: its Python blocks are one program, its console blocks go to a shell,
and a block with a title is a file. A block of output after a Python block is what it prints. Below a comment
`measured` words are compared, and numbers may be others.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from published_minilm import write_minilm

ROOT = Path(__file__).resolve().parents[2]
START = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs/start").glob("*.md"))
MODELS = ("docs/language-models.md", "docs/serving.md")
GUIDES = (
    "docs/executorch.md",
    "docs/gallery.md",
    "docs/graph-files.md",
    "docs/guests.md",
    "docs/node.md",
    "docs/onnx.md",
    "docs/onnxruntime.md",
    "docs/sentence-embeddings.md",
    "docs/webnn.md",
    *MODELS,
)
PAGES = ("README.md", "node/README.md", *GUIDES, *START)
BLOCK = re.compile(
    r"^(?P<measured><!-- measured -->\n\n)?"
    r"```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$"
    r"(?:\n\n```\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
# That docs/start/onnx.md makes.
NEEDS_MODEL = ("README.md", "node/README.md", "docs/node.md", "docs/onnx.md", "docs/onnxruntime.md")
LEAVE_NOTHING = "trap 'jobs -p | xargs -r kill 2>/dev/null || true' EXIT"
NODE = ROOT / "node/native/headrace.node"


@dataclass
class Block:
    kind: str
    title: str
    text: str
    output: str
    measured: bool

    def lacks(self) -> str:
        """What this machine or build has not, without which the block cannot run."""
        talks = re.search(r"LanguageModel|HttpApi|headrace (chat|serve|bench-llm|wasm)", self.text)
        if talks and not find_spec("headrace._llm"):
            return "language models are not built: llama.cpp is not set up"
        if "headrace wasm" in self.text and not find_spec("wasmtime"):
            return "headrace wasm needs the package wasmtime"
        if "executorch" in self.text and self.kind == "python" and not find_spec("executorch"):
            return "ExecuTorch is not installed: make executorch installs it"
        compares = re.search(r"^\$ headrace bench (?!.*--peer none)", self.text, re.MULTILINE)
        if compares and not find_spec("onnxruntime"):
            return "headrace bench compares with the package onnxruntime"
        if self.kind == "console":
            if re.search(r"^\$ node ", self.text, re.MULTILINE) and not NODE.exists():
                return "the npm package is not built: make node"
            if "python client.py" in self.text and not find_spec("openai"):
                return "the client needs the package openai"
            for program in ("cmake", "curl"):
                if program in self.text and not shutil.which(program):
                    return f"there is no {program} here"
        return ""


def blocks(page: str) -> Iterator[Block]:
    for found in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        title, output = found["title"] or "", found["output"] or ""
        yield Block(found["kind"], title, found["text"], output, bool(found["measured"]))


def commands_and_output(text: str) -> tuple[str, str]:
    """The commands of a console block, which go on while a quotation or a backslash is open, and the rest."""
    commands: list[str] = []
    output: list[str] = []
    for line in text.splitlines():
        if commands and not output and (commands[-1].count("'") % 2 or commands[-1].endswith("\\")):
            commands[-1] += f"\n{line}"
        elif line.startswith("$ "):
            commands.append(line.removeprefix("$ "))
        else:
            output.append(line)
    return "\n".join(commands), "\n".join(output)


def comparable(text: str, measured: bool) -> str:
    text = text.strip()
    if not measured:
        return text
    text = re.sub(r"[ \t]+", " ", re.sub(r"\d[\d.,]*", "0", text))
    return text.replace("0 threads", "0 thread")


def free_port() -> str:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return str(chosen.getsockname()[1])


def in_shell(block: Block, folder: Path, port: str) -> str:
    """What the commands print. They see the checkout as a reader's do."""
    commands, _ = commands_and_output(block.text)
    path = os.pathsep.join([str(ROOT / "build/bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", f"set -eo pipefail\n{LEAVE_NOTHING}\n{re.sub('808[01]', port, commands)}"],
        cwd=folder,
        env={
            **os.environ,
            "CHECKOUT": str(ROOT),
            "PATH": path,
            "HEADRACE_PYTHON": sys.executable,
            "HEADRACE_TUNING": str(folder / "tuning"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_python(block: Block, page: str, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        exec(compile(block.text, page, "exec"), names)
    return printed.getvalue()


def write_adapter(model: Path, path: Path) -> None:
    """A LoRA adapter of a model, which changes next to nothing."""
    gguf = pytest.importorskip("gguf", reason="writing adapter.gguf needs the package gguf")
    tensors = {tensor.name: tensor.shape for tensor in gguf.GGUFReader(model).tensors}
    columns, rows = map(int, tensors["blk.0.ffn_down.weight"])
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 1.0)
    writer.add_tensor("blk.0.ffn_down.weight.lora_a", np.full((1, columns), 1e-6, np.float32))
    writer.add_tensor("blk.0.ffn_down.weight.lora_b", np.full((rows, 1), 1e-6, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def lowerings(request: pytest.FixtureRequest) -> Iterator[None]:
    """A page that adds a lowering adds it to no test that follows."""
    text = (ROOT / request.node.callspec.params["page"]).read_text(encoding="utf-8")
    if "@lowers(" not in text or not find_spec("executorch"):
        yield
        return
    from executorch_ggml.translate import LOWERINGS

    before = dict(LOWERINGS)
    yield
    LOWERINGS.clear()
    LOWERINGS.update(before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_pages_have_programs_with_their_output():
    assert len(START) == 5
    for page in PAGES:
        ran = [block for block in blocks(page) if block.kind in ("python", "console")]
        shown = [block.output or commands_and_output(block.text)[1] for block in ran]
        assert any(shown), page


@pytest.mark.parametrize("number", range(2))
def test_what_the_page_of_cpp_shows_compiles(number: int, tmp_path: Path):
    """As a function's body, behind what it includes; the public headers alone are looked at."""
    text = [block.text for block in blocks("docs/cpp.md") if block.kind == "cpp"][number]
    includes, body = (re.findall(form, text, re.MULTILINE) for form in (r"^#.*", r"^(?!#).*"))
    source = tmp_path / "shown.cpp"
    source.write_text("\n".join(["#include <vector>", *includes, "int main() {", *body, "}\n"]))
    compiler = shutil.which("g++") or pytest.skip("there is no g++ here")
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_every_page_of_the_start_sets_up_in_one_way_and_ends_with_a_number():
    setups = []
    for page in START:
        text = (ROOT / page).read_text(encoding="utf-8")
        # after the first line, which may bring PyTorch
        setup = re.compile(r"^```sh\nmake (?:ggml-dev|executorch) .*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
        setups += setup.findall(text)
        *_, last = (block for block in blocks(page) if block.measured)
        assert re.search(r"\d", last.output or commands_and_output(last.text)[1]), page
    assert len(set(setups)) == 1 and len(setups) == len(START)


@pytest.mark.usefixtures("lowerings")
@pytest.mark.parametrize("page", PAGES)
def test_programs_print_what_the_page_says(page: str, folder: Path):
    names: dict[str, object] = {"__name__": "__main__"}
    port = free_port()
    if page not in START:
        for name in ("examples", "models", "node"):
            (folder / name).symlink_to(ROOT / name)
    if page == "node/README.md":
        (folder / "node_modules").mkdir()
        (folder / "node_modules/headrace").symlink_to(ROOT / "node")
    if page in (*MODELS, "docs/node.md", "node/README.md"):
        (folder / "model.gguf").symlink_to(ROOT / "models/tiny-chat-q8_0.gguf")
    if page in MODELS:
        write_adapter(ROOT / "models/tiny-chat-q8_0.gguf", folder / "adapter.gguf")
    if page == "docs/sentence-embeddings.md":
        write_minilm(folder / "all-MiniLM-L6-v2")
    lacking = ""
    for block in blocks(page):
        if not block.title and block.kind not in ("python", "console"):
            continue
        if lack := block.lacks():
            if page != "README.md":  # whose blocks do without one another
                pytest.skip(lack)
            lacking = lack
            continue
        if page in NEEDS_MODEL and "model.onnx" in block.text and not (folder / "model.onnx").exists():
            pytest.importorskip("onnx", reason="writing model.onnx needs the package onnx")
            makes = next(made for made in blocks("docs/start/onnx.md") if made.kind == "python")
            in_python(makes, page, {})
        if block.title:
            (folder / block.title).write_text(re.sub("808[01]", port, block.text))
            continue
        if block.kind == "console":
            printed, expected = in_shell(block, folder, port), commands_and_output(block.text)[1]
        else:
            printed, expected = in_python(block, page, names), block.output
        if expected:
            assert comparable(printed, block.measured) == comparable(expected, block.measured)
    if lacking:
        pytest.skip(lacking)
