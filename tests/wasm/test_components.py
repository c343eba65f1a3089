"""Components by wasi:nn 0.2 under `headrace wasm` and in Node. component_run.wasm is in the repository; what
needs other toolchains is skipped where they are not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import wasm_chat

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
pytest.importorskip("onnx", reason="onnx is not installed: make setup installs it")
headrace = pytest.importorskip("headrace", reason="the Python extension is not built: make build")
import component_fuzz  # noqa: E402
from guest_toolchains import component_of, in_javascript, in_python, in_rust, node_host, run  # noqa: E402

RUN = wasm_chat.SOURCES / "component_run.wasm"
#: Says how many variables it has, and what is in the file that its argument names.
LOOKS_AROUND = """
#include <stdio.h>
extern char **environ;
int main(int count, char **arguments) {
    int variables = 0;
    while (environ[variables]) ++variables;
    printf("%d variables\\n", variables);
    char text[64] = "";
    FILE *file = count > 1 ? fopen(arguments[1], "r") : NULL;
    if (file) fgets(text, sizeof text, file);
    puts(file ? text : "no file");
}
"""
GREEDY = 'parameters:text:{"temperature": 0}'


@pytest.fixture(scope="module")
def sums(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "sums.onnx"
    path.write_bytes(component_fuzz.sums())
    return path


def test_a_graph_gives_all_its_outputs_by_name(library, sums):
    printed = run(RUN, "sums", "w:f32:2:10,100", "x:f32:2x2:1,2,3,4", models={"sums": sums})
    assert printed.splitlines() == ["sum [2, 2]: 11 102 13 104", "product [2, 2]: 10 200 30 400"]


def test_a_component_computes_what_headrace_load_computes(library, sums):
    x = np.random.default_rng(2).standard_normal((3, 2), np.float32)
    w = np.float32([0.1, -3])
    native = headrace.load(sums)(x=x, w=w)
    values = ",".join(repr(float(v)) for v in x.ravel())
    printed = run(RUN, "sums", f"x:f32:3x2:{values}", "w:f32:2:0.1,-3", models={"sums": sums})
    for line, expected in zip(printed.splitlines(), native.values(), strict=True):
        given = np.float32(line.split(": ")[1].split())
        np.testing.assert_array_equal(given, expected.ravel())


def test_a_language_model_takes_and_gives_texts(library, model):
    lines = run(RUN, "chat", "prompt:text:What is 2+3?", GREEDY, models={"chat": model}).splitlines()
    assert lines[0] == "text [5]: 2+3=5"
    assert json.loads(lines[1].partition("]: ")[2])["output_tokens"] == 6


def test_a_model_of_embeddings_gives_a_vector(library, model):
    config = {"embeddings": True, "pooling": "mean"}
    lines = run(RUN, "m", "prompt:text:Hello", models={"m": model}, config=config).splitlines()
    assert lines[0].startswith("embedding [")
    assert int(lines[0].split("[")[1].split("]")[0]) == len(lines[0].split("]: ")[1].split())


@pytest.mark.parametrize(
    ("arguments", "config", "told"),
    [
        (["sums", "x:f32:2x2:1,2,3,4"], {}, "invalid-argument: the graph's inputs are x, w; given are x"),
        (["sums", "x:f32:1x2:1,2", "w:f32:3:1,2,3"], {}, "invalid-argument: input 1, 'w' is f32 [2]"),
        (["sums", "x:i32:1x2:1,2", "w:f32:2:1,2"], {}, "'x' is f32 [?, 2]: the tensor is i32"),
        (["sums", "x:f32:1x2:1", "w:f32:2:1,2"], {}, "and it has 4 bytes"),
        (["sums", "x:f32:1x2:1,2", "y:f32:2:1,2"], {}, "invalid-argument: the graph's inputs are x, w"),
        (["sums"], {}, "given are none"),
        (["/etc/passwd"], {}, "security: '/etc/passwd' is outside the model root"),
        (["missing.onnx"], {}, "not-found: 'missing.onnx' is no file"),
        (["sums"], {"max_model_bytes": 10}, "too-large: the model has"),
        (["sums", "x:f32:1x2:1,2", "w:f32:2:1,2"], {"max_graph_bytes": 70}, "runtime-error: "),
        (["chat"], {}, "invalid-argument: a language model's inputs are prompt"),
        (["chat", "prompt:text:Hi", 'parameters:text:{"n_predict": "x"}'], {}, "invalid-argument: "),
        (["chat", "prompt:text:Hi" + " word" * 2000], {}, "too-large: "),
    ],
)  # fmt: skip
def test_an_error_has_its_code_and_says_what_is_wrong(library, sums, model, arguments, config, told):
    assert told in run(RUN, *arguments, models={"sums": sums, "chat": model}, config=config, code=1)


def test_a_guest_that_loops_is_ended_and_one_that_grows_gets_no_memory(library, tmp_path):
    loop = tmp_path / "loop.wasm"
    loop.write_bytes(wasmtime.wat2wasm('(module (func (export "_start") (loop br 0)))'))
    command = [sys.executable, "-m", "headrace", "wasm", loop, "--max-time", "0.3"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "its --max-time, and was ended" in done.stderr
    grow = tmp_path / "grow.wasm"  # exits with 7 where it gets no page
    grow.write_bytes(
        wasmtime.wat2wasm("""(module
          (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
          (memory (export "memory") 1)
          (func (export "_start")
            (call $exit
              (select (i32.const 7) (i32.const 0) (i32.lt_s (memory.grow (i32.const 1)) (i32.const 0))))))""")
    )
    for size, code in ((65536, 7), (2 * 65536, 0)):
        command = [sys.executable, "-m", "headrace", "wasm", grow, "--max-memory", size]
        assert subprocess.run(list(map(str, command)), timeout=60).returncode == code


@pytest.mark.parametrize(
    ("option", "given", "told"),
    [
        ("--max-memory", "two", "takes a number of bytes, at least 1, not 'two'"),
        ("--max-memory", "0", "takes a number of bytes, at least 1, not '0'"),
        ("--max-time", "soon", "takes a number of seconds above 0, not 'soon'"),
        ("--max-time", "-1", "takes a number of seconds above 0, not '-1'"),
        ("--max-time", "inf", "takes a number of seconds above 0, not 'inf'"),
    ],
)
def test_limits_that_are_no_numbers_are_refused_with_what_is_wanted(option, given, told):
    command = [sys.executable, "-m", "headrace", "wasm", RUN, f"{option}={given}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and told in done.stderr


def test_a_component_that_is_no_command_is_refused_with_a_reason(library, tmp_path):
    empty = tmp_path / "empty.wasm"
    empty.write_bytes(wasmtime.wat2wasm("(component)"))
    assert "exports no wasi:cli/run" in run(empty, models={}, code=1)


def test_the_component_in_the_repository_is_what_its_source_compiles_to(tmp_path):
    module = tmp_path / "module.wasm"
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-Os", "-s"]
    subprocess.run([*zig, "-o", module, wasm_chat.SOURCES / "component_run.c"], check=True)
    assert component_of(module, tmp_path / "component.wasm").read_bytes() == RUN.read_bytes()


def test_a_component_in_python_chats_by_pieces(library, model, tmp_path):
    made = in_python("chat", tmp_path)
    printed = run(made, "What is 2+3?", "What is the capital of France?", models={"default": model})
    assert printed.startswith("> What is 2+3?\n2+3=5\n> What is the capital of France?\n")
    assert "Paris" in printed
    assert "NOT_FOUND" in run(made, "Hello", models={}, code=1)


def test_a_component_in_javascript_chats_by_pieces(library, model, tmp_path):
    # With probabilities each token is a piece by itself; else what comes before the next call is one piece.
    lines = run(
        in_javascript("chat", tmp_path), "What is 2+3?", models={"default": model}, config={"n_probs": 1}
    ).splitlines()
    assert lines[0] == "> What is 2+3?" and lines[-1] == "tokens: 6"
    assert "".join(lines[1:-1]) == "2+3=5" and len(lines) == 7, "by pieces"


# The same components in Node, by jco.


@pytest.fixture(scope="module")
def node(library, tmp_path_factory):
    return node_host(tmp_path_factory.mktemp("node"), library)


def test_a_graph_runs_in_node_and_errors_have_their_codes(node, sums):
    code, printed = node(RUN, f"sums={sums}", "sums", "w:f32:2:10,100", "x:f32:2x2:1,2,3,4")
    assert (code, printed.splitlines()) == (0, ["sum [2, 2]: 11 102 13 104", "product [2, 2]: 10 200 30 400"])
    for arguments, told in (
        (["sums", "x:f32:2x2:1,2,3,4"], "invalid-argument: the graph's inputs are x, w; given are x"),
        (["/etc/passwd"], "security: '/etc/passwd' is outside the model root"),
        (["missing.onnx"], "not-found: 'missing.onnx' is no file"),
    ):
        code, printed = node(RUN, f"sums={sums}", *arguments)
        assert code == 1 and told in printed


def test_several_models_are_given_in_node_beside_those_that_are_configured(node, sums, model, monkeypatch):
    for name in ("sums", "other"):
        code, printed = node(
            RUN, f"sums={sums}", name, "w:f32:2:10,100", "x:f32:1x2:1,2", options=["--alias", f"other={sums}"]
        )
        assert (code, printed.splitlines()[0]) == (0, "sum [1, 2]: 11 102")
    configured = {"model_aliases": {"configured": str(model)}}
    code, printed = node(
        RUN, f"sums={sums}", "configured", "prompt:text:What is 2+3?", GREEDY, config=configured
    )
    assert code == 0 and printed.startswith("text [5]: 2+3=5")


def test_a_language_model_answers_in_node(node, model):
    code, printed = node(RUN, f"chat={model}", "chat", "prompt:text:What is 2+3?", GREEDY)
    assert code == 0 and printed.startswith("text [5]: 2+3=5")


def test_node_keeps_no_files_of_a_guest_that_ends_itself(library, sums, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    code, _ = node_host(tmp_path, library)(RUN, f"sums={sums}", "missing.onnx")
    assert code == 1
    assert list(folder.iterdir()) == []


def test_a_guest_in_node_sees_no_variables_and_the_folders_that_it_is_given(node, sums, tmp_path):
    source = tmp_path / "looks_around.c"
    source.write_text(LOOKS_AROUND)
    module = wasm_chat.compile_guest(tmp_path / "module.wasm", source=source)
    guest = component_of(module, tmp_path / "guest.wasm")
    (tmp_path / "note.txt").write_text("written by the host")
    assert node(guest, f"sums={sums}", str(source)) == (0, "0 variables\nno file\n")
    folders = {"/data": tmp_path}
    assert node(guest, f"sums={sums}", "/data/note.txt", folders=folders) == (
        0,
        "0 variables\nwritten by the host\n",
    )
    other = tmp_path / "other"
    other.mkdir()
    assert node(guest, f"sums={sums}", "/data/../note.txt", folders={"/data": other}) == (
        0,
        "0 variables\nno file\n",
    )


def test_a_component_in_rust_chats_by_pieces_under_both_hosts(library, node, model, tmp_path):
    made = component_of(in_rust("component_chat", tmp_path), tmp_path / "chat.wasm")
    expected = "> What is 2+3?\n2+3=5\n"
    assert run(made, "What is 2+3?", models={"default": model}) == expected
    assert node(made, f"default={model}", "What is 2+3?") == (0, expected)
    assert "not-found: default: there is no such file" in run(made, "Hello", models={}, code=1)


def test_components_in_python_and_javascript_run_in_node_unmodified(node, model, tmp_path):
    code, printed = node(in_javascript("chat", tmp_path), f"default={model}", "What is 2+3?")
    assert code == 0 and printed.endswith("tokens: 6\n")
    code, printed = node(in_python("chat", tmp_path), f"default={model}", "What is 2+3?")
    assert code == 0 and "2+3=5" in printed
