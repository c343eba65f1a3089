"""Compiles the graph lane and Node's addon on it to WebAssembly, into build/web."""

import json
import os

from provision import base, ggml, system
from wheels.debian import Archive
from wheels.headers import linked_headers

from web import toolchain

WORK = base.BUILD / "web"
MODULES = base.ROOT / "node/native/web"
SOURCES_RELEASE = "bookworm"  # Highway and fmt as a native build has them
GOOGLETEST = "/usr/src/googletest"
# One set of objects for all modules: linked without -pthread, their atomics are plain accesses.
COMPILE_FLAGS = "-msimd128 -fwasm-exceptions -pthread"
GGML_FLAGS = [
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=OFF",
    "-DGGML_RPC=OFF",
    "-DGGML_OPENMP=OFF",
    "-DGGML_LLAMAFILE=OFF",
    "-DGGML_BUILD_TESTS=OFF",
    "-DGGML_BUILD_EXAMPLES=OFF",
    "-DGGML_CCACHE=OFF",
    "-DGIT_EXE=OFF",
    "-DCMAKE_INSTALL_LIBDIR=lib",
    f"-DGGML_BUILD_COMMIT={ggml.SDIST_SHA256[:8]}",
]


class Build:
    def __init__(self):
        self.emscripten = toolchain.installed()
        self.archive = Archive(WORK / "debian", "amd64", [SOURCES_RELEASE])

    def compile(self, *targets):
        """The named targets of cmake/web.cmake, after what they stand on."""
        source = ggml.fetch_llama_cpp(base.VENV_PYTHON)
        installed = WORK / "ggml-installed"
        base.say(2, "WebAssembly: ggml")
        self.cmake(
            "ggml",
            base.ROOT / "cmake/ggml",
            [*GGML_FLAGS, f"-DLLAMA_CPP_DIR={source}", f"-DCMAKE_INSTALL_PREFIX={installed}"],
            ["install"],
        )
        base.say(3, "WebAssembly: Headrace")
        folder = WORK / "headrace"
        folder.mkdir(exist_ok=True)
        (folder / "setup.cmake").write_text(f'set(HEADRACE_GGML_DIR "{installed}")\n')
        flags = [
            "-DHEADRACE_PORTABLE=ON",
            "-DHEADRACE_MLX=OFF",
            f"-DHEADRACE_HEADERS={linked_headers(WORK / 'include')}",
            f"-DHEADRACE_HIGHWAY={self.archive.source('highway', SOURCES_RELEASE)}",
            f"-DHEADRACE_FMT={self.archive.source('fmtlib', SOURCES_RELEASE)}",
            f"-DHEADRACE_NODE_HEADERS={system.node_headers()}",
            f"-DHEADRACE_GOOGLETEST={GOOGLETEST}",
            "-DHEADRACE_SMALL=ON",
        ]
        self.cmake("headrace", base.ROOT, flags, targets)
        made_by = {"headrace": version(), "emscripten": self.emscripten.version}
        (MODULES / "versions.json").write_text(json.dumps(made_by) + "\n")

    def cmake(self, name, source, flags, targets):
        build = WORK / name
        build.mkdir(exist_ok=True)
        file = self.emscripten.emscripten / "cmake/Modules/Platform/Emscripten.cmake"
        command = ["cmake", "-S", source, "-B", build, "-G", "Ninja", f"--toolchain={file}"]
        command += ["-DCMAKE_BUILD_TYPE=Release", "-DEMSCRIPTEN_SYSTEM_PROCESSOR=wasm32", "-DCCACHE="]
        # What is found is ours, beside Emscripten's own.
        command += [f"-DCMAKE_FIND_ROOT_PATH_MODE_{kind}=BOTH" for kind in ("PACKAGE", "LIBRARY", "INCLUDE")]
        command += [f"-DCMAKE_{language}_FLAGS={COMPILE_FLAGS}" for language in ("C", "CXX")]
        environment = self.emscripten.environment()
        # There, because emcc writes a.out.js where it is asked what it is.
        base.run_logged(f"web-{name}", [*command, *flags], env=environment, cwd=build)
        jobs = ["-j", str(len(os.sched_getaffinity(0)))]
        base.run_logged(f"web-{name}", ["ninja", "-C", build, *jobs, *targets], env=environment)


def version():
    return json.loads((base.ROOT / "node/package.json").read_text())["version"]


def check_system():
    if not system.node_headers():
        raise base.SetupError("Node's node_api.h is not there: make node installs it")
    if not os.path.exists(GOOGLETEST):
        raise base.SetupError(f"{GOOGLETEST} is missing: Debian's package googletest has it")
    system.require_program("ninja", "ninja-build")
