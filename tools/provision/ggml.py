"""The llama.cpp source tree, and ggml and llama.cpp built of it, in the cache that all clones share."""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path

from . import cuda
from .base import CACHE, ROOT, VENV_PYTHON, SetupError, locked, run_logged, say
from .system import wants_backend

# The sdist of llama-cpp-python carries the llama.cpp tree that its version was made for.
SDIST_VERSION = "0.3.36"
SDIST_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
#: llama.cpp's build number and commit, which its CHANGELOG.md names: the tree itself has lost both.
LLAMA_BUILD = "b11312-0c1e57098"
GGML_VERSION = "0.25.3"
GGML_FLAGS = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    "-DGGML_NATIVE=ON",
    "-DGGML_RPC=ON",
    "-DGGML_OPENMP=OFF",
    "-DGGML_BUILD_TESTS=OFF",
    "-DGGML_BUILD_EXAMPLES=OFF",
    "-DCMAKE_INSTALL_LIBDIR=lib",
    "-DCMAKE_INSTALL_RPATH=$ORIGIN",
]
#: Backends that are loaded where their libraries are, and what their builds want.
DEVICE_BACKENDS = {
    "vulkan": "HEADRACE_VULKAN=ON needs Vulkan's headers and loader, SPIR-V's, and glslc.",
    "cuda": (
        "HEADRACE_CUDA=ON builds for this machine's GPUs: where it has none, CUDAARCHS names others, as in "
        "CUDAARCHS=80."
    ),
}
#: The demo's llama.cpp talks a little, on ggml's arithmetic. -O1 takes a quarter longer to compile.
QUICK_FLAGS = ["-DCMAKE_C_FLAGS_RELEASE=-Og -DNDEBUG", "-DCMAKE_CXX_FLAGS_RELEASE=-Og -DNDEBUG"]
SANITIZERS = {"thread": ["-DCMAKE_C_FLAGS=-fsanitize=thread -g1", "-DCMAKE_CXX_FLAGS=-fsanitize=thread -g1"]}


def pinned_source():
    return CACHE / f"llama.cpp-{SDIST_VERSION}"


def fetch_llama_cpp(python):
    """The llama.cpp tree: LLAMA_CPP_DIR, or the pinned sdist unpacked in the cache."""
    if os.environ.get("LLAMA_CPP_DIR"):
        source = Path(os.environ["LLAMA_CPP_DIR"]).expanduser().resolve()
        if not (source / "ggml/CMakeLists.txt").exists():
            raise SetupError(
                f"LLAMA_CPP_DIR={source} has no ggml/CMakeLists.txt: it should be a llama.cpp tree."
            )
        return source
    source = pinned_source()
    if source.exists():
        return source
    with locked(CACHE / "source.lock"):
        if source.exists():
            return source
        say(4, f"fetching the llama.cpp source (from llama-cpp-python {SDIST_VERSION})")
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            sdist = download_sdist(Path(scratch), python)
            with tarfile.open(sdist) as archive:
                archive.extractall(scratch)
            # A rename makes the tree appear whole or not at all.
            Path(scratch, f"llama_cpp_python-{SDIST_VERSION}/vendor/llama.cpp").rename(source)
    return source


def llama_build(source):
    """Build number and commit of a llama.cpp tree, as it prints them; nothing where Git does not know."""
    if source == pinned_source():
        return LLAMA_BUILD
    if not (source / ".git").exists():  # Git would name the commit of what surrounds it
        return ""
    number, commit = (
        subprocess.run(["git", "-C", str(source), *words], capture_output=True, text=True).stdout.strip()
        for words in (["rev-list", "--count", "HEAD"], ["rev-parse", "--short=9", "HEAD"])
    )
    return f"b{number}-{commit}" if number and commit else ""


def download_sdist(directory, python):
    options = ["--no-deps", "--no-binary", ":all:", "--dest", directory]
    # pip asks the sdist's build backend about it, which it brings itself where that is not beside it.
    backend = [python, "-c", "import scikit_build_core"]
    if subprocess.run(backend, capture_output=True).returncode == 0:
        options.append("--no-build-isolation")
    command = [python, "-m", "pip", "download", "--disable-pip-version-check", *options]
    run_logged("llama_cpp_source", [*command, f"llama-cpp-python=={SDIST_VERSION}"])
    (sdist,) = directory.glob("*.tar.gz")
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    if digest != SDIST_SHA256:
        raise SetupError(f"{sdist.name}: sha256 is {digest}, expected {SDIST_SHA256}. Nothing was unpacked.")
    return sdist


def ggml_version(source):
    text = (source / "ggml/CMakeLists.txt").read_text()
    return ".".join(re.search(rf"GGML_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def source_state(source):
    """What identifies an overriding tree: commit and local changes, or the files' times and sizes."""
    git = ["git", "-C", str(source)]
    if (source / ".git").exists():
        commands = (
            ["rev-parse", "HEAD"],
            ["diff", "HEAD", "--", "ggml"],
            ["status", "--porcelain", "--", "ggml"],
        )
        return b"".join(subprocess.run([*git, *command], capture_output=True).stdout for command in commands)
    files = sorted(path for path in (source / "ggml").rglob("*") if path.is_file())
    return "".join(f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}\n" for path in files).encode()


def native_target():
    """The compiler's version and what -march=native means to it: the CPU's features that it would use."""
    compiler = os.environ.get("CXX", "g++")
    version = subprocess.run([compiler, "--version"], capture_output=True).stdout
    # GCC begins with the name that it is called by: CMake says c++ to what it starts, make g++.
    version = re.sub(rb"^\S+ (?=\()", b"g++ ", version)
    target = subprocess.run([compiler, "-march=native", "-Q", "--help=target"], capture_output=True).stdout
    if not target and Path("/proc/cpuinfo").exists():  # clang has no -Q
        target = re.search(rb"^(flags|Features).*", Path("/proc/cpuinfo").read_bytes(), re.MULTILINE)[0]
    return version + target


def recipe(name):
    """Our own files that a cached build depends on."""
    return b"".join(path.read_bytes() for path in sorted((ROOT / "cmake" / name).iterdir()))


@contextmanager
def built_once(installed, lock, text):
    """Where to install what the cache lacks, which appears whole or not at all; None where it is there."""
    if installed.exists():
        yield None
        return
    with locked(CACHE / lock):
        if installed.exists():
            yield None
            return
        say(5, f"{text}, once per user)")
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            staged = Path(scratch, "install")
            yield staged
            staged.rename(installed)


def ccache_flags(*languages):
    if not shutil.which("ccache"):
        return []
    return [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in languages]


def build_ggml(sanitize=None, python=VENV_PYTHON):
    """Returns the folder of ggml's installation, building it when the cache has none for this key."""
    flags = [*GGML_FLAGS, *({"thread": ["-DGGML_SANITIZE_THREAD=ON"]}.get(sanitize, []))]
    key = hashlib.sha256(repr(flags).encode() + native_target() + recipe("ggml"))
    source = fetch_llama_cpp(python)
    version = ggml_version(source)
    if source != pinned_source():
        key.update(str(source).encode() + source_state(source))
    elif version != GGML_VERSION:
        raise SetupError(
            f"{source} holds ggml {version}, expected {GGML_VERSION}. Remove that folder and try again."
        )
    else:
        # Not a git tree of its own, so git would report the commit of whatever surrounds the cache.
        flags += ["-DGIT_EXE=OFF", f"-DGGML_BUILD_COMMIT={SDIST_SHA256[:8]}"]
    installed = CACHE / f"ggml-{version}-{key.hexdigest()[:12]}"
    kind = f" with the {sanitize} sanitizer" if sanitize else ""
    with built_once(installed, "ggml.lock", f"building ggml {version}{kind} (about 3 minutes") as staged:
        if staged:
            out = staged.parent / "build"
            configure = ["cmake", "-S", ROOT / "cmake/ggml", "-B", out, "-G", "Ninja", *flags]
            configure += [f"-DLLAMA_CPP_DIR={source}", f"-DCMAKE_INSTALL_PREFIX={staged}"]
            run_logged("ggml", configure)
            run_logged("ggml", ["cmake", "--build", out, "--parallel", str(os.cpu_count())])
            run_logged("ggml", ["cmake", "--install", out])
    return installed


def cached_folder(name, source, flags, ggml):
    """Where the cache has, or will have, what of llama.cpp is compiled so: by the recipe cmake/NAME."""
    key = hashlib.sha256(repr(flags).encode() + native_target() + recipe(name) + str(ggml.resolve()).encode())
    if source != pinned_source():
        key.update(str(source).encode() + source_state(source))
    return CACHE / f"{name}-{SDIST_VERSION}-{key.hexdigest()[:12]}"


def build_llama(ggml, sanitize=None, python=VENV_PYTHON, peers=False, quick=False):
    """Returns the folder of llama.cpp's static libraries and headers for that ggml, built unless cached.

    With peers=True its programs are in bin/, too: llama-bench, llama-batched-bench and llama-server. With
    quick=True it is compiled sooner and runs slower, unless the cache has it as it should be.
    """
    source = fetch_llama_cpp(python)
    flags = ["-DCMAKE_BUILD_TYPE=Release", *(SANITIZERS[sanitize] if sanitize else [])]
    installed = cached_folder("llama", source, flags, ggml)
    if peers:
        installed = installed.with_name(f"{installed.name}-peers")
    elif quick and not installed.exists():
        flags += QUICK_FLAGS
        installed = cached_folder("llama", source, flags, ggml)
    kind = f" with the {sanitize} sanitizer" if sanitize else "'s programs" if peers else ""
    minutes = 3 if quick else 4
    with built_once(installed, "llama.lock", f"building llama.cpp{kind} (about {minutes} minutes") as staged:
        if staged:
            out = staged.parent / "build"
            flags += [
                f"-DLLAMA_CPP_DIR={source}",
                f"-DGGML_PREFIX={ggml}",
                f"-DPEERS={'ON' if peers else 'OFF'}",
                *ccache_flags("C", "CXX"),
            ]
            configure = ["cmake", "-S", ROOT / "cmake/llama", "-B", out, "-G", "Ninja", *flags]
            run_logged("llama", [*configure, f"-DCMAKE_INSTALL_PREFIX={staged}"])
            target = "peers" if peers else "libraries"
            run_logged(
                "llama", ["cmake", "--build", out, "--target", target, "--parallel", str(os.cpu_count())]
            )
            run_logged("llama", ["cmake", "--install", out, "--component", "headrace"])
    return installed


def build_mtmd(ggml, sanitize=None, python=VENV_PYTHON, only_cached=False):
    """Returns the folder of llama.cpp's library that reads images, built unless cached.

    Apart from build_llama, as a demo does without it: only_cached gives None where it is not there.
    """
    source = fetch_llama_cpp(python)
    flags = ["-DCMAKE_BUILD_TYPE=Release", *(SANITIZERS[sanitize] if sanitize else [])]
    installed = cached_folder("mtmd", source, flags, ggml)
    if only_cached and not installed.exists():
        return None
    with built_once(installed, "mtmd.lock", "building llama.cpp's mtmd (about 1 minute") as staged:
        if staged:
            out = staged.parent / "build"
            flags += [f"-DLLAMA_CPP_DIR={source}", f"-DGGML_PREFIX={ggml}", *ccache_flags("C", "CXX")]
            configure = ["cmake", "-S", ROOT / "cmake/mtmd", "-B", out, "-G", "Ninja", *flags]
            run_logged("mtmd", [*configure, f"-DCMAKE_INSTALL_PREFIX={staged}"])
            run_logged(
                "mtmd", ["cmake", "--build", out, "--target", "libraries", "--parallel", str(os.cpu_count())]
            )
            run_logged("mtmd", ["cmake", "--install", out, "--component", "headrace"])
    return installed


def cuda_flags(root):
    """Flags for the toolkit there and for the GPUs that the environment names, or else for the machine's."""
    flags = [f"-DCUDAToolkit_ROOT={root}", f"-DCMAKE_CUDA_COMPILER={root / 'bin/nvcc'}"]
    architectures = os.environ.get("CUDAARCHS")
    return flags + ([f"-DCMAKE_CUDA_ARCHITECTURES={architectures}"] if architectures else [])


def build_device_backend(name, ggml, python=VENV_PYTHON):
    """Returns libggml-NAME.so, of DEVICE_BACKENDS, for that ggml, which loads it; built unless cached."""
    source = fetch_llama_cpp(python)
    key = hashlib.sha256(native_target() + recipe("device_backend") + str(ggml.resolve()).encode())
    flags = ["-DCMAKE_BUILD_TYPE=Release", f"-DBACKEND={name}"]
    if name == "cuda":
        root = cuda.toolkit()
        flags += cuda_flags(root)
        key.update(repr(flags).encode())
        key.update(subprocess.run([root / "bin/nvcc", "--version"], capture_output=True).stdout)
    if source != pinned_source():
        key.update(str(source).encode() + source_state(source))
    installed = CACHE / f"ggml-{name}-{ggml_version(source)}-{key.hexdigest()[:12]}"
    text = f"building ggml's backend for {name.upper()} (5 minutes and more"
    with built_once(installed, f"{name}.lock", text) as staged:
        if staged:
            out = staged.parent / "build"
            flags += [f"-DLLAMA_CPP_DIR={source}", f"-DGGML_PREFIX={ggml}"]
            flags += ccache_flags("C", "CXX", *(["CUDA"] if name == "cuda" else []))
            configure = ["cmake", "-S", ROOT / "cmake/device_backend", "-B", out, "-G", "Ninja", *flags]
            try:
                run_logged(name, [*configure, f"-DCMAKE_INSTALL_PREFIX={staged}"])
            except SetupError as error:
                raise SetupError(f"{error}\n{DEVICE_BACKENDS[name]}") from None
            run_logged(name, ["cmake", "--build", out, "--parallel", str(os.cpu_count())])
            run_logged(name, ["cmake", "--install", out])
    return installed / f"lib/libggml-{name}.so"


def installed_ggml():
    """A ggml that the user has installed and names in GGML_DIR or CMAKE_PREFIX_PATH, or None."""
    config = "lib*/**/ggml-config.cmake"
    if os.environ.get("GGML_DIR"):
        folder = Path(os.environ["GGML_DIR"]).expanduser().resolve()
        if not any(folder.glob(config)):
            raise SetupError(
                f"GGML_DIR={folder} has no {config}: it should be the prefix ggml was installed to."
            )
        return folder
    prefixes = filter(None, os.environ.get("CMAKE_PREFIX_PATH", "").split(":"))
    return next((Path(prefix) for prefix in prefixes if any(Path(prefix).glob(config))), None)


def find_or_build_ggml(build_dir, for_demo=False, **options):
    """Tells CMake where ggml and llama.cpp's libraries are. The demo does with a quick llama.cpp, and without
    mtmd, which reads images, where the cache has none.

    An unchanged file keeps its time, so CMake does not configure again.
    """
    text = "# Written by tools/setup.py\n"
    if os.environ.get("HEADRACE_GGML") == "system":
        text += "set(HEADRACE_GGML system)\n"
    else:
        ggml = installed_ggml() or build_ggml(**options)
        text += f'set(HEADRACE_GGML_DIR "{ggml}")\n'
        source = fetch_llama_cpp(options.get("python", VENV_PYTHON))
        text += f'set(HEADRACE_LLAMA_DIR "{build_llama(ggml, quick=for_demo, **options)}")\n'
        if mtmd := build_mtmd(ggml, only_cached=for_demo, **options):
            text += f'set(HEADRACE_MTMD_DIR "{mtmd}")\n'
        text += f'set(HEADRACE_LLAMA_SOURCE "{source}")\n'
        text += f'set(HEADRACE_LLAMA_BUILD "{llama_build(source)}")\n'
        for name in filter(wants_backend, () if options.get("sanitize") else DEVICE_BACKENDS):
            library = build_device_backend(name, ggml, options.get("python", VENV_PYTHON))
            text += f'set(HEADRACE_{name.upper()}_LIBRARY "{library}")\n'
    path = build_dir / "setup.cmake"
    if not path.exists() or path.read_text() != text:
        build_dir.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
