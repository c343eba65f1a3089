"""What `import onnxruntime` finds where `python -m headrace.onnxruntime` has started a program."""

import sys
from pathlib import Path

try:
    import headrace.onnxruntime  # noqa: F401
except ModuleNotFoundError:  # the parent's own sys.path led there
    sys.path.append(str(Path(__file__).resolve().parents[4]))

from headrace.onnxruntime.answering import answer_imports

answer_imports()
