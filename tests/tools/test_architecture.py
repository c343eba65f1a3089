"""docs/architecture.md against the folders that exist."""

import re
from pathlib import Path

import pytest
from check_includes import SOURCES, declared

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/architecture.md"


def folders_in_the_table():
    return set(re.findall(r"^\| `src/([\w/]+)` \|", PAGE.read_text(), re.MULTILINE))


def folders_with_sources():
    """Those that CMake lists, without backends, whose one header is for the folders below it."""
    listed = declared((ROOT / "src/CMakeLists.txt").read_text())
    files = [path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.suffix in SOURCES]
    return {folder for folder in listed if any(Path(folder) in path.parents for path in files)} - {"backends"}


def test_the_table_names_each_folder_of_src_and_none_that_does_not_exist():
    assert folders_in_the_table() == folders_with_sources()


ROOMS = re.findall(r"`src/(\w+)` .*; ((?:`\w+`(?:, )?)+) \|", PAGE.read_text())


@pytest.mark.parametrize("folder, listed", ROOMS)
def test_the_rooms_that_the_table_names_are_those_of_the_folder(folder, listed):
    rooms = {path.name for path in (ROOT / "src" / folder).iterdir() if path.is_dir()}
    assert set(re.findall(r"\w+", listed)) == rooms


def stems_by_room(folder, pattern, suffix):
    """Stem of a file: the subfolders of a folder that have one of that name."""
    found = {}
    for path in (ROOT / folder).rglob(pattern):
        stem = path.name.removesuffix(suffix) if suffix else path.stem.removesuffix("-inl")
        found.setdefault(stem, set()).add(path.relative_to(ROOT / folder).parent)
    return found


@pytest.mark.parametrize("folder", sorted(folders_with_sources()))
def test_a_test_lies_in_the_room_of_the_source_that_it_is_named_after(folder):
    sources = stems_by_room(f"src/{folder}", "*.*", "")
    tests = stems_by_room(f"tests/{folder}", "*_test.cpp", "_test.cpp")
    astray = {stem: rooms for stem, rooms in tests.items() if stem in sources and not rooms & sources[stem]}
    assert astray == {}


def test_the_page_is_at_most_two_screens():
    assert len(PAGE.read_text().splitlines()) <= 100


def test_the_pictures_that_pages_show_exist_and_no_others():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name for page in pages for name in re.findall(r"\]\((?:docs/)?pictures/([\w.]+)\)", page.read_text())
    }
    assert shown == {path.name for path in (ROOT / "docs/pictures").iterdir()}
