"""Templates become answers: everything escaped, a policy that lets no script run, numbers short with the exact ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from privcheck import __version__
from privcheck.ledger.roles import Role, may
from privcheck.reports.jinja import environment
from privcheck.reports.wording import Rounding, figure, percent
from privcheck.service.pages import wording
from privcheck.service.security import PAGES

if TYPE_CHECKING:
    from privcheck.service.pages.visitors import Visitor

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",  # with no-referrer a form would not say where it comes from
}
_DIGITS: Final = 4  # of a number in short
_MENU: Final = (("/", "Datasets"), ("/what-if", "What if"), ("/queue", "Queue"))
_STYLES: Final = (("privcheck.reports", "report.css"), ("privcheck.service.pages", "page.css"))


def render(name: str, scope: Scope, fields: Mapping[str, Any], *, status: int = 200) -> Response:
    """Returns a page.

    Args:
        name: Of the template.
        scope: Of the request: who visits, and where.
        fields: What the template shows.
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
    """Why nothing is written any more, for officers; that it is so, for all others; empty where it can be."""
    reason = visitor.desk.book.store.read_only or visitor.desk.book.store.doubt
    return reason if visitor.actor.role == "officer" or not reason else "the reason is for officers"


def _menu(role: Role) -> list[tuple[str, str]]:
    """Returns the pages that a role may see, with their names."""
    wanted = ((path, name, PAGES.get(("GET", path))) for path, name in _MENU)
    return [(path, name) for path, name, action in wanted if action is not None and may(role, action)]


@cache
def style_sheet() -> str:
    """Returns the one style sheet: that of reports, and what pages add."""
    return "\n".join(files(package).joinpath("templates", name).read_text("utf-8") for package, name in _STYLES)


@cache
def style_digest() -> str:
    """Returns what changes when the style sheet does."""
    return hashlib.sha256(style_sheet().encode()).hexdigest()[:12]


def number(text: str | None, rounding: Rounding = "up") -> Markup:
    """Returns an exact number in short, in a `<data>` element, with the exact one as its title where they differ.

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
    """Returns whether an exact number is what is written of it in short."""
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
    made.filters |= {"number": number, "share": _share, "symbol": wording.symbol, "event": wording.describe_event}
    made.filters |= {"day": wording.day, "moment": wording.moment, "relation": wording.relation}
    made.filters |= {
        "person": wording.person,
        "trust": wording.trust,
        "protected": wording.protected,
        "unit": wording.unit,
    }
    made.filters |= {"single": wording.describe_single, "noise": wording.describe_noise, "facts": wording.facts}
    made.tests["short"] = is_short
    made.filters["tojson_plain"] = wording.plain_json
    return made


def _share(part: str, whole: str) -> str:
    """Returns a part of a whole in per cent, rounded up."""
    return percent(float(Fraction(part) / Fraction(whole)), rounding="up")
