"""Bodies that hypothesis makes: known fields with any values, any objects, and damaged JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serve_program import MODEL
from wrong_values import BODIES, is_error_of

bounded = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
#: Cuts requests short that are right by chance.
SHORT = {"max_tokens": 2, "n_predict": 2, "max_output_tokens": 2, "timeout_ms": 5000}
SHORT["options"] = {"num_predict": 2}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 300),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(
        ["", "auto", "required", "none", "json", "user", "assistant", "text", "function", "\0", "\ud800"]
    ),
)
names = st.one_of(
    st.sampled_from(sorted({field for _, fields in BODIES.values() for field in fields})),
    st.sampled_from(
        ["role", "content", "type", "text", "name", "function", "schema", "prompt_string", "tool_calls"]
    ),
    st.text(max_size=8),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def server(serve):
    # A request whose answer is long by chance ends soon.
    return serve("--alias", "tiny", "--parallel", 2, "--n-predict", 4, "--request-timeout-ms", 10_000)


def check(server, path: str, data: bytes) -> None:
    """It is answered or refused in the API's shape, and the server lives."""
    response = server.ask("POST", path, data=data, headers={"Content-Type": "application/json"})
    assert response.status_code < 500 or response.status_code in (501, 503, 504), (data[:1000], response.text)
    assert str(MODEL.parent) not in response.text
    if response.headers["Content-Type"].startswith("application/json"):
        body = response.json()
        assert response.status_code == 200 or is_error_of(path, body), (data[:1000], response.text)
    else:
        assert response.status_code == 200, "an error is JSON"
    assert server.process.poll() is None, server.log()[-4000:]


def encoded(body: object) -> bytes:
    return json.dumps(body).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("path", BODIES)
def test_any_values_of_known_fields_are_answered_or_refused(server, path):
    right, fields = BODIES[path]

    @bounded
    @given(st.dictionaries(st.sampled_from(sorted(fields)), values, max_size=3))
    def ask(changes):
        body = {**right, **changes}
        check(server, path, encoded({**body, **{name: SHORT[name] for name in SHORT if name in right}}))

    ask()


@pytest.mark.parametrize("path", BODIES)
def test_any_objects_are_answered_or_refused(server, path):
    @bounded
    @given(st.dictionaries(names, values, max_size=6))
    def ask(body):
        check(server, path, encoded({**body, **SHORT}))

    ask()


@pytest.mark.parametrize("path", BODIES)
def test_damaged_requests_are_answered_or_refused(server, path):
    right = json.dumps(BODIES[path][0]).encode()

    @bounded
    @given(st.lists(st.tuples(st.integers(0, len(right) - 1), st.binary(max_size=3)), min_size=1, max_size=4))
    def ask(damages):
        data = bytearray(right)
        for place, put in damages:
            data[place : place + 1] = put
        check(server, path, bytes(data))

    ask()
