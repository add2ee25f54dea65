"""Endpoints that need no store and no token: calculations and the registered algorithms, with their bodies and answers.

The bodies and answers are in the form that the OpenAPI document shows.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator
from starlette.responses import JSONResponse

from privcheck import __version__
from privcheck.ledger.exact import is_plain
from privcheck.runtime import registry
from privcheck.service.access import MOST_COUNT, MOST_EVENTS, check_query
from privcheck.service.calculator import Calculator, Calculators
from privcheck.service.problems import ProblemError, responses

_DECIMAL = r"[0-9]{1,40}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,3})?"
_NUMBER, _EXACT = f"^{_DECIMAL}$", f"^({_DECIMAL}|[0-9]{{1,30}}/[0-9]{{1,30}})$"


def _printable(text: str) -> str:
    if not is_plain(text):
        raise ValueError("expected a text without control characters")
    return text


Word = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Number = Annotated[
    str, StringConstraints(max_length=64, pattern=_NUMBER), Field(description="A decimal string.", examples=["0.01"])
]
Exact = Annotated[
    str,
    StringConstraints(max_length=64, pattern=_EXACT),
    Field(description="A decimal string, or p/q.", examples=["0.01", "1/3"]),
]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(_printable)]
Field_ = Annotated[str, StringConstraints(max_length=64), AfterValidator(_printable)]
AlgorithmName = Annotated[Word, Path(description="A registered algorithm.", examples=["dp-apvi"])]


class Body(BaseModel):
    """Request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class EventBody(BaseModel):
    """Release: a type, and its fields as decimal strings; nothing in it is evaluated."""

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        json_schema_extra={
            "additionalProperties": {"type": ["string", "integer", "number", "boolean"], "maxLength": 64},
            "examples": [{"type": "gaussian", "rho": "0.01", "count": 3}, {"type": "laplace", "scale": "10"}],
        },
    )
    __pydantic_extra__: dict[str, Field_ | int | float | bool]

    type: Word
    count: Annotated[int, Field(ge=1, le=MOST_COUNT, description="How often.")] = 1

    def plain(self) -> dict[str, Any]:
        """Event as JSON."""
        return self.model_dump()


class _Level(Body):
    epsilon: Number | None = None
    delta: Number | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.epsilon is None) == (self.delta is None):
            raise ValueError("give epsilon for a δ, or delta for an ε")
        return self


class ComposeBody(_Level):
    """Events on the same data, and an ε or a δ."""

    events: Annotated[list[EventBody], Field(min_length=1, max_length=MOST_EVENTS)]


class Composed(BaseModel):
    """Cost of events together."""

    quantity: Literal["epsilon", "delta"]
    at: dict[str, str] = Field(description="The given δ or ε.")
    estimate: str | None = Field(description="The tight value; null: infinite.")
    upper: str | None = Field(description="A certified bound, never below the truth; null: infinite.")
    method: str
    direction: str = Field(description="Direction of the error of `estimate`: exact, estimate or upper.")
    reason: str


class CalibrateBody(Body):
    """Target and events; the spreads of all noise in them are multiplied by one factor."""

    epsilon: Number
    delta: Number
    events: Annotated[list[EventBody], Field(min_length=1, max_length=MOST_EVENTS)]


class CalibratedAnswer(BaseModel):
    """Least noise that keeps the target."""

    factor: str | None = Field(description="Factor of the spreads.")
    events: list[dict[str, JsonValue]] = Field(description="The events at that noise.")
    epsilon: str | None = Field(description="Certified for these events at δ, at most the target.")
    estimate: str | None
    delta: str
    method: str
    tolerance: str | None = Field(description="Relative: the noise may be at most this much above the least.")


class GuaranteeBody(Body):
    """Guarantee: pure with epsilon, zcdp with rho, gdp with mu, approximate with epsilon and delta."""

    type: Literal["pure", "zcdp", "gdp", "approximate"]
    epsilon: Number | None = None
    rho: Number | None = None
    mu: Number | None = None
    delta: Number | None = None


class ConvertBody(_Level):
    """Guarantee, and an ε or a δ."""

    guarantee: GuaranteeBody


class Converted(BaseModel):
    """Consequences of a guarantee for every mechanism that keeps it; all rounded up."""

    guarantee: dict[str, JsonValue]
    epsilon: str | None = Field(description="null: infinite.")
    delta: str | None
    implies: dict[str, str | None] = Field(
        description="Its cost in ordered currencies: epsilon, rho, mu2; null: no finite cost."
    )


Settings = Annotated[
    dict[Word, Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(_printable)]],
    Field(max_length=40, description="Exact numbers, or the name of a reading.", examples=[{"H": "20", "rho": "1/2"}]),
]


class VerifyBody(Body):
    """Parameters of an algorithm."""

    parameters: Settings = Field(default_factory=dict)


class BudgetBody(VerifyBody):
    """Parameters of an algorithm, and the δ at which ε is reported."""

    delta: Number | None = None


class Document(BaseModel):
    """Document, as the command of that name prints it with --json."""

    model_config = ConfigDict(extra="allow")

    schema_: int = Field(alias="schema", description="Version of the form.")


class Health(BaseModel):
    """State of the service, and of its pushes of the ledger's heads to a witness, if it pushes them."""

    status: Literal["ok"]
    version: str
    heads_pushed: Annotated[str | None, Field(description="Time of the last push, in UTC.")] = None
    heads_failing: Annotated[bool, Field(description="The last push failed; the service's log says why.")] = False


class Waiting(BaseModel):
    """Notice that the answer is not ready yet: ask again."""

    state: Literal["running"]


router = APIRouter(prefix="/v1", tags=["calculations"], dependencies=[Depends(check_query)])


def _calculator(request: Request) -> Calculator:
    calculators: Calculators = request.app.state.calculators
    return calculators.of(request.state.caller.role)


Calculates = Annotated[Calculator, Depends(_calculator)]


def _known(name: AlgorithmName) -> str:
    if name not in registry.names("algorithms"):
        raise ProblemError(404, f"there is no algorithm {name!r}: GET /v1/algorithms lists them")
    return name


Known = Annotated[str, Depends(_known)]


@router.post("/compose", responses=responses())
def compose(body: ComposeBody, calculator: Calculates) -> Composed:
    """Compose events on the same data: ε at δ, or δ at ε."""
    return Composed.model_validate(calculator.run("compose", _plain(body)))


@router.post("/calibrate", responses=responses())
def calibrate(body: CalibrateBody, calculator: Calculates) -> CalibratedAnswer:
    """Compute the least noise with which events keep (ε, δ)."""
    return CalibratedAnswer.model_validate(calculator.run("calibrate", _plain(body)))


@router.post("/convert", responses=responses())
def convert(body: ConvertBody, calculator: Calculates) -> Converted:
    """Convert a guarantee: ε at δ or δ at ε, and its cost in ordered currencies."""
    return Converted.model_validate(calculator.run("convert", body.model_dump(exclude_none=True)))


@router.get("/algorithms", response_model=Document, responses=responses())
def list_algorithms(calculator: Calculates) -> Response:
    """List the registered algorithms, as `privcheck list`."""
    return _document(calculator.run_later("algorithms", {}))


@router.get("/algorithms/{name}", response_model=Document, responses=responses())
def show_algorithm(name: Known, calculator: Calculates) -> Response:
    """Show an algorithm's releases and the derivation of their cost, as `privcheck show`."""
    return _document(calculator.run("show", {"name": name}))


@router.post("/algorithms/{name}/budget", response_model=Document, responses=responses())
def budget_algorithm(name: Known, body: BudgetBody, calculator: Calculates) -> Response:
    """Compute the cost of an algorithm's releases, as `privcheck budget`."""
    return _document(calculator.run("budget", {"name": name, **body.model_dump()}))


@router.post(
    "/algorithms/{name}/verify",
    response_model=Document,
    responses={202: {"model": Waiting, "description": "Not ready yet: ask again."}, **responses()},
)
def verify_algorithm(name: Known, body: VerifyBody, calculator: Calculates) -> Response:
    """Verify an algorithm's claim, as `privcheck verify`; 202 while that is in progress."""
    found = calculator.run_later("verify", {"name": name, "version": __version__, **body.model_dump()})
    if found is None:
        return JSONResponse(Waiting(state="running").model_dump(), 202, {"Retry-After": "2"})
    return _document(found)


@router.get("/healthz", responses=responses())
def health() -> Health:
    """Check that the service is running."""
    return Health(status="ok", version=__version__)


def _document(found: dict[str, Any] | None) -> Response:
    if found is None:
        raise ProblemError(503, "not ready yet: ask again", public=True)
    return JSONResponse(found)


def _plain(body: ComposeBody | CalibrateBody) -> dict[str, Any]:
    return {**body.model_dump(exclude={"events"}), "events": [event.plain() for event in body.events]}
