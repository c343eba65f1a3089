"""make web: the WebAssembly modules in node/native/web. make test-web: these, and their tests."""

import argparse
import subprocess
import sys

from provision import base

from web.build import MODULES, WORK, Build, check_system

# What the programs in build/web/headrace/tests run in Node.
PROGRAMS = {"op_samples": "every op's samples", "passes": "the passes' tests"}


BROTLI = "process.stdout.write(`${zlib.brotliCompressSync(fs.readFileSync(process.argv[1])).length}`)"


def report_sizes():
    for module in sorted(MODULES.glob("*.wasm")):
        packed = int(subprocess.run(["node", "-e", BROTLI, module], check=True, capture_output=True).stdout)
        print(f"{module.relative_to(base.ROOT)}: {module.stat().st_size:,} bytes, {packed:,} by brotli")


def tests_that_fail(filter):
    """Runs all; the names of what failed."""
    failures = []
    for name, what in PROGRAMS.items():
        program = WORK / f"headrace/tests/web_{name}.cjs"
        command = ["node", program, "--gtest_brief=1", f"--gtest_filter={filter}"]
        print(f"== {what}, in Node", flush=True)
        if subprocess.run(command, cwd=base.ROOT).returncode:
            failures.append(what)
    tests = base.ROOT / "tests/web"
    suites = {
        "the modules in Node": ["node", "--test", "--test-reporter=dot", *tests.glob("*.test.mjs")],
        "the page in Chromium": [base.VENV_PYTHON, "-m", "pytest", "-q", "-rs", tests],
    }
    for what, command in suites.items():
        print(f"== {what}", flush=True)
        if subprocess.run(command, cwd=base.ROOT).returncode:
            failures.append(what)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--filter", default="*", help="of GoogleTest")
    arguments = parser.parse_args()
    check_system()
    WORK.mkdir(parents=True, exist_ok=True)
    with base.locked(WORK / ".build.lock"):
        Build().compile("web_modules", *(["web_tests"] if arguments.test else []))
    report_sizes()
    if not arguments.test:
        return
    failures = tests_that_fail(arguments.filter)
    print(f"WebAssembly: {'failed: ' + ', '.join(failures) if failures else 'all tests passed'}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    base.run_main(main)
