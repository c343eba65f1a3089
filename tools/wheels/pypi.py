"""Wheels for other machines, from wherever this machine's pip finds them."""

import zipfile

from provision import base


def unpacked(requirement, arch, python, folder):
    """The folder with the unpacked wheel of a requirement, without what it requires itself."""
    if not folder.exists():
        scratch = folder.with_name(f"{folder.name}.partial")
        with zipfile.ZipFile(download(requirement, arch, python, scratch)) as archive:
            archive.extractall(scratch)
        scratch.rename(folder)
    return folder


def download(requirement, arch, python, folder):
    """The wheel itself, in a folder for it alone."""
    if not list(folder.glob("*.whl")):
        # pip takes a platform's name literally.
        names = (f"manylinux_2_27_{arch}", f"manylinux_2_28_{arch}", f"manylinux2014_{arch}")
        platforms = [f"--platform={name}" for name in names]
        options = ["--no-deps", "--only-binary=:all:", f"--python-version={python}", *platforms]
        command = [base.VENV_PYTHON, "-m", "pip", "download", "--disable-pip-version-check", *options]
        base.run_logged("wheels", [*command, "--dest", folder, requirement])
    return next(folder.glob("*.whl"))
