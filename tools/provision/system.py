"""Debian's packages, and whether the tools are there."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from .base import VENV_PYTHON, SetupError, run_logged, say

MIN_CMAKE = (3, 25)
# What a wheel's build and the demo need; CMake and Ninja may also come from PyPI.
PACKAGES = [
    "flatbuffers-compiler",
    "libflatbuffers-dev",
    "libfmt-dev",
    "libhwy-dev",
    "libxxhash-dev",
    "nlohmann-json3-dev",
]
PROGRAM_PACKAGES = ["libcli11-dev"]
BUILD_TOOLS = ["cmake", "ninja-build"]
TEST_PACKAGES = ["clang-format", "libgtest-dev", "libgmock-dev"]
# Installed along with missing packages, but alone no reason to ask for root. ccache makes the wheel's build,
# the second of the same sources, a matter of seconds.
OPTIONAL_PACKAGES = ["ccache"]

# With HEADRACE_VULKAN=ON: what the Vulkan backend is built with, and Mesa's drivers, one of them for the CPU.
VULKAN_PACKAGES = ["glslc", "libvulkan-dev", "mesa-vulkan-drivers", "spirv-headers"]

# What building ggml and llama.cpp waits for. All else may come meanwhile.
FIRST_PACKAGES = [*BUILD_TOOLS, *VULKAN_PACKAGES, "python3-venv"]

# By what is to be made.
PURPOSES = {
    "wheel": PACKAGES + PROGRAM_PACKAGES,
    "demo": PACKAGES + BUILD_TOOLS,
    "development": PACKAGES + PROGRAM_PACKAGES + BUILD_TOOLS + TEST_PACKAGES,
}


def wants_backend(name):
    """Whether the environment asks for ggml's backend of that name, "vulkan" or "cuda"."""
    asked = {"cuda": os.environ.get("HEADRACE_CUDA"), "vulkan": os.environ.get("HEADRACE_VULKAN")}
    return asked[name] in ("ON", "1")


def missing_packages(purpose):
    wanted = list(PURPOSES[purpose])
    if wants_backend("vulkan"):
        wanted += VULKAN_PACKAGES
    if sys.executable.startswith("/usr/bin/") and not has_python_headers():
        wanted.append("python3-dev")
    if purpose != "wheel" and not VENV_PYTHON.exists() and not has_venv():
        wanted.append("python3-venv")
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted]
    listed = subprocess.run(query, capture_output=True, text=True).stdout
    installed = {line.split()[0] for line in listed.splitlines() if line.endswith(" installed")}
    return [package for package in wanted if package not in installed]


def has_python_headers():
    return Path(sysconfig.get_paths()["include"], "Python.h").exists()


def has_venv():
    # Debian ships venv without ensurepip; importing venv alone would not notice.
    return (
        subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0
    )


def install_system_packages(purpose, beside=None):
    """Installs what is missing, and returns nothing; or with `beside`, an executor, a future: what compilers
    and the Python environment wait for is there then, and the rest by the future's end.
    """
    if not shutil.which("dpkg-query"):
        return None  # Not Debian: CMake names whatever it does not find.
    missing = missing_packages(purpose)
    if not missing:
        return None
    if purpose != "wheel":
        missing += [package for package in OPTIONAL_PACKAGES if not shutil.which(package)]
    apt = apt_get(missing)
    say(1, f"installing system packages: {' '.join(missing)}")
    run_logged("apt", [*apt, "update"])
    first = [package for package in missing if package in FIRST_PACKAGES] if beside else missing
    rest = [package for package in missing if package not in first]
    if first:
        install_packages(apt, first)
    return beside.submit(install_packages, apt, rest) if rest else None


def apt_get(packages):
    """How apt-get is called here. Errors: SetupError, which says how to install the packages."""
    command = apt_command()
    if command is None:
        raise SetupError(
            "system packages are missing and installing them needs root. Please run\n"
            f"  sudo apt-get install --no-install-recommends {' '.join(packages)}"
        )
    return command


def apt_command():
    """How a call of apt-get begins: as root, or by sudo that asks for no password; else None."""
    environment = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    if os.geteuid() == 0:
        return environment
    sudo = ["sudo", "-n"]
    if not shutil.which("sudo") or subprocess.run([*sudo, "true"], capture_output=True).returncode:
        return None
    return [*sudo, *environment]


def install_packages(apt, packages):
    # Another apt may be at work: wait for it rather than fail.
    waiting = ["-o", "DPkg::Lock::Timeout=600"]
    run_logged("apt", [*apt, *waiting, "install", "-y", "--no-install-recommends", *packages])


def require_program(program, package=None):
    """Installs the package, of the same name by default, where its program is missing. Errors: SetupError."""
    if not shutil.which(program):
        require_packages([package or program], f"{program} is not on the PATH")


def require_packages(packages, lacking):
    """Installs Debian's packages, if there are any in the list. Errors: SetupError, which says how to, and
    where this is no Debian what is lacking.
    """
    if not packages:
        return
    if not shutil.which("dpkg-query"):
        names = " ".join(packages)
        raise SetupError(f"{lacking}. On Debian: apt-get install --no-install-recommends {names}")
    apt = apt_get(packages)
    say(1, f"installing system packages: {' '.join(packages)}")
    run_logged("apt", [*apt, "update"])
    install_packages(apt, packages)


def node_headers():
    """The folder of Node's headers, which are beside the Node of PATH (nvm's, NodeSource's) or from Debian's
    libnode-dev; None where they are missing.
    """
    node = shutil.which("node")
    prefixes = [Path(node).resolve().parents[1]] if node else []
    folders = [prefix / "include/node" for prefix in (*prefixes, Path("/usr"))]
    return next((folder for folder in folders if (folder / "node_api.h").exists()), None)


def check_tools(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise SetupError(
                f"{tool} is not on the PATH. On Debian: apt-get install g++ cmake ninja-build git"
            )
    text = subprocess.run(["cmake", "--version"], capture_output=True, text=True).stdout
    version = tuple(map(int, re.search(r"(\d+)\.(\d+)", text).groups()))
    if version < MIN_CMAKE:
        raise SetupError(
            f"cmake is {version[0]}.{version[1]}, and {MIN_CMAKE[0]}.{MIN_CMAKE[1]} or newer is needed."
        )
