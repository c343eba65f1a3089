"""A local Ray of two CPUs with Serve, and the tiny model on two replicas."""

from __future__ import annotations

import os
import socket

import pytest
from callers import MODEL, STREAMS, Caller


@pytest.fixture(scope="session")
def cluster():
    """Where Serve listens."""
    # A machine with other work needs longer than Serve gives its proxy; Ray's workers are nice by default.
    os.environ.update(
        RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S="120",
        RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S="120",
        RAY_worker_niceness="0",
        RAY_USAGE_STATS_ENABLED="0",
        HEADRACE_LOG="none",
    )
    import ray
    from ray import serve

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    yield port
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="session")
def chat(cluster) -> Caller:
    """The tiny model on two replicas."""
    import headrace.ray
    from ray import serve

    application = headrace.ray.application(
        MODEL, {"context_shift": True}, replicas=2, cpus=0.5, streams=STREAMS, max_waiting=48
    )
    handle = serve.run(application, name="chat", route_prefix="/chat")
    return Caller(cluster, "/chat", handle)
