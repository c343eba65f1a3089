"""Says which argument a function of an extension did not take: "input: name is 3, an int; it must be a str".

The extensions ask for it when a call has failed; nothing of this runs in a call that succeeds.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_BY_PYTHON = (
    "expected str, bytes or os.PathLike object",
    "object is not iterable",
    "object is not subscriptable",
)


def sentence(function: Any, raised: str, given: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    """What is wrong with a call that ended with the TypeError `raised`; None where that says so itself.

    given: the arguments without names, a method's own object first.
    """
    by_nanobind = raised.startswith(f"{function.__name__}(): incompatible function arguments")
    if not by_nanobind and not any(text in raised for text in _BY_PYTHON):
        return None
    is_method = type(function).__name__ == "nb_method"
    if is_method and not given:
        return f"{function.__name__}: it is called without its object"
    call = type(given[0]).__name__ if function.__name__ == "__init__" else function.__name__
    forms = [_parsed(signature[0]) for signature in function.__nb_signature__]
    faults = [_fault(form, given, named, int(is_method), function.__module__) for form in forms]
    if all(isinstance(fault, _Misfit) and fault.place == faults[0].place for fault in faults):
        wanted = " or ".join(fault.wanted for fault in faults)
        return f"{call}: {wrong(faults[0].place, faults[0].value, wanted)}"
    return f"{call}: {faults[0]}" if by_nanobind else None


def wrong(place: str, value: Any, wanted: str) -> str:
    """The sentence of a value that should be another. wanted: with its article."""
    return f"{place} is {_described(value)}; it must be {wanted}"


def with_article(noun: str) -> str:
    if noun in ("None", "bytes"):
        return noun
    return f"{'an' if re.match('[AEIOaeio]|ML', noun) else 'a'} {noun}"


class _Misfit(NamedTuple):
    place: str
    value: Any
    wanted: str

    def __str__(self) -> str:
        return wrong(*self)


def _parsed(signature: str) -> ast.arguments:
    # nanobind writes a default as a number behind a backslash, and arrays as no Python type is written.
    plain = re.sub(r"\\\d+", "...", re.sub(r"ndarray\[[^\]]*\]", "numpy.ndarray", signature))
    return ast.parse(plain + ": ...").body[0].args


def _fault(
    form: ast.arguments, given: Sequence[Any], named: Mapping[str, Any], own: int, module: str
) -> _Misfit | str:
    by_place = [*form.posonlyargs, *form.args]
    arguments = [*by_place, *form.kwonlyargs][own:]
    listed = (
        ", ".join(f"{a.arg} ({' or '.join(map(_noun, _choices(a.annotation)))})" for a in arguments) or "none"
    )
    if len(given) > len(by_place) and not form.vararg:
        return f"{len(given) - own} arguments without a name are given; its arguments are: {listed}"
    values = {argument.arg: value for argument, value in zip(by_place, given, strict=False)}
    for name, value in named.items():
        if name not in {argument.arg for argument in [*form.args, *form.kwonlyargs]}:
            return f"there is no argument {name}; its arguments are: {listed}"
        if name in values:
            return f"{name} is given twice"
        values[name] = value
    optional = {a.arg for a in by_place[len(by_place) - len(form.defaults) :]}
    optional |= {a.arg for a, default in zip(form.kwonlyargs, form.kw_defaults, strict=True) if default}
    for argument in arguments:
        if argument.arg in values:
            fault = _misfit(argument.arg, values[argument.arg], argument.annotation, module)
            if fault:
                return fault
        elif argument.arg not in optional:
            return f"the argument {argument.arg} is missing; its arguments are: {listed}"
    return _unseen(arguments, values) or f"these values are not taken; its arguments are: {listed}"


def _unseen(arguments: Sequence[ast.arg], values: Mapping[str, Any]) -> str | None:
    """What no Python type says: C++'s integers have an end, and an object is given."""
    for argument in arguments:
        value = values.get(argument.arg, ...)
        if isinstance(value, int) and not isinstance(value, bool) and not 0 <= value < 1 << 31:
            return f"{argument.arg} is {value}, out of its range"
        if value is None:
            return f"{argument.arg} is None; it must be given"
    return None


def _misfit(place: str, value: Any, annotation: ast.expr, module: str) -> _Misfit | None:
    """What of `value` its annotation certainly does not take."""
    choices = _choices(annotation)
    misfits = [_misfit_of_one(place, value, choice, module) for choice in choices]
    if None in misfits:
        return None
    inner = [misfit for misfit in misfits if misfit.place != place]
    return (
        inner[0]
        if inner
        else _Misfit(place, value, " or ".join(with_article(_noun(choice)) for choice in choices))
    )


def _misfit_of_one(place: str, value: Any, annotation: ast.expr, module: str) -> _Misfit | None:
    of = annotation.slice if isinstance(annotation, ast.Subscript) else None
    kind = _type_named(ast.unparse(annotation.value if of else annotation), module)
    if kind is not None and not _is_a(value, kind):
        return _Misfit(place, value, with_article(_noun(annotation)))
    parts = []
    if isinstance(kind, type) and issubclass(kind, collections.abc.Mapping) and isinstance(of, ast.Tuple):
        parts = [(f"a key of {place}", key, of.elts[0]) for key in value]
        parts += [(f"{place}[{key!r}]", value[key], of.elts[1]) for key in value]
    elif of and kind in (list, collections.abc.Sequence):
        parts = [(f"{place}[{i}]", element, of) for i, element in enumerate(value)]
    return next(filter(None, (_misfit(*part, module) for part in parts)), None)


def _is_a(value: Any, kind: type) -> bool:
    if kind is int:
        return hasattr(type(value), "__index__")
    if kind is float:
        return hasattr(type(value), "__float__") or hasattr(type(value), "__index__")
    if kind is collections.abc.Sequence:  # an array is one to nanobind
        return hasattr(type(value), "__getitem__") and not isinstance(
            value, (str, bytes, collections.abc.Mapping)
        )
    return isinstance(value, kind)


def _type_named(name: str, module: str) -> type | None:
    """The class; None for a name that is not one, which takes everything."""
    if name == "None":
        return type(None)
    home, _, last = name.rpartition(".")
    found = getattr(sys.modules.get(home or module), last, None) or getattr(builtins, name, None)
    return found if isinstance(found, type) else None


def _choices(annotation: ast.expr) -> list[ast.expr]:
    if isinstance(annotation, ast.BinOp):
        return [*_choices(annotation.left), *_choices(annotation.right)]
    return [annotation]


def _noun(annotation: ast.expr) -> str:
    of = annotation.slice if isinstance(annotation, ast.Subscript) else None
    name = ast.unparse(annotation.value if of else annotation).rpartition(".")[2]
    if name == "PathLike":
        return "path"
    name = name.lower() if name in ("Mapping", "Sequence") else name
    if of is None:
        return name
    parts = of.elts if isinstance(of, ast.Tuple) else [of]
    return f"{name} of " + " to ".join(" or ".join(map(_noun, _choices(part))) for part in parts)


def _described(value: Any) -> str:
    if value is None:
        return "None"
    kind = with_article(type(value).__name__)
    return f"{value!r}, {kind}" if isinstance(value, (str, int, float)) and len(repr(value)) <= 60 else kind
