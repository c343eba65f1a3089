"""Random cases of single operators: attributes, shapes and values where implementations tend to differ.

Each maker makes one case of its operator from a generator of random numbers. A case may be one that ONNX
Runtime refuses.
"""

import random_cases_contrib  # noqa: F401
import random_cases_decoders  # noqa: F401
import random_cases_elements  # noqa: F401
import random_cases_networks  # noqa: F401
import random_cases_signals  # noqa: F401
import random_cases_tensors
from random_cases_base import MAKERS

FAR = random_cases_tensors.FAR

__all__ = ["FAR", "MAKERS"]
