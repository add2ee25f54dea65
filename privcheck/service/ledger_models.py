"""Bodies and answers of the ledger's endpoints."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from privcheck.service.limits import MOST_EVENTS
from privcheck.service.models import Body, EventBody, Line, Number, Settings, Word

Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="Of your choice: the same request with the same key is written once, and answered the same.",
    ),
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
InPath = Annotated[Name, Path()]
Hash = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]
After = Annotated[int, Query(ge=0, le=2**53, description="The `next` of the page before.")]
At = Annotated[
    str, StringConstraints(max_length=32, pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"),
    Field(examples=["2027-01-31T12:00:00Z"]),
]  # fmt: skip
Decimal = Annotated[str, Field(description="A decimal string, exact; p/q where it is no decimal.")]


class SpendBody(Body):
    """What is to be released, from which grant: an event, or a claim that holds."""

    grant: Name
    event: EventBody | None = None
    claim: Annotated[
        str | None, StringConstraints(pattern=r"^[0-9a-f]{64}$"), Field(description="Of POST /v1/claims.")
    ] = None
    relation: Annotated[
        Line | None,
        Field(description="Between which data the event's cost is; other neighbours than the dataset's: 422."),
    ] = None
    model: Annotated[
        Literal["central", "joint", "shuffle", "local"] | None,
        Field(description="Where the event's noise is drawn; another trust model than the dataset's: 422."),
    ] = None
    conditions: Annotated[
        list[Literal["outputs", "billboard"]] | None,
        Field(max_length=2, description="Of joint DP: the billboard lemma's conditions that were found met; all: 201."),
    ] = None
    blocks: Annotated[
        list[Name] | None,
        Field(min_length=1, max_length=64, description="Of a divided dataset: some of the grant's blocks; null: all."),
    ] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.event is None) == (self.claim is None):
            raise ValueError("give an event, or a claim")
        if self.event is None and any(x is not None for x in (self.relation, self.model, self.conditions)):
            raise ValueError("give relation, model and conditions with an event: a claim has its own")
        return self


class ReserveBody(SpendBody):
    """What is to be released, and how long a run may take to begin."""

    seconds: Annotated[int, Field(ge=1, le=30 * 24 * 3600)] = 3600


class ReleaseBody(Body):
    """Why a reservation is given back."""

    evidence: Annotated[Line, Field(description="How it is known that nothing was drawn.")]


class ClaimBody(Body):
    """An algorithm's claim, at parameters."""

    algorithm: Word
    parameters: Settings = Field(default_factory=dict)


class DatasetBody(Body):
    """A dataset's policy: what all its grants together keep, for ever."""

    dataset: Name
    epsilon: Number
    delta: Number
    relation: Line = "replace-one"
    unit: Line = "user"
    trust: Literal["central", "joint", "shuffle", "local"] = "central"
    remainder: Literal["epsilon", "rho", "mu2"] = "rho"
    until: At | None = None


class BlocksBody(Body):
    """New blocks of a dataset, each with the whole policy as its cap."""

    blocks: Annotated[list[Name], Field(min_length=1, max_length=64)]
    disjoint_users: Annotated[
        Line | None,
        Field(description="How it is known that who is in one block is in no other; without it: 422."),
    ] = None


class GrantBody(Body):
    """A part of a dataset's budget: a cap in a currency, or a plan of events that charges count down."""

    name: Name
    dataset: Name
    currency: Literal["epsilon", "rho", "mu2"] | None = None
    cap: Number | None = None
    lost: Number | None = None
    events: Annotated[list[EventBody], Field(min_length=1, max_length=MOST_EVENTS)] | None = None
    delta: Number | None = None
    blocks: Annotated[
        list[Name] | None, Field(max_length=64, description="Of a divided dataset: those that it covers.")
    ] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [self.currency is not None, self.cap is not None]
        if not (all(given) and self.events is None) and not (self.events is not None and not any([*given, self.lost])):
            raise ValueError("give currency and cap, or the events of a plan")
        return self

    def fields(self) -> dict[str, Any]:
        """Returns the fields of `Book.grant`, or with events of `Book.plan`."""
        told = self.model_dump(exclude_none=True, exclude={"events"})
        if self.events is None:
            return told
        return {**told, "events": {"type": "compose", "events": [event.plain() for event in self.events]}}


class EvidenceBody(Body):
    """What an audit found of a charge; a violation freezes the grant."""

    charge: Name
    verdict: Literal["consistent", "violation"]
    report: Annotated[Line, Field(description="Where it can be read, or its digest.")]


class NewEvidence(BaseModel):
    """The row that was written; its receipt is at /v1/receipts/{hash}."""

    charge: str
    verdict: Literal["consistent", "violation"]
    hash: str


class TokenBody(Body):
    """Whose token, and what it may do."""

    name: Name
    role: Literal["reader", "analyst", "ci", "officer", "admin"]
    grants: Annotated[list[Name], Field(max_length=100, default_factory=list)]
    expires: At | None = None


class Answer(BaseModel):
    """An answer may get more fields."""

    model_config = ConfigDict(extra="allow")


class SignedHead(Answer):
    """A signed head of a dataset's chain: keep it, it shows a cut tail."""

    dataset: str
    seq: int
    hash: str
    at: str
    signature: str


class Decided(Answer):
    """What became of a request to spend."""

    state: Literal["reserved", "committed", "released"]
    id: str
    grant: str
    receipt: SignedHead
    remaining: Decimal
    cost: dict[str, Decimal]
    expires: str | None


class Quoted(Answer):
    """What a charge would cost; nothing was written."""

    state: Literal["quoted", "refused"]
    grant: str
    reason: str | None
    remaining: Decimal
    times: int | None = Field(description="How often it fits into what is free; null where it costs nothing.")


class Claimed(Answer):
    """A claim that is judged: charge it once `state` is holds."""

    claim: str
    state: Literal["running", "holds", "fails", "undecided"]
    algorithm: str
    events: dict[str, dict[str, Any] | None] | None = Field(
        description="What it is charged as, in each currency, at the accountant's cost; null: infinite there."
    )


class ShownDataset(Answer):
    """A dataset: its policy, its grants with what is left, the head of its chain."""

    name: str
    policy: dict[str, Any]
    grants: list[dict[str, Any]]
    head: SignedHead


class ShownDatasets(BaseModel):
    """All datasets."""

    datasets: list[ShownDataset]


class CapCurve(BaseModel):
    """ε at δ of all that the grants will ever admit; null: infinite."""

    dataset: str
    points: list[dict[str, str | None]]


class ShownCharge(Answer):
    """A charge as it stands."""

    id: str
    grant: str
    state: Literal["reserved", "committed", "released"]
    event: dict[str, Any]
    cost: dict[str, Decimal]
    actor: str
    hash: str


class Charges(BaseModel):
    """A page of charges, in order; `next` is null on the last."""

    charges: list[ShownCharge]
    next: int | None


class Exported(Answer):
    """What was charged, for other accountants or for people."""

    kind: Literal["dp-event", "statement"]


class NewPolicy(BaseModel):
    """A dataset's policy."""

    policy: dict[str, Any]


class NewBlocks(BaseModel):
    """All blocks of a dataset."""

    dataset: str
    blocks: list[dict[str, Any]]


class NewGrant(BaseModel):
    """A grant, and the policy that it is a part of or has implied."""

    grant: dict[str, Any]
    policy: dict[str, Any]


class NewToken(BaseModel):
    """A token, told this once."""

    name: str
    role: str
    token: str


class Revoked(BaseModel):
    """A token that has ended."""

    name: str
    revoked: Literal[True]
