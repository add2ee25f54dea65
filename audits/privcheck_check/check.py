"""A certificate from first to last byte: format, digest, assumptions, the rules of its kind, the conclusion."""

from hashlib import sha256

from privcheck_check.declared import Declared, read_declared
from privcheck_check.holds import check_steps, numbers_at_least
from privcheck_check.products import Prover
from privcheck_check.refuted import check_refuted
from privcheck_check.terms import allow
from privcheck_check.values import Rejected, UnknownKind, canonical, parse, read_list, read_object, read_text

FORMAT = "privcheck-certificate/1"
FIELDS = ("format", "kind", "declared", "digest", "assumed", "conclusion")
BODY = {"refuted": ("evidence",), "holds-at": ("steps",), "holds-for-all": ("steps", "bounds")}


def needed(declared: Declared, kind: str) -> set[str]:
    """A-CODES: the codes of the assumptions without which the conclusion does not follow."""
    if kind == "refuted":
        return {"attainable"} if any(each.statistic.kind == "linear" for each in declared.releases) else set()
    codes = {"data-in-range", "unit"}
    if len(declared.releases) > 1 or any(each.schedule.kind in ("repeat", "tree") for each in declared.releases):
        codes.add("sequential")
    for release in declared.releases:
        if release.statistic.kind in ("stated", "selection"):
            codes.add(f"stated-sensitivity: {release.name}")
        if release.mechanism.kind == "theorem":
            codes.add(f"theorem: {release.name}")
        if release.schedule.kind in ("tree", "disjoint") or release.part is not None:
            codes.add(f"public-schedule: {release.name}")
    return codes


def _assumptions(value: object, codes: set[str]) -> None:
    listed = set()
    for each in read_list(value, "assumed", most=400):
        found = read_object(each, "assumed", ("code", "what", "by"))
        listed.add(read_text(found["code"], "assumed", most=200))
        read_text(found["what"], "assumed")
        read_text(found["by"], "assumed")
    if codes - listed:
        raise Rejected("assumed", f"the conclusion needs {min(codes - listed)!r}, which is not listed")


def check(data: bytes) -> str:
    """What the certificate in `data` proves, in a sentence.

    Raises:
        Rejected: it does not prove its conclusion.
        UnknownKind: a version or kind that this checker does not know.
    """
    allow()
    document = parse(data)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UnknownKind(f"not a document of format {FORMAT}")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in BODY:
        raise UnknownKind(f"unknown kind {str(kind)[:40]!r}")
    found = read_object(document, "format", (*FIELDS, *BODY[kind]))
    if found["digest"] != "sha256:" + sha256(canonical(found["declared"])).hexdigest():
        raise Rejected("digest", "not the digest of what is declared")
    declared = read_declared(found["declared"])
    _assumptions(found["assumed"], needed(declared, kind))
    conclusion = read_object(found["conclusion"], "conclusion", ("verdict", "scope", "about"))
    if kind == "refuted":
        sentence = check_refuted(found["evidence"], declared)
        expected = ("fails", "these numbers", "releases")
    else:
        scope = "these numbers" if kind == "holds-at" else "all parameters"
        if kind == "holds-at":
            at_least = numbers_at_least(declared)
        else:
            prover = Prover(declared)
            prover.state(found["bounds"])
            at_least = prover.at_least
        route = check_steps(found["steps"], declared, at_least, numbers=kind == "holds-at")
        sentence = f"the releases cost no more than claimed, by {route}, for {scope}"
        expected = ("holds", scope, "releases")
    if (conclusion["verdict"], conclusion["scope"], conclusion["about"]) != expected:
        raise Rejected("conclusion", f"expected {' / '.join(expected)}")
    return f"{declared.name}: {sentence}"
