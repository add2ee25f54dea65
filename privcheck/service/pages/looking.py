"""Pages that show the ledger: all datasets, one dataset, one charge, a statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from privcheck.service.pages.rendering import render
from privcheck.service.pages.standing import bar_of, standing_of_dataset, standing_of_grant
from privcheck.service.pages.visitors import Visiting

router = APIRouter()


@router.get("/")
async def show_all(request: Request, visitor: Visiting) -> Response:
    """Returns the page of all datasets."""
    desk = visitor.desk
    shown = await desk.call(desk.book.show, visitor.actor)
    now = desk.book.now()
    datasets = [_dataset(one, now) for one in shown["datasets"]]
    return render("datasets", request.scope, {"datasets": datasets, "now": now})


def _dataset(dataset: Mapping[str, Any], now: str) -> dict[str, Any]:
    grants = [{**grant, "bar": bar_of(grant), "standing": standing_of_grant(grant)} for grant in dataset["grants"]]
    return {**dataset, "grants": grants, "standing": standing_of_dataset(dataset, now=now)}
