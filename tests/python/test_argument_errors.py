"""What a wrong argument of a native function is answered with: a sentence, and no signature of C++."""

from __future__ import annotations

import subprocess
import sys

import headrace
import numpy as np
import pytest
import webnn
from headrace import _argument_errors, _core


def builder():
    return webnn.ML().create_context(accelerated=False).create_graph_builder()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: _core.set_num_threads("2"), "set_num_threads: threads is '2', a str; it must be an int"),
        (lambda: _core.set_num_threads(None), "set_num_threads: threads is None; it must be an int"),
        (
            lambda: _core.set_num_threads(1 << 40),
            "set_num_threads: threads is 1099511627776, out of its range",
        ),
        (
            lambda: _core.set_num_threads(),
            "set_num_threads: the argument threads is missing; its arguments are: threads (int)",
        ),
        (
            lambda: _core.set_num_threads(1, 2),
            "set_num_threads: 2 arguments without a name are given; its arguments are: threads (int)",
        ),
        (
            lambda: _core.set_num_threads(thread=1),
            "set_num_threads: there is no argument thread; its arguments are: threads (int)",
        ),
        (lambda: _core.set_num_threads(1, threads=2), "set_num_threads: threads is given twice"),
        (lambda: _core.view(3), "view: graph is 3, an int; it must be an MLGraph or a Graph"),
        (lambda: _core.BufferPool("a"), "BufferPool: per_size is 'a', a str; it must be an int"),
        (lambda: _core.MLGraphBuilder.build(), "build: it is called without its object"),
        (lambda: builder().build([]), "build: outputs is a list; it must be a mapping of str to MLOperand"),
        (lambda: builder().build({"y": 1}), "build: outputs['y'] is 1, an int; it must be an MLOperand"),
        (lambda: builder().build({1: 1}), "build: a key of outputs is 1, an int; it must be a str"),
        (lambda: builder().input(3, [1], "float32"), "input: name is 3, an int; it must be a str"),
        (lambda: builder().input("x", 3, "float32"), "input: shape is 3; it must be a list of dimensions"),
        (
            lambda: _core.TextEncoder.load("x", pooling=1),
            "load: pooling is 1, an int; it must be a str or None",
        ),
        (lambda: _core.graph_from_memory("a"), "graph_from_memory: data is 'a', a str; it must be bytes"),
        (lambda: _core.load_graph(3), "load_graph: path is 3, an int; it must be a str or a path"),
        (
            lambda: _core.compile(3),
            "compile: graph is of the type int; it must be a Graph, the bytes of a graph file or its path",
        ),
        (
            lambda: headrace.load(3),
            "load: path is 3, an int; it must be a path, the bytes of an ONNX model or an onnx.ModelProto",
        ),
        (
            lambda: _core.quantize_rows("q8_0", np.ones(3, np.float32)),
            "quantize_rows: these values are not taken; its arguments are: format (str), rows (ndarray)",
        ),
        (
            lambda: webnn.ML().create_context(device_type=3),
            "MLContext: device_type is 3, an int; it must be a str",
        ),
    ],
)
def test_names_function_argument_value_and_what_is_wanted(call, text):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == text


def test_language_models_and_http_say_it_alike():
    headrace_llm = pytest.importorskip("headrace._llm")
    headrace_serve = pytest.importorskip("headrace._serve")
    with pytest.raises(TypeError, match="LanguageModel: model is 3, an int; it must be a str or a path"):
        headrace_llm.LanguageModel(3)
    with pytest.raises(TypeError, match="HttpApi: arguments is 3, an int; it must be a sequence of str"):
        headrace_serve.HttpApi(3)
    with pytest.raises(TypeError, match="check_model_file: path is 3, an int; it must be a str or a path"):
        headrace_llm.check_model_file(3)


def test_long_values_are_named_by_their_type_alone():
    with pytest.raises(TypeError, match=r"^set_num_threads: threads is a str; it must be an int$"):
        _core.set_num_threads("2" * 1000)


def test_errors_that_speak_for_themselves_stay():
    with pytest.raises(TypeError, match=r"^unsupported operand type\(s\) for \+: 'Extent' and 'str'$"):
        _core.Extent.symbol("a") + "x"
    with pytest.raises(ValueError, match="at least 1"):
        _core.set_num_threads(-3)


def test_an_error_of_an_argument_s_own_code_stays():
    class Path:
        def __fspath__(self):
            raise TypeError("the path's own")

    with pytest.raises(TypeError, match=r"^the path's own$"):
        _core.load_graph(Path())


def test_every_signature_can_be_read():
    modules = [_core, *(pytest.importorskip(f"headrace.{name}") for name in ("_llm", "_serve"))]
    functions = [f for module in modules for f in vars(module).values()]
    functions += [f for kind in functions if isinstance(kind, type) for f in vars(kind).values()]
    native = [f for f in functions if type(f).__name__ in ("nb_func", "nb_method")]
    assert len(native) > 150
    for function in native:
        raised = f"{function.__name__}(): incompatible function arguments."
        given = [object()] * 20
        assert _argument_errors.sentence(function, raised, given, {"no such": 1}), function.__name__


def test_without_the_sentences_module_nanobinds_own_text_is_raised():
    script = """
import sys
sys.modules["headrace._argument_errors"] = None
from headrace import _core
try:
    _core.set_num_threads("2")
except TypeError as error:
    print(str(error).partition(".")[0])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.stdout.strip() == "set_num_threads(): incompatible function arguments", ran.stderr
