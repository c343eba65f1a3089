"""How an image is written, of a small root and wheel; test_built_image.py has those of make image."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from provision.base import SetupError

pytest.importorskip("ziglang", reason="ziglang is not installed: make setup installs it")

from wheels import image


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """As mmdebstrap packs one."""
    path = tmp_path / "root.tar"
    with tarfile.open(path, "w") as archive:
        for name in (
            "./etc/hostname",
            "./etc/resolv.conf",
            "./etc/apt/sources.list",
            "./etc/host.conf",
            "./lib/libc.so.6",
        ):
            image.add_file(archive, name, b"content")
    return path


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "headrace-0.2.0-cp312-abi3-manylinux_2_28_x86_64.whl"
    modes = {
        "headrace/bin/headrace": 0o755,
        "headrace/lib/libheadrace.so": 0o644,
        "headrace/__init__.py": 0o644,
        "webnn/__init__.py": 0o644,
        "headrace-0.2.0.dist-info/licenses/parts/fmt.txt": 0o644,
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, mode in modes.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, name)
    return path


def members(layer: bytes) -> dict[str, int]:
    """Name and mode."""
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        return {member.name: member.mode for member in archive}


def test_the_program_lies_on_the_system_without_what_is_the_makers_or_pythons(root: Path, wheel: Path):
    layer, _ = image.write_layer(root, wheel)
    assert members(layer) == {
        "etc/host.conf": 0o644,
        "lib/libc.so.6": 0o644,
        "etc/passwd": 0o644,
        "etc/group": 0o644,
        "usr/local/bin/headrace": 0o755,
        "usr/local/lib/libheadrace.so": 0o644,
        "usr/local/share/doc/headrace/parts/fmt.txt": 0o644,
    }


def test_a_large_image_is_refused(root: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(image, "MOST_BYTES", 50)
    with pytest.raises(SetupError, match="bytes unpacked; 50 are allowed"):
        image.write_layer(root, wheel)


def test_both_kinds_of_readers_find_the_same_layer(root: Path, wheel: Path, tmp_path: Path):
    layer, _ = image.write_layer(root, wheel)
    image.write_image(layer, "amd64", tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}
    (old,) = json.loads(files["manifest.json"])
    (named,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(files["blobs/" + named["digest"].replace(":", "/")])
    for name, part in ((old["Config"], manifest["config"]), (old["Layers"][0], manifest["layers"][0])):
        assert name == "blobs/" + part["digest"].replace(":", "/")
        assert len(files[name]) == part["size"]
    assert gzip.decompress(files[old["Layers"][0]]) == layer
    assert json.loads(files[old["Config"]])["config"]["Entrypoint"] == ["/usr/local/bin/headrace"]


def test_the_same_content_is_the_same_image(root: Path, wheel: Path, tmp_path: Path):
    for name in ("one.tar", "two.tar"):
        image.write_image(image.write_layer(root, wheel)[0], "amd64", tmp_path / name)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
