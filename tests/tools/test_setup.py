"""tools/provision: what the environment asks ggml's build for, and how packages come on demand."""

import shutil
import subprocess
from pathlib import Path

import pytest
from provision import ggml, python_packages, system
from provision.base import SetupError
from provision.ggml import build_ggml, cuda_flags


def test_cuda_is_built_for_the_gpus_that_are_named_or_else_for_those_of_the_machine(monkeypatch):
    monkeypatch.delenv("CUDAARCHS", raising=False)
    monkeypatch.setenv("HEADRACE_CUDA", "OFF")
    assert cuda_flags() == []
    monkeypatch.setenv("HEADRACE_CUDA", "ON")
    assert cuda_flags() == ["-DGGML_CUDA=ON"]
    monkeypatch.setenv("CUDAARCHS", "80;90")
    assert cuda_flags() == ["-DGGML_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=80;90"]


def test_a_machine_without_gpus_is_told_how_to_build_for_others(monkeypatch, tmp_path):
    def no_gpu(name, command):
        raise SetupError("no GPU was detected")

    monkeypatch.delenv("CUDAARCHS", raising=False)
    monkeypatch.setattr(ggml, "CACHE", tmp_path)
    monkeypatch.setattr(ggml, "run_logged", no_gpu)
    monkeypatch.setattr(ggml, "fetch_llama_cpp", lambda python: ggml.pinned_source())
    monkeypatch.setattr(ggml, "ggml_version", lambda source: ggml.GGML_VERSION)
    monkeypatch.setenv("HEADRACE_CUDA", "ON")
    with pytest.raises(SetupError, match=r"(?s)no GPU was detected.*CUDAARCHS=80"):
        build_ggml()
    monkeypatch.setenv("HEADRACE_CUDA", "OFF")
    with pytest.raises(SetupError) as plain:
        build_ggml()
    assert str(plain.value) == "no GPU was detected"


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


def test_the_vulkan_backend_is_built_for_one_ggml_and_found_again(monkeypatch, tmp_path):
    built = []

    def build(name, command, **options):
        built.append([str(word) for word in command])
        for word in built[-1]:
            if word.startswith("-DCMAKE_INSTALL_PREFIX="):
                library = Path(word.partition("=")[2], "lib/libggml-vulkan.so")
                library.parent.mkdir(parents=True)
                library.touch()

    monkeypatch.setattr(ggml, "CACHE", tmp_path)
    monkeypatch.setattr(ggml, "run_logged", build)
    monkeypatch.setattr(ggml, "fetch_llama_cpp", lambda python: ggml.pinned_source())
    monkeypatch.setattr(ggml, "ggml_version", lambda source: ggml.GGML_VERSION)
    one, other = tmp_path / "one", tmp_path / "other"
    library = ggml.build_vulkan(one)
    assert library.exists() and f"-DGGML_PREFIX={one}" in built[0]
    steps = len(built)
    assert ggml.build_vulkan(one) == library and len(built) == steps
    assert ggml.build_vulkan(other) != library


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
