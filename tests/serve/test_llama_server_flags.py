"""Every flag of llama-server has a fate here: it acts, it does nothing and says so, or it is refused."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
import requests
from serve_models import write_story_model
from serve_program import (
    ENDLESSLY,
    HEADRACE,
    LLAMA_CPP,
    MODEL,
    ROOT,
    STORY,
    endless_answer,
    environment,
    free_port,
    in_tree,
    serve_arguments_are_refused,
    wait_for,
)

README = LLAMA_CPP / "tools/server/README.md"
GREEDY = {"temperature": 0}


def said_by(*arguments: object, **variables: str) -> str:
    """What the program prints, of an invocation that serves nothing."""
    command = [HEADRACE, "serve", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(**variables))
    return done.stdout + done.stderr


def documented() -> list[tuple[list[str], str]]:
    """The names of each flag of the pinned llama-server, and what its README says of it."""
    rows = re.findall(r"^\| `(-[^`]*)` \| (.*)", in_tree(README).read_text(), re.MULTILINE)
    assert len(rows) > 200
    return [(re.findall(r"(?:^|, )(-[^\s,]+)", names), text) for names, text in rows]


@pytest.fixture(scope="module")
def readme() -> list[tuple[list[str], str]]:
    """The names of each flag, and its variable of the environment."""
    variables = [(names, re.search(r"\(env: (\w+)\)", text)) for names, text in documented()]
    return [(names, variable[1] if variable else "") for names, variable in variables]


@pytest.fixture(scope="module")
def helped() -> dict[str, str]:
    """The flags that --help lists, and their variables."""
    found = {}
    for names, summary in re.findall(r"^  (-.*)\n      (.*)", said_by("--help"), re.MULTILINE):
        variable = re.search(r"\((\w+)\)$", summary)
        for name in re.findall(r"(?:^|, )(-[^\s,]+)", names):
            found[name] = variable[1] if variable else ""
    return found


#: Defaults that are the same in other words.
SAME = {
    ("loaded from model", "0"),  # of RoPE: 0 is the model's
    ("template taken from model's metadata", ""),
    ("enabled if number of slots is auto", "unless --parallel is given"),
    ("-1; -1", "-1"),  # which is none
    ("default", ""),  # the template's own effort
    ("auto", "deepseek"),  # where thoughts are put, which auto is
}


def plain(default: str) -> str:
    """A default that README or --help gives, comparable with the other's."""
    text = re.split(r", | - |\.(?=\D)", re.sub(r"<br/>.*", "", default))[0]
    text = re.sub(r" \(detect.*| = .*|^prefill ", "", text).strip().strip("'\"")
    words = {"enabled": "on", "true": "on"} | dict.fromkeys(
        ("disabled", "false", "off", "none", "unset", "unused"), ""
    )
    number = re.fullmatch(r"-?\d+(\.\d+)?", text)
    return f"{float(text):g}" if number else words.get(text, text)


def usual_values() -> dict[str, str]:
    """The default of each flag that --help lists, by each of its names."""
    found = {}
    for names, summary in re.findall(r"^  (-.*)\n      (.*)", said_by("--help"), re.MULTILINE):
        is_switch = not re.search(r" [A-Z|a-z]\S*$", names)
        default = re.search(r"\(default(?:: |, )(.*?)\)(?: \(\w+\))?$", summary)
        usual = plain(default[1]) if default else "on" if is_switch and "(default)" in summary else ""
        found |= dict.fromkeys(re.findall(r"(?:^|, )(-[^\s,]+)", names), usual)
    return found


def test_each_default_is_llama_servers_or_among_the_differences_that_the_page_lists():
    ours = usual_values()
    differences = {}
    for names, text in documented():
        default = re.search(r"default: ?((?:[^()<]|\([^)]*\))*)", text)
        if names[0] not in ours or not default:
            continue
        theirs, here = plain(default[1]), ours[names[0]]
        if theirs != here and (theirs, here) not in SAME:
            differences[max((name for name in names if not name.startswith("--no-")), key=len)] = (
                theirs,
                here,
            )
    page = (ROOT / "docs/serving.md").read_text().partition("\n### Defaults that differ\n")[2]
    listed = re.findall(r"^\| `(-\S+)` \| (.*?) \| (.*?) \| \S", page.partition("\n#")[0], re.MULTILINE)
    assert {flag: (plain(theirs), plain(here)) for flag, theirs, here in listed} == differences


@pytest.fixture(scope="module")
def without_effect(readme, helped) -> str:
    """What is said of all variables at once that --help does not list."""
    others = {variable: "1" for names, variable in readme if variable and names[0] not in helped}
    said = said_by("no.gguf")
    assert "no effect" not in said
    notes = ""
    while True:  # one that is refused hides the others
        said = said_by("no.gguf", **others)
        refused = re.search(r"environment's (\w+) is llama-server's", said)
        if not refused:
            return notes + said
        notes += said
        del others[refused[1]]


def test_each_flag_of_its_readme_is_known_and_says_what_to_do_instead(readme, helped):
    taken = set(re.search(r"serve\) words='([^']*)'", said_by("--completion-bash"))[1].split())
    assert set(helped) <= taken | {"--config"}
    unknown, silent = [], []
    for names, _ in readme:
        for name in set(names) - taken:
            said = said_by(MODEL, name, "1")
            unknown += [name] if f"'{name}' is no option" in said else []
            silent += [name] if not re.search(rf"{re.escape(name)} is llama-server's: .{{20}}", said) else []
    assert (unknown, silent) == ([], []), "options/flags.cpp lacks flags of the pinned README"


def test_each_variable_of_its_readme_has_the_fate_of_its_flag(readme, helped, without_effect):
    wrong = []
    for names, variable in readme:
        if not variable:
            continue
        if names[0] in helped:
            wrong += [variable] if {helped.get(name) for name in names} != {variable} else []
        elif variable.startswith("LLAMA_"):
            fate = rf"environment's {variable} (has no effect: |is llama-server's: )."
            wrong += [variable] if not re.search(fate, without_effect) else []
    assert wrong == []


def test_the_page_of_flags_lists_those_that_help_does_not_with_what_the_program_says(readme, helped):
    page = (ROOT / "docs/llama-server-flags.md").read_text()
    rows = re.findall(r"^\| (`-.*`) \| (.*) \|$", page, re.MULTILINE)
    reasons = {name: why for names, why in rows for name in re.findall(r"`(-[^`]+)`", names)}
    lacking = [names for names, _ in readme if names[0] not in helped and names[0] not in reasons]
    assert lacking == [] and not set(reasons) & set(helped)
    silent = {name for name, why in reasons.items() if why not in said_by("no.gguf", name, "1")}
    switches = {name for name in silent if reasons[name] not in said_by("no.gguf", name)}
    assert switches == set()


@pytest.mark.parametrize(
    "arguments,says",
    [
        (["--prio", 2], "nice"),
        (["--poll", 50], "sleep"),
        (["--cont-batching"], "share batches"),
        (["--no-warmup"], "no warm-up"),
        (["--video-fps", 3], "no video"),
    ],
    ids=str,
)
def test_a_flag_without_effect_says_why_in_a_line(arguments, says):
    said = said_by("no.gguf", *arguments)
    (line,) = [line for line in said.splitlines() if f"{arguments[0]} has no effect" in line]
    assert says in line


@pytest.mark.parametrize("flag", ["--no-agent", "--no-ui-mcp-proxy", "--no-skip-chat-parsing"])
def test_what_turns_off_something_that_is_not_here_is_taken(flag):
    assert "there is no such file" in said_by("no.gguf", flag)


@pytest.mark.parametrize("flag", ["-tz", "-xyz", "-q"])
def test_a_short_flag_that_is_unknown_gets_no_suggestion(flag):
    said = serve_arguments_are_refused(MODEL, flag, 1)
    assert f"'{flag}' is no option" in said and "did you mean" not in said


def test_a_switch_may_be_turned_off_by_llama_servers_older_variables(serve):
    server = serve(LLAMA_ARG_NO_CACHE_PROMPT="1", LLAMA_ARG_NO_UI="1")
    assert server.get("/").status_code == 404
    assert server.json("/props")["default_generation_settings"]["params"]["cache_prompt"] is False


def n_ctx(server) -> int:
    return server.json("/props")["default_generation_settings"]["n_ctx"]


def test_a_context_of_0_is_the_one_that_the_model_was_trained_with(serve, tmp_path):
    """Here more than 8,192 tokens."""
    write_story_model(tmp_path / "long.gguf", context=16384)
    for arguments, tokens in {(): 16384, ("-c", 0): 16384, ("-c", 0, "-np", 4): 4096}.items():
        assert n_ctx(serve(*arguments, model=tmp_path / "long.gguf")) == tokens


@pytest.mark.parametrize("size", [-1, -512, "many"])
def test_a_negative_context_is_an_error(size):
    assert "--ctx-size" in serve_arguments_are_refused(MODEL, "--ctx-size", size)


def test_the_context_of_a_slot_decides_on_that_of_all(serve):
    server = serve("--kv-unified-per-slot", 128, "--parallel", 3)
    assert n_ctx(server) == 128


def test_flags_of_answers_reach_every_request(serve, tmp_path):
    (tmp_path / "grammar").write_text('root ::= "fox" | "dog"\n')
    server = serve(
        "--grammar-file", tmp_path / "grammar", "--dry-sequence-breaker", r"a\nb", "-r", r"\t", "-r", "##"
    )
    assert server.json("/completion", {"prompt": STORY})["content"] in ("fox", "dog")
    settings = server.json("/props")["default_generation_settings"]["params"]
    assert settings["dry_sequence_breakers"] == ["a\nb"] and settings["stop"] == ["\t", "##"]


def test_no_text_ends_a_sequence_that_dry_looks_for(serve):
    """The model writes one letter for ever, and a breaker in it leaves DRY nothing to look for."""
    strong = ["--dry-multiplier", 1000, "--dry-allowed-length", 1, "--temp", 0, *ENDLESSLY]
    body = {"prompt": "fox fox fox fox fox fox", "n_predict": 40, "ignore_eos": True}
    texts = [
        serve(*strong, "--dry-sequence-breaker", breaker).json("/completion", body)["content"]
        for breaker in ("none", "e")
    ]
    assert texts[0] != texts[1]


def test_a_requests_values_for_the_template_stand_over_the_servers(serve, tmp_path):
    (tmp_path / "template").write_text("{{ first }} {{ second }} {{ messages[0].content }}")
    kwargs = ["--chat-template-kwargs", '{"first": "a", "second": "b"}']
    server = serve("--chat-template-file", tmp_path / "template", *kwargs)
    body = {"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": {"second": "c"}}
    assert server.json("/apply-template", body)["prompt"] == "a c x"
    assert server.json("/apply-template", {"messages": body["messages"]})["prompt"] == "a b x"


def test_a_schema_may_stand_in_a_file(serve, tmp_path):
    (tmp_path / "schema").write_text(
        '{"type": "object", "properties": {"a": {"const": 7}}, "required": ["a"]}'
    )
    server = serve("-jf", tmp_path / "schema")
    assert re.sub(r"\s", "", server.json("/completion", {"prompt": STORY})["content"]) == '{"a":7}'
    (tmp_path / "schema").write_text("{")
    assert "--json-schema-file" in serve_arguments_are_refused(
        MODEL, "--json-schema-file", tmp_path / "schema"
    )


def test_a_token_may_be_made_likely_or_impossible(serve):
    plain = serve()
    body = {"prompt": STORY, "n_predict": 1, "return_tokens": True, **GREEDY}
    first = plain.json("/completion", body)["tokens"][0]
    (other,) = plain.tokens("2")
    assert serve("--logit-bias", f"{first}-inf").json("/completion", body)["tokens"][0] != first
    assert serve("-l", f"{other}+1000").json("/completion", body)["tokens"] == [other]
    assert "--logit-bias" in serve_arguments_are_refused(MODEL, "--logit-bias", "fox+1")


def test_a_draft_model_has_devices_threads_and_a_cache_of_its_own(serve):
    body = {"prompt": STORY, "n_predict": 40, "ignore_eos": True, **GREEDY}
    plain = serve().json("/completion", body)
    server = serve(
        "--metrics", "-md", MODEL, "-ctkd", "q8_0", "-ctvd", "q8_0", "-fa", "on", "-td", 1, "-tbd", 1,
        "-devd", "none", "--spec-draft-n-min", 2, "--spec-draft-p-min", 0.1,
    )  # fmt: skip
    drafted = server.json("/completion", body)
    assert drafted["content"] == plain["content"] and drafted["timings"]["draft_n_accepted"] > 10
    metrics = server.metrics()
    drafts = metrics["llamacpp:spec_decode_num_drafts_total"]
    assert 0 < 2 * drafts <= metrics["llamacpp:spec_decode_num_draft_tokens_total"], (
        "each of two tokens at least"
    )
    accepted = [
        metrics[f'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{{position="{at}"}}'] for at in (0, 1)
    ]
    assert drafts >= accepted[0] >= accepted[1] > 0


def test_drafts_that_are_too_short_or_unlikely_are_not_used(serve):
    body = {"prompt": STORY, "n_predict": 40, "ignore_eos": True, **GREEDY}
    for arguments in (["--spec-draft-n-min", 30, "--spec-draft-n-max", 20], ["--spec-draft-p-min", 1]):
        server = serve("-md", MODEL, *arguments)
        assert server.json("/completion", body)["timings"].get("draft_n", 0) == 0


def test_wrong_devices_and_buffers_are_named_with_those_that_there_are():
    for arguments in (["-dev", "GPU9"], ["-devd", "GPU9", "-md", MODEL]):
        said = serve_arguments_are_refused(MODEL, *arguments, status=1)
        assert re.search("no device is called 'GPU9'; there are: .*CPU", said)
    for flag in ("-ot", "-otd"):
        said = serve_arguments_are_refused(MODEL, flag, "ffn=NOPE", "-md", MODEL, status=1)
        assert "'ffn=NOPE'" in said and "CPU" in said


def test_flags_of_placement_are_taken_where_there_is_only_a_cpu(serve):
    server = serve(
        "-dev", "none", "-ts", "3,1", "-cmoe", "-ncmoe", 1, "-ncffn", 1, "-ot", "ffn_up=CPU", "--no-host",
        "--no-op-offload", "--lazy-mode", "off", "--numa", "numactl", "-fit", "off", "-fitt", 512,
    )  # fmt: skip
    answer = server.json("/completion", {"prompt": "1+1=", "n_predict": 1, **GREEDY})
    assert answer["content"] == "2"


def test_adapters_may_be_loaded_without_being_applied(serve, models):
    body = {"prompt": "Once", "n_predict": 12, "cache_prompt": False, **GREEDY}
    plain = serve(model=models / "stories.gguf").json("/completion", body)["content"]
    server = serve(
        "--lora", models / "adapter.gguf", "--lora-init-without-apply", model=models / "stories.gguf"
    )
    assert server.json("/lora-adapters")[0]["scale"] == 0
    assert server.json("/completion", body)["content"] == plain
    server.json("/lora-adapters", [{"id": 0, "scale": 1}])
    assert server.json("/completion", body)["content"] != plain


def test_an_assistants_last_message_may_be_one_that_is_answered(serve):
    messages = [{"role": "user", "content": "What is 2+3?"}, {"role": "assistant", "content": "2+"}]
    server = serve("--no-prefill-assistant")
    prompt = server.json("/apply-template", {"messages": messages})["prompt"]
    assert prompt.endswith("2+<|im_end|>\n<|im_start|>assistant\n")


def test_all_paths_may_have_a_prefix(serve):
    server = serve("--api-prefix", "/llm", "--alias", "tiny")
    assert server.url.endswith("/llm"), "as it is announced"
    root = server.url.removesuffix("/llm")
    assert requests.get(root + "/llm/health").json() == {"status": "ok"}
    for path in ("/health", "/llmhealth", "/v1/models"):
        assert requests.get(root + path).status_code == 404
    page = requests.get(root + "/llm", allow_redirects=False)
    assert (page.status_code, page.headers["Location"]) == (308, "/llm/")
    error = requests.post(root + "/llm/api/chat", json={"model": "none"})
    assert list(error.json()) == ["error"] and isinstance(error.json()["error"], str), "in Ollama's shape"
    assert "--api-prefix" in serve_arguments_are_refused(MODEL, "--api-prefix", "llm/")


def test_streams_that_wait_show_signs_of_life_as_often_as_is_asked_for(serve):
    server = serve(*ENDLESSLY, "--parallel", 1, "--sse-ping-interval", 1)
    with endless_answer(server):
        wait_for(lambda: server.busy_slots() == 1)
        begin = time.monotonic()
        with endless_answer(server) as waiting:
            assert next(waiting.iter_content(16)).startswith(b":")
        assert 0.9 < time.monotonic() - begin < 10


def test_two_servers_may_listen_at_one_port_if_both_say_so(serve):
    port = free_port()
    serve("--reuse-port", port=port)
    assert serve("--reuse-port", port=port).json("/health") == {"status": "ok"}


def test_browsers_hear_which_methods_and_headers_other_pages_may_use(serve):
    server = serve("--cors-origins", "http://a.example", "--cors-methods", "GET", "--cors-headers", "X-Mine",
                   "--cors-credentials")  # fmt: skip
    headers = server.ask("OPTIONS", "/v1/models", headers={"Origin": "http://a.example"}).headers
    assert headers["Access-Control-Allow-Methods"] == "GET"
    assert headers["Access-Control-Allow-Headers"] == "X-Mine"
    assert headers["Access-Control-Allow-Credentials"] == "true"


@pytest.mark.parametrize("flag,value", [("--cpu-mask", "1"), ("--cpu-mask", "0x1"), ("--cpu-range", "0-0")])
def test_threads_keep_to_the_cpus_that_are_named(serve, flag, value):
    server = serve(flag, value)
    for task in Path(f"/proc/{server.process.pid}/task").iterdir():
        assert re.search(r"^Cpus_allowed_list:\s+0$", (task / "status").read_text(), re.MULTILINE)


def test_devices_and_completions_are_printed(tmp_path):
    assert re.match(r"Available devices:\n(.*\n)*  CPU: ", said_by("--list-devices"))
    script = said_by("--completion-bash")
    asked = "COMP_WORDS=(headrace serve --ctx); COMP_CWORD=2; _headrace; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, timeout=30)
    assert "--ctx-size" in done.stdout.split(), done.stderr


def test_verbosity_is_llama_servers(serve):
    quiet, usual = serve("-lv", 1, "--port", 0), serve()
    for server in (quiet, usual):
        server.get("/v1/models")
    assert "/v1/models" in usual.log() and "/v1/models" not in quiet.log()
