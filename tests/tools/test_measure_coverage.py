from measure_coverage import executions, ranges, summarize


def line(number, count):
    return {"line_number": number, "count": count}


def test_a_line_counts_as_reached_when_one_instance_of_its_template_ran():
    report = {"files": [{"file": "src/ir/a.h", "lines": [line(1, 0), line(1, 3), line(2, 0)]}]}
    assert executions(report) == {"src/ir/a.h": {1: 3, 2: 0}}


def test_a_folder_below_the_minimum_is_named_with_the_lines_that_no_test_reaches(capsys):
    files = {
        "src/ir/a.cpp": dict.fromkeys(range(1, 11), 1),
        "src/passes/b.cpp": {**dict.fromkeys(range(1, 9), 1), 9: 0, 10: 0},
        "src/ops/c.cpp": {1: 1},
    }
    assert summarize(files) == ["src/passes"]
    printed = capsys.readouterr().out
    assert "src/passes/b.cpp: 80.0%, not reached: 9-10" in printed
    assert "src/ir: 100.0 % of 10 lines" in printed


def test_a_folder_without_measured_lines_is_no_success(capsys):
    assert summarize({}) == ["src/ir", "src/passes", "src/ops"]


def test_lines_are_listed_as_ranges():
    assert ranges([9, 3, 4, 5, 12]) == "3-5, 9, 12"
