#!/usr/bin/env python3
"""Checks who includes whom and reports every violation.

The rule is src/CMakeLists.txt: a folder of src includes itself and what its line there lists. A folder with
subfolders has their order there, and none includes a later one.
"""

import re
import sys
from pathlib import Path

DECLARATION = re.compile(r"^\s*headrace_folder(?:_elsewhere)?\(([^)]*)\)", re.MULTILINE)
ROOMS = re.compile(r"^\s*headrace_rooms\(([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = (".h", ".hpp", ".cpp", ".cu", ".inc")
TOPS = ("src", "include", "python/src")

# Headers of a library, and the targets that bring them: a folder whose line lists none of those does without.
LIBRARIES = [
    ("ggml", re.compile(r"(.*/)?(ggml[\w-]*|gguf)\.h"), {"ggml::ggml", "headrace_llama_cpp"}),
    ("llama.cpp", re.compile(r"(.*/)?llama[\w-]*\.h"), {"headrace_llama_cpp"}),
    ("llama.cpp's common library", re.compile(r"common/.*"), {"headrace_llama_cpp"}),
    ("Highway", re.compile(r"hwy/.*"), {"hwy::hwy"}),
    ("nlohmann's JSON", re.compile(r"nlohmann/.*"), {"nlohmann_json::nlohmann_json"}),
]
# The only folder that may list them, whatever CMake says.
OWNERS = {"headrace_llama_cpp": "llm"}
# These may not even be reached by way of another's header: what they define would be used unseen.
NOT_EVEN_REACHED = {"llama.cpp's common library"}

# Outputs of the build, and the folder that uses each.
GENERATED = {
    "ggml_ir_generated.h": "ir",
    "op_catalog_includes.inc": "ops",
    "op_catalog_rows.inc": "ops",
    "op_names.inc": "ops",
    "composition_includes.inc": "passes",
    "composition_rows.inc": "passes",
    "pass_includes.inc": "passes",
    "pass_rows.inc": "passes",
    "onnx_operator_includes.inc": "doors/onnx",
    "onnx_operator_rows.inc": "doors/onnx",
}

# The public headers of a ggml backend hand out ggml's own types.
PUBLIC_WITH_GGML = {"include/headrace/ggml-mlx.h", "include/headrace/ggml-mlx.hpp"}


def declared(text):
    """Folder of src: the folders and targets that its line in CMake lists, in the order of the lines."""
    return calls(DECLARATION, text)


def calls(function, text):
    """The words of each call of a function of CMake, without its comments, by the first one."""
    lines = (line.split("#")[0] for line in text.splitlines())
    words = (match[1].split() for match in function.finditer("\n".join(lines)))
    return {first: rest for first, *rest in words}


def library_of(target):
    return next((library for library in LIBRARIES if library[1].fullmatch(target)), None)


class Tree:
    """The sources below a root, and what each includes: (line number, whether in quotes, target)."""

    def __init__(self, root):
        text = (root / "src/CMakeLists.txt").read_text()
        self.listed = declared(text)
        self.rooms = calls(ROOMS, text)
        self.includes = {}
        for path in sorted(path for top in TOPS for path in (root / top).rglob("*")):
            if path.suffix in SOURCES:
                lines = enumerate(path.read_text().splitlines(), 1)
                matches = ((number, INCLUDE.match(line)) for number, line in lines)
                self.includes[path.relative_to(root).as_posix()] = [
                    (number, match[1] == '"', match[2]) for number, match in matches if match
                ]

    def folder_of(self, path):
        """The listed folder that a path relative to src lies in, or None."""
        while "/" in path:
            path = path.rsplit("/", 1)[0]
            if path in self.listed:
                return path
        return None

    def file_of(self, target):
        """The source that an include means, or None when it is no file of the tree."""
        return next((f"{top}/{target}" for top in TOPS if f"{top}/{target}" in self.includes), None)

    def folder_violation(self, folder, target):
        other = self.folder_of(target)
        if other == folder or other in self.listed[folder]:
            if folder.startswith("doors/") and other.startswith("doors/") and other != folder:
                return f"doors never include each other, not {other} either"
            return None
        folders = [name for name in self.listed[folder] if name in self.listed]
        return f"src/{folder} may include {', '.join(folders) or 'no other folder'}, not {other}"

    def library_violation(self, path, target):
        """Why a file may not include a library's header, or None."""
        library = library_of(target)
        if not library or path in PUBLIC_WITH_GGML:
            return None
        name, _, targets = library
        if targets & set(self.listed.get(self.folder_of(path.removeprefix("src/")), [])):
            return None
        users = sorted(folder for folder, listed in self.listed.items() if targets & set(listed))
        return f"{name}'s {target} may be included in {', '.join(users) or 'no folder'} only"

    def violation(self, path, target, quoted):
        """Why a file may not include target, or None."""
        if ".." in target.split("/"):
            return "write the path from src/, without .."
        is_of_src = self.folder_of(target) is not None
        if path.startswith("include/") and is_of_src:
            return "a public header includes no header of src"
        if path.startswith("python/") and is_of_src:
            return "the Python extension includes public headers (<headrace/...>) only"
        if path.startswith("src/"):
            folder = self.folder_of(path.removeprefix("src/"))
            if not folder:
                return f"no line of src/CMakeLists.txt is for {path.rsplit('/', 1)[0]}"
            if target in GENERATED:
                return None if GENERATED[target] == folder else f"{target} belongs to src/{GENERATED[target]}"
            if is_of_src:
                return self.folder_violation(folder, target)
            if quoted and "/" not in target and not library_of(target):
                return f'write the path from src/, such as "{folder}/{target}"'
        return self.library_violation(path, target)

    def reached(self, header):
        """Pairs of what a header includes, itself or through others, and the file that has the include."""
        waiting, seen = [header], {header}
        while waiting:
            path = waiting.pop()
            for _, _, target in self.includes[path]:
                yield target, path
                file = self.file_of(target)
                if file and file not in seen:
                    seen.add(file)
                    waiting.append(file)

    def reached_violation(self, path, target):
        """Why a file may not include a header of the tree for what comes with it, or None."""
        for reached, place in self.reached(self.file_of(target)) if self.file_of(target) else ():
            library = library_of(reached)
            if library and library[0] in NOT_EVEN_REACHED:
                message = self.library_violation(path, reached)
                if message:
                    return f"{message}, and {place} brings it"
        return None

    def check_includes(self):
        for path, includes in self.includes.items():
            for number, quoted, target in includes:
                message = self.violation(path, target, quoted) or self.reached_violation(path, target)
                if message:
                    yield f"{path}:{number}: {message}"

    def check_order(self):
        """Lines of CMake that list a folder of a later line: what is below a folder stands above it."""
        order = list(self.listed)
        for place, folder in enumerate(order):
            for other in self.listed[folder]:
                if other in order[place:]:
                    line = f"the line of {other} belongs before that of {folder}, which lists it"
                    yield f"src/CMakeLists.txt: {line}"

    def room_of(self, folder, path):
        """The subfolder of a listed folder that a path lies in, "." where it is none, or None outside."""
        if self.folder_of(path) != folder:
            return None
        rest = path.removeprefix(f"{folder}/")
        return rest.split("/")[0] if "/" in rest else "."

    def check_rooms(self):
        """Rooms without a place in the order of their folder, and includes of what comes later in it."""
        found = {}
        for path in (path.removeprefix("src/") for path in self.includes if path.startswith("src/")):
            folder = self.folder_of(path)
            if folder:
                found.setdefault(folder, set()).add(self.room_of(folder, path))
        for folder, rooms in found.items():
            order = self.rooms.get(folder, ["."])
            for room in sorted(rooms - set(order)):
                yield f"src/CMakeLists.txt: headrace_rooms({folder} ...) has no {room}, and src/{folder} has"
            for room in (room for room in order if room not in rooms and folder in self.rooms):
                line = f"headrace_rooms({folder} ...) has {room}, and src/{folder} has no source there"
                yield f"src/CMakeLists.txt: {line}"
        for path, includes in self.includes.items():
            folder = self.folder_of(path.removeprefix("src/"))
            order = self.rooms.get(folder, [])
            room = self.room_of(folder, path.removeprefix("src/"))
            for number, _, target in includes:
                other = self.room_of(folder, target)
                if room in order and other in order and order.index(other) > order.index(room):
                    below = ", ".join(order[: order.index(room)]) or "no other room"
                    yield f"{path}:{number}: {room} of src/{folder} may include {below}, not {other}"

    def check_owners(self):
        """Lines of CMake that list a library which is another folder's alone."""
        for folder, listed in self.listed.items():
            for target in listed:
                if OWNERS.get(target, folder) != folder:
                    yield f"src/CMakeLists.txt: {target} is for {OWNERS[target]} alone, not {folder}"

    def check_circles(self):
        """Folders and subfolders that include each other, the shortest way round for each, once."""
        arrows = {}
        for path, includes in self.includes.items():
            for number, _, target in includes:
                file = self.file_of(target)
                if file:
                    start, end = path.rsplit("/", 1)[0], file.rsplit("/", 1)[0]
                    if start != end:
                        arrows.setdefault(start, {}).setdefault(end, f"{path}:{number}")
        told = set()
        for start in sorted(arrows):
            circle = shortest_circle(arrows, start)
            if circle and told.isdisjoint(circle):
                told.update(circle)
                places = (arrows[a][b] for a, b in zip(circle, [*circle[1:], start], strict=True))
                yield f"a circle of folders, {' → '.join([*circle, start])}: {', '.join(places)}"


def shortest_circle(arrows, start):
    """The folders on the shortest way from start back to it, or None."""
    waiting, seen = [[start]], set()
    for way in waiting:
        for end in sorted(arrows.get(way[-1], ())):
            if end == start:
                return way
            if end not in seen:
                seen.add(end)
                waiting.append([*way, end])
    return None


def check_tree(root):
    """Every violation below root, as one printable line each."""
    tree = Tree(root)
    checks = [tree.check_includes, tree.check_order, tree.check_rooms, tree.check_owners, tree.check_circles]
    return [line for check in checks for line in check()]


def main():
    lines = check_tree(Path(__file__).resolve().parent.parent)
    print(*lines, sep="\n", end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
