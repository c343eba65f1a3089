"""Compiles everything that a wheel holds, for another machine, into build/wheels/<architecture>."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import ziglang
from provision import base, ggml, python_packages

from wheels import pypi
from wheels.debian import Archive
from wheels.headers import linked_headers

WORK = base.BUILD / "wheels"
DIST = WORK / "dist"
TOOLCHAIN = base.ROOT / "cmake/portable/toolchain.cmake"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # with Debian's names
GLIBC = "2.28"  # of manylinux_2_28
SOURCES_RELEASE = "bookworm"  # Highway and fmt as a native build has them
BACKENDS = "headrace/lib/headrace"  # where ggml finds them in headrace's wheel
RELEASES = (SOURCES_RELEASE, "trixie")  # the second has headers that know the stable ABI of Python 3.12


@dataclass(frozen=True)
class Python:
    version: str  # that the extensions are for
    headers: str  # of this version are used
    release: str  # of Debian has them
    tag: str  # of Python and its ABI, in the wheel's name


PYTHONS = {
    "cp311": Python("3.11", "3.11", "bookworm", "cp311-cp311"),
    "cp312": Python("3.12", "3.13", "trixie", "cp312-abi3"),
}
GGML_FLAGS = [
    "-DGGML_NATIVE=OFF",
    "-DGGML_BACKEND_DL=ON",
    "-DGGML_CPU_ALL_VARIANTS=ON",
    "-DGGML_CCACHE=OFF",
    "-DCMAKE_INSTALL_BINDIR=lib",  # where ggml puts the backends
    "-DGIT_EXE=OFF",
    f"-DGGML_BUILD_COMMIT={ggml.SDIST_SHA256[:8]}",
]


class Build:
    def __init__(self, arch, name=None, system="Linux", target=None):
        """name: of the folder and the logs; system: as CMake names it; target: Zig's name of it."""
        self.arch, self.system = arch, system
        self.name = name or arch
        self.target = target or f"{arch}-linux-gnu.{GLIBC}"
        self.folder = WORK / self.name
        self.zig = self.folder / "zig"
        self.archive = Archive(WORK / f"debian-{arch}", ARCHITECTURES[arch], RELEASES)
        self.source = ggml.fetch_llama_cpp(base.VENV_PYTHON)
        self.highway = self.archive.source("highway", SOURCES_RELEASE)
        self.fmt = self.archive.source("fmtlib", SOURCES_RELEASE)

    def libraries(self):
        """Everything that no version of Python matters to, except Headrace's own libraries."""
        self.write_compilers()
        base.say(1, f"{self.arch}: the C++ library")
        zig_lib = Path(ziglang.__file__).parent / "lib"
        self.compile("runtime", TOOLCHAIN.parent / "runtime", f"-DZIG_LIB={zig_lib}")
        runtime = f"-DHEADRACE_RUNTIME={self.folder / 'runtime'}"
        base.say(2, f"{self.arch}: ggml, once for each generation of CPUs")
        common = [flag for flag in ggml.GGML_FLAGS if "NATIVE" not in flag]
        self.compile("ggml", base.ROOT / "cmake/ggml", runtime, *common, *GGML_FLAGS, *self.llama_flags())
        self.install("ggml")
        base.say(3, f"{self.arch}: llama.cpp")
        prefix = f"-DGGML_PREFIX={self.prefix('ggml')}"
        self.compile(
            "llama", base.ROOT / "cmake/llama", runtime, prefix, *self.llama_flags(), target="libraries"
        )
        self.install("llama", "headrace")
        self.compile(
            "mtmd", base.ROOT / "cmake/mtmd", runtime, prefix, *self.llama_flags(), target="libraries"
        )
        self.install("mtmd", "headrace")

    def stage_vulkan(self):
        """ggml's Vulkan backend as it lies in a wheel, beside those of headrace's."""
        base.say(5, f"{self.arch}: ggml's backend for Vulkan")
        flags = [f"-DLLAMA_CPP_DIR={self.source}", f"-DGGML_PREFIX={self.prefix('ggml')}", "-DBACKEND=vulkan"]
        flags += [f"-DHEADRACE_RUNTIME={self.folder / 'runtime'}", "-DCMAKE_INSTALL_RPATH=$ORIGIN"]
        flags.append(f"-DVulkan_INCLUDE_DIR={self.vulkan() / 'usr/include'}")
        flags.append(f"-DVulkan_LIBRARY={next(self.vulkan().glob('usr/lib/*/libvulkan.so'))}")
        self.compile("vulkan", base.ROOT / "cmake/device_backend", *flags)
        self.install("vulkan")
        stage = self.folder / "stage-vulkan"
        shutil.rmtree(stage, ignore_errors=True)
        (stage / BACKENDS).mkdir(parents=True)
        shutil.copy(self.prefix("vulkan") / "lib/libggml-vulkan.so", stage / BACKENDS)
        return stage

    def vulkan(self):
        """Vulkan's loader, which is linked, its headers and SPIR-V's, as their packages hold them."""
        return self.archive.packages(SOURCES_RELEASE, "libvulkan-dev", "libvulkan1", "spirv-headers")

    def stage(self, python):
        """The folder with the libraries and extensions as they lie in a wheel for that Python."""
        base.say(4, f"{self.arch}: Headrace for Python {python.version}")
        headers = self.archive.packages(python.release, f"libpython{python.headers}-dev")
        include = headers / "usr/include"
        flags = [
            *self.linked_flags(),
            "-DHEADRACE_PYTHON=ON",
            f"-DEXECUTORCH_DIR={self.executorch() / 'executorch'}",
            f"-DHEADRACE_PYTHON_VERSION={python.version}",
            f"-DHEADRACE_PYTHON_INCLUDE={include};{include / f'python{python.headers}'}",
        ]
        self.compile("headrace", base.ROOT, *flags, target="products")
        return self.staged(f"stage-{python.tag}", "libraries", "runtime", "python")

    def stage_node(self):
        """The same with Node's addons, as they lie in an npm package, for every version of Node."""
        base.say(4, f"{self.arch}: Headrace for Node")
        headers = self.archive.packages(SOURCES_RELEASE, "libnode-dev") / "usr/include/node"
        flags = [*self.linked_flags(), f"-DHEADRACE_NODE_HEADERS={headers}"]
        self.compile("headrace", base.ROOT, *flags, target="node_addon")
        return self.staged("stage-node", "libraries", "node") / "headrace"

    def linked_flags(self):
        """The flags of a build of Headrace on the libraries that libraries() has compiled."""
        build = self.folder / "headrace"
        build.mkdir(exist_ok=True)
        (build / "setup.cmake").write_text(
            f'set(HEADRACE_GGML_DIR "{self.prefix("ggml")}")\n'
            f'set(HEADRACE_LLAMA_DIR "{self.prefix("llama")}")\n'
            f'set(HEADRACE_MTMD_DIR "{self.prefix("mtmd")}")\n'
            f'set(HEADRACE_LLAMA_SOURCE "{self.source}")\n'
            f'set(HEADRACE_LLAMA_BUILD "{ggml.llama_build(self.source)}")\n'
        )
        return [*self.headrace_flags(), f"-DHEADRACE_RUNTIME={self.folder / 'runtime'}"]

    def headrace_flags(self):
        return [
            "-DHEADRACE_PORTABLE=ON",
            "-DHEADRACE_MLX=OFF",
            "-DCCACHE=",  # Zig itself remembers what it compiled
            "-DCMAKE_INSTALL_LIBDIR=lib",
            f"-DHEADRACE_HEADERS={linked_headers(WORK / 'include')}",
            f"-DHEADRACE_HIGHWAY={self.highway}",
            f"-DHEADRACE_FMT={self.fmt}",
        ]

    def stage_delegate(self):
        """The same for the wheel executorch-ggml; no version of Python matters to it."""
        return self.staged("stage-delegate", "delegate")

    def staged(self, name, *components):
        stage = self.folder / name
        shutil.rmtree(stage, ignore_errors=True)
        for component in components:
            self.install("headrace", component, stage / "headrace")
        return stage

    def executorch(self):
        """ExecuTorch's package, which has its headers and libraries; they are the same for every Python."""
        pins = python_packages.pinned_versions(python_packages.requirements())
        (pin,) = (pin for pin in pins if pin.startswith("executorch=="))
        return pypi.unpacked(pin, self.arch, "3.11", WORK / f"executorch-{self.arch}")

    def executorch_license(self):
        return next(self.executorch().glob("executorch-*.dist-info/**/LICENSE*"))

    def write_compilers(self):
        """Zig's compilers as programs of their own, as CMake wants them."""
        self.zig.mkdir(parents=True, exist_ok=True)
        program = Path(ziglang.__file__).parent / "zig"
        # Zig adds debug information unless it is told not to, which takes a third of the time. It keeps
        # frame pointers, and gives clang -O2 where it is asked for -O3.
        target = f"-target {self.target} -g0 -fomit-frame-pointer -Xclang -O3"
        commands = {"cc": f"cc {target}", "c++": f"c++ {target}", "ar": "ar", "ranlib": "ranlib", "rc": "rc"}
        caches = " ".join(f"ZIG_{kind}_CACHE_DIR='{WORK / 'zig-cache'}'" for kind in ("GLOBAL", "LOCAL"))
        for name, command in commands.items():
            text = f"#!/bin/sh\n{caches} exec '{program}' {command} \"$@\"\n"
            path = self.zig / name
            # An unchanged file keeps its time, so nothing is compiled again.
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
                path.chmod(0o755)

    def llama_flags(self):
        return ["-DHEADRACE_PORTABLE=ON", f"-DLLAMA_CPP_DIR={self.source}"]

    def prefix(self, name):
        return self.folder / f"{name}-installed"

    def compile(self, name, source, *flags, target="all"):
        build = self.folder / name
        command = ["cmake", "-S", source, "-B", build, "-G", "Ninja", f"--toolchain={TOOLCHAIN}"]
        command += ["-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_INSTALL_PREFIX={self.prefix(name)}"]
        command += [f"-DHEADRACE_ZIG={self.zig}", f"-DHEADRACE_SYSTEM={self.system}"]
        command += [f"-DHEADRACE_ARCH={self.arch}", *flags]
        log = f"wheels-{self.name}-{name}"
        base.run_logged(log, command)
        jobs = {"CMAKE_BUILD_PARALLEL_LEVEL": str(len(os.sched_getaffinity(0)))}
        base.run_logged(log, ["cmake", "--build", build, "--target", target], env={**jobs, **os.environ})

    def install(self, name, component=None, prefix=None):
        command = ["cmake", "--install", self.folder / name, "--prefix", prefix or self.prefix(name)]
        command += ["--component", component] if component else []
        base.run_logged(f"wheels-{self.name}-{name}", command)
