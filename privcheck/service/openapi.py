"""The OpenAPI document: `python -m privcheck.service.openapi > docs/openapi.json` writes the committed one."""

from __future__ import annotations

import json

from privcheck.service.app import create_app


def describe() -> str:
    """Returns the document as text; the version of the package is left out, so that it changes with the API alone."""
    document = create_app().openapi()
    return json.dumps({**document, "info": {**document["info"], "version": "1"}}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(describe(), end="")  # noqa: T201 - its purpose
