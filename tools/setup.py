#!/usr/bin/env python3
"""Prepares a checkout for building: system packages, .venv, the llama.cpp source tree and ggml.

Runs before .venv exists, so it uses the standard library only. Every step first checks whether its result
is there, so a second run costs a fraction of a second. ggml and its source live in the cache folder, which
all clones share. Environment:

  LLAMA_CPP_DIR       a llama.cpp tree to build ggml from, in place of the pinned one
  GGML_DIR            the prefix of an installed ggml, in place of building one
  CMAKE_PREFIX_PATH   prefixes that are searched for an installed ggml first
  HEADRACE_GGML       "system": use the ggml that CMake finds by itself (no language models then)
  HEADRACE_CUDA       "ON": build ggml's CUDA backend, too, a library that is loaded where it is there
  HEADRACE_VULKAN     "ON": the same of its Vulkan backend
  CUDAARCHS           the GPUs to compile CUDA for in place of this machine's, as CMake names them: "80;90"
  EXECUTORCH          "1": install PyTorch and ExecuTorch (1.5 GB), for which that door is then built, too
  XDG_CACHE_HOME      where the cache goes (default ~/.cache)

A wheel's build calls it with --wheel: the Python packages come from pip's build environment then, not from
.venv.
"""

import argparse
import ctypes.util
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        f"error: {sys.executable} is Python {sys.version.split()[0]}, and the pinned packages need 3.11 or\n"
        "newer. To choose another one: make PYTHON=python3.12 ..."
    )

from provision.base import BUILD, ROOT, SetupError, locked, run_logged, run_main
from provision.ggml import build_ggml, build_llama, find_or_build_ggml, installed_ggml
from provision.python_packages import (
    install_build_packages,
    install_demo_packages,
    install_executorch,
    install_on_demand,
    install_python_packages,
    make_venv,
)
from provision.system import (
    apt_command,
    check_tools,
    install_system_packages,
    node_headers,
    require_packages,
    require_program,
)

MLX_PACKAGES = ["mlx", "mlx-cpu"]
NODE_PROGRAMS = {"node": "nodejs", "npm": "npm"}  # by the packages that have them


@contextmanager
def prepared(sanitize=None, purpose="development"):
    """Holds while CMake runs, which finds everything there. purpose: "development"; or "demo", whose packages
    come while the compiler has the processor, and are there at the end.
    """
    with ThreadPoolExecutor(2) as beside:
        with locked(BUILD / ".setup.lock"):
            system = install_system_packages(purpose, beside)
            check_tools("g++", "cmake", "ninja", "git")
            make_venv()
            install_build_packages()
            packages = beside.submit(install_demo_packages if purpose == "demo" else install_all_packages)
            find_or_build_ggml(
                BUILD / "tsan" if sanitize == "thread" else BUILD,
                for_demo=purpose == "demo",
                sanitize=sanitize,
            )
            if system:
                system.result()
            if purpose != "demo":
                packages.result()
        yield
        packages.result()


def prepare_lint():
    """Without llama.cpp and ggml."""
    with locked(BUILD / ".setup.lock"):
        install_system_packages("development")
        check_tools("g++", "cmake", "ninja", "git")
        make_venv()
        install_python_packages()


def install_all_packages():
    install_python_packages()
    install_executorch()


def prepare_wheel(build_dir):
    """What cmake/dependencies.cmake asks for while pip builds a wheel."""
    with locked(BUILD / ".setup.lock"):
        install_system_packages("wheel")
        check_tools("g++", "cmake", "ninja")
        find_or_build_ggml(build_dir, python=sys.executable)


def prepare_ggml(build_dir):
    """What cmake/dependencies.cmake asks for where CMake is given LLAMA_CPP_DIR: nothing is installed."""
    with locked(BUILD / ".setup.lock"):
        check_tools("g++", "cmake", "ninja")
        find_or_build_ggml(build_dir, python=sys.executable)


def prepare_mlx():
    """The MLX backend's packages, and OpenBLAS where it can be installed without asking: it is optional."""
    for package in MLX_PACKAGES:
        install_on_demand(package)
    if shutil.which("dpkg-query") and apt_command() and not ctypes.util.find_library("openblas"):
        require_packages(["libopenblas-dev"], "OpenBLAS is not installed")


def prepare_arm():
    """A compiler for 64-bit ARM and an emulator of single programs."""
    install_on_demand("ziglang")
    require_program("qemu-aarch64", "qemu-user")


def prepare_node():
    """Node with its headers, and the packages that node/'s own tools need. The addon itself needs none."""
    missing = [package for program, package in NODE_PROGRAMS.items() if not shutil.which(program)]
    if not node_headers():
        missing.append("libnode-dev")
    require_packages(missing, "Node, npm or Node's node_api.h is not there")
    lock, installed = ROOT / "node/package-lock.json", ROOT / "node/node_modules/.package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        try:
            run_logged("npm", ["npm", "ci", "--no-audit", "--no-fund"], cwd=ROOT / "node")
        except SetupError as error:
            # Only checks of types and layout need them.
            print(
                f"warning: TypeScript and prettier are not installed, and types not tested: {error}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lint", action="store_true", help="only what make lint needs: no ggml")
    parser.add_argument("--wheel", type=Path, metavar="BUILD_DIR", help="what a wheel's build there needs")
    parser.add_argument("--ggml", type=Path, metavar="BUILD_DIR", help="only the ggml of a build there")
    parser.add_argument("--mlx", action="store_true", help="what the MLX backend needs besides")
    parser.add_argument("--arm", action="store_true", help="what running tests for 64-bit ARM needs besides")
    parser.add_argument("--node", action="store_true", help="what the npm package in node/ needs besides")
    parser.add_argument("--peers", action="store_true", help="llama.cpp's programs, and print their folder")
    parser.add_argument("--on-demand", metavar="PACKAGE", help="one that requirements.txt only pins")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="of --on-demand, in place of .venv")
    parser.add_argument("--whole", action="store_true", help="of --beside: what the package requires, too")
    arguments = parser.parse_args()
    if arguments.lint:
        prepare_lint()
    elif arguments.wheel:
        prepare_wheel(arguments.wheel)
    elif arguments.ggml:
        prepare_ggml(arguments.ggml)
    elif arguments.peers:
        print(build_llama(installed_ggml() or build_ggml(), peers=True) / "bin")
    elif arguments.mlx:
        prepare_mlx()
    elif arguments.node:
        prepare_node()
    elif arguments.arm:
        prepare_arm()
    elif arguments.on_demand:
        install_on_demand(arguments.on_demand, arguments.beside, arguments.whole)
    else:
        with prepared():
            pass


if __name__ == "__main__":
    run_main(main)
