"""tools/test_device.py: cases that end their process, and the table of ops."""

import os
import sys

import pytest
import test_device

#: Says GoogleTest's words about the cases it is given, and does what their names ask for.
PROGRAM = """
import os, sys
for name in sys.argv[1:]:
    print(f"[ RUN      ] {name}", flush=True)
    if "dies" in name:
        os.abort()
    if "leaves" in name:
        sys.exit(3)
    if "skips" in name:
        print("x.cpp:3: Skipped\\nno reason")
        print(f"[  SKIPPED ] {name} (0 ms)")
    elif "fails" in name:
        print(f"values differ\\n[  FAILED  ] {name}, where GetParam() = 1 (0 ms)")
    else:
        print("sample add Vulkan0 real")
        print(f"[       OK ] {name} (0 ms)")
"""


def run(cases):
    return test_device.run_cases(
        "cases", cases, lambda left: [sys.executable, "-c", PROGRAM, *left], dict(os.environ)
    )


def test_a_case_that_ends_its_process_fails_and_the_others_go_on():
    tally, facts = run(["a.works", "a.dies", "b.works", "b.leaves", "b.fails", "c.skips", "c.works"])
    assert tally.line() == "3 passed, 3 failed, 1 skipped"
    assert [name for name, _ in tally.failed] == ["a.dies", "b.leaves", "b.fails"]
    outputs = dict(tally.failed)
    assert "signal 6" in outputs["a.dies"] and "status 3" in outputs["b.leaves"]
    assert outputs["b.fails"] == "values differ"
    assert tally.skipped == [("c.skips", "no reason")]
    assert facts == [["sample", "add", "Vulkan0", "real"]] * 3


def test_a_case_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(test_device, "PATIENCE_S", 0.2)
    endless = "import time; print('[ RUN      ] a.waits', flush=True); time.sleep(60)"
    tally, _ = test_device.run_cases(
        "cases", ["a.waits"], lambda left: [sys.executable, "-c", endless], dict(os.environ)
    )
    assert tally.line() == "0 passed, 1 failed, 0 skipped"
    assert "signal 9" in tally.failed[0][1]


def test_a_program_that_runs_nothing_is_a_failure():
    tally, _ = test_device.run_cases("cases", ["a"], lambda left: ["false"], dict(os.environ))
    assert tally.line() == "0 passed, 1 failed, 0 skipped"


def test_the_table_has_the_ops_that_run_on_the_device(tmp_path):
    facts = [
        line.split() for line in ("sample add Vulkan0 real", "sample add CPU other", "sample sort CPU real")
    ]
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- samples -->\nold\n<!-- end of samples -->\nafter\n")
    test_device.write_table(page, facts)
    text = page.read_text()
    assert "| `add` | 2 | 1 | 1 | 1 |" in text and "sort" not in text and "old" not in text
    assert text.startswith("before\n") and text.endswith("after\n")
    page.write_text("none")
    with pytest.raises(SystemExit, match="has no marks"):
        test_device.write_table(page, facts)
