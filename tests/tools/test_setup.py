"""tools/provision: what the environment asks ggml's build for, and how packages come on demand."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import setup
from provision import cuda, ggml, python_packages, system
from provision.base import SetupError
from provision.ggml import build_device_backend, build_ggml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """What a build of a backend would start. Its library appears where it is installed."""
    built = []

    def build(name, command, **options):
        built.append([str(word) for word in command])
        for word in built[-1]:
            if word.startswith("-DCMAKE_INSTALL_PREFIX="):
                library = Path(word.partition("=")[2], f"lib/libggml-{name}.so")
                library.parent.mkdir(parents=True)
                library.touch()

    monkeypatch.delenv("CUDAARCHS", raising=False)
    nvcc = tmp_path / "toolkit/bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\necho 13.0\n")
    nvcc.chmod(0o755)
    monkeypatch.setattr(ggml.cuda, "toolkit", lambda: tmp_path / "toolkit")
    monkeypatch.setattr(ggml, "CACHE", tmp_path)
    monkeypatch.setattr(ggml, "run_logged", build)
    monkeypatch.setattr(ggml, "fetch_llama_cpp", lambda python: ggml.pinned_source())
    monkeypatch.setattr(ggml, "ggml_version", lambda source: ggml.GGML_VERSION)
    return built


def test_cuda_is_built_for_the_gpus_that_are_named_or_else_for_those_of_the_machine(
    monkeypatch, tmp_path, commands
):
    native = build_device_backend("cuda", tmp_path / "ggml")
    assert not any("CUDA_ARCHITECTURES" in word for word in commands[0])
    monkeypatch.setenv("CUDAARCHS", "80;90")
    steps = len(commands)
    named = build_device_backend("cuda", tmp_path / "ggml")
    assert "-DCMAKE_CUDA_ARCHITECTURES=80;90" in commands[steps]
    assert f"-DCUDAToolkit_ROOT={tmp_path / 'toolkit'}" in commands[steps]
    assert native != named


def test_who_lacks_what_a_backend_is_built_with_is_told_what_it_wants(monkeypatch, tmp_path, commands):
    def fails(name, command):
        raise SetupError("it is not there")

    monkeypatch.setattr(ggml, "run_logged", fails)
    with pytest.raises(SetupError, match=r"(?s)it is not there.*CUDAARCHS=80"):
        build_device_backend("cuda", tmp_path / "ggml")
    with pytest.raises(SetupError, match=r"(?s)it is not there.*glslc"):
        build_device_backend("vulkan", tmp_path / "ggml")
    with pytest.raises(SetupError) as plain:
        build_ggml()
    assert str(plain.value) == "it is not there"


def test_a_toolkit_without_cublas_is_none(monkeypatch, tmp_path):
    nvcc = tmp_path / "bin/nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text(f'#!/bin/sh\necho "#\\$ TOP={tmp_path}/bin/.." >&2\n')
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(nvcc.parent), prepend=":")
    assert cuda.installed_toolkit() is None
    (tmp_path / "include").mkdir()
    (tmp_path / "include/cublas_v2.h").touch()
    assert cuda.installed_toolkit() == tmp_path
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cuda.installed_toolkit() is None


def test_nvidias_packages_get_the_names_that_a_linker_looks_for(monkeypatch, tmp_path):
    asked = []
    root = tmp_path / "nvidia/cu13"
    (root / "lib").mkdir(parents=True)
    (root / "lib/libcublas.so.13").touch()
    monkeypatch.setattr(cuda, "FOLDER", tmp_path)
    monkeypatch.setattr(cuda, "install_on_demand", lambda name, beside: asked.append(name))
    for _ in range(2):  # again where all is there
        assert cuda.fetched_toolkit() == root
    assert asked == 2 * cuda.PACKAGES
    assert (root / "lib64/libcublas.so").resolve() == root / "lib/libcublas.so.13"
    assert (root / "lib/stubs/libcuda.so").exists()
    pinned = python_packages.pinned_versions(python_packages.requirements())
    assert set(cuda.PACKAGES) <= {pin.partition("==")[0] for pin in pinned}


def test_backends_are_built_where_the_environment_asks_for_them(monkeypatch, tmp_path):
    built = []
    monkeypatch.setattr(ggml, "installed_ggml", lambda: tmp_path)
    monkeypatch.setattr(ggml, "fetch_llama_cpp", lambda python: ggml.pinned_source())
    monkeypatch.setattr(ggml, "build_llama", lambda *arguments, **options: tmp_path)
    monkeypatch.setattr(ggml, "build_mtmd", lambda *arguments, **options: None)
    monkeypatch.setattr(ggml, "build_device_backend", lambda name, *rest: built.append(name) or f"/{name}.so")
    monkeypatch.delenv("HEADRACE_VULKAN", raising=False)
    monkeypatch.setenv("HEADRACE_CUDA", "ON")
    ggml.find_or_build_ggml(tmp_path)
    assert built == ["cuda"]
    text = (tmp_path / "setup.cmake").read_text()
    assert 'set(HEADRACE_CUDA_LIBRARY "/cuda.so")' in text and "VULKAN" not in text


def test_vulkan_wants_its_packages_where_the_environment_asks_for_it(monkeypatch):
    asked = []

    def query(command, **options):
        asked.extend(command)
        return subprocess.CompletedProcess(command, 0, stdout="")

    monkeypatch.setattr(system.subprocess, "run", query)
    monkeypatch.delenv("HEADRACE_VULKAN", raising=False)
    assert not set(system.VULKAN_PACKAGES) & set(system.missing_packages("development"))
    monkeypatch.setenv("HEADRACE_VULKAN", "ON")
    assert set(system.VULKAN_PACKAGES) <= set(system.missing_packages("development"))
    assert "glslc" in asked


@pytest.mark.parametrize("name", ["vulkan", "cuda"])
def test_a_backend_is_built_for_one_ggml_and_found_again(name, tmp_path, commands):
    one, other = tmp_path / "one", tmp_path / "other"
    library = build_device_backend(name, one)
    assert library.exists()
    assert {f"-DGGML_PREFIX={one}", f"-DBACKEND={name}"} <= set(commands[0])
    steps = len(commands)
    assert build_device_backend(name, one) == library and len(commands) == steps
    assert build_device_backend(name, other) != library


def test_what_reads_images_is_built_once_and_not_for_a_demo(tmp_path, commands):
    prefix = tmp_path / "ggml"
    assert ggml.build_mtmd(prefix, only_cached=True) is None and not commands
    installed = ggml.build_mtmd(prefix)
    steps = len(commands)
    assert installed.exists() and f"-DGGML_PREFIX={prefix}" in commands[0]
    assert ggml.build_mtmd(prefix, only_cached=True) == ggml.build_mtmd(prefix) == installed
    assert len(commands) == steps
    assert ggml.build_mtmd(tmp_path / "other", only_cached=True) is None


def test_a_build_is_found_again_by_whatever_name_its_compiler_is_called(monkeypatch, tmp_path):
    """CMake, and so pip's build, starts as c++ what make starts as g++."""
    gcc = shutil.which("g++")
    if not gcc:
        pytest.skip("there is no g++ here")
    targets = set()
    for name in ("g++", "c++", "g++-of-another-name"):
        link = tmp_path / name
        link.symlink_to(gcc)
        monkeypatch.setenv("CXX", str(link))
        targets.add(ggml.native_target())
    assert len(targets) == 1


@pytest.mark.parametrize("whole", [False, True])
def test_a_package_beside_comes_alone_or_whole_and_once(monkeypatch, tmp_path, whole):
    commands = []
    monkeypatch.setattr(python_packages, "run_logged", lambda name, command: commands.append(command))
    python_packages.install_on_demand("mkdocs-material", tmp_path, whole)
    (command,) = commands
    assert command[command.index("--target") + 1] == tmp_path
    assert ("--no-deps" in command) is not whole
    assert "--constraint" in command
    pinned = command[-1]
    assert pinned.startswith("mkdocs-material==")
    (tmp_path / f"mkdocs_material-{pinned.partition('==')[2]}.dist-info").mkdir()
    python_packages.install_on_demand("mkdocs-material", tmp_path, whole)
    assert len(commands) == 1


def test_a_tree_of_llama_cpp_has_the_build_that_it_prints_itself(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    assert ggml.llama_build(tmp_path) == "", "no checkout"
    for command in (["init", "-q"], *(["commit", "-q", "--allow-empty", "-m", str(i)] for i in range(3))):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert ggml.llama_build(tmp_path) == f"b3-{commit[:9]}"
    shutil.rmtree(tmp_path / ".git")
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert ggml.llama_build(tmp_path) == "", "what a submodule leaves in an archive"


def test_the_page_on_dependencies_names_the_pinned_build_of_llama_cpp():
    number, commit = ggml.llama_build(ggml.pinned_source()).split("-")
    page = (Path(__file__).resolve().parents[2] / "docs/dependencies.md").read_text()
    assert f"build {number}, commit {commit}" in page and f"ggml | {ggml.GGML_VERSION} |" in page


class Beside:
    """An executor whose work waits until it is asked for."""

    def __init__(self):
        self.work = []

    def submit(self, function, *arguments):
        self.work.append((function, arguments))
        return self

    def result(self):
        while self.work:
            function, arguments = self.work.pop(0)
            function(*arguments)


@pytest.fixture
def installed(monkeypatch):
    """The packages of each call of apt-get, on a Debian that has none of them."""
    calls = []

    def run(name, command):
        if "install" in command:
            calls.append([word for word in command[command.index("install") + 1 :] if word[0] != "-"])

    empty = subprocess.CompletedProcess([], 0, stdout="")
    monkeypatch.setattr(system, "run_logged", run)
    monkeypatch.setattr(system.subprocess, "run", lambda *arguments, **options: empty)
    monkeypatch.setattr(system.shutil, "which", lambda name: "/usr/bin/" + name if name != "ccache" else None)
    monkeypatch.setattr(system.os, "geteuid", lambda: 0)
    monkeypatch.delenv("HEADRACE_VULKAN", raising=False)
    return calls


def test_what_compilers_wait_for_is_installed_first_and_the_rest_beside_them(installed):
    beside = Beside()
    rest = system.install_system_packages("demo", beside)
    assert installed == [system.BUILD_TOOLS]
    rest.result()
    assert installed[1:] == [system.PACKAGES + system.OPTIONAL_PACKAGES]


def test_packages_are_installed_at_once_where_nothing_goes_on_beside(installed):
    assert system.install_system_packages("demo") is None
    assert installed == [system.PURPOSES["demo"] + system.OPTIONAL_PACKAGES]


def test_who_may_not_install_packages_is_told_all_of_them_before_anything_begins(monkeypatch, installed):
    monkeypatch.setattr(system.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(system.shutil, "which", lambda name: None if name == "sudo" else name)
    with pytest.raises(SetupError, match=r"libfmt-dev.*cmake"):
        system.install_system_packages("demo", Beside())
    assert installed == []


NODE = ["nodejs", "npm", "libnode-dev"]


@pytest.fixture
def without_node(monkeypatch, installed):
    """A Debian without Node, whose user is no root and may use sudo."""
    monkeypatch.setattr(system.os, "geteuid", lambda: 1000)
    there = ("sudo", "dpkg-query")
    monkeypatch.setattr(system.shutil, "which", lambda name: f"/bin/{name}" if name in there else None)
    monkeypatch.setattr(setup, "node_headers", lambda: None)
    monkeypatch.setattr(setup, "run_logged", lambda *arguments, **options: None)
    monkeypatch.setattr(system.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, ""))
    return installed


def test_node_and_its_headers_come_by_sudo(without_node):
    setup.prepare_node()
    assert without_node == [NODE]


def test_who_may_not_install_node_is_told_the_line_with_its_headers(monkeypatch, without_node):
    monkeypatch.setattr(system.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, ""))
    with pytest.raises(
        SetupError, match=r"sudo apt-get install --no-install-recommends nodejs npm libnode-dev"
    ):
        setup.prepare_node()
    assert without_node == []


def test_the_headers_beside_the_node_of_path_are_taken(monkeypatch, tmp_path):
    node = tmp_path / "versions/v22/bin/node"
    header = tmp_path / "versions/v22/include/node/node_api.h"
    for file in (node, header):
        file.parent.mkdir(parents=True)
        file.touch()
    (tmp_path / "node").symlink_to(node)
    monkeypatch.setattr(system.shutil, "which", lambda name: str(tmp_path / name))
    assert system.node_headers() == header.parent
    header.unlink()
    assert system.node_headers() in (None, Path("/usr/include/node"))


@pytest.mark.parametrize("asked, comes", [("1", True), ("0", False), (None, False)])
def test_pytorch_comes_where_it_is_asked_for(monkeypatch, asked, comes):
    brought = []
    monkeypatch.setattr(python_packages, "install_on_demand", brought.append)
    monkeypatch.delenv("EXECUTORCH", raising=False)
    if asked:
        monkeypatch.setenv("EXECUTORCH", asked)
    python_packages.install_executorch()
    assert brought == (python_packages.EXECUTORCH_PACKAGES if comes else [])


@pytest.mark.parametrize(
    "target, value",
    [
        ("demo", ""),
        ("ggml-dev", ""),
        ("node", ""),
        ("site", ""),
        ("executorch", "1"),
        ("test", "1"),
        ("docs", "1"),
    ],
)
def test_pytorch_comes_with_the_targets_that_need_it(tmp_path, target, value):
    shutil.copy(ROOT / "Makefile", tmp_path)
    tool = tmp_path / "tools/build.py"
    tool.parent.mkdir()
    tool.write_text('import os\nprint(os.environ.get("EXECUTORCH", ""))\nraise SystemExit(1)\n')
    shutil.copy(tool, tool.with_name("setup.py"))
    environment = {name: text for name, text in os.environ.items() if name not in ("EXECUTORCH", "MAKEFLAGS")}
    asked = [({}, value), ({"EXECUTORCH": "0"}, "0"), ({"EXECUTORCH": "1"}, "1")]
    for given, wanted in asked:
        make = ["make", "-C", str(tmp_path), "--no-print-directory", target]
        done = subprocess.run(make, env=environment | given, capture_output=True, text=True)
        assert done.stdout.split() == wanted.split(), done.stderr


def test_the_demo_takes_a_quick_llama_cpp_where_the_cache_has_none_at_full_speed(monkeypatch, tmp_path):
    built = []

    def build(name, command, **options):
        words = [str(word) for word in command]
        built.append(words)
        for word in words:
            if word.startswith("-DCMAKE_INSTALL_PREFIX="):
                Path(word.partition("=")[2]).mkdir(parents=True)

    monkeypatch.setattr(ggml, "CACHE", tmp_path)
    monkeypatch.setattr(ggml, "run_logged", build)
    monkeypatch.setattr(ggml, "fetch_llama_cpp", lambda python: ggml.pinned_source())
    quick = ggml.build_llama(tmp_path / "ggml", quick=True)
    assert set(ggml.QUICK_FLAGS) <= set(built[0])
    steps = len(built)
    assert ggml.build_llama(tmp_path / "ggml", quick=True) == quick and len(built) == steps
    whole = ggml.build_llama(tmp_path / "ggml")
    assert whole != quick and not set(ggml.QUICK_FLAGS) & set(built[steps])
    assert ggml.build_llama(tmp_path / "ggml", quick=True) == whole
