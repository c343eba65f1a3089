"""Node's tests of the API, written from the specification and its IDL, on headrace/web in Chromium."""

from __future__ import annotations

import pytest
from browser import opened
from provision.base import ROOT
from web.server import serving

#: Of tests/node, those that use nothing that a page lacks.
FILES = (
    "builder",
    "idl",
    "idl_conversions",
    "limits",
    "operator_rules",
    "operators",
    "spec_shapes",
    "tensors",
)


@pytest.fixture(scope="module")
def isolated():
    with serving() as address, opened() as browser:
        browser.wait_for_scripts(240)
        browser.address = address
        yield browser


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_tests_of_node_pass_in_a_page(isolated, file, threads):
    """On one thread by the module that has none."""
    module = f"headrace-{'threads' if threads > 1 else 'single'}-relaxed.wasm"
    if not (ROOT / "node/native/web" / module).exists():
        pytest.skip("the modules are not built: make web builds them")
    isolated.open(f"{isolated.address}/tests/web/validation.html?threads={threads}")
    outcomes = isolated.run("return window.outcomesOf(arguments[0])", file)
    assert [one for one in outcomes if "failure" in one] == []
    if all("skip" in one for one in outcomes):
        pytest.skip(outcomes[0]["skip"])
    assert any("skip" not in one for one in outcomes)
