"""examples/web in Debian's Chromium, where `make web-demo` has made what it needs."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from browser import opened
from provision.base import BUILD, ROOT
from web.server import serving

PAGE = ROOT / "examples/web"
MODELS = [BUILD / "models" / name for name in ("digits.hrg", "minilm/onnx/model.onnx")]
NEEDED = [ROOT / "node/native/web/headrace-threads-relaxed.wasm", *MODELS]


@pytest.fixture(scope="module", autouse=True)
def needed():
    for path in NEEDED:
        if not path.exists():
            pytest.skip(f"{path.relative_to(ROOT)} is not there: make web-demo makes it")


@pytest.fixture(scope="module")
def page():
    with serving() as address, opened() as browser:
        browser.open(f"{address}/examples/web/")
        until_engine_says(browser, "Ready")
        yield browser
        assert browser.complaints() == []


def until(holds, page, css: str) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, page.texts(css)
        time.sleep(0.1)


def until_engine_says(page, what: str) -> None:
    until(lambda: what in page.texts("#engine")[0], page, "#engine")


def search(page) -> list[str]:
    """What is found for the question that the page begins with."""
    page.run("document.querySelector('#search').requestSubmit()")
    until(lambda: page.texts("#found li") and "ms." in page.texts("#search-note")[0], page, "#search-note")
    return page.texts("#found li")


def imports_of(path: Path, found: set[Path]) -> set[Path]:
    """A module and all that it imports."""
    if path not in found:
        found.add(path)
        for name in re.findall(r"^(?:import|export|\}) ?.*from '(\.[^']*)'", path.read_text(), re.MULTILINE):
            imports_of((path.parent / name).resolve(), found)
    return found


def test_the_page_names_all_modules_that_it_and_its_workers_import():
    """So that none is found only when another has come."""
    names = re.findall(r'rel="modulepreload" href="(.*?)"', (PAGE / "index.html").read_text())
    needed = set()
    for start in (PAGE / "app.mjs", ROOT / "node/lib/web/worker.js", ROOT / "node/lib/web/thread.js"):
        imports_of(start, needed)
    assert sorted(names) == sorted(os.path.relpath(path, PAGE) for path in needed)


def test_the_sentences_are_read_before_somebody_searches(page):
    until_engine_says(page, "offline")
    search(page)
    assert page.texts("#search-note")[0].startswith("0 new sentences")


#: Makes the kept vector of a sentence longer, and the kept vectors those of a model.
CHANGE_KEPT = """return (async (sentence, version) => {
const place = '/examples/web/vectors';
const kept = await (await caches.match(place)).json();
kept.version = version ?? kept.version;
kept.vectors = kept.vectors.map(([s, v]) => [s, s === sentence ? v.map((x) => 1000 * x) : v]);
await (await caches.open('headrace-demo-vectors')).put(place, new Response(JSON.stringify(kept)));
})(...arguments)"""


def test_a_visit_uses_the_vectors_that_the_last_one_kept_of_the_same_model():
    def first_score(browser) -> float:
        browser.open(f"{address}/examples/web/")
        until_engine_says(browser, "offline")
        return float(re.findall(r"\((.*)\)$", search(browser)[0])[0])

    with serving() as address, opened() as browser:
        assert 0 < first_score(browser) <= 1
        sentence = browser.texts("#found li")[0].rsplit(" (", 1)[0]
        browser.run(CHANGE_KEPT, sentence, None)
        assert first_score(browser) > 10
        browser.run(CHANGE_KEPT, sentence, "another model's")
        assert 0 < first_score(browser) <= 1


def press(page, *keys: str) -> None:
    page.run(
        """const canvas = document.querySelector('#drawing');
        for (const key of arguments[0]) canvas.dispatchEvent(new KeyboardEvent('keydown', { key }));""",
        keys,
    )


def test_a_digit_that_is_drawn_by_keyboard_is_told(page):
    press(page, *[" ", "ArrowDown"] * 16)
    until(lambda: "%" in page.texts("#digit")[0], page, "#digit")
    assert page.texts("#digit")[0].startswith("1 (")
    page.find("#clear").click()
    until(lambda: page.texts("#digit") == ["Nothing is drawn."], page, "#digit")


def test_what_is_no_model_is_refused_with_a_reason(page):
    page.run(
        """const files = new DataTransfer();
        files.items.add(new File(['no model'], 'text.onnx'));
        const input = document.querySelector('#file');
        input.files = files.files;
        input.dispatchEvent(new Event('change'));"""
    )
    until(lambda: page.texts("#model-note")[0].startswith("text.onnx: "), page, "#model-note")
    assert not page.texts("#model-note")[0].endswith("undefined")


def test_it_works_without_a_network_after_one_visit():
    with opened() as browser:
        with serving() as address:
            browser.open(f"{address}/examples/web/")
            until_engine_says(browser, "offline")
            found = search(browser)
        assert len(found) == 5
        ask = "return fetch('/LICENSE').then(() => 'answered', () => 'unreachable')"
        assert browser.run(ask) == "unreachable"
        browser.open(f"{address}/examples/web/")
        until_engine_says(browser, "Ready")
        assert search(browser) == found


def test_nothing_is_wider_than_a_phone(page):
    """The window has 420 pixels."""
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
