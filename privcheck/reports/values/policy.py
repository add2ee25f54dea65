"""A learned policy as an artefact: what stands beside its probabilities. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from privcheck.reports.values.learned import SpentCost
from privcheck.reports.values.result import Result
from privcheck.unit import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLabels:
    """What users call states and actions, in the order of their codes; None where codes are all there is."""

    states: tuple[str, ...] | None = None
    actions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGuarantee:
    """Why a policy may be published, or why not.

    Attributes:
        claim: What is claimed of the releases that it was learned from.
        relation: Between which data.
        unit: Who is protected, on whose word; None in files of earlier versions, which did not say.
        spent: What the run's ledger has cost one of them.
        noise: Where the noise came from.
        protects: Whether noise of that source protects anybody; simulated noise does not.
        compared: What lockstep has found to be the same on neighbours behind the same billboards, on how many pairs;
            empty where nothing was compared, or something was not the same: then nothing says that the agent handed
            back functions of its releases alone.
        ledger: The last link of the ledger's hash chain.
    """

    claim: str
    relation: str
    unit: Unit | None = None
    spent: SpentCost | None
    noise: str
    protects: bool
    compared: str = ""
    ledger: str

    @property
    def publishable(self) -> bool:
        """Whether the noise protects, and what was handed back was compared."""
        return self.protects and bool(self.compared)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValue:
    """What a policy is worth.

    Attributes:
        true: Its expected return, where a model says; None where nobody knows it.
        claimed: The agent's own pessimistic estimate; None where it makes none.
        note: How to read these.
    """

    true: float | None
    claimed: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPolicy:
    """What `privcheck policy FILE` prints.

    Attributes:
        policy: The file of the probabilities.
        algorithm: What learned it.
        learned_from: The data or the environment.
        labels: What users call states and actions, their codes where they have no other name.
        guarantee: None for an agent without privacy.
        value: What it is worth.
        warnings: What no noise covers.
        rows: State, steps, likeliest action and its probability; equal steps of a state are one row.
        picture: The file of the heat map; None where none was asked for.
    """

    policy: str
    algorithm: str
    learned_from: str
    labels: PolicyLabels
    guarantee: PolicyGuarantee | None
    value: PolicyValue
    warnings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...]
    picture: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PolicyRecord(Result):
    """What policy.json holds.

    Attributes:
        policy: The file of the probabilities, beside this one.
        digest: SHA-256 of that file.
        algorithm: What learned it.
        learned_from: The data or the environment.
        steps: H.
        states: S.
        actions: A.
        labels: What users call them.
        parameters: Of the declaration, exact.
        options: Of the agent.
        choices: The readings of the paper, by name; empty in files of earlier versions.
        guarantee: None for an agent without privacy.
        value: What it is worth.
        warnings: What no noise covers: sizes that were taken from the data, choices that looked at it.
        versions: Of privcheck and what it stands on.
        made: When, in UTC; empty with release noise: how long exact data took is no function of the releases.
    """

    policy: str
    digest: str
    algorithm: str
    learned_from: str
    steps: int
    states: int
    actions: int
    labels: PolicyLabels = field(default_factory=PolicyLabels)
    parameters: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    guarantee: PolicyGuarantee | None
    value: PolicyValue
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    made: str = ""
