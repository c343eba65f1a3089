"""The cache of prompts on disk (--cache-dir): restarts, crashes, several servers at once, and full disks."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest
import serve_program
from serve_program import HEADRACE, Served, running, wait_for

BLOCK = 64
#: Some of the tiny model's tokens; its context is longer here than it was trained with, which is no matter.
PROMPT = [100 + i * 7 % 300 for i in range(12 * BLOCK + 60)]
BODY = {"prompt": PROMPT, "n_predict": 8, "temperature": 0, "ignore_eos": True, "return_tokens": True}


def start_server(folder: Path, *arguments: object) -> Served:
    return Served("--cache-dir", folder, "--metrics", "--ctx-size", 2048, *arguments)


def answer(server: Served, **more: object) -> list[int]:
    return server.json("/completion", {**BODY, **more})["tokens"]


def blocks(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kv"))


def from_disk(server: Served) -> float:
    return server.count("headrace_disk_cached_tokens_total")


def failures(server: Served) -> float:
    return server.count("headrace_disk_cache_failures_total")


def warnings(server: Served) -> list[str]:
    return [line for line in server.log().splitlines() if "cache_dir" in line]


def test_a_prompt_is_not_read_again_after_a_restart(tmp_path):
    first = start_server(tmp_path / "cache")
    cold = answer(first)
    assert from_disk(first) == 0
    assert first.stop() == 0
    assert len(blocks(tmp_path / "cache")) == 13
    second = start_server(tmp_path / "cache")
    whole = second.json("/completion", BODY)
    assert whole["tokens"] == cold
    assert (
        whole["timings"]["cache_n"] == 12 * BLOCK and whole["timings"]["prompt_n"] == len(PROMPT) - 12 * BLOCK
    )
    assert from_disk(second) == 12 * BLOCK
    assert second.count("headrace_disk_cache_bytes") == sum(
        f.stat().st_size for f in blocks(tmp_path / "cache")
    )
    assert (failures(second), warnings(second)) == (0, [])
    longer = [*PROMPT, *cold, *range(100, 400)]
    answer(second, prompt=longer)
    assert second.stop() == 0
    assert len(blocks(tmp_path / "cache")) == len(longer) // BLOCK, (
        "the next turn adds blocks of its own only"
    )


def test_a_server_that_is_killed_loses_nothing_that_was_written(tmp_path):
    server = start_server(tmp_path / "cache")
    cold = answer(server)
    wait_for(lambda: len(blocks(tmp_path / "cache")) == 13, what="the blocks")
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    running.remove(server)
    again = start_server(tmp_path / "cache")
    assert answer(again) == cold
    assert from_disk(again) == 12 * BLOCK
    assert again.stop() == 0


def test_servers_that_are_killed_while_they_write_leave_nothing_wrong(tmp_path):
    cold = {}
    for round_ in range(6):
        server = start_server(tmp_path / "cache", "--cache-disk", 4)
        for i in range(4):
            prompt = [100 + (i + round_) % 5, *PROMPT[1:]]
            tokens = answer(server, prompt=prompt)
            assert cold.setdefault(prompt[0], tokens) == tokens
        assert failures(server) == 0
        time.sleep(0.01 * round_)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        running.remove(server)
    assert sum(f.stat().st_size for f in (tmp_path / "cache").glob("*.kv*")) <= 4 << 20


def test_eight_servers_share_a_folder(tmp_path):
    servers = [start_server(tmp_path / "cache") for _ in range(8)]
    # The first one that reads a prompt stores it for all that come later.
    prompts = [[100 + i, *PROMPT[1:]] for i in range(3)]
    cold = [answer(servers[0], prompt=prompt) for prompt in prompts]
    wait_for(lambda: len(blocks(tmp_path / "cache")) == 39, what="the blocks")
    for server in servers[1:]:
        assert [answer(server, prompt=prompt) for prompt in prompts] == cold
        assert from_disk(server) == 36 * BLOCK
    assert [failures(server) for server in servers] == [0] * 8
    assert [server.stop() for server in servers] == [0] * 8
    assert len(blocks(tmp_path / "cache")) == 39 and not list((tmp_path / "cache").glob("*.tmp"))


def test_damaged_files_cost_time_and_one_warning(tmp_path):
    first = start_server(tmp_path / "cache")
    cold = answer(first)
    first.stop()
    for i, block in enumerate(blocks(tmp_path / "cache")):
        content = bytearray(block.read_bytes())
        content[-1 - i] ^= 1
        block.write_bytes(content)
    second = start_server(tmp_path / "cache")
    for i in range(3):
        assert answer(second, prompt=[*PROMPT[:-1], 100 + i])
    assert answer(second) == cold
    assert failures(second) >= 1
    (line,) = warnings(second)
    assert "checksum" in line
    second.stop()


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """Lets servers see a folder that is a file system of its own, with these options of tmpfs."""

    def use(options: str, also: str = "true") -> Path:
        folder = tmp_path / "mounted"
        folder.mkdir(exist_ok=True)
        mounts = f"mount -t tmpfs -o {options} tmpfs '{folder}' && {also.format(folder=folder)}"
        tried = subprocess.run(["unshare", "-rm", "sh", "-c", mounts], capture_output=True, text=True)
        if tried.returncode:
            pytest.skip(f"no file system can be mounted here: {tried.stderr.strip()}")
        program = tmp_path / "headrace"
        script = mounts.replace("'", '"') + ' && exec "$@"'
        program.write_text(f"""#!/bin/sh\nexec unshare -rm sh -c '{script}' - {HEADRACE} "$@"\n""")
        program.chmod(0o755)
        monkeypatch.setattr(serve_program, "HEADRACE", program)
        return folder

    return use


@pytest.mark.parametrize("options", ["size=100k", "size=1m,nr_inodes=4"])
def test_a_full_disk_fails_no_request(mounted, options):
    server = start_server(mounted(options))
    first = [answer(server, prompt=[100 + i, *PROMPT[1:]]) for i in range(6)]
    assert [answer(server, prompt=[100 + i, *PROMPT[1:]]) for i in range(6)] == first
    wait_for(lambda: failures(server) >= 1, what="a failure")
    assert len(warnings(server)) == 1, warnings(server)
    assert server.stop() == 0


def test_a_disk_that_is_read_only_fails_no_request(mounted):
    server = start_server(mounted("size=1m", "mount -o remount,ro '{folder}'"))
    assert answer(server) == answer(server)
    wait_for(lambda: failures(server) >= 1, what="a failure to be counted")
    assert len(warnings(server)) == 1, warnings(server)
    assert server.stop() == 0


def test_a_folder_that_cannot_be_made_fails_no_request(tmp_path):
    (tmp_path / "file").write_text("x")
    server = start_server(tmp_path / "file" / "cache")
    assert answer(server) == answer(server)
    wait_for(lambda: failures(server) >= 1, what="a failure to be counted")
    (line,) = warnings(server)
    assert str(tmp_path / "file") in line
    assert server.stop() == 0
