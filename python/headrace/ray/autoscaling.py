"""How many replicas the queues ask for. Pickled by value into Serve's controller, so it stands alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ray.serve.config import AutoscalingContext


class QueueDepth:
    """As many replicas as run what runs and waits now, `streams` at once each.

    Replicas report what their engine runs and how many wait in its queue (`record_autoscaling_stats`);
    requests that no replica has taken yet are Serve's own count. Serve's delays and bounds apply to the
    result.
    """

    def __init__(self, streams: int = 8) -> None:
        self._streams = streams

    def __call__(self, context: AutoscalingContext) -> tuple[int, dict]:
        metrics = context.aggregated_metrics or {}
        inside = sum(sum(metrics.get(name, {}).values()) for name in ("running", "waiting"))
        wanted = math.ceil((inside + (context.total_queued_requests or 0)) / self._streams)
        bounds = context.capacity_adjusted_min_replicas, context.capacity_adjusted_max_replicas
        return max(bounds[0], min(wanted, bounds[1])), {}
