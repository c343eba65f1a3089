"""Which replica serves a request. Pickled by value into every process that routes, so it stands alone."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

from ray.serve.request_router import RequestRouter

if TYPE_CHECKING:
    from ray.serve.request_router import PendingRequest, RunningReplica


class AffinityRouter(RequestRouter):
    """Sends what begins alike to the same replica, unless that one has much more to do than the others.

    Rendezvous hashing: each replica's hash with the request's affinity (`session_id` of the handle) ranks it,
    so that all routers agree without talking, and a replica that goes away or comes moves only its own share.
    A replica that runs the `streams` it can run at once comes after those that have room, and where none has,
    one with more than `slack` times the mean comes last: a prompt that everybody sends does not pile up on
    one.
    """

    def initialize_state(self, streams: int = 8, slack: float = 1.25) -> None:
        self._streams = streams
        self._slack = slack

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        if pending_request is None or not candidate_replicas:
            return [candidate_replicas]
        # Between rounds in which no replica took the request.
        pending_request.routing_context.should_backoff = True
        key = pending_request.metadata.session_id or pending_request.metadata.internal_request_id
        ranked = sorted(candidate_replicas, key=lambda r: _score(key, r.replica_id.unique_id), reverse=True)
        loads = {r.replica_id: self.replica_queue_len_cache.get(r.replica_id) or 0 for r in ranked}
        most = bound(list(loads.values()), self._streams, self._slack)
        ranked.sort(key=lambda r: loads[r.replica_id] >= most)  # stable: the order stays otherwise
        return [[replica] for replica in ranked]


def bound(loads: list[int], streams: int, slack: float) -> int:
    """The number of requests from which on a replica is passed over."""
    if min(loads) < streams:
        return streams
    return math.ceil(slack * (sum(loads) + 1) / len(loads))


def _score(key: str, replica: str) -> bytes:
    return hashlib.blake2b(f"{replica} {key}".encode(), digest_size=8).digest()
