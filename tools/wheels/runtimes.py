"""Other programs that run JavaScript, from npm into build/runtimes: make test-npm tries the package there."""

import argparse
import json
import os

from provision import base, system

FOLDER = base.BUILD / "runtimes"
NAMES = {"x86_64": ("x64", "x64"), "aarch64": ("arm64", "aarch64")}  # Node's of an architecture, and Bun's
CPU = NAMES.get(os.uname().machine)
# The package and its version, and the program in it.
RUNTIMES = {
    "node18": ("node-linux-{0}@18.20.8", "node-linux-{0}/bin/node"),
    "node22": ("node-linux-{0}@22.23.3", "node-linux-{0}/bin/node"),
    "node24": ("node-linux-{0}@24.21.0", "node-linux-{0}/bin/node"),
    "node26": ("node-linux-{0}@26.10.0", "node-linux-{0}/bin/node"),
    "bun": ("@oven/bun-linux-{1}@1.4.5", "@oven/bun-linux-{1}/bin/bun"),
    "deno": ("@deno/linux-{0}-glibc@2.9.6", "@deno/linux-{0}-glibc/deno"),
}


def program(name, names=CPU):
    """names: of another architecture, for an emulator."""
    folder = name if names == CPU else f"{name}-{names[0]}"
    return FOLDER / folder / "node_modules" / RUNTIMES[name][1].format(*names)


def install(name, names=CPU):
    path = program(name, names)
    if path.exists():
        return
    folder = FOLDER / path.relative_to(FOLDER).parts[0]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"private": True}))
    package = RUNTIMES[name][0].format(*names)
    # npm refuses a package that is for another architecture unless it is forced.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--force"]
    base.run_logged("npm", ["npm", "install", *options, package], cwd=folder)
    path.chmod(0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="RUNTIME", help=", ".join(RUNTIMES))
    names = parser.parse_args().names
    if unknown := sorted(set(names) - RUNTIMES.keys()):
        raise base.SetupError(f"{', '.join(unknown)}: it should be one of {', '.join(RUNTIMES)}")
    if names and not CPU:
        raise base.SetupError(f"{os.uname().machine}: npm has these programs for x86_64 and aarch64")
    system.require_program("npm")
    for name in names:
        install(name)


if __name__ == "__main__":
    base.run_main(main)
