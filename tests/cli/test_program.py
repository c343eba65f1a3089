"""What all commands of the program share: help, results as JSON, progress, exit statuses."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import headrace
import numpy as np
import onnx
import pytest
from onnx import parser

ROOT = Path(__file__).parents[2]
HEADRACE = ROOT / "build/bin/headrace"
CHAT_MODEL = ROOT / "models/tiny-chat-q8_0.gguf"


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([HEADRACE, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def as_json(*arguments: object) -> object:
    done = run(*arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def model(tmp_path) -> Path:
    """y = relu(x · w), x [batch, words, 3], and a mask of one more word that decides nothing."""
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[batch, words, 3] x, float[batch, words] mask) => (float[batch, words, 4] y) {
            w = Constant<value = float[3, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>()
            axes = Constant<value = int64[1] {2}>()
            wide = Unsqueeze(mask, axes)
            p = MatMul(x, w)
            q = Mul(p, wide)
            y = Relu(q)
        }""")
    onnx.save(made, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def commands() -> list[str]:
    return re.findall(r"^  ([a-z][a-z-]*)", run("--help").stdout, flags=re.MULTILINE)


def test_help_groups_commands_and_shows_examples():
    page = run("--help").stdout
    headings = re.findall(r"^([A-Z].*):$", page, flags=re.MULTILINE)
    assert [h for h in headings if h not in ("Options", "Examples")] == [
        "Graphs and ONNX models",
        "Language models (GGUF)",
        "Machines",
        "Reference",
    ]
    for command in commands():
        helped = run(command, "--help").stdout
        begin = "source <(" if command == "completion" else ""
        assert f"Examples:\n    {begin}headrace {command}" in helped, command
        assert re.search(r"^Exit status: .*, 1 .*, 2 ", helped, re.MULTILINE), command
    assert "Exit status: 0 it is done, 1 it failed, 2 the command line is wrong" in page


def test_the_help_of_serve_has_parts_with_headings():
    parts = re.split(r"^(\S.*):$", run("serve", "--help").stdout, flags=re.MULTILINE)
    headings, texts = parts[1::2], parts[2::2]
    assert headings == [
        *("The program", "Where it listens, and to whom", "Several models", "Log"),
        *("The model, its context and its memory", "Devices", "How the file is read", "LoRA adapters"),
        *("Images", "Vectors and ranks", "Drafts", "Chats and requests", "Sampling", "Examples"),
    ]
    assert all(re.search(r"^  +(-|headrace)", text, re.MULTILINE) for text in texts)


def test_examples_of_the_help_name_options_that_there_are():
    for command in commands():
        page = run(command, "--help").stdout
        options, _, examples = page.partition("Examples:\n")
        for option in re.findall(r" (--[a-z-]+)", examples):
            others = (
                run("chat", "--help").stdout + run("serve", "--help").stdout
            )  # beside, and flags in common
            assert option in options or option in others, (command, option)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--help"], 0, ""),
        (["--version"], 0, ""),
        (["run", "absent.onnx"], 1, "absent.onnx"),
        ([], 2, "A subcommand is required; headrace --help explains"),
        (["rnu", "x.onnx"], 2, "there is no command 'rnu'; did you mean 'run'?"),
        (["help"], 2, "there is no command 'help'; did you mean 'headrace --help'?"),
        (["version"], 2, "there is no command 'version'; did you mean 'headrace --version'?"),
        (["-v"], 2, "there is no option '-v'; there are --help and --version, and commands; headrace --help"),
        (["program.pte"], 2, "there is no command 'program.pte'; headrace --help lists them"),
        (["transmogrify"], 2, "there is no command 'transmogrify'; headrace --help lists them"),
        (["run"], 2, "graph is required; headrace run --help explains"),
        (["run", "x.onnx", "--quickly"], 2, "there is no option '--quickly'; headrace run --help explains"),
        (
            ["run", "x.onnx", "--sed", "3"],
            2,
            "there is no option '--sed'; did you mean '--seed'?; headrace run",
        ),
        (["bench", "x.onnx", "--frob=3", "--else"], 2, "there is no option '--frob'; headrace bench"),
        (["bench", "x.onnx", "y z"], 2, "there is no place for the argument 'y z'; headrace bench"),
        (["inspect", "x.onnx", "y.onnx"], 2, "there is no place for the argument 'y.onnx'; headrace inspect"),
        (["bench", "x.onnx", "--threads", "two"], 2, "--threads takes a number, not 'two';"),
        (["run", "x.onnx", "--threads", "2.5"], 2, "--threads takes a whole number, not '2.5';"),
        (["serve-rpc", "--port", "http"], 2, "--port takes a number from 0 to 65535, not 'http';"),
        (["bench-llm", "x.gguf", "--rounds", "0"], 2, "--rounds takes a number from 1 to 1048576, not '0';"),
        (["completion", "tcsh"], 2, "tcsh"),
        (["run", "x.onnx", "--weights", "q8_0"], 2, "--weight-format"),
        (["run", "x.onnx", "--threads", "-1"], 2, "--threads: -1 is less than 0"),
        (["run", "x.onnx", "--dimension", "batch"], 2, "--dimension: 'batch' is not NAME=NUMBER"),
        (["run", "x.onnx", "--shape", "x=a"], 2, "--shape: 'a' is not a list of extents"),
        (["run", "x.onnx", "--input", "x.npy"], 2, "--input: 'x.npy' is not of the form NAME=VALUE"),
        (["run", "x.onnx", "--output", "y.npz"], 2, "--output: 'y.npz' is not NAME=FILE.npy"),
        (["run", "x.hrg", "--dimension", "batch=2"], 2, "--dimension is for ONNX models"),
        (["bench", "x.onnx", "--profile", "--tune"], 2, "choose one"),
        (["convert", "x.hrg", "y.hrg"], 2, "convert reads ONNX models"),
        (
            ["convert", "x.onnx", "y.json", "--weight-format", "q4_0"],
            2,
            "only .hrg files hold weights of 4 bits",
        ),
        (["convert", "x.onnx", "y.hrg", "--weight-format", "q9"], 2, "--weight-format"),
        (["run", "x.onnx", "--device", "abacus"], 1, "x.onnx"),
    ],
)
def test_the_exit_status_tells_failures_from_wrong_command_lines(arguments, status, message):
    done = run(*arguments)
    assert done.returncode == status, done.stderr
    if status:
        assert done.stderr.startswith("headrace: ") and message in done.stderr and done.stdout == ""
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["g.wasm", "--modle", "x"], "unrecognized arguments: --modle x; did you mean '--model'?"),
        ([], "the following arguments are required: GUEST.wasm"),
    ],
)
def test_a_wrong_command_line_of_wasm_is_one_line_with_a_suggestion(arguments, message):
    done = run("wasm", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"headrace wasm: {message}; headrace wasm --help explains\n"


def test_output_that_does_not_fit_is_a_failure():
    with open("/dev/full", "w") as full:
        done = subprocess.run([HEADRACE, "ops"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "headrace: cannot write all of the output; is the disk full?\n"


def test_an_onnx_model_under_another_name_is_told_by_its_content(model, tmp_path):
    other = tmp_path / "model.bin"
    other.write_bytes(model.read_bytes())
    done = run("run", other)
    assert done.returncode == 1
    assert "it is an ONNX model; give it a name that ends in .onnx" in done.stderr
    with pytest.raises(ValueError, match="it is an ONNX model"):
        headrace.load(other)


def test_parameters_of_requests_are_listed_with_values_and_defaults():
    rows = [row for row in as_json("parameters") if row["has_effect"]]
    listed = run("serve", "--parameters").stdout
    for row in rows:
        line = f"  {', '.join(row['names'])}: {row['values']}"
        assert (line in listed and row["summary"] in listed) == (row["set_in"] == "request"), row
    assert "  top_k: an integer of at least 0 (default: 40)\n      keep that many most probable" in listed


def test_flags_of_samplers_say_what_they_do_in_both_helps():
    for command in ("serve", "chat"):
        helped = run(command, "--help").stdout
        assert "--top-k N\n      keep that many most probable tokens; 0 is off (default: 40)" in helped
        assert "--mirostat-lr N\n      how fast Mirostat learns (default: 0.1)" in helped
    assert not re.search(r"^      (the parameter |\(|$)", run("serve", "--help").stdout, re.MULTILINE)


def test_open_dimensions_are_made_up_alike_for_all_inputs_and_said(model):
    done = run("run", model)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("y: f32[1, 16, 4]")
    assert done.stderr == (
        "headrace: note: dynamic dimensions are made up, batch = 1, words = 16; to choose: --shape x=1,16,3 "
        "or --dimension batch=1\n"
    )


def test_extents_that_are_given_for_one_input_hold_for_the_others(model, tmp_path):
    done = run("run", model, "--shape", "mask=2,5")
    assert done.stdout.startswith("y: f32[2, 5, 4]") and done.stderr == ""
    np.save(tmp_path / "x.npy", np.ones((1, 7, 3), np.float32))
    done = run("run", model, "--input", f"x={tmp_path}/x.npy")
    assert done.stdout.startswith("y: f32[1, 7, 4]") and done.stderr == ""
    assert run("run", model, "--dimension", "words=3").stdout.startswith("y: f32[1, 3, 4]")


def test_pictures_of_open_size_have_a_usual_one(tmp_path):
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[n, 3, h, w] x) => (float[n, 3, h, w] y) { y = Relu(x) }""")
    onnx.save(made, tmp_path / "picture.onnx")
    assert run("run", tmp_path / "picture.onnx").stdout.startswith("y: f32[1, 3, 224, 224]")


def test_results_of_a_run_are_json_for_programs(model, tmp_path):
    found = as_json("run", model, "--shape", "x=1,2,3", "--output", f"y={tmp_path}/y.npy")
    y = np.load(tmp_path / "y.npy")
    (output,) = found["outputs"]
    assert (output["name"], output["dtype"], output["shape"]) == ("y", "f32", [1, 2, 4])
    np.testing.assert_allclose([output["min"], output["max"], output["mean"]], [y.min(), y.max(), y.mean()])
    np.testing.assert_allclose(output["first"], y.ravel()[:6])
    assert [(i["name"], i["shape"]) for i in found["inputs"]] == [("x", [1, 2, 3]), ("mask", [1, 2])]


def test_every_command_that_finds_something_has_it_as_json(model, tmp_path):
    found = as_json("inspect", model, "--before")
    assert found["nodes_before"] >= found["nodes_after"] == len(found["nodes"])
    assert {"name", "ran", "milliseconds", "changes"} == set(found["passes"][0])
    assert found["memory"]["activation_bytes"] > 0 and "relu" in found["graph_before"]
    found = as_json("bench", model, "--peer", "none", "--runs", 2)
    assert found["min_ms"] <= found["median_ms"] <= found["max_ms"] and found["runs"] == 2
    found = as_json("bench", model, "--profile", "--runs", 2)
    assert sum(node["share"] for node in found["nodes"]) == pytest.approx(1)
    found = as_json("bench", model, "--tune", "--tuning", tmp_path / "tuned")
    assert found["measured"] >= 1 and isinstance(found["changed"], list)
    found = as_json("convert", model, tmp_path / "model.hrg")
    assert found["bytes"] == (tmp_path / "model.hrg").stat().st_size and found["nodes"] > 0
    assert any(device["name"] == "CPU" and device["total_bytes"] > 0 for device in as_json("devices"))
    ops = {op["name"]: op for op in as_json("ops")}
    assert "ggml" in ops["matmul"]["implementations"] and len(ops["matmul"]["operands"]) == 2


@pytest.mark.parametrize(("weights", "largest"), [("q8_0", 0.3), ("q4_0", 0.17)])
def test_a_model_is_converted_with_smaller_weights(tmp_path, weights, largest):
    matrix = np.random.default_rng(1).standard_normal((512, 256), np.float32)
    made = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[n, 512] x) => (float[n, 256] y) { y = MatMul(x, w) }"""
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(matrix, "w"))
    onnx.save(made, tmp_path / "model.onnx")
    small = tmp_path / "small.hrg"
    found = as_json("convert", tmp_path / "model.onnx", small, "--weight-format", weights)
    assert found["bytes"] == small.stat().st_size < largest * matrix.nbytes
    given = ("--shape", "x=3,512", "--output")
    run("run", tmp_path / "model.onnx", *given, f"y={tmp_path}/y.npy")
    run("run", small, *given, f"y={tmp_path}/rounded.npy")
    expected, rounded = np.load(tmp_path / "y.npy"), np.load(tmp_path / "rounded.npy")
    assert 0 < np.abs(rounded - expected).max() / np.abs(expected).max() < 0.1


def test_results_beside_onnx_runtime_are_json_alone(model):
    found = as_json("bench", model, "--rounds", 2, "--seconds", 0.01)
    (result,) = found["results"]
    assert result["ours_us"] > 0 and result["peer_us"] > 0 and found["machine"]["cores"] >= 1


def test_a_file_of_results_comes_beside_the_text(model, tmp_path):
    done = run("run", model, "--json", tmp_path / "result.json")
    assert done.stdout.startswith("y: ")
    assert json.loads((tmp_path / "result.json").read_text())["outputs"][0]["name"] == "y"
    done = run("run", model, "--json", tmp_path / "no folder" / "result.json")
    assert done.returncode == 1 and "cannot write" in done.stderr


LANGUAGE = pytest.mark.skipif(
    not (ROOT / "build/lib/libheadrace_llm.so").exists(),
    reason="this build, on the system's ggml, has no language models",
)


@LANGUAGE
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["bench-llm"], 2, "model (a GGUF file, the first argument or by -m) is required"),
        (["chat", CHAT_MODEL, "-hf", "x/y"], 2, "-hf is llama-server's: this program downloads nothing"),
        (["chat", CHAT_MODEL, "-c"], 2, "-c needs a value"),
        (["chat", CHAT_MODEL, "--temp", "hot"], 2, "--temp: 'hot' must be a number"),
        (["chat", CHAT_MODEL, "--embed", "x.hrg"], 2, "--embed is an option of `headrace serve`"),
        (["chat", CHAT_MODEL, "--port", "80"], 2, "--port"),
        (["serve", CHAT_MODEL, "--speed"], 2, "'--speed' is no option of `headrace serve`"),
    ],
)
def test_wrong_flags_of_a_model_are_explained(arguments, status, message):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert done.stderr.startswith("headrace: ") and message in done.stderr


@LANGUAGE
def test_flags_of_llama_cpp_stand_beside_a_commands_own():
    flags = ("-m", CHAT_MODEL, "-c", "512", "--temp", "0", "-n", "2")
    (answer,) = as_json("chat", *flags, "-p", "What is 2+3?")
    assert (answer["text"], answer["stop_reason"]) == ("2+", "token_limit")
    (answer,) = as_json("chat", *flags, "-p", "What is 2+3?", "--parameters", '{"n_predict": 99}')
    assert answer["text"] == "2+", "a flag comes before --parameters"
    done = run("chat", *flags, "--warmup", "-p", "Hi")
    assert done.returncode == 0 and "--warmup has no effect: there is no warm-up" in done.stderr
    vector = json.loads(run("embed", "-m", CHAT_MODEL, "--pooling", "mean", "a text").stdout)
    assert len(vector["embedding"]) == vector["n_embedding"]
    of_tokens = run("embed", CHAT_MODEL, "a text", "--pooling", "none")
    assert isinstance(json.loads(of_tokens.stdout)["embedding"][0], list)
    (row,) = as_json("bench-llm", CHAT_MODEL, "-p", 8, "-n", 4, "-t", 1, "--streams", 1, "--rounds", 1)
    assert row["generated_per_second"] > 0


@LANGUAGE
def test_answers_of_a_chat_are_json_for_programs():
    found = as_json("chat", CHAT_MODEL, "--parameters", '{"temp": 0}', "--prompt", "What is 2+3?")
    assert [(answer["prompt"], answer["text"]) for answer in found] == [("What is 2+3?", "2+3=5")]
    assert found[0]["generated_tokens"] > 0 and found[0]["stop_reason"] and found[0]["warnings"] == []
    done = run("chat", "--server", "http://127.0.0.1:9", "--prompt", "x", "--json", "-")
    assert done.returncode == 2 and "--json" in done.stderr


def test_columns_are_as_wide_as_their_cells(model):
    lines = run("inspect", model).stdout.split("nodes:\n")[1].splitlines()
    heading, *rows = lines[: next(i for i, line in enumerate(lines) if line.startswith("memory:"))]
    assert rows
    place = heading.index("device")
    for row in rows:
        assert row[place : place + 3] == "CPU" and row[place - 1] == " ", row


def stderr_of_terminal(*arguments: object) -> bytes:
    """What a command shows on a terminal."""
    ours, theirs = pty.openpty()
    command = [HEADRACE, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0, shown
    return shown


def test_long_work_shows_how_far_it_is_on_a_terminal_alone(model):
    long_bench = ("bench", model, "--shape", "x=1,512,3", "--peer", "none", "--runs", 300_000)
    shown = stderr_of_terminal(*long_bench)
    shares = [int(share) for share in re.findall(rb"timing \[[#.]{30}\] (\d+) %", shown)]
    assert shares and shares == sorted(shares), shown
    assert shown.endswith(b"\r\x1b[K"), "the line is taken away"
    assert run(*long_bench).stderr == ""
