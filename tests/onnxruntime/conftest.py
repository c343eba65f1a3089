"""Modules that the tests of headrace.onnxruntime share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # both_sides.py, small_models.py
