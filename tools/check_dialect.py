"""Reports identifiers that other sources would spell in another way: one dialect for one code.

C's types have C++'s namespace, and words are American, as in the standards that the names
come from (WebNN, ONNX, ATen). Comments, strings and documents are free.
"""

import io
import re
import tokenize

CPP_FOLDERS = ("bench", "include", "node/src", "python/src", "src", "tests")
PYTHON_FOLDERS = ("bench", "examples", "python", "tests", "tools")
# Kernels write size_t as Highway does, whose names they use without a namespace.
KERNELS = ("src/kernels/", "tests/kernels/")
# Read by compilers of C and of Metal, too, which have no namespace std.
SHARED_HEADERS = ("wasi_nn_backend.h", "wasi_nn_llamacpp.h", "wasi_nn_guests.h", "write_unit.h")
WORDS = (
    "analys(?=e)",
    "behaviour",
    "cent(?=red?s?(?![a-z]))",
    "colour",
    "(?:initial|maxim|minim|normal|optim|organ|quant|recogn|serial|summar|synchron|util)is(?=e|i(?!s)|a)",
    "licence",
    "neighbour",
)
BRITISH = re.compile("|".join(WORDS), re.IGNORECASE)
# What is no code, and then names; raw strings first, whose ends are their own.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<end>[^(\s"]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|'
    r"(?<!\d)'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
BARE = re.compile(r"(?<![\w:.>])(?:size_t|ptrdiff_t|u?int(?:8|16|32|64)_t)\b")


def without_text(source):
    """The source with blanks for comments and strings, lines kept; lines of the preprocessor are empty."""
    blank = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    return ["" if line.lstrip().startswith("#") else line for line in blank.split("\n")]


def cpp_findings(source, is_kernel=False):
    for number, line in enumerate(without_text(source), 1):
        for found in () if is_kernel else BARE.finditer(line):
            yield number, f"{found[0]} has no namespace; write std::{found[0]}"
        for name in re.findall(r"[A-Za-z_]\w*", line):
            if BRITISH.search(name):
                yield number, f"{name} is spelled the British way"


def python_findings(source):
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and BRITISH.search(token.string):
            yield token.start[0], f"{token.string} is spelled the British way"


def check_tree(root):
    """One line for each finding."""
    lines = []
    for folders, suffixes in ((CPP_FOLDERS, (".cpp", ".h")), (PYTHON_FOLDERS, (".py",))):
        paths = (path for folder in folders for path in (root / folder).rglob("*"))
        for path in sorted(p for p in paths if p.suffix in suffixes and p.name not in SHARED_HEADERS):
            name = path.relative_to(root).as_posix()
            source = path.read_text(encoding="utf-8")
            is_kernel = name.startswith(KERNELS)
            found = python_findings(source) if path.suffix == ".py" else cpp_findings(source, is_kernel)
            lines += [f"{name}:{number}: {what}" for number, what in found]
    return lines
