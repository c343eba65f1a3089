"""What is left of a page of headrace/web that ends or stops, in Chromium, and of contexts."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from browser import opened
from provision.base import ROOT
from web.server import serving

MODULE = ROOT / "node/native/web/headrace-threads-relaxed.wasm"
PATIENCE = 120  # seconds
IDLE = 0.1  # of a processor
RELOADS = 20
GARBAGE = 64 << 10  # bytes for each context that a collector may not have freed, of 3 MB
CLOCK = os.sysconf("SC_CLK_TCK")
INSTALL = "return window.page.install()"
#: Computes without an end; window.rounds are those that have given what they should.
BEGIN = """return (async () => {
const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
const square = { dataType: 'float32', shape: [1024, 1024] };
const x = builder.input('x', square);
const graph = await builder.build({ y: builder.matmul(x, x) });
const input = await context.createTensor({ ...square, writable: true });
const output = await context.createTensor({ ...square, readable: true });
context.writeTensor(input, new Float32Array(1024 * 1024).fill(1));
window.rounds = 0;
const goOn = async () => {
  for (let i = 0; i < 5; ++i) context.dispatch(graph, { x: input }, { y: output });
  const [sum] = new Float32Array(await context.readTensor(output));
  window.rounds += Number(sum === 1024);
  goOn();
};
goOn();
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
    """A process and all that it has started."""
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


def resident(browser) -> int:
    """Bytes of memory that the browser's processes hold, those that they share counted for each."""
    texts = [read(process / "status") for process in processes(browser.process_id)]
    found = [line.split()[1] for text in texts for line in text.splitlines() if line.startswith("VmRSS:")]
    return sum(map(int, found)) << 10


def until(holds) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def goes_on(browser) -> bool:
    before = browser.run("return window.rounds")
    time.sleep(0.5)
    return browser.run("return window.rounds") > before


def compute(browser) -> None:
    """The page computes from now on, in a worker and its threads."""
    threads = browser.run(INSTALL)["threads"]
    browser.run(BEGIN)
    until(lambda: workers(browser) > threads and goes_on(browser))


@pytest.fixture
def page(browser, address):
    """One that computes."""
    browser.open(f"{address}/tests/web/page.html")
    compute(browser)
    return browser


def test_a_page_that_is_left_stops_and_goes_on_if_the_browser_has_kept_it(page):
    """Chromium keeps some pages whole, with their workers, for who comes back."""
    page.run("window.addEventListener('pageshow', ({ persisted }) => { window.isKept = persisted; })")
    page.open("about:blank")
    until(lambda: busy(page) < IDLE)
    page.back()
    if page.run("return window.isKept"):
        until(lambda: goes_on(page))
    else:
        assert page.run("return window.rounds") is None  # loaded anew


def test_a_page_that_is_loaded_again_computes_no_more(page):
    page.devtools("Page.reload")
    until(lambda: busy(page) < IDLE)
    assert page.run("return window.rounds") is None


def test_a_page_that_is_loaded_again_leaves_no_workers(page):
    """However far a run has come: some of its threads sleep then, and some compute."""
    for i in range(RELOADS):
        time.sleep(i % 5 / 20)
        page.devtools("Page.reload")
        until(lambda: workers(page) == 0)
        compute(page)


def test_a_page_that_is_closed_leaves_no_workers(browser, address):
    with browser.another_tab():
        browser.open(f"{address}/tests/web/page.html")
        compute(browser)
    until(lambda: workers(browser) == 0)


def test_a_page_that_is_frozen_stops_and_goes_on_where_it_was(page):
    page.devtools("Page.setWebLifecycleState", state="frozen")
    until(lambda: busy(page) < IDLE)
    page.devtools("Page.setWebLifecycleState", state="active")
    until(lambda: goes_on(page))


#: Contexts with a graph and tensors of 1 MB, run and destroyed.
USE_CONTEXTS = """return (async (count) => {
const vector = { dataType: 'float32', shape: [1 << 18] };
for (let i = 0; i < count; ++i) {
  const context = await navigator.ml.createContext();
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build({ y: builder.relu(builder.input('x', vector)) });
  const x = await context.createTensor({ ...vector, writable: true });
  const y = await context.createTensor({ ...vector, readable: true });
  context.writeTensor(x, new Float32Array(1 << 18));
  context.dispatch(graph, { x }, { y });
  await context.readTensor(y);
  context.destroy();
}
})(arguments[0])"""


def test_a_thousand_contexts_that_are_used_and_destroyed_take_no_memory(browser, address):
    browser.open(f"{address}/tests/web/page.html")
    browser.run(INSTALL)
    browser.run(USE_CONTEXTS, 200)
    before = resident(browser)
    browser.run(USE_CONTEXTS, 1000)
    assert resident(browser) - before < 1000 * GARBAGE


def test_a_thousand_contexts_that_are_dropped_take_no_memory(browser, address):
    """Nobody destroys them: the page's collector does, when it has run."""
    drop = USE_CONTEXTS.replace("context.destroy();", "")
    browser.open(f"{address}/tests/web/page.html")
    browser.run(INSTALL)
    browser.run(drop, 200)
    browser.devtools("HeapProfiler.collectGarbage")
    before = resident(browser)
    for _ in range(10):
        browser.run(drop, 100)
        browser.devtools("HeapProfiler.collectGarbage")
    assert resident(browser) - before < 1000 * GARBAGE
