"""What `make site` adds to the pages of docs/: the README as the first page, files of the repository that
pages link to, and the reference of the Python packages and of the C++ headers.

mkdocs.yml names this module as a hook.
"""

from __future__ import annotations

from pathlib import Path

from api_pages import api_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from source_pages import SourcePages

ROOT = Path(__file__).resolve().parent.parent


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that no file of docs/ holds."""
    source = SourcePages(ROOT)
    pages = {**source.pages(), **api_pages(ROOT)}
    for path, text in sorted(pages.items()):
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of the repository become those of the site."""
    if page.file.generated_by:
        return markdown
    return SourcePages(ROOT).for_site(f"docs/{page.file.src_uri}", markdown)
