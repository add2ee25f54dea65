"""The document of a verdict: its kind, what is declared and assumed, and the body of its kind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from privcheck.declare.declaration import Declaration
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.releases import Release
from privcheck.declare.schedules import Batches, EveryEpisode, Sampled, Tree
from privcheck.declare.statistics import Stated
from privcheck.errors import CertificateError
from privcheck.pricing import Priced
from privcheck.verification.certificates.canonical import Json, describe_declaration, is_stated
from privcheck.verification.certificates.derivations import derive_at, derive_for_all, derive_numeric
from privcheck.verification.certificates.refutations import refute_with_pair
from privcheck.verification.verdict import judge

FORMAT: Final = "privcheck-certificate/1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate: what was declared, assumed, applied and concluded.

    Attributes:
        document: The document, of JSON values.
    """

    document: Json

    @property
    def kind(self) -> str:
        """Kind of the conclusion."""
        return str(self.document["kind"])

    @property
    def digest(self) -> str:
        """SHA-256 of the whole document in canonical JSON, as "sha256:…"."""
        return hash_json(self.document)

    @property
    def text(self) -> str:
        """The document as a file's text, one field a line."""
        lines = (f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in self.document.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"


def hash_json(value: Any) -> str:
    """SHA-256 of a value's canonical JSON: keys sorted, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def certificates(priced: Priced, compared: str = "") -> Iterator[Certificate]:
    """Yield certificates of the verdict on a declaration at its parameters, the strongest first.

    Each says what `privcheck_check` has to find out: the first that it accepts is the verdict's.

    Args:
        priced: The declaration at its parameters.
        compared: What lockstep runs of the agent found equal on neighbours, in words; empty if it did not run.

    Raises:
        CertificateError: There is none: the claim is undecided, or a part of the declaration, of the proof or of the
            pair has no form in a certificate.
    """
    verdict, declaration = judge(priced), priced.declaration
    if verdict.verdict == "undecided":
        raise CertificateError("the claim is undecided")
    if priced.sizes:  # the batch size with the largest loss decides
        alike = [one for one in priced.sizes if judge(one).verdict == verdict.verdict]
        yield from certificates(max(alike, key=lambda one: judge(one).upper_ratio), compared)
        return
    joint = _premises(declaration, compared)
    with suppress(CertificateError):
        declared = describe_declaration(declaration, priced.values, symbolic=True)
        for body in derive_for_all(priced, declared["releases"]) if verdict.verdict == "holds" else ():
            yield _certificate(priced, "holds-for-all", declared, {**body, **joint})
    fails = verdict.verdict == "fails"
    declared = describe_declaration(declaration, priced.values, symbolic=False, refuting=fails)
    if fails:
        for evidence in refute_with_pair(priced, verdict.witness):
            yield _certificate(priced, "refuted", declared, {"evidence": evidence})
        return
    with suppress(CertificateError):
        for body in derive_at(priced, declared["releases"]):
            yield _certificate(priced, "holds-at", declared, {**body, **joint})
    yield _certificate(priced, "holds-at", declared, {**derive_numeric(priced, declared["releases"]), **joint})


def _premises(declaration: Declaration, compared: str) -> Json:
    """Premises of the billboard lemma besides what the steps prove, and what vouches for them; empty for other claims.

    Runs in lockstep are evidence and no proof; without them it is the declaration's word.
    """
    joint = declaration.claim.joint
    if joint is None or "others' data" in joint.sees:
        return {}
    said = f"the declaration: each user's actions are computed from {' and '.join(joint.sees)}"
    outputs = {"outputs": "lockstep", "by": compared[:400]} if compared else {"outputs": "stated", "by": said}
    return {"joint": outputs}


def _certificate(priced: Priced, kind: str, declared: Json, body: Json) -> Certificate:
    assumed = [{"code": code, "what": what, "by": by} for code, what, by in _assumptions(priced.declaration, kind)]
    scope = "all parameters" if kind == "holds-for-all" else "these numbers"
    verdict = "fails" if kind == "refuted" else "holds"
    return Certificate(
        {
            "format": FORMAT,
            "kind": kind,
            "declared": declared,
            "digest": hash_json(declared),
            "assumed": assumed,
            **body,
            "conclusion": {"verdict": verdict, "scope": scope, "about": "outputs" if "joint" in body else "releases"},
        }
    )


def _assumptions(declaration: Declaration, kind: str) -> Iterator[tuple[str, str, str]]:
    """Code, words and author of what the conclusion takes on somebody's word."""
    if kind == "refuted":
        yield "attainable", "features, targets, weights and scores within their bounds occur", "the declaration"
        for one in declaration.releases:
            if isinstance(one, OwnMechanism):
                yield f"stated-law: {one.name}", "the density of its outputs", "the declaration's author"
            if is_stated(one) or isinstance(one, OwnMechanism):
                yield f"stated-change: {one.name}", "the pair changes its values so far", "privcheck, which computes it"
        return
    kept = sorted({words for one in declaration.releases for words in one.facts.preconditions})
    yield "data-in-range", "; ".join(kept) or "the data is as the statistics say", "whoever holds the data"
    yield "unit", f"neighbours: {declaration.relation.words}", "whoever made the table"
    yield (
        "sequential",
        "outputs leave one after the other, and later ones see the data only through earlier",
        "the agent",
    )
    for one in declaration.releases:
        if isinstance(one, OwnMechanism):
            yield f"theorem: {one.name}", f"the price {one.guarantee}", "the declaration's author"
        if is_stated(one) or not isinstance(one, Release):
            authors = isinstance(one, Release) and isinstance(one.statistic, Stated)
            by = (
                "the declaration's author" if authors or not isinstance(one, Release) else "privcheck, which derives it"
            )
            yield f"stated-sensitivity: {one.name}", f"the sensitivity of {one.facts.output}", by
        schedule = getattr(one, "schedule", None)
        fact = getattr(schedule, "fact", None)
        if isinstance(schedule, Sampled):
            yield f"secret-sample: {one.name}", "who is in a sample is not told", "the agent"
        if isinstance(schedule, Tree | Batches | EveryEpisode) or one.users:
            by = fact.by if fact is not None else "the declaration"
            yield f"public-schedule: {one.name}", "who is in which leaf, batch or part does not depend on the data", by
