#!/usr/bin/env python3
"""Sets up and compiles one CMake preset; prints what it does only when there is something to do."""

import argparse
import os
import re
import subprocess
import time

from provision import base
from setup import prepared

# The demo leaves out what it does not show, as long as nothing else was asked for in this folder.
DEMO = ["-DHEADRACE_TESTS=OFF", "-DHEADRACE_KERNEL_TARGETS=native", "-DHEADRACE_QUICK=ON"]
WHOLE = ["-DHEADRACE_KERNEL_TARGETS=all"]


def configure(preset, build_dir, target):
    """Applies the preset when it is new or has changed; ninja itself notices changed CMake files."""
    presets = (base.ROOT / "CMakePresets.json").read_text()
    stamp = build_dir / "preset.stamp"
    done = stamp.read_text() if stamp.exists() and (build_dir / "build.ninja").exists() else ""
    if done == presets or (target == "demo" and done == f"demo {presets}"):
        return
    options = DEMO if target == "demo" else WHOLE
    base.run_logged(f"configure_{preset}", ["cmake", "--preset", preset, *options], cwd=base.ROOT)
    stamp.write_text(f"demo {presets}" if target == "demo" else presets)


def compile_target(preset, build_dir, target):
    """Runs ninja with its output in a log; shows progress and warnings, and on failure the first errors."""
    command = ["ninja", "-C", build_dir, "-j", str(len(os.sched_getaffinity(0))), target]
    shown = None
    lines = []
    # Line buffering lets a second terminal follow the log.
    with (base.LOGS / f"build_{preset}.log").open("w", buffering=1) as log:
        ninja = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in ninja.stdout:
            log.write(line)
            lines.append(line)
            step = re.match(r"\[(\d+)/(\d+)\] (?!Re-)", line)
            if step and shown is None:
                base.say(
                    6, f"compiling Headrace{'' if preset == 'default' else f' ({preset})'}, {step[2]} steps"
                )
                shown = time.monotonic()
            elif step and time.monotonic() - shown > 30:
                base.say(6, f"{step[1]} of {step[2]}")
                shown = time.monotonic()
            if "warning:" in line:
                print(line, end="", flush=True)
    if ninja.wait():
        first = next(
            (i for i, line in enumerate(lines) if line.startswith("FAILED:")), max(0, len(lines) - 40)
        )
        print("".join(lines[first : first + 40]), end="")
        raise base.SetupError(f"compiling failed; the whole output is in build/logs/build_{preset}.log")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="default", choices=["default", "asan", "tsan", "coverage"])
    parser.add_argument("--target", default="all")
    arguments = parser.parse_args()
    build_dir = base.BUILD if arguments.preset == "default" else base.BUILD / arguments.preset
    purpose = "demo" if arguments.target == "demo" else "development"
    base.LOGS.mkdir(parents=True, exist_ok=True)
    # Two ninjas in one folder would overwrite each other's outputs.
    with (
        base.locked(build_dir / ".build.lock"),
        prepared(sanitize="thread" if arguments.preset == "tsan" else None, purpose=purpose),
    ):
        configure(arguments.preset, build_dir, arguments.target)
        compile_target(arguments.preset, build_dir, arguments.target)


if __name__ == "__main__":
    base.run_main(main)
