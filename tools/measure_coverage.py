#!/usr/bin/env python3
"""Runs the C++ tests of the coverage build and reports the line coverage of the graph compiler's folders.

Fails where one of them is below the minimum. Lines that no test reaches are listed by file.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/coverage"
FOLDERS = ("src/ir", "src/passes", "src/ops")
MINIMUM = 90.0  # percent of the lines of each folder


def suites(program):
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True)
    names = (line.split("#")[0].strip() for line in listed.stdout.splitlines())
    return [name[:-1] for name in names if name.endswith(".")]


def run_tests():
    """A process for each suite. One for each test would take minutes to write counters; one for all would
    carry what a suite leaves behind in ggml, such as a remote device that is gone, into the next.
    """
    for counters in BUILD.rglob("*.gcda"):
        counters.unlink()
    failed = []
    for program in sorted((BUILD / "bin/tests").glob("*_test")):
        for suite in suites(program):
            command = [program, "--gtest_brief=1", f"--gtest_filter={suite}.*"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                failed.append(f"{program.name} {suite}")
                print(done.stdout[-4000:] + done.stderr[-4000:])
    return failed


def measure():
    """For each file below FOLDERS: {line number: times executed}."""
    report = BUILD / "coverage.json"
    command = [sys.executable, "-m", "gcovr", "--root", ROOT, "--json", report]
    command += [option for folder in FOLDERS for option in ("--filter", f"{ROOT}/{folder}/")]
    command += ["-j", str(len(os.sched_getaffinity(0))), "--exclude-noncode-lines", BUILD / "src"]
    subprocess.run(list(map(str, command)), check=True, cwd=ROOT)
    return executions(json.loads(report.read_text()))


def executions(report):
    """A template's line is listed once for each instance: it is covered when one of them ran."""
    files = {}
    for file in report["files"]:
        lines = files.setdefault(file["file"], defaultdict(int))
        for line in file["lines"]:
            lines[line["line_number"]] += line["count"]
    return files


def ranges(numbers):
    """[3, 4, 5, 9] as "3-5, 9"."""
    runs = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def summarize(files):
    """Prints what no test reached; the folders below the minimum."""
    low = []
    for name, lines in sorted(files.items()):
        missed = [number for number, count in lines.items() if count == 0]
        if missed:
            print(f"{name}: {1 - len(missed) / len(lines):.1%}, not reached: {ranges(missed)}")
    for folder in FOLDERS:
        counts = [n for name, lines in files.items() if name.startswith(f"{folder}/") for n in lines.values()]
        percent = 100 * sum(n > 0 for n in counts) / len(counts) if counts else 0.0
        print(f"{folder}: {percent:.1f} % of {len(counts)} lines")
        if percent < MINIMUM:
            low.append(folder)
    return low


def main():
    if failed := run_tests():
        sys.exit(f"error: {', '.join(failed)} failed, so the coverage says nothing")
    if low := summarize(measure()):
        sys.exit(f"error: {', '.join(low)}: less than {MINIMUM:.0f} % of the lines were reached by tests")


if __name__ == "__main__":
    main()
