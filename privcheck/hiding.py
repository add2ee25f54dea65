"""URLs without their passwords, for messages, logs and records."""

from __future__ import annotations

import re
from typing import Final

# a password ends at the last "@" of the word: one with "@" or "/" in it is malformed, and is a password all the same
_USER: Final = re.compile(r"(?<=://)([^\s:/@?#]*):\S*@")
_FIELD: Final = re.compile(r"((?:^|[?&;\s'\"])(?:ssl)?password=)('[^']*'|[^\s&]*)", re.IGNORECASE)


def hide_passwords(text: str) -> str:
    """Returns a text in which no URL, and no connection string of PostgreSQL, shows its password.

    >>> hide_passwords("no ledger at postgres+x://ann:s3cret/@host/budget?password=s3cret")
    'no ledger at postgres+x://ann@host/budget?password=…'
    """
    return _FIELD.sub(r"\1…", _USER.sub(r"\1@", text))
