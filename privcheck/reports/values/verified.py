"""What verification says of a claim. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from privcheck.brief import Brief
from privcheck.reports.values.result import Result
from privcheck.statements import JudgedStatement, Origin

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictGround:
    """A fact that a verdict rests on; see `privcheck.verification.grounds.Ground`."""

    basis: str
    where: str
    what: str
    by: str
    kind: str = ""
    checked_where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How far a pair of neighbours moves one release; the ℓ₂ distance squared."""

    l1: float
    l2_squared: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerdictWitness(Brief):
    """A pair of neighbours with its exact loss.

    Attributes:
        words: What they are.
        loss: In the claim's unit.
        changes: By release.
        group: The user's group in a partition of the users; None without one.
        pair: The user in D and in D′: columns by name, None where there is no such user; None where it is too long.
    """

    words: str
    loss: float
    changes: Mapping[str, Change]
    group: str | None = None
    pair: tuple[Mapping[str, Any] | str | None, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFinding:
    """A finding; see `privcheck.verification.findings`."""

    code: str
    severity: Literal["critical", "theoretical", "negligible"]
    where: str
    message: str
    evidence: Mapping[str, str]
    witness: VerdictWitness | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verified(Result):
    """The verdict on a claim; see `privcheck.verification.verdict.Verification`."""

    algorithm: str
    parameters: Mapping[str, str]
    claim: str
    verdict: Literal["holds", "fails", "undecided"]
    joint: Literal["follows", "unproved", "refuted"] | None
    method: Literal["proved", "checked", "witness"]
    origin: Origin | None = None
    statements: tuple[JudgedStatement, ...] = ()
    unit: Mapping[str, Any] | None = None
    unit_words: str = ""
    given: tuple[str, ...] = ()
    rests_on: tuple[VerdictGround, ...] = ()
    upper_ratio: float
    lower_ratio: float
    findings: tuple[VerdictFinding, ...]
    witness: VerdictWitness | None
    repair: str
    sentence: str

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a finding.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.frames import make_frame

        names = ("code", "severity", "where", "message")
        return make_frame({name: [getattr(one, name) for one in self.findings] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unverified:
    """A registered algorithm that could not be judged.

    Attributes:
        algorithm: Its name.
        error: The kind of failure, in one word.
        message: What failed, and where.
    """

    algorithm: str
    error: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AllVerified(Result):
    """What `privcheck verify --all` prints.

    Attributes:
        results: The verdicts.
        errors: The algorithms without a verdict, because their package is broken.
    """

    results: tuple[Verified, ...]
    errors: tuple[Unverified, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row an algorithm.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.frames import make_frame

        names = ("algorithm", "verdict", "method", "given", "joint", "upper_ratio", "lower_ratio", "claim")
        return make_frame({name: [getattr(one, name) for one in self.results] for name in names})
