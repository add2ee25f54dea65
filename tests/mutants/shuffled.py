"""Mutants behind a shuffler: what the users send is not what the declaration says and the proof counts on.

Each is the declaration of what the broken code sends, to be audited against the honest one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from mutants.declared import Overlooked
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import ShuffledBits
from privcheck.terms.symbols import Exact, Expr, exact, expression


def integer_messages(declaration: Declaration) -> Declaration:
    """Returns the declaration whose users send the sum of their bits as one integer.

    True ε: ∞ where a message shows its sender with probability above δ, otherwise hardly more than the honest one.
    """
    return _each(declaration, lambda m: ShuffledBits(users=m.users, threshold=m.threshold, messages="integers"))


def fewer_noise_bits(declaration: Declaration, factor: Exact) -> Declaration:
    """Returns the declaration whose users draw `factor` of the noise bits; true ε: about √(1/factor) times."""
    share = exact(factor)
    return _each(declaration, lambda m: ShuffledBits(users=m.users, threshold=m.threshold * share, messages=m.messages))


def counting_on(declaration: Declaration, everybody: Exact | Expr) -> Declaration:
    """Returns the declaration whose users draw as if so many stood behind the shuffler, where only their batch does.

    Too much amplification: with N for n, ⌈τ/N⌉ noise bits of probability min(½, τ/2N) a user are n/N of what is
    needed. True ε: about √(N/n) times, ∞ where a batch has so few noise bits that all being 1 is likelier than δ.
    """
    whole = expression(everybody)
    return _each(
        declaration,
        lambda m: ShuffledBits(users=m.users, threshold=m.threshold * m.users / whole, messages=m.messages),
    )


def sent_twice(declaration: Declaration, values: Mapping[str, Fraction]) -> Declaration:
    """Returns the declaration whose users send their own bits twice, among as many noise bits; true ε: about twice."""
    twice = tuple((step, 2.0) for step in range(int(values["H"])))
    return replace(
        declaration,
        releases=tuple(
            replace(release, statistic=Overlooked(honest=release.statistic, weights=twice))
            for release in declaration.releases
        ),
    )


def _each(declaration: Declaration, change: Callable[[ShuffledBits], ShuffledBits]) -> Declaration:
    found = []
    for release in declaration.releases:
        if not isinstance(release.mechanism, ShuffledBits):
            raise TypeError(f"expected releases behind a shuffler, got {release.mechanism.words}")
        found.append(replace(release, mechanism=change(release.mechanism)))
    return replace(declaration, releases=tuple(found))
