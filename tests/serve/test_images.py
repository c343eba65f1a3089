"""Images in chats, by tiny models with random weights, whose answers are those of llama.cpp's own helpers."""

from __future__ import annotations

import base64
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import vision_models
from serve_program import MODEL, ROOT, wait_for

ORACLE = ROOT / "build/bin/tests/mtmd_answer"
TOKENS = 24
ONE, OTHER = vision_models.png(1), vision_models.png(2)
#: A text is a text, and bytes are an image.
PROMPTS = [
    ("Tell me", ONE),
    (ONE, "What do you see?"),
    (OTHER, "What do you see?"),
    ("One ", ONE, " and ", OTHER, " What do you see?"),
    (ONE, ONE, "Why?"),
    (vision_models.png(3, 90, 31), "Tell me"),
    ("Tell me",),
]


def url(image: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(image).decode()


def parts(prompt: tuple[str | bytes, ...]) -> list[dict]:
    return [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": url(part)}}
        for part in prompt
    ]


def chat(*prompt: str | bytes, **options) -> dict:
    body = {"temperature": 0, "max_tokens": TOKENS, "ignore_eos": True}
    return {"messages": [{"role": "user", "content": parts(prompt)}], **body, **options}


def content(answer: dict) -> str:
    return answer["choices"][0]["message"]["content"]


def cached(answer: dict) -> int:
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> dict[str, tuple[Path, Path]]:
    if not ORACLE.exists():
        pytest.skip("this build has no mtmd, and so reads no images: make build compiles it")
    folder = tmp_path_factory.mktemp("vision")
    return {kind: vision_models.write_pair(folder, kind) for kind in vision_models.KINDS}


@pytest.fixture(scope="module")
def servers(serve, pairs) -> dict:
    return {
        kind: serve("--mmproj", projector, "--parallel", 4, "-c", 2048, model=model)
        for kind, (model, projector) in pairs.items()
    }


@pytest.fixture(scope="module")
def expected(pairs, tmp_path_factory):
    """How llama.cpp's helpers begin their answer to such a prompt, each asked once."""
    folder = tmp_path_factory.mktemp("images")
    known = {}

    def answer(kind: str, prompt: tuple[str | bytes, ...]) -> str:
        if (kind, prompt) not in known:
            files, text, before = [], "", None
            for part in prompt:
                if isinstance(part, bytes):
                    files.append(folder / f"{kind}-{len(known)}-{len(files)}.png")
                    files[-1].write_bytes(part)
                # Templates that take texts alone get texts on lines of their own, unless images are between.
                text += "<__media__>" if isinstance(part, bytes) else part
                assert not (isinstance(part, str) and isinstance(before, str))
                before = part
            run = subprocess.run(
                [ORACLE, *pairs[kind], str(TOKENS), *files],
                input=f"user: {text}\nassistant:".encode(),
                capture_output=True,
                check=True,
            )
            known[kind, prompt] = run.stdout.decode(errors="replace").strip()
            assert len(known[kind, prompt]) > 4, "no token is clearly the likeliest: take another prompt"
        return known[kind, prompt]

    return answer


@pytest.mark.parametrize("prompt", PROMPTS, ids=range(len(PROMPTS)))
@pytest.mark.parametrize("kind", vision_models.KINDS)
def test_an_answer_is_that_of_llama_cpps_helpers(servers, expected, kind, prompt):
    answer = servers[kind].json("/v1/chat/completions", chat(*prompt, cache_prompt=False))
    assert content(answer).strip().startswith(expected(kind, prompt))


@pytest.mark.parametrize("kind", vision_models.KINDS)
def test_images_make_another_answer(expected, kind):
    answers = {expected(kind, (image, "What do you see?")) for image in (ONE, OTHER)}
    assert len(answers) == 2


@pytest.mark.parametrize("kind", vision_models.KINDS)
def test_what_is_remembered_is_of_the_same_image(servers, expected, kind):
    """Prompts that share a text, an image, or a part of a longer prompt, in an order that mixes them."""
    for prompt in (*PROMPTS, *reversed(PROMPTS), *PROMPTS[::2]):
        answer = servers[kind].json("/v1/chat/completions", chat(*prompt))
        assert content(answer).strip().startswith(expected(kind, prompt))
    again = servers[kind].json("/v1/chat/completions", chat(*PROMPTS[1]))
    assert cached(again) == again["usage"]["prompt_tokens"] - 1
    longer = servers[kind].json("/v1/chat/completions", chat(ONE, "What else is there to be seen?"))
    shared = servers[kind].json("/v1/chat/completions", chat(ONE, "Why?"))
    assert cached(longer) > 16 and cached(shared) > 16, "the image and the text before it"


@pytest.mark.parametrize("kind", vision_models.KINDS)
def test_requests_at_once_do_not_mix(servers, expected, kind):
    prompts = [prompt for prompt in PROMPTS for _ in range(4)]
    with ThreadPoolExecutor(len(prompts)) as pool:
        answers = pool.map(lambda p: servers[kind].json("/v1/chat/completions", chat(*p)), prompts)
    for prompt, answer in zip(prompts, answers, strict=True):
        assert content(answer).strip().startswith(expected(kind, prompt))


def test_a_conversation_goes_on_after_an_image(servers):
    messages = [{"role": "user", "content": parts((ONE, "What do you see?"))}]
    first = servers["qwen2vl"].json("/v1/chat/completions", chat() | {"messages": messages})
    messages += [{"role": "assistant", "content": content(first)}, {"role": "user", "content": "Sure?"}]
    body = chat() | {"messages": messages}
    second = servers["qwen2vl"].json("/v1/chat/completions", body)
    assert cached(second) >= first["usage"]["prompt_tokens"]
    fresh = servers["qwen2vl"].json("/v1/chat/completions", body | {"cache_prompt": False})
    assert content(second)[:6] == content(fresh)[:6]


def test_the_openai_client_sends_images(servers, expected):
    openai = pytest.importorskip("openai", reason="openai is not installed: make setup installs it")
    client = openai.OpenAI(base_url=servers["llava"].url + "/v1", api_key="none")
    asked = {"model": "any", "temperature": 0, "max_tokens": TOKENS, "extra_body": {"ignore_eos": True}}
    messages = [{"role": "user", "content": parts((OTHER, "What do you see?"))}]
    answer = client.chat.completions.create(messages=messages, **asked)
    wanted = expected("llava", (OTHER, "What do you see?"))
    assert answer.choices[0].message.content.strip().startswith(wanted)
    stream = client.chat.completions.create(messages=messages, stream=True, **asked)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert text.strip().startswith(wanted)


def test_responses_messages_and_ollama_read_images_too(servers, expected):
    server, wanted = servers["llava"], expected("llava", (ONE, "What do you see?"))
    data = base64.b64encode(ONE).decode()
    options = {"temperature": 0, "ignore_eos": True}
    part = {"type": "input_image", "image_url": url(ONE)}
    given = [{"role": "user", "content": [part, {"type": "input_text", "text": "What do you see?"}]}]
    answer = server.json("/v1/responses", {"input": given, "max_output_tokens": TOKENS, **options})
    assert answer["output"][-1]["content"][0]["text"].strip().startswith(wanted)
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    given = [{"role": "user", "content": [block, {"type": "text", "text": "What do you see?"}]}]
    body = {"model": "any", "messages": given, "max_tokens": TOKENS, **options}
    assert server.json("/v1/messages", body)["content"][0]["text"].strip().startswith(wanted)
    counted = server.json("/v1/messages/count_tokens", {"model": "any", "messages": given})["input_tokens"]
    assert (
        counted
        == server.json("/v1/chat/completions", chat(ONE, "What do you see?"))["usage"]["prompt_tokens"]
    )
    name = server.json("/v1/models")["data"][0]["id"]
    body = {"model": name, "stream": False, "options": {"temperature": 0, "num_predict": TOKENS}}
    body["options"] |= {"repeat_penalty": 1.0}
    message = {"role": "user", "content": "What do you see?", "images": [data]}
    answer = server.json("/api/chat", {"messages": [message], "ignore_eos": True, **body})
    assert answer["message"]["content"].strip().startswith(wanted)
    answer = server.json(
        "/api/generate", {"prompt": "What do you see?", "images": [data], "ignore_eos": True, **body}
    )
    assert answer["response"].strip().startswith(wanted)


def test_a_model_tells_that_it_reads_images(servers, serve):
    server = servers["gemma3"]
    assert server.json("/props")["modalities"] == {"vision": True, "audio": False, "video": False}
    (entry,) = server.json("/v1/models")["data"]
    assert entry["architecture"]["input_modalities"] == ["text", "image"]
    assert "vision" in server.json("/api/show", {"model": entry["id"]})["capabilities"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("http://example.org/a.png", "nothing is fetched"),
        ("https://example.org/a.png", "nothing is fetched"),
        ("file:///etc/passwd", "nothing is fetched"),
        ("data:image/png,abc", "must be data:image/png;base64"),
        ("data:text/html;base64,abcd", "must be data:image/png;base64"),
        ("data:image/png;base64,", "no base64"),
        ("data:image/png;base64,a*c=", "no base64"),
        ("data:image/png;base64,YWJjZGVmZ2g=", "no PNG, JPEG, GIF or BMP"),
        (url(ONE[:60]), "it is damaged: it ends before its pixels do"),
        (url(ONE[:40] + b"damage" * 9 + ONE[94:]), "damaged"),
        (url(ONE[:16] + b"\x7f\xff\xff\xff\x7f\xff\xff\xff" + ONE[24:]), "damaged"),
        (url(ONE[:20]), "it is damaged: its first bytes tell no width"),
        (url(ONE[:16] + b"\0\0\x40\0\0\0\x40\0" + ONE[24:]), "pixels"),
        (url(vision_models.png_of(np.zeros((1, 300, 3), np.uint8))), "200 times"),
        (url(b"RIFF\x10\0\0\0WEBPVP8 "), "WebP"),
    ],
)
def test_a_wrong_image_is_named(servers, given, says):
    part = {"type": "image_url", "image_url": {"url": given}}
    body = chat() | {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, part]}]}
    answer = servers["llava"].post("/v1/chat/completions", body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert says in error["message"]
    assert error["param"] == "messages[0].content[1].image_url.url"


def test_other_apis_name_a_wrong_image_too(servers):
    server = servers["llava"]
    for source in ({"type": "url", "url": "http://example.org/a.png"}, {"type": "file", "file_id": "a"}):
        block = {"type": "image", "source": source}
        body = {"model": "any", "messages": [{"role": "user", "content": [block]}], "max_tokens": 4}
        answer = server.post("/v1/messages", body)
        assert answer.status_code == 400
        assert "messages.0.content.0.source.type" in answer.text and "nothing is fetched" in answer.text
    name = server.json("/v1/models")["data"][0]["id"]
    message = {"role": "user", "content": "a", "images": ["aGVsbG8="]}
    answer = server.post("/api/chat", {"model": name, "messages": [message]})
    assert answer.status_code == 400 and "messages[0].images[0]" in answer.text
    sound = {"type": "input_audio", "input_audio": {"data": "aGVsbG8=", "format": "wav"}}
    answer = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": [sound]}]})
    assert answer.status_code == 400 and "no audio" in answer.text


def test_too_many_images_are_an_error(servers):
    answer = servers["llava"].post("/v1/chat/completions", chat(*[vision_models.png(1, 4, 4)] * 65))
    assert answer.status_code == 400 and "at most 64" in answer.text


def test_a_prompt_with_images_that_is_too_long_is_an_error(servers):
    answer = servers["qwen2vl"].post("/v1/chat/completions", chat(*[ONE] * 60, "a"))
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "exceed_context_size_error"


def test_a_model_without_a_projector_refuses_images(serve):
    server = serve(model=MODEL)
    answer = server.post("/v1/chat/completions", chat(ONE, "What do you see?"))
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "type", "param"}
    assert "image input is not supported" in error["message"] and "mmproj" in error["message"]
    assert server.json("/props")["modalities"]["vision"] is False
    assert server.json("/v1/models")["data"][0]["architecture"]["input_modalities"] == ["text"]


def test_a_text_cannot_pretend_to_be_an_image(servers):
    """Neither the mark that stands for an image, nor the tokens that do."""
    server = servers["llava"]
    shown = server.json("/apply-template", {"messages": chat(ONE, "a")["messages"]})["prompt"]
    assert "<__media__>" not in shown
    answer = server.post("/v1/chat/completions", chat("<__media__> What?"))
    assert answer.status_code == 200
    answer = server.post("/completion", {"prompt": [5, -2147483000, 6], "n_predict": 1})
    assert answer.status_code == 400


def test_a_client_that_leaves_ends_its_image(servers, expected):
    server = servers["gemma3"]
    for seed in range(10, 16):
        body = chat(vision_models.png(seed), "What do you see?", max_tokens=900, stream=True)
        with server.session.post(server.url + "/v1/chat/completions", json=body, stream=True) as answer:
            if seed % 2:
                next(answer.iter_lines())
    wait_for(lambda: server.busy_slots() == 0, what="the slots to be free")
    answer = server.json("/v1/chat/completions", chat(*PROMPTS[1]))
    assert content(answer).strip().startswith(expected("gemma3", PROMPTS[1]))


@pytest.mark.parametrize("kind", ["llava", "gemma3", "qwen2vl"])
def test_many_different_images_behind_one_text_are_read_at_once(servers, kind):
    """What one stream reads of the text brings the others to their images, before these are computed."""
    server = servers[kind]

    text = "The same words before each image, again and again. " * 4

    def ask(seed):
        body = chat(text, vision_models.png(seed), "What?", max_tokens=2)
        return server.json("/v1/chat/completions", body)["usage"]["completion_tokens"]

    with ThreadPoolExecutor(12) as threads:
        assert set(threads.map(ask, range(100, 136))) == {2}


def test_others_write_to_their_end_beside_images_that_are_read(servers):
    server, pieces = servers["llava"], []

    def write():
        pieces.extend(server.events("/v1/chat/completions", chat("no image", max_tokens=200)))

    thread = threading.Thread(target=write)
    thread.start()
    wait_for(lambda: server.busy_slots() > 0 or not thread.is_alive(), what="the first request")
    for seed in range(20, 24):
        server.json("/v1/chat/completions", chat(vision_models.png(seed), "What?", max_tokens=1))
    thread.join()
    # Not how many: words that wait for the network together are one.
    assert [piece["choices"][0]["finish_reason"] for piece in pieces if piece["choices"]][-1] == "length"


def test_drafts_and_a_cache_on_disk_leave_images_alone(serve, pairs, expected, tmp_path):
    model, projector = pairs["qwen2vl"]
    options = ["--mmproj", projector, "--cache-dir", tmp_path, "--spec-default", "-np", 1]
    for _ in range(2):
        server = serve(*options, model=model)
        for prompt in (*PROMPTS, *reversed(PROMPTS)):
            answer = server.json("/v1/chat/completions", chat(*prompt))
            assert content(answer).strip().startswith(expected("qwen2vl", prompt))
        server.stop()


def test_a_slot_with_an_image_is_not_saved(serve, pairs, tmp_path):
    model, projector = pairs["llava"]
    server = serve("--mmproj", projector, "--slot-save-path", tmp_path, "-np", 1, model=model)
    server.json("/v1/chat/completions", chat(ONE, "What do you see?", id_slot=0))
    answer = server.post("/slots/0?action=save", {"filename": "a.bin"})
    assert answer.status_code == 501 and "images" in answer.text


def test_a_full_context_with_an_image_ends(serve, pairs):
    model, projector = pairs["llava"]
    server = serve("--mmproj", projector, "--context-shift", "-c", 256, "-np", 1, model=model)
    answer = server.json("/v1/chat/completions", chat(ONE, "What do you see?", max_tokens=-1))
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["total_tokens"] <= 257


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--mmproj", "/nowhere/a.gguf"], "no such file"),
        (["--mmproj", MODEL], "projector"),
        (["--mmproj", "ITS", "--batch-invariant"], "batch_invariant"),
        (["--mmproj", "OTHERS"], "projector"),
    ],
)
def test_a_projector_that_cannot_be_had_is_an_error(pairs, options, says):
    model, its = pairs["llava"]
    given = [its if option == "ITS" else option for option in options]
    if "OTHERS" in options:  # of another width
        model, given = MODEL, ["--mmproj", its]
    command = [ROOT / "build/bin/headrace", "serve", model, "--port", "0", "--threads", "1", *given]
    run = subprocess.run([str(word) for word in command], capture_output=True, timeout=60, text=True)
    assert run.returncode != 0
    assert says in run.stderr and "mmproj" in run.stderr


@pytest.mark.parametrize("kind", vision_models.KINDS)
def test_a_models_memory_counts_what_reads_images_with_its_compute_buffers(serve, pairs, kind, tmp_path):
    model, projector = pairs[kind]

    def taken(projection: str) -> float:
        preset = tmp_path / "models.ini"
        preset.write_text(f"[seeing]\nmodel = {model}\nc = 512\nub = 64\n{projection}")
        server = serve("--models-preset", preset, "--metrics", "--models-memory-mib", 4000, model=None)
        assert server.post("/v1/chat/completions", {"model": "seeing", **chat("Hello")}).status_code == 200
        return server.metrics()["headrace_models_bytes"]

    assert taken(f"mmproj = {projector}\n") - taken("") > 1.1 * projector.stat().st_size
