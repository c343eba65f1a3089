"""Files of Debian's archive, from wherever this machine's apt finds it: the sources of a package, and
packages of other architectures and releases. Nothing is installed and root is not needed."""

import re
from pathlib import Path

from provision import base, system

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def mirror(folder="/etc/apt"):
    """The address that this machine's apt has for Debian itself, in either of the formats of its lists."""
    files = [path for path in sorted(Path(folder).rglob("*")) if path.suffix in (".list", ".sources")]
    for text in (path.read_text() for path in files):
        for stanza in re.split(r"\n\s*\n", text):
            fields = dict(re.findall(r"^([\w-]+):\s*(.+)$", stanza, re.MULTILINE))
            if "deb" in fields.get("Types", "").split() and "-updates" in fields.get("Suites", ""):
                return fields["URIs"].split()[0]
        line = re.search(r"^deb\s+(?:\[.*?\]\s+)?(\S+)\s+\w+-updates\s", text, re.MULTILINE)
        if line:
            return line[1]
    raise base.SetupError(f"no list of apt's in {folder} names Debian's archive")


def pack_root(path, architecture, release, packages, variant="extract"):
    """Writes a tar file of a release's packages, unless it is there; "extract" unpacks them, "essential"
    configures them in a root that has a shell."""
    if path.exists():
        return
    system.require_program("mmdebstrap")
    partial = path.with_suffix(".partial.tar")
    options = [f"--variant={variant}", f"--architectures={architecture}", f"--include={','.join(packages)}"]
    base.run_logged("image", ["mmdebstrap", *options, release, partial, mirror()])
    partial.rename(path)


class Archive:
    """Some releases as a machine of an architecture, by Debian's name, sees them."""

    def __init__(self, folder, architecture, releases):
        self.folder = folder
        for needed in ("lists/partial", "cache/archives/partial"):
            (folder / needed).mkdir(parents=True, exist_ok=True)
        self.options = [
            f"-oDir::Etc::sourcelist={folder}/sources.list",
            "-oDir::Etc::sourceparts=-",
            f"-oDir::State::lists={folder}/lists",
            f"-oDir::State::status={folder}/status",
            f"-oDir::Cache={folder}/cache",
            f"-oAPT::Architecture={architecture}",
            f"-oAPT::Architectures::={architecture}",
            # Downloads go to a folder that apt's own user may not write to.
            "-oAPT::Sandbox::User=root",
        ]
        (folder / "status").touch()
        where = f"[signed-by={KEYRING}] {mirror()}"
        entries = [f"{kind} {where} {release} main\n" for release in releases for kind in ("deb", "deb-src")]
        (folder / "sources.list").write_text("".join(entries))
        self.has_lists = False

    def apt(self, *command, cwd=None):
        if not self.has_lists:
            base.run_logged("wheels", ["apt-get", *self.options, "update"])
            self.has_lists = True
        base.run_logged("wheels", ["apt-get", *self.options, *command], cwd=cwd)

    def source(self, package, release):
        """The unpacked source tree of a package, with Debian's patches."""
        folder = self.folder / f"{package}-{release}"
        if not folder.exists():
            scratch = self.folder / f"{package}-{release}.partial"
            scratch.mkdir(exist_ok=True)
            self.apt("source", f"{package}/{release}", cwd=scratch)
            scratch.rename(folder)
        return next(path for path in folder.iterdir() if path.is_dir())

    def packages(self, release, *names):
        """One folder with the files of some packages; it is called after the first."""
        folder = self.folder / f"{names[0]}-{release}"
        if not folder.exists():
            scratch = self.folder / f"{names[0]}-{release}.partial"
            scratch.mkdir(exist_ok=True)
            self.apt("download", *(f"{name}/{release}" for name in names), cwd=scratch)
            for file in scratch.glob("*.deb"):
                base.run_logged("wheels", ["dpkg-deb", "-x", file, scratch])
                file.unlink()
            scratch.rename(folder)
        return folder
