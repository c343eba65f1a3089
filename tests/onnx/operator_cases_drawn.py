"""Cases of operators that random makers describe: a few of each, always the same."""

import numpy as np
import random_cases_contrib  # noqa: F401
import random_cases_signals  # noqa: F401
from operator_cases_base import CASES
from random_cases_base import MAKERS

_LISTED = {(case.domain, case.op) for case in CASES}
_COMPOSED = {"HannWindow", "HammingWindow", "BlackmanWindow"}  # of other operators, by ONNX
_EACH = 3

for _name, _make in MAKERS.items():
    for _seed in range(_EACH):
        _case = _make(np.random.default_rng([_seed, *_name.encode()]))
        if (_case.domain, _case.op) not in _LISTED and _case.op not in _COMPOSED:
            CASES.append(_case)
