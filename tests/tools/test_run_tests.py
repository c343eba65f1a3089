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


def shell(tmp_path, monkeypatch, first, alone):
    """What run() makes of a tool that writes these outcomes, the first beside others and the second alone."""
    monkeypatch.setattr("run_tests.ROOT", tmp_path)
    (tmp_path / "build/logs").mkdir(parents=True)
    junit = tmp_path / "junit.xml"

    def writing(outcomes):
        cases = "".join(
            f'<testcase name="{name}">{"" if fine else "<failure/>"}</testcase>'
            for name, fine in outcomes.items()
        )
        failed = not all(outcomes.values())
        return ["sh", "-c", f"echo '<testsuite>{cases}</testsuite>' > {junit}; exit {int(failed)}"]

    return run("tool", writing(first), junit, read, repeat=writing(alone))


def test_a_test_that_passes_alone_is_called_unsteady(tmp_path, monkeypatch):
    tally = shell(tmp_path, monkeypatch, {"a": True, "b": False, "c": False}, {"b": True, "c": False})
    assert tally.line() == "2 passed, 1 failed, 0 skipped"
    assert [name for name, _ in tally.unsteady] == ["b"]
    assert [name for name, _ in tally.failed] == ["c"]


def test_tests_that_did_not_run_alone_have_failed(tmp_path, monkeypatch):
    tally = shell(tmp_path, monkeypatch, {"a": True, "b": False, "c": False}, {"b": True})
    assert tally.line() == "1 passed, 2 failed, 0 skipped"


def test_many_failures_are_no_accident(tmp_path, monkeypatch):
    names = dict.fromkeys("bcde", False)
    tally = shell(tmp_path, monkeypatch, names, dict.fromkeys(names, True))
    assert tally.line() == "0 passed, 4 failed, 0 skipped"
