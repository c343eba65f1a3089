"""Emscripten from Debian sid in the user's cache: nothing is installed, and root is not needed.

sid's programs want sid's C library. Each is started by that library's own loader, through a short script in
bin/; Emscripten itself is Python and JavaScript, which this machine's interpreters run.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from provision import base
from wheels.debian import Archive

TESTED = "6.0.5"
LLVM_PROGRAMS = ("clang", "clang++", "wasm-ld", "llvm-*")
LOADER = "root/usr/lib/*/ld-linux-*.so.*"  # in the folder of that machine's libraries
SCRIPT = """\
#!/bin/sh
exec "{loader}" --library-path "{libraries}" --argv0 "$(dirname "$0")/{name}" "{program}" "$@"
"""
# /proc/self/exe is the loader, beside which clang would look for itself; its own children (-cc1) do not.
FOR_CLANG = 'case "$1" in -cc1*) ;; *) set -- -no-canonical-prefixes "$@" ;; esac\n'
CLANG_SCRIPT = SCRIPT.replace("exec ", f"{FOR_CLANG}exec ")
CONFIG = """\
LLVM_ROOT = '{folder}/bin'
BINARYEN_ROOT = '{folder}'
NODE_JS = '{node}'
CACHE = '{folder}/cache'
COMPILER_WRAPPER = '{ccache}'
"""


class Toolchain:
    def __init__(self, folder):
        self.folder = folder
        self.emscripten = folder / "root/usr/share/emscripten"
        self.version = (self.emscripten / "emscripten-version.txt").read_text().strip().strip('"')

    def environment(self):
        return {
            **os.environ,
            "EM_CONFIG": str(self.folder / "config"),
            "PATH": f"{self.emscripten}{os.pathsep}{os.environ['PATH']}",
        }


def installed():
    """The toolchain in the cache, which is fetched if there is none."""
    folder = base.CACHE / "emscripten"
    with base.locked(base.CACHE / "emscripten.lock"):
        if not folder.exists():
            fetch(folder)
        write_config(folder)
    toolchain = Toolchain(folder)
    if toolchain.version != TESTED:
        print(
            f"warning: Emscripten {toolchain.version} is in {folder}; Headrace is tested with {TESTED}",
            flush=True,
        )
    return toolchain


def fetch(folder):
    machine = os.uname().machine
    if machine != "x86_64":
        raise base.SetupError(f"Emscripten is taken from Debian for x86_64, and this machine is {machine}")
    if not shutil.which("apt-get"):
        raise base.SetupError("Emscripten is taken from Debian's archive, and this system has no apt-get")
    base.say(1, "fetching Emscripten from Debian sid (165 MB, 800 MB unpacked)")
    base.CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base.CACHE) as scratch:
        archive = Archive(Path(scratch) / "apt", "amd64", ["sid"])
        # Without locks: they are the system's, which nothing here changes.
        options = ["-oDebug::NoLocking=true", "--download-only", "--no-install-recommends", "-y"]
        archive.apt("install", *options, "emscripten")
        made = Path(scratch) / "emscripten"
        made.mkdir()
        for package in sorted((archive.folder / "cache/archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, made / "root"], check=True)
        write_programs(made, folder)
        made.rename(folder)


def write_programs(made, folder):
    """Scripts in made/bin that start the programs where they will lie, in folder."""
    (made / "bin").mkdir()
    llvm = max((made / "root/usr/lib").glob("llvm-*"), key=lambda path: int(path.name[5:]))
    (made / "lib").symlink_to(llvm.relative_to(made) / "lib")  # clang looks for its headers beside bin/
    loader = folder / next(made.glob(LOADER)).relative_to(made)
    libraries = f"{loader.parent}:{folder}/lib"
    patterns = [(llvm / "bin", name) for name in LLVM_PROGRAMS] + [(made / "root/usr/bin", "wasm-*")]
    for program in [path for where, pattern in patterns for path in where.glob(pattern)]:
        script = made / "bin" / program.name
        if re.search(r"-\d+$", program.name) or script.exists():
            continue  # another name of what is there
        text = CLANG_SCRIPT if program.name.startswith("clang") else SCRIPT
        at = folder / program.relative_to(made)
        names = {"loader": loader, "libraries": libraries, "program": at, "name": program.name}
        script.write_text(text.format(**names))
        script.chmod(0o755)


def write_config(folder):
    """Names this machine's Node and ccache, which may change."""
    node = shutil.which("node")
    if not node:
        raise base.SetupError("Emscripten needs Node 18.3 or newer: make node installs it")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < (18, 3):
        raise base.SetupError(f"Emscripten needs Node 18.3 or newer; {node} is {version.strip()}")
    text = CONFIG.format(folder=folder, node=node, ccache=shutil.which("ccache") or "")
    path = folder / "config"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
