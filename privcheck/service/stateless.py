"""Endpoints that need no store and no token: calculations, and the registered algorithms."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.responses import JSONResponse

from privcheck import __version__, registry
from privcheck.service import models
from privcheck.service.calculator import Calculator, Calculators
from privcheck.service.problems import ProblemError, responses
from privcheck.service.questions import check_query

router = APIRouter(prefix="/v1", tags=["calculations"], dependencies=[Depends(check_query)])


def _calculator(request: Request) -> Calculator:
    calculators: Calculators = request.app.state.calculators
    return calculators.of(request.state.caller.role)


Calculates = Annotated[Calculator, Depends(_calculator)]


def _known(name: models.AlgorithmName) -> str:
    if name not in registry.names("algorithms"):
        raise ProblemError(404, f"there is no algorithm {name!r}: GET /v1/algorithms lists them")
    return name


Known = Annotated[str, Depends(_known)]


@router.post("/compose", responses=responses())
def compose(body: models.ComposeBody, calculator: Calculates) -> models.Composed:
    """Returns ε at δ, or δ at ε, of events on the same data."""
    return models.Composed.model_validate(calculator.run("compose", _plain(body)))


@router.post("/calibrate", responses=responses())
def calibrate(body: models.CalibrateBody, calculator: Calculates) -> models.CalibratedAnswer:
    """Returns the least noise with which events keep (ε, δ)."""
    return models.CalibratedAnswer.model_validate(calculator.run("calibrate", _plain(body)))


@router.post("/convert", responses=responses())
def convert(body: models.ConvertBody, calculator: Calculates) -> models.Converted:
    """Returns what a guarantee implies: ε at δ or δ at ε, and its cost in ordered currencies."""
    return models.Converted.model_validate(calculator.run("convert", body.model_dump(exclude_none=True)))


@router.get("/algorithms", response_model=models.Document, responses=responses())
def list_algorithms(calculator: Calculates) -> Response:
    """Returns the registered algorithms, as `privcheck list`."""
    return _document(calculator.run_later("algorithms", {}))


@router.get("/algorithms/{name}", response_model=models.Document, responses=responses())
def show_algorithm(name: Known, calculator: Calculates) -> Response:
    """Returns what an algorithm releases and how its cost is derived, as `privcheck show`."""
    return _document(calculator.run("show", {"name": name}))


@router.post("/algorithms/{name}/budget", response_model=models.Document, responses=responses())
def budget_algorithm(name: Known, body: models.BudgetBody, calculator: Calculates) -> Response:
    """Returns what the releases of an algorithm cost, as `privcheck budget`."""
    return _document(calculator.run("budget", {"name": name, **body.model_dump()}))


@router.post(
    "/algorithms/{name}/verify",
    response_model=models.Document,
    responses={202: {"model": models.Waiting, "description": "Not there yet: ask again."}, **responses()},
)
def verify_algorithm(name: Known, body: models.VerifyBody, calculator: Calculates) -> Response:
    """Returns the verdict on an algorithm's claim, as `privcheck verify`; 202 while it is being found."""
    found = calculator.run_later("verify", {"name": name, "version": __version__, **body.model_dump()})
    if found is None:
        return JSONResponse(models.Waiting(state="running").model_dump(), 202, {"Retry-After": "2"})
    return _document(found)


@router.get("/healthz", responses=responses())
def health() -> models.Health:
    """Returns that the service lives."""
    return models.Health(status="ok", version=__version__)


def _document(found: dict[str, Any] | None) -> Response:
    if found is None:
        raise ProblemError(503, "not there yet: ask again", public=True)
    return JSONResponse(found)


def _plain(body: models.ComposeBody | models.CalibrateBody) -> dict[str, Any]:
    return {**body.model_dump(exclude={"events"}), "events": [event.plain() for event in body.events]}
