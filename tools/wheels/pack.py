"""Writes a wheel: a build's libraries and extensions, the Python packages and the licences of all parts."""

import base64
import hashlib
import os
import re
import tempfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import scikit_build_core.build
import ziglang
from provision import base

PACKAGES = ("headrace", "webnn")
PLATFORM = "manylinux_2_28"
# The same content is the same wheel, whenever it is written.
TIME = (1980, 1, 1, 0, 0, 0)


LLVM_PARTS = ("libcxx", "libcxxabi", "libunwind")
LLAMA_LICENSES = {
    "llama.cpp-and-ggml": "LICENSE",
    "cpp-httplib": "vendor/cpp-httplib/LICENSE",
    "nlohmann-json": "licenses/LICENSE-jsonhpp",
    "hash-sha256": "vendor/hash/sha256/LICENSE",
    "hash-rotate-bits": "vendor/hash/rotate-bits/LICENSE.md",
    "hash-xxhash": "vendor/hash/xxhash/LICENSE",
}
PYTHON_PARTS = ("nanobind", "robin-map")  # which the extensions alone are made of
DEBIAN_LICENSES = {"flatbuffers": "libflatbuffers-dev", "CLI11": "libcli11-dev", "xxhash": "libxxhash-dev"}


def licenses(build):
    """Name in the wheel and file, of everything that its libraries are made of."""
    zig, packages = Path(ziglang.__file__).parent, Path(distribution("nanobind").locate_file(""))
    return {
        **{part: build.source / file for part, file in LLAMA_LICENSES.items()},
        **{part: Path("/usr/share/doc", name, "copyright") for part, name in DEBIAN_LICENSES.items()},
        "highway": build.highway / "LICENSE",
        "fmt": build.fmt / "LICENSE.rst",
        "nanobind": next(packages.glob("nanobind-*.dist-info/licenses/LICENSE")),
        "robin-map": packages / "nanobind/ext/robin_map/include/tsl/robin_map.h",  # in its head
        "zig": zig / "LICENSE",
        **{f"llvm-{part}": zig / "lib" / part / "LICENSE.TXT" for part in LLVM_PARTS},
    }


def package_files(packages):
    """Name in the wheel and content of what is Python, with the stubs that this machine's build has made."""
    for package in packages:
        folder = base.ROOT / "python" / package
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".pyi") or path.name == "py.typed":
                yield str(path.relative_to(folder.parent)), path.read_bytes()


def metadata_files(build, tag):
    """The folder .dist-info, and name and content of its files; pip's own build makes the same metadata."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, scikit_build_core.build.prepare_metadata_for_build_wheel(scratch))
        files = {str(path.relative_to(scratch)): path for path in folder.rglob("*") if path.is_file()}
        files = {name: path.read_bytes() for name, path in files.items()}
    metadata, wheel = f"{folder.name}/METADATA", f"{folder.name}/WHEEL"
    listed = b"License-File: LICENSE\n"
    for part, path in licenses(build).items():
        name = f"parts/{part}.txt"
        files[f"{folder.name}/licenses/{name}"] = path.read_bytes()
        listed += f"License-File: {name}\n".encode()
    files[metadata] = files[metadata].replace(b"License-File: LICENSE\n", listed, 1)
    files[wheel] = re.sub(rb"(?m)^Tag: .*$", f"Tag: {tag}".encode(), files[wheel])
    return folder.name, files


def version():
    return re.search(r"project\(headrace VERSION ([\d.]+)", (base.ROOT / "CMakeLists.txt").read_text())[1]


def companion_metadata(name, summary, licenses, required, tag):
    """The same of a wheel that is one for every Python and stands on headrace's; licenses: of its parts."""
    project = tomllib.loads((base.ROOT / "pyproject.toml").read_text())["project"]
    folder = f"{name.replace('-', '_')}-{version()}.dist-info"
    licenses = {"LICENSE": base.ROOT / "LICENSE"} | {f"parts/{part}.txt": licenses[part] for part in licenses}
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {name}",
        f"Version: {version()}",
        f"Summary: {summary}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in licenses),
        f"Requires-Python: {project['requires-python']}",
        # It uses interfaces of headrace's libraries that change, so another of their versions needs another.
        f"Requires-Dist: headrace=={version()}",
        *(f"Requires-Dist: {needed}" for needed in required),
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: headrace", "Root-Is-Purelib: false", f"Tag: {tag}"]
    files = {
        f"{folder}/METADATA": "".join(f"{line}\n" for line in lines).encode(),
        f"{folder}/WHEEL": "".join(f"{line}\n" for line in wheel).encode(),
    }
    files |= {f"{folder}/licenses/{name}": path.read_bytes() for name, path in licenses.items()}
    return folder, files


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_wheel(build, python, output):
    """Packs what build.stage(python) has laid out; returns the wheel."""
    tag = f"{python.tag}-{PLATFORM}_{build.arch}"
    return write_archive(build.stage(python), PACKAGES, metadata_files(build, tag), tag, output)


def write_archive(stage, packages, metadata, tag, output):
    """The wheel of a stage's files, Python packages and the metadata: their folder, and name and content."""
    content, programs = dict(package_files(packages)), set()
    for path in sorted(path for path in stage.rglob("*") if path.is_file()):
        name = str(path.relative_to(stage))
        content[name] = path.read_bytes()
        if os.access(path, os.X_OK):
            programs.add(name)
    info, files = metadata
    content |= files
    record = "".join(record_line(name, data) for name, data in content.items())
    content[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = output / f"{info.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in content.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name in programs else 0o100644) << 16
            archive.writestr(entry, data)
    return wheel
