"""Where helpers of the tests of ONNX models lie."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "python")]  # operator_cases*.py, peers.py; cases*.py
