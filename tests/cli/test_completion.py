"""Scripts by which shells complete the program's commands, options and arguments."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADRACE = ROOT / "build/bin/headrace"


def printed(*arguments: str) -> str:
    done = subprocess.run([HEADRACE, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def commands() -> list[str]:
    return re.findall(r"^  ([a-z][a-z-]*)", printed("--help"), flags=re.MULTILINE)


def complete(shell_words: list[str]) -> list[str]:
    """What bash offers for the last word."""
    script = f"""source <({HEADRACE} completion bash)
        COMP_WORDS=({" ".join(f"'{word}'" for word in shell_words)})
        COMP_CWORD={len(shell_words) - 1}
        _headrace
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completes_commands_and_their_options():
    assert complete(["headrace", "con"]) == ["convert"]
    assert set(complete(["headrace", ""])) == set(commands())
    assert complete(["headrace", "run", "m.onnx", "--thr"]) == ["--threads"]
    assert complete(["headrace", "run", "mod"]) == [], "files are bash's own"
    assert complete(["headrace", "completion", ""]) == ["bash", "zsh", "fish"]
    assert complete(["headrace", "completion", "--he"]) == ["--help"]
    if "chat" in commands():
        for command in ("serve", "chat", "embed", "bench-llm"):
            assert "--n-gpu-layers" in complete(["headrace", command, "--n-"])
        assert complete(["headrace", "chat", "--repeat-pen"]) == ["--repeat-penalty"]
        assert complete(["headrace", "chat", "--metr"]) == [], "of the server alone"


#: zsh completes in a terminal alone: one of its own lists what it offers.
ZSH = """zmodload zsh/zpty
zpty -b shell 'zsh -f -i'
zpty -w shell "PS1= ; stty columns 200; autoload -U compinit; compinit -u -D; source $SCRIPT; print READ''Y"
zpty -r -m shell before '*READY*'
zpty -n -w shell "$LINE_TO_COMPLETE"$'\t\t'
repeat 40; do sleep 0.1; while zpty -r -t shell part; do print -rn -- $part; done; done
zpty -d shell"""


def offers(shell: str, script: Path, line: str) -> str:
    """What a shell shows for a line whose end is to be completed."""
    if shell == "fish":
        command = ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"]
    else:
        command = ["zsh", "-f", "-c", ZSH]
    settings = {"SCRIPT": str(script), "LINE_TO_COMPLETE": line, "TERM": "dumb", "HOME": str(script.parent)}
    done = subprocess.run(
        command, cwd=script.parent, env=os.environ | settings, capture_output=True, text=True, check=True
    )
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\r\a\b]", "", done.stdout)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_commands_options_and_arguments(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "loaded.sh"
    script.write_text(printed("completion", shell))
    assert all(command in offers(shell, script, "headrace ") for command in commands())
    assert "--threads" in offers(shell, script, "headrace run --thr")
    shells = offers(shell, script, "headrace completion ")
    assert "bash" in shells and "fish" in shells and script.name not in shells
    if "chat" in commands():
        found = offers(shell, script, "headrace serve --no-mma")
        assert "--no-mmap" in found
        assert "off: map the file" in offers(shell, script, "headrace serve --no-mm")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells_are_valid_and_name_every_command(shell):
    script = printed("completion", shell)
    for command in commands():
        assert re.search(rf"'{command}:|-a {command} ", script), command
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: its syntax was not checked")
    subprocess.run([shell, "-n"], input=script, text=True, check=True)
