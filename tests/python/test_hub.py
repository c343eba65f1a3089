"""Hub: downloads from a local server, the cache, and what goes wrong."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import threading
from pathlib import Path

import numpy as np
import pytest
import webnn


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path):
    """A folder and the address under which a local server shows it."""
    root = tmp_path / "site"
    root.mkdir()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(root))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield root, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def publish(root: Path, model_id: str, content: bytes, digest: str | None = None) -> None:
    folder = root / model_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.hrg").write_bytes(content)
    sha256 = digest or hashlib.sha256(content).hexdigest()
    (folder / "index.json").write_text(
        json.dumps({"files": {"graph": {"name": "model.hrg", "sha256": sha256}}})
    )


@pytest.fixture
def hub(site, tmp_path):
    return webnn.Hub(site[1], tmp_path / "cache")


def test_a_downloaded_graph_loads_and_computes(context, builder, site, hub, tmp_path):
    graph = builder.build({"y": builder.neg(builder.input("x", [2], "float32"))})
    graph.save(str(tmp_path / "graph.hrg"))
    publish(site[0], "someone/negate", (tmp_path / "graph.hrg").read_bytes())
    files = hub.download_model("someone/negate")
    assert files["manifest"] is None and files["weights"] is None
    loaded = webnn.MLGraph.load(files["graph"])
    assert context.compute(loaded, {"x": np.ones(2, np.float32)})["y"].tolist() == [-1, -1]


def test_cached_models_need_no_network(site, hub, tmp_path, monkeypatch):
    publish(site[0], "someone/thing", b"one")
    first = hub.download_model("someone/thing")
    monkeypatch.delenv("HEADRACE_HUB_URL", raising=False)
    offline = webnn.Hub(cache_dir=tmp_path / "cache")
    assert offline.download_model("someone/thing") == first
    assert offline.list_cached_models() == ["someone/thing"]


def test_force_downloads_again(site, hub):
    publish(site[0], "someone/thing", b"one")
    hub.download_model("someone/thing")
    publish(site[0], "someone/thing", b"two")
    assert Path(hub.download_model("someone/thing")["graph"]).read_bytes() == b"one"
    assert Path(hub.download_model("someone/thing", force=True)["graph"]).read_bytes() == b"two"


def test_a_file_with_another_hash_is_not_cached(site, hub):
    publish(site[0], "someone/thing", b"one", digest="0" * 64)
    with pytest.raises(RuntimeError, match=r"model\.hrg of 'someone/thing' has the SHA-256 .*, not 0000"):
        hub.download_model("someone/thing")
    assert hub.list_cached_models() == []
    assert list(hub.cache_dir.iterdir()) == []


def test_a_failed_update_keeps_the_cached_model(site, hub):
    publish(site[0], "someone/thing", b"one")
    path = hub.download_model("someone/thing")["graph"]
    publish(site[0], "someone/thing", b"two", digest="0" * 64)
    with pytest.raises(RuntimeError):
        hub.download_model("someone/thing", force=True)
    assert Path(path).read_bytes() == b"one"


def test_models_are_cleared_one_by_one_or_together(site, hub):
    for name in ("a/one", "a/two", "b/three"):
        publish(site[0], name, b"graph")
        hub.download_model(name)
    hub.clear_cache("a/one")
    assert hub.list_cached_models() == ["a/two", "b/three"]
    hub.clear_cache()
    assert hub.list_cached_models() == []
    hub.clear_cache()


def test_without_an_address_the_error_says_how_to_give_one(tmp_path, monkeypatch):
    monkeypatch.delenv("HEADRACE_HUB_URL", raising=False)
    with pytest.raises(RuntimeError, match="HEADRACE_HUB_URL"):
        webnn.Hub(cache_dir=tmp_path).download_model("someone/thing")


def test_the_address_may_come_from_the_environment(site, tmp_path, monkeypatch):
    publish(site[0], "someone/thing", b"one")
    monkeypatch.setenv("HEADRACE_HUB_URL", site[1] + "/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    hub = webnn.Hub()
    assert Path(hub.download_model("someone/thing")["graph"]).is_relative_to(tmp_path / "home" / "headrace")


def test_models_that_are_not_there_are_runtime_errors(hub):
    with pytest.raises(RuntimeError, match=r"cannot download .*absent/index\.json"):
        hub.download_model("someone/absent")


@pytest.mark.parametrize("model_id", ["", "one", "../up/away", "a/../b", "a/.hidden", "/etc/passwd", "a//b"])
def test_ids_cannot_lead_out_of_the_cache(hub, model_id):
    with pytest.raises(ValueError, match="is no model id"):
        hub.download_model(model_id)
    if model_id:
        with pytest.raises(ValueError, match="is no model id"):
            hub.clear_cache(model_id)


@pytest.mark.parametrize(
    "index", ["no json", "[]", '{"files": {}}', '{"files": {"graph": {"name": "../x"}}}']
)
def test_an_index_that_is_none_is_named(site, hub, index):
    folder = site[0] / "someone" / "thing"
    folder.mkdir(parents=True)
    (folder / "index.json").write_text(index)
    with pytest.raises(RuntimeError, match=r"index\.json of 'someone/thing'"):
        hub.download_model("someone/thing")
