"""What the ledger's commands read: who acts, what is released, receipts; and what they give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from privcheck.errors import ParameterError
from privcheck.ledger import Receipt, Spending, parse_event
from privcheck.ledger.trust import STATED

if TYPE_CHECKING:
    from privcheck.commands.desks import Desk
    from privcheck.ledger.heads import Head

_WAYS: Final = "--event, --event-file, --gaussian-rho, --gaussian-std, --laplace-epsilon or --pure-epsilon"


def give(desk: Desk, **fields: Any) -> dict[str, Any]:
    """Returns a new grant, and the policy that it is a part of.

    Raises:
        click.UsageError: It is neither a cap in a currency nor a plan.
    """
    file, given = fields.pop("plan"), {name: value for name, value in fields.items() if value is not None}
    if (file is None) != ("currency" in given and "cap" in given) or (file is not None and "lost" in given):
        raise click.UsageError("give --currency and --cap, or --plan")
    if file is not None:
        given |= {"events": file.read_text(encoding="utf-8"), "unit": read_unit(given.get("unit"))}
    elif "unit" in given:
        raise click.UsageError("--unit goes with --plan: a cap is for the dataset's unit")
    return desk.grant(**given)


def change_token(
    desk: Desk, *, name: str, role: str | None, grants: tuple[str, ...], expires: str | None
) -> dict[str, Any]:
    """Returns a new token, or which one was ended where there is no role."""
    if role is None:
        desk.revoke_token(name)
        return {"name": name, "revoked": True}
    token = desk.make_token(name=name, role=role, grants=grants, expires=expires)
    return {"name": name, "role": role, "grants": list(grants), "expires": expires, "token": token}


def read_event(
    *,
    event: str | None,
    event_file: Path | None,
    gaussian_rho: str | None,
    gaussian_std: str | None,
    laplace_epsilon: str | None,
    pure_epsilon: str | None,
    sensitivity: str | None,
    count: str | None,
) -> Spending:
    """Returns what is released, as the options say it.

    Raises:
        click.UsageError: They say it twice, or not at all.
        ParameterError: It is no event.
    """
    short: dict[str, Any] = {
        "rho": ("gaussian", gaussian_rho),
        "std": ("gaussian", gaussian_std),
        "epsilon": ("laplace", laplace_epsilon),
        "pure": ("pure", pure_epsilon),
    }
    given = {field: pair for field, pair in short.items() if pair[1] is not None}
    if len(given) + (event is not None) + (event_file is not None) != 1:
        raise click.UsageError(f"say once what is released: {_WAYS}")
    if event is not None or event_file is not None:
        if sensitivity is not None or count is not None:
            raise click.UsageError("--sensitivity and --count go into the event's JSON")
        return parse_event(event if event_file is None else event_file.read_text(encoding="utf-8"))
    if sensitivity is not None and gaussian_std is None:
        raise click.UsageError("--sensitivity goes with --gaussian-std")
    field, (kind, value) = next(iter(given.items()))
    more = {"sensitivity": sensitivity, "count": count}
    fields = {"epsilon" if field == "pure" else field: value, **{n: v for n, v in more.items() if v is not None}}
    return parse_event({"type": kind, **fields})


def read_unit(unit: str | None) -> str:
    """Returns for whom an event was priced, as the option says it.

    Raises:
        click.UsageError: It does not.
    """
    if unit is None:
        message = (
            "expected --unit beside an event: for whom it was priced, as 'patient, 8 trajectories, replace-one, "
            "central'; or --unit dataset, by which you state that it was priced for the dataset's unit (ledger show)"
        )
        raise click.UsageError(message)
    return unit


def state(conditions: tuple[str, ...]) -> dict[str, Any] | None:
    """Returns the claim that conditions of joint DP make of an event; None where there are none."""
    return {"joint": dict.fromkeys(conditions, STATED)} if conditions else None


def read_receipt(text: str) -> Receipt:
    """Returns a receipt: its JSON, that of a charge that has one, or a file with either.

    Raises:
        ParameterError: It is none.
    """
    given = text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8")
    try:
        data = json.loads(given)
        found = data.get("receipt") or data.get("head") or data
    except (ValueError, AttributeError):
        message = "expected a receipt: the JSON that a charge printed, or its field receipt"
        raise ParameterError(message, name="receipt", given=text) from None
    return Receipt.parse(found)


def read_receipts(file: Path) -> list[Receipt]:
    """Returns the receipts of a file, one a line.

    Raises:
        ParameterError: A line is none.
    """
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    if wrong := [line for line in lines if not line.lstrip().startswith("{")]:
        message = f"expected receipts as JSON, one a line, got {wrong[0][:60]!r}"
        raise ParameterError(message, name="receipts", given=wrong[0])
    return [read_receipt(line) for line in lines]


def read_heads(place: str | None) -> tuple[Head, ...]:
    """Returns the heads that a witness keeps; none without one.

    Raises:
        ParameterError: It keeps no heads.
        StoreError: It cannot be read.
    """
    if place is None:
        return ()
    from privcheck.ledger.heads import Evidence
    from privcheck.ledger.witnesses import open_witness

    found = Evidence.parse(open_witness(place).read(), name="heads").heads
    if not found:
        raise ParameterError(f"expected heads in {place!r}, and there are none", name="heads", given=place)
    return found
