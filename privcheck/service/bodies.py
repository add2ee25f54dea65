"""Bodies as JSON: UTF-8, every field once, and numbers as they are written.

A float would lose digits before anybody could refuse them, and of two fields of one name each parser takes another.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from privcheck.service.problems import FieldProblem, ProblemError


def rewrite_json(body: bytes) -> bytes:
    """Returns a body that every parser reads alike; numbers that are not whole are texts. None at all stays none.

    Raises:
        ProblemError: It is no UTF-8 or nested too deeply (400), or it is no JSON, a field is there twice, or a number
            is none (422).
    """
    if not body:
        return body
    try:
        told = json.loads(
            body.decode("utf-8"), parse_float=str, parse_constant=_refuse_constant, object_pairs_hook=_once
        )
        return json.dumps(told).encode()
    except json.JSONDecodeError as error:  # left as it is, another parser might take it for UTF-16
        _refuse("body", f"expected JSON: {error}")
    except UnicodeDecodeError:
        raise ProblemError(400, "expected a body in UTF-8") from None
    except RecursionError:
        raise ProblemError(400, "expected a body of fewer levels: it is nested too deeply") from None
    except ValueError:
        _refuse("body", "expected numbers of fewer digits")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    told = dict(pairs)
    if len(told) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        _refuse(twice[:100], f"the field {twice[:60]!r} is there twice")
    return told


def _refuse_constant(name: str) -> NoReturn:
    _refuse("body", f"expected a finite number, got {name}")


def _refuse(field: str, message: str) -> NoReturn:
    raise ProblemError(422, message, errors=[FieldProblem(field=field, message=message)])
