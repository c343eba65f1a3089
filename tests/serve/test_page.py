"""The page to chat with, in a browser."""

from __future__ import annotations

import browser as browsers
import pytest
from serve_program import ENDLESSLY, wait_for

QUESTION = "What is the capital of Spain?"
ANSWER = "The capital of Spain is Madrid."


@pytest.fixture(scope="module")
def browser():
    with browsers.opened() as browser:
        yield browser


@pytest.fixture(scope="module")
def server(serve):
    return serve("--alias", "tiny", "--temp", 0, *ENDLESSLY)


@pytest.fixture
def page(browser, server):
    browser.open(server.url)
    wait_for(lambda: browser.texts("h1") == ["tiny"], what="the model's name")
    browser.run("document.getElementById('temperature').value = 0")
    yield browser
    assert browser.complaints() == []


def say(page, text: str) -> None:
    page.find("#text").type(text + browsers.ENTER)


def is_quiet(page) -> bool:
    return page.texts("#send") == ["Send"]


def test_an_answer_appears_with_its_speed_below_the_question(page):
    say(page, QUESTION)
    wait_for(lambda: page.texts("small"), what="an answer")
    assert page.texts(".user") == [QUESTION]
    (answer,) = page.texts(".assistant")
    assert answer.startswith(ANSWER)
    assert "a second" in page.texts("small")[0]
    assert page.run("return document.getElementById('text').value") == ""


def test_the_conversation_is_remembered_until_a_new_one_begins(page):
    for place, text in enumerate(["My name is Ada.", "What is my name?"], 1):
        say(page, text)
        wait_for(lambda: is_quiet(page) and len(page.texts("small")) == place, what="an answer")  # noqa: B023
    assert page.texts(".assistant")[-1].startswith("Your name is Ada.")
    page.find("#clear").click()
    assert page.texts(".message") == []
    say(page, "What is my name?")
    wait_for(lambda: page.texts("small"), what="an answer")
    assert "Ada" not in page.texts(".assistant")[-1]


def test_an_answer_can_be_stopped_and_the_next_question_asked(page, server):
    # What only an answer without an end shows.
    page.run(
        "const ask = window.fetch;"
        "window.fetch = (url, options) => { if (options) options.body = JSON.stringify("
        "{...JSON.parse(options.body), ignore_eos: true, max_tokens: 1000000}); return ask(url, options); }"
    )
    say(page, "Tell me a story about a fox.")
    wait_for(lambda: len(page.texts(".assistant")[0]) > 100, what="a long answer")
    assert page.texts("#send") == ["Stop"]
    page.find("#send").click()
    wait_for(lambda: is_quiet(page), what="the end")
    wait_for(lambda: server.busy_slots() == 0, what="the end of the generation")
    assert page.texts(".error") == []


def test_texts_are_shown_as_texts(page):
    say(page, "<img src=x onerror=document.title='hit'> <b>bold</b>")
    wait_for(lambda: is_quiet(page) and page.texts("small"), what="an answer")
    assert page.texts(".user") == ["<img src=x onerror=document.title='hit'> <b>bold</b>"]
    assert page.run("return document.title") == "tiny"
    assert page.run("return document.querySelectorAll('#log img, #log b').length") == 0


def test_a_key_is_asked_for_and_used(browser, serve):
    server = serve("--alias", "tiny", "--temp", 0, "--api-key", "secret")
    browser.open(server.url)
    say(browser, QUESTION)
    (error,) = wait_for(lambda: browser.texts(".error"), what="an error")
    assert "key" in error.lower()
    browser.find("#key").type("secret")
    say(browser, QUESTION)
    wait_for(lambda: browser.texts("small"), what="an answer")
    assert browser.texts(".assistant")[-1].startswith(ANSWER)
    wait_for(lambda: browser.run("return document.title") == "tiny", what="the model's name")
    complaints = browser.complaints()
    assert len(complaints) == 2 and all("401" in complaint for complaint in complaints), "of list and answer"


def test_the_page_fits_a_phone(page):
    widths = page.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]
