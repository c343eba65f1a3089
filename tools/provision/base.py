"""Where things lie, and how steps are run, shown and locked."""

import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin/python"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


class SetupError(Exception):
    """A failure whose message tells the user what to do."""


def say(step, text):
    print(f"[{step}/6] {text}", flush=True)


def run_logged(name, command, **kwargs):
    """Runs a command with its output in build/logs/<name>.log; on failure the log's end is the message."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{name}.log"
    with path.open("a") as log:
        log.write(f"$ {' '.join(map(str, command))}\n")
        log.flush()
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **kwargs)
    if result.returncode:
        tail = "\n".join(path.read_text(errors="replace").splitlines()[-30:])
        raise SetupError(f"{command[0]} failed ({path.relative_to(ROOT)}):\n{tail}")


@contextmanager
def locked(path):
    """Holds an exclusive lock, so that two set-ups sharing a folder take turns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another set-up that holds {path}", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run_main(main):
    """Calls main; a SetupError becomes a message and exit status 1."""
    try:
        main()
    except SetupError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; run it again to go on where it stopped")
