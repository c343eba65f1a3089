"""ONNX's own backend tests, from the package onnx, as a user has them: `make test-onnx-suite`.

Models and inputs go through headrace.load as they are: nothing is converted, and nothing is made constant. A
line says what became of them; fewer that pass than FLOOR says, or one that is wrong, unclean or dies, is a
failure.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

FLOOR = Path(__file__).with_name("backend_suite_floor.json")
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
OUTCOMES = ("passed", "wrong", "refused", "unclean", "died")
SLOWEST = 120  # seconds of one test
OTHERS = {"ai.onnx.ml": "ai.onnx.ml", "ai.onnx.preview.training": "training"}  # domains that are not counted
RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}


@dataclass
class Test:
    """A model with inputs and results. group: what it needs where that is counted apart, or ""."""

    name: str
    model: onnx.ModelProto
    data: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float
    group: str = ""


@dataclass
class Report:
    """What became of each test, by its name."""

    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)  # outcome and message

    def names(self, *wanted: str) -> list[str]:
        return sorted(name for name, (outcome, _) in self.outcomes.items() if outcome in wanted)


# --- tests ------------------------------------------------------------------------------------------------


def tests() -> list[Test]:
    """All of them, those that are no inference apart."""
    from onnx.backend.test.loader import load_model_tests

    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in (case for kind in KINDS for case in load_model_tests(kind=kind)):
            model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
            data = case.data_sets or list(_stored(Path(case.model_dir), model))
            data = [tuple([_array(x) for x in part] for part in pair) for pair in data]
            found.append(Test(case.name, model, data, case.rtol, case.atol, _group(model, data)))
    return found


def _stored(folder: Path, model: onnx.ModelProto) -> Iterator[tuple[list[Any], list[Any]]]:
    """What lies beside a model: a file for each input and result."""
    for part in sorted(folder.glob("test_data_set*")):
        yield tuple(
            [_read(part / f"{kind}_{i}.pb", info.type) for i, info in enumerate(infos)]
            for kind, infos in (
                ("input", model.graph.input[: len(list(part.glob("input_*.pb")))]),
                ("output", model.graph.output),
            )
        )


def _read(path: Path, kind: onnx.TypeProto) -> Any:
    content, form = path.read_bytes(), kind.WhichOneof("value")
    if form == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if form == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return TensorProto.FromString(content)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _group(model: onnx.ModelProto, data: list[Any]) -> str:
    domains = {entry.domain for entry in model.opset_import}
    nodes = list(_nodes(model.graph.node))
    for domain, group in OTHERS.items():
        if domain in domains or any(node.domain == domain for node in nodes):
            return group
    operators = {node.op_type for node in nodes}
    if operators & RANDOM or any(map(_is_training_dropout, nodes)):
        return "random values"
    if "ImageDecoder" in operators:
        return "images"
    arrays = (x for pair in data for part in pair for x in _leaves(part))
    return "strings" if any(x.dtype.kind in "OSU" for x in arrays if isinstance(x, np.ndarray)) else ""


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g.node)


def _is_training_dropout(node: onnx.NodeProto) -> bool:
    return node.op_type == "Dropout" and len(node.input) > 2


def _leaves(part: Any) -> Iterator[Any]:
    for x in part:
        yield from _leaves(x) if isinstance(x, (list, tuple)) else (x,)


# --- runtimes ---------------------------------------------------------------------------------------------


def on_headrace(test: Test) -> None:
    """Errors: what headrace.load and the call raise; AssertionError for other results than the test's."""
    import headrace

    model = headrace.load(test.model, device="cpu", threads=1)
    names = [info.name for info in test.model.graph.input]
    for inputs, expected in test.data:
        results = model(dict(zip(names, inputs, strict=False)))
        compare([results[info.name] for info in test.model.graph.output], expected, test)


def on_onnx_runtime(test: Test) -> None:
    """As a user calls it, newest operator sets allowed. Errors: as on_headrace."""
    os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        test.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [info.name for info in test.model.graph.input]
    for inputs, expected in test.data:
        compare(session.run(None, dict(zip(names, inputs, strict=False))), expected, test)


def compare(actual: Any, expected: Any, test: Test) -> None:
    """As onnx.backend.test compares; of random values shape and dtype."""
    if isinstance(expected, (list, tuple)):
        assert isinstance(actual, (list, tuple)) and len(actual) == len(expected), "a list of another length"
        for one, other in zip(actual, expected, strict=True):
            compare(one, other, test)
        return
    if expected is None:
        assert actual is None, "the optional is not empty"
        return
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shape {actual.shape}, not {expected.shape}"
    assert actual.dtype == expected.dtype, f"dtype {actual.dtype}, not {expected.dtype}"
    if test.group == "random values":
        return
    rtol = test.rtol
    if expected.dtype.kind in "OSU":
        np.testing.assert_array_equal(actual, expected)
        return
    if expected.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)
    if expected.dtype.kind == "V":  # types of ml_dtypes, whose tolerances NumPy cannot compute
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=test.atol)


RUNTIMES = {"headrace": on_headrace, "onnxruntime": on_onnx_runtime}


def outcome(runtime: str, test: Test) -> tuple[str, str]:
    try:
        with np.errstate(all="ignore"):
            RUNTIMES[runtime](test)
    except AssertionError as error:
        return "wrong", _line(error)
    except Exception as error:
        is_clean = isinstance(error, ValueError) if runtime == "headrace" else True
        return ("refused" if is_clean else "unclean"), f"{type(error).__name__}: {_line(error)}"
    return "passed", ""


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400]


# --- processes --------------------------------------------------------------------------------------------


class Lane:
    """A process that does some of the tests; a new one goes on where it dies."""

    def __init__(self, runtime: str, queue: list[Test]) -> None:
        self.runtime, self.queue = runtime, queue
        self.start()

    def start(self) -> None:
        self.results, end = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("fork")  # the tests are made once
        self.process = context.Process(target=_work, args=(self.runtime, self.queue, end), daemon=True)
        self.process.start()
        end.close()
        self.since = time.monotonic()

    def take(self, report: Report) -> None:
        """What is there: a result, or the end of the process."""
        try:
            report.outcomes[self.queue[0].name] = self.results.recv()
            self.queue.pop(0)
            self.since = time.monotonic()
        except EOFError:
            self.end(report, "the process died")

    def end(self, report: Report, why: str) -> None:
        self.process.kill()
        self.process.join()
        if self.queue:
            report.outcomes[self.queue.pop(0).name] = ("died", why)
        if self.queue:
            self.start()


def _work(runtime: str, queue: list[Test], results: Connection) -> None:
    for test in queue:
        results.send(outcome(runtime, test))
    results.close()


def run(runtime: str, queue: list[Test], lanes: int = 2) -> Report:
    report = Report()
    running = [Lane(runtime, queue[i::lanes]) for i in range(lanes)]
    while running := [lane for lane in running if lane.queue]:
        ready = wait([lane.results for lane in running], timeout=1)
        for lane in running:
            if lane.results in ready:
                lane.take(report)
            elif time.monotonic() - lane.since > SLOWEST:
                lane.end(report, f"it took more than {SLOWEST} seconds")
    return report


# --- the answer -------------------------------------------------------------------------------------------


def summary(runtime: str, report: Report, by_name: dict[str, Test]) -> str:
    """Tests of inference by outcome, and of those that did not pass what they need."""
    counts = Counter(result for result, _ in report.outcomes.values())
    apart = Counter(by_name[name].group for name in report.names(*OUTCOMES[1:]) if by_name[name].group)
    total = f"{runtime}: {counts['passed']} of {len(report.outcomes)} passed"
    rest = ", ".join(f"{counts[what]} {what}" for what in OUTCOMES[1:])
    return f"{total}, {rest}; of these " + ", ".join(f"{n} need {what}" for what, n in sorted(apart.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--onnxruntime", action="store_true", help="also on ONNX Runtime; lists what it alone passes"
    )
    parser.add_argument("--failures", action="store_true", help="list what did not pass, with the reason")
    parser.add_argument("--only", default="", help="tests with this in their name")
    parser.add_argument("--lanes", type=int, default=2, help="processes")
    options = parser.parse_args()
    begin = time.monotonic()
    every = [test for test in tests() if options.only in test.name]
    queue = [test for test in every if test.group not in OTHERS.values()]
    by_name = {test.name: test for test in queue}
    ours = run("headrace", queue, options.lanes)
    if options.failures:
        for name in ours.names(*OUTCOMES[1:]):
            print(name, *ours.outcomes[name], by_name[name].group, sep=" | ")
    if options.onnxruntime:
        theirs = run("onnxruntime", queue, options.lanes)
        for name in theirs.names("passed"):
            if name not in ours.names("passed"):
                print("ONNX Runtime alone:", name, *ours.outcomes[name], sep=" | ")
        print(summary("ONNX Runtime", theirs, by_name))
    left = Counter(test.group for test in every if test.group in OTHERS.values())
    print(
        summary("Headrace", ours, by_name)
        + f"; not run: {', '.join(f'{n} {what}' for what, n in sorted(left.items())) or 'none'}"
        + f" ({time.monotonic() - begin:.0f} s)"
    )
    if options.only:
        return int(len(ours.names("passed")) < len(queue))
    floor = json.loads(FLOOR.read_text())["passed"]
    bad = ours.names("wrong", "unclean", "died")
    passed = len(ours.names("passed"))
    if passed < floor:
        print(f"{passed} is below the floor of {floor} ({FLOOR.name})")
    for name in bad:
        print(name, *ours.outcomes[name], sep=" | ")
    return int(passed < floor or bool(bad))


if __name__ == "__main__":
    sys.exit(main())
