"""The reference of Python's packages, by docstrings and stubs, and of the C++ headers, by their comments."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from source_pages import CODE, outside_of

# Where a package's public names are declared, by module, the first file first; stubs are written by a build.
PYTHON = {
    "headrace": (
        "headrace/__init__.py",
        ("headrace/_core.pyi", "headrace/*.py", "headrace/_llm.pyi"),
    ),
    "headrace.language_model": (
        "headrace/language_model.py",
        ("headrace/_llm.pyi", "headrace/language_model.py"),
    ),
    "webnn": (
        "webnn/__init__.pyi",
        ("webnn/__init__.pyi", "webnn/_ml.py", "webnn/_async.py", "webnn/_hub.py"),
    ),
    "executorch_ggml": (
        "executorch_ggml/__init__.py",
        ("executorch_ggml/partitioner.py", "executorch_ggml/backend.py", "executorch_ggml/_runtime.py"),
    ),
    "headrace.ray": (
        "headrace/ray/__init__.py",
        ("headrace/ray/predictor.py", "headrace/ray/request.py", "headrace/ray/serving.py"),
    ),
}
GENERATED = "This page is written from {} when the site is built.\n"
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def api_pages(root: Path) -> dict[str, str]:
    """Every page of the reference by its path in the site."""
    pages = {f"api/{module}.md": python_page(root, module) for module in PYTHON}
    listed = []
    for header in sorted((root / "include/headrace").glob("*.h*")):
        if declarations(header.read_text(encoding="utf-8")):
            pages[f"api/cpp/{header.name}.md"] = header_page(header)
            listed.append(f"- [headrace/{header.name}](cpp/{header.name}.md)\n")
    pages["api/cpp.md"] = "# C++ headers\n\n" + "".join(listed)
    return pages


def python_page(root: Path, module: str) -> str:
    """A module's public names with their signatures and docstrings."""
    initial, files = PYTHON[module]
    place = root / "python" / initial
    found = definitions(root, files)
    names = public_names(place) if place.exists() else []
    parts = [f"# {module}\n", GENERATED.format("docstrings and type stubs")]
    if place.exists() and (text := ast.get_docstring(ast.parse(place.read_text(encoding="utf-8")))):
        parts.append(f"```text\n{text}\n```\n")
    if not names:
        parts.append(f"`{initial}` is not there: `make build` writes it.\n")
    parts += [described(found[name][0], found[name]) for name in names if name in found]
    return "\n".join(parts)


def public_names(place: Path) -> list[str]:
    """What __all__ lists; of a stub without one, its classes and what it imports under the same name."""
    tree = ast.parse(place.read_text(encoding="utf-8"))
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
        if isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names if alias.asname == alias.name]
        elif isinstance(node, Definition):
            names.append(node.name)
    return sorted(set(names))


def definitions(root: Path, files: tuple[str, ...]) -> dict[str, list[Definition]]:
    """The definitions of the files by name, overloads side by side; an earlier file's win."""
    found: dict[str, list[Definition]] = {}
    for file in (path for pattern in files for path in sorted((root / "python").glob(pattern))):
        here: dict[str, list[Definition]] = {}
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, Definition) and node.col_offset == 0:
                here.setdefault(node.name, []).append(node)
        found = {**here, **found}
    return found


def described(node: Definition, overloads: list[Definition]) -> str:
    """A class with its methods, or a function."""
    if not isinstance(node, ast.ClassDef):
        return f"## `{node.name}`\n\n{signatures(overloads)}\n{docstrings(overloads)}"
    bases = [ast.unparse(base) for base in node.bases]
    head = f"class {node.name}({', '.join(bases)})" if bases else f"class {node.name}"
    parts = [f"## `{node.name}`\n\n```python\n{head}\n```\n\n{docstrings([node])}"]
    members: dict[str, list[Definition]] = {}
    for item in node.body:
        if isinstance(item, Definition) and (item.name == "__init__" or item.name[0] != "_"):
            members.setdefault(item.name, []).append(item)
    for name, items in members.items():
        parts.append(f"### `{node.name}.{name}`\n\n{signatures(items)}\n{docstrings(items)}")
    return "\n".join(parts)


def signatures(items: list[Definition]) -> str:
    """What a call looks like, once for each overload; properties as what they hold."""
    lines = []
    for item in items:
        marks = {ast.unparse(mark) for mark in item.decorator_list}
        if marks & {"property", "cached_property", "functools.cached_property"}:
            lines.append(f"{item.name}: {ast.unparse(item.returns)}" if item.returns else item.name)
            continue
        bare = ast.FunctionDef(item.name, item.args, [ast.Expr(ast.Constant(...))], [], item.returns)
        text = ast.unparse(ast.fix_missing_locations(bare)).removesuffix("...").rstrip().removesuffix(":")
        lines.append(text if len(text) <= 100 else broken(text))
    return "```python\n" + "\n".join(lines) + "\n```\n"


def broken(signature: str) -> str:
    """One parameter a line."""
    begin, depth, parts = signature.index("(") + 1, 0, [""]
    end = signature.rindex(")", 0, signature.rfind("->")) if "->" in signature else signature.rindex(")")
    for sign in signature[begin:end]:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    lines = "".join(f"    {part.strip()},\n" for part in parts)
    return f"{signature[:begin]}\n{lines}{signature[end:]}"


def docstrings(items: list[Definition]) -> str:
    """The paragraphs; each once."""
    texts = dict.fromkeys(filter(None, (ast.get_docstring(item) for item in items)))
    return "".join(f"{as_markdown(text)}\n\n" for text in texts)


def as_markdown(text: str) -> str:
    """Plain text, with code in backticks, as Markdown shows it; what is indented is a list."""
    lines = []
    for line in text.splitlines():
        indented = line.startswith(" ")
        lines.append(f"- {line.strip()}" if indented and line.strip() else line)
    escaped = outside_of(CODE, "\n".join(lines), lambda prose: re.sub(r"([*_<\[\]|\\])", r"\\\1", prose))
    return re.sub(r"(?m)^(?!- )(.*\S.*)\n(?=- )", r"\1\n\n", escaped)


@dataclass
class Declaration:
    """A class, an enumeration or functions at the level of a namespace."""

    name: str
    comment: str
    text: str


def header_page(header: Path) -> str:
    """A header's declarations with their comments."""
    text = header.read_text(encoding="utf-8")
    parts = [f"# headrace/{header.name}\n", GENERATED.format(f"`include/headrace/{header.name}`")]
    for declaration in declarations(text):
        comment = f"{as_markdown(declaration.comment)}\n\n" if declaration.comment else ""
        parts.append(f"## `{declaration.name}`\n\n{comment}```cpp\n{declaration.text}\n```\n")
    return "\n".join(parts)


def declarations(text: str) -> list[Declaration]:
    """What a header declares, in its order. Private members are left out."""
    found: list[Declaration] = []
    comment: list[str] = []
    text = re.sub(r"(?m)^#(?:.*\\\n)*.*$|^namespace detail \{[\s\S]*?^\} *// namespace detail", "", text)
    lines = iter(text.splitlines())
    for line in lines:
        if re.match(r"(//|/\*| \*)", line):
            comment.append(re.sub(r"^(///?|/\*+| \*/?)\s?|\s*\*/$", "", line))
            continue
        if not line.strip() or re.match(
            r"(namespace|inline namespace|extern \"C\"|\}|using namespace)", line
        ):
            comment = []
            continue
        taken = [line]
        while not is_whole("\n".join(taken)):
            taken.append(next(lines))
        declared = without_private("\n".join(taken))
        if not re.match(r"(class|struct|union) \w+;", declared):
            found.append(Declaration(name_of(declared), "\n".join(comment), textwrap.dedent(declared)))
        comment = []
    return found


def is_whole(text: str) -> bool:
    """Whether brackets are closed and the declaration has ended."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\]|\\.)*\"", "", text, flags=re.DOTALL).rstrip()
    if code.count("{") > code.count("}") or code.count("(") > code.count(")"):
        return False
    return code.endswith((";", "}"))


def without_private(text: str) -> str:
    """A class as its users see it."""
    shown, hidden = [], False
    for line in text.splitlines():
        if re.match(r"\s*(private|protected|public):", line):
            hidden = not line.strip().startswith("public")
            if hidden:
                continue
        if line.startswith("}"):
            hidden = False
        if not hidden:
            shown.append(line)
    return re.sub(r"\b(HEADRACE|HEADRACE_WASI_NN|GGML_MLX)_API ", "", "\n".join(shown))


def name_of(declared: str) -> str:
    """What a declaration's heading is."""
    if kind := re.match(r"(?:typedef )?(?:enum class|enum|class|struct|union)\s+(\w+)", declared):
        return kind[1]
    if typed := re.search(r"\}\s*(\w+);\s*$", declared):
        return typed[1]
    if function := re.search(r"(operator\W+|\w+)\s*\(", declared):
        return function[1].strip()
    return re.sub(r"\s*(=.*)?;.*", "", declared, flags=re.DOTALL).split()[-1]
