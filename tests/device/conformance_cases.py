"""WebNN's conformance cases on the device that HEADRACE_TEST_DEVICE names, told in GoogleTest's words."""

from __future__ import annotations

import argparse
import json
import os
import re
import traceback
from pathlib import Path

import ml_dtypes
import numpy as np
import webnn

SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
METHODS = {"gatherND": "gather_nd", "scatterND": "scatter_nd", "isNaN": "is_nan", "where": "where_"}
OPTIONS = {"padding": "pads"}


def python_name(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name) if name in ("int4", "uint4") else name)


def array_of(spec):
    data, dtype = spec["data"], dtype_of(spec["dtype"])
    if isinstance(data, dict):
        return np.full(spec["shape"], SPECIAL.get(data["fill"], data["fill"]), dtype)
    with np.errstate(over="ignore"):
        values = [SPECIAL[value] if isinstance(value, str) else value for value in data]
        return np.array(values, dtype=dtype).reshape(spec["shape"])


def ordered_bits(array):
    """Integers in the order of the floats' values, one apart where these are neighbours."""
    bits = array.view(np.int32 if array.dtype == np.float32 else np.int16).astype(np.int64)
    most = 0x7FFFFFFF if array.dtype == np.float32 else 0x7FFF
    return np.where(bits < 0, -(bits & most), bits)


def distances(actual, expected, kind):
    if expected.dtype.kind != "f":
        return np.abs(actual.astype(object) - expected.astype(object))
    if kind == "ULP":
        found = np.abs(ordered_bits(actual) - ordered_bits(expected)).astype(np.float64)
    else:
        with np.errstate(all="ignore"):
            difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        found = np.where(actual == expected, 0, difference)
    # A NaN is equal to none and less than none: said here, or a maximum would overlook it.
    missing = np.isnan(actual) | np.isnan(expected)
    return np.where(missing, np.where(np.isnan(actual) & np.isnan(expected), 0, np.inf), found)


def mismatch(actual, spec, tolerance):
    expected = array_of(spec)
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    found = distances(np.ascontiguousarray(actual).ravel(), expected.ravel(), tolerance["type"])
    worst = max(found, default=0)
    return None if worst <= tolerance["value"] else f"{tolerance['type']} {worst} > {tolerance['value']}"


class CaseGraph:
    """A case's operators on a builder; operands and results by name."""

    def __init__(self, context, case):
        self.builder = context.create_graph_builder()
        self.known, self.feeds = {}, {}
        for name, spec in case["inputs"].items():
            self.add_operand(name, spec)
        for operator in case["operators"]:
            self.add(operator)
        self.graph = self.builder.build({name: self.known[name] for name in case["expected"]})

    def add_operand(self, name, spec):
        if spec.get("constant"):
            self.known[name] = self.builder.constant(array_of(spec), spec["shape"], spec["dtype"])
        else:
            self.known[name] = self.builder.input(name, spec["shape"], spec["dtype"])
            self.feeds[name] = array_of(spec)

    def value(self, given):
        if isinstance(given, list):
            return [self.value(one) for one in given]
        if isinstance(given, str):
            return self.known.get(given, SPECIAL.get(given, given))
        return given

    def add(self, operator):
        arguments = [self.value(one) for one in operator["args"].values()]
        if operator["op"] == "pad":
            arguments = [arguments[0], [*arguments[1], *arguments[2]]]
        options = {
            OPTIONS.get(name, python_name(name)): self.value(one) for name, one in operator["options"].items()
        }
        method = getattr(self.builder, METHODS.get(operator["op"], python_name(operator["op"])))
        results = method(*arguments, **options)
        results = results if isinstance(results, (list, tuple)) else [results]
        self.known.update(zip(operator["outputs"], results, strict=False))


def failure_of(context, case):
    """None, or how the case fails."""
    made = CaseGraph(context, case)
    outputs = context.compute(made.graph, made.feeds)
    for name, spec in case["expected"].items():
        reason = mismatch(np.asarray(outputs[name]), spec, case["tolerance"])
        if reason:
            return f"{name}: {reason}"
    return None


def all_cases(folder, ops):
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text())
        if not ops or data["op"] in ops:
            for case in data.get("cases", []):
                yield f"{path.stem}.{case['id']}", case


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--list", action="store_true", help="only the cases' names")
    parser.add_argument("--only", type=Path, help="a file of names")
    arguments = parser.parse_args()
    if arguments.list:
        for name, _ in all_cases(arguments.folder, arguments.ops):
            print(name)
        return
    wanted = set(arguments.only.read_text().split()) if arguments.only else None
    context = webnn.ML().create_context(device=os.environ["HEADRACE_TEST_DEVICE"])
    for name, case in all_cases(arguments.folder, arguments.ops):
        if wanted is not None and name not in wanted:
            continue
        print(f"[ RUN      ] {name}", flush=True)
        try:
            reason = failure_of(context, case)
        except Exception:  # an error is a failed case, whatever it is
            reason = traceback.format_exc()
        if reason:
            print(f"{case['name']}: {reason}")
        print(f"[ {'  FAILED' if reason else '      OK'} ] {name}", flush=True)


if __name__ == "__main__":
    main()
