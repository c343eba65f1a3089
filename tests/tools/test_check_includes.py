import pytest
from check_includes import check_text, check_tree


@pytest.mark.parametrize(
    "path, include, part_of_message",
    [
        ("src/base/a.h", '"ir/graph.h"', "no other folder, not ir"),
        ("src/ir/a.cpp", '"ops/op.h"', "not ops"),
        ("src/emit/a.h", '"kernels/gemm.h"', "not kernels"),
        ("src/ops/a.h", '"passes/fold.h"', "not passes"),
        ("src/passes/a.cpp", '"emit/emit.h"', "not emit"),
        ("src/plan/a.cpp", '"lower/lower.h"', "not lower"),
        ("src/run/a.cpp", '"emit/emit.h"', "not emit"),
        ("src/doors/webnn/a.cpp", '"run/session.h"', "not run"),
        ("src/doors/webnn/a.cpp", '"doors/onnx/import.h"', "not doors/onnx"),
        ("src/doors/wasi_nn/a.cpp", '"engine/engine.h"', "not engine"),
        ("src/llm/a.cpp", '"engine/engine.h"', "not engine"),
        ("src/cli/a.cpp", '"plan/plan.h"', "not plan"),
        ("src/ir/deep/a.cpp", '"emit/emit.h"', "not emit"),
        ("src/ops/a.cpp", '"ggml.h"', "ggml's ggml.h"),
        ("src/ops/a.cpp", "<ggml-backend.h>", "ggml's ggml-backend.h"),
        ("src/ir/a.cpp", '"gguf.h"', "ggml's gguf.h"),
        ("src/run/a.cpp", '"llama.h"', "llama.cpp's llama.h"),
        ("src/ops/a.cpp", '"hwy/highway.h"', "Highway's"),
        ("src/ops/a.cpp", '"ggml_ir_generated.h"', "belongs to src/ir"),
        ("src/ir/a.cpp", '"graph.h"', '"ir/graph.h"'),
        ("src/novelty/a.cpp", '"base/result.h"', "not in the table"),
        ("include/headrace/a.h", '"ir/graph.h"', "no header of src"),
        ("include/headrace/a.h", "<ggml.h>", "ggml's ggml.h"),
        ("python/src/a.cpp", '"engine/engine.h"', "public headers"),
        ("python/src/a.cpp", '"ggml.h"', "ggml's ggml.h"),
    ],
)
def test_a_forbidden_include_is_reported_with_its_line(path, include, part_of_message):
    ((number, message),) = check_text(path, f"#pragma once\n#include {include}\n")
    assert number == 2
    assert part_of_message in message


@pytest.mark.parametrize(
    "path, include",
    [
        ("src/ir/graph.cpp", '"ir/graph.h"'),
        ("src/ir/serialise.cpp", '"ggml_ir_generated.h"'),
        ("src/ops/catalog.cpp", '"op_catalog_rows.inc"'),
        ("src/lower/a.cpp", '"plan/plan.h"'),
        ("src/emit/a.cpp", '"ggml.h"'),
        ("src/kernels/a.cpp", '"hwy/highway.h"'),
        ("src/doors/webnn/a.cpp", '"doors/webnn/b.h"'),
        ("src/cli/main.cpp", '"doors/webnn/b.h"'),
        ("src/engine/a.h", "<vector>"),
        ("src/engine/a.h", '"headrace/engine.h"'),
        ("src/cli/main.cpp", "<CLI/CLI.hpp>"),
        ("include/headrace/a.h", '"headrace/b.h"'),
        ("include/headrace/ggml-mlx.h", '"ggml-backend.h"'),
        ("python/src/a.cpp", "<headrace/engine.h>"),
        ("python/src/a.cpp", "<nanobind/nanobind.h>"),
    ],
)
def test_a_permitted_include_is_not_reported(path, include):
    assert check_text(path, f"#include {include}\n") == []


def test_the_tree_check_names_file_and_line(tmp_path):
    (tmp_path / "src/base").mkdir(parents=True)
    (tmp_path / "src/base/bad.cpp").write_text('#include <vector>\n#include "ir/graph.h"\n')
    (tmp_path / "src/base/good.cpp").write_text('#include "base/result.h"\n')
    (line,) = check_tree(tmp_path)
    assert line.startswith("src/base/bad.cpp:2: ")


@pytest.mark.parametrize("line", ['#include "../ops/op.h"', "#include <../src/ops/op.h>"])
def test_paths_that_climb_are_violations(line):
    assert check_text("src/base/x.h", line) == [(1, "write the path from src/, without ..")]


def test_ggml_is_recognised_by_any_path():
    ((_, message),) = check_text("src/base/x.h", "#include <ggml/include/ggml.h>")
    assert "ggml" in message


def test_no_header_brings_llama_cpp_s_common_library_along():
    include = "#include <common/common.h>\n"
    assert check_text("src/llm/engine/sampler.cpp", include) == []
    assert check_text("src/llm/settings.h", include) == [
        (1, "common/common.h may be included in sources only")
    ]
