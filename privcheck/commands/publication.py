"""`publish`: from the folder of a run to a folder that may be shared, written whole or not at all.

The conditions are read from the run's own files and checked again: the policy was compared on neighbours, its noise was
release noise, the record of its releases matches the declaration, and the claim holds. The files contain no times,
paths or figures of the run: each of their numbers is a function of the releases or a public fact.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from privcheck.commands.certificates import FILE_NAME as CERTIFICATE_NAME
from privcheck.commands.certificates import certificate_of
from privcheck.commands.declarations import price_releases, verify_claim
from privcheck.commands.run_outputs import claim_of
from privcheck.commands.settings import Chosen, parse_delta, settle
from privcheck.errors import FileFormatError, LedgerError, ParameterError
from privcheck.ledger.exact import canonical
from privcheck.ledger.values import Receipt
from privcheck.reports.card import Card, card_page, card_text, write_card
from privcheck.reports.files import JSON_NAME as REPORT_NAME
from privcheck.reports.files import RUN_JSON as RUN_NAME
from privcheck.reports.files import encode, load_report, read_runs
from privcheck.reports.policies import ARRAY_NAME, Policy, Weights, load_learned
from privcheck.reports.policies import JSON_NAME as RECORD_NAME
from privcheck.reports.promise import guess_right
from privcheck.reports.values import (
    Compared,
    PolicyGuarantee,
    PolicyRecord,
    Published,
    PublishedFile,
    PublishedGuarantee,
    Ran,
    RanOnline,
    RecordHead,
    Report,
    StatedFact,
    VerdictBrief,
    Verified,
    take_fields,
)
from privcheck.runtime import registry
from privcheck.runtime.ledger import FILE_NAME as LEDGER_NAME
from privcheck.runtime.ledger import Entry, read_ledger
from privcheck.runtime.run_folders import PRIVATE, find_file, run_folder
from privcheck.runtime.spending import check_entries
from privcheck.support.files import partial_path, write_through
from privcheck.terms.unit import Unit
from privcheck.verification.grounds import unit_grounds

GUARANTEE_NAME: Final = "guarantee.json"
RECEIPT_NAME: Final = "receipt.json"
CARD_NAMES: Final = ("card.html", "card.md")
SUMS_NAME: Final = "SHA256SUMS"
_LONGEST: Final = 300  # characters of a publisher's sentence
_WITHHELD: Final = (
    "times, durations, command lines, seeds and paths of the run",
    "diagnostics of the agent, and figures of audits",
)
_COUNTS: Final = "the numbers of rows, users and episodes, which are private"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Statements of the publisher, printed on the card.

    Attributes:
        learned_for: For whom or what the policy was learned; empty if not stated.
        not_for: Further uses that are ruled out.
        dated: The day of publication, as 2026-11-24; empty for none.
        accepts_uncovered: Publish even with warnings about data that no noise covers.

    Raises:
        ParameterError: A sentence is not printable text of at most 300 characters, or the day is invalid.
    """

    learned_for: str = ""
    not_for: tuple[str, ...] = ()
    dated: str = ""
    accepts_uncovered: bool = False

    def __post_init__(self) -> None:
        sentences = [("for", self.learned_for), *(("not-for", text) for text in self.not_for)]
        for name, text in sentences:
            empty = name == "not-for" and not text.strip()
            if empty or len(text) > _LONGEST or not text.isprintable():
                message = f"--{name} expects a sentence of at most {_LONGEST} characters, got {text!r:.80}"
                raise ParameterError(message, name=name, given=text)
        with suppress(ValueError):
            if not self.dated or date.fromisoformat(self.dated).isoformat() == self.dated:
                return
        message = f"--date expects a day such as 2026-11-24, got {self.dated!r:.40}"
        raise ParameterError(message, name="date", given=self.dated)


def publish(
    directory: Path, out: Path, *, delta: str | float | Fraction | None = None, publisher: Publisher
) -> Published:
    """Write the folder that may be published, and return its contents.

    Args:
        directory: Folder of a run with release noise.
        out: The new folder.
        delta: δ at which ε is stated; None for the claim's own, 0 for a pure claim, otherwise 1e-5.
        publisher: Statements of the publisher.

    Raises:
        ParameterError: The run may not be published, or the folder is not empty; the message says what to do.
        FileFormatError: A file of the run is missing or damaged.
        LedgerError: The record of the releases was changed, or does not match the declaration.
        OSError: The folder cannot be written; no part of it remains.
    """
    directory = run_folder(directory)
    _refuse_occupied(out, directory)
    policy = load_learned(directory)
    stated = _refuse_unpublishable(policy.record, directory, publisher)
    header, entries = _read_record(directory, stated)
    report = load_report(directory) if find_file(directory, REPORT_NAME).exists() else None
    run = _read_run(directory, report, stated)
    _refuse_audited(report)
    assert stated.unit is not None
    setting = _resolve(policy.record, report, stated.unit)
    _refuse_other_record(setting, header, entries)
    verified = _judge(setting)
    receipt = _read_receipt(directory)
    guarantee = _state(
        setting, policy.record, stated, verified, delta=parse_delta(delta, setting),
        noise=str(header["noise"]), slices=len(entries),
        receipt=None if receipt is None else RECEIPT_NAME,
    )  # fmt: skip
    texts = _texts(policy, directory, guarantee, receipt, dated=publisher.dated)
    certified = certificate_of(setting.judged.priced)
    if certified.certificate is not None and certified.brief.accepted:  # of declared facts alone
        texts[CERTIFICATE_NAME] = certified.certificate.text.encode()
    card = write_card(
        policy.record, guarantee, run,
        title=setting.algorithm.title, source=setting.algorithm.source,
        learned_for=publisher.learned_for, not_for=publisher.not_for, dated=publisher.dated,
        sums=[(name, _digest(content)) for name, content in texts.items()],
    )  # fmt: skip
    texts |= _cards(card)
    sums = "".join(f"{_digest(content)}  {name}\n" for name, content in texts.items())
    texts[SUMS_NAME] = sums.encode()
    _write(out, texts)
    private = run.episodes is None
    return Published(
        folder=str(out),
        files=tuple(PublishedFile(name=name, sha256=_digest(content)) for name, content in texts.items()),
        guarantee=guarantee,
        unit=guarantee.unit,
        withheld=(*_WITHHELD, *((_COUNTS,) if private else ())),
    )


def _refuse_occupied(out: Path, directory: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        message = f"{out} is not empty, but a publication is a new folder: choose another --out"
        raise ParameterError(message, name="out", given=str(out))
    if (directory / PRIVATE).resolve() in (out.resolve(), *out.resolve().parents):
        message = f"{out} is in the private part of the run: choose another --out"
        raise ParameterError(message, name="out", given=str(out))
    if (torn := partial_path(out)).exists():
        message = f"{torn} was left by an interrupted publication, or is being written by another one: delete it"
        raise ParameterError(message, name="out", given=str(out))


def _refuse_unpublishable(record: PolicyRecord, directory: Path, publisher: Publisher) -> PolicyGuarantee:
    """Return the guarantee of a policy that may be published.

    Raises:
        ParameterError: The policy may not be published: no privacy, simulated noise, not compared, no protected unit,
            or a warning about data that no noise covers.
    """
    stated, name = record.guarantee, record.algorithm
    wrong = ""
    if stated is None:
        wrong = f"{name} is not private, and its policy exposes its data; run a private algorithm"
    elif not stated.protects:
        wrong = "its noise was simulated and protects nobody; run it again with --noise release"
    elif not stated.compared:
        wrong = (
            "nothing has shown that the policy depends on the data through its releases alone; `privcheck audit "
            f"{name} --view lockstep` says why, and a new run with an agent that it finds consistent is compared"
        )
    elif stated.unit is None:
        wrong = "it is from an earlier version, which did not record the protected unit; run it again"
    elif record.warnings and not publisher.accepts_uncovered:
        wrong = (
            f"no noise covers this: {'; '.join(record.warnings)}. Prepare and run it again without these choices, or "
            "accept them with --accept-uncovered; the card then lists them"
        )
    if stated is None or wrong:
        raise ParameterError(f"{directory} is not published: {wrong}", name="directory", given=str(directory))
    return stated


def _read_record(directory: Path, stated: PolicyGuarantee) -> tuple[dict[str, Any], list[Entry]]:
    """Return the header and the slices of the record of the releases.

    Raises:
        LedgerError: The record is missing, changed, or of another run.
    """
    path = directory / LEDGER_NAME
    if not path.exists():
        message = f"{directory} has no {LEDGER_NAME}, the record of the releases: publish the folder that `run` wrote"
        raise LedgerError(message)
    header, entries = read_ledger(path)
    head = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["chain"]
    if head != stated.ledger:
        message = f"{path} ends in {head}, and the policy was learned from releases whose record ends in"
        raise LedgerError(f"{message} {stated.ledger}: publish the folder of its own run")
    if not header["protects"] or not header["as_declared"]:
        message = f"{path}: its noise is not fresh release noise of the declared law; run it again"
        raise LedgerError(message, line=1)
    assert stated.unit is not None
    if header.get("unit") != stated.unit.to_dict():
        message = f"{path} protects {header.get('unit')}, and {RECORD_NAME} {stated.unit.to_dict()}: one was changed"
        raise LedgerError(message, line=1)
    return header, entries


def _read_run(directory: Path, report: Report | None, stated: PolicyGuarantee) -> Ran | RanOnline:
    """Return the run's own result, for the remarks that belong beside a policy.

    Raises:
        FileFormatError: There is no result of this run.
    """
    own, shared = find_file(directory, RUN_NAME), find_file(directory.parent, RUN_NAME)
    found = read_runs(own) if own.exists() else None if report is None else report.run
    if found is None and shared.exists():
        found = read_runs(shared)  # of several agents, each of which has a folder in the run's
    runs = found.results if isinstance(found, Compared) else () if found is None else (found,)
    run = next((one for one in runs if one.ledger is not None and one.ledger.digest == stated.ledger), None)
    if run is None:
        message = (
            f"{directory}: expected {PRIVATE}/{RUN_NAME} or {PRIVATE}/{REPORT_NAME} of the run that learned the policy"
        )
        raise FileFormatError(f"{message}; publish the folder that `run --out` or `check --out` wrote")
    return run


def _refuse_audited(report: Report | None) -> None:
    """Refuse a run whose audit found a violation or was undecided.

    Raises:
        ParameterError: An audit in the run's report found a violation or a doubt.
    """
    views = {} if report is None or report.audit is None else report.audit.views
    for name, view in views.items():
        if view.verdict == "violation" or "doubt" in view.evidence:
            found = "a violation" if view.verdict == "violation" else "something undecided"
            message = (
                f"the audit of {view.algorithm} from the view {name} found {found}: {view.witness or view.method}. It "
                "is not published; correct the agent and run it again"
            )
            raise ParameterError(message, name="directory")


def _resolve(record: PolicyRecord, report: Report | None, unit: Unit) -> Chosen:
    """Return the algorithm as it was run, with the discrete noise it drew.

    Raises:
        UnknownNameError: The algorithm is not registered here.
        ParameterError: Parameters or readings are unknown to this version of the algorithm, or protect another unit.
    """
    choices = record.choices or ({} if report is None else report.choices)
    chosen = settle(registry.algorithm(record.algorithm), {**record.parameters, **choices})
    setting = chosen.protecting(replace(unit, relation=None, model=None)).as_released()
    if setting.setting.protected != unit:
        message = (
            f"the policy protects {unit.words}, and {record.algorithm} as registered here protects "
            f"{setting.setting.protected.words}: publish with the version that ran it"
        )
        raise ParameterError(message, name="unit", given=unit.words)
    return setting


def _refuse_other_record(setting: Chosen, header: dict[str, Any], entries: list[Entry]) -> None:
    """Refuse a record that does not match the registered declaration.

    Raises:
        LedgerError: The record does not match; files of an earlier version lack the readings, which are not guessed.
    """
    try:
        check_entries(header, entries, setting.charged.priced)
    except LedgerError as error:
        readings = ", ".join(f"{name}={way}" for name, way in setting.readings.items()) or "none"
        message = (
            f"{LEDGER_NAME} does not match the declaration of {setting.algorithm.name} here (readings: {readings}): "
            f"{error}; "
            "publish with the version that ran it, or the folder as it was written"
        )
        raise LedgerError(message, line=error.line) from None


def _judge(setting: Chosen) -> Verified:
    """Return the verdict on the discrete mechanism of the run.

    Raises:
        ParameterError: The claim does not hold, or joint DP does not follow.
    """
    name = setting.algorithm.name
    verified = verify_claim(setting.judged)
    if verified.verdict != "holds":
        message = (
            f"the verdict on {name} is {verified.verdict!r}, and only verified claims are published: "
            f"{verified.sentence}"
        )
        raise ParameterError(f"{message}; see: privcheck verify {name}", name="directory")
    if verified.joint not in (None, "follows"):
        message = f"{name} claims joint DP, which is {verified.joint}, and only verified claims are published"
        raise ParameterError(f"{message}; see: privcheck verify {name}", name="directory")
    return verified


def _state(
    setting: Chosen, record: PolicyRecord, stated: PolicyGuarantee, verified: Verified, *, delta: float,
    noise: str, slices: int, receipt: str | None,
) -> PublishedGuarantee:  # fmt: skip
    """Return the guarantee with its cost, from the declaration against which the record was checked.

    Raises:
        ParameterError: No finite ε is known at δ.
    """
    budget = price_releases(setting.charged, delta)
    epsilon = budget.guarantee.epsilon
    if epsilon is None:
        message = f"no finite ε is known at δ = {delta:g}: give a larger --delta, such as 1e-5"
        raise ParameterError(message, name="delta", given=delta)
    distance = setting.charged.priced.numbers.delta(0.0)
    unit = setting.setting.protected
    # the claim may be about fewer trajectories than a user of the table has, who is charged for all of them
    told, ours = (unit_grounds(d, setting.values) for d in (setting.judged.declared, setting.released))
    rests_on = [*(one for one in verified.rests_on if one not in told), *ours] if told != ours else verified.rests_on
    facts = (take_fields(StatedFact, one) for one in rests_on if one.kind != "derived")
    return PublishedGuarantee(
        policy=record.digest,
        algorithm=record.algorithm,
        unit=unit,
        unit_words=unit.words,
        relation=setting.released.relation.words,
        model=setting.released.model,
        cost=budget.guarantee,
        guessed_right=min(guess_right(epsilon, delta), guess_right(0.0, min(distance, 1.0))),
        claim=claim_of(setting),
        verdict=take_fields(VerdictBrief, verified),
        joint=verified.joint,
        rests_on=tuple(facts),
        compared=stated.compared,
        not_covered=tuple(record.warnings),
        noise=noise,
        record=RecordHead(file=LEDGER_NAME, head=stated.ledger, slices=slices),
        receipt=receipt,
    )


def _read_receipt(directory: Path) -> Receipt | None:
    """Return the signed receipt of a team's ledger; None if the run was not charged to one.

    Raises:
        FileFormatError: The file does not contain a receipt.
    """
    path = find_file(directory, RECEIPT_NAME)
    if not path.exists():
        return None
    try:
        return Receipt.parse(json.loads(path.read_text(encoding="utf-8"))["receipt"])
    except (OSError, ValueError, KeyError, TypeError, ParameterError) as error:
        message = f"{path}: expected the record that the run wrote when it was charged; {error!s:.200}"
        raise FileFormatError(message) from None


def _texts(
    policy: Policy | Weights, directory: Path, guarantee: PublishedGuarantee, receipt: Receipt | None, *, dated: str
) -> dict[str, bytes]:
    """Return the files that the card describes, by name.

    Raises:
        FileFormatError: The policy's array changed since it was read.
    """
    arrays = find_file(directory, ARRAY_NAME).read_bytes()
    if _digest(arrays) != policy.record.digest:
        raise FileFormatError(f"{directory / ARRAY_NAME} was changed while it was published; publish it again")
    texts = {
        ARRAY_NAME: arrays,
        RECORD_NAME: encode(replace(policy.record, made=dated)).encode(),
        GUARANTEE_NAME: encode(guarantee).encode(),
        LEDGER_NAME: (directory / LEDGER_NAME).read_bytes(),
    }
    if receipt is not None:
        texts[RECEIPT_NAME] = (canonical(receipt.to_dict()) + "\n").encode()
    return texts


def _cards(card: Card) -> dict[str, bytes]:
    return dict(zip(CARD_NAMES, (card_page(card).encode(), card_text(card).encode()), strict=True))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(out: Path, texts: dict[str, bytes]) -> None:
    """Write a folder under a temporary name, and rename it when all of it is on disk.

    Raises:
        OSError: The folder cannot be written; no part of it remains.
    """
    partial = partial_path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial.mkdir()
    try:
        for name, content in texts.items():
            (partial / name).write_bytes(content)
            write_through(partial / name)
        write_through(partial)
        if out.exists():
            out.rmdir()  # empty, or it is occupied by now
        partial.rename(out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    write_through(out.parent)
