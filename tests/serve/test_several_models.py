"""Models that are loaded when requests name them: a folder, a file with sections, memory, swaps."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from serve_models import write_story_model, write_vector_model
from serve_program import (
    ENDLESSLY,
    MODEL,
    ask_openai,
    endless_answer,
    serve_arguments_are_refused,
    wait_for,
)

GREEDY = {"temperature": 0}
SUM = [{"role": "user", "content": "What is 2+3?"}]
STORIES = {"model": "stories", "prompt": "Once", "n_predict": 8, "ignore_eos": True, **GREEDY}


@pytest.fixture
def folder(tmp_path, models) -> Path:
    """chat, stories and vectors; ranks lies in a folder of its own."""
    folder = tmp_path / "models"
    (folder / "ranks").mkdir(parents=True)
    os.link(models / "stories.gguf", folder / "stories.gguf")
    os.link(models / "vectors.gguf", folder / "vectors.gguf")
    shutil.copy(MODEL, folder / "chat.gguf")
    os.link(models / "ranker.gguf", folder / "ranks" / "any-name.gguf")
    (folder / "mmproj-f16.gguf").write_bytes(b"GGUF")
    (folder / "notes.txt").write_text("no model")
    return folder


def states(server) -> dict[str, str]:
    return {entry["id"]: entry["status"]["value"] for entry in server.json("/v1/models")["data"]}


def chat(server, model: str, **more):
    return server.post("/v1/chat/completions", {"model": model, "messages": SUM, **GREEDY, **more})


def test_a_folders_models_chat_embed_and_rank_in_one_process(serve, folder):
    server = serve("--models-dir", folder, model=None)
    assert states(server) == dict.fromkeys(("chat", "ranks", "stories", "vectors"), "unloaded")
    assert chat(server, "chat").json()["choices"][0]["message"]["content"] == "2+3=5"
    body = {"model": "vectors", "input": "hello world"}
    assert len(server.json("/v1/embeddings", body)["data"][0]["embedding"]) > 0
    ranked = server.json("/v1/rerank", {"model": "ranks", "query": "hello", "documents": ["world", "bread"]})
    assert ranked["model"] == "ranks" and len(ranked["results"]) == 2
    assert server.json("/completion", STORIES)["content"]
    assert set(states(server).values()) == {"loaded"}
    client = ask_openai(server)
    assert {model.id for model in client.models.list()} == {"chat", "ranks", "stories", "vectors"}
    assert client.models.retrieve("chat.gguf").id == "chat", "the file's name is one of its names"


def test_a_request_must_name_one_of_several_models(serve, folder):
    server = serve("--models-dir", folder, model=None)
    assert chat(server, "none").status_code == 404
    assert "/v1/models" in chat(server, "none").json()["error"]["message"]
    wrong = chat(server, "vectors")
    assert wrong.status_code == 400 and "turns texts into vectors" in wrong.json()["error"]["message"]
    unnamed = server.post("/v1/chat/completions", {"messages": SUM})
    assert unnamed.status_code == 400 and "several" in unnamed.json()["error"]["message"]
    assert len(server.json("/v1/embeddings", {"input": "hello"})["data"]) == 1, "there is one for vectors"
    assert states(server)["chat"] == "unloaded"


def test_models_lie_beside_the_one_that_the_program_names(serve, folder):
    server = serve("--models-dir", folder, "--alias", "own", "--models-max", 1)
    assert states(server)["own"] == "loaded"
    assert server.json("/completion", STORIES)["content"]
    assert server.json("/v1/chat/completions", {"messages": SUM, **GREEDY})["model"] == "own"
    assert chat(server, "chat").status_code == 200
    assert states(server) | {"ranks": ""} == {
        "own": "loaded", "chat": "loaded", "stories": "unloaded", "vectors": "unloaded", "ranks": "",
    }  # fmt: skip


def test_a_file_gives_each_model_options_of_its_own(serve, folder, tmp_path, models):
    preset = tmp_path / "models.ini"
    preset.write_text(
        f"version = 1\n[*]\nc = 512\ntemp = 0\n[chat]\nalias = small,tiny\nctx-size = 1024\n"
        f"[adapted]\nmodel = {folder}/stories.gguf\nlora = {models}/adapter.gguf\nload-on-startup = true\n"
        f"[one-vector]\nmodel = {folder}/stories.gguf\nembeddings = true\npooling = mean\n"
    )
    server = serve("--models-dir", folder, "--models-preset", preset, model=None)
    assert states(server)["adapted"] == "loaded"
    assert chat(server, "tiny").json()["model"] == "chat"
    shown = {entry["id"]: entry for entry in server.json("/v1/models")["data"]}
    assert shown["chat"]["meta"]["n_ctx"] == 1024 and shown["adapted"]["meta"]["n_ctx"] == 512
    assert "small" in shown["chat"]["aliases"]
    plain, adapted = (
        server.json("/completion", {**STORIES, "model": name}) for name in ("stories", "adapted")
    )
    assert plain["content"] != adapted["content"], "LoRA adapters are a model's own"
    off = {**STORIES, "model": "adapted", "lora": [{"id": 0, "scale": 0}]}
    assert server.json("/completion", off)["content"] == plain["content"], "and a request's choice"
    assert server.json("/props?model=chat")["default_generation_settings"]["params"]["temperature"] == 0
    assert len(server.json("/v1/embeddings", {"model": "one-vector", "input": "hello"})["data"]) == 1


def test_arguments_come_before_a_files_sections(serve, folder, tmp_path):
    preset = tmp_path / "models.ini"
    preset.write_text(f"[chat]\nmodel = {folder}/chat.gguf\nc = 1024\nport = 1\n")
    server = serve("--models-preset", preset, "-c", 256, model=None)
    assert chat(server, "chat").status_code == 200
    assert server.json("/v1/models")["data"][0]["meta"]["n_ctx"] == 256
    assert "line 4: port has no effect" in server.log()


@pytest.mark.parametrize(
    "text,says",
    [
        ("[a]\nc = 512\n", "the section [a] names no file"),
        ("[a]\nmodel = x.gguf\nctx = 5\n", "line 3: '--ctx' is no option"),
        ("[a]\nmodel = x.gguf\nc = many\n", "line 3: c"),
        ("[a]\nembed = x.gguf\n", "line 2: embed is the program's"),
        ("c = 512\n[a]\nmodel = x.gguf\n", "line 1: it belongs to no model"),
        ("[a\nmodel = x.gguf\n", "a name in brackets"),
        ("[a]\nmodel = x.gguf\npin = often\n", "line 3: pin"),
        ("[a]\nmodel = x.gguf\nalias = b\n[b]\nmodel = y.gguf\n", "two models are called 'b'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named_with_its_line(tmp_path, text, says):
    (tmp_path / "models.ini").write_text(text)
    said = serve_arguments_are_refused("--models-preset", tmp_path / "models.ini", status=1)
    assert says in said


def test_the_least_recently_used_model_makes_room_and_requests_wait(serve, folder):
    server = serve("--models-dir", folder, "--models-max", 1, "--metrics", *ENDLESSLY, model=None)
    with endless_answer(server, model="stories") as answer:
        pieces = answer.iter_lines()
        next(pieces)
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(chat, server, "chat")
            wait_for(lambda: server.metrics()["headrace_models_waiting"] == 1)
            time.sleep(0.3)
            assert not waiting.done()
            assert next(line for line in pieces if line), "the one that answers is not ended"
            answer.close()
            assert waiting.result().json()["choices"][0]["message"]["content"] == "2+3=5"
    assert states(server)["stories"] == "unloaded"
    metrics = server.metrics()
    assert metrics["headrace_models_loaded_total"] == 2 and metrics["headrace_models_unloaded_total"] == 1


def test_a_request_that_waits_for_a_model_ends_with_its_time_or_its_client(serve, folder):
    server = serve("--models-dir", folder, "--models-max", 1, "--metrics", *ENDLESSLY, model=None)
    with endless_answer(server, model="stories"):
        late = chat(server, "chat", queue_timeout_ms=200)
        assert late.status_code == 504 and "not loaded yet" in late.json()["error"]["message"]
        with pytest.raises(requests.exceptions.ReadTimeout):
            requests.post(
                server.url + "/v1/chat/completions", json={"model": "chat", "messages": SUM}, timeout=0.3
            )
        wait_for(lambda: server.metrics()["headrace_models_waiting"] == 0)
    assert chat(server, "chat").status_code == 200


def test_memory_bounds_what_is_loaded_and_pinned_models_stay(serve, folder, tmp_path):
    preset = tmp_path / "models.ini"
    preset.write_text(
        f"[*]\nc = 256\n[chat]\npin = true\n[large]\nmodel = {folder}/stories.gguf\nc = 65536\n"
    )
    server = serve("--models-dir", folder, "--models-preset", preset, "--models-memory-mib", 16, model=None)
    assert chat(server, "chat").status_code == 200
    refused = server.post("/completion", {**STORIES, "model": "large"})
    assert refused.status_code == 500
    assert "large needs" in refused.text and "--models-memory-mib" in refused.text
    for name in ("stories", "chat", "stories"):
        assert server.post("/completion", {**STORIES, "model": name}).status_code == 200
    assert states(server)["chat"] == "loaded"


def test_idle_models_are_given_back_and_loaded_again(serve, folder):
    server = serve("--models-dir", folder, "--sleep-idle-seconds", 1, "--metrics")
    own = MODEL.name
    assert server.json("/completion", STORIES)["content"]
    wait_for(lambda: set(states(server).values()) == {"unloaded"}, what="all models to be given back")
    assert server.json("/props")["is_sleeping"] is True
    assert server.json("/health") == {"status": "ok"}
    assert server.get("/slots").status_code == 400
    assert chat(server, own).json()["choices"][0]["message"]["content"] == "2+3=5"
    assert server.json("/props")["is_sleeping"] is False


def test_models_are_loaded_and_given_back_by_hand(serve, folder):
    server = serve("--models-dir", folder, "--no-models-autoload", model=None)
    refused = chat(server, "chat")
    assert refused.status_code == 400 and "/models/load" in refused.text
    assert server.json("/models/load", {"model": "chat"}) == {"success": True}
    assert chat(server, "chat").status_code == 200
    assert server.json("/models/unload", {"model": "chat"}) == {"success": True}
    wait_for(lambda: states(server)["chat"] == "unloaded")
    assert server.post("/models/unload", {"model": "chat"}).status_code == 400
    assert server.post("/models/load", {"model": "none"}).status_code == 404
    assert server.post("/v1/chat/completions?autoload=true", {"model": "chat", "messages": SUM}).ok


def test_ollamas_clients_load_and_unload_models(serve, folder):
    server = serve("--models-dir", folder, "--metrics", model=None)
    assert {model["name"] for model in server.json("/api/tags")["models"]} == set(states(server))
    assert server.json("/api/ps")["models"] == []
    assert server.json("/api/generate", {"model": "chat:latest", "stream": False})["done_reason"] == "load"
    assert [model["name"] for model in server.json("/api/ps")["models"]] == ["chat"]
    gone = server.json("/api/generate", {"model": "chat", "keep_alive": 0, "stream": False})
    assert gone["done_reason"] == "unload"
    wait_for(lambda: server.json("/api/ps")["models"] == [])
    assert server.json("/api/chat", {"model": "chat", "keep_alive": 0, "messages": []})["done"]
    assert server.metrics()["headrace_models_loaded_total"] == 1, "none is loaded to be given back"


def test_a_damaged_file_is_an_error_of_its_requests_alone(serve, folder):
    (folder / "broken.gguf").write_bytes((folder / "chat.gguf").read_bytes()[:5000])
    server = serve("--models-dir", folder, model=None)
    broken = chat(server, "broken")
    assert broken.status_code == 500 and "broken" in broken.json()["error"]["message"]
    assert str(folder) not in broken.text
    (entry,) = [entry for entry in server.json("/v1/models")["data"] if entry["id"] == "broken"]
    assert entry["status"]["value"] == "unloaded" and entry["status"]["failed"] is True
    assert chat(server, "chat").status_code == 200
    shutil.copy(folder / "chat.gguf", folder / "new")
    os.utime(folder / "new", (1, 1))
    (folder / "new").rename(folder / "broken.gguf")
    assert chat(server, "broken").status_code == 200, "a good file in its place"


def test_a_load_that_fails_names_no_path_of_the_host(serve, folder, models, tmp_path):
    preset = tmp_path / "models.ini"
    preset.write_text(
        f"[other]\nmodel = {folder}/chat.gguf\nlora = {models}/adapter.gguf\n"
        f"[absent]\nmodel = {folder}/chat.gguf\nlora = {tmp_path}/absent.gguf\n"
        f"[blind]\nmodel = {folder}/chat.gguf\nmmproj = {folder}/notes.txt\n"
        f"[draft]\nmodel = {folder}/chat.gguf\nmodel-draft = {tmp_path}/none.gguf\n"
    )
    server = serve("--models-preset", preset, model=None)
    for name, file in {
        "other": "adapter.gguf", "absent": "absent.gguf", "blind": "notes.txt", "draft": "none.gguf"
    }.items():  # fmt: skip
        answer = chat(server, name)
        assert answer.status_code == 500 and file in answer.text, answer.text
        assert str(tmp_path) not in answer.text and str(models) not in answer.text, answer.text


def test_what_is_no_file_in_the_folder_stops_nothing(serve, folder):
    os.mkfifo(folder / "pipe.gguf")
    os.symlink("/nowhere", folder / "dangling.gguf")
    os.symlink(folder / "loop.gguf", folder / "loop.gguf")
    server = serve("--models-dir", folder, model=None)
    for name, why in {"pipe": "this is a pipe", "dangling": "no such file", "loop": "no such file"}.items():
        answer = chat(server, name)
        assert answer.status_code == 500 and why in answer.text, answer.text
    os.unlink(folder / "vectors.gguf")
    os.mkfifo(folder / "vectors.gguf")
    os.rename(folder / "stories.gguf", folder / "tales.gguf")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "tales" in states(server))
    assert chat(server, "chat").status_code == 200
    assert server.stop() == 0


def test_a_file_is_swapped_under_traffic_and_no_request_is_lost(serve, tmp_path):
    """Every answer is one of the two models', whole; those after the swap are the new one's."""
    for name, context in (("a", 2048), ("b", 1024)):
        write_story_model(tmp_path / f"{name}.gguf", context=context)
        os.utime(tmp_path / f"{name}.gguf", (1, 1))
    folder = tmp_path / "models"
    folder.mkdir()
    os.link(tmp_path / "a.gguf", folder / "stories.gguf")
    server = serve("--models-dir", folder, model=None)
    body = {"model": "stories", "prompt": "Once", "n_predict": 24, "ignore_eos": True, **GREEDY}
    right = server.json("/completion", body)["content"]
    ends, failures, answers = threading.Event(), [], []

    def ask() -> None:
        while not ends.is_set():
            answer = requests.post(server.url + "/completion", json=body, timeout=60)
            answers.append(answer)
            if answer.status_code != 200 or answer.json()["content"] != right:
                failures.append(answer.text)

    def context() -> int:
        return server.json("/v1/models")["data"][0]["meta"]["n_ctx"]

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for name, expected in (("b", 1024), ("a", 2048)) * 3:
        os.link(tmp_path / f"{name}.gguf", tmp_path / "next")
        (tmp_path / "next").rename(folder / "stories.gguf")
        wait_for(lambda wanted=expected: context() == wanted, what=f"{name} to take its place")
    ends.set()
    for thread in threads:
        thread.join()
    assert failures == [] and len(answers) > 6


def test_the_configuration_is_read_again_at_a_signal(serve, folder, tmp_path):
    preset, keys = tmp_path / "models.ini", tmp_path / "keys"
    preset.write_text(f"[one]\nmodel = {folder}/chat.gguf\nc = 512\n[two]\nmodel = {folder}/stories.gguf\n")
    keys.write_text("first\n")
    server = serve("--models-preset", preset, "--api-key-file", keys, model=None)
    server.key = "first"
    assert chat(server, "one").status_code == 200
    preset.write_text(
        f"[one]\nmodel = {folder}/chat.gguf\nc = 1024\n[three]\nmodel = {folder}/stories.gguf\n"
    )
    keys.write_text("second\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: chat(server, "one").status_code == 401)
    server.key = "second"
    wait_for(lambda: "three" in states(server))
    assert chat(server, "two").status_code == 404

    def context() -> int:
        assert chat(server, "one").status_code == 200
        return server.json("/v1/models")["data"][0]["meta"]["n_ctx"]

    wait_for(lambda: context() == 1024)
    one = f"[one]\nmodel = {folder}/chat.gguf\n"
    for wrong, why in (
        ("[broken]\n", "names no file"),
        ("", "names no model"),
        (one + one, "is there already"),
    ):
        preset.write_text(wrong)
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda why=why: why in server.log())
        assert set(states(server)) == {"one", "three"}
    assert server.log().count("the configuration stays as it was") == 3
    assert chat(server, "one").status_code == 200


def test_limits_are_read_again_at_a_signal(serve, folder, tmp_path):
    config = tmp_path / "serve.ini"
    config.write_text("models-max = 2\n")
    server = serve("--models-dir", folder, "--config", config, model=None)
    for name in ("chat", "stories"):
        assert chat(server, name).status_code == 200
    assert [states(server)[name] for name in ("chat", "stories")] == ["loaded", "loaded"]
    config.write_text("models-max = 2\nmodels-memory-mib = 1\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: states(server)["chat"] == "unloaded")
    assert chat(server, "chat").status_code == 500


def test_counters_go_on_when_a_model_is_given_back_and_loaded_again(serve, folder):
    server = serve("--models-dir", folder, "--metrics", model=None)

    def counted(name: str, model: str) -> float:
        return server.metrics()[f'{name}{{model="{model}"}}']

    names = (
        "headrace_requests_finished_total",
        "headrace_generated_tokens_total",
        "headrace_request_seconds_count",
    )
    for _ in range(2):
        assert chat(server, "chat").status_code == 200
    assert server.post("/v1/embeddings", {"model": "vectors", "input": "a"}).status_code == 200
    before = {name: counted(name, "chat") for name in names}
    assert before["headrace_requests_finished_total"] == 2
    assert server.post("/models/unload", {"model": "chat"}).status_code == 200
    wait_for(lambda: states(server)["chat"] == "unloaded")
    assert {name: counted(name, "chat") for name in names} == before
    assert counted("headrace_requests_running", "chat") == 0
    assert chat(server, "chat").status_code == 200
    after = {name: counted(name, "chat") for name in names}
    assert after["headrace_requests_finished_total"] == 3
    assert after["headrace_generated_tokens_total"] == before["headrace_generated_tokens_total"] * 1.5
    assert after["headrace_request_seconds_count"] == 3
    assert counted("headrace_requests_finished_total", "vectors") == 1


def test_a_models_counters_are_one_line_while_another_file_takes_its_place(serve, folder):
    server = serve("--models-dir", folder, "--metrics", model=None)
    assert chat(server, "chat").status_code == 200
    shutil.copy(MODEL, folder / "new")
    os.utime(folder / "new", (1, 1))
    os.rename(folder / "new", folder / "chat.gguf")
    wait_for(lambda: chat(server, "chat").status_code == 200 and server.log().count("chat is loaded") == 2)
    lines = [
        line
        for line in server.get("/metrics").text.splitlines()
        if line.startswith("headrace_requests_total{")
    ]
    assert len(lines) == 1
    assert server.metrics()['headrace_requests_finished_total{model="chat"}'] >= 2


def test_memory_counts_what_computes_and_counts_weights_that_models_share_once(serve, folder, tmp_path):
    preset = tmp_path / "models.ini"
    model = f"model = {folder}/chat.gguf\n"

    def taken(text: str, *names: str) -> float:
        preset.write_text(text)
        server = serve("--models-preset", preset, "--metrics", "--models-memory-mib", 4000, model=None)
        for name in names:
            assert chat(server, name).status_code == 200
        return server.metrics()["headrace_models_bytes"]

    small = taken(f"[a]\n{model}c = 512\nub = 64\n", "a")
    # A batch's logits alone are 512 rows of the vocabulary.
    assert taken(f"[a]\n{model}c = 512\nub = 512\n", "a") > small
    weights = (folder / "chat.gguf").stat().st_size
    other = taken(f"[a]\n{model}c = 512\nub = 64\n[b]\n{model}c = 1024\nub = 64\n", "a", "b")
    alone = taken(f"[b]\n{model}c = 1024\nub = 64\n", "b")
    assert small + alone - 1.05 * weights < other < small + alone - 0.9 * weights
    # One engine has nothing twice.
    assert (
        taken(f"[a]\n{model}c = 512\nub = 64\n[b]\n{model}c = 512\nub = 64\ntemp = 0.1\n", "a", "b") == small
    )


def test_a_load_that_fails_is_counted(serve, folder):
    (folder / "damaged.gguf").write_bytes(b"GGUF")
    server = serve("--models-dir", folder, "--metrics", model=None)
    assert [chat(server, "damaged").status_code for _ in range(2)] == [500, 500]
    assert server.metrics()["headrace_models_failed_total"] == 2


def test_a_session_goes_to_no_other_key_when_keys_are_read_again(serve, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("alice\nbob\n")
    server = serve("--api-key-file", keys)

    def tokens(key: str) -> int:
        body = {"messages": SUM, "max_tokens": 4, "session": "secret"}
        headers = {"Authorization": f"Bearer {key}"}
        answer = server.ask("POST", "/v1/chat/completions", json=body, headers=headers)
        return answer.json()["usage"]["prompt_tokens"] if answer.ok else answer.status_code

    alone = tokens("alice")
    assert tokens("alice") > alone, "the session remembers"
    keys.write_text("mallory\nbob\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: tokens("alice") == 401)
    assert tokens("mallory") == alone and tokens("bob") == alone


def test_many_clients_use_more_models_than_there_is_room_for(serve, tmp_path):
    """Each model says something else; no answer is lost, and none is another's."""
    folder = tmp_path / "models"
    folder.mkdir()
    for i in range(4):
        write_story_model(folder / f"s{i}.gguf", context=512 + 256 * i)
    write_vector_model(folder / "v.gguf")
    server = serve("--models-dir", folder, "--models-max", 2, "--metrics", model=None)

    def ask(i: int) -> bool:
        with requests.Session() as session:
            if i % 5 == 4:
                answer = session.post(
                    server.url + "/v1/embeddings", json={"model": "v", "input": "hello"}, timeout=60
                )
                return answer.status_code == 200 and answer.json()["model"] == "v"
            body = {"model": f"s{i % 5}", "messages": SUM, "max_tokens": 4}
            answer = session.post(server.url + "/v1/chat/completions", json=body, timeout=60)
            return answer.status_code == 200 and answer.json()["model"] == f"s{i % 5}"

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(60)))
    metrics = server.metrics()
    assert metrics["headrace_models_unloaded_total"] >= 3 and metrics["headrace_models_waiting"] == 0
