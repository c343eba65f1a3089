"""Operators with bodies.

What is known while the model is read chooses a branch then; other branches and loops are ops of the graph,
whose bodies are graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .bodies import Body, Extents
from .graph import Graph, Operand, is_same, known
from .loops import is_true, iterations, repeat, truth
from .numbers import checked
from .registry import Node, Refused, axes_of, invalid_if, refuse_if
from .sequences import Sequence, TensorLists, alike, form, grouped, leaves

if TYPE_CHECKING:
    from .importer import Branch, Importer

Results = list[Any]
# Of an iteration's number and values: whether it goes on, what is carried, what is collected.
Read = Callable[[Operand, Results], tuple[Operand, Results, Results]]


def _branch(node: Node, name: str) -> Branch:
    branch = node.attributes.get(name)
    invalid_if(not hasattr(branch, "graph"), f"attribute '{name}' is no graph")
    return branch


# --- If -----------------------------------------------------------------------------------------------------


def read_if(importer: Importer, node: Node) -> Results:
    """A condition that is known chooses a branch; else both are read, and a run chooses."""
    g, condition = importer.graph, node.x
    if condition.array is not None and condition.array.dtype != object:
        invalid_if(condition.array.size != 1, f"the condition has {condition.array.size} elements, not one")
        name = "then_branch" if condition.array.reshape(-1)[0] else "else_branch"
        return importer.read_body(_branch(node, name), [])
    condition = truth(g, condition, "the condition")
    bodies: list[tuple[Body, list[Operand]]] = []
    for name in ("then_branch", "else_branch"):
        body = Body(g)
        try:
            with importer.inside(body):
                bodies.append((body, importer.read_body(_branch(node, name), [])))
        except ValueError as why:
            if g.dimensions:  # knowing them may be of help
                raise
            return _one_branch(importer, node, condition, name == "else_branch", why)
    (yes, one), (no, other) = bodies
    invalid_if(
        len(one) != len(other),
        f"the branches have {len(one)} and {len(other)} results; they must have as many",
    )
    pairs = [alike((yes, a), (no, b)) for a, b in zip(one, other, strict=True)]
    one, other = ([x for value in side for x in leaves(value)] for side in zip(*pairs, strict=True))
    made = _chosen(g, condition, (yes, one), (no, other))
    return grouped([a for a, _ in pairs], made)


def _one_branch(importer: Importer, node: Node, condition: Operand, is_then: bool, why: Exception) -> Results:
    """The results of one branch, where the other one cannot be read: a run that would take that fails."""
    g = importer.graph
    what = f"the condition, where the model's other branch cannot be computed ({why}),"
    number = checked(g, g.cast(condition, "i64"), what, int(is_then), 255 if is_then else 0)
    condition = truth(g, number, "the condition")
    results = importer.read_body(_branch(node, "then_branch" if is_then else "else_branch"), [])
    return [g.retyped(g.op("where", condition, x, x), x.dtype) for x in results]


def _chosen(
    g: Graph, condition: Operand, then: tuple[Body, list[Operand]], otherwise: tuple[Body, list[Operand]]
) -> list[Operand]:
    """The op if."""
    (yes, one), (no, other) = then, otherwise
    extents = Extents(g, yes.counts | no.counts)
    one, other = _of_one_rank((yes, one), (no, other))
    for i, (a, b) in enumerate(zip(one, other, strict=True)):
        _check_alike(i, (yes, a), (no, b))
        extents.add(yes.shape(a), no.shape(b))
    graphs = [yes.finish(one), no.finish(other)]
    made = g.ops(
        "if",
        [condition, *yes.captured, *no.captured],
        then_body=graphs[0],
        else_body=graphs[1],
        then_values=len(yes.captured),
        results=extents.results,
        counts=extents.counts,
    )
    return [g.retyped(y, x.dtype) for x, y in zip(one, made, strict=True)]


def _of_one_rank(
    then: tuple[Body, list[Operand]], otherwise: tuple[Body, list[Operand]]
) -> tuple[list[Operand], list[Operand]]:
    """A scalar beside a list of one element is one, too: the ops that follow do with both."""

    def listed(own: tuple[Body, Operand], peer: tuple[Body, Operand]) -> Operand:
        (g, x), (h, y) = own, peer
        is_list = h.rank(y) == 1 and is_same(h.shape(y)[0], 1)
        return g.reshape(x, [1]) if is_list and g.rank(x) == 0 else x

    (yes, one), (no, other) = then, otherwise
    pairs = [((yes, a), (no, b)) for a, b in zip(one, other, strict=True)]
    return [listed(a, b) for a, b in pairs], [listed(b, a) for a, b in pairs]


def _check_alike(i: int, one: tuple[Body, Operand], other: tuple[Body, Operand]) -> None:
    (yes, a), (no, b) = one, other
    kinds = [f"{x.dtype} of {body.rank(x)} dimensions" for body, x in (one, other)]
    refuse_if(
        a.dtype != b.dtype or yes.rank(a) != no.rank(b),
        f"result {i} is {kinds[0]} in one branch and {kinds[1]} in the other, and which one is known only at "
        "run time",
        "Where the condition comes from dimensions, fix those with dimensions={...} (--dimension NAME=N); "
        "otherwise export the model so that both branches give the same number of dimensions",
    )


# --- loops --------------------------------------------------------------------------------------------------


def read_loop(importer: Importer, node: Node) -> Results:
    g, branch = importer.graph, _branch(node, "body")
    count, condition = node.optional(0), node.optional(1)
    if count is not None:
        count = g.reshape(g.cast(count, "i64"), [])
    if condition is not None:
        condition = truth(g, condition, "the condition (input 1)")
    initial = [node.operand(i) for i in range(2, len(node.inputs))]
    carried_count = len(initial)

    def read(iteration: Operand, carried: Results) -> tuple[Operand, Results, Results]:
        results = importer.read_body(branch, [iteration, known(True, "bool"), *carried])
        invalid_if(
            len(results) < 1 + carried_count,
            f"the body has {len(results)} results; it needs 1 for the condition and {carried_count} that are "
            "carried",
        )
        return results[0], results[1 : 1 + carried_count], results[1 + carried_count :]

    if all(isinstance(x, Operand) for x in initial):
        return repeat(
            g, count, condition, initial, lambda body, i, carried: read(i, carried), importer.inside
        )
    unrolled = _unrolled(g, count, condition, initial, read)
    if unrolled is not None:
        return unrolled
    initial = _carriable(importer, initial, read)

    def build(body: Body, iteration: Operand, carried: list[Operand]) -> tuple[Operand, Results, Results]:
        values = grouped(initial, carried)
        goes_on, next_, collected = read(iteration, values)
        pairs = [alike((body, a), (body, b)) for a, b in zip(values, next_, strict=True)]
        for (a, b), value in zip(pairs, values, strict=True):
            refuse_if(form(b) != form(value) or form(a) != form(value), _CHANGES)
        return goes_on, [x for _, b in pairs for x in leaves(b)], collected

    operands = [x for value in initial for x in leaves(value)]
    made = repeat(g, count, condition, operands, build, importer.inside)
    return [*grouped(initial, made[: len(operands)]), *made[len(operands) :]]


_CHANGES = "what it carries is a sequence or optional that every iteration gives another form"
_MOST_UNROLLED = 1024


def _unrolled(
    g: Graph, count: Operand | None, condition: Operand | None, carried: Results, read: Read
) -> Results | None:
    """A loop over sequences whose number of iterations is known: one after the other. None: it is not."""
    number = iterations(count)
    if (
        not isinstance(number, int)
        or number > _MOST_UNROLLED
        or not (condition is None or is_true(condition))
    ):
        return None
    collected: list[list[Operand]] = []
    for i in range(number):
        goes_on, carried, more = read(known(i, "i64"), carried)
        if not is_true(goes_on):
            return None
        collected.append([g.reshape(x, [1, *g.shape(x)]) for x in more])
    if collected:
        return [*carried, *(g.concat(list(parts), 0) for parts in zip(*collected, strict=True))]
    return carried


def _carriable(importer: Importer, initial: Results, read: Read) -> Results:
    """What is carried at first, in the form that it has after an iteration, too."""
    g = importer.graph
    for _ in range(4):
        trial = Body(g)
        with importer.inside(trial):
            iteration = trial.input("iteration", "i64", [])
            operands = [x for value in initial for x in leaves(value)]
            inputs = [trial.input(f"carried {i}", x.dtype, g.shape(x)) for i, x in enumerate(operands)]
            _, next_, _ = read(iteration, grouped(initial, inputs))
        both = [alike((g, a), (trial, b))[0] for a, b in zip(initial, next_, strict=True)]
        if all(form(a) == form(b) for a, b in zip(initial, both, strict=True)):
            return initial
        initial = both
    raise Refused(_CHANGES)


# --- Scan ---------------------------------------------------------------------------------------------------


def read_scan(importer: Importer, node: Node) -> Results:
    g, scanned = importer.graph, int(node.get("num_scan_inputs", 0))
    values = [node.operand(i) for i in range(1 if node.opset < 9 else 0, len(node.inputs))]
    invalid_if(
        not 0 < scanned <= len(values), f"num_scan_inputs is {scanned}; there are {len(values)} inputs"
    )
    states, inputs = values[: len(values) - scanned], values[len(values) - scanned :]
    if node.opset >= 9:
        return _scan(importer, node, states, inputs)
    refuse_if(node.inputs[0] is not None, "it has lengths of sequences (input 0)")
    batch = g.shape(inputs[0])[0]

    def build(body: Body, number: Operand, carried: list[Operand]) -> tuple[Operand, Results, Results]:
        own = [body.op("gather", x, number, axis=0) for x in values]
        results = _scan(importer, node, own[: len(states)], own[len(states) :])
        return known(True, "bool"), [], results

    return repeat(g, known(batch, "i64"), None, [], build, importer.inside)


def _scan(importer: Importer, node: Node, states: list[Operand], inputs: list[Operand]) -> Results:
    g, branch = importer.graph, _branch(node, "body")
    backwards = _flags(node, "scan_input_directions" if node.opset >= 9 else "directions", len(inputs))
    axes = [
        axes_of([axis], g.rank(x))[0]
        for axis, x in zip(_list(node, "scan_input_axes", len(inputs)), inputs, strict=True)
    ]
    count = g.shape(inputs[0])[axes[0]]

    def build(body: Body, number: Operand, carried: list[Operand]) -> tuple[Operand, Results, Results]:
        last = None
        slices = []
        for x, axis, is_backwards in zip(inputs, axes, backwards, strict=True):
            if is_same(count, 0):  # nothing is read of nothing, in an iteration that there never is
                sizes = g.shape(x)
                slices.append(body.filled(0, x.dtype, [*sizes[:axis], *sizes[axis + 1 :]]))
                continue
            if is_backwards and last is None:
                last = body.op("sub", body.at_run_time(count - 1, "i64"), number)
            slices.append(body.op("gather", x, last if is_backwards else number, axis=axis))
        results = importer.read_body(branch, [*carried, *slices])
        return known(True, "bool"), results[: len(states)], results[len(states) :]

    results = repeat(g, known(count, "i64"), None, states, build, importer.inside)
    made = results[len(states) :]
    out_axes = _list(node, "scan_output_axes", len(made))
    out_backwards = _flags(node, "scan_output_directions", len(made))
    for i, x in enumerate(made):
        if out_backwards[i]:
            x = g.op("reverse", x, axes=[0])
        order = list(range(1, g.rank(x)))
        order.insert(axes_of([out_axes[i]], g.rank(x))[0], 0)
        results[len(states) + i] = g.transpose(x, order)
    return results


def _list(node: Node, name: str, count: int) -> list[int]:
    given = [int(n) for n in node.get(name) or [0] * count]
    invalid_if(len(given) != count, f"{name} has {len(given)} entries for {count} values")
    return given


def _flags(node: Node, name: str, count: int) -> list[bool]:
    return [bool(n) for n in _list(node, name, count)]


# --- SequenceMap --------------------------------------------------------------------------------------------


def read_sequence_map(importer: Importer, node: Node) -> Results:
    """Of sequences whose length is known; its own definition is a Loop for others."""
    branch, first = _branch(node, "body"), node.x
    invalid_if(not isinstance(first, TensorLists), "input 0 is no sequence")
    refuse_if(
        not isinstance(first, Sequence),
        "the length of the sequence is known only at run time; a Loop may have it",
    )
    results = []
    for i in range(len(first.items)):
        inputs = [x.items[i] if isinstance(x, Sequence) else x for x in node.inputs]
        results.append(importer.read_body(branch, inputs))
    return [Sequence([row[k] for row in results]) for k in range(len(node.outputs))]


CONTROL_FLOW: dict[str, Callable[[Importer, Node], Results]] = {
    "If": read_if,
    "Loop": read_loop,
    "Scan": read_scan,
    "SequenceMap": read_sequence_map,
}
