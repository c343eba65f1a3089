"""make image: a container image that serves a language model, as a file that podman, docker and skopeo load.

Debian's C library by mmdebstrap, and the program of the wheel for that architecture: no registry, no daemon.
The packages are unpacked and not configured, so an image of another architecture needs no emulator.
"""

import argparse
import gzip
import hashlib
import io
import json
import tarfile
import zipfile

from provision import base

from wheels.build import ARCHITECTURES, DIST, SOURCES_RELEASE, WORK
from wheels.debian import pack_root
from wheels.pack import version

MOST_BYTES = 120_000_000  # unpacked
PACKAGES = ("base-files", "netbase", "libc6")
# This machine's own settings, what only apt and dpkg read, and devices, which are the container's.
LEFT_OUT = ("dev/", "etc/apt", "etc/dpkg", "etc/hostname", "etc/resolv.conf", "var/lib/dpkg", "var/log")
TIME = 315532800  # 1980: the same content is the same image, whenever it is written
NOBODY = 65534
ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/root:/none\nnobody:x:{NOBODY}:{NOBODY}:nobody:/nonexistent:/none\n",
    "etc/group": f"root:x:0:\nnogroup:x:{NOBODY}:\n",
}
PREFIX = "usr/local"
CONFIG = {
    "Entrypoint": [f"/{PREFIX}/bin/headrace"],
    "Cmd": ["serve", "/model.gguf", "--host", "0.0.0.0"],
    "User": f"{NOBODY}:{NOBODY}",
    "ExposedPorts": {"8080/tcp": {}},
    "StopSignal": "SIGTERM",
}


def place(name):
    """Where a file of the wheel lies in the image; None for what only Python needs."""
    license = name.partition(".dist-info/licenses/")[2]
    if license:
        return f"{PREFIX}/share/doc/headrace/{license}"
    folder, _, rest = name.partition("/")
    return f"{PREFIX}/{rest}" if folder == "headrace" and rest.startswith(("bin/", "lib/")) else None


def program_files(wheel):
    """Name in the image, content and mode."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if path := place(entry.filename):
                yield path, archive.read(entry), entry.external_attr >> 16 & 0o777


def add_file(layer, name, content, mode=0o644):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, TIME
    layer.addfile(entry, io.BytesIO(content))


def write_layer(root, wheel):
    """The image's one layer as a tar file's bytes, from the root that mmdebstrap packed and the wheel."""
    output, total = io.BytesIO(), 0
    with tarfile.open(root) as debian, tarfile.open(fileobj=output, mode="w") as layer:
        for member in debian:
            member.name = member.name.removeprefix("./")
            if not member.name.startswith(LEFT_OUT):
                total += member.size
                layer.addfile(member, debian.extractfile(member) if member.isreg() else None)
        for name, text in ACCOUNTS.items():
            add_file(layer, name, text.encode())
        for name, content, mode in program_files(wheel):
            total += len(content)
            add_file(layer, name, content, mode)
    if total > MOST_BYTES:
        raise base.SetupError(f"the image has {total:,} bytes unpacked; {MOST_BYTES:,} are allowed")
    return output.getvalue(), total


def write_image(layer, architecture, path):
    """The layer as an image of OCI's layout, with the file by which older versions of docker load one."""
    blobs = {}

    def blob(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": f"sha256:{digest}",
            "size": len(content),
        }

    def as_json(value):
        return json.dumps(value).encode()

    packed = blob("layer.v1.tar+gzip", gzip.compress(layer, mtime=0))
    config = blob(
        "config.v1+json",
        as_json(
            {
                "architecture": architecture,
                "os": "linux",
                "config": CONFIG,
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            }
        ),
    )
    kind = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}
    manifest = blob("manifest.v1+json", as_json({**kind, "config": config, "layers": [packed]}))
    manifest["annotations"] = {
        "io.containerd.image.name": f"docker.io/library/headrace:{version()}",
        "org.opencontainers.image.ref.name": version(),
    }

    def name_of(part):
        return f"blobs/sha256/{part['digest'].removeprefix('sha256:')}"

    tags = [f"headrace:{version()}"]
    legacy = [{"Config": name_of(config), "RepoTags": tags, "Layers": [name_of(packed)]}]
    with tarfile.open(path, "w") as archive:
        add_file(archive, "oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
        add_file(archive, "index.json", as_json({"schemaVersion": 2, "manifests": [manifest]}))
        add_file(archive, "manifest.json", as_json(legacy))
        for name, content in blobs.items():
            add_file(archive, name, content)


def debian_root(architecture):
    """A tar file with the packages' files."""
    path = WORK / f"root-{architecture}.tar"
    pack_root(path, architecture, SOURCES_RELEASE, PACKAGES)
    return path


def make_image(arch):
    name = f"headrace-{version()}-*_{arch}.whl"
    wheels = sorted(DIST.glob(name))
    if not wheels:
        raise base.SetupError(f"{DIST} has no {name}: make wheels ARCH={arch} builds it")
    layer, total = write_layer(debian_root(ARCHITECTURES[arch]), wheels[0])
    path = DIST / f"headrace-{version()}-{arch}.oci.tar"
    write_image(layer, ARCHITECTURES[arch], path)
    size = path.stat().st_size
    print(f"{path.relative_to(base.ROOT)}: {size / 1e6:.1f} MB, {total / 1e6:.1f} MB unpacked", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", choices=ARCHITECTURES, default="x86_64")
    make_image(parser.parse_args().arch)


if __name__ == "__main__":
    base.run_main(main)
