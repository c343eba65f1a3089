#!/usr/bin/env python3
"""Runs ctest and pytest and prints what failed, why tests were skipped, and `N passed, N failed, N skipped`.

No executed test at all counts as a failure: a suite that was not found must not look green.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Processes that run tests. More of them than this only add noise to what tests wait for.
PARALLEL = 2
# Failed tests that are run once more, by themselves: beside others a test may wait longer than it allows.
# More than these are no accident.
MOST_REPEATED = 3


@dataclass
class Tally:
    passed: int = 0
    failed: list = field(default_factory=list)  # (name, output)
    skipped: list = field(default_factory=list)  # (name, reason)
    unsteady: list = field(default_factory=list)  # (name, output): passed when run alone; counted as passed

    def settle(self, alone):
        """Takes over what the failed tests did when they ran alone, if each of them did run."""
        if alone.passed + len(alone.failed) + len(alone.skipped) != len(self.failed):
            return
        still = {name for name, _ in alone.failed}
        self.unsteady = [test for test in self.failed if test[0] not in still]
        self.failed = alone.failed
        self.passed += alone.passed

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.unsteady += other.unsteady

    def line(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def read_junit(path, name_of, skip_reason):
    """The outcome of every test in a JUnit file, as ctest and pytest both write it."""
    tally = Tally()
    if not path.exists():
        return tally
    for case in ElementTree.parse(path).iter("testcase"):
        name = name_of(case)
        problems = [*case.iter("failure"), *case.iter("error")]
        if problems:
            outputs = [
                element.text or element.get("message") or ""
                for element in [*problems, *case.iter("system-out")]
            ]
            tally.failed.append((name, "\n".join(outputs).strip()))
        elif case.find("skipped") is not None:
            tally.skipped.append((name, skip_reason(case)))
        else:
            tally.passed += 1
    return tally


def pytest_skip_reason(case):
    """A module that skips itself has its reason in the text, after "Skipped: "."""
    skipped = case.find("skipped")
    found = re.search(r"Skipped: (.*?)['\"]\)?$", (skipped.text or "").strip(), re.DOTALL)
    message = skipped.get("message", "")
    return found[1] if found and message == "collection skipped" else message


def gtest_skip_reason(case):
    """GTEST_SKIP() prints `file:line: Skipped` and then the reason."""
    output = case.findtext("system-out") or ""
    found = re.search(r": Skipped\n(.*?)\n*\[  SKIPPED \]", output, re.DOTALL)
    return found[1].strip() if found else case.find("skipped").get("message", "")


def run(name, command, junit, read, fine=(0,), repeat=(), **kwargs):
    """Runs one test tool. A bad exit status without a failed test is a failure of the tool itself.

    repeat: the command that runs what failed, one test at a time.
    """
    junit.unlink(missing_ok=True)
    result = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        **kwargs,
    )
    (ROOT / "build/logs" / f"{name}.log").write_text(result.stdout)
    tally = read(junit)
    if repeat and 0 < len(tally.failed) <= MOST_REPEATED:
        names = ", ".join(test for test, _ in tally.failed)
        print(f"{name}: {tally.line()}; once more, alone: {names}", flush=True)
        tally.settle(run(f"{name}_alone", repeat, junit, read, fine, **kwargs))
    if result.returncode not in fine and not (tally.failed or tally.unsteady):
        tally.failed.append((name, f"exit status {result.returncode}\n{result.stdout[-4000:]}"))
    print(f"{name}: {tally.line()}", flush=True)
    return tally


def run_ctest(build_dir, preset, pattern):
    junit = build_dir / "ctest.xml"
    command = ["ctest", "--test-dir", str(build_dir), "--output-junit", str(junit)]
    if pattern:
        command += ["--tests-regex", pattern]
    environment = {
        "ASAN_OPTIONS": "strict_string_checks=1:detect_stack_use_after_return=1",
        "LSAN_OPTIONS": f"suppressions={ROOT}/tools/lsan.supp:print_suppressions=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0",
        **os.environ,
    }
    if preset == "tsan" and shutil.which("setarch"):
        # g++ 12's thread sanitizer cannot start where the kernel randomises more address bits than it knows.
        command = ["setarch", "--addr-no-randomize", *command]
    repeat = [*command, "--rerun-failed"]
    command += ["--parallel", str(PARALLEL)]
    read = lambda path: read_junit(path, lambda case: case.get("name"), gtest_skip_reason)  # noqa: E731
    return run(f"ctest_{preset}", command, junit, read, repeat=repeat, env=environment)


def run_pytest(build_dir, paths):
    junit = build_dir / "pytest.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-ra", f"--junitxml={junit}", *paths]
    repeat = [*command, "--last-failed", "--last-failed-no-failures=none"]
    if not paths:  # a file's tests share what its fixtures make
        command += ["--numprocesses", str(PARALLEL), "--dist", "loadfile"]
    name_of = lambda case: f"{case.get('classname')}::{case.get('name')}"  # noqa: E731
    read = lambda path: read_junit(path, name_of, pytest_skip_reason)  # noqa: E731
    return run("pytest", command, junit, read, fine=(0, 5), repeat=repeat, cwd=ROOT)  # 5: no test collected


def report(tally):
    """What failed comes last, where a reader of a long log looks first."""
    by_reason = {}
    for name, reason in tally.skipped:
        by_reason.setdefault(reason, []).append(name)
    for reason, names in sorted(by_reason.items()):
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        print(f"skipped: {names[0]}{others}: {reason}")
    for kind, tests in (("UNSTEADY", tally.unsteady), ("FAILED", tally.failed)):
        for name, output in tests:
            print(f"\n--- {kind} {name}\n{output}")
    print()
    for name, _ in tally.unsteady:
        print(f"unsteady: {name} failed beside other tests and passed alone")
    for name, _ in tally.failed:
        print(f"failed: {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="default", help="any but default runs the C++ tests only")
    parser.add_argument("--filter", help="run only the C++ tests whose name matches this expression")
    parser.add_argument("--python", nargs="*", default=[], metavar="FILE", help="only these Python tests")
    arguments = parser.parse_args()
    # What someone measured on this machine must not decide what is tested.
    os.environ["HEADRACE_TUNING"] = os.environ["HEADRACE_PACKED_CACHE"] = "off"
    default = arguments.preset == "default"
    build_dir = ROOT / "build" if default else ROOT / "build" / arguments.preset
    tally = run_ctest(build_dir, arguments.preset, arguments.filter)
    if default:
        tally.add(run_pytest(build_dir, arguments.python))
    if not tally.passed and not tally.failed:
        tally.failed.append(("the test run", "no test was executed"))
    report(tally)
    (build_dir / "test_summary.txt").write_text(tally.line() + "\n")
    print(tally.line())
    return bool(tally.failed)


if __name__ == "__main__":
    sys.exit(main())
