"""The packages headrace and webnn stand apart: each works where the other cannot be imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2] / "python"
NEUTRAL = (
    "headrace._core",
    "headrace._argument_errors",
    "headrace._arrays",
    "headrace._onnx_export",
)  # what webnn may take from headrace

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if {condition}:
            raise ModuleNotFoundError(f"the test blocks {{name}}", name=name)

sys.meta_path.insert(0, Blocked())
"""

HEADRACE_ALONE = (
    BLOCK.format(condition="name.split('.')[0] == 'webnn'")
    + """
import numpy as np
import headrace
from headrace._core import GraphWriter

writer = GraphWriter()
writer.output("y", writer.op("relu", [writer.input("x", "f32", [2])])[0])
headrace.save_graph(writer.finish(), sys.argv[1] + "/graph.webnn")
model = headrace.load(sys.argv[1] + "/graph.webnn", device="cpu")
assert model(np.array([-1, 1], np.float32))["y"].tolist() == [0, 1]

import onnx.parser

text = '<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { y = Relu(x) }'
model = headrace.load(onnx.parser.parse_model(text), device="cpu")
assert model([-1.0, 2.0])["y"].tolist() == [0, 2]
model.save(sys.argv[1] + "/graph.json")
assert "webnn" not in sys.modules
"""
)

WEBNN_ALONE = (
    BLOCK.format(condition=f"name.startswith('headrace.') and not name.startswith({NEUTRAL})")
    + """
import numpy as np
import webnn

context = webnn.ML().create_context(accelerated=False)
builder = context.create_graph_builder()
x = builder.input("x", [2], "float32")
graph = builder.build({"y": builder.relu(builder.add(x, builder.constant(np.float32(1))))})
assert context.compute(graph, {"x": np.array([-2, 1], np.float32)})["y"].tolist() == [0, 2]
graph.save(sys.argv[1] + "/graph.json")
webnn.MLGraph.load(sys.argv[1] + "/graph.json")
graph.debug_operand(0)
context.convert_to_onnx(graph, sys.argv[1] + "/graph.onnx")
"""
)


@pytest.mark.parametrize("program", [HEADRACE_ALONE, WEBNN_ALONE], ids=["headrace", "webnn"])
def test_each_package_works_without_the_other(program: str, tmp_path) -> None:
    command = [sys.executable, "-c", program, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def imported(path: Path) -> set[str]:
    """Every module that a file imports, also within functions, by its absolute name."""
    names = set()
    package = ".".join(path.relative_to(PACKAGES).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return names


def test_no_module_of_headrace_imports_webnn() -> None:
    found = {
        str(path.relative_to(PACKAGES))
        for path in (PACKAGES / "headrace").rglob("*.py")
        if any(name.split(".")[0] == "webnn" for name in imported(path))
    }
    assert not found


def test_webnn_imports_neutral_modules_of_headrace_alone() -> None:
    paths = list((PACKAGES / "webnn").rglob("*.py"))
    taken = {name for path in paths for name in imported(path) if name.split(".")[0] == "headrace"}
    assert "headrace._core" in taken
    assert {name for name in taken if not f"{name}.".startswith(tuple(f"{n}." for n in NEUTRAL))} == set()
