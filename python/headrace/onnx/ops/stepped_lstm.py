"""LSTMs that the op lstm is not, as loops: with peepholes from the new cell, or of several lengths."""

from __future__ import annotations

from ..bodies import Body
from ..graph import Graph, Operand, known
from ..loops import repeat

Step = tuple[Operand, list[Operand], list[Operand]]  # whether it goes on, what is carried, what is collected


def stepped(
    g: Graph,
    x: Operand,
    weights: tuple[Operand, Operand],
    biases: tuple[Operand | None, Operand | None],
    peepholes: Operand | None,
    states: tuple[Operand | None, Operand | None],
    lengths: Operand | None,
    directions: list[bool],
) -> list[Operand]:
    """x: [steps, batch, features]; the rest as ONNX has them. directions: which go backwards.

    The result: [directions, batch, hidden] of the last step, of the last cell, and
    [steps, directions, batch, hidden] of every step.
    """
    ways = []
    for i, is_backwards in enumerate(directions):
        own = [_of_way(g, v, i) for v in (*weights, *biases, peepholes, *states)]
        ways.append(_one_way(g, x, own, lengths, is_backwards))
    last, cell, every = zip(*ways, strict=True)
    states = [stacked(g, list(parts), 0) for parts in (last, cell)]
    return [*states, stacked(g, list(every), 1)]


def _of_way(g: Graph, x: Operand | None, i: int) -> Operand | None:
    return None if x is None else g.reshape(g.cut(x, 0, i, 1), g.shape(x)[1:])


def stacked(g: Graph, parts: list[Operand], axis: int) -> Operand:
    rows = [g.reshape(x, [*g.shape(x)[:axis], 1, *g.shape(x)[axis:]]) for x in parts]
    return g.concat(rows, axis)


def _one_way(
    g: Graph, x: Operand, own: list[Operand | None], lengths: Operand | None, is_backwards: bool
) -> tuple[Operand, Operand, Operand]:
    w, r, input_bias, state_bias, peepholes, hidden, cell = own
    steps, batch, features = g.shape(x)
    size = g.shape(r)[1]
    x = turned(g, x, lengths) if is_backwards else x
    gates = g.op("matmul", g.reshape(x, [steps * batch, features]), g.transpose(w, [1, 0]))
    for bias in (input_bias, state_bias):
        gates = gates if bias is None else g.op("add", gates, bias)
    gates, recurrent = g.reshape(gates, [steps, batch, 4 * size]), g.transpose(r, [1, 0])
    first = [g.filled(0, x.dtype, [batch, size]) if v is None else v for v in (hidden, cell)]

    def step(
        body: Body, place: Operand, carried: list[Operand]
    ) -> tuple[Operand, list[Operand], list[Operand]]:
        now = body.op("gather", gates, place, axis=0)
        new = _cell(
            body, body.op("add", now, body.op("matmul", carried[0], recurrent)), carried[1], peepholes
        )
        given = new[0]
        if lengths is not None:
            is_there = body.reshape(body.op("lesser", place, body.cast(lengths, "i64")), [batch, 1])
            new = [body.op("where", is_there, a, b) for a, b in zip(new, carried, strict=True)]
            given = body.op("where", is_there, given, known(0, given.dtype))
        return known(True, "bool"), new, [given]

    last, cell, every = repeat(g, known(steps, "i64"), None, first, step)
    if (
        lengths is not None
    ):  # as ONNX Runtime has it, an empty sequence ends with 0, whatever was there before
        is_any = g.reshape(g.op("greater", g.cast(lengths, "i64"), known(0, "i64")), [batch, 1])
        last, cell = (g.op("where", is_any, v, known(0, v.dtype)) for v in (last, cell))
    return last, cell, turned(g, every, lengths) if is_backwards else every


def _cell(g: Graph, gates: Operand, cell: Operand, peepholes: Operand | None) -> list[Operand]:
    """The new state and cell. The output's gate sees the new cell."""
    size = g.shape(cell)[1]
    enter, out, forget, new = (g.cut(gates, 1, i * size, size) for i in range(4))

    def with_peephole(gate: Operand, i: int, of: Operand) -> Operand:
        if peepholes is None:
            return gate
        return g.op("add", gate, g.op("mul", of, g.cut(peepholes, 0, i * size, size)))

    enter, forget = with_peephole(enter, 0, cell), with_peephole(forget, 2, cell)
    kept = g.op("mul", g.op("sigmoid", forget), cell)
    cell = g.op("add", kept, g.op("mul", g.op("sigmoid", enter), g.op("tanh", new)))
    return [g.op("mul", g.op("sigmoid", with_peephole(out, 1, cell)), g.op("tanh", cell)), cell]


def turned(g: Graph, x: Operand, lengths: Operand | None) -> Operand:
    """Each sequence backwards, and what follows it in its place."""
    if lengths is None:
        return g.op("reverse", x, axes=[0])
    steps, batch, size = g.shape(x)
    place = g.reshape(g.positions(steps), [steps, 1])
    lengths = g.reshape(g.cast(lengths, "i64"), [1, batch])
    mirrored = g.plus(g.op("sub", lengths, place), -1)
    source = g.op("where", g.op("lesser", place, lengths), mirrored, place)
    return g.op("gather_elements", x, g.expand(g.add_axes(source, 1), [steps, batch, size]), axis=0)
