"""What one client must not reach of another's, and of the server's own."""

import pytest

KEYS = ("first-key", "second-key")
TEMPLATE = "{{ messages[0].content }} in a template of the request's own"


@pytest.fixture(scope="module")
def server(serve):
    return serve("--api-key", KEYS[1], key=KEYS[0])


def prompt_tokens(server, key: str, **more) -> int:
    body = {
        "messages": [{"role": "user", "content": "What is 2+3?"}],
        "max_tokens": 8,
        "temperature": 0,
        **more,
    }
    answer = server.ask("POST", "/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.text
    return answer.json()["usage"]["prompt_tokens"]


@pytest.mark.parametrize(
    "spelling", ["session.id", "session-id", "Session_ID", "sampling.session_id", "session_id"]
)
def test_a_key_reaches_no_session_of_another_one_however_it_spells_the_name(server, spelling):
    alone = prompt_tokens(server, KEYS[0])
    name = f"sums {spelling}"
    prompt_tokens(server, KEYS[0], session=name)
    assert prompt_tokens(server, KEYS[0], session=name) > alone, "the session remembers"
    for other in (name, f"0:{name}"):
        assert prompt_tokens(server, KEYS[1], **{spelling: other}) == alone


def test_the_longest_names_of_sessions_are_a_keys_own_too(server):
    alone = prompt_tokens(server, KEYS[0])
    name = "x" * 256
    prompt_tokens(server, KEYS[0], session=name)
    assert prompt_tokens(server, KEYS[0], session=name) > alone
    assert prompt_tokens(server, KEYS[0], session=name[1:] + "y") == alone
    assert prompt_tokens(server, KEYS[1], session=name) == alone


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/chat/completions/input_tokens",
        "/apply-template",
        "/v1/responses",
        "/v1/responses/input_tokens",
    ],
)
def test_no_path_runs_a_template_of_the_request(server, path):
    given = {"messages": [{"role": "user", "content": "Hello"}], "input": "Hello", "max_tokens": 1}
    answer = server.ask("POST", path, json={**given, "chat_template": TEMPLATE})
    assert answer.status_code == 400, answer.text
    assert "--allow-templates" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "path", ["/v1/models", "/models", "/v1/models/tiny", "/api/tags", "/props", "/slots"]
)
def test_what_a_server_has_is_told_to_those_with_a_key(server, path):
    assert server.ask("GET", path, headers={"Authorization": ""}).status_code == 401
    assert server.get(path).status_code in (200, 404)


def test_slots_show_and_give_a_key_only_what_its_own_requests_left(serve, tmp_path):
    server = serve("--api-key", "alice,bob", "--slots", "--parallel", 1, "--slot-save-path", tmp_path)
    alice, bob = ({"Authorization": f"Bearer {key}"} for key in ("alice", "bob"))
    body = {"prompt": "1+1=", "n_predict": 1, "stop": ["SECRET"]}
    assert server.post("/completion", body, headers=alice).status_code == 200
    (slot,) = server.get("/slots", headers=alice).json()
    assert slot["params"]["stop"] == ["SECRET"]
    (slot,) = server.get("/slots", headers=bob).json()
    assert "params" not in slot and slot["id"] == 0
    for action in ("save", "erase"):
        path = f"/slots/0?action={action}"
        refused = server.post(path, {"filename": "a"}, headers=bob)
        assert refused.status_code == 403 and "another key" in refused.json()["error"]["message"]
        assert server.post(path, {"filename": "a"}, headers=alice).status_code == 200


def test_a_key_may_stand_without_the_word_before_it(server):
    assert server.ask("GET", "/v1/models", headers={"Authorization": KEYS[1]}).status_code == 200
    assert server.ask("GET", "/v1/models", headers={"Authorization": KEYS[1][:-1]}).status_code == 401
