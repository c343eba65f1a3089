"""Recurrent networks without cells over sequences of several lengths, which all run to the last step."""

from __future__ import annotations

from collections.abc import Callable

from ..graph import Graph, Operand, known
from .stepped_lstm import stacked, turned


def of_lengths(
    g: Graph,
    x: Operand,
    lengths: Operand,
    directions: list[bool],
    run: Callable[[Operand, int], Operand],
) -> tuple[Operand, Operand]:
    """What is behind a sequence's end changes nothing before it: its last state is taken where it ends.

    x: [steps, batch, features]. directions: which go backwards. run: every state of one direction that goes
    forwards, [steps, batch, hidden]. The result: the last states, [directions, batch, hidden], and all,
    [steps, directions, batch, hidden], 0 behind the ends.
    """
    steps, batch = g.shape(x)[:2]
    lengths = g.cast(lengths, "i64")
    place, ends = g.reshape(g.positions(steps), [steps, 1, 1]), g.reshape(lengths, [1, batch, 1])
    is_there = g.op("lesser", place, ends)
    at_end = g.op("max", g.plus(ends, -1), known(0, "i64"))
    finals, all_states = [], []
    for i, is_backwards in enumerate(directions):
        every = run(turned(g, x, lengths) if is_backwards else x, i)
        hidden = g.shape(every)[2]
        final = g.op("gather_elements", every, g.expand(at_end, [1, batch, hidden]), axis=0)
        # As ONNX Runtime has it, an empty sequence ends with 0, whatever was there before.
        final = g.op("where", g.op("greater", ends, known(0, "i64")), final, known(0, every.dtype))
        finals.append(g.reshape(final, [batch, hidden]))
        every = g.op("where", is_there, every, known(0, every.dtype))
        all_states.append(turned(g, every, lengths) if is_backwards else every)
    return stacked(g, finals, 0), stacked(g, all_states, 1)
