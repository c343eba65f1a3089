"""Single operators: Headrace computes what ONNX Runtime computes."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import operator_cases as cases
import pytest
from headrace._core import onnx_operators
from peers import assert_same, on_headrace, on_onnx_runtime

# test_random_numbers.py, and test_contrib_operators.py
RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}
OF_OTHER_PROVIDERS = {
    "BiasAdd",
    "BiasSoftmax",
    "BiasSplitGelu",
    "DynamicQuantizeLSTM",
    "ExpandDims",
    "FusedMatMulActivation",
    "GatherND",
    "GridSample",
    "GroupNorm",
    "MatMulInteger16",
    "NhwcConv",
    "NhwcFusedConv",
    "Pad",
    "QEmbedLayerNormalization",
    "QLinearConv",
    "QLinearReduceMean",
    "Range",
    "ScaledSiLU",
    "SkipGroupNorm",
    "Trilu",
}
# Operators on sequences, optionals and bodies are tested in test_control_flow.py.
OF_LISTS = {
    "If",
    "Loop",
    "Scan",
    "SequenceMap",
    "ConcatFromSequence",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SplitToSequence",
}
BY_OPERATOR = defaultdict(list)
for _case in cases.CASES:
    BY_OPERATOR[_case.domain, _case.op].append(_case)
# test_functions.py, beside ONNX's definitions.
DEFINED = {
    "BlackmanWindow",
    "CausalConvWithState",
    "HammingWindow",
    "HannWindow",
    "NegativeLogLikelihoodLoss",
    "SoftmaxCrossEntropyLoss",
    "SwiGLU",
}
# test_optimized_models.py
IN_BLOCKS = {
    *("AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"),
    *("ReorderInput", "ReorderOutput", "Upsample"),
}
# Operators with cases in random_cases_decoders.py, test_contrib_operators.py and test_shared_caches.py.
IN_RANDOM_CASES = (
    "CausalConvWithState",
    "LinearAttention",
    "MRotaryEmbedding",
    "MatMulBnb4",
    "MoE",
    "QMoE",
    "SparseAttention",
    "UnfoldTensor",
    "Unique",
)
# Read, but not as a node of their own here: test_models.py, test_flex_attention.py, test_generation.py.
ELSEWHERE = {
    ("ai.onnx.preview", "FlexAttention"),
    *(("", name) for name in DEFINED),
    ("", "BitCast"),
    ("", "LinearAttention"),
    ("", "Constant"),
    ("", "CumProd"),
    ("", "SimplifiedLayerNormalization"),
    *((cases.MICROSOFT, name) for name in IN_RANDOM_CASES),
    (cases.MICROSOFT, "SimplifiedLayerNormalization"),
    (cases.MICROSOFT, "QuantizeLinear"),
    (cases.MICROSOFT, "DequantizeLinear"),
    (cases.MICROSOFT, "BeamSearch"),
    (cases.MICROSOFT, "GreedySearch"),
    (cases.MICROSOFT, "WhisperBeamSearch"),
    *(("", name) for name in RANDOM),
    *(("", name) for name in OF_LISTS),
    *((cases.MICROSOFT, name) for name in OF_OTHER_PROVIDERS),
    *(("com.microsoft.nchwc", name) for name in IN_BLOCKS),
}


def _title(key: tuple[str, str]) -> str:
    return f"{key[0]}.{key[1]}" if key[0] else key[1]


def test_every_operator_that_is_read_has_cases() -> None:
    read = {(domain, name) for domain, name, _ in onnx_operators()}
    assert set(BY_OPERATOR) == read - ELSEWHERE
    assert len(cases.CASES) >= 652


@pytest.mark.parametrize("key", sorted(BY_OPERATOR), ids=_title)
def test_headrace_computes_what_onnx_runtime_computes(key: tuple[str, str]) -> None:
    failures = []
    for case in BY_OPERATOR[key]:
        try:
            model = case.model()
            actual, expected = on_headrace(model, case.feeds), on_onnx_runtime(model, case.feeds)
            assert list(actual) == list(expected)
            for name in expected:
                assert_same(actual[name], expected[name], case.tolerance, case.ulps)
        except Exception as error:
            failures.append(f"{case.label}: {type(error).__name__}: {' '.join(str(error).split())[:600]}")
    assert not failures, f"{len(failures)} variants:\n" + "\n".join(failures[:8])


def test_with_open_dimensions_operators_compute_the_same_or_say_what_to_fix() -> None:
    outcomes, failures = Counter(), []
    for case in cases.CASES:
        if not any(extent > 1 for value in case.feeds.values() for extent in value.shape):
            continue
        try:
            model = case.model(dims=True)
            try:
                actual = on_headrace(model, case.feeds)
            except ValueError as error:
                outcomes["refused"] += 1
                remedies = ("dimensions={", "are out of bounds", "give inputs of shapes")
                if not any(remedy in str(error) for remedy in remedies):
                    failures.append(f"{case.label}: no remedy in: {error}"[:700])
                continue
            outcomes["computed"] += 1
            for name, value in on_onnx_runtime(case.model(), case.feeds).items():
                assert_same(actual[name], value, case.tolerance, case.ulps)
        except Exception as error:
            failures.append(f"{case.label}: {type(error).__name__}: {' '.join(str(error).split())[:600]}")
    assert not failures, f"{len(failures)} of {outcomes}:\n" + "\n".join(failures[:12])
    assert outcomes["computed"] >= 435, outcomes


def test_what_is_known_when_the_model_is_read_is_computed_then() -> None:
    """Every case again with all its inputs constant."""
    failures = []
    for case in cases.CASES:
        fixed = cases.Case(**(vars(case) | {"inputs": [_constant(v) for v in case.inputs]}))
        try:
            actual = on_headrace(fixed.model(), {})
            for name, value in on_onnx_runtime(case.model(), case.feeds).items():
                assert_same(actual[name], value, case.tolerance, case.ulps)
        except Exception as error:
            failures.append(f"{case.label}: {type(error).__name__}: {' '.join(str(error).split())[:600]}")
    assert not failures, f"{len(failures)} variants:\n" + "\n".join(failures[:12])


def _constant(value: object) -> object:
    return cases.Constant(value) if isinstance(value, np.ndarray) else value
