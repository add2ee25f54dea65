"""A certificate from first to last byte: format, digest, assumptions, the rules of its kind, the conclusion.

Each kind imports the files of its own rules, so that what has to be believed for a certificate is what it ran.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import TypeAlias

from privcheck_check.declared import Declared, read_declared
from privcheck_check.terms import allow, evaluate
from privcheck_check.values import (
    Rejected,
    UnknownKind,
    canonical,
    parse,
    read_choice,
    read_list,
    read_object,
    read_text,
)

Conclusion: TypeAlias = tuple[str, str, str]  # verdict, scope, about
FORMAT = "privcheck-certificate/1"
FIELDS = ("format", "kind", "declared", "digest", "assumed", "conclusion")
BODY = {
    "refuted": ("evidence",),
    "holds-at": ("steps",),
    "holds-for-all": ("steps", "bounds"),
    "numeric": ("evidence",),
    "audit": ("evidence",),
    "ledger": ("evidence",),
}
VOUCHED = {
    "construction": "by construction",
    "lockstep": "as lockstep runs saw, which is evidence and no proof",
    "stated": "as stated",
}


def needed(declared: Declared, kind: str) -> set[str]:
    """A-CODES: the codes of the assumptions without which the conclusion does not follow."""
    if kind == "refuted":
        codes = {f"stated-law: {each.name}" for each in declared.releases if each.mechanism.kind == "theorem"}
        codes |= {f"stated-change: {each.name}" for each in declared.releases if each.statistic.kind == "stated"}
        within = any(
            each.statistic.kind in ("linear", "selection") or each.shared == "outputs" for each in declared.releases
        )
        return codes | ({"attainable"} if within else set())
    codes = {"data-in-range", "unit"}
    if len(declared.releases) > 1 or any(
        each.schedule.kind in ("repeat", "sampled", "tree") for each in declared.releases
    ):
        codes.add("sequential")
    for release in declared.releases:
        if release.statistic.kind in ("stated", "selection"):
            codes.add(f"stated-sensitivity: {release.name}")
        if release.mechanism.kind == "theorem":
            codes.add(f"theorem: {release.name}")
        if release.schedule.kind == "sampled":
            codes.add(f"secret-sample: {release.name}")
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
    try:
        return _check(parse(data))
    except (ArithmeticError, MemoryError, RecursionError, ValueError) as fault:  # whatever fails is not accepted
        raise Rejected("work", f"{type(fault).__name__}: numbers beyond what this checker computes with") from fault


def _check(document: object) -> str:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UnknownKind(f"not a document of format {FORMAT}")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in BODY:
        raise UnknownKind(f"unknown kind {str(kind)[:40]!r}")
    holds = kind.startswith("holds")
    found = read_object(document, "format", (*FIELDS, *BODY[kind]), ("joint",) if holds else ())
    if found["digest"] != "sha256:" + sha256(canonical(found["declared"])).hexdigest():
        raise Rejected("digest", "not the digest of what is declared")
    conclusion = read_object(found["conclusion"], "conclusion", ("verdict", "scope", "about"))
    if holds or kind == "refuted":
        declared = read_declared(found["declared"])
        _assumptions(found["assumed"], needed(declared, kind))
        sentence, expected = _refuted(found, declared) if kind == "refuted" else _holds(found, declared, kind)
    else:
        _assumptions(found["assumed"], {"runs-took-place"} if kind == "audit" else set())
        what, evidence = found["declared"], found["evidence"]
        sentence, expected = _numeric(what, evidence) if kind == "numeric" else _counts(kind, what, evidence)
    if (conclusion["verdict"], conclusion["scope"], conclusion["about"]) != expected:
        raise Rejected("conclusion", f"expected {' / '.join(expected)}")
    return sentence


def _refuted(found: Mapping[str, object], declared: Declared) -> tuple[str, Conclusion]:
    from privcheck_check.refuted import check_refuted

    sentence = f"{declared.name}: {check_refuted(found['evidence'], declared)} is above the {_claim(declared)}"
    words = sorted(needed(declared, "refuted") - {"attainable"})
    sentence += f", given {'; '.join(words)}" if words else ""
    return sentence, ("fails", "these numbers", "releases")


def _claim(declared: Declared) -> str:
    most = evaluate(declared.trajectories, declared.values)[1]
    who = declared.who + (f" of up to {most} trajectories" if most != 1 else "")
    return f"{declared.claim.kind} claim ({declared.claim.fields['source']}) on {declared.relation} of a {who}"


def _holds(found: Mapping[str, object], declared: Declared, kind: str) -> tuple[str, Conclusion]:
    from privcheck_check.costs import numbers_at_least
    from privcheck_check.holds import check_steps

    scope, at_least = "these numbers", numbers_at_least(declared)
    if kind == "holds-for-all":
        from privcheck_check.products import Prover

        prover = Prover(declared)
        prover.state(found["bounds"])
        scope, at_least = "all parameters", prover.at_least
    route = check_steps(found["steps"], declared, at_least, numbers=kind == "holds-at")
    sentence = f"{declared.name}: the releases keep the {_claim(declared)}, for {scope}, by {route}"
    words = sorted(each for each in needed(declared, kind) if ": " in each)
    sentence += f", given {'; '.join(words)}" if words else ""
    if "joint" not in found:
        return sentence, ("holds", scope, "releases")
    if declared.model != "joint":  # J-BILLBOARD
        raise Rejected("J-BILLBOARD", "the claim is not of joint DP")
    premise = read_object(found["joint"], "J-BILLBOARD", ("outputs", "by"))
    vouched = VOUCHED[read_choice(premise["outputs"], "J-BILLBOARD", VOUCHED)]
    by = read_text(premise["by"], "J-BILLBOARD", most=400)
    sentence += (
        f"; joint DP follows, if outputs to a user come from the billboard and that user's data, {vouched} ({by})"
    )
    return sentence, ("holds", scope, "outputs")


def _counts(kind: str, declared: object, evidence: object) -> tuple[str, Conclusion]:
    from privcheck_check.counts import check_audit, check_ledger

    return (check_audit if kind == "audit" else check_ledger)(declared, evidence)


def _numeric(declared: object, evidence: object) -> tuple[str, Conclusion]:
    from privcheck_check.numeric import check_numeric

    found = read_object(declared, "declared", ("name", "source", "events", "epsilon", "delta"))
    name = read_text(found["name"], "declared", most=200)
    read_text(found["source"], "declared")
    grid = read_object(evidence, "evidence", ("grid",))
    check_numeric({each: found[each] for each in ("events", "epsilon", "delta")} | {"grid": grid["grid"]})
    sentence = f"{name}: the events together are ({found['epsilon']}, {found['delta']})-DP"
    return sentence, ("holds", "these numbers", "events")
