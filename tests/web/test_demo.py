"""examples/web in Debian's Chromium, where `make web-demo` has made what it needs."""

from __future__ import annotations

import time

import pytest
from browser import opened
from provision.base import BUILD, ROOT
from web.server import serving

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
        until_ready(browser)
        yield browser
        assert browser.complaints() == []


def until(holds, page, css: str) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, page.texts(css)
        time.sleep(0.1)


def until_ready(page) -> None:
    until(lambda: page.texts("#engine")[0].startswith("Ready"), page, "#engine")


def search(page) -> list[str]:
    """What is found for the question that the page begins with."""
    page.run("document.querySelector('#search').requestSubmit()")
    until(lambda: page.texts("#found li") and "ms." in page.texts("#search-note")[0], page, "#search-note")
    return page.texts("#found li")


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
            until_ready(browser)
            found = search(browser)
        assert len(found) == 5
        ask = "return fetch('/LICENSE').then(() => 'answered', () => 'unreachable')"
        assert browser.run(ask) == "unreachable"
        browser.open(f"{address}/examples/web/")
        until_ready(browser)
        assert search(browser) == found


def test_nothing_is_wider_than_a_phone(page):
    """The window has 420 pixels."""
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
