"""Headers alone, without the system's C headers, which are not those of another machine."""

from pathlib import Path

from provision import base

# Header-only, from the system's development packages.
LIBRARIES = ("flatbuffers", "nlohmann", "CLI", "xxhash.h")


def linked_headers(folder):
    """The folder, with links to the libraries' headers in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for library in LIBRARIES:
        if not (Path("/usr/include") / library).exists():
            raise base.SetupError(f"/usr/include/{library} is missing: make setup installs it")
        if not (folder / library).is_symlink():
            (folder / library).symlink_to(Path("/usr/include") / library)
    return folder
