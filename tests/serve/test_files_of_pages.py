"""The files of settings that docs/serving.md shows, with models that are here in place of the page's."""

from __future__ import annotations

import re
from pathlib import Path

import requests
from serve_program import MODEL

PAGE = (Path(__file__).resolve().parents[2] / "docs/serving.md").read_text(encoding="utf-8")
ASKED = {"messages": [{"role": "user", "content": "What is 2+3?"}], "max_tokens": 4}


def file_of(page_line: str, folder: Path, replaced: dict[str, Path]) -> Path:
    """The page's file that begins with that line, its comment, with other paths."""
    (text,) = re.findall(rf"^```ini\n(# {re.escape(page_line)}\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for shown, there in replaced.items():
        assert shown in text, shown
        text = text.replace(shown, str(there))
    path = folder / page_line.split()[-1]
    path.write_text(text)
    return path


def test_the_options_of_the_file_for_one_model_are_taken(serve, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("a-key\n")
    replaced = {"/srv/models/qwen3-8b-q4_k_m.gguf": MODEL, "/etc/headrace/keys": keys}
    config = file_of("headrace serve --config serve.ini", tmp_path, replaced)
    server = serve("--config", config, model=None)
    ask = f"{server.url}/v1/chat/completions"
    assert requests.post(ask, json=ASKED, timeout=60).status_code == 401
    answer = requests.post(ask, json=ASKED, headers={"Authorization": "Bearer a-key"}, timeout=60)
    assert answer.json()["choices"][0]["message"]["content"]
    settings = requests.get(
        f"{server.url}/props", headers={"Authorization": "Bearer a-key"}, timeout=60
    ).json()
    assert settings["total_slots"] == 8
    metrics = requests.get(f"{server.url}/metrics", headers={"Authorization": "Bearer a-key"}, timeout=60)
    assert metrics.status_code == 200


def test_the_sections_of_the_file_for_several_models_are_taken(serve, models, tmp_path):
    replaced = {
        "/srv/models/qwen3-8b-q4_k_m.gguf": MODEL,
        "/srv/models/bge-m3.gguf": models / "vectors.gguf",
        "/srv/adapters/support.gguf": models / "adapter.gguf",
    }
    server = serve("--models-preset", file_of("models.ini", tmp_path, replaced), model=None)
    there = {entry["id"]: entry for entry in server.json("/v1/models")["data"]}
    assert set(there) == {"qwen3-8b", "support", "bge"}
    assert {"gpt-4o-mini", "default"} <= set(there["qwen3-8b"]["aliases"])
    assert there["qwen3-8b"]["status"]["value"] == "loaded"
    assert server.json("/v1/chat/completions", {**ASKED, "model": "default"})["choices"]
    assert server.json("/v1/embeddings", {"model": "bge", "input": "a text"})["data"][0]["embedding"]
