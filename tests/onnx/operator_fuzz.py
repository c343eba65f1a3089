"""Random cases of single operators beside ONNX Runtime: changed attributes, shapes, operands and constants.

Where ONNX Runtime computes a case Headrace gives the same, with operands that are fed, with constants, and
with open dimensions, or a ValueError.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

import numpy as np
import onnx
from operator_cases_base import Case, Constant
from peers import assert_same, on_headrace, on_onnx_runtime
from random_cases import MAKERS


def drawn(name: str, seed: int) -> Case:
    return MAKERS[name](np.random.default_rng([seed, *name.encode()]))


def with_constants(case: Case) -> Case:
    inputs = [Constant(v) if isinstance(v, np.ndarray) else v for v in case.inputs]
    return Case(**(vars(case) | {"inputs": inputs}))


def forms(case: Case, is_open: bool) -> list[tuple[onnx.ModelProto, dict[str, Any]]]:
    """Models of a case, with what each is fed."""
    found = [(case.model(), case.feeds), (with_constants(case).model(), {})]
    return [*found, (case.model(dims=True), case.feeds)] if is_open else found


def compare(case: Case, outcomes: Counter, is_open: bool = False) -> list[str]:
    """What is wrong; outcomes counts."""
    try:
        expected = on_onnx_runtime(case.model(), case.feeds)
    except Exception:  # what ONNX Runtime does not know either
        outcomes["refused by ONNX Runtime"] += 1
        return []
    wrong = []
    for model, feeds in forms(case, is_open):
        try:
            actual = on_headrace(model, feeds)
        except ValueError:
            outcomes["refused"] += 1
            continue
        outcomes["computed"] += 1
        try:
            for key, value in expected.items():
                assert_same(actual[key], value, max(case.tolerance, 2e-5), case.ulps)
        except AssertionError as error:
            wrong.append(f"{case.label}: {' '.join(str(error).split())[:500]}")
    return wrong


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cases", type=int, default=10000)
    arguments.add_argument("--seed", type=int, default=0, help="of the first case of each operator")
    given = arguments.parse_args()
    outcomes, names, wrong = Counter(), list(MAKERS), 0
    for i in range(given.cases):
        name, seed = names[i % len(names)], given.seed + i // len(names)
        for message in compare(drawn(name, seed), outcomes, is_open=True):
            wrong += 1
            print(f"{name}, seed {seed}: {message[:400]}", flush=True)
    counts = ", ".join(f"{count} {what}" for what, count in outcomes.items())
    print(f"{given.cases} cases of {len(names)} operators and their forms: {counts}, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
