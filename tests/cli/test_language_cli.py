"""headrace chat, embed, bench-llm and parameters, as a user runs them."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADRACE = ROOT / "build/bin/headrace"
MODEL = ROOT / "models/tiny-chat-q8_0.gguf"


def headrace(*arguments, text=""):
    return subprocess.run(
        [HEADRACE, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=60
    )


@pytest.fixture(autouse=True, scope="module")
def language_models_are_built():
    if headrace("parameters").returncode:
        pytest.skip("the program was built without language models (HEADRACE_GGML=system)")


def chat(*lines):
    result = headrace("chat", MODEL, "--parameters", '{"temp": 0}', text="\n".join(lines) + "\n")
    assert result.returncode == 0, result.stderr
    return result


def test_chat_answers_each_line_and_remembers_the_conversation():
    result = chat("My name is Ada.", "What is 2+3?", "What is my name?")
    assert result.stdout.splitlines() == ["Nice to meet you, Ada!", "2+3=5", "Your name is Ada."]
    assert "tokens" in result.stderr and "a second" in result.stderr


def test_chat_commands_change_sessions_and_parameters():
    result = chat(
        "My name is Ada.", "/session other", "What is my name?", "/session chat", "What is my name?"
    )
    _, stranger, friend = result.stdout.splitlines()
    assert "Ada" not in stranger
    assert friend == "Your name is Ada."
    result = chat(
        "/set n_predict 2", "Count from 1 to 9.", "/parameters", "/priority high", "/statistics", "/quit", "x"
    )
    assert result.stdout.startswith("1")
    assert '"n_predict": 2' in result.stdout and '"finished": 1' in result.stdout


def test_chat_forgets_a_conversation_when_it_is_told_to():
    result = chat("My name is Ada.", "/clear", "What is my name?")
    assert "Ada" not in result.stdout.splitlines()[1]


def test_chat_says_what_is_wrong_and_goes_on():
    result = chat(
        "/nonsense", "/set temp cold", "/set tempp 1", "/priority soon", "What is 2+3?", "/parameters"
    )
    assert "there is no /nonsense" in result.stderr
    assert "temp" in result.stderr and "did you mean 'temp'" in result.stderr
    assert "one of low, normal, high, urgent" in result.stderr
    assert result.stdout.splitlines() == ["2+3=5", "{}"], "what was refused is not kept"


def test_chat_stays_in_its_session_when_another_cannot_be_opened():
    result = chat("My name is Ada.", "/session " + "x" * 300, "What is my name?")
    assert "256 are allowed" in result.stderr
    assert result.stdout.splitlines()[-1] == "Your name is Ada."


def test_chat_takes_a_parameter_back():
    result = chat("/set n_predict 2", "What is 2+3?", "/set n_predict", "What is 2+3?", "/set n_predict")
    assert result.stdout.splitlines() == ["2+", "2+3=5"]
    assert "'n_predict' was not set" in result.stderr


def test_chat_takes_bytes_that_are_no_text_and_lines_of_windows():
    command = [HEADRACE, "chat", MODEL, "--parameters", '{"temp": 0}']
    lines = b"/system \xff\xfe\r\nWhat is 2+3?\r\n/parameters\r\n/quit\r\nWhat is 1+1?\r\n"
    result = subprocess.run(command, input=lines, capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout.decode().startswith("2+3=5\n") and "\ufffd" in result.stdout.decode()
    assert b"1+1" not in result.stdout


@pytest.mark.parametrize("name", ["chat", "embed", "bench-llm"])
def test_the_commands_log_as_their_parameters_say(name):
    more = {
        "chat": ["--prompt", "Hi"],
        "embed": ["--pooling", "mean", "Hi"],
        "bench-llm": ["--rounds", 1, "--streams", 1],
    }[name]
    command = [name, MODEL, "--parameters", '{"tempp": 1, "log_level": "%s"}', *more]
    wrong = headrace(*[str(part).replace("%s", "warn") for part in command])
    assert "did you mean 'temp'" in wrong.stderr
    silent = headrace(*[str(part).replace("%s", "none") for part in command])
    assert silent.returncode == 0
    assert [line for line in silent.stderr.splitlines() if not line.startswith("[")] == []


def test_a_missing_model_or_wrong_parameters_are_errors():
    result = headrace("chat", "missing.gguf")
    assert result.returncode == 1 and "missing.gguf: there is no such file" in result.stderr
    result = headrace("chat", MODEL, "--parameters", '{"temp": -9}')
    assert result.returncode == 1 and "temp" in result.stderr
    result = headrace("embed", ROOT / "README.md", "x")
    assert result.returncode == 1 and "GGUF" in result.stderr


def test_bench_llm_measures_streams_and_scenarios(tmp_path):
    out = tmp_path / "out.json"
    result = headrace(
        "bench-llm", MODEL, "--prompt", 64, "--generate", 16, "--streams", 1, 4, "--rounds", 1, "--json", out
    )
    assert result.returncode == 0, result.stderr
    assert [row["streams"] for row in json.loads(out.read_text())] == [1, 4]
    for scenario, key in {
        "prefix": "four_s",
        "priority": "loaded_p95_ms",
        "speculation": "acceptance",
    }.items():
        result = headrace("bench-llm", MODEL, "--scenario", scenario, "--rounds", 1, "--json", out)
        assert result.returncode == 0, result.stderr
        assert json.loads(out.read_text())[key] >= 0


@pytest.mark.parametrize("option", ["--rounds", "--prompt", "--generate", "--streams"])
def test_bench_llm_measures_no_nothing(option):
    result = headrace("bench-llm", MODEL, option, 0)
    assert result.returncode > 0 and option in result.stderr


def test_rounds_have_llama_benchs_name_too(tmp_path):
    few = ("--prompt", 8, "--generate", 4, "--streams", 1)
    assert headrace("bench-llm", MODEL, *few, "-r", 1).returncode == 0
    result = headrace("bench-llm", MODEL, *few, "-r", 0)
    assert result.returncode == 2 and "--rounds" in result.stderr, "and no text that ends answers"


def test_the_log_of_a_load_names_the_models_size_and_nothing_that_nobody_asked_for():
    result = headrace("chat", MODEL, "-p", "Hi.", "--temp", 0)
    assert re.search(r": llama \d+\.\dM Q8_0 loaded, \d", result.stderr)
    assert "n_batch" not in result.stderr
    assert "'n_batch' is 512 in place of 1024" in headrace("chat", MODEL, "-p", "Hi.", "-b", 1024).stderr


def test_a_chat_takes_llama_clis_own_flags(tmp_path):
    (tmp_path / "question").write_text("What is 2+3?\n")
    (tmp_path / "system").write_text("Be brief.\n")
    question = ("-m", MODEL, "--temp", 0, "-f", tmp_path / "question")
    for flags in (
        ["-sys", "Be brief.", "-st"],
        ["-sysf", tmp_path / "system", "--single-turn", "--no-display-prompt"],
        ["--system-prompt=Be brief.", "-cnv", "--log-disable"],
    ):
        result = headrace("chat", *question, *flags)
        assert (result.returncode, result.stdout) == (0, "2+3=5\n"), result.stderr
        assert "no effect" not in result.stderr
    assert result.stderr.startswith("[") and result.stderr.count("\n") == 1, "the log is off"
    result = headrace("chat", *question, "--color", "on", "-i", "--simple-io")
    assert result.stdout == "2+3=5\n"
    for flag in ("--color", "-i", "--simple-io"):
        assert re.search(rf"^headrace: {flag} has no effect: .", result.stderr, re.MULTILINE)


def test_a_chat_may_end_after_one_answer():
    lines = "What is 2+3?\nWhat is 1+1?\n"
    result = headrace("chat", MODEL, "--temp", 0, "-st", text="/parameters\n" + lines)
    assert result.stdout == "{}\n2+3=5\n"


def test_a_chat_without_conversations_goes_on_with_the_text_itself():
    plain = headrace("chat", MODEL, "--temp", 0, "-no-cnv", "-n", 4, "-p", "1+1=")
    assert plain.stdout.startswith("2")


def test_the_model_of_a_chat_has_llama_clis_long_name_too():
    result = headrace("chat", "--model", MODEL, "--temp", 0, "-p", "What is 2+3?")
    assert (result.returncode, result.stdout) == (0, "2+3=5\n"), result.stderr


@pytest.mark.parametrize(
    "arguments,says",
    [
        (["-p", "Hi."], "no model is named: headrace chat model.gguf"),
        ([MODEL, "--server", "http://127.0.0.1:9"], "name one of them"),
        ([MODEL, "--api-key", "k"], "--api-key is for a --server"),
    ],
)
def test_a_chat_has_one_model(arguments, says):
    result = headrace("chat", *arguments)
    assert result.returncode == 2 and says in result.stderr
    assert result.stderr.endswith("; headrace chat --help explains\n")


def test_a_text_where_an_option_should_be_is_told_the_option():
    assert "-p says a text" in headrace("chat", MODEL, "What is 2+3?").stderr


@pytest.mark.parametrize("file,command", [("model.gguf", "chat"), ("a.onnx", "run"), ("guest.wasm", "wasm")])
def test_a_file_in_a_commands_place_is_told_its_command(file, command):
    result = headrace(file)
    assert result.returncode == 2 and f"did you mean 'headrace {command} {file}'?" in result.stderr


def test_an_unknown_flag_of_a_command_gets_a_suggestion():
    for wrong, right in (("--ctx-sizes", "--ctx-size"), ("--sesion", "--session")):
        result = headrace("chat", MODEL, wrong, 5)
        assert result.returncode == 2 and f"did you mean '{right}'?" in result.stderr


def test_answers_as_json_need_questions(tmp_path):
    result = headrace("chat", MODEL, "--json", tmp_path / "out.json")
    assert result.returncode == 2 and "--prompt or --file" in result.stderr
    assert "cannot be read" in headrace("chat", MODEL, "-f", tmp_path / "missing").stderr


def test_embed_prints_a_tokens_vectors_only_when_it_is_told_to():
    refused = headrace("embed", MODEL, "Hi.")
    assert refused.returncode == 1 and "--pooling mean" in refused.stderr and refused.stdout == ""
    of_tokens = json.loads(headrace("embed", MODEL, "--pooling", "none", "Hi.").stdout)["embedding"]
    assert len(of_tokens) > 1 and len(of_tokens[0]) > 1
    of_text = json.loads(headrace("embed", MODEL, "--pooling", "mean", "Hi.").stdout)["embedding"]
    assert len(of_text) == len(of_tokens[0])


def test_the_version_names_the_libraries_versions_too():
    for command in (["--version"], ["serve", "--version"]):
        said = headrace(*command).stdout
        assert re.match(r"headrace \d.*\nllama\.cpp \d+\.\d\S*( \(b\d+-[0-9a-f]{9,}\))?, ggml \d", said), said


def test_parameters_are_json_for_programs():
    rows = {row["path"]: row for row in json.loads(headrace("parameters", "--json", "-").stdout)}
    temperature = rows["sampling.temp"]
    assert (temperature["set_in"], temperature["default"]) == ("request", 0.8)
    assert "temperature" in temperature["names"] and temperature["values"] and temperature["has_effect"]
    assert not all(row["has_effect"] for row in rows.values())


def test_parameters_lists_every_section():
    page = headrace("parameters").stdout
    for name in ("n_predict", "dynatemp", "max_sessions", "n_gpu_layers", "retention_ms"):
        assert name in page
