"""What a page asks of headrace/web that cannot be had, in Chromium: memory that is not there, and models that
are damaged or mean harm. Each is refused as the specification says, and the worker that was there goes on."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from browser import opened
from onnx import TensorProto, helper, numpy_helper
from provision.base import ROOT
from web.server import serving

MODULE = ROOT / "node/native/web/headrace-threads-relaxed.wasm"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


@pytest.fixture(scope="module")
def browser():
    if not MODULE.exists():
        pytest.skip("the modules are not built: make web builds them")
    with serving() as address, opened() as browser:
        browser.wait_for_scripts(240)
        browser.open(f"{address}/tests/web/page.html")
        browser.run("return window.page.install()")
        yield browser


def run(page, steps: str, *arguments: object):
    """What the body of an asynchronous function returns; `given` are the arguments."""
    return page.run(f"const given = [...arguments]; return (async () => {{ {steps} }})()", *arguments)


@pytest.fixture
def page(browser):
    """One whose worker is the same after a test, and works."""
    before = run(browser, "await navigator.ml.createContext(); return window.workers.length")
    yield browser
    after = run(
        browser,
        """
        const context = await navigator.ml.createContext();
        const pair = { dataType: 'float32', shape: [2] };
        const builder = new MLGraphBuilder(context);
        const graph = await builder.build({ y: builder.neg(builder.input('x', pair)) });
        const x = await context.createTensor({ ...pair, writable: true });
        const y = await context.createTensor({ ...pair, readable: true });
        context.writeTensor(x, Float32Array.of(1, 2));
        context.dispatch(graph, { x }, { y });
        const values = [...new Float32Array(await context.readTensor(y))];
        context.destroy();
        return [window.workers.length, values];
        """,
    )
    assert after == [before, [-1, -2]]


def test_tensors_that_memory_does_not_hold_are_unknown_errors(page):
    name, message, bytes_read = run(
        page,
        """
        const context = await navigator.ml.createContext();
        const large = { dataType: 'uint8', shape: [2 ** 31 - 1] };
        let failure;
        for (let i = 0; i < 4 && !failure; ++i)
            await context.createTensor(large).catch((error) => { failure = error; });
        const small = { dataType: 'float32', shape: [2], readable: true };
        const read = await context.readTensor(await context.createTensor(small)).catch(() => undefined);
        context.destroy();
        return [failure.name, failure.message, read?.byteLength];
        """,
    )
    assert name == "UnknownError"
    assert "2147483647" in message
    assert bytes_read == 8


def test_constants_that_memory_does_not_hold_are_operation_errors_of_build(page):
    """Each is what the page can send; together they are more than the worker can address."""
    name, message = run(
        page,
        """
        const context = await navigator.ml.createContext();
        const builder = new MLGraphBuilder(context);
        const part = { dataType: 'uint8', shape: [2 ** 29] };
        const x = builder.input('x', part);
        const data = new Uint8Array(2 ** 29);
        let sum = x;
        try {
            for (let i = 0; i < 9; ++i) {
                data[0] = i;
                const constant = await context.createConstantTensor(part, data);
                sum = builder.max(sum, builder.constant(constant));
            }
            await builder.build({ sum });
        } catch (error) {
            return [error.name, error.message];
        } finally {
            context.destroy();
        }
        return ['none', ''];
        """,
    )
    assert name in ("UnknownError", "OperationError")
    assert "bytes" in message or "memory" in message


def test_activations_that_memory_does_not_hold_are_an_error_of_the_run(page):
    name, message = run(
        page,
        """
        const context = await navigator.ml.createContext();
        const builder = new MLGraphBuilder(context);
        const vector = { dataType: 'float32', shape: [2 ** 26] };
        const x = builder.input('x', vector);
        const values = Array.from({ length: 20 }, (_, i) =>
            builder.sin(builder.add(x, builder.constant('float32', i))));
        const [sum, product] = ['add', 'mul'].map((op) => values.reduce((a, b) => builder[op](a, b)));
        const y = builder.add(builder.reduceMean(builder.cos(sum)), builder.reduceMean(product));
        try {
            const graph = await builder.build({ y });
            const from = await context.createTensor({ ...vector, writable: true });
            const to = await context.createTensor({ dataType: 'float32', shape: [], readable: true });
            context.dispatch(graph, { x: from }, { y: to });
            await context.readTensor(to);
        } catch (error) {
            return [error.name, error.message];
        } finally {
            context.destroy();
        }
        return ['none', ''];
        """,
    )
    assert name in ("UnknownError", "OperationError", "InvalidStateError")
    assert "bytes" in message or "memory" in message


def model_of(nodes, inputs=(), initializers=()) -> bytes:
    """With an output `y` of no stated shape."""
    infos = [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in inputs]
    result = helper.make_tensor_value_info("y", FLOAT, None)
    graph = helper.make_graph(list(nodes), "hostile", infos, [result], list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


WEIGHTS = numpy_helper.from_array(np.float32([[1, 2], [3, 4]]), "w")
PRODUCT = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, [2, 2])], [WEIGHTS])


def integers(name: str, *values: int) -> TensorProto:
    return numpy_helper.from_array(np.int64(values), name)


def nested_branches(depth: int) -> bytes:
    true = numpy_helper.from_array(np.bool_(True), "c")
    node = helper.make_node("Identity", ["x"], ["y"])
    for _ in range(depth):
        result = helper.make_tensor_value_info("y", FLOAT, None)
        body = helper.make_graph([node], "branch", [], [result])
        node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    return model_of([node], [("x", FLOAT, [2, 2])], [true])


def with_external_data() -> bytes:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[2, 2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../../../etc/passwd")
    return model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, [2, 2])], [tensor])


def of_one_operand(op: str, *integers_of_it: int) -> bytes:
    node = helper.make_node(op, ["x", "n"] if op != "ConstantOfShape" else ["n"], ["y"])
    return model_of([node], [("x", FLOAT, [2, 2])], [integers("n", *integers_of_it)])


X = [("x", FLOAT, [2, 2])]
HOSTILE = {
    "no model": b"\xff" * 64,
    "half of a model": PRODUCT[: len(PRODUCT) // 2],
    "weights without their data": model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        X,
        [TensorProto(name="w", data_type=FLOAT, dims=[2, 2])],
    ),
    "weights of 2^62 elements": model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        X,
        [TensorProto(name="w", data_type=FLOAT, dims=[2**31, 2**31], raw_data=b"\0" * 16)],
    ),
    "weights of -1 elements": model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        X,
        [TensorProto(name="w", data_type=FLOAT, dims=[-1, 2], raw_data=b"\0" * 8)],
    ),
    "weights in a file elsewhere": with_external_data(),
    "an expansion to 2^40 elements": of_one_operand("Expand", 2**20, 2**19, 2, 2),
    "a filling of 2^40 elements": of_one_operand("ConstantOfShape", 2**40),
    "a filling of 2^32 bytes": of_one_operand("ConstantOfShape", 2**30),
    "a tiling by 2^40": of_one_operand("Tile", 2**20, 2**20),
    "a shape that does not hold": of_one_operand("Reshape", 3, 2),
    "a node that reads itself": model_of([helper.make_node("Add", ["x", "y"], ["y"])], X),
    "an operator that is not there": model_of([helper.make_node("Fly", ["x"], ["y"])], X),
    "branches in branches": nested_branches(12),
    "a rank of 1000": model_of(
        [helper.make_node("Reshape", ["x", "n"], ["y"])], X, [integers("n", *[1] * 998, 2, 2)]
    ),
}

#: [what was thrown, its message] of a load and a run, or [null, elements].
TRY = """
const outcome = async (bytes) => {
    let model;
    try {
        model = await window.page.web.load(bytes);
        const dims = [2, 2], data = Float32Array.of(1, 0, 0, 1);
        const inputs = Object.fromEntries(model.inputs.map(({ name }) => [name, { data, dims }]));
        const { y } = await model.run(inputs);
        return [null, y ? y.data.length : 0];
    } catch (error) {
        return [error.name, error.message];
    } finally {
        model?.dispose();
    }
};
const decoded = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
"""


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("what", [name for name in HOSTILE if name != "branches in branches"])
def test_a_hostile_model_is_refused(page, what):
    name, message = run(page, f"{TRY} return outcome(decoded(given[0]))", encoded(HOSTILE[what]))
    assert name == "HeadraceError", message
    assert message


def test_branches_in_branches_are_run_or_refused(page):
    name, message = run(
        page, f"{TRY} return outcome(decoded(given[0]))", encoded(HOSTILE["branches in branches"])
    )
    assert name in (None, "HeadraceError"), message


def test_models_with_a_damaged_byte_are_refused_or_run(page):
    outcomes = run(
        page,
        f"""{TRY}
        const model = decoded(given[0]), outcomes = [];
        for (let i = 0; i < model.length; ++i)
            for (const bits of [0x01, 0x80, 0xff]) {{
                const bytes = Uint8Array.from(model);
                bytes[i] ^= bits;
                outcomes.push(await outcome(bytes));
            }}
        return outcomes;
        """,
        encoded(PRODUCT),
    )
    names = {name for name, _ in outcomes}
    # A TypeError is the run's, where another name, type or shape of the input does not take what is given.
    assert names == {None, "HeadraceError", "TypeError"}, names
    assert sum(name == "HeadraceError" for name, _ in outcomes) > len(outcomes) / 4
