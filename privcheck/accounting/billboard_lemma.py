"""Joint differential privacy from a billboard, in one direction: preconditions are checked before anything follows."""

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
        name: Name of the precondition.
        statement: The precondition in words.
        holds: Whether it was verified; an unverified precondition does not hold.
    """

    name: str
    statement: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JointClaim:
    """Conclusion of the billboard lemma.

    Attributes:
        checks: The preconditions.
        curve: Curve of the billboard; None where a precondition fails and nothing follows.
    """

    checks: tuple[Check, ...]
    curve: Curve | None

    @property
    def follows(self) -> bool:
        """Whether joint DP follows; False never means that it is violated, since the lemma goes one way."""
        return self.curve is not None

    def guarantee(self, *, delta: Real) -> tuple[float, float]:
        """Compute (ε, δ) of joint DP, certified.

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
    """Derive joint DP of all other users' outputs with respect to one user, by the billboard lemma.

    Lemma billboard: If a billboard is (ε, δ)-DP and every output to user k depends only on the billboard and k's own
    data, the mechanism is (ε, δ)-jointly DP. Source: Hsu, Huang, Roth, Roughgarden & Wu 2014.

    If a precondition fails, nothing follows.

    Args:
        curve: Curve of the billboard.
        preconditions: Whether each precondition was verified, by name: "outputs" and "billboard".

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
