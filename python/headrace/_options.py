"""headrace.load's options, checked before a model is read."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from ._core import GraphWriter, compile, hinted_options

_TYPES = {"str": str, "int": int, "bool": bool}


class OptionError(ValueError):
    """An option is wrong, whatever the model is."""


def check_names(given: Iterable[str], own: Iterable[str]) -> None:
    """given: what compile() shall take. own: load's, which it may be meant for. Errors: TypeError."""
    known = [*own, *_declared()]
    for name in given:
        if name in _declared():
            continue
        import difflib  # for a mistake alone: it takes a millisecond

        near = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(sorted(set(known)))}"
        raise TypeError(f"load: there is no option '{name}'; {remedy}")


def checked(hints: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """All options of compile(): what the hints of a WebNN context decide, and options.

    Errors: TypeError for a value of another type; OptionError for one that compile() refuses.
    """
    for name, value in {**hints, **options}.items():
        _check_type(name, value)
    try:
        made = {"host_timeout_ms": hints["host_timeout_ms"], **hinted_options(**hints), **options}
        if options:  # without the folder, of which nothing is an error
            compile(_smallest_graph(), **{**made, "packed_cache": "off"})
    except ValueError as error:
        raise OptionError(str(error)) from None
    return made


@functools.cache
def _declared() -> dict[str, str]:
    """compile()'s options with the names of their types. Its signature is not parsed as Python, which takes a
    third of a millisecond: none of the types has a comma.
    """
    listed = compile.__nb_signature__[0][0].partition(", *, ")[2].rpartition(") -> ")[0]
    options = (option.partition(": ") for option in listed.split(", "))
    return {name: rest.partition(" = ")[0] for name, _, rest in options}


def _check_type(name: str, value: Any) -> None:
    wanted = _TYPES.get({**_declared(), **_OF_HINTS}[name])
    if wanted is None or isinstance(value, wanted) or (wanted is int and hasattr(type(value), "__index__")):
        return
    from ._argument_errors import with_article, wrong

    raise TypeError(f"load: {wrong(name, value, with_article(wanted.__name__))}")


_OF_HINTS = {"power_preference": "str", "accelerated": "bool", "device_type": "str"}


@functools.cache
def _smallest_graph() -> Any:
    """What compile() refuses only for its options."""
    writer = GraphWriter()
    writer.output("y", writer.op("relu", [writer.input("x", "f32", [1])])[0])
    return writer.finish()
