"""Request and response models of the ledger's endpoints."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from fastapi import Header, Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from privcheck.ledger.exact import read_name
from privcheck.service.access import MOST_EVENTS
from privcheck.service.calculation_routes import Body, EventBody, Exact, Line, Settings, Text, Word
from privcheck.terms.unit import LARGEST, Basis, RelationName, TrustModel

Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="Your choice: a repeated request with the same key is written once and gets the same answer.",
    ),
]
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64, pattern=r"^[^\W_][\w.-]*$"),
    AfterValidator(lambda name: read_name("a name", name)),  # letters of every script, in the one form of each
]
InPath = Annotated[Name, Path()]
Hash = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]
After = Annotated[int, Query(ge=0, le=2**53, description="The `next` of the previous page.")]
_AT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"
At = Annotated[
    str, StringConstraints(max_length=32, pattern=_AT),
    Field(examples=["2027-01-31T12:00:00Z"]),
]  # fmt: skip
Decimal = Annotated[str, Field(description="An exact decimal string; p/q where it has no finite decimal form.")]


class About(Body):
    """Description of an event by its author; it is not verified, and is stored with the charge."""

    algorithm: Word | None = None
    parameters: Settings = Field(default_factory=dict)
    noise: Line | None = None
    record: Annotated[
        str | None,
        StringConstraints(pattern=r"^[0-9a-f]{64}$"),
        Field(description="The digest of the run's own record, if the run was not charged before its first draw."),
    ] = None


class UnitBody(Body):
    """Unit of privacy: the protected person, the amount of data, the neighbouring relation, and the trust model."""

    who: Annotated[Line, Field(description="The noun for one protected person.", examples=["patient"])]
    trajectories: Annotated[int, Field(ge=1, le=LARGEST, description="The most trajectories of one person.")]
    steps: Annotated[int | None, Field(ge=1, le=LARGEST, description="The most steps of one trajectory.")] = None
    relation: RelationName
    model: TrustModel

    def stated(self) -> dict[str, Any]:
        """Fields that are given."""
        return self.model_dump(exclude_none=True)


class OfferedBody(UnitBody):
    """Unit for which an event was priced, and its source; by default a statement of the caller."""

    basis: Annotated[
        Basis,
        Field(description="assertion: each episode was stated to belong to a different user, but no column shows it."),
    ] = "statement"
    stated_by: Annotated[
        Line | None, Field(description="Source of the unit; for a statement, always the charging account.")
    ] = None


Offered = Annotated[
    Literal["dataset"] | OfferedBody,
    Field(
        description="The unit of its price; 'dataset': you state that it was priced for the dataset's unit. 422 if "
        "that is no guarantee for the dataset's unit."
    ),
]


def plain_unit(unit: OfferedBody | str | None) -> dict[str, Any] | str | None:
    """Unit in the format of the book."""
    return unit.stated() if isinstance(unit, OfferedBody) else unit


class SpendBody(Body):
    """Planned release, and its grant: an event with its unit, or a claim that holds."""

    grant: Name
    event: EventBody | None = None
    claim: Annotated[
        str | None, StringConstraints(pattern=r"^[0-9a-f]{64}$"), Field(description="From POST /v1/claims.")
    ] = None
    unit: Offered | None = None
    conditions: Annotated[
        list[Literal["outputs", "billboard"]] | None,
        Field(
            max_length=2,
            description="For joint DP: the conditions of the billboard lemma that were found to hold; "
            "with all of them: 201.",
        ),
    ] = None
    about: About | None = None
    blocks: Annotated[
        list[Name] | None,
        Field(min_length=1, max_length=64, description="For a divided dataset: some of the grant's blocks; null: all."),
    ] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.event is None) == (self.claim is None):
            raise ValueError("give an event, or a claim")
        stated = (self.unit, self.conditions, self.about)
        if self.event is None and any(one is not None for one in stated):
            raise ValueError("give unit, conditions and about with an event: a claim has its own")
        if self.event is not None and self.unit is None:
            raise ValueError(
                "give unit with an event: the unit of its price, or 'dataset' to state that it was priced for the "
                "dataset's unit"
            )
        return self


class ReserveBody(SpendBody):
    """Planned release, and the duration of its reservation."""

    seconds: Annotated[int, Field(ge=1, le=30 * 24 * 3600)] = 3600


class ReleaseBody(Body):
    """Reason for releasing a reservation."""

    evidence: Annotated[Text, Field(description="Evidence that no noise was drawn.")]


class ClaimBody(Body):
    """Claim of an algorithm, at parameters."""

    algorithm: Word
    parameters: Settings = Field(default_factory=dict)


class DatasetBody(Body):
    """Policy of a dataset: the permanent guarantee of all its grants together."""

    dataset: Name
    epsilon: Exact
    delta: Exact
    unit: UnitBody
    asserted_units: Annotated[
        bool, Field(description="Whether to charge runs whose unit was only asserted, not shown by a column.")
    ] = False
    remainder: Literal["epsilon", "rho", "mu2"] = "rho"
    until: At | None = None


class BlocksBody(Body):
    """New blocks of a dataset, each with the whole policy as its cap."""

    blocks: Annotated[list[Name], Field(min_length=1, max_length=64)]
    disjoint_users: Annotated[
        Line | None,
        Field(description="Evidence that a person in one block is in no other; required (422)."),
    ] = None


class GrantBody(Body):
    """Part of a dataset's budget: a cap in a currency, or a plan of events that charges count down."""

    name: Name
    dataset: Name
    currency: Literal["epsilon", "rho", "mu2"] | None = None
    cap: Exact | None = None
    lost: Exact | None = None
    events: Annotated[list[EventBody], Field(min_length=1, max_length=MOST_EVENTS)] | None = None
    unit: Annotated[Offered | None, Field(description="For a plan: the unit of its events' prices.")] = None
    delta: Exact | None = None
    blocks: Annotated[
        list[Name] | None, Field(max_length=64, description="For a divided dataset: the covered blocks.")
    ] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [self.currency is not None, self.cap is not None]
        if not (all(given) and self.events is None) and not (self.events is not None and not any([*given, self.lost])):
            raise ValueError("give currency and cap, or the events of a plan")
        if (self.unit is None) != (self.events is None):
            raise ValueError(
                "give unit with the events of a plan: the unit of their prices, or 'dataset'; a cap is for the "
                "dataset's unit"
            )
        return self

    def fields(self) -> dict[str, Any]:
        """Arguments of `Book.grant`, or with events of `Book.plan`."""
        told = self.model_dump(exclude_none=True, exclude={"events", "unit"})
        if self.events is None:
            return told
        told["unit"] = plain_unit(self.unit)
        return {**told, "events": {"type": "compose", "events": [event.plain() for event in self.events]}}


class EvidenceBody(Body):
    """Audit's finding on a charge; a violation freezes the grant."""

    charge: Name
    verdict: Literal["consistent", "violation"]
    report: Annotated[Text, Field(description="Location of the report, or its digest.")]


class NewEvidence(BaseModel):
    """The new row; its receipt is at /v1/receipts/{hash}."""

    charge: str
    verdict: Literal["consistent", "violation"]
    hash: str


class FreezeBody(Body):
    """Reason for freezing a grant."""

    reason: Text


class Frozen(BaseModel):
    """Frozen grant; `hash` is that of the row that froze it."""

    grant: str
    state: Literal["frozen"]
    hash: str


class ReceiptBody(Body):
    """Receipt, as a charge returned it."""

    dataset: Name
    seq: Annotated[int, Field(ge=1, le=2**53)]
    hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    at: At
    store: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = None
    key: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    signature: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64}|[A-Za-z0-9+/]{86}==)$")]


class VerifyBody(Body):
    """Kept receipts."""

    receipts: Annotated[list[ReceiptBody], Field(max_length=128, default_factory=list)]


class AcceptBody(VerifyBody):
    """Kept receipts, and whether to proceed where rows are lost."""

    freeze: Annotated[bool, Field(description="The grants to which lost rows may have been charged are frozen.")] = (
        False
    )


class TokenBody(Body):
    """Holder of a token, and its permissions."""

    name: Name
    role: Literal["reader", "analyst", "ci", "officer", "admin"]
    grants: Annotated[list[Name], Field(max_length=100, default_factory=list)]
    expires: At | None = None


class Answer(BaseModel):
    """Response that may get more fields."""

    model_config = ConfigDict(extra="allow")


class SignedHead(Answer):
    """Row of a dataset's chain, signed with Ed25519: keep it as proof against a cut; the key is at /v1/key."""

    dataset: str
    seq: int
    hash: str
    at: str
    store: str
    key: str
    signature: str


class SigningKey(Answer):
    """Ed25519 key of the ledger, in PEM, and the SHA-256 of its DER form."""

    key: str
    fingerprint: str


class TreeHead(Answer):
    """Number of rows of a chain, and the root of the Merkle tree over them (RFC 9162), signed."""

    kind: Literal["head"]
    store: str
    dataset: str
    size: int
    root: str
    at: str
    key: str
    signature: str


class SignedHeads(Answer):
    """Heads of all chains: that of names and tokens, and the datasets'."""

    heads: list[TreeHead]


class Decided(Answer):
    """Outcome of a request to spend."""

    state: Literal["reserved", "committed", "released"]
    id: str
    grant: str
    receipt: SignedHead
    remaining: Decimal
    cost: dict[str, Decimal]
    expires: str | None


class Checked(Answer):
    """Result of a verification of the ledger; its problems, one sentence each."""

    ok: bool
    rows: int
    datasets: dict[str, dict[str, Any]] = Field(description="The head of every chain: its place and hash.")
    problems: list[str]
    notes: list[str] = Field(description="Remarks that are not problems, one sentence each.")


class Accepted(Answer):
    """Whether a restored store is writable again, and the findings."""

    accepted: bool


class ShownGrant(Answer):
    """Grant, and the rest of its budget."""

    name: str
    dataset: str
    currency: str
    cap: Decimal
    remaining: Decimal
    balance: dict[str, Any]
    forecast: dict[str, Any] | None = Field(
        description="How many more charges like the newest fit, and when all is spent at the recent rate; null before "
        "the first charge and in the local model."
    )


class Quoted(Answer):
    """Cost of a planned charge; nothing was written."""

    state: Literal["quoted", "refused"]
    grant: str
    reason: str | None
    remaining: Decimal
    times: int | None = Field(
        description="Number of times that it fits into the free budget; null if it costs nothing."
    )


class Claimed(Answer):
    """Claim under verification: charge it once `state` is holds."""

    claim: str
    state: Literal["running", "holds", "fails", "undecided"]
    algorithm: str
    events: dict[str, dict[str, Any] | None] | None = Field(
        description="Its charge in each currency, at the accountant's cost; null: infinite."
    )


class ShownDataset(Answer):
    """Dataset: its policy, its grants with the rest of their budget, the head of its chain."""

    name: str
    policy: dict[str, Any]
    grants: list[dict[str, Any]]
    support: dict[str, Any]
    head: SignedHead
    clock: str | None = Field(description="If its newest row is ahead of this machine's clock: the consequence.")


class ShownDatasets(BaseModel):
    """All datasets."""

    datasets: list[ShownDataset]


class CapCurve(BaseModel):
    """ε at δ of all that the grants will ever admit; null: infinite."""

    dataset: str
    points: list[dict[str, str | None]]


class ShownCharge(Answer):
    """Current state of a charge."""

    id: str
    grant: str
    state: Literal["reserved", "committed", "released"]
    event: dict[str, Any]
    cost: dict[str, Decimal]
    actor: str
    hash: str


class Charges(BaseModel):
    """Page of charges, in order; `next` is null on the last."""

    charges: list[ShownCharge]
    next: int | None


class Exported(Answer):
    """Charges or guarantees, for other accountants or for people."""

    kind: Literal["dp-event", "statement"]


class NewPolicy(BaseModel):
    """Policy of a new dataset."""

    policy: dict[str, Any]


class NewBlocks(BaseModel):
    """All blocks of a dataset."""

    dataset: str
    blocks: list[dict[str, Any]]


class NewGrant(BaseModel):
    """New grant, and the policy that it is a part of."""

    grant: dict[str, Any]
    policy: dict[str, Any]


class NewToken(BaseModel):
    """New token, shown only this once."""

    name: str
    role: str
    token: str


class Token(BaseModel):
    """Holder of a token, and its permissions; the token itself is shown once, when it is made."""

    name: str
    role: str
    grants: list[str]
    expires: str | None
    revoked: str | None
    made_by: str
    made_at: str


class Tokens(BaseModel):
    """All tokens, in the order of their creation."""

    tokens: list[Token]


class Revoked(BaseModel):
    """Revoked token."""

    name: str
    revoked: Literal[True]
