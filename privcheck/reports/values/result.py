"""What every result has: a short repr, a table for notebooks, the JSON of the command line, a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privcheck.brief import Brief
from privcheck.reports.values.codec import document


class Result(Brief):
    """A report value that commands and Python functions return: as `Brief`, with its JSON document."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON document: what the command of the same name prints with `--json`.

        Raises:
            ParameterError: There is a NaN in it, or what JSON has no form for.
        """
        return document(self)

    def save(self, path: Path | str) -> Path:
        """Writes the JSON document, or the report's page where there is one, and returns the path.

        Args:
            path: A name that ends in .json or .html; directories on the way are made.

        Raises:
            ParameterError: The name ends otherwise, or nothing of this kind has a page.
            PrivcheckError: It cannot be written; what was there before is still there.
        """
        from privcheck.reports.keeping import keep  # Jinja2 and Matplotlib only where a page is made

        return keep(self, Path(path))
