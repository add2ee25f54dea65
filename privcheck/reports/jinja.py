"""How templates become pages: everything escaped, nothing undefined, no control characters."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from privcheck.reports.wording import capitalise, figure, keep_together, spell_out, strip_controls


@cache
def environment(package: str) -> Environment:
    """Returns the environment of a package's folder `templates`; pages of the same package share it."""
    made = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    made.filters |= {"breakable": breakable, "spell_out": spell_out, "keep_together": keep_together}
    made.filters |= {"capitalise": capitalise, "figure": figure}
    return made


def breakable(text: str) -> Markup:
    """Returns a hash or a path that may break after every few characters."""
    clean = strip_controls(text)
    return Markup("<wbr>").join(clean[i : i + 8] for i in range(0, len(clean), 8))


def _clean(value: object) -> object:
    return strip_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value
