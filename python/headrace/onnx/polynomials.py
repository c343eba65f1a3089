"""Exact quotients of extents that are sums: (n-1)*batch*64 by (n-1)*batch."""

from __future__ import annotations

from headrace._core import Extent

Whole = Extent | int
_Terms = dict[tuple[str, ...], int]  # factors by their sorted symbols
_MOST_STEPS = 64


def exact_quotient(a: Whole, b: Whole) -> Whole | None:
    """a / b where that is a polynomial, whatever the symbols' values are; None elsewhere."""
    atoms: dict[str, Extent] = {}
    rest, divisor = _terms_of(a, atoms), _terms_of(b, atoms)
    if not divisor:
        return None
    lead = max(divisor, key=_order)
    quotient: _Terms = {}
    for _ in range(_MOST_STEPS):
        if not rest:
            return _extent_of(quotient, atoms)
        first = max(rest, key=_order)
        monomial, remainder = _without(first, lead), rest[first] % divisor[lead]
        if monomial is None or remainder:
            return None
        factor = rest[first] // divisor[lead]
        quotient[monomial] = quotient.get(monomial, 0) + factor
        for names, times in divisor.items():
            product = tuple(sorted((*names, *monomial)))
            rest[product] = rest.get(product, 0) - factor * times
            if rest[product] == 0:
                del rest[product]
    return None


def _terms_of(e: Whole, atoms: dict[str, Extent]) -> _Terms:
    if not isinstance(e, Extent):
        return {(): e} if e else {}
    terms: _Terms = {}
    for factor, parts in e.terms:
        atoms |= {str(part): part for part in parts}
        terms[tuple(sorted(map(str, parts)))] = factor
    return terms


def _order(names: tuple[str, ...]) -> tuple:
    """Graded, then by the symbols: the order of products is that of their factors."""
    return len(names), tuple((name, names.count(name)) for name in sorted(set(names)))


def _without(whole: tuple[str, ...], part: tuple[str, ...]) -> tuple[str, ...] | None:
    left = list(whole)
    for name in part:
        if name not in left:
            return None
        left.remove(name)
    return tuple(left)


def _extent_of(terms: _Terms, atoms: dict[str, Extent]) -> Whole:
    total: Whole = 0
    for names, factor in terms.items():
        term: Whole = factor
        for name in names:
            term = atoms[name] * term
        total = total + term
    return total
