"""Every WebNN operator with variants of its options and dtypes, for tests that compare two engines."""

import cases_elements  # noqa: F401
import cases_tensors  # noqa: F401
from cases_base import CASES, Case, Constant, limits, values

__all__ = ["CASES", "Case", "Constant", "limits", "values"]
