"""Recurrent networks: ONNX's LSTM and GRU where they mean the same, else a Scan over single steps."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import helper

from .registry import REAL, Node, lowers
from .writer import ONNX_TYPES, Writer

_FUNCTIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}
_DIRECTIONS = {"forward": "forward", "backward": "reverse", "both": "bidirectional"}


def _functions(n: Node) -> list[str]:
    return [_FUNCTIONS[name] for name in n.attributes["activations"].split(",")]


def _reordered(w: Writer, x: str | None, order: list[int], size: int, axis: int) -> str | None:
    """The rows of the gates in another order."""
    if x is None or order == sorted(order):
        return x
    parts = [w.slice(x, gate * size, (gate + 1) * size, axis) for gate in order]
    return w.node("Concat", parts, axis=axis)


def _joint_bias(w: Writer, n: Node, bias: str | None, recurrent: str | None, rows: int) -> str | None:
    """ONNX takes both biases in one operand."""
    if bias is None and recurrent is None:
        return None
    directions = 2 if n.attributes["direction"] == "both" else 1
    zeros = w.reshape(w.vector(0, directions * rows, n.dtype), [directions, rows])
    return w.node("Concat", [bias or zeros, recurrent or zeros], axis=1)


def _weights(w: Writer, n: Node, order: list[int]) -> tuple[list[str | None], str | None]:
    """Weight and recurrent weight with the gates in ONNX's order, and the joint bias."""
    size = n.attributes["hidden_size"]
    weight, recurrent, bias, recurrent_bias = (
        _reordered(w, n.inputs[i], order, size, 1) for i in range(1, 5)
    )
    return [weight, recurrent], _joint_bias(w, n, bias, recurrent_bias, len(order) * size)


@lowers("gru", through=REAL, operands=6)
def gru(w: Writer, n: Node) -> list[str]:
    a = n.attributes
    weights, bias = _weights(w, n, [0, 1, 2] if a["layout"] == "zrn" else [1, 0, 2])
    directions = 2 if a["direction"] == "both" else 1
    sequence, last = w.multi(
        "GRU",
        [n.x, *weights, bias, None, n.inputs[5]],
        2,
        hidden_size=a["hidden_size"],
        direction=_DIRECTIONS[a["direction"]],
        linear_before_reset=int(a["reset_after"]),
        activations=_functions(n) * directions,
    )
    return [last, sequence] if a["return_sequence"] else [last]


@lowers("lstm", through=REAL, operands=8)
def lstm(w: Writer, n: Node) -> list[str]:
    a = n.attributes
    if n.inputs[5] is not None:
        return _lstm_with_peepholes(w, n)
    weights, bias = _weights(w, n, [0, 1, 2, 3] if a["layout"] == "iofg" else [0, 3, 1, 2])
    directions = 2 if a["direction"] == "both" else 1
    sequence, hidden, cell = w.multi(
        "LSTM",
        [n.x, *weights, bias, None, n.inputs[6], n.inputs[7]],
        3,
        hidden_size=a["hidden_size"],
        direction=_DIRECTIONS[a["direction"]],
        activations=_functions(n) * directions,
    )
    return [hidden, cell, sequence] if a["return_sequence"] else [hidden, cell]


@dataclass
class _Gates:
    """One direction's weights [gates * size, inputs], biases [gates * size] and what follows from them."""

    weight: str
    recurrent: str
    bias: str | None
    recurrent_bias: str | None
    size: int
    dtype: str

    def from_input(self, w: Writer, x: str) -> str:
        return _dense(w, x, self.weight, self.bias)

    def from_state(self, w: Writer, h: str) -> str:
        return _dense(w, h, self.recurrent, self.recurrent_bias)

    def take(self, w: Writer, sums: str, gate: int) -> str:
        return w.slice(sums, gate * self.size, (gate + 1) * self.size, 1)


def _dense(w: Writer, x: str, weight: str, bias: str | None) -> str:
    return w.node("Gemm", [x, weight, bias], transB=1)


def _lstm_step(
    w: Writer, n: Node, gates: _Gates, peephole: str | None, x: str, h: str, c: str
) -> tuple[str, str]:
    """One step. All gates see the previous cell, as WebNN has it; ONNX's output gate sees the new one."""
    gate_function, candidate_function, output_function = _functions(n)
    sums = w.node("Add", [gates.from_input(w, x), gates.from_state(w, h)])
    places = dict(
        zip("iofg", [0, 1, 2, 3] if n.attributes["layout"] == "iofg" else [0, 3, 1, 2], strict=True)
    )
    active = {}
    for at, gate in enumerate("iof"):
        total = gates.take(w, sums, places[gate])
        if peephole:
            weights = w.slice(peephole, at * gates.size, (at + 1) * gates.size, 0)
            total = w.node("Add", [total, w.node("Mul", [c, weights])])
        active[gate] = w.node(gate_function, [total])
    candidate = w.node(candidate_function, [gates.take(w, sums, places["g"])])
    kept = w.node("Mul", [active["f"], c])
    cell = w.node("Add", [kept, w.node("Mul", [active["i"], candidate])])
    return w.node("Mul", [active["o"], w.node(output_function, [cell])]), cell


def _gru_step(w: Writer, n: Node, gates: _Gates, x: str, h: str) -> str:
    gate_function, new_function = _functions(n)
    update, reset = (0, 1) if n.attributes["layout"] == "zrn" else (1, 0)
    sums, states = gates.from_input(w, x), gates.from_state(w, h)

    def gate(at: int) -> str:
        return w.node(gate_function, [w.node("Add", [gates.take(w, sums, at), gates.take(w, states, at)])])

    r = gate(reset)
    if n.attributes["reset_after"]:
        from_state = w.node("Mul", [r, gates.take(w, states, 2)])
    else:
        rows = w.slice(gates.recurrent, 2 * gates.size, 3 * gates.size, 0)
        bias = gates.recurrent_bias and w.slice(gates.recurrent_bias, 2 * gates.size, 3 * gates.size, 0)
        from_state = _dense(w, w.node("Mul", [r, h]), rows, bias)
    new = w.node(new_function, [w.node("Add", [gates.take(w, sums, 2), from_state])])
    z = gate(update)
    rest = w.node("Sub", [w.constant(1, gates.dtype), z])
    return w.node("Add", [w.node("Mul", [z, h]), w.node("Mul", [rest, new])])


@lowers("gru_cell", through=REAL, operands=6)
def gru_cell(w: Writer, n: Node) -> str:
    weight, recurrent, h, bias, recurrent_bias = n.inputs[1:6]
    gates = _Gates(weight, recurrent, bias, recurrent_bias, n.attributes["hidden_size"], n.dtype)
    return _gru_step(w, n, gates, n.x, h)


@lowers("lstm_cell", through=REAL, operands=8)
def lstm_cell(w: Writer, n: Node) -> list[str]:
    weight, recurrent, h, c, bias, recurrent_bias, peephole = n.inputs[1:8]
    gates = _Gates(weight, recurrent, bias, recurrent_bias, n.attributes["hidden_size"], n.dtype)
    return list(_lstm_step(w, n, gates, peephole, n.x, h, c))


def _lstm_with_peepholes(w: Writer, n: Node) -> list[str]:
    """Each direction as a Scan; the results side by side."""
    backward = {"forward": [0], "backward": [1], "both": [0, 1]}[n.attributes["direction"]]
    results: list[list[str]] = [[], [], []]
    for d, reverse in enumerate(backward):
        hidden, cell, sequence = _scan(w, n, d, reverse)
        results[0].append(w.unsqueeze(hidden, [0]))
        results[1].append(w.unsqueeze(cell, [0]))
        results[2].append(w.unsqueeze(sequence, [1]))
    hidden, cell = (w.node("Concat", part, axis=0) for part in results[:2])
    if not n.attributes["return_sequence"]:
        return [hidden, cell]
    return [hidden, cell, w.node("Concat", results[2], axis=1)]


def _row(w: Writer, x: str | None, d: int) -> str | None:
    """Direction d of an operand."""
    return x and w.squeeze(w.slice(x, d, d + 1, 0), [0])


def _scan(w: Writer, n: Node, d: int, reverse: int) -> list[str]:
    """The last hidden state, the last cell and all hidden states of direction d."""
    weight, recurrent, bias, recurrent_bias, peephole, h0, c0 = (_row(w, x, d) for x in n.inputs[1:8])
    gates = _Gates(weight, recurrent, bias, recurrent_bias, n.attributes["hidden_size"], n.dtype)
    zero = w.node("Expand", [w.constant(0, n.dtype), w.extents([n.shape[1], gates.size])])
    body = Writer(w)
    h, c, x = (body.name(f"{w.scope}/step_{part}") for part in ("hidden", "cell", "input"))
    hidden, cell = _lstm_step(body, n, gates, peephole, x, h, c)
    outputs = [hidden, cell, body.node("Identity", [hidden])]
    element = ONNX_TYPES[n.dtype]
    graph = helper.make_graph(
        body.nodes,
        body.name("lstm_step"),
        [helper.make_tensor_value_info(name, element, None) for name in (h, c, x)],
        [helper.make_tensor_value_info(name, element, None) for name in outputs],
    )
    return w.multi(
        "Scan",
        [h0 or zero, c0 or zero, n.x],
        3,
        body=graph,
        num_scan_inputs=1,
        scan_input_directions=[reverse],
        scan_output_directions=[reverse],
    )
