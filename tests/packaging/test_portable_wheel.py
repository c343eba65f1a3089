"""What makes wheels portable, without building one: test_built_wheels.py has those that make wheels built."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from elf import ROOT, native_ggml
from provision.base import SetupError

pytest.importorskip("ziglang", reason="ziglang is not installed: make wheels installs it")
pytest.importorskip("auditwheel", reason="auditwheel is not installed: make wheels installs it")

from wheels import check, debian, delegate, pack, vulkan
from wheels.build import BACKENDS, PYTHONS, Python


@dataclass
class StagedBuild:
    """As wheels.build.Build, with a stage of one library and one program."""

    folder: Path
    library: bytes
    arch: str = "x86_64"

    @property
    def source(self) -> Path:
        for part in pack.LLAMA_LICENSES.values():
            (self.folder / part).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / part).write_text(f"the licence in {part}")
        return self.folder

    @property
    def highway(self) -> Path:
        (self.folder / "LICENSE").write_text("Highway's licence")
        return self.folder

    @property
    def fmt(self) -> Path:
        (self.folder / "LICENSE.rst").write_text("fmt's licence")
        return self.folder

    def executorch_license(self) -> Path:
        (self.folder / "LICENSE").write_text("ExecuTorch's licence")
        return self.folder / "LICENSE"

    def stage_delegate(self) -> Path:
        path = self.folder / "stage-delegate/executorch_ggml/libexecutorch_ggml_runtime.so"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.library)
        return self.folder / "stage-delegate"

    def stage_vulkan(self) -> Path:
        path = self.folder / "stage-vulkan" / BACKENDS / "libggml-vulkan.so"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.library)
        return self.folder / "stage-vulkan"

    def vulkan(self) -> Path:
        for package in vulkan.HEADERS:
            path = self.folder / "usr/share/doc" / package / "copyright"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"the licence of {package}")
        return self.folder

    def stage(self, python: Python) -> Path:
        for name, content in (("bin/headrace", b"\x7fELF"), ("lib/library.so", self.library)):
            path = self.folder / "stage/headrace" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755)
        return self.folder / "stage"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return pack.write_wheel(StagedBuild(tmp_path, b"\x7fELF"), PYTHONS["cp312"], tmp_path)


@pytest.fixture
def delegates_wheel(tmp_path: Path) -> Path:
    return delegate.write_wheel(StagedBuild(tmp_path, b"\x7fELF"), tmp_path)


@pytest.fixture
def vulkans_wheel(tmp_path: Path) -> Path:
    return vulkan.write_wheel(StagedBuild(tmp_path, b"\x7fELF"), tmp_path)


def described(wheel: Path, file: str) -> str:
    """METADATA or WHEEL."""
    with zipfile.ZipFile(wheel) as archive:
        (text,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith(f"/{file}"))
    return text


def test_the_name_and_the_metadata_agree_on_the_tag(wheel: Path, delegates_wheel: Path, vulkans_wheel: Path):
    for path, tag in ((wheel, "cp312-abi3"), (delegates_wheel, "py3-none"), (vulkans_wheel, "py3-none")):
        assert re.fullmatch(rf"\w+-[\d.]+-{tag}-manylinux_2_28_x86_64\.whl", path.name)
        tags = re.findall(r"^Tag: (.*)$", described(path, "WHEEL"), re.MULTILINE)
        assert tags == [f"{tag}-manylinux_2_28_x86_64"]


def test_the_delegates_wheel_requires_what_it_is_compiled_for(wheel: Path, delegates_wheel: Path):
    required = re.findall(r"^Requires-Dist: (.*)$", described(delegates_wheel, "METADATA"), re.MULTILINE)
    version = re.search(r"^Version: (.*)$", described(wheel, "METADATA"), re.MULTILINE)[1]
    assert required[0] == f"headrace=={version}"
    assert [re.match(r"[a-z]+==", line)[0] for line in required[1:]] == ["torch==", "executorch=="]


def test_vulkans_wheel_holds_the_backend_alone_and_requires_the_ggml_that_it_is_made_for(
    wheel: Path, vulkans_wheel: Path
):
    version = re.search(r"^Version: (.*)$", described(wheel, "METADATA"), re.MULTILINE)[1]
    metadata = described(vulkans_wheel, "METADATA")
    assert re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE) == [f"headrace=={version}"]
    with zipfile.ZipFile(vulkans_wheel) as archive:
        names = archive.namelist()
    info = f"headrace_vulkan-{version}.dist-info/"
    content = [name for name in names if not name.startswith(info)]
    assert content == ["headrace/lib/headrace/libggml-vulkan.so"]
    listed = re.findall(r"^License-File: parts/(.*)\.txt$", metadata, re.MULTILINE)
    assert listed == ["llama.cpp-and-ggml", "llvm-libcxx", "libvulkan-dev", "spirv-headers"]
    assert all(f"{info}licenses/parts/{part}.txt" in names for part in listed)


@pytest.mark.parametrize(
    "name, borrowed, fits",
    [
        ("headrace_vulkan-0.2.0-py3-none-manylinux_2_28_x86_64.whl", "libvulkan.so.1", True),
        ("headrace_vulkan-0.2.0-py3-none-manylinux_2_28_x86_64.whl", "libstdc++.so.6", False),
        ("headrace-0.2.0-cp312-abi3-manylinux_2_28_x86_64.whl", "libvulkan.so.1", False),
    ],
)
def test_a_library_of_the_system_is_borrowed_by_the_wheel_that_may(
    name: str, borrowed: str, fits: bool, monkeypatch: pytest.MonkeyPatch
):
    found = {
        "overall_tag": "linux_x86_64",
        "sym_tag": "manylinux_2_27_x86_64",
        "external_libs": {borrowed: None},
    }
    done = subprocess.CompletedProcess([], 0, json.dumps(found), "")
    monkeypatch.setattr(check.subprocess, "run", lambda *args, **kwargs: done)
    expected = found["sym_tag"] if fits else found["overall_tag"]
    assert check.platform_tag(Path(name)) == expected


def test_the_record_holds_every_file_with_its_digest(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (record,) = (name for name in names if name.endswith("/RECORD"))
        lines = dict(line.split(",", 1) for line in archive.read(record).decode().splitlines())
        assert lines.keys() == names
        for name, rest in lines.items():
            if name != record:
                digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=")
                assert rest.split(",")[0] == f"sha256={digest.decode()}", name


def test_programs_stay_programs_and_nothing_of_the_checkouts_build_comes_along(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    assert modes["headrace/bin/headrace"] == 0o755
    assert modes["headrace/__init__.py"] == 0o644
    native = [name for name in modes if ".so" in name or name.startswith("headrace/bin/")]
    assert native == ["headrace/bin/headrace", "headrace/lib/library.so"]


def test_the_metadata_list_every_license_that_is_inside(wheel: Path):
    metadata = described(wheel, "METADATA")
    with zipfile.ZipFile(wheel) as archive:
        inside = {
            name.split("/licenses/")[1]
            for name in archive.namelist()
            if "/licenses/" in name and archive.read(name).strip()
        }
    listed = set(re.findall(r"^License-File: (.*)$", metadata, re.MULTILINE))
    assert listed == inside
    for part in ("llama.cpp-and-ggml", "highway", "fmt", "flatbuffers", "CLI11", "nanobind", "llvm-libcxx"):
        assert f"parts/{part}.txt" in listed


def test_the_same_content_is_the_same_wheel(wheel: Path, tmp_path: Path):
    before = wheel.read_bytes()
    again = pack.write_wheel(StagedBuild(tmp_path, b"\x7fELF"), PYTHONS["cp312"], tmp_path)
    assert again.read_bytes() == before


def test_a_library_for_a_newer_glibc_is_refused(tmp_path: Path):
    """This machine's own library is one."""
    library = (ROOT / "build/lib/libheadrace.so").read_bytes()
    wheel = pack.write_wheel(StagedBuild(tmp_path, library), PYTHONS["cp311"], tmp_path)
    with pytest.raises(SetupError, match="promises manylinux_2_28_x86_64, and auditwheel finds"):
        check.check_wheel(wheel)


def test_a_large_wheel_is_refused(tmp_path: Path):
    wheel = tmp_path / "headrace-0.2.0-cp312-abi3-manylinux_2_28_x86_64.whl"
    with wheel.open("wb") as file:
        file.truncate(check.MOST_BYTES + 1)
    with pytest.raises(SetupError, match="30,000,001 bytes"):
        check.check_wheel(wheel)


def test_a_wheel_without_type_stubs_is_refused(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check, "platform_tag", lambda wheel: "manylinux_2_28_x86_64")
    bare = tmp_path / "bare" / wheel.name
    bare.parent.mkdir()
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(bare, "w") as fewer:
        for name in archive.namelist():
            if not name.endswith(".pyi"):
                fewer.writestr(name, archive.read(name))
    with pytest.raises(SetupError, match="lacks type stubs"):
        check.check_wheel(bare)


@pytest.mark.parametrize(
    "name, text",
    [
        ("debian.sources", "Types: deb\nURIs: scheme://host/debian\nSuites: bookworm bookworm-updates\n"),
        ("sources.list", "deb [arch=amd64] scheme://host/debian bookworm-updates main\n"),
    ],
)
def test_the_address_of_the_archive_is_that_of_the_machines_apt(name: str, text: str, tmp_path: Path):
    (tmp_path / "other.list").write_text("deb scheme://elsewhere stable main\n")
    (tmp_path / name).write_text(text)
    assert debian.mirror(tmp_path) == "scheme://host/debian"


def test_every_function_of_the_cpu_backend_that_is_called_is_forwarded():
    """A wheel loads the backend when it runs, so src/loading must have them all."""
    ggml = native_ggml()
    if not ggml:
        pytest.skip("the checkout's own build has set up no ggml")
    header = (ggml / "include/ggml-cpu.h").read_text()
    declared = set(re.findall(r"GGML_BACKEND_API[^;(]*?\b(ggml_\w+)\s*\(", header))
    assert "ggml_graph_compute" in declared
    loading = ROOT / "src/loading/cpu_functions.cpp"
    # The other backends live in programs that bring a CPU backend of their own; src/loading knows its build.
    others = [path for path in (ROOT / "src").rglob("*.cpp") if not {"backends", "loading"} & {*path.parts}]
    called = {name for path in others for name in re.findall(r"\b(ggml_\w+)\(", path.read_text())}
    forwarded = set(re.findall(r"HEADRACE_LOADED\((ggml_\w+)\)", loading.read_text()))
    assert called & declared == forwarded
