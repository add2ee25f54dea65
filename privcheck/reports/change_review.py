"""The review of a change for those who read it elsewhere: SARIF for code scanning, Markdown for the pull request."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from privcheck.errors import ParameterError
from privcheck.reports.values import ChangeReview, ReviewedTarget

MARK: Final = "<!-- privcheck ci -->"  # by which a job finds its own comment again
_BAR: Final = "\\|"  # in a cell of a table, in code too
_MOST: Final = 40  # rows of the table
_SHOWN: Final = 3_000  # characters of a witness's code
_RULES: Final[Mapping[str, tuple[str, str, str]]] = {  # verdict → id, level, description
    "violation": ("privacy-violation", "error", "An audit found that the code loses more privacy than it claims."),
    "fails": ("privacy-claim-fails", "error", "The declared releases cost more than the claim allows."),
    "undecided": ("privacy-undecided", "warning", "Neither a proof nor an audit decides the claim of changed code."),
    "not audited": ("privacy-not-audited", "warning", "Changed code with a privacy claim was not audited."),
}
_TOLD: Final = frozenset({"no agent was run"})  # notes that belong beside a bound
_WORDS: Final = {
    "violation": "a privacy claim of this change is broken",
    "undecided": "not everything that the change touches was audited and decided",
    "consistent": "no audit refutes what the change touches",
    "nothing touched": "the change touches nothing that is audited",
}


def refuse_place(path: Path) -> None:
    """Refuse a file that could not be written in the end.

    Raises:
        ParameterError: Its folder does not exist, or it is a folder.
    """
    if path.is_dir() or not path.absolute().parent.is_dir():
        message = f"{path}: expected a file in a folder that exists"
        raise ParameterError(message, name="sarif", given=str(path))


def headline(found: ChangeReview) -> str:
    """The verdict, with the number of targets by their verdicts."""
    counts = Counter(one.verdict for one in found.targets)
    told = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    return f"{found.verdict}: {_WORDS[found.verdict]}{f' ({told})' if told else ''}"


def say_bound(one: ReviewedTarget) -> str:
    """The bound beside the claim, or why there is none."""
    claim = one.claimed or one.claim
    if one.reason:
        return one.reason
    parts = [
        *([one.lower] if one.lower else []),
        *([f"claimed {claim}"] if claim else []),
        *([f"{one.trials:,} trials"] if one.trials else []),
        *([f"α = {_round_up(1 - one.confidence)}"] if one.confidence is not None else []),
        *(note for note in one.notes if note in _TOLD),
    ]
    return ", ".join(parts)


def _round_up(alpha: float) -> str:
    """A probability with two digits, rounded up."""
    step = 10.0 ** (math.floor(math.log10(alpha)) - 1)
    return f"{math.ceil(alpha / step) * step:.2g}"


def notes_of(found: ChangeReview) -> list[str]:
    """What was compared, spent and left out, a sentence or two each."""
    files, others = _count(len(found.changed), "changed file"), _count(found.untouched, "other target")
    between = f"{found.merge_base[:12]}, shared with {found.base}, and {found.commit[:12]}"
    notes = [f"Compared: {files} between {between}; {others} not touched."]
    if found.uncommitted:
        notes.append(f"Not in that commit, so that nobody else can repeat this run: {_list(found.uncommitted)}.")
    if found.beside:
        notes.append(f"Changed files that nothing audited imports: {_list(found.beside)}.")
    if found.unfollowed:
        notes.append(f"Modules loaded by names that the source does not have, not followed: {_list(found.unfollowed)}.")
    budget = found.budget
    of_all = f"{budget.alpha:g} that all runs of this repository have together"
    if not found.rounds:
        notes.append(f"Spent: {found.seconds:.0f} s, and nothing of the α = {of_all}.")
        return notes
    made = "; ".join(f"round {one.number}: {_count(one.audits, 'audit')}, seed {one.seed}" for one in found.rounds)
    spent = f"{found.seconds:.0f} s of {found.minutes:g} min ({made})"
    part = f"as run {budget.run_number} at most α = {_round_up(budget.share)} of the {of_all}"
    notes.append(f"Spent: {spent}, and {part}. That rests on {budget.relies_on}.")
    notes.append("An audit never shows that code is private: consistent means not refuted.")
    return notes


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _list(texts: tuple[str, ...], most: int = 10) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def describe_comment(found: ChangeReview) -> str:
    """A comment for a pull request: the verdict, one table, the witnesses, what was spent."""
    lines = [MARK, f"### privcheck: {_escape(headline(found))}", ""]
    if found.targets:
        lines += ["| verdict | target | at | bound or reason |", "| --- | --- | --- | --- |"]
        for one in found.targets[:_MOST]:
            cells = [f"**{one.verdict}**", _code(one.title), _code(f"{one.file}:{one.line}"), _escape(say_bound(one))]
            lines.append(f"| {' | '.join(cell.replace('|', _BAR) for cell in cells)} |")
        if len(found.targets) > _MOST:
            lines.append(f"| … | {len(found.targets) - _MOST} more | | |")
        lines.append("")
    for one in found.targets:
        if one.verdict in {"violation", "fails"}:
            lines += _witness(one)
    lines += ["<details><summary>What was compared and spent</summary>", ""]
    lines += [f"* {_escape(note)}" for note in notes_of(found)]
    return "\n".join([*lines, "", "</details>", ""])


def _witness(one: ReviewedTarget) -> list[str]:
    """A violation: claim against bound, neighbours, event, and how to repeat it."""
    reached = " → ".join(_code(path) for path in one.through)
    facts = [
        f"* claim: {_escape(one.claim)}{f', {_escape(one.claimed)}' if one.claimed else ''}",
        *([f"* measured: {_escape(say_bound(one))}"] if one.lower else []),
        *([f"* neighbours: {_code(one.neighbours)}"] if one.neighbours else []),
        *([f"* found by: {_escape(one.method)}"] if one.method else []),
        f"* touched: {reached}",
        *(f"* note: {_escape(note)}" for note in one.notes),
    ]
    repeated = ["", *_block("console", one.command)] if one.command else []
    shown = one.code if len(one.code) <= _SHOWN else ""
    code = ["", "The same audit as a test:", "", *_block("python", shown)] if shown else []
    return [f"#### {one.verdict}: {_code(one.title)}", "", *facts, *repeated, *code, ""]


def _block(kind: str, text: str) -> list[str]:
    """A block of code, with a fence that the code does not have."""
    fence = "`" * max(3, _longest(text) + 1)
    return [f"{fence}{kind}", text.rstrip("\n"), fence]


def _code(text: str) -> str:
    """The text as code in a line."""
    plain = " ".join(text.split())
    fence = "`" * (_longest(plain) + 1)
    room = " " if "`" in plain else ""
    return f"{fence}{room}{plain}{room}{fence}"


def _longest(text: str) -> int:
    """The most backticks that follow each other."""
    return max(map(len, re.findall("`+", text)), default=0)


def _escape(text: str) -> str:
    """The text as Markdown that shows it as it is: what code under review prints must not make links or mentions."""
    plain = " ".join(text.split())
    for char in "\\`*_[]<>|#@~":
        plain = plain.replace(char, f"&#{ord(char)};")
    return plain


def describe_sarif(found: ChangeReview) -> str:
    """The findings as a SARIF 2.1.0 log: a result for each violation, and for what is undecided or was not audited."""
    rules = [
        {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for name, level, text in _RULES.values()
    ]
    results = [_result(one) for one in found.targets if one.verdict in _RULES]
    run = {
        "tool": {"driver": {"name": "privcheck", "version": version("privcheck"), "rules": rules}},
        "automationDetails": {"id": "privcheck/"},
        "invocations": [{"executionSuccessful": True}],
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "the top of the work tree"}}},
        "results": results,
        "properties": {
            "verdict": found.verdict,
            "commit": found.commit,
            "mergeBase": found.merge_base,
            "runNumber": found.budget.run_number,
            "share": found.budget.share,
            "seeds": [one.seed for one in found.rounds],
        },
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _result(one: ReviewedTarget) -> dict[str, Any]:
    rule, level, _ = _RULES[one.verdict]
    parts = [
        f"{one.title}: {one.verdict}",
        say_bound(one) if one.reason or one.lower else f"claimed {one.claim}",
        f"neighbours: {one.neighbours}" if one.neighbours else "",
        f"found by: {one.method}" if one.method else "",
        f"repeat: {one.command}" if one.command else "",
    ]
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(one.verdict),
        "level": level,
        "message": {"text": ". ".join(part for part in parts if part)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(one.file), "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": max(one.line, 1)},
                }
            }
        ],
        "partialFingerprints": {"privcheckTarget/v1": _digest(rule, one.kind, one.name, one.view)},
    }


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).hexdigest()
