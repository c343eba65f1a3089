"""The op loop: a graph that runs again and again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from .bodies import Body, Extents
from .graph import Dim, Extent, Graph, Operand, is_same, is_told
from .registry import invalid_if, refuse_if

# Of an iteration's number and what is carried: whether it goes on, what is carried, what is collected.
Build = Callable[[Body, Operand, list[Operand]], tuple[Operand, list[Operand], list[Operand]]]


def truth(g: Graph, x: Operand, what: str) -> Operand:
    sizes = g.shape(x)
    invalid_if(
        any(isinstance(d, int) and d != 1 for d in sizes),
        f"{what} has the shape {sizes}; it is one truth value",
    )
    return g.reshape(g.cast(x, "bool"), [])


def repeat(
    g: Graph,
    count: Operand | None,
    condition: Operand | None,
    initial: list[Operand],
    build: Build,
    inside: Callable[[Body], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> list[Operand]:
    """The last values that are carried, and what is collected. inside: what holds while the body is built."""
    shapes: list[list[Dim]] = [g.shape(x) for x in initial]
    open_: set[str] = set()  # symbols of extents that change from one iteration to the next
    while True:
        body = Body(g)
        with inside(body):
            iteration = body.input("iteration", "i64", [])
            carried = [
                body.input(f"carried {i}", x.dtype, shape)
                for i, (x, shape) in enumerate(zip(initial, shapes, strict=True))
            ]
            goes_on, next_, collected = build(body, iteration, carried)
            _check_carried(g, initial, body, next_)
            next_ = [body.cast(x, first.dtype) for x, first in zip(next_, initial, strict=True)]
            goes_on = truth(body, goes_on, "the condition that the body gives")
        if not _opened(body, shapes, next_, open_):
            break
    extents = Extents(g, body.counts | open_)
    for shape, first in zip(shapes, initial, strict=True):
        extents.add(*([shape, g.shape(first)] if open_ else [shape]))
    always = is_true(goes_on) and (condition is None or is_true(condition))
    for x in collected:
        extents.results.append(
            iterations(count) if always and iterations(count) is not None else extents.count()
        )
        extents.add(body.shape(x))
    graph = body.finish([goes_on, *next_, *collected])
    made = g.ops(
        "loop",
        [count, condition, *initial, *body.captured],
        body=graph,
        carried=len(initial),
        results=extents.results,
        counts=extents.counts,
    )
    dtypes = [x.dtype for x in [*initial, *collected]]
    return [g.retyped(y, dtype) for y, dtype in zip(made, dtypes, strict=True)]


def _check_carried(g: Graph, initial: list[Operand], body: Body, next_: list[Operand]) -> None:
    for i, (first, x) in enumerate(zip(initial, next_, strict=True)):
        ranks = [g.rank(first), body.rank(x)]
        refuse_if(
            ranks[0] != ranks[1],
            f"value {i} that is carried has {ranks[0]} dimensions at first and {ranks[1]} after an iteration",
            "Export the model so that what a loop carries keeps its number of dimensions",
        )


def _opened(body: Body, shapes: list[list[Dim]], next_: list[Operand], open_: set[str]) -> bool:
    """Puts symbols in place of extents that the body changes; whether there were any."""
    found = False
    for shape, x in zip(shapes, next_, strict=True):
        for axis, d in enumerate(body.shape(x)):
            if str(shape[axis]) not in open_ and not is_same(shape[axis], d):
                shape[axis] = body.fresh("carried")
                open_.add(str(shape[axis]))
                found = True
    return found


def is_true(x: Operand) -> bool:
    return x.array is not None and x.array.dtype != object and bool(x.array.all())


def iterations(count: Operand | None) -> Dim | None:
    """How many iterations there are, where that is known or follows from shapes."""
    if count is None or is_told(count.array):
        return None
    known = count.array.reshape(-1)[0]
    return known if isinstance(known, Extent) else max(int(known), 0)
