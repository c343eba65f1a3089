"""What the partitioner takes of a graph, what it leaves, and what it says about that."""

from __future__ import annotations

import re
from collections import Counter

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
from executorch_ggml import GgmlBackend, GgmlPartitioner, _runtime
from executorch_ggml.translate import LOWERINGS, Unsupported
from program_cases import Call
from torch import nn
from torch.export.graph_signature import ExportGraphSignature

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


@pytest.fixture(autouse=True)
def two_unknown_ops(monkeypatch) -> None:
    """Takes two lowerings away, so that the tests do not depend on what has none yet."""
    for name in ("aten.atanh.default", "aten.asin.default"):
        monkeypatch.delitem(LOWERINGS, name)


def unknown(x: torch.Tensor) -> torch.Tensor:
    return torch.atanh(torch.clamp(x, -0.5, 0.5))


# --- how it is found ------------------------------------------------------------------------------------


def test_the_signatures_tables_are_made_as_often_for_many_weights_as_for_few(lower, monkeypatch):
    """Each of them lists all weights: one for each weight would take the square of their number."""
    made, inside = [], []
    table = ExportGraphSignature.inputs_to_parameters

    def counted(signature: ExportGraphSignature) -> object:
        made.extend(inside[:1])
        return table.__get__(signature)

    def watched(function):
        def call(*arguments):
            inside.append(function.__name__)
            try:
                return function(*arguments)
            finally:
                inside.clear()

        return call

    monkeypatch.setattr(ExportGraphSignature, "inputs_to_parameters", property(counted))
    monkeypatch.setattr(GgmlPartitioner, "partition", watched(GgmlPartitioner.partition))
    monkeypatch.setattr(GgmlBackend, "preprocess", staticmethod(watched(GgmlBackend.preprocess)))
    counts = []
    for layers in (2, 20):
        made.clear()
        program = lower(nn.Sequential(*[nn.Linear(8, 8) for _ in range(layers)]), (torch.rand(3, 8),))
        assert (program.delegates, program.left) == (1, [])
        counts.append(Counter(made))
    assert counts[0] == counts[1]
    assert set(counts[0]) == {"partition", "preprocess"}


# --- what is taken ------------------------------------------------------------------------------------


def test_reshaping_between_nodes_that_are_left_is_no_delegate(lower):
    program = lower(Call(lambda m, x: torch.atanh(torch.atanh(x).reshape(2, 6))), (torch.rand(3, 4) / 3,))
    assert program.delegates == 0 and any("view_copy" in name for name in program.left)
    program.check()


def test_a_graph_that_only_reshapes_is_taken_whole(lower):
    program = lower(Call(lambda m, x: x.reshape(2, 6)), (torch.rand(3, 4),))
    assert (program.delegates, program.left) == (1, [])
    program.check()


@pytest.fixture
def refuse(monkeypatch):
    """Makes lowerings refuse where a condition on the node holds."""

    def make(condition, *names: str) -> None:
        for name in names:
            lowering = LOWERINGS[name]

            def guarded(t, node, lowering=lowering):
                if condition(node):
                    raise Unsupported("refused by the test")
                return lowering(t, node)

            monkeypatch.setitem(LOWERINGS, name, guarded)

    return make


PRODUCT = ("aten.linear.default", "aten.addmm.default", "aten.mm.default")


def test_a_graph_whose_products_are_all_left_is_left_whole(lower, refuse, capsys):
    refuse(lambda node: True, *PRODUCT)
    module = Call(lambda m, x: torch.relu(m.linear(x * 2)) + 1, linear=nn.Linear(4, 3))
    program = lower(module, (torch.randn(2, 4),), partitioner=GgmlPartitioner(report=True))
    assert program.delegates == 0
    printed = capsys.readouterr().out
    assert "1 x aten.addmm.default: refused by the test" in printed
    assert "1 x aten.relu.default: alone not worth a delegate, or in a graph whose matrix products" in printed
    program.check()


def test_one_product_that_is_left_does_not_keep_the_others_from_being_taken(lower, refuse):
    """Nor does it stop the export, although export would have kept both whole."""
    refuse(lambda node: node.meta["val"].shape[-1] == 3, *PRODUCT)
    module = Call(
        lambda m, x: m.first(torch.relu(m.second(x))), first=nn.Linear(5, 3), second=nn.Linear(4, 5)
    )
    program = lower(module, (torch.randn(2, 4),))
    assert program.delegates == 1
    assert [name for name in program.left if "addmm" in name] and not any("linear" in n for n in program.left)
    program.check()


def test_ops_kept_whole_in_a_branch_do_not_stop_the_export(lower):
    def forward(m, x):
        return torch.cond(x.sum() > 0, lambda y: m.linear(y), lambda y: nn.functional.silu(y), (x,))

    program = lower(Call(forward, linear=nn.Linear(4, 4)), (torch.randn(2, 4),))
    assert any("cond" in name for name in program.left)
    program.check()
    program.check(-torch.ones(2, 4))


# --- what it says ---------------------------------------------------------------------------------------


def test_strict_lists_every_node_that_is_left(lower):
    module = Call(lambda m, x: (unknown(x), torch.asin(x * 0.1), m.linear(x)), linear=nn.Linear(4, 4))
    with pytest.raises(ValueError, match="not delegated") as error:
        lower(module, (torch.randn(2, 4),), partitioner=GgmlPartitioner(strict=True))
    assert "1 x aten.atanh.default: no lowering" in str(error.value)
    assert "1 x aten.asin.default: no lowering" in str(error.value)


def test_strict_is_content_with_a_graph_that_is_taken_whole(lower):
    lower(nn.Linear(4, 4), (torch.randn(2, 4),), partitioner=GgmlPartitioner(strict=True)).check()


def test_what_executorch_has_no_kernel_for_either_is_said(lower, monkeypatch, capsys):
    monkeypatch.delitem(LOWERINGS, "aten.median.default")
    module = Call(lambda m, x: unknown(x).median() * 2)
    partitioner = GgmlPartitioner(report=True)
    program = lower(module, (torch.randn(9),), partitioner=partitioner, core_only=False)
    lines = {line.split(":")[0].split()[-1]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["aten.median.default"].endswith("so the program will not load there")
    assert lines["aten.atanh.default"].endswith("no lowering")
    with pytest.raises(RuntimeError):
        program.load()


# --- constants and buffers --------------------------------------------------------------------------------


def test_a_constant_of_several_parts_and_of_a_node_that_is_left(lower):
    table = torch.randn(64, 64)
    module = Call(
        lambda m, x: torch.atanh((x @ m.table).tanh() * 0.9) @ m.table + torch.atanh(m.table * 0.1),
        table=table,
    )
    program = lower(module, (torch.randn(64, 64),))
    assert program.delegates >= 2
    program.check()


def as_tuple(results) -> tuple:
    return results if isinstance(results, tuple) else (results,)


def follow(program, before: torch.Tensor) -> None:
    """Three runs of a load, and one of another load, change the buffer as eager does from its first value."""
    step = torch.full((3,), 0.25)
    for runs in (3, 1):
        program.module.total.copy_(before)
        run = program.load()
        for _ in range(runs):
            torch.testing.assert_close(tuple(run(step)), as_tuple(program.module(step)))


def test_a_buffer_that_parts_share_and_nodes_between_them_change(lower, capsys):
    def forward(m, x):
        m.total.add_(unknown(m.total * 0.1 + x))
        return m.total * 2

    before = torch.tensor([1.0, 2.0, 3.0])
    module = Call(forward, total=before.clone())
    follow(lower(module, (torch.ones(3),), partitioner=GgmlPartitioner(report=True)), before)
    message = "ExecuTorch keeps buffer total: not one delegate alone reads and writes it"
    assert message in capsys.readouterr().out


OLD = {
    "itself": lambda old: old,
    "reshaped": lambda old: old.view(3, 1),
    "beside another copy": lambda old: (old, old.flip(0), old.unsqueeze(0)),
}


@pytest.mark.parametrize("name", OLD)
def test_the_old_value_of_a_changed_buffer_is_a_result(name, lower):
    def forward(m, x):
        old = m.total.clone()
        m.total.mul_(2).add_(x)
        return OLD[name](old)

    before = torch.tensor([1.0, 2.0, 3.0])
    program = lower(Call(forward, total=before.clone()), (torch.ones(3),))
    assert (program.delegates, program.left) == (1, [])
    follow(program, before)


def test_two_buffers_change_places(lower):
    def forward(m, x):
        first = m.first.clone()
        m.first.copy_(m.second.clone())
        m.second.copy_(first)
        return m.first * 10 + m.second + x

    module = Call(forward, first=torch.tensor([1.0, 2.0]), second=torch.tensor([3.0, 4.0]))
    program = lower(module, (torch.zeros(2),))
    assert (program.delegates, program.left) == (1, [])
    run = program.load()
    for expected in ([31.0, 42.0], [13.0, 24.0], [31.0, 42.0]):
        torch.testing.assert_close(run(torch.zeros(2))[0], torch.tensor(expected))


@pytest.mark.parametrize("start", [0.0, 5.0])
def test_a_buffer_whose_new_value_is_a_result(lower, start, capsys):
    def forward(m, x):
        m.total.add_(x)
        return m.total

    before = torch.full((3,), start)
    module = Call(forward, total=before.clone())
    program = lower(module, (torch.ones(3),), partitioner=GgmlPartitioner(report=True))
    assert (program.delegates, program.left) == (1, [])
    assert "ExecuTorch keeps buffer total: its new value is a result, too" in capsys.readouterr().out
    follow(program, before)


def test_methods_store_the_weights_they_have_in_common_once(lower):
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    one = lower(model, (torch.randn(4, 256),))
    export = lambda rows: torch.export.export(model, (torch.randn(rows, 256),))  # noqa: E731
    two = lower(exported={"few": export(2), "many": export(64)})
    assert len(two.buffer) < len(one.buffer) + 8000 < 2 * len(one.buffer)
    for name, rows in (("few", 2), ("many", 64)):
        x = torch.randn(rows, 256)
        torch.testing.assert_close(two.load(name)(x)[0], model(x), rtol=1e-4, atol=1e-5)


# --- extents ------------------------------------------------------------------------------------------------


LENGTHS = (1, 2, 5, 8)
SYMBOLIC = {
    "arange": lambda m, x: x + torch.arange(x.shape[0])[:, None] * 2 + 1,
    "full": lambda m, x: torch.cat([x, torch.full((x.shape[0], 2), 0.5)], 1),
    "one more row": lambda m, x: torch.cat([x, torch.ones(1, 3)])[1:] * 2,
    "an expression of an expression": lambda m, x: torch.cat([torch.cat([x, x]), torch.ones(1, 3)]).exp(),
    "first and last row": lambda m, x: x[0] + x[-1] + x[-1:],
    "differences": lambda m, x: torch.diff(x, dim=0, prepend=torch.zeros(1, 3)),
    "part of a table": lambda m, x: x + m.table[: x.shape[0]],
    "causal attention": lambda m, x: nn.functional.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None], is_causal=True
    ),
    "rows by index": lambda m, x: (
        m.table[torch.arange(x.shape[0]), torch.arange(x.shape[0]) * 0 + 1] + x[:, 0]
    ),
    "rows put by index": lambda m, x: m.table.index_put((torch.arange(x.shape[0]) + 2,), x),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_extents_that_are_known_at_run_time_only(name, lower):
    module = Call(SYMBOLIC[name], table=torch.randn(10, 3))
    rows = torch.export.Dim("rows", min=1, max=8)
    program = lower(module, (torch.randn(5, 3),), dynamic_shapes=(({0: rows},),))
    assert (program.delegates, program.left) == (1, [])
    for length in LENGTHS:
        program.check(torch.randn(length, 3))


@pytest.mark.parametrize("batch_first", [True, False])
def test_an_encoder_with_any_batch_and_length_is_one_delegate(batch_first, lower):
    """Its attention makes [length, batch * heads, width] of [length, batch, heads * width], and back."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=batch_first)
    batch, length = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("length", min=1, max=64)

    def example(batch: int, length: int) -> torch.Tensor:
        return torch.randn(batch, length, 32) if batch_first else torch.randn(length, batch, 32)

    dims = (batch, length) if batch_first else (length, batch)
    program = lower(
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
        (example(3, 10),),
        dynamic_shapes=(dict(enumerate(dims)),),
        partitioner=GgmlPartitioner(strict=True),
    )
    assert (program.delegates, program.left) == (1, [])
    for sizes in ((1, 1), (1, 7), (3, 1), (2, 5), (8, 64)):
        program.check(example(*sizes))


MERGED = {
    "rows of pairs": lambda m, x: x.reshape(-1) * 2,
    "split": lambda m, x: torch.cat([x, x]).reshape(2, -1, 3) + 1,
    "split by the rows": lambda m, x: torch.cat([x, x, x]).reshape(3, x.shape[0], 3).sum(0),
    "one more row": lambda m, x: torch.cat([x, torch.ones(1, 3)]).reshape(-1).exp(),
    "repeated": lambda m, x: x.repeat(2, 1).reshape(-1, 6) * 2,
    "squared": lambda m, x: (x @ x.T).reshape(-1).reshape(x.shape[0], x.shape[0]) + 1,
    "largest": lambda m, x: x.argmax() + 1,
}


@pytest.mark.parametrize("name", MERGED)
def test_extents_that_a_reshape_merges_or_splits(name, lower):
    rows = torch.export.Dim("rows", min=1, max=8)
    program = lower(Call(MERGED[name]), (torch.randn(5, 3),), dynamic_shapes=(({0: rows},),))
    assert (program.delegates, program.left) == (1, [])
    for length in LENGTHS:
        program.check(torch.randn(length, 3))


@pytest.mark.parametrize("layer", [nn.GroupNorm(2, 4), nn.PixelShuffle(2)])
def test_layers_of_images_of_any_size(layer, lower):
    batch, height = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("height", min=1, max=32)
    shapes = ({0: batch, 2: height},)
    program = lower(layer, (torch.randn(3, 4, 5, 6),), dynamic_shapes=shapes)
    assert (program.delegates, program.left) == (1, [])
    for size in ((1, 1), (2, 9), (8, 32)):
        program.check(torch.randn(size[0], 4, size[1], 6))


def made_from_a_number(m, x, count):
    length = count.item()
    torch._check(length >= 2)
    torch._check(length <= 8)
    return x * 2, torch.ones(length).exp()


def test_an_extent_that_no_tensor_brings_keeps_its_node_out_of_the_delegate(lower, capsys):
    partitioner = GgmlPartitioner(report=True)
    program = lower(
        Call(made_from_a_number), (torch.randn(3), torch.tensor(4)), partitioner=partitioner, core_only=False
    )
    message = r"1 x aten\.full\.default: extent u\d+ is not one of its operands' or of an input's"
    assert re.search(message, capsys.readouterr().out)
    assert program.delegates == 1 and any("full" in name for name in program.left)
    for length in (4, 2, 8):
        program.check(torch.randn(3), torch.tensor(length))


def test_the_extent_of_a_tensor_that_is_left_comes_with_that_tensor(lower):
    program = lower(Call(lambda m, x: torch.nonzero(x > 0) * 2 + 1), (torch.randn(9),), core_only=False)
    assert program.delegates == 2 and any("nonzero" in name for name in program.left)
    for x in (torch.ones(9), torch.eye(9)[3], torch.randn(9)):
        program.check(x)


def test_results_of_which_executorch_confuses_rows_and_columns_are_left_to_it(lower, capsys):
    """Its own nonzero of a matrix is wrong; a delegate would spread the error without a word."""
    partitioner = GgmlPartitioner(report=True)
    lower(
        Call(lambda m, x: torch.nonzero(x > 0) * 2), (torch.eye(4),), partitioner=partitioner, core_only=False
    )
    assert "ExecuTorch is not clear about the order of aten_nonzero_default" in capsys.readouterr().out


def test_an_extent_as_a_number_and_as_a_result_is_left_to_executorch(lower):
    module = Call(lambda m, x: (x * 2, x * x.shape[0], x.shape[0] + 1))
    rows = torch.export.Dim("rows", min=1, max=8)
    program = lower(module, (torch.randn(5, 3),), dynamic_shapes=(({0: rows},),))
    assert program.delegates == 1
    x = torch.randn(3, 3)
    twice, scaled, count = program.load()(x)
    torch.testing.assert_close((twice, scaled), (x * 2, x * 3))
    assert count == 4


# --- arguments and results ------------------------------------------------------------------------------


def test_a_module_without_arguments(lower):
    program = lower(Call(lambda m: m.table.exp().sum(0), table=torch.randn(2, 3)), ())
    program.check()


def test_several_results_one_of_them_twice(lower):
    def forward(m, x):
        y = x.exp()
        return y, x.sin(), y, (x > 0).any(0)

    program = lower(Call(forward), (torch.randn(2, 3),))
    assert program.delegates == 1
    program.check()


def test_an_argument_and_a_constant_as_results(lower):
    program = lower(
        Call(lambda m, x: (x, x.exp(), m.table, m.table + 1), table=torch.ones(2)), (torch.randn(2, 3),)
    )
    program.check()


def test_arguments_that_are_no_tensors(lower):
    def forward(m, x, count, flag, nothing):
        return x * count if flag and nothing is None else x

    program = lower(Call(forward), (torch.randn(2, 3), 3, True, None))
    assert program.delegates == 1
    x = torch.randn(2, 3)
    torch.testing.assert_close(program.load()(x, 3, True, None)[0], x * 3)


def test_a_tensor_of_more_dimensions_than_a_graph_may_have_is_left_to_executorch(lower):
    x = torch.randn(2, 1, 2, 3, 2, 1, 2, 2, 2)
    lower(Call(lambda m, x: x.transpose(0, 8) * 2), (x,)).check()


def test_a_number_that_a_tensor_holds_is_left_to_executorch(lower):
    program = lower(Call(lambda m, x, i: x * i.item()), (torch.randn(3), torch.tensor(3)))
    assert any("scalar_tensor" in name for name in program.left)
    program.check()


SMALL = [-1.0, -1.5, -128, -129, -255, -256, -257, 127.9, 128, 255, 256, 300, 1000.7, -40000, 1e5, -2e9, 2e9]
LARGE = [3e9, -5e9, 1e12, 1e20, -1e20, float("inf"), -float("inf"), float("nan")]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("source", [torch.float32, torch.bfloat16, torch.float64])
def test_numbers_that_an_integer_cannot_hold_become_what_pytorch_makes_of_them(dtype, source, lower):
    x = torch.tensor([*SMALL, *LARGE], dtype=source)
    program = lower(Call(lambda m, x: x.to(dtype)), (x,))
    assert (program.delegates, program.left) == (1, [])
    program.check()
