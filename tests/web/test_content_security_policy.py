"""headrace/web in a page with the Content-Security-Policy of docs/web.md, in Chromium."""

from __future__ import annotations

import re

import pytest
from browser import opened
from provision.base import ROOT
from web.server import serving

(POLICY,) = re.findall(r"^Content-Security-Policy: (.+)$", (ROOT / "docs/web.md").read_text(), re.MULTILINE)
#: What the policy says beside default-src 'none'.
GRANTS = [
    (directive, source)
    for directive, *sources in (part.split() for part in POLICY.split(";"))
    for source in sources
    if source != "'none'"
]
#: [threads, results] of a page, or what was thrown.
COMPUTE = """return (async () => {
try {
  const { threads } = await window.page.install();
  const context = await navigator.ml.createContext();
  const builder = new MLGraphBuilder(context);
  const row = { dataType: 'float32', shape: [1, 4096] };
  const graph = await builder.build({ y: builder.reduceSum(builder.relu(builder.input('x', row))) });
  const x = await context.createTensor({ ...row, writable: true });
  const y = await context.createTensor({ dataType: 'float32', shape: [], readable: true });
  context.writeTensor(x, new Float32Array(4096).fill(1));
  context.dispatch(graph, { x }, { y });
  return [threads, ...new Float32Array(await context.readTensor(y))];
} catch (error) {
  return String(error);
}
})()"""


@pytest.fixture(scope="module", autouse=True)
def modules():
    if not (ROOT / "node/native/web/headrace-threads-relaxed.wasm").exists():
        pytest.skip("the modules are not built: make web builds them")


def visit(policy: str):
    """What the page says under it, and its console's complaints. The page has an icon beside the package."""
    with serving(policy=f"{policy}; img-src data:") as address, opened() as browser:
        browser.open(f"{address}/tests/web/page.html")
        has_started = browser.run("return window.page !== undefined")
        return browser.run(COMPUTE) if has_started else "no script", browser.complaints()


def test_a_page_under_the_policy_of_the_guide_computes_with_threads():
    (threads, total), complaints = visit(POLICY)
    assert threads > 1
    assert total == 4096
    assert complaints == []


@pytest.mark.parametrize("directive, source", GRANTS, ids=[" ".join(grant) for grant in GRANTS])
def test_each_part_of_the_policy_is_needed(directive, source):
    parts = [part.split() for part in POLICY.split(";")]
    less = "; ".join(
        " ".join([name, *(one for one in sources if (name, one) != (directive, source))])
        for name, *sources in parts
    )
    told, complaints = visit(less)
    assert isinstance(told, str), less
    assert complaints or "Content Security Policy" in told
