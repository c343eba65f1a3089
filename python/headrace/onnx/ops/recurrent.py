"""Recurrent networks over whole sequences."""

from __future__ import annotations

import numpy as np

from ..graph import Extent, Graph, Operand, known
from ..numbers import checked, is_known
from ..registry import Node, invalid_if, reads, refuse_if
from .recurrent_lengths import of_lengths
from .reduction import is_zero
from .stepped_lstm import stepped

_DIRECTIONS = {"forward": "forward", "reverse": "backward", "bidirectional": "both"}
_WAYS = {"forward": [False], "backward": [True], "both": [False, True]}  # which go backwards
_OPEN = 1e4  # far enough for sigmoid to be exactly 0 or 1


def _functions(node: Node, default: list[str]) -> str:
    """The activations of one direction, which must be those of the other, too."""
    names = [str(name).lower() for name in node.get("activations") or default]
    count = len(default)
    invalid_if(len(names) % count, f"activations are {names}; each direction has {count}")
    parts = [names[i : i + count] for i in range(0, len(names), count)]
    refuse_if(
        any(part != parts[0] for part in parts),
        f"activations are {names}; the two directions must have the same",
    )
    unknown = sorted(set(names) - {"relu", "sigmoid", "tanh"})
    refuse_if(unknown, f"activations are {names}; relu, sigmoid and tanh are read")
    refuse_if(
        node.get("clip"),
        f"clip is {node.get('clip')}; only cells that are not limited are read",
        "Export the model without it",
    )
    return ",".join(parts[0])


def _direction(node: Node) -> str:
    direction = node.get("direction", "forward")
    invalid_if(
        direction not in _DIRECTIONS, f"direction is '{direction}'; {', '.join(_DIRECTIONS)} are ONNX's"
    )
    return _DIRECTIONS[direction]


def _is_whole(g: Graph, x: Operand, lengths: Operand | None) -> bool:
    """Whether all sequences of [steps, batch, features] are known to be as long as that."""
    if lengths is None:
        return True
    steps = g.shape(x)[0]
    return is_known(lengths) and not isinstance(steps, Extent) and bool(np.all(lengths.array == steps))


def _lengths(g: Graph, node: Node, x: Operand) -> Operand | None:
    """Of the sequences of [steps, batch, features]; None where all are known to be as long as that."""
    lengths = node.optional(4)
    if _is_whole(g, x, lengths):
        return None
    return checked(g, lengths, "the length of a sequence", 0, g.shape(x)[0])


def _biases(g: Graph, node: Node, gates: int, hidden: int) -> tuple[Operand | None, Operand | None]:
    """Those of the input and of the state, which lie behind one another."""
    both = node.optional(3)
    if both is None:
        return None, None
    return tuple(g.cut(both, 1, i * gates * hidden, gates * hidden) for i in (0, 1))


def _state(g: Graph, node: Node, index: int) -> Operand | None:
    state = node.optional(index)
    if state is None:
        return None
    return g.transpose(state, [1, 0, 2]) if node.get("layout", 0) else state


def _hidden_size(g: Graph, node: Node) -> int:
    return g.fixed(g.shape(node.operand(2))[2], "the hidden size")


def _outputs(g: Graph, node: Node, every: Operand, states: list[Operand]) -> list[Operand]:
    if node.get("layout", 0):  # [batch, steps, directions, hidden] and [batch, directions, hidden]
        return [g.transpose(every, [2, 0, 1, 3]), *(g.transpose(s, [1, 0, 2]) for s in states)]
    return [every, *states]


@reads("LSTM")
def lstm(g: Graph, node: Node) -> list[Operand]:
    refuse_if(
        node.get("input_forget", 0),
        f"input_forget is {node.get('input_forget')}; only 0 is read, gates that are not coupled",
    )
    hidden = _hidden_size(g, node)
    x = g.transpose(node.x, [1, 0, 2]) if node.get("layout", 0) else node.x
    lengths = _lengths(g, node, x)
    if lengths is not None or not is_zero(node.optional(7)):
        return _lstm_by_steps(g, node, x, lengths)
    last, cell, every = g.ops(
        "lstm",
        [
            x,
            node.operand(1),
            node.operand(2),
            *_biases(g, node, 4, hidden),
            None,
            _state(g, node, 5),
            _state(g, node, 6),
        ],
        hidden_size=hidden,
        layout="iofg",
        activations=_functions(node, ["Sigmoid", "Tanh", "Tanh"]),
        return_sequence=True,
        direction=_direction(node),
    )
    return _outputs(g, node, every, [last, cell])


def _lstm_by_steps(g: Graph, node: Node, x: Operand, lengths: Operand | None) -> list[Operand]:
    functions, hidden = _functions(node, ["Sigmoid", "Tanh", "Tanh"]), _hidden_size(g, node)
    refuse_if(
        functions != "sigmoid,tanh,tanh",
        f"activations are {functions}, and there are peepholes or sequences of several lengths",
        "Export the model with sigmoid and tanh, or without these",
    )
    ways = _WAYS[_direction(node)]
    weights, biases = (node.operand(1), node.operand(2)), _biases(g, node, 4, hidden)
    states = (_state(g, node, 5), _state(g, node, 6))
    last, cell, every = stepped(g, x, weights, biases, node.optional(7), states, lengths, ways)
    return _outputs(g, node, every, [last, cell])


def _gru(g: Graph, node: Node, weights: list[Operand | None], functions: str, after: bool) -> list[Operand]:
    options = {
        "hidden_size": _hidden_size(g, node),
        "layout": "zrn",
        "reset_after": after,
        "activations": functions,
        "return_sequence": True,
    }
    first = _state(g, node, 5)
    x = g.transpose(node.x, [1, 0, 2]) if node.get("layout", 0) else node.x
    lengths = _lengths(g, node, x)
    if lengths is None:
        last, every = g.ops("gru", [x, *weights, first], direction=_direction(node), **options)
        return _outputs(g, node, every, [last])

    def forwards(x: Operand, i: int) -> Operand:
        own = [None if v is None else g.cut(v, 0, i, 1) for v in (*weights, first)]
        every = g.ops("gru", [x, *own], direction="forward", **options)[1]
        steps, _, batch, hidden = g.shape(every)
        return g.reshape(every, [steps, batch, hidden])

    last, every = of_lengths(g, x, lengths, _WAYS[_direction(node)], forwards)
    return _outputs(g, node, every, [last])


@reads("GRU")
def gru(g: Graph, node: Node) -> list[Operand]:
    weights = [node.operand(1), node.operand(2), *_biases(g, node, 3, _hidden_size(g, node))]
    functions = _functions(node, ["Sigmoid", "Tanh"])
    return _gru(g, node, weights, functions, bool(node.get("linear_before_reset", 0)))


@reads("RNN")
def rnn(g: Graph, node: Node) -> list[Operand]:
    """A GRU whose gates stand still: nothing of the old state is kept, and nothing of it is reset."""
    hidden, function = _hidden_size(g, node), _functions(node, ["Tanh"])
    w, r = node.operand(1), node.operand(2)
    ways = g.fixed(g.shape(w)[0], "the number of directions")
    g.check_extent(2 * ways * hidden)

    def behind_gates(x: Operand) -> Operand:
        gates = g.filled(0, x.dtype, [ways, 2 * hidden, g.shape(x)[2]])
        return g.concat([gates, x], 1)

    closed = np.concatenate([np.full(hidden, -_OPEN), np.full(hidden, _OPEN)])
    gates = known(np.broadcast_to(closed, [ways, 2 * hidden]), w.dtype)
    input_bias, state_bias = _biases(g, node, 1, hidden)
    zeros = known(np.zeros([ways, hidden]), w.dtype)
    bias = g.concat([gates, zeros if input_bias is None else input_bias], 1)
    weights = [behind_gates(w), behind_gates(r), bias]
    if state_bias is not None:
        weights.append(g.concat([known(np.zeros([ways, 2 * hidden]), w.dtype), state_bias], 1))
    else:
        weights.append(None)
    return _gru(g, node, weights, f"sigmoid,{function}", True)
