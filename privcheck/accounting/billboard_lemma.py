"""Joint differential privacy from a billboard, in one direction: what is checked, and only then what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privcheck.accounting.curve import Curve
from privcheck.accounting.reals import Real
from privcheck.errors import ParameterError

PRECONDITIONS: dict[str, str] = {
    "outputs": "every output to user k is a function of the billboard and of k's own data",
    "billboard": "the billboard is differentially private for the stated unit, with the given curve",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One precondition of the billboard lemma.

    Attributes:
        name: Its name.
        statement: In words.
        holds: Whether it was found true; what nobody looked at does not hold.
    """

    name: str
    statement: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JointClaim:
    """What the billboard lemma gives.

    Attributes:
        checks: The preconditions.
        curve: The billboard's; None where a precondition fails, and nothing follows.
    """

    checks: tuple[Check, ...]
    curve: Curve | None

    @property
    def follows(self) -> bool:
        """Returns whether joint DP follows; False never means that it is violated, the lemma goes one way."""
        return self.curve is not None

    def guarantee(self, *, delta: Real) -> tuple[float, float]:
        """Returns (ε, δ) of joint DP, certified.

        Raises:
            ParameterError: A precondition fails, so nothing follows.
        """
        if self.curve is None:
            failed = "; ".join(f"{c.name}: {c.statement}" for c in self.checks if not c.holds)
            message = f"joint DP does not follow from the billboard lemma, because this was not verified: {failed}"
            raise ParameterError(message, name="preconditions")
        epsilon = self.curve.epsilon(delta=delta)
        return epsilon.upper, float(delta)


def joint(curve: Curve, *, preconditions: Mapping[str, bool]) -> JointClaim:
    """Returns joint DP of what all other users see of one user, by the billboard lemma.

    If a billboard is (ε, δ)-DP and every output to user k depends on the billboard and k's own data only, the
    mechanism is (ε, δ)-jointly DP (Hsu, Huang, Roth, Roughgarden & Wu 2014). Nothing follows from its failure.

    Args:
        curve: The billboard's.
        preconditions: By name, "outputs" and "billboard", whether each was found true.

    Raises:
        ParameterError: A precondition is missing, unknown or not a bool.

    >>> from privcheck import accounting as acc
    >>> board = acc.compose(acc.gaussian(std=10))
    >>> acc.joint(board, preconditions={"outputs": True, "billboard": True}).follows
    True
    """
    expected = ", ".join(f"{name!r} ({words})" for name, words in PRECONDITIONS.items())
    if set(preconditions) != set(PRECONDITIONS) or any(not isinstance(v, bool) for v in preconditions.values()):
        message = f"expected preconditions as a bool for each of {expected}; got {dict(preconditions)!r}"
        raise ParameterError(message, name="preconditions", given=preconditions)
    checks = tuple(Check(name=n, statement=words, holds=preconditions[n]) for n, words in PRECONDITIONS.items())
    return JointClaim(checks=checks, curve=curve if all(c.holds for c in checks) else None)
