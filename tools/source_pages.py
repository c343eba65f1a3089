"""Files of the repository as pages of the site: what lies outside of docs/ and is linked from there.

Pages are written for the repository, where links go by path. The site has the pages of docs/ at its root, and
all else below source/.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath

FENCE = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)[^\n]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(^(?P<fence>```+|~~~+).*?^(?P=fence)[^\n]*$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\(\s*<?)([^)\s>#]+)((?:#[^)\s>]*)?>?(?:\s+\"[^\"]*\")?\s*\))")
LANGUAGES = {
    ".c": "c",
    ".cpp": "cpp",
    ".h": "cpp",
    ".hpp": "cpp",
    ".fbs": "text",
    ".json": "json",
    ".mjs": "js",
    ".py": "python",
    ".toml": "toml",
    ".yml": "yaml",
    ".txt": "cmake",
}
LARGEST = 64 << 10  # bytes of a file that a page shows


class SourcePages:
    """The repository as the site shows it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def site_path(self, path: str) -> str:
        """Where the site has a file or folder, whose path is the repository's."""
        if path == "README.md":
            return "index.md"
        inside = PurePosixPath(path)
        if inside.parts[0] == "docs":
            return str(inside.relative_to("docs"))
        if (self.root / path).is_dir():
            return f"source/{path}/index.md"
        return f"source/{path}" if inside.suffix == ".md" else f"source/{path}.md"

    def for_site(self, path: str, text: str) -> str:
        """A page's text with the links that the site has; path: the page's in the repository."""
        here = PurePosixPath(self.site_path(path)).parent

        def target(link: re.Match[str]) -> str:
            linked = self._linked(path, link[2])
            moved = relpath(self.site_path(linked), here) if linked else link[2]
            return f"{link[1]}{moved}{link[3]}"

        return outside_of(CODE, outside_of(FENCE, text, spaced), lambda prose: LINK.sub(target, prose))

    def pages(self) -> dict[str, str]:
        """The pages that docs/ lacks, by their path in the site: the README, what is linked, and so on."""
        made: dict[str, str] = {}
        waiting = ["README.md", *(str(page.relative_to(self.root)) for page in self._tracked_docs())]
        seen = set(waiting)
        while waiting:
            path = waiting.pop()
            text = self._text(path)
            if path == "README.md" or not path.startswith("docs/"):
                made[self.site_path(path)] = self.for_site(path, text)
            for linked in self._links(path, text):
                if linked not in seen and not linked.startswith("docs/"):
                    seen.add(linked)
                    waiting.append(linked)
        return made

    def _tracked_docs(self) -> list[Path]:
        return sorted((self.root / "docs").rglob("*.md"))

    def _linked(self, path: str, link: str) -> str:
        """What a page's link leads to, or nothing where that is no file of the repository."""
        if re.match(r"[a-z][a-z0-9+.-]*:|//", link):
            return ""
        linked = normpath(f"{PurePosixPath(path).parent}/{link}")
        return linked if (self.root / linked).exists() else ""

    def _links(self, path: str, text: str) -> list[str]:
        found: list[str] = []
        outside_of(CODE, text, lambda prose: found.extend(link[1] for link in LINK.findall(prose)) or prose)
        return [linked for linked in (self._linked(path, link) for link in found) if linked]

    def _text(self, path: str) -> str:
        """A page of the repository as it is; other files and folders as a page that shows them."""
        file = self.root / path
        if file.suffix == ".md":
            return file.read_text(encoding="utf-8")
        if file.is_file():
            return f"# {path}\n\n{shown(file)}"
        parts = [f"# {path}\n"]
        for part in sorted(file.rglob("*")):
            inside = part.relative_to(file)
            if part.is_file() and not any(name[0] in "._" for name in inside.parts[:-1]):
                parts.append(f"## {inside}\n\n{shown(part)}")
        return "\n".join(parts)


def shown(file: Path) -> str:
    """A file's text in a block of code, or a line about what cannot be shown."""
    content = file.read_bytes()
    if b"\0" in content or len(content) > LARGEST:
        return f"{len(content):,} bytes, not shown here.\n"
    text = content.decode("utf-8", "replace").rstrip()
    longest = max((len(marks) for marks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{LANGUAGES.get(file.suffix, 'text')}\n{text}\n{fence}\n"


def spaced(prose: str) -> str:
    """With what GitHub needs not: an empty line before a list, four spaces before an item's paragraphs."""
    separated = re.sub(r"(?m)^(?![-*] |[|>#\s]|\d+\.)(.+)\n(?=(?:[-*]|\d+\.) )", r"\1\n\n", prose)
    separated = re.sub(r"(?m)^( {3,}\S.*)\n(?=\d+\. )", r"\1\n\n", separated)
    return re.sub(r"(?m)^ {3}(?=\S)", "    ", separated)


def outside_of(code: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """The text with all but the code changed."""
    parts, at = [], 0
    for found in code.finditer(text):
        parts += [change(text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*parts, change(text[at:])])
