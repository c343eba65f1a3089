"""Every operator that the benchmark times computes what ONNX Runtime computes."""

from __future__ import annotations

import micro_ops
import pytest
from headrace._cli import ab_timing


@pytest.mark.parametrize("name", micro_ops.OPERATORS)
def test_an_operator_agrees_with_its_peer(name):
    case = micro_ops.case(name, micro_ops.OPERATORS[name], threads=2)
    assert ab_timing.check_agreement(case) <= case.tolerance
