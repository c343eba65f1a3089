"""Type stubs name every public method with its parameters."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import headrace
import pytest
import webnn
from headrace._core import signatures

CLASSES = ("MLContext", "MLGraph", "MLGraphBuilder", "MLOperand", "MLTensor")
STUB = Path(webnn.__file__).with_suffix(".pyi")


@pytest.fixture(scope="module")
def stub() -> ast.Module:
    assert STUB.exists(), "the stubs are made by make build"
    return ast.parse(STUB.read_text())


def members(stub: ast.Module, name: str) -> dict[str, ast.FunctionDef]:
    """Functions of a class; aliases lead to what they stand for."""
    (cls,) = (node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == name)
    found = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
    for node in cls.body:
        if isinstance(node, ast.Assign):
            found[node.targets[0].id] = found[node.value.id]
    return found


def parameters(node: ast.FunctionDef) -> list[tuple[str, str, bool]]:
    """Name, kind and whether there is a default."""
    a = node.args
    plain = [*a.posonlyargs, *a.args]
    first = len(plain) - len(a.defaults)
    rows = [(p.arg, "plain", i >= first) for i, p in enumerate(plain)]
    rows += [(a.vararg.arg, "args", False)] if a.vararg else []
    rows += [(p.arg, "keyword", d is not None) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    return rows + ([(a.kwarg.arg, "kwargs", False)] if a.kwarg else [])


KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "plain",
    inspect.Parameter.POSITIONAL_ONLY: "plain",
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}


def real_parameters(function: Any) -> list[tuple[str, str, bool]]:
    if hasattr(function, "__nb_signature__"):
        text = re.sub(r"\\\d+", "None", function.__nb_signature__[0][0])  # defaults stand elsewhere
        (node,) = ast.parse(f"{text}: ...").body
        return parameters(node)
    return [
        (p.name, KINDS[p.kind], p.default is not inspect.Parameter.empty)
        for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_member_is_in_the_stub(stub, name):
    public = {key for key in vars(getattr(webnn, name)) if not key.startswith("_")}
    assert public == {key for key in members(stub, name) if not key.startswith("_")}


@pytest.mark.parametrize("name", CLASSES)
def test_methods_have_their_parameters(stub, name):
    checked = 0
    for key, node in members(stub, name).items():
        member = inspect.getattr_static(getattr(webnn, name), key)
        if (
            isinstance(member, property)
            or key.startswith("__")
            or type(member).__name__ == "getset_descriptor"
        ):
            continue
        function = member.__func__ if isinstance(member, staticmethod) else member
        assert parameters(node) == real_parameters(function), key
        checked += 1
    assert (
        checked >= {"MLOperand": 0, "MLTensor": 1, "MLGraph": 5, "MLContext": 10, "MLGraphBuilder": 95}[name]
    )


def test_operators_show_the_catalogs_types_and_defaults(stub):
    operators = members(stub, "MLGraphBuilder")
    for signature in signatures():
        node = operators[signature.name]
        assert operators[signature.idl] is node
        if signature.name in ("pad", "split"):  # with pywebnn's parameters
            continue
        given = {p.arg: ast.unparse(p.annotation) for p in node.args.args[1:]}
        assert list(given) == [p.name for p in signature.parameters]
        assert all(given[p.name].removesuffix(" | None") in p.type_text for p in signature.parameters)
        assert ast.unparse(node.returns) == ("list[MLOperand]" if signature.returns_list else "MLOperand")
        assert signature.summary in ast.get_docstring(node)
    softmax, conv2d = (ast.unparse(operators[name].args) for name in ("softmax", "conv2d"))
    assert softmax == "self, x: MLOperand, axis: int, *, label: str=''"
    assert "input_layout: str | None='nchw'" in conv2d


def test_everything_that_the_package_exports_is_in_the_stub(stub):
    names = {node.name for node in stub.body if isinstance(node, ast.ClassDef)}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
    assert set(webnn.__all__) <= names


def test_the_native_module_has_a_stub_and_both_packages_are_marked_as_typed():
    folder = Path(headrace.__file__).parent
    native = ast.parse((folder / "_core.pyi").read_text())
    names = {getattr(node, "name", "") for node in native.body}
    assert {"MLGraph", "GraphView", "view", "Executable", "Session", "compile"} <= names
    assert (folder / "py.typed").exists() and STUB.with_name("py.typed").exists()


def test_the_module_of_language_models_has_a_stub_with_every_public_member():
    native = pytest.importorskip("headrace._llm", reason="language models are not built")
    stub = ast.parse((Path(headrace.__file__).parent / "_llm.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    public = {name: cls for name, cls in vars(native).items() if isinstance(cls, type)}
    assert set(classes) == set(public) and "LanguageModel" in classes
    for name, cls in public.items():
        stubbed = {node.name for node in classes[name].body if isinstance(node, ast.FunctionDef)}
        assert {member for member in vars(cls) if member[0] != "_"} <= stubbed, name
