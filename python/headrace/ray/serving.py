"""Language models on Ray Serve: what is deployed, and with which limits."""

from __future__ import annotations

import inspect
import json
import math
from typing import TYPE_CHECKING

from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, RequestRouterConfig

from .autoscaling import QueueDepth
from .gateway import Gateway
from .gguf_file import check_gguf
from .replica import ModelReplica
from .router import AffinityRouter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ray.serve import Application


def application(
    model: str | Path,
    config: Mapping[str, object] | None = None,
    *,
    replicas: int = 1,
    max_replicas: int | None = None,
    streams: int = 8,
    max_waiting: int = 64,
    cpus: float = 1,
    gateways: int = 1,
    attempts: int = 4,
    check_model: bool = True,
) -> Application:
    """A language model for serve.run().

    model: a GGUF file's path, the same on every host. config: its parameters (docs/parameters.md).
    max_replicas: scale between `replicas` and that many by the depth of the queues. streams: answers that a
    replica writes at once. max_waiting: requests that wait in a replica besides, by priority; as many again
    wait in each gateway. cpus: of a replica, and its threads. gateways: stateless processes that callers'
    requests go through. attempts: replicas that a request is sent to, one after the other is lost.
    check_model: whether the file is looked at here first, so that one that is missing or cut off takes the
    place of none that is served.

    Errors: FileNotFoundError, ValueError.
    """
    for name, value in (("replicas", replicas), ("streams", streams), ("max_waiting", max_waiting)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be 1 or more")
    if check_model:
        check_gguf(model)
    most = streams + max_waiting
    scale: dict[str, object] = {"num_replicas": replicas}
    if max_replicas is not None:
        policy = AutoscalingPolicy(policy_function=QueueDepth, policy_kwargs={"streams": streams})
        scale = {
            "autoscaling_config": AutoscalingConfig(
                min_replicas=replicas,
                max_replicas=max_replicas,
                target_ongoing_requests=streams,
                policy=policy,
            )
        }
    deployed = serve.deployment(
        ModelReplica,
        name="model",
        user_config={"model": str(model), "config": {"n_threads": math.ceil(cpus), **(config or {})}},
        # The engine's queue knows priorities and Serve's does not, so requests wait inside.
        max_ongoing_requests=most,
        max_queued_requests=most,
        ray_actor_options={"num_cpus": cpus},
        health_check_period_s=5,
        health_check_timeout_s=30,
        graceful_shutdown_timeout_s=120,
        request_router_config=RequestRouterConfig(
            request_router_class=AffinityRouter, request_router_kwargs={"streams": streams}
        ),
        **scale,
    ).bind(streams, most)
    gateway = serve.deployment(
        Gateway,
        name="gateway",
        num_replicas=gateways,
        max_ongoing_requests=most * (max_replicas or replicas) * 2,
        ray_actor_options={"num_cpus": 0},
        graceful_shutdown_timeout_s=120,
    )
    return gateway.bind(deployed, attempts)


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"


#: A command line has texts only.
FROM_TEXT = {
    **dict.fromkeys(("replicas", "max_replicas", "streams", "max_waiting", "gateways", "attempts"), int),
    "cpus": float,
    "config": json.loads,
    "check_model": _flag,
}


def app(args: Mapping[str, object]) -> Application:
    """The same for `serve run headrace.ray:app model=/srv/model.gguf` and for Serve's configuration files."""
    known = inspect.signature(application).parameters
    values = dict(args)
    for name, value in args.items():
        if name not in known:
            raise ValueError(f"'{name}' is not known; there are {', '.join(known)}")
        if isinstance(value, str) and name in FROM_TEXT:
            try:
                values[name] = FROM_TEXT[name](value)
            except ValueError as error:
                raise ValueError(f"{name} is '{value}': {error}") from None
    if "model" not in values:
        raise ValueError("'model' is missing: the path of a GGUF file")
    return application(**values)
