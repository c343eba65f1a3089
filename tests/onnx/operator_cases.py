"""Every operator that is read, with variants of its attributes, dtypes and operator sets."""

import operator_cases_elements  # noqa: F401
import operator_cases_networks  # noqa: F401
import operator_cases_quantized  # noqa: F401
import operator_cases_tensors  # noqa: F401
import operator_cases_told  # noqa: F401

import operator_cases_drawn  # noqa: F401  # isort: skip
from operator_cases_base import CASES, MICROSOFT, Case, Constant, typed, values

__all__ = ["CASES", "MICROSOFT", "Case", "Constant", "typed", "values"]
