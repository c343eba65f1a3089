#!/usr/bin/env python3
"""Prepares a checkout for building: system packages, .venv, the llama.cpp source tree and ggml.

Runs before .venv exists, so it uses the standard library only. Every step first checks whether its result
is there, so a second run costs a fraction of a second. ggml and its source live in the cache folder, which
all clones share. Environment:

  LLAMA_CPP_DIR       a llama.cpp tree to build ggml from, in place of the pinned one
  GGML_DIR            the prefix of an installed ggml, in place of building one
  CMAKE_PREFIX_PATH   prefixes that are searched for an installed ggml first
  HEADRACE_GGML       "system": use the ggml that CMake finds by itself (no language models then)
  HEADRACE_CUDA       "ON": build ggml's CUDA backend, too, for the GPUs of this machine
  CUDAARCHS           the GPUs to build it for in place of those, as CMake names them: "80;90"
  EXECUTORCH          "0": do without PyTorch and ExecuTorch (1.5 GB), and so without that door
  XDG_CACHE_HOME      where the cache goes (default ~/.cache)

A wheel's build calls it with --wheel: the Python packages come from pip's build environment then, not from
.venv.
"""

import argparse
import ctypes.util
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin/python"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"

# The sdist of llama-cpp-python carries the llama.cpp tree that its version was made for.
SDIST_VERSION = "0.3.36"
SDIST_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
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
SANITIZERS = {"thread": ["-DCMAKE_C_FLAGS=-fsanitize=thread -g1", "-DCMAKE_CXX_FLAGS=-fsanitize=thread -g1"]}
MIN_CMAKE = (3, 25)
# In this order: ExecuTorch alone would bring a PyTorch of another version.
EXECUTORCH_PACKAGES = ["torch", "executorch", "transformers"]

MLX_PACKAGES = ["mlx", "mlx-cpu"]

PACKAGES = [
    "clang-format",
    "cmake",
    "flatbuffers-compiler",
    "libcli11-dev",
    "libflatbuffers-dev",
    "libfmt-dev",
    "libgtest-dev",
    "libgmock-dev",
    "libhwy-dev",
    "ninja-build",
    "nlohmann-json3-dev",
]
# Installed along with missing packages, but alone no reason to ask for root. ccache makes the wheel's build,
# the second of the same sources, a matter of seconds.
OPTIONAL_PACKAGES = ["ccache"]
# Not needed for a wheel; its CMake and Ninja may also come from PyPI.
DEVELOPMENT_PACKAGES = {"clang-format", "cmake", "libgtest-dev", "libgmock-dev", "ninja-build"}


if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        f"error: {sys.executable} is Python {sys.version.split()[0]}, and the pinned packages need 3.11 or\n"
        "newer. To choose another one: make PYTHON=python3.12 ..."
    )


class SetupError(Exception):
    """A failure whose message tells the user what to do."""


def say(step, text):
    print(f"[{step}/6] {text}", flush=True)


def run_logged(name, command, **kwargs):
    """Runs a command with its output in build/logs/<name>.log; on failure the log's end is the message."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{name}.log"
    with path.open("a") as log:
        log.write(f"$ {' '.join(map(str, command))}\n")
        log.flush()
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **kwargs)
    if result.returncode:
        tail = "\n".join(path.read_text(errors="replace").splitlines()[-30:])
        raise SetupError(f"{command[0]} failed ({path.relative_to(ROOT)}):\n{tail}")


@contextmanager
def locked(path):
    """Holds an exclusive lock, so that two set-ups sharing a folder take turns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another set-up that holds {path}", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def missing_packages(development):
    wanted = [package for package in PACKAGES if development or package not in DEVELOPMENT_PACKAGES]
    if sys.executable.startswith("/usr/bin/") and not has_python_headers():
        wanted.append("python3-dev")
    if development and not VENV_PYTHON.exists() and not has_venv():
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


def install_system_packages(development=True):
    if not shutil.which("dpkg-query"):
        return  # Not Debian: CMake names whatever it does not find.
    missing = missing_packages(development)
    if not missing:
        return
    if development:
        missing += [package for package in OPTIONAL_PACKAGES if not shutil.which(package)]
    say(1, f"installing system packages: {' '.join(missing)}")
    # Another apt may be at work: wait for it rather than fail.
    install = [
        "apt-get",
        "-o",
        "DPkg::Lock::Timeout=600",
        "install",
        "-y",
        "--no-install-recommends",
        *missing,
    ]
    sudo = []
    if os.geteuid() != 0:
        sudo = ["sudo", "-n"]
        if not shutil.which("sudo") or subprocess.run([*sudo, "true"], capture_output=True).returncode:
            raise SetupError(
                "system packages are missing and installing them needs root. Please run\n"
                f"  sudo apt-get install --no-install-recommends {' '.join(missing)}"
            )
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run_logged("apt", [*sudo, "apt-get", "update"], env=environment)
    run_logged("apt", [*sudo, *install], env=environment)


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


def make_venv():
    """Creates .venv, with headrace and webnn importable from python/."""
    if not VENV_PYTHON.exists() or subprocess.run([VENV_PYTHON, "-c", ""], capture_output=True).returncode:
        say(2, "creating the Python environment .venv")
        run_logged("venv", [sys.executable, "-m", "venv", "--clear", VENV])
    found = list(VENV.glob("lib/python*/site-packages"))
    link = found[0] / "headrace-checkout.pth"
    if not link.exists() or link.read_text() != f"{ROOT / 'python'}\n":
        link.write_text(f"{ROOT / 'python'}\n")


def install_python_packages():
    requirements = ROOT / "requirements.txt"
    text = requirements.read_text()
    stamp = VENV / "requirements.stamp"
    if stamp.exists() and stamp.read_text() == text:
        return
    say(3, "installing Python packages (about 1 minute)")
    pip = [VENV_PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    run_logged("pip", [*pip, "-r", requirements])
    alone = re.findall(r"^# no-deps: (\S+)", text, re.MULTILINE)
    run_logged("pip", [*pip, "--no-deps", *alone])
    stamp.write_text(text)


def install_on_demand(package, beside=None):
    """Brings a package that few need, with the extras and in the version that requirements.txt names after
    "on-demand:". beside: alone into that folder, where nothing of .venv sees it."""
    text = (ROOT / "requirements.txt").read_text()
    pinned = re.search(rf"^# on-demand: ({re.escape(package)}(?:\[[\w,]+\])?==(\S+))", text, re.MULTILINE)
    if not pinned:
        raise SetupError(f"requirements.txt pins no {package} on demand")
    name = package.replace("-", "_")
    folders = [beside] if beside else VENV.glob("lib/python*/site-packages")
    if any(any(folder.glob(f"{name}-{pinned[2]}*.dist-info")) for folder in folders):
        return
    say(3, f"installing {pinned[1]}")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(pinned_versions(text)))
        constraints.flush()
        pip = [VENV_PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        where = ["--no-deps", "--target", beside] if beside else []
        run_logged("pip", [*pip, *where, "--constraint", constraints.name, pinned[1]])


def install_executorch():
    """PyTorch, ExecuTorch and transformers for that door, unless EXECUTORCH=0; the rest works without."""
    if os.environ.get("EXECUTORCH") == "0":
        return
    try:
        for package in EXECUTORCH_PACKAGES:
            install_on_demand(package)
    except SetupError as error:
        print(f"the ExecuTorch door is left out: {error}", flush=True)


def install_system_package(package):
    say(1, f"installing system packages: {package}")
    run_logged("apt", ["apt-get", "update"])
    run_logged("apt", ["apt-get", "install", "-y", "--no-install-recommends", package])


def prepare_mlx():
    """The MLX backend's packages, and OpenBLAS where it can be installed without asking: it is optional."""
    for package in MLX_PACKAGES:
        install_on_demand(package)
    if shutil.which("dpkg-query") and os.geteuid() == 0 and not ctypes.util.find_library("openblas"):
        install_system_package("libopenblas-dev")


def prepare_arm():
    """A compiler for 64-bit ARM and an emulator of single programs."""
    install_on_demand("ziglang")
    if shutil.which("qemu-aarch64"):
        return
    if not shutil.which("dpkg-query") or os.geteuid() != 0:
        raise SetupError(
            "qemu-aarch64 is not on the PATH. On Debian: apt-get install --no-install-recommends qemu-user"
        )
    install_system_package("qemu-user")


def pinned_versions(text):
    """Every "name==version" of requirements.txt, those in its comments too; constraints name no extras."""
    pins = re.findall(r"^(?:# (?:on-demand|required): )?([\w.-]+)(?:\[[\w,]+\])?(==\S+)", text, re.MULTILINE)
    return [name + version for name, version in pins]


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


def download_sdist(directory, python):
    # Without build isolation pip takes the sdist's build backend, scikit-build-core, from where it runs.
    options = ["--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", directory]
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


def cuda_flags():
    if os.environ.get("HEADRACE_CUDA") not in ("ON", "1"):
        return []
    architectures = os.environ.get("CUDAARCHS")
    return ["-DGGML_CUDA=ON", *([f"-DCMAKE_CUDA_ARCHITECTURES={architectures}"] if architectures else [])]


def build_ggml(sanitize=None, python=VENV_PYTHON):
    """Returns the folder of ggml's installation, building it when the cache has none for this key."""
    flags = [*GGML_FLAGS, *({"thread": ["-DGGML_SANITIZE_THREAD=ON"]}.get(sanitize, []))]
    flags += cuda_flags()
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
    if installed.exists():
        return installed
    with locked(CACHE / "ggml.lock"):
        if installed.exists():
            return installed
        kind = f" with the {sanitize} sanitizer" if sanitize else ""
        say(5, f"building ggml {version}{kind} (about 3 minutes, once per user)")
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            out, staged = Path(scratch, "build"), Path(scratch, "install")
            configure = ["cmake", "-S", ROOT / "cmake/ggml", "-B", out, "-G", "Ninja", *flags]
            configure += [f"-DLLAMA_CPP_DIR={source}", f"-DCMAKE_INSTALL_PREFIX={staged}"]
            try:
                run_logged("ggml", configure)
            except SetupError as error:
                if "-DGGML_CUDA=ON" not in flags or os.environ.get("CUDAARCHS"):
                    raise
                raise SetupError(
                    f"{error}\nHEADRACE_CUDA=ON needs the CUDA toolkit, and builds for this machine's GPUs: "
                    "where it has none, CUDAARCHS names others, as in CUDAARCHS=80."
                ) from None
            run_logged("ggml", ["cmake", "--build", out, "--parallel", str(os.cpu_count())])
            run_logged("ggml", ["cmake", "--install", out])
            staged.rename(installed)
    return installed


def build_llama(ggml, sanitize=None, python=VENV_PYTHON, peers=False):
    """Returns the folder of llama.cpp's static libraries and headers for that ggml, built unless cached.

    With peers=True its programs are in bin/, too: llama-bench, llama-batched-bench and llama-server.
    """
    source = fetch_llama_cpp(python)
    flags = ["-DCMAKE_BUILD_TYPE=Release", *(SANITIZERS[sanitize] if sanitize else [])]
    key = hashlib.sha256(
        repr(flags).encode() + native_target() + recipe("llama") + str(ggml.resolve()).encode()
    )
    if source != pinned_source():
        key.update(str(source).encode() + source_state(source))
    installed = CACHE / f"llama-{SDIST_VERSION}-{key.hexdigest()[:12]}{'-peers' if peers else ''}"
    if installed.exists():
        return installed
    with locked(CACHE / "llama.lock"):
        if installed.exists():
            return installed
        kind = f" with the {sanitize} sanitizer" if sanitize else "'s programs" if peers else ""
        say(5, f"building llama.cpp{kind} (about 4 minutes, once per user)")
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            out, staged = Path(scratch, "build"), Path(scratch, "install")
            flags += [
                f"-DLLAMA_CPP_DIR={source}",
                f"-DGGML_PREFIX={ggml}",
                f"-DPEERS={'ON' if peers else 'OFF'}",
            ]
            if shutil.which("ccache"):
                flags += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
            configure = ["cmake", "-S", ROOT / "cmake/llama", "-B", out, "-G", "Ninja", *flags]
            run_logged("llama", [*configure, f"-DCMAKE_INSTALL_PREFIX={staged}"])
            target = "peers" if peers else "libraries"
            run_logged(
                "llama", ["cmake", "--build", out, "--target", target, "--parallel", str(os.cpu_count())]
            )
            run_logged("llama", ["cmake", "--install", out, "--component", "headrace"])
            staged.rename(installed)
    return installed


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


def find_or_build_ggml(build_dir, **options):
    """Tells CMake where ggml and llama.cpp's libraries are.

    An unchanged file keeps its time, so CMake does not configure again.
    """
    text = "# Written by tools/setup.py\n"
    if os.environ.get("HEADRACE_GGML") == "system":
        text += "set(HEADRACE_GGML system)\n"
    else:
        ggml = installed_ggml() or build_ggml(**options)
        text += f'set(HEADRACE_GGML_DIR "{ggml}")\n'
        source = fetch_llama_cpp(options.get("python", VENV_PYTHON))
        text += f'set(HEADRACE_LLAMA_DIR "{build_llama(ggml, **options)}")\n'
        text += f'set(HEADRACE_LLAMA_SOURCE "{source}")\n'
    path = build_dir / "setup.cmake"
    if not path.exists() or path.read_text() != text:
        build_dir.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def prepare(sanitize=None, lint_only=False):
    """Everything before CMake; lint_only leaves out llama.cpp and ggml."""
    with locked(BUILD / ".setup.lock"):
        install_system_packages()
        check_tools("g++", "cmake", "ninja", "git")
        make_venv()
        install_python_packages()
        if not lint_only:
            install_executorch()
            find_or_build_ggml(BUILD / "tsan" if sanitize == "thread" else BUILD, sanitize=sanitize)


def prepare_wheel(build_dir):
    """What cmake/dependencies.cmake asks for while pip builds a wheel."""
    with locked(BUILD / ".setup.lock"):
        install_system_packages(development=False)
        check_tools("g++", "cmake", "ninja")
        find_or_build_ggml(build_dir, python=sys.executable)


def prepare_ggml(build_dir):
    """What cmake/dependencies.cmake asks for where CMake is given LLAMA_CPP_DIR: nothing is installed."""
    with locked(BUILD / ".setup.lock"):
        check_tools("g++", "cmake", "ninja")
        find_or_build_ggml(build_dir, python=sys.executable)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lint", action="store_true", help="only what make lint needs: no ggml")
    parser.add_argument("--wheel", type=Path, metavar="BUILD_DIR", help="what a wheel's build there needs")
    parser.add_argument("--ggml", type=Path, metavar="BUILD_DIR", help="only the ggml of a build there")
    parser.add_argument("--mlx", action="store_true", help="what the MLX backend needs besides")
    parser.add_argument("--arm", action="store_true", help="what running tests for 64-bit ARM needs besides")
    parser.add_argument("--peers", action="store_true", help="llama.cpp's programs, and print their folder")
    parser.add_argument("--on-demand", metavar="PACKAGE", help="one that requirements.txt only pins")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="of --on-demand, in place of .venv")
    arguments = parser.parse_args()
    if arguments.wheel:
        prepare_wheel(arguments.wheel)
    elif arguments.ggml:
        prepare_ggml(arguments.ggml)
    elif arguments.peers:
        print(build_llama(installed_ggml() or build_ggml(), peers=True) / "bin")
    elif arguments.mlx:
        prepare_mlx()
    elif arguments.arm:
        prepare_arm()
    elif arguments.on_demand:
        install_on_demand(arguments.on_demand, arguments.beside)
    else:
        prepare(lint_only=arguments.lint)


def run_main(main):
    """Calls main; a SetupError becomes a message and exit status 1."""
    try:
        main()
    except SetupError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; run it again to go on where it stopped")


if __name__ == "__main__":
    run_main(main)
