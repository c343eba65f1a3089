"""tools/cross_check.py on single files: all of src is what make cross-check compiles."""

import importlib.util

import pytest
from cross_check import OUT, ROOT, TARGETS, check

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("ziglang"), reason="ziglang is not installed: make cross-check installs it"
)


def test_mapped_files_compile_for_every_target():
    assert check([ROOT / "src/base/mapped_file.cpp"], TARGETS) == []


def test_code_for_linux_alone_is_found():
    OUT.mkdir(parents=True, exist_ok=True)
    source = OUT / "linux_only.cpp"
    source.write_text("#include <sys/mman.h>\nvoid* p = nullptr;\n")
    messages = check([source], TARGETS)
    assert len(messages) == 1 and "sys/mman.h" in messages[0] and "windows" in messages[0]
