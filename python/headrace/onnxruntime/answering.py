"""`import onnxruntime` answered by this package: in this process, and in those that it starts."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from .environment import __version__

_NAME, _OURS = "onnxruntime", "headrace.onnxruntime"
_FOR_CHILDREN = Path(__file__).parent / "for_children"


def answer_imports() -> None:
    """From now on, in this process. Errors: RuntimeError where another onnxruntime is imported already."""
    loaded = sys.modules.get(_NAME)
    if loaded is not None and loaded is not sys.modules[_OURS] and not _is_for_children(loaded):
        raise RuntimeError(
            f"onnxruntime is imported already, from {loaded.__file__}; answer its import before that"
        )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules[_NAME] = sys.modules[_OURS]


def answer_in_children(environment: dict[str, str]) -> None:
    """Python programs that are started with this environment answer it, too."""
    if str(_FOR_CHILDREN) not in sys.path:
        sys.path.insert(1, str(_FOR_CHILDREN))  # multiprocessing hands the path itself on
    paths = [str(_FOR_CHILDREN), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


def _is_for_children(module: ModuleType) -> bool:
    return bool(module.__file__) and Path(module.__file__).is_relative_to(_FOR_CHILDREN)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of onnxruntime are those of this package, under both names one object."""

    def __init__(self) -> None:
        self._specs: dict[str, Any] = {}  # of modules that are imported now, by their own names

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != _NAME and not name.startswith(f"{_NAME}."):
            return None
        ours = _OURS + name.removeprefix(_NAME)
        if importlib.util.find_spec(ours) is None:
            raise ModuleNotFoundError(
                f"No module named {name!r}: Headrace answers for onnxruntime here, and has what runs models"
                " (docs/onnxruntime.md). Run this part of the program without headrace.onnxruntime",
                name=name,
            )
        return importlib.machinery.ModuleSpec(name, self, is_package=name in (_NAME, f"{_NAME}.capi"))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(_OURS + spec.name.removeprefix(_NAME))
        self._specs[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run; the import under the other name has left that name's spec in it."""
        module.__spec__ = self._specs.pop(module.__name__)

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        """For importlib.metadata.version("onnxruntime")."""
        if getattr(context, "name", None) == _NAME:
            yield _Distribution()


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename: str) -> str | None:
        is_metadata = filename == "METADATA"
        return f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {__version__}\n" if is_metadata else None

    def locate_file(self, path: Any) -> Path:
        return Path(__file__).parent / path
