"""The container images of make image: their files, and a server that runs in one (make test-wheels)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from elf import ROOT
from environments import run
from roots import inside, skip_without_namespaces

DIST = ROOT / "build/wheels/dist"
IMAGES = sorted(DIST.glob("headrace-*.oci.tar"))
if not os.environ.get("HEADRACE_TEST_WHEELS"):
    pytest.skip("takes minutes: make test-wheels runs it", allow_module_level=True)
if not IMAGES:
    pytest.skip("no image has been made: make image makes one", allow_module_level=True)

MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
MOST_BYTES = 120_000_000
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True)
class Image:
    file: Path
    root: Path  # unpacked
    manifest: dict
    settings: dict  # its configuration

    @property
    def files(self) -> list[Path]:
        return [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]


@pytest.fixture(scope="module", params=IMAGES, ids=lambda path: path.name.removesuffix(".oci.tar"))
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Read as a container engine does, from the index down to the layers."""
    folder = tmp_path_factory.mktemp("image")
    with tarfile.open(request.param) as archive:
        archive.extractall(folder / "layout", filter="data")

    def blob(part: dict) -> Path:
        path = folder / "layout/blobs/sha256" / part["digest"].removeprefix("sha256:")
        assert path.stat().st_size == part["size"]
        return path

    (named,) = json.loads((folder / "layout/index.json").read_text())["manifests"]
    manifest = json.loads(blob(named).read_text())
    settings = json.loads(blob(manifest["config"]).read_text())
    for layer in manifest["layers"]:
        with tarfile.open(blob(layer)) as archive:
            archive.extractall(folder / "root", filter="tar")
    return Image(request.param, folder / "root", manifest, settings)


def test_it_is_small(image: Image):
    assert 30_000_000 < sum(path.stat().st_size for path in image.files) < MOST_BYTES


def test_tools_for_images_read_it(image: Image):
    if not shutil.which("skopeo"):
        pytest.skip("skopeo is not installed")
    for transport in ("oci-archive", "docker-archive"):
        settings = json.loads(run("skopeo", "inspect", "--config", f"{transport}:{image.file}"))
        assert settings == image.settings
    run("skopeo", "copy", f"docker-archive:{image.file}", f"dir:{image.root.parent / 'copied'}")


def test_it_holds_nothing_of_the_machine_that_made_it(image: Image):
    for name in ("etc/hostname", "etc/resolv.conf", "etc/apt", "var/log"):
        assert not (image.root / name).exists(), name


def test_the_licenses_of_all_parts_are_inside(image: Image):
    ours = image.root / "usr/local/share/doc/headrace"
    assert {"LICENSE", "parts/llama.cpp-and-ggml.txt", "parts/cpp-httplib.txt", "parts/llvm-libcxx.txt"} <= {
        str(path.relative_to(ours)) for path in ours.rglob("*") if path.is_file()
    }
    for package in ("libc6", "libgcc-s1", "base-files"):
        assert (image.root / "usr/share/doc" / package / "copyright").exists(), package


@pytest.fixture
def server(image: Image) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The image's own command, as its own user, in namespaces as a container has them; and its address."""
    if MACHINES[image.settings["architecture"]] != os.uname().machine:
        pytest.skip("not for this machine")
    skip_without_namespaces()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shutil.copy(MODEL, image.root / "model.gguf")
    config = image.settings["config"]
    (image.root / "dev").mkdir(exist_ok=True)
    program = [*config["Entrypoint"], *config["Cmd"], "--port", port]
    command = inside(image.root, program, config["User"])
    environment = {"PATH": os.environ["PATH"]}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def ask(url: str, body: dict | None = None) -> dict:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def await_health(process: subprocess.Popen[str], address: str) -> None:
    until = time.monotonic() + 60
    while True:
        assert process.poll() is None, process.stderr.read()
        try:
            return ask(f"{address}/health")
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.1)


def test_it_serves_a_model_and_ends_when_it_is_told(server: tuple[subprocess.Popen[str], str]):
    process, address = server
    await_health(process, address)
    messages = [{"role": "user", "content": "What is 2+3?"}]
    answer = ask(f"{address}/v1/chat/completions", {"messages": messages, "temperature": 0})
    assert answer["choices"][0]["message"]["content"] == "2+3=5"
    # The first process of its namespace, as in a container: no signal ends it that it does not handle.
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert "stopping" in process.stderr.read()
