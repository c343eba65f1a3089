"""Where what is built lies, the program and the libraries: in an installation or in a checkout's build."""

from __future__ import annotations

from pathlib import Path

import headrace


def built_file(name: str) -> Path:
    """A file such as "bin/headrace", or FileNotFoundError."""
    # An editable installation has the sources in one of the package's folders and what was built in another.
    installed = [Path(folder) / name for folder in headrace.__path__]
    in_checkout = Path(__file__).resolve().parents[2] / "build" / name
    for path in (*installed, in_checkout):
        if path.exists():
            return path
    raise FileNotFoundError(f"{in_checkout} does not exist; make build compiles it")
