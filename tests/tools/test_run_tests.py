from run_tests import Tally, gtest_skip_reason, read_junit, run


def read(path):
    return read_junit(path, lambda case: case.get("name"), gtest_skip_reason)


def test_outcomes_names_and_reasons_come_from_the_junit_file(tmp_path):
    junit = tmp_path / "ctest.xml"
    junit.write_text(
        "<testsuite>"
        '<testcase name="ir/Graph.good"/>'
        '<testcase name="ir/Graph.bad"><failure message=""/><system-out>values differ</system-out></testcase>'
        '<testcase name="run/Gpu.skipped"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
        "<system-out>a.cpp:3: Skipped\nno GPU here\n\n[  SKIPPED ] Gpu.skipped</system-out></testcase>"
        "</testsuite>"
    )
    tally = read(junit)
    assert tally.line() == "1 passed, 1 failed, 1 skipped"
    assert tally.failed == [("ir/Graph.bad", "values differ")]
    assert tally.skipped == [("run/Gpu.skipped", "no GPU here")]


def test_a_tool_that_dies_without_a_failed_test_counts_as_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr("run_tests.ROOT", tmp_path)
    (tmp_path / "build/logs").mkdir(parents=True)
    tally = run("tool", ["sh", "-c", "echo out of disk; exit 3"], tmp_path / "none.xml", read)
    ((name, output),) = tally.failed
    assert name == "tool"
    assert "exit status 3" in output and "out of disk" in output


def test_tallies_add_up():
    total = Tally(2, [("a", "")], [])
    total.add(Tally(1, [], [("b", "why")]))
    assert total.line() == "3 passed, 1 failed, 1 skipped"
