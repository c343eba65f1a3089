"""make test-windows and make cross-macos: the graph library and the program for the systems that Zig knows.

Windows' tests of every op's samples run under wine. macOS has no emulator here, so what is compiled for it is
not run; its frameworks (Metal, Accelerate) are not in Zig's package, and stay out.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from provision import base, ggml, system

from wheels.build import Build

WINE = "/usr/lib/wine/wine64"  # Debian's package, which has no link to it in a folder of programs
GOOGLETEST = Path("/usr/src/googletest")
# As Build has them: architecture, name, CMake's name and Zig's.
SYSTEMS = {
    "windows": ("x86_64", "windows", "Windows", "x86_64-windows-gnu"),
    "macos": ("aarch64", "macos", "Darwin", "aarch64-macos.13.0"),
}
GGML_FLAGS = [
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=OFF",
    "-DGGML_RPC=OFF",
    "-DGGML_METAL=OFF",
    "-DGGML_BLAS=OFF",
    "-DGGML_ACCELERATE=OFF",
    "-DGGML_CCACHE=OFF",
    "-DGIT_EXE=OFF",
    f"-DGGML_BUILD_COMMIT={ggml.SDIST_SHA256[:8]}",
]
# These builds are not timed.
QUICK = ["-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"]


def compile_all(build):
    """Everything but language models, whose engine stands on POSIX; and the tests of the ops' samples."""
    build.write_compilers()
    base.say(1, f"{build.name}: ggml")
    common = [flag for flag in ggml.GGML_FLAGS if "NATIVE" not in flag and "RPC" not in flag]
    build.compile(
        "ggml", base.ROOT / "cmake/ggml", *common, *GGML_FLAGS, *QUICK, f"-DLLAMA_CPP_DIR={build.source}"
    )
    build.install("ggml")
    base.say(2, f"{build.name}: Headrace")
    folder = build.folder / "headrace"
    folder.mkdir(exist_ok=True)
    (folder / "setup.cmake").write_text(f'set(HEADRACE_GGML_DIR "{build.prefix("ggml")}")\n')
    flags = [*build.headrace_flags(), *QUICK, f"-DHEADRACE_GOOGLETEST={GOOGLETEST}"]
    for target in ("products", "op_samples"):
        build.compile("headrace", base.ROOT, *flags, target=target)


def run_in_wine(build, filter):
    """The exit status of the samples' tests; the program must list its device, too."""
    system.require_program(WINE, "wine64")
    settings = {**os.environ, "WINEPREFIX": str(build.folder / "wine"), "WINEDEBUG": "-all"}
    programs = build.folder / "headrace/bin"
    listed = subprocess.run([WINE, programs / "headrace.exe", "devices"], env=settings, capture_output=True)
    print(listed.stdout.decode(), end="", flush=True)
    if b"CPU" not in listed.stdout:
        raise base.SetupError(f"headrace.exe lists no device: {listed.stderr.decode(errors='replace')}")
    command = [WINE, programs / "op_samples.exe", "--gtest_brief=1", f"--gtest_filter={filter}"]
    return subprocess.run(command, env=settings).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--filter", default="*", help="of GoogleTest")
    arguments = parser.parse_args()
    build = Build(*SYSTEMS[arguments.system])
    compile_all(build)
    if arguments.system == "windows":
        sys.exit(run_in_wine(build, arguments.filter))
    print(f"{build.name}: compiled, and not run: this machine has nothing that runs its programs")


if __name__ == "__main__":
    base.run_main(main)
