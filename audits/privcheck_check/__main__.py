"""`python -m privcheck_check certificate.json`: exit 0 accepted, 1 rejected, 3 not a kind it knows."""

import sys
from pathlib import Path

from privcheck_check.check import check
from privcheck_check.values import FILE_BYTES, Rejected, UnknownKind


def main(arguments: list[str]) -> int:
    """Check the one file named; print one line."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m privcheck_check certificate.json\n")
        return 2
    try:
        with Path(arguments[0]).open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    except OSError as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    try:
        line, status = f"accepted: {check(data)}", 0
    except Rejected as fault:
        line, status = f"rejected: {fault}", 1
    except UnknownKind as fault:
        line, status = f"unknown kind: {fault}", 3
    shown = "".join(each if each.isprintable() else "?" for each in line) + "\n"
    sys.stdout.buffer.write(shown.encode("utf-8", "backslashreplace"))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
