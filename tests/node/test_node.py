"""The npm package's own tests, which Node runs; `make node` builds what they need."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ADDON = HERE.parents[1] / "node/native/headrace.node"


@pytest.mark.parametrize("file", sorted(HERE.glob("*.test.mjs")), ids=lambda file: file.name)
def test_node_finds_no_fault(file: Path):
    if not shutil.which("node") or not ADDON.exists():
        pytest.skip("the npm package is not built: make node builds it")
    done = subprocess.run(["node", "--test", "--test-reporter=tap", file], capture_output=True, text=True)
    counts = dict(re.findall(r"^# (pass|fail|cancelled|skipped) (\d+)", done.stdout, re.MULTILINE))
    failures = "\n".join(line for line in done.stdout.splitlines() if line.lstrip().startswith("not ok"))
    assert done.returncode == 0, f"{failures}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"
    if not int(counts["pass"]):
        reason = re.search(r"# SKIP (.*)", done.stdout)
        pytest.skip(reason[1] if reason else f"{file.name} has no test that could run")
