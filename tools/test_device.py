#!/usr/bin/env python3
"""Runs what tests a device: op samples and graphs, WebNN's conformance cases, whole models.

A case that ends its process is a failed case, and the others go on in a new process. The last line is
`N passed, N failed, N skipped`.
"""

import argparse
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

from run_tests import ROOT, Tally, report, run_pytest

PROGRAM = ROOT / "build/bin/tests/device_test"
CASES = ROOT / "tests/device/conformance_cases.py"
CASES_FOLDER = ROOT.parent / "shared/wpt"
PATIENCE_S = 240  # of one case
CASE_LINE = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] (\S+)")


class CaseRun:
    """One process and what it says, in GoogleTest's words, about each of its cases."""

    def __init__(self, command, environment):
        self.done, self.running, self.lines, self.facts = set(), None, [], []
        self.tally = Tally()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
        )
        self.watch = None

    def follow(self):
        for line in self.process.stdout:
            self.read(line)
        self.stop_watch()
        status = self.process.wait()
        if self.running:
            end = f"signal {-status}" if status < 0 else f"status {status}"
            self.fail(f"the process ended with {end}\n" + "".join(self.lines[-30:]))
        return status

    def read(self, line):
        if line.startswith("sample "):
            self.facts.append(line.split())
        found = CASE_LINE.match(line)
        if not found:
            self.lines.append(line)
        elif found[1] == "RUN":
            self.running, self.lines = found[2], []
            self.stop_watch()
            self.watch = threading.Timer(PATIENCE_S, self.process.kill)
            self.watch.start()
        elif self.running and found[2].rstrip(",") == self.running:
            self.finish(found[1])

    def finish(self, how):
        if how == "FAILED":
            return self.fail("".join(self.lines))
        if how == "SKIPPED":
            self.tally.skipped.append((self.running, "".join(self.lines).strip().splitlines()[-1]))
        else:
            self.tally.passed += 1
        self.done.add(self.running)
        self.running = None

    def fail(self, output):
        self.tally.failed.append((self.running, output.strip()))
        self.done.add(self.running)
        self.running = None

    def stop_watch(self):
        if self.watch:
            self.watch.cancel()


def run_cases(name, cases, command_for, environment):
    """All cases, in as many processes as it takes. Returns the tally, and what cases told beside that."""
    tally, facts, left, status = Tally(), [], list(cases), 0
    while left:
        run = CaseRun(command_for(left), environment)
        status = run.follow()
        tally.add(run.tally)
        facts += run.facts
        if not run.done:
            tally.failed.append((name, f"no case was run; status {status}\n{''.join(run.lines[-30:])}"))
            break
        left = [case for case in left if case not in run.done]
    print(f"{name}: {tally.line()}", flush=True)
    return tally, facts


def listed_tests(pattern, environment):
    text = subprocess.run(
        [PROGRAM, "--gtest_list_tests", f"--gtest_filter={pattern}"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    ).stdout
    names, suite = [], ""
    for line in text.splitlines():
        if line.startswith("  "):
            names.append(suite + line.split("#")[0].strip())
        elif line.endswith(".") or ".  #" in line:
            suite = line.split("#")[0].strip()
    return names


def run_program(pattern, environment):
    todo = ROOT / "build/device_tests.txt"

    def command(left):
        # An argument may not be as long as all names.
        todo.write_text(f"--gtest_filter={':'.join(left)}\n")
        return [PROGRAM, f"--gtest_flagfile={todo}"]

    return run_cases("device_test", listed_tests(pattern, environment), command, environment)


def run_conformance(ops, environment):
    if not CASES_FOLDER.exists():
        tally = Tally(skipped=[("conformance cases", f"{CASES_FOLDER} is not there")])
        return tally, []
    python = [sys.executable, CASES, CASES_FOLDER]
    listed = subprocess.run(
        [*python, "--list", *ops], capture_output=True, text=True, env=environment, check=True
    )
    cases = listed.stdout.split()
    todo = ROOT / "build/conformance_cases.txt"

    def command(left):
        todo.write_text("\n".join(left))
        return [*python, "--only", todo]

    return run_cases("conformance", cases, command, environment)


def op_rows(facts):
    """By op: samples, those on the device, and both again of samples whose tensors are all f32 or f16."""
    rows = {}
    for _, op, device, kind in facts:
        row = rows.setdefault(op, [0, 0, 0, 0])
        there = device != "CPU"
        row[0] += 1
        row[1] += there
        if kind == "real":
            row[2] += 1
            row[3] += there
    return rows


def table_of(facts):
    """The ops of which some sample runs on the device."""
    lines = ["| op | samples | there | of f32 and f16 | there |", "|---|---|---|---|---|"]
    for op, (samples, there, real, real_there) in sorted(op_rows(facts).items()):
        if there:
            lines.append(f"| `{op}` | {samples} | {there} | {real} | {real_there} |")
    return "\n".join(lines)


def write_table(page, facts):
    """Between the page's two marks."""
    before, start, rest = page.read_text().partition("<!-- samples -->\n")
    _, end, after = rest.partition("<!-- end of samples -->")
    if not start or not end:
        raise SystemExit(f"{page} has no marks <!-- samples --> and <!-- end of samples -->")
    page.write_text(f"{before}{start}{table_of(facts)}\n{end}{after}")


def tell_counts(facts):
    rows = op_rows(facts)
    if rows:
        real, there = (sum(row[i] for row in rows.values()) for i in (2, 3))
        print(f"samples of f32 and f16 alone: {there} of {real} have their node on the device")


def device_environment(device):
    environment = {**os.environ, "HEADRACE_TEST_DEVICE": device, "HEADRACE_TUNING": "off"}
    environment["HEADRACE_PACKED_CACHE"] = "off"
    # Tests' programs do not lie beside the libraries.
    for name in ("vulkan", "cuda"):
        library = ROOT / f"build/lib/libggml-{name}.so"
        if device.lower().startswith(name) and library.exists():
            environment.setdefault(f"GGML_{name.upper()}_LIBRARY", str(library))
            # Named, Mesa's driver that computes on the CPU is a device, too.
            environment.setdefault("GGML_VK_VISIBLE_DEVICES", "0")
    return environment


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="Vulkan0", help="its name in headrace devices")
    parser.add_argument("--filter", default="*", help="of the C++ tests, in GoogleTest's words")
    parser.add_argument("--ops", nargs="*", default=[], help="of the conformance cases; default: all")
    parser.add_argument(
        "--only", choices=["program", "conformance", "models"], action="append", help="default: all three"
    )
    parser.add_argument("--facts", type=Path, help="a file for what samples and cases told")
    parser.add_argument("--page", type=Path, help="the page whose table of ops is written anew")
    arguments = parser.parse_args()
    environment = device_environment(arguments.device)
    wanted = arguments.only or ["program", "conformance", "models"]
    tally, facts = Tally(), []
    if "program" in wanted:
        found, told = run_program(arguments.filter, environment)
        tally.add(found)
        facts += told
    if "conformance" in wanted:
        found, told = run_conformance(arguments.ops, environment)
        tally.add(found)
        facts += told
    if "models" in wanted:
        os.environ.update(environment)
        tally.add(run_pytest(ROOT / "build", ["tests/device"]))
    if not tally.passed and not tally.failed:
        tally.failed.append(("the test run", "no test was executed"))
    report(tally)
    tell_counts(facts)
    if arguments.facts:
        arguments.facts.write_text("".join(" ".join(fact) + "\n" for fact in facts))
    if arguments.page:
        write_table(arguments.page, facts)
    print(tally.line())
    return bool(tally.failed)


if __name__ == "__main__":
    sys.exit(main())
