"""What callers over HTTP see of replies and statistics: the JSON that the WASI-NN libraries give, too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.language_model import LanguageModelStatistics, Reply, ToolCall

#: Attributes of a reply that are named only where there is something to say.
OCCASIONAL = ("stop_detail", "pauses", "context_shifts", "dropped_messages", "probabilities", "reasoning")
REQUESTS = ("submitted", "finished", "failed", "cancelled", "rejected", "waiting", "running")


def metadata(reply: Reply, with_tokens: bool) -> dict[str, object]:
    """All about an answer but its text."""
    whole = reply.to_dict()
    found = {
        "input_tokens": reply.prompt_tokens,
        "output_tokens": reply.generated_tokens,
        "cached_tokens": reply.cached_tokens,
        "stop_reason": reply.stop_reason,
        "model": reply.model,
        "timings": whole["timings"],
    }
    found |= {name: whole[name] for name in OCCASIONAL if whole[name]}
    if reply.drafted_tokens:
        found["speculation"] = {"drafted": reply.drafted_tokens, "accepted": reply.accepted_tokens}
    if with_tokens:
        found["tokens"] = reply.tokens
    if reply.tool_calls:
        found["tool_calls"] = [
            {"name": call.name, "arguments": _arguments(call)} for call in reply.tool_calls
        ]
    if whole["warnings"]:
        found["warnings"] = whole["warnings"]
    return found


def _arguments(call: ToolCall) -> object:
    """As JSON where the model has written such."""
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments


def statistics(numbers: LanguageModelStatistics) -> dict[str, object]:
    n = numbers
    graph = {
        "name": n.name,
        "model": n.description,
        "weight_bytes": n.weight_bytes,
        "requests": {name: getattr(n, name) for name in REQUESTS},
        "tokens": {
            "prompt": n.prompt_tokens,
            "cached": n.cached_tokens,
            "generated": n.generated_tokens,
            "drafted": n.drafted_tokens,
            "accepted": n.accepted_tokens,
        },
        "steps": {
            "count": n.steps,
            "longest_ms": n.longest_step_ms,
            "threads": n.threads,
            "pauses": n.pauses,
            "overtaken": n.overtaken_steps,
            "broken_off": n.broken_off_steps,
        },
        "cache": {
            "sequences": n.remembered_sequences,
            "tokens": n.remembered_tokens,
            "ram_bytes": n.ram_cache_bytes,
            "evictions": n.evictions,
            "context_shifts": n.context_shifts,
            "context_tokens": n.context_tokens,
            "disk_bytes": n.disk_cache_bytes,
            "disk_tokens": n.disk_cached_tokens,
            "disk_failures": n.disk_failures,
        },
    }
    return {
        "sessions": {"named": n.named_sessions, "anonymous": n.anonymous_sessions},
        "process": {
            "models": n.process_models,
            "engines": n.process_engines,
            "resident_bytes": n.process_resident_bytes,
            "memory_share_in_use": n.memory_share_in_use,
        },
        "graphs": [graph],
    }
