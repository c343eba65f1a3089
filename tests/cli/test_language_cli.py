"""headrace chat, embed, bench-llm and parameters, as a user runs them."""

import json
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
    more = {"chat": ["--prompt", "Hi"], "embed": ["Hi"], "bench-llm": ["--rounds", 1, "--streams", 1]}[name]
    command = [name, MODEL, "--parameters", '{"tempp": 1, "log_level": "%s"}', *more]
    wrong = headrace(*[str(part).replace("%s", "warn") for part in command])
    assert "did you mean 'temp'" in wrong.stderr
    silent = headrace(*[str(part).replace("%s", "none") for part in command])
    assert silent.returncode == 0
    assert [line for line in silent.stderr.splitlines() if not line.startswith("[")] == []


def test_a_missing_model_or_wrong_parameters_are_errors():
    result = headrace("chat", "missing.gguf")
    assert result.returncode == 1 and "missing.gguf: there is no such file" in result.stderr
    result = headrace("chat", MODEL, "--parameters", '{"temp": 9}')
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


def test_parameters_lists_every_section():
    page = headrace("parameters").stdout
    for name in ("n_predict", "dynatemp", "max_sessions", "n_gpu_layers", "retention_ms"):
        assert name in page
