"""headrace/web in Debian's Chromium; `make web` builds what it needs."""

from __future__ import annotations

import pytest
from browser import opened
from provision.base import ROOT
from web.server import WPT, serving

MODULES = ROOT / "node/native/web"
FILES = sorted(path.name for path in WPT.glob("*.json")) if WPT.exists() else []


@pytest.fixture(scope="module", params=["threads", "single"])
def page(request):
    """A browser with the page that has installed navigator.ml."""
    if not (MODULES / f"headrace-{request.param}-relaxed.wasm").exists():
        pytest.skip("the modules are not built: make web builds them")
    with serving(isolated=request.param == "threads") as address, opened() as browser:
        browser.wait_for_scripts(240)  # some cases have 36 million elements
        browser.open(f"{address}/tests/web/page.html")
        browser.installed = browser.run("return window.page.install()")
        browser.kind = request.param
        yield browser


def run(page, steps: str):
    """What the body of an asynchronous function returns."""
    return page.run(f"return (async () => {{ {steps} }})()")


def test_a_page_gets_navigator_ml_with_threads_where_it_is_isolated(page):
    assert page.installed["isNative"] is False
    assert page.installed["isolated"] == (page.kind == "threads")
    assert (page.installed["threads"] > 1) == (page.kind == "threads")


def test_a_browser_with_relaxed_simd_fetches_the_module_that_has_it_and_no_other(page):
    """As Chromium is; Node's tests run the others."""
    names = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    modules = [name.rsplit("/", 1)[1] for name in names if name.endswith(".wasm")]
    assert modules == [f"headrace-{page.kind}-relaxed.wasm"]


def test_a_browser_whose_own_contexts_are_rejected_gets_ours(page):
    """As Chromium's are, which has navigator.ml."""
    found = run(
        page,
        """
        const own = { createContext: () => Promise.reject(new DOMException('none', 'NotSupportedError')) };
        Object.defineProperty(Navigator.prototype, 'ml', { get: () => own, configurable: true });
        const { isNative, ml } = await window.page.web.install();
        const context = await navigator.ml.createContext();
        return [isNative, ml === navigator.ml, String(context)];
        """,
    )
    assert found == [False, True, "[object MLContext]"]


def test_a_browser_whose_own_contexts_work_keeps_them_unless_ours_are_forced(page):
    kept = run(
        page,
        """
        const own = { createContext: async () => ({ destroy() {} }) };
        Object.defineProperty(Navigator.prototype, 'ml', { get: () => own, configurable: true });
        const first = await window.page.web.install();
        const second = await window.page.web.install({ force: true });
        return [first.isNative, first.ml === own, second.isNative, navigator.ml === second.ml];
        """,
    )
    assert kept == [True, True, False, True]


def test_a_page_that_installs_again_has_what_it_had(page):
    again = run(
        page,
        """
        const { ml } = await window.page.web.install({ force: true });
        const second = await window.page.web.install();
        return [second.isNative, second.ml === ml, second.threads];
        """,
    )
    assert again == [False, True, page.installed["threads"]]


def test_the_page_goes_on_while_a_graph_computes(page):
    turns = run(
        page,
        """
        const context = await navigator.ml.createContext();
        const builder = new MLGraphBuilder(context);
        const square = { dataType: 'float32', shape: [768, 768] };
        const x = builder.input('x', square);
        const graph = await builder.build({ y: builder.matmul(builder.matmul(x, x), x) });
        const input = await context.createTensor({ ...square, writable: true });
        const output = await context.createTensor({ ...square, readable: true });
        let turns = 0, longest = 0, last = performance.now(), done = false;
        for (let i = 0; i < 10; ++i) context.dispatch(graph, { x: input }, { y: output });
        const read = context.readTensor(output).then(() => (done = true));
        while (!done) {
            await new Promise((go) => setTimeout(go, 0));
            longest = Math.max(longest, performance.now() - last);
            last = performance.now();
            ++turns;
        }
        return turns;
        """,
    )
    assert turns > 5


def test_a_worker_that_ends_loses_its_contexts_with_the_reason_and_another_one_follows(page):
    lost, after = run(
        page,
        """
        const context = await navigator.ml.createContext();
        const builder = new MLGraphBuilder(context);
        window.workers.at(-1).postMessage({ name: 'no such call', args: [] });
        const { message } = await context.lost;
        const next = await navigator.ml.createContext();
        const tensor = await next.createTensor({ dataType: 'float32', shape: [2], readable: true });
        return [message, (await next.readTensor(tensor)).byteLength];
        """,
    )
    assert lost.startswith("the worker ended: ")
    assert after == 8


def test_a_thread_that_fails_loses_the_contexts_with_the_reason_and_others_follow(page):
    if page.kind == "single":
        pytest.skip("it has no threads")
    lost, before, after = run(
        page,
        """
        const context = await navigator.ml.createContext();
        const before = window.threads.length;
        for (const thread of window.threads) thread.postMessage(null); // no message of Emscripten's
        const { message } = await context.lost;
        await navigator.ml.createContext();
        return [message, before, window.threads.length];
        """,
    )
    assert lost.startswith("a thread ended: ")
    assert after > before > 0


@pytest.mark.parametrize("file", FILES or ["wpt"])
def test_conformance_cases_pass(page, file):
    if not FILES:
        pytest.skip(f"{WPT} is not there")
    cases, failures = page.run("return window.page.conformance(arguments[0])", f"/wpt/{file}")
    assert cases > 0
    assert not failures


def test_the_console_has_no_complaints(page):
    assert page.complaints() == []
