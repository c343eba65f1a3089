import pytest
from check_includes import check_tree

CMAKE = """
headrace_folder(base fmt::fmt)
headrace_folder(ir base)
headrace_folder(kernels base ggml::ggml hwy::hwy)  # (a comment)
headrace_folder(ops base ir kernels)
headrace_folder(engine base ir
  ops)
headrace_folder(doors/webnn base engine)
headrace_folder_elsewhere(backends ggml::ggml)
headrace_folder_elsewhere(backends/mlx base backends ggml::ggml)
if(TARGET headrace_llama_cpp)
  headrace_folder(llm base headrace_llama_cpp nlohmann_json::nlohmann_json)
  headrace_folder_elsewhere(doors/wasi_nn base llm)
endif()
headrace_folder_elsewhere(cli base engine doors/webnn llm)
"""


@pytest.fixture
def check(tmp_path):
    """check(files, cmake): the violations in a tree of these files, whose texts are given by path."""

    def run(files, cmake=CMAKE):
        for path, text in {"src/CMakeLists.txt": cmake, **files}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return check_tree(tmp_path)

    return run


@pytest.mark.parametrize(
    "path, include, part_of_message",
    [
        ("src/base/a.h", '"ir/graph.h"', "src/base may include no other folder, not ir"),
        ("src/ir/a.cpp", '"ops/op.h"', "src/ir may include base, not ops"),
        ("src/doors/webnn/a.cpp", '"ops/op.h"', "src/doors/webnn may include base, engine, not ops"),
        ("src/doors/webnn/a.cpp", '"doors/wasi_nn/door.h"', "not doors/wasi_nn"),
        ("src/llm/a.cpp", '"engine/engine.h"', "not engine"),
        ("src/backends/mlx/a.cpp", '"kernels/gemm.h"', "not kernels"),
        ("src/backends/version.h", '"backends/mlx/device.h"', "not backends/mlx"),
        (
            "src/ops/a.cpp",
            '"ggml.h"',
            "ggml's ggml.h may be included in backends, backends/mlx",
        ),
        ("src/ops/a.cpp", "<ggml-backend.h>", "ggml's ggml-backend.h"),
        ("src/base/a.cpp", "<ggml/include/ggml.h>", "ggml's ggml/include/ggml.h"),
        ("src/ir/a.cpp", '"gguf.h"', "ggml's gguf.h"),
        ("src/kernels/a.cpp", '"llama.h"', "llama.cpp's llama.h may be included in llm only"),
        ("src/cli/a.cpp", "<common/chat.h>", "llama.cpp's common library's common/chat.h"),
        ("src/ops/a.cpp", '"hwy/highway.h"', "Highway's"),
        ("src/doors/wasi_nn/a.cpp", "<nlohmann/json.hpp>", "nlohmann's JSON's"),
        ("src/ops/a.cpp", '"ggml_ir_generated.h"', "belongs to src/ir"),
        ("src/ir/a.cpp", '"graph.h"', '"ir/graph.h"'),
        ("src/ir/a.cpp", '"../ops/op.h"', "without .."),
        ("src/ir/a.cpp", "<../src/ops/op.h>", "without .."),
        ("src/novelty/a.cpp", '"base/result.h"', "no line of src/CMakeLists.txt is for src/novelty"),
        ("include/headrace/a.h", '"ir/graph.h"', "no header of src"),
        ("include/headrace/a.h", "<ggml.h>", "ggml's ggml.h"),
        ("python/src/a.cpp", '"engine/engine.h"', "public headers"),
        ("python/src/a.cpp", '"ggml.h"', "ggml's ggml.h"),
    ],
)
def test_a_forbidden_include_is_reported_with_its_file_and_line(check, path, include, part_of_message):
    (line,) = check({path: f"#pragma once\n#include {include}\n"})
    assert line.startswith(f"{path}:2: ")
    assert part_of_message in line


@pytest.mark.parametrize(
    "path, include",
    [
        ("src/ir/graph.cpp", '"ir/graph.h"'),
        ("src/ir/serialise.cpp", '"ggml_ir_generated.h"'),
        ("src/ops/catalog.cpp", '"op_catalog_rows.inc"'),
        ("src/engine/a.cpp", '"ops/op.h"'),
        ("src/kernels/a.cpp", '"ggml.h"'),
        ("src/kernels/a.cpp", '"hwy/highway.h"'),
        ("src/backends/mlx/a.cpp", '"backends/version.h"'),
        ("src/backends/mlx/a.cpp", '"mlx/version.h"'),
        ("src/llm/a.cpp", "<common/chat.h>"),
        ("src/cli/main.cpp", '"doors/webnn/b.h"'),
        ("src/cli/main.cpp", "<CLI/CLI.hpp>"),
        ("src/engine/a.h", "<vector>"),
        ("src/engine/a.h", '"headrace/engine.h"'),
        ("include/headrace/a.h", '"headrace/b.h"'),
        ("include/headrace/ggml-mlx.h", '"ggml-backend.h"'),
        ("python/src/a.cpp", "<headrace/engine.h>"),
        ("python/src/a.cpp", "<nanobind/nanobind.h>"),
    ],
)
def test_a_permitted_include_is_not_reported(check, path, include):
    assert check({path: f"#include {include}\n"}) == []


def test_what_a_header_of_llm_brings_of_llama_cpp_is_reported_where_it_ends_up(check):
    (line,) = check(
        {
            "src/llm/settings.h": "#include <common/common.h>\n",
            "src/llm/service.h": '#include "llm/settings.h"\n',
            "src/llm/service.cpp": '#include "llm/service.h"\n',
            "src/doors/wasi_nn/door.cpp": '#include "base/a.h"\n#include "llm/service.h"\n',
        }
    )
    assert line.startswith("src/doors/wasi_nn/door.cpp:2: llama.cpp's common library's common/common.h may")
    assert line.endswith("and src/llm/settings.h brings it")


def test_headers_that_include_each_other_are_followed_once(check):
    files = {"src/llm/a.h": '#include "llm/b.h"\n', "src/llm/b.h": '#include "llm/a.h"\n'}
    assert check({**files, "src/cli/a.cpp": '#include "llm/a.h"\n'}) == []


def test_doors_never_include_each_other_though_cmake_lists_it(check):
    cmake = "headrace_folder(doors/webnn)\nheadrace_folder(doors/wasi_nn doors/webnn)\n"
    (line,) = check({"src/doors/wasi_nn/a.cpp": '#include "doors/webnn/b.h"\n'}, cmake)
    assert "doors never include each other" in line


def test_a_folder_that_lists_one_of_a_later_line_is_reported(check):
    (line,) = check({}, "headrace_folder(base ir)\nheadrace_folder(ir)\n")
    assert line == "src/CMakeLists.txt: the line of ir belongs before that of base, which lists it"


def test_a_line_of_cmake_cannot_open_llama_cpp_to_another_folder(check):
    cmake = CMAKE.replace("doors/webnn llm)", "doors/webnn llm headrace_llama_cpp)")
    (line,) = check({"src/cli/a.cpp": '#include "llama.h"\n'}, cmake)
    assert line == "src/CMakeLists.txt: headrace_llama_cpp is for llm alone, not cli"


ROOMS = CMAKE + "headrace_rooms(ir base shape .)\n"


@pytest.mark.parametrize(
    "files, message",
    [
        ({"src/ir/shape/a.cpp": '"ir/b.h"'}, "src/ir/shape/a.cpp:1: shape of src/ir may include base, not ."),
        (
            {"src/ir/base/deep/a.h": '"ir/shape/b.h"'},
            "src/ir/base/deep/a.h:1: base of src/ir may include no other room, not shape",
        ),
        ({"src/ir/shape/a.cpp": '"ops/op.h"'}, "src/ir/shape/a.cpp:1: src/ir may include base, not ops"),
        (
            {"src/ir/names/a.cpp": "<vector>"},
            "src/CMakeLists.txt: headrace_rooms(ir ...) has no names, and src/ir has",
        ),
    ],
)
def test_a_room_includes_only_those_that_stand_before_it(check, files, message):
    complete = {"src/ir/base/a.h": "", "src/ir/shape/b.h": '#include "ir/base/a.h"\n', "src/ir/b.h": ""}
    assert check(complete, ROOMS) == []
    assert check({path: f"#include {include}\n" for path, include in files.items()}, ROOMS) == [message]


def test_a_folder_with_rooms_states_their_order(check):
    (line,) = check({"src/ops/a.cpp": "", "src/ops/rows/b.cpp": ""})
    assert line == "src/CMakeLists.txt: headrace_rooms(ops ...) has no rows, and src/ops has"


def test_a_room_that_is_gone_leaves_the_order(check):
    (line,) = check({"src/ir/base/a.h": "", "src/ir/b.h": ""}, ROOMS)
    assert line == "src/CMakeLists.txt: headrace_rooms(ir ...) has shape, and src/ir has no source there"


def test_a_circle_of_subfolders_is_reported_once_with_the_includes_that_make_it(check):
    upward, line = check(
        {
            "src/ops/a.h": '#include "ops/rows/b.h"\n',
            "src/ops/rows/b.h": '#include "ops/shape/c.h"\n',
            "src/ops/shape/c.h": '#include <vector>\n#include "ops/a.h"\n',
        },
        CMAKE + "headrace_rooms(ops shape rows .)\n",
    )
    assert upward == "src/ops/shape/c.h:2: shape of src/ops may include no other room, not ."
    assert line.startswith("a circle of folders, src/ops → src/ops/rows → src/ops/shape → src/ops: ")
    assert line.endswith("src/ops/a.h:1, src/ops/rows/b.h:1, src/ops/shape/c.h:2")


def test_folders_that_meet_lower_down_are_no_circle(check):
    files = {
        "src/ops/a.h": '#include "ops/rows/b.h"\n#include "ops/shape/c.h"\n',
        "src/ops/rows/b.h": '#include "ops/shape/c.h"\n',
        "src/ops/shape/c.h": "",
    }
    assert check(files, CMAKE + "headrace_rooms(ops shape rows .)\n") == []
