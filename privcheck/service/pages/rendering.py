"""Rendering of templates: everything escaped, a policy without scripts, short numbers with the exact ones as titles.

The functions before `render` are the texts for the ledger's values on pages.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from privcheck import __version__
from privcheck.ledger.registry import Role, may
from privcheck.ledger.values import BudgetPolicy
from privcheck.reports.markup import environment
from privcheck.reports.wording import Rounding, figure, label, percent, show_value
from privcheck.service.access import PAGES
from privcheck.terms.unit import Unit

if TYPE_CHECKING:
    from privcheck.service.pages.login import Visitor


_SYMBOLS: Final = {"epsilon": "ε", "rho": "ρ", "mu2": "μ²", "events": "events"}
_NAMES: Final = {
    "gaussian": "Gaussian noise",
    "laplace": "Laplace noise",
    "discrete_gaussian": "discrete Gaussian noise",
    "discrete_laplace": "discrete Laplace noise",
    "pure": "ε-DP release",
    "approximate": "(ε, δ)-DP release",
    "zcdp": "ρ-zCDP release",
    "gdp": "μ-GDP release",
    "randomized_response": "randomised response",
    "poisson_gaussian": "Gaussian noise on a Poisson sample",
}
_RELATIONS: Final = {
    "replace-one": "one {} is replaced",
    "replace-one-same-start": "one {} is replaced, step 1’s state and action in common",
    "add-remove": "one {} is added or removed",
    "zero-out": "the data of one {} are zeroed out",
}


def symbol(currency: str) -> str:
    """Symbol of a currency."""
    return _SYMBOLS.get(currency, currency)


def relation(policy: Mapping[str, Any]) -> str:
    """Neighbouring relation of a dataset's policy in words, with its number of trajectories."""
    read = BudgetPolicy.of(policy)
    most = 1 if read.unit is None else read.unit.trajectories
    person = read.who if most == 1 else f"{read.who}, with up to {most} trajectories,"
    return _RELATIONS.get(read.relation, "{}").format(person)


def person(policy: Mapping[str, Any]) -> str:
    """Noun for one protected person of a dataset."""
    return BudgetPolicy.of(policy).who


def trust(policy: Mapping[str, Any]) -> str:
    """Trust model of a dataset."""
    return BudgetPolicy.of(policy).trust


def protected(policy: Mapping[str, Any]) -> str:
    """Unit of privacy of a dataset in words, and its author."""
    return BudgetPolicy.of(policy).unit_words


def unit(value: Mapping[str, Any] | None) -> str:
    """Unit of privacy of a charge or a plan in words, and its author."""
    if value is None:
        return "never stated"
    read = Unit.of(value)
    return f"{read.words}; stated by {read.stated_by}"


def describe_event(event: Mapping[str, Any]) -> str:
    """Event in words: its name, its numbers, and the number of releases.

    >>> describe_event({"type": "gaussian", "std": "30", "count": 60})
    'Gaussian noise, σ = 30, 60 times'
    >>> describe_event({"type": "compose", "events": [{"type": "pure", "epsilon": "0.1", "count": 1}] * 2})
    'ε-DP release, ε = 0.1; ε-DP release, ε = 0.1'
    """
    if event.get("type") == "compose":
        parts = [describe_event(part) for part in event["events"][:3]]
        more = len(event["events"]) - len(parts)
        return "; ".join([*parts, f"and {more} more"] if more else parts)
    kind = str(event.get("type", ""))
    numbers = [
        f"{_letter(name)} = {value}" for name, value in event.items() if name not in ("type", "count")
    ]  # fmt: skip
    count = event.get("count", 1)
    often = [f"{figure(count)} times"] if isinstance(count, int) and count > 1 else []
    return ", ".join([_NAMES.get(kind, kind.replace("_", " ")), *numbers, *often])


def describe_single(event: Mapping[str, Any]) -> str:
    """Event in words, without the number of releases."""
    return describe_event({**event, "count": 1})


def describe_noise(event: Mapping[str, Any]) -> str:
    """The number that states an event's noise.

    >>> describe_noise({"type": "gaussian", "std": "21.8", "sensitivity": "1", "count": 2})
    'σ = 21.8'
    """
    return next(
        f"{_letter(name)} = {event[name]}" for name in ("std", "scale", "rho", "mu2", "epsilon") if name in event
    )


def facts(value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Fields of a claim with labels and texts, without its joint-DP conditions."""
    return [
        (label(str(name)), show_value(part)) for name, part in value.items() if part is not None and name != "joint"
    ]


def plain_json(value: Any) -> Markup:
    """Readable JSON, escaped; in ASCII, so that no character in it is invisible."""
    return escape(json.dumps(value, indent=1))


def _letter(name: str) -> str:
    return {"std": "σ", "scale": "b", "mu2": "μ²", "sensitivity": "Δ"}.get(name, label(name))


def day(text: str) -> str:
    """Day of a moment."""
    return text[:10]


def moment(text: str) -> str:
    """Moment to the minute."""
    return f"{text[:10]} {text[11:16]}"


_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",  # with no-referrer a form would not say where it comes from
}
_DIGITS: Final = 4  # of a number in short
_MENU: Final = (("/", "Datasets"), ("/what-if", "What if"), ("/queue", "Queue"))
_STYLES: Final = (("privcheck.reports", "report.css"), ("privcheck.service.pages", "page.css"))


def render(name: str, scope: Scope, fields: Mapping[str, Any], *, status: int = 200) -> Response:
    """Render a page.

    Args:
        name: Name of the template.
        scope: Scope of the request, with the visitor and the path.
        fields: Variables of the template.
        status: The HTTP status.
    """
    visitor = scope.get("state", {}).get("visitor")
    template = _environment().get_template(f"{name}.html.j2")
    text = template.render(
        **fields,
        visitor=visitor,
        menu=[] if visitor is None else _menu(visitor.actor.role),
        here=scope.get("path", ""),
        read_only="" if visitor is None else _explain_read_only(visitor),
        style=f"/page.css?{style_digest()}",
        version=__version__,
    )
    return HTMLResponse(text, status_code=status, headers=dict(_HEADERS))


def _explain_read_only(visitor: Visitor) -> str:
    """Reason why the store is read-only, for officers; a notice for others; empty if it is writable."""
    reason = visitor.desk.book.store.read_only or visitor.desk.book.store.doubt
    return reason if visitor.actor.role == "officer" or not reason else "the reason is for officers"


def _menu(role: Role) -> list[tuple[str, str]]:
    """Pages that a role may see, with their names."""
    wanted = ((path, name, PAGES.get(("GET", path))) for path, name in _MENU)
    return [(path, name) for path, name, action in wanted if action is not None and may(role, action)]


@cache
def style_sheet() -> str:
    """Style sheet of all pages: that of reports, with additions."""
    return "\n".join(files(package).joinpath("templates", name).read_text("utf-8") for package, name in _STYLES)


@cache
def style_digest() -> str:
    """Digest of the style sheet, for its URL."""
    return hashlib.sha256(style_sheet().encode()).hexdigest()[:12]


def number(text: str | None, rounding: Rounding = "up") -> Markup:
    """Exact number in short form, in a `<data>` element, with the exact one as its title if they differ.

    >>> number("0.123456"), number("0.5")
    (Markup('<data value="0.123456" title="0.123456">0.1235</data>'), Markup('<data value="0.5">0.5</data>'))
    """
    if text is None:
        return Markup("∞")
    short = _shorten(text, rounding)
    if is_short(text):
        return Markup('<data value="{}">{}</data>').format(text, short)
    return Markup('<data value="{}" title="{}">{}</data>').format(text, text, short)


def is_short(text: str) -> bool:
    """Whether an exact number equals its short form."""
    value = Fraction(text)
    return _is_whole(value) or Fraction(f"{float(value):.{_DIGITS}g}") == value


def _shorten(text: str, rounding: Rounding) -> str:
    value = Fraction(text)
    return figure(int(value) if _is_whole(value) else float(value), digits=_DIGITS, rounding=rounding)


def _is_whole(value: Fraction) -> bool:
    return value.denominator == 1 and abs(value) < 10**12


@cache
def _environment() -> Environment:
    made = environment("privcheck.service.pages")
    made.filters |= {"number": number, "share": _share, "symbol": symbol, "event": describe_event}
    made.filters |= {"day": day, "moment": moment, "relation": relation}
    made.filters |= {
        "person": person,
        "trust": trust,
        "protected": protected,
        "unit": unit,
    }
    made.filters |= {"single": describe_single, "noise": describe_noise, "facts": facts}
    made.tests["short"] = is_short
    made.filters["tojson_plain"] = plain_json
    return made


def _share(part: str, whole: str) -> str:
    """Part of a whole in per cent, rounded up."""
    return percent(float(Fraction(part) / Fraction(whole)), rounding="up")
