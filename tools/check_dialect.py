"""Reports identifiers that other sources would spell in another way: one dialect for one code.

C's types have C++'s namespace, constants of a namespace are kName, and words are American, as in the
standards that the names come from (WebNN, ONNX, ATen), also in files' names. Comments, strings and
documents are free.
"""

import io
import re
import tokenize

CPP_FOLDERS = ("bench", "include", "node/src", "python/src", "src", "tests")
PYTHON_FOLDERS = ("bench", "examples", "python", "tests", "tools")
JAVASCRIPT_FOLDERS = ("bench", "examples", "node/lib", "node/web", "tests", "tools")
# Kernels write size_t as Highway does, whose names they use without a namespace.
KERNELS = ("src/kernels/", "tests/kernels/")
# Read by compilers of C and of Metal, too, which have no namespace std.
SHARED_HEADERS = (
    "wasi_nn_backend.h",
    "wasi_nn_llamacpp.h",
    "wasi_nn_guests.h",
    "write_unit.h",
    "upstream_library.h",
)
WORDS = (
    "analys(?=e)",
    "behaviour",
    "cent(?=red?s?(?![a-z]))",
    "colour",
    "fla?vour|favour|honour",
    "(?:general|initial|maxim|minim|modern|normal|optim|organ|orthogonal|parallel|quant|random|recogn|serial|special"
    "|summar|synchron|token|util|vector)is(?=e|i(?!s|t)|a)",
    "label(?=led(?!by))",
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
TEMPLATE = re.compile(r"`(?:\\.|[^`\\])*`", re.DOTALL)
# A constant of a namespace begins its line: what a namespace holds is not indented. A function has arguments.
CONSTANT = re.compile(
    r"^(?:inline |static )*(?:constexpr|constinit|const) [\w:<>,*& ]*[\w>*&] \*?(?P<name>\w+)(?:\[\w*\])?"
    r"(?: = |\{|;)"
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
        constant = CONSTANT.match(line)
        if constant and not re.match(r"k[A-Z]|is_|has_", constant["name"]):
            yield number, f"{constant['name']} is a constant of a namespace; write kName"
        yield from british_names(number, line)


def british_names(number, line):
    for name in re.findall(r"[A-Za-z_]\w*", line):
        if BRITISH.search(name):
            yield number, f"{name} is spelled the British way"


def javascript_findings(source):
    without_templates = TEMPLATE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    for number, line in enumerate(without_text(without_templates), 1):
        yield from british_names(number, line)


def python_findings(source):
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and BRITISH.search(token.string):
            yield token.start[0], f"{token.string} is spelled the British way"


def findings(name, source):
    """Pairs of a line and what is wrong there, in the file of that name."""
    if name.endswith(".py"):
        return python_findings(source)
    if name.endswith((".js", ".mjs")):
        return javascript_findings(source)
    return cpp_findings(source, is_kernel=name.startswith(KERNELS))


def check_tree(root):
    """One line for each finding."""
    lines = []
    for folders, suffixes in (
        (CPP_FOLDERS, (".cpp", ".h")),
        (PYTHON_FOLDERS, (".py",)),
        (JAVASCRIPT_FOLDERS, (".js", ".mjs")),
    ):
        paths = (path for folder in folders for path in (root / folder).rglob("*"))
        for path in sorted(p for p in paths if p.suffix in suffixes and p.name not in SHARED_HEADERS):
            name = path.relative_to(root).as_posix()
            if BRITISH.search(path.name):
                lines.append(f"{name}: the file's name is spelled the British way")
            found = findings(name, path.read_text(encoding="utf-8"))
            lines += [f"{name}:{number}: {what}" for number, what in found]
    return lines
