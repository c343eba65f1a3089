"""The CUDA toolkit: what is installed, or NVIDIA's own packages from PyPI (840 MB), which need no GPU."""

import shutil
import subprocess
from pathlib import Path

from .base import BUILD, run_logged
from .python_packages import install_on_demand

#: The compiler and what ggml's backend links, without the tools; requirements.txt pins them.
PACKAGES = [
    "nvidia-cuda-nvcc",
    "nvidia-cuda-runtime",
    "nvidia-cuda-crt",
    "nvidia-nvvm",
    "nvidia-cuda-cccl",
    "nvidia-cublas",
]
FOLDER = BUILD / "cuda"


def installed_toolkit():
    """The root of the toolkit that is on the PATH, or None where it has no nvcc or lacks cuBLAS."""
    nvcc = shutil.which("nvcc")
    if not nvcc:
        return None
    told = subprocess.run([nvcc, "--dryrun", "x.cu"], capture_output=True, text=True).stderr
    tops = [line.partition("TOP=")[2].strip() for line in told.splitlines() if "TOP=" in line]
    places = ["include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"]
    for top in tops:
        if any((Path(top) / place / "cublas_v2.h").exists() for place in places):
            return Path(top).resolve()
    return None


def toolkit():
    """The root of a CUDA toolkit, fetched where none is installed. Errors: SetupError."""
    return installed_toolkit() or fetched_toolkit()


def fetched_toolkit():
    for package in PACKAGES:
        install_on_demand(package, beside=FOLDER)
    (root,) = (FOLDER / "nvidia").glob("cu*")
    complete(root)
    return root


def complete(root):
    """Adds what the packages leave out: names that a linker looks for, and a library for the driver's."""
    lib = root / "lib"
    for library in lib.glob("*.so.*"):
        plain = lib / library.name.partition(".so.")[0]
        link = plain.with_name(plain.name + ".so")
        if not link.is_symlink():
            link.symlink_to(library.name)
    lib64 = root / "lib64"
    if not lib64.is_symlink():
        lib64.symlink_to("lib")
    driver = lib / "stubs/libcuda.so"
    if not driver.exists():
        driver.parent.mkdir(exist_ok=True)
        source = driver.with_name("empty.c")
        source.write_text("int headrace_no_driver;\n")
        run_logged("cuda", ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", driver, source])
