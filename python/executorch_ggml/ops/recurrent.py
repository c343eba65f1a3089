"""Recurrent networks over whole sequences."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, arguments, lowers


@lowers("aten.lstm.input")
def lstm(t: Translator, node: torch.fx.Node) -> list[Value]:
    """Layers one after the other; in each, both directions are one op."""
    a = arguments(node)
    if a["train"] and a["dropout"]:
        raise Unsupported("dropout")
    x, (hidden, cell) = t.value(a["input"]), (t.value(state) for state in a["hx"])
    ways = 2 if a["bidirectional"] else 1
    per_layer = ways * (4 if a["has_biases"] else 2)
    if len(a["params"]) != per_layer * a["num_layers"]:
        raise Unsupported("projections")
    if a["batch_first"]:
        x = t.transpose(x, [1, 0, 2])
    hiddens, cells = [], []
    for layer in range(a["num_layers"]):
        weights = [t.value(w) for w in a["params"][layer * per_layer : (layer + 1) * per_layer]]
        states = [_layer_state(t, state, layer * ways, ways) for state in (hidden, cell)]
        last, last_cell, every = _layer(t, x, weights, states, ways)
        hiddens.append(last)
        cells.append(last_cell)
        steps, _, batch, width = t.shape(every)
        x = t.reshape(t.transpose(every, [0, 2, 1, 3]), [steps, batch, ways * width])
    if a["batch_first"]:
        x = t.transpose(x, [1, 0, 2])
    return [x, _joined(t, hiddens), _joined(t, cells)]


def _layer(t: Translator, x: Value, weights: list[Value], states: list[Value], ways: int) -> list[Value]:
    """ATen has each direction's input weight, recurrent weight and perhaps two biases in a row."""
    each = len(weights) // ways

    def both(index: int) -> Value | None:
        if index >= each:
            return None
        parts = [weights[way * each + index] for way in range(ways)]
        return _joined(t, [t.reshape(part, [1, *t.shape(part)]) for part in parts])

    options: dict[str, Any] = {
        "hidden_size": t.shape(weights[1])[1],
        "layout": "ifgo",
        "return_sequence": True,
    }
    options["direction"] = "both" if ways == 2 else "forward"
    return t.ops("lstm", [x, *(both(i) for i in range(4)), None, *states], **options)


def _layer_state(t: Translator, state: Value, first: int, count: int) -> Value:
    sizes = [count, *t.shape(state)[1:]]
    return t.op("slice", state, starts=[first, 0, 0], sizes=sizes)


def _joined(t: Translator, parts: list[Value]) -> Value:
    return parts[0] if len(parts) == 1 else t.ops("concat", parts, axis=0)[0]
