"""Relative links in the Markdown files, and pages that other files mention, lead to what a clone has."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?", re.MULTILINE)
ATTRIBUTE = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"")
MENTION = re.compile(r"(?<![\w./-])docs/[\w/-]+\.md\b")


@cache
def tracked() -> frozenset[str]:
    """Every file that git tracks, and the folders that these lie in."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip(f"not a git checkout: {listed.stderr.strip()}")
    files = listed.stdout.strip("\0").split("\0")
    return frozenset(files) | {str(folder) for file in files for folder in PurePosixPath(file).parents}


def pages() -> list[str]:
    return sorted(file for file in tracked() if file.endswith(".md") and (ROOT / file).exists())


def links(text: str) -> list[str]:
    """Targets of links, not those in code."""
    prose = re.sub(r"`[^`\n]*`", "`code`", FENCE.sub("", text))
    return [target for form in (INLINE, REFERENCE, ATTRIBUTE) for target in form.findall(prose)]


def anchors(text: str) -> set[str]:
    """What headings are called in links, as GitHub names them."""
    names: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", FENCE.sub("", text), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        names[name] = names.get(name, -1) + 1
        if names[name]:
            names[f"{name}-{names[name]}"] = 0
    return set(names)


def broken(page: str, text: str) -> list[str]:
    """A line about every relative link of the page that leads nowhere."""
    lines = []
    for link in links(text):
        if re.match(r"[a-z][a-z0-9+.-]*:|//", link):
            continue
        target, _, anchor = link.partition("#")
        path = (ROOT / page).parent / target if target else ROOT / page
        if not path.resolve().is_relative_to(ROOT):
            lines.append(f"{page}: {link} leads out of the repository")
            continue
        name = str(path.resolve().relative_to(ROOT))
        if name not in tracked() or not path.exists():
            lines.append(f"{page}: {link}: git tracks no {name}")
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
            lines.append(f"{page}: {link}: {name} has no heading that is called so")
    return lines


def test_every_relative_link_leads_to_a_tracked_file_and_heading():
    assert "README.md" in pages()
    assert [
        line for page in pages() for line in broken(page, (ROOT / page).read_text(encoding="utf-8"))
    ] == []


def test_every_page_that_a_file_mentions_is_tracked():
    missing = []
    for file in sorted(tracked()):
        if not (ROOT / file).is_file():
            continue
        try:
            text = (ROOT / file).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        missing += [f"{file}: {page}" for page in MENTION.findall(text) if page not in tracked()]
    assert missing == []


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("[a](nowhere.md)", "git tracks no nowhere.md"),
        ("[a](build/bin/headrace)", "git tracks no build/bin/headrace"),
        ("[a]: nowhere.md", "git tracks no nowhere.md"),
        ('<img src="docs/plot.svg">', "git tracks no docs/plot.svg"),
        ("[a](../elsewhere.md)", "leads out of the repository"),
        ("[a](docs/scaling.md#nothing)", "has no heading that is called so"),
        ("# Here\n[a](#there)", "has no heading that is called so"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(text, complaint):
    (line,) = broken("README.md", text)
    assert complaint in line


@pytest.mark.parametrize(
    "text",
    [
        "[a](docs)",
        "[a](docs/scaling.md)",
        "[a](https://x)",
        "`[a](b)`",
        "```\n[a](b)\n```",
        "[a](LICENSE 'b')",
    ],
)
def test_other_links_are_fine(text):
    assert broken("README.md", text) == []


def test_headings_are_called_as_on_github():
    text = "# One: `two` & three_4\n## Same\n## Same\n```\n# no heading\n```\n"
    assert anchors(text) == {"one-two--three_4", "same", "same-1"}
