"""What is left of a page of headrace/web that ends or stops while it computes, in Chromium."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from browser import opened
from provision.base import ROOT
from web.server import serving

MODULE = ROOT / "node/native/web/headrace-threads-relaxed.wasm"
PATIENCE = 240  # seconds
CLOCK = os.sysconf("SC_CLK_TCK")
INSTALL = "return window.page.install()"
#: Runs that take a second, of which window.sum is the last one's first element.
BEGIN = """return (async () => {
const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
const square = { dataType: 'float32', shape: [1024, 1024] };
const x = builder.input('x', square);
const graph = await builder.build({ y: builder.matmul(x, x) });
const input = await context.createTensor({ ...square, writable: true });
const output = await context.createTensor({ ...square, readable: true });
context.writeTensor(input, new Float32Array(1024 * 1024).fill(1));
for (let i = 0; i < 30; ++i) context.dispatch(graph, { x: input }, { y: output });
context.readTensor(output).then((bytes) => { window.sum = new Float32Array(bytes)[0]; });
})()"""


@pytest.fixture(scope="module")
def address():
    if not MODULE.exists():
        pytest.skip("the modules are not built: make web builds them")
    with serving() as found:
        yield found


@pytest.fixture
def browser():
    with opened() as browser:
        browser.wait_for_scripts(120)
        yield browser


def processes(first: int) -> list[Path]:
    """Of a process and all that it has started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue  # it ended
    found = {first}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return [Path("/proc") / str(one) for one in found]


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def workers(browser) -> int:
    """Threads of the browser that are pages' workers."""
    names = [read(path) for process in processes(browser.process_id) for path in process.glob("task/*/comm")]
    return sum(name.startswith("DedicatedWorker") for name in names)


def busy(browser, seconds: float = 1) -> float:
    """Processors that the browser has used, in the mean of some seconds."""

    def used() -> int:
        stats = [read(process / "stat") for process in processes(browser.process_id)]
        return sum(sum(map(int, stat.rsplit(")", 1)[1].split()[11:13])) for stat in stats if stat)

    before = used()
    time.sleep(seconds)
    return (used() - before) / CLOCK / seconds


def until(holds) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def begin(browser, address: str) -> None:
    """Opens the page, which computes then."""
    browser.open(f"{address}/tests/web/page.html")
    assert browser.run(INSTALL)["threads"] > 1
    browser.run(BEGIN)
    assert workers(browser) > 1
    assert browser.run("return window.sum") is None


def test_a_page_that_is_left_for_another_takes_its_workers_with_it(browser, address):
    begin(browser, address)
    browser.open("about:blank")
    until(lambda: workers(browser) == 0)


def test_a_page_that_is_loaded_again_has_no_more_workers_than_before(browser, address):
    begin(browser, address)
    before = workers(browser)
    for _ in range(3):
        begin(browser, address)
    until(lambda: workers(browser) == before)


def test_a_page_that_is_closed_takes_its_workers_with_it(browser, address):
    with browser.another_tab():
        begin(browser, address)
    until(lambda: workers(browser) == 0)


def test_a_page_that_is_frozen_stops_and_goes_on_where_it_was(browser, address):
    begin(browser, address)
    browser.devtools("Page.setWebLifecycleState", state="frozen")
    until(lambda: busy(browser) < 0.2)
    browser.devtools("Page.setWebLifecycleState", state="active")
    until(lambda: browser.run("return window.sum") == 1024)
