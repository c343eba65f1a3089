"""make npm: the npm package headrace, and the packages of binaries for each platform, into build/npm/dist.

The binaries are compiled as a wheel's are, in the same folders: after make wheels only Node's addons are left
to compile. node/scripts/bundle.mjs has made the CommonJS modules before.
"""

import argparse
import json
import os
import shutil

from provision import base

from wheels import check
from wheels.build import ARCHITECTURES, GLIBC, WORK, Build
from wheels.pack import PYTHON_PARTS, licenses

NODE = base.ROOT / "node"
NPM = base.BUILD / "npm"
DIST = NPM / "dist"
CPUS = {"x86_64": "x64", "aarch64": "arm64"}  # with Node's names
ABOUT_US = ("version", "license", "engines")  # that all packages share
OF_THE_CHECKOUT = ("devDependencies", "prettier", "scripts")


def name_of(arch):
    return f"headrace-linux-{CPUS[arch]}"


def new_folder(name):
    folder = NPM / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(base.ROOT / "LICENSE", folder)
    return folder


def pack(folder, settings):
    """npm's file of a folder, with the settings as package.json; the same content gives the same file."""
    (folder / "package.json").write_text(json.dumps(settings, indent=2) + "\n")
    DIST.mkdir(exist_ok=True)
    base.run_logged("npm", ["npm", "pack", "--ignore-scripts", "--pack-destination", DIST, folder])
    return DIST / f"{settings['name']}-{settings['version']}.tgz"


def write_platform(arch, ours):
    """The package of the binaries for an architecture; ours: node/package.json."""
    build = Build(arch)
    build.libraries()
    stage = build.stage_node()
    needed = check.newest_glibc(stage)
    if needed > tuple(map(int, GLIBC.split("."))):
        raise base.SetupError(f"{stage} needs glibc {'.'.join(map(str, needed))}; {GLIBC} is promised")
    name = name_of(arch)
    folder = new_folder(name)
    shutil.copytree(stage, folder, dirs_exist_ok=True)
    (folder / "licenses").mkdir()
    for part, path in licenses(build).items():
        if part not in PYTHON_PARTS:
            shutil.copy(path, folder / f"licenses/{part}.txt")
    about = f"Binaries of the npm package headrace for Linux on {CPUS[arch]}, from glibc {GLIBC} on"
    (folder / "README.md").write_text(f"# {name}\n\n{about}. That package requires this one.\n")
    settings = {"name": name, "description": about, **{key: ours[key] for key in ABOUT_US}}
    platform = {"os": ["linux"], "cpu": [CPUS[arch]], "libc": ["glibc"], "preferUnplugged": True}
    return pack(folder, settings | platform)


def write_main(ours, architectures):
    """The package of JavaScript and types. Each platform that has been packed is optional to it."""
    folder = new_folder("headrace")
    for entry in ours["files"]:
        if entry == "native/web" and not (NODE / entry).exists():
            print("the package has no headrace/web: make web builds it", flush=True)
            continue
        copy = shutil.copytree if (NODE / entry).is_dir() else shutil.copy
        (folder / entry).parent.mkdir(parents=True, exist_ok=True)
        copy(NODE / entry, folder / entry)
    shutil.copy(NODE / "README.md", folder)
    settings = {key: value for key, value in ours.items() if key not in OF_THE_CHECKOUT}
    settings["optionalDependencies"] = {name_of(arch): ours["version"] for arch in architectures}
    return pack(folder, settings)


def main():
    built = [arch for arch in ARCHITECTURES if (WORK / arch / "headrace").exists()]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", nargs="+", choices=ARCHITECTURES, default=built or [os.uname().machine])
    ours = json.loads((NODE / "package.json").read_text())
    architectures = parser.parse_args().arch
    shutil.rmtree(DIST, ignore_errors=True)
    packages = [*(write_platform(arch, ours) for arch in architectures), write_main(ours, architectures)]
    for package in packages:
        print(f"{package.relative_to(base.ROOT)}: {check.checked_size(package) / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    base.run_main(main)
