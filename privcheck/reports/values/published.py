"""What `privcheck publish` hands on. The fields are those of the JSON."""

from __future__ import annotations

from dataclasses import dataclass

from privcheck.reports.values.declared import TotalCost
from privcheck.reports.values.report import VerdictBrief
from privcheck.reports.values.result import Result
from privcheck.unit import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A file of the folder, with its SHA-256 in hexadecimal."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact:
    """A fact that the guarantee rests on and that was not derived.

    Attributes:
        what: The fact.
        by: On whose word it is, or which door checks it.
        kind: "stated by the author", "assumed about data", a "public fact" or "modelling".
        where: The release, or "all releases".
    """

    what: str
    by: str
    kind: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHead:
    """The record of the releases that a policy was learned from: its file, its last link, its number of slices."""

    file: str
    head: str
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PublishedGuarantee(Result):
    """What guarantee.json holds.

    Attributes:
        policy: SHA-256 of policy.npz.
        algorithm: What learned the policy.
        unit: Who is protected, on whose word.
        unit_words: The same in words.
        relation: Between which data.
        model: Of trust.
        cost: What the releases cost one of those who are protected: ε at δ, ρ, μ, pure ε; upper bounds.
        guessed_right: How often at most a guess between two equally likely records of one user is right.
        claim: What was claimed of the releases.
        verdict: On that claim, of the discrete mechanism that was drawn; always "holds".
        joint: What follows for joint DP; None where nothing of the kind is claimed.
        rests_on: The facts that were not derived.
        compared: What lockstep found to be the same on neighbours.
        not_covered: What no noise covers, as the publisher accepted it.
        noise: Where the noise came from.
        record: Of the releases.
        receipt: The file of a team's signed receipt; None where no budget was charged.
    """

    policy: str
    algorithm: str
    unit: Unit
    unit_words: str
    relation: str
    model: str
    cost: TotalCost
    guessed_right: float
    claim: str
    verdict: VerdictBrief
    joint: str | None
    rests_on: tuple[StatedFact, ...]
    compared: str
    not_covered: tuple[str, ...]
    noise: str
    record: RecordHead
    receipt: str | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Published(Result):
    """What `privcheck publish` prints.

    Attributes:
        folder: Where the files are.
        files: Every file with its digest; that of SHA256SUMS stands for all.
        guarantee: As in guarantee.json.
        unit: Who is protected.
        withheld: What of the run was left out.
    """

    folder: str
    files: tuple[PublishedFile, ...]
    guarantee: PublishedGuarantee
    unit: Unit
    withheld: tuple[str, ...]
