"""Certificates of commands: written, and checked by a program of its own before a result says so.

The checker is `privcheck_check`: it runs in a process that finds the standard library and a copy of the checker alone,
neither this package nor any other.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from privcheck.errors import CertificateError, PrivcheckError
from privcheck.pricing import Priced, once
from privcheck.reports.values import CertificateBrief
from privcheck.support.files import write_whole
from privcheck.verification.certificates import Certificate, certificates

FILE_NAME: Final = "certificate.json"
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from privcheck_check.__main__ import main; sys.exit(main(sys.argv[1:]))"
)
_LIMIT: Final = 120.0  # seconds; numeric compositions take some
_ACCEPTED, _REJECTED, _UNKNOWN = 0, 1, 3


@dataclass(frozen=True, slots=True)
class CheckedCertificate:
    """A certificate with what the checker said; without one, the reason.

    Attributes:
        certificate: The certificate; None if there is none.
        brief: What a result says of it.
    """

    certificate: Certificate | None
    brief: CertificateBrief


@once
def certificate_of(priced: Priced) -> CheckedCertificate:
    """The strongest certificate of the verdict on a declaration that the independent checker accepts.

    Where it accepts none, the last that it rejected, or the reason why there is none.
    """
    checked = None
    try:
        for certificate in certificates(priced):
            checked = check_certificate(certificate)
            if checked.brief.accepted:
                return checked
    except CertificateError as error:
        if checked is None:
            return CheckedCertificate(None, CertificateBrief(accepted=False, says=f"not certified: {error}"))
    assert checked is not None
    return checked


def check_certificate(certificate: Certificate) -> CheckedCertificate:
    """Run the checker on a certificate, in a process of its own with nothing else on its path.

    Raises:
        PrivcheckError: The checker is not installed.
    """
    code, line = run_checker(certificate.text)
    accepted = code == _ACCEPTED
    says = line if accepted else f"not certified: {line}"
    brief = CertificateBrief(accepted=accepted, says=says, kind=certificate.kind, digest=certificate.digest)
    return CheckedCertificate(certificate, brief)


def run_checker(text: str) -> tuple[int, str]:
    """Exit code and line of the checker on a certificate's text.

    Raises:
        PrivcheckError: The checker is not installed, or did not end.
    """
    found = importlib.util.find_spec("privcheck_check")
    if found is None or found.origin is None:
        raise PrivcheckError("the checker of certificates, privcheck_check, is not installed: install privcheck again")
    with tempfile.TemporaryDirectory(prefix="privcheck-") as folder:
        place = Path(folder)
        shutil.copytree(
            Path(found.origin).parent, place / "privcheck_check", ignore=shutil.ignore_patterns("__pycache__")
        )
        (place / FILE_NAME).write_text(text, encoding="utf-8")
        command = [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, folder, str(place / FILE_NAME)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_LIMIT, check=False)  # noqa: S603 - ours
        except subprocess.TimeoutExpired:
            return _REJECTED, f"rejected: the checker did not end within {_LIMIT:g} s"
    line = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode not in {_ACCEPTED, _REJECTED, _UNKNOWN}:
        raise PrivcheckError(f"the checker of certificates failed: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.returncode, line


def write_certificate(checked: CheckedCertificate, path: Path) -> None:
    """Write a certificate to a file.

    Raises:
        CertificateError: There is none.
        PrivcheckError: The file cannot be written; the previous one is unchanged.
    """
    if checked.certificate is None:
        raise CertificateError(f"{path} is not written: {checked.brief.says}")
    write_whole(path, checked.certificate.text)
