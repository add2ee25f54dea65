"""Certificates of commands: written, and checked by a program of its own before a result says so.

The checker is `privcheck_check`: it runs in a process that finds the standard library and a copy of the checker alone,
neither this package nor any other.
"""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from privcheck.declare.declaration import Claim
from privcheck.errors import CertificateError, PrivcheckError
from privcheck.pricing import Priced, once
from privcheck.pricing.calibration import needed_factor
from privcheck.reports.values import Audited, CertificateBrief
from privcheck.support.files import write_whole
from privcheck.terms.guarantees import ApproxDP, PureDP
from privcheck.verification.certificates import FORMAT, Certificate, certificates, hash_json, number

if TYPE_CHECKING:
    from privcheck.commands.ledger_client import Desk

FILE_NAME: Final = "certificate.json"
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from privcheck_check.__main__ import main; sys.exit(main(sys.argv[1:]))"
)
_LIMIT: Final = 120.0  # seconds; numeric compositions take some
_SHARPER: Final = 1e-6  # relative, by which a certified bound of an audit is below its own
_LOOSER: Final = Fraction(1, 4_000)  # by which checked bounds may be above the accountant's
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
def certificate_of(priced: Priced, compared: str = "") -> CheckedCertificate:
    """The strongest certificate of the verdict on a declaration that the independent checker accepts.

    Where it accepts none, the last that it rejected, or the reason why there is none.

    Args:
        priced: The declaration at its parameters.
        compared: For a claim of joint DP, what lockstep runs of the agent found equal on neighbours, in words.
    """
    checked = None
    try:
        for certificate in certificates(priced, compared):
            checked = check_certificate(certificate)
            if checked.brief.accepted:
                return checked
    except CertificateError as error:
        if checked is None:
            return CheckedCertificate(None, CertificateBrief(accepted=False, says=f"not certified: {error}"))
    assert checked is not None
    return checked


def certificate_of_price(priced: Priced, delta: Fraction, *, epsilon: Fraction | None = None) -> CheckedCertificate:
    """Certificate that the releases are (ε, δ)-DP, or ε-DP where δ = 0.

    Without `epsilon` it is that of the price at δ: the least of the numbers near it, rounded up, that the checker
    accepts; its numeric compositions are looser by .02 %.

    Args:
        priced: The declaration at its parameters.
        delta: δ, in [0, 1).
        epsilon: ε, in nats.
    """
    least = priced.epsilon(float(delta)) if epsilon is None else epsilon
    if least == math.inf:
        why = f"not certified: no finite ε holds at δ = {float(delta):g}"
        return CheckedCertificate(None, CertificateBrief(accepted=False, says=why))
    found: CheckedCertificate | None = None
    for looser in (Fraction(0), Fraction(1, 10**9), _LOOSER) if epsilon is None else (Fraction(0),):
        bound = Fraction(least) * (1 + looser)
        guarantee = ApproxDP(bound, delta) if delta else PureDP(bound)
        numbers = f"ε = {float(bound):.6g}" + (f", δ = {float(delta):g}" if delta else "")
        claim = Claim(guarantee, source=f"{numbers}: computed by privcheck")
        found = certificate_of(priced.of(replace(priced.declaration, claim=claim, origin=None)))
        if found.brief.accepted:
            break
    assert found is not None
    return found


def certificate_of_noise(priced: Priced, *, epsilon: Fraction, delta: Fraction) -> CheckedCertificate:
    """Certificate that the releases with the least noise for (ε, δ) are (ε, δ)-DP.

    Raises:
        ParameterError: No noise is enough, or another spread cannot be set of a release.
    """
    factor = Fraction(needed_factor(priced, epsilon=float(epsilon), delta=float(delta))) * (1 + _LOOSER)
    releases = tuple(one.with_std(factor) for one in priced.declaration.releases)
    quieter = priced.of(replace(priced.declaration, releases=releases, origin=None))
    return certificate_of_price(quieter, delta, epsilon=epsilon)


def certificate_of_audit(audited: Audited) -> CheckedCertificate:
    """Certificate that an audit's counts contradict every guarantee below its bound: counts, guarantee and α.

    Only audits that count right guesses of hidden bits have one.
    """
    evidence = audited.evidence
    if not {"guesses", "errors", "runs"} <= evidence.keys():
        why = "not certified: only counts of right guesses have a form, and this audit's bound rests on others"
        return CheckedCertificate(None, CertificateBrief(accepted=False, says=why))
    bound = evidence.get("mu_lower", audited.epsilon_lower)
    pure = "mu_lower" not in evidence and audited.delta == 0
    if not bound or not math.isfinite(bound) or not (pure or "mu_lower" in evidence):
        why = "not certified: the bound is 0, or of (ε, δ) with guesses in some runs only"
        return CheckedCertificate(None, CertificateBrief(accepted=False, says=why))
    refuted = number(Fraction(bound * (1 - _SHARPER)).limit_denominator(10**9))
    guarantee = {"currency": "pure", "epsilon": refuted} if pure else {"currency": "gdp", "mu": refuted}
    alpha = evidence.get("alpha_of_the_attempt", 1 - audited.confidence)
    declared = {
        "name": f"{audited.view} of {audited.algorithm}",
        "source": f"privcheck audit, seed {audited.seed}",
        "method": "guesses",
        "guarantee": guarantee,
        "alpha": number(Fraction(alpha).limit_denominator(10**9)),
    }
    guesses, errors = int(evidence["guesses"]), int(evidence["errors"])
    runs = {"runs": int(evidence["runs"]), "guesses": guesses, "correct": guesses - errors}
    by = f"privcheck audit {audited.algorithm} --seed {audited.seed}"
    took_place = {"code": "runs-took-place", "what": "independent runs with fair hidden bits", "by": by}
    document = {
        "format": FORMAT,
        "kind": "audit",
        "declared": declared,
        "digest": hash_json(declared),
        "assumed": [took_place],
        "evidence": runs,
        "conclusion": {"verdict": "refuted at level alpha", "scope": "these counts", "about": "guarantee"},
    }
    return check_certificate(Certificate(document))


def certificate_of_ledger(desk: Desk, dataset: str) -> CheckedCertificate:
    """Certificate that the charges to a dataset never pass the caps of its grants, and the caps keep its policy.

    Of each charge the row is its present state, of a released one its reservation before. Plans, blocks, recorded
    messages, amounts of δ of their own and grants of several currencies have no form.

    Raises:
        UnknownNameError: There is no such dataset.
    """
    (shown,) = desk.show(dataset)["datasets"]
    grants, policy = shown["grants"], shown["policy"]
    plain = all(one["kind"] == "adaptive" and not one["recorded"] and Fraction(one["lost"]) == 0 for one in grants)
    currencies = {one["currency"] for one in grants}
    if not grants or shown["blocks"] or not plain or len(currencies) > 1:
        why = "not certified: plans, blocks, recorded messages, grants of several currencies or with a δ have no form"
        return CheckedCertificate(None, CertificateBrief(accepted=False, says=why))
    caps = {one["name"]: Fraction(one["cap"]) for one in grants}
    kept: dict[str, Any] = {name: number(Fraction(policy[name])) for name in ("epsilon", "delta")}
    if currencies == {"rho"}:
        spread = math.sqrt(max(-math.log(float(Fraction(policy["delta"]))) / float(sum(caps.values())), 1e-6))
        kept["order"] = number(Fraction(1 + spread).limit_denominator(1000))
    rows: list[dict[str, Any]] = []
    previous = ""
    for charge in desk.charges(dataset):
        amount = number(Fraction(charge["cost"]["amount"]))
        row = {"charge": charge["id"], "grant": charge["grant"], "amount": amount}
        states = [(charge["state"], charge["hash"])]
        if charge["state"] == "released":  # it held its amount until then
            states.insert(0, ("reserved", ""))
        for state, mark in states:
            rows.append({**row, "state": state, "row": mark, "previous": previous})
            previous = hash_json(rows[-1])
    declared = {
        "name": dataset,
        "source": f"privcheck ledger, head {shown['head']['hash']}",
        "unit": json.dumps(policy["unit"], sort_keys=True),
        "currency": currencies.pop(),
        "grants": {name: number(cap) for name, cap in caps.items()},
        "policy": kept,
        "head": previous,
    }
    document = {
        "format": FORMAT,
        "kind": "ledger",
        "declared": declared,
        "digest": hash_json(declared),
        "assumed": [],
        "evidence": {"rows": rows},
        "conclusion": {"verdict": "keeps the policy", "scope": "these rows", "about": "ledger"},
    }
    return check_certificate(Certificate(document))


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


def text_of(checked: CheckedCertificate) -> str:
    """The text of a certificate that the checker accepts.

    Raises:
        CertificateError: There is none, or the checker rejects it.
    """
    if checked.certificate is None or not checked.brief.accepted:
        raise CertificateError(checked.brief.says)
    return checked.certificate.text


def write_certificate(checked: CheckedCertificate, path: Path) -> None:
    """Write a certificate that the checker accepts to a file.

    Raises:
        CertificateError: There is none, or the checker rejects it: nothing is written.
        PrivcheckError: The file cannot be written; the previous one is unchanged.
    """
    write_whole(path, text_of(checked))
