"""`assert_private`: an audit of a function or a whole agent as an assertion, also of examples that Hypothesis draws.

Inside `@given` the audits of a test share what it may spend, an audit's seed comes from its content, and one that was
made is not made again: Hypothesis sees an example fail whenever it asks for it, and shrinks it.
"""

from __future__ import annotations

import hashlib
import math
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from privcheck.auditors import MechanismAudit, MechanismClaim, Neighbours, Workers, audit_mechanism
from privcheck.errors import ParameterError
from privcheck.testing.assertions import allow, round_down
from privcheck.testing.session import ALLOWANCE, CONFIDENCE, Allowance, Examples, SummaryLine
from privcheck.whole_agents import audit_agent

if TYPE_CHECKING:
    from privcheck.testing.witness import Witness

_AGENTS: Final = frozenset(
    ("dataset", "candidates", "change", "relation", "positions", "joint", "screening", "finalists")
)
_REPEATED: Final = ("joint", "exceptions", "one_at_a_time", "stop")  # what another audit of the same pairs needs
_LONGEST: Final = 600  # characters of a pair in a message
_LETTERS: Final = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}
_ELSEWHERE = Examples()  # of all tests of a process in which the plugin does not run


def assert_private(
    mechanism: Callable[..., Any],
    claim: MechanismClaim,
    *,
    neighbours: Neighbours | None = None,
    trials: int | None = None,
    confidence: float | None = None,
    seed: int | None = None,
    stop: bool | None = None,
    workers: int = 1,
    executor: Workers = None,
    **more: Any,
) -> MechanismAudit:
    """Asserts that an audit does not refute the claim of a function or of a whole agent, and returns the audit.

    It never shows that the function is private: a bug that costs little, or that other neighbours would show, passes.

    With Hypothesis the pair is an argument of the test, and the example that is reported is the smallest pair that was
    seen to fail. The audits of all examples of a test share what one audit would spend.

    Args:
        mechanism: A function as in `privcheck.audit_mechanism`, for many runs a call or for one; a whole agent as in
            `privcheck.audit_agent` where any argument of that is given (`dataset`, `joint`, …).
        claim: `PureDP`, `ApproxDP`, `ZCDP` or `GaussianDP`.
        neighbours: Pairs of neighbouring datasets; of an agent, `dataset` may be given instead.
        trials: Runs under each neighbour; 10 000, or what the session's options say, and 500 of an agent.
        confidence: .99; in a test marked `privacy` the session decides and none may be given.
        seed: 0, or what the session's options say.
        stop: End as soon as the claim is refuted; a gross violation is after a few hundred runs. Only agents do
            where nothing is said.
        workers: Threads.
        executor: Where blocks of runs are made instead, as in `privcheck.audit_mechanism`.
        more: Further arguments of `audit_mechanism` (`exceptions`, `one_at_a_time`) or `audit_agent`.

    Raises:
        AssertionError: The audit found a violation; the message has the bound, the pair, a test that repeats the audit,
            and where the report is.
        ParameterError: An argument is out of range, the marker announced fewer audits, or a test with Hypothesis has a
            deadline or data whose content cannot be seen.
        MechanismError: The function cannot be judged.
    """
    __tracebackhide__ = True
    how = {**more, **({} if stop is None else {"stop": stop})}
    asked = _Asked(mechanism=mechanism, claim=claim, how=how, is_agent=bool(_AGENTS & set(more)))
    drawn = _is_example()
    allowed = _allow_example(confidence) if drawn else allow(confidence)
    if trials is None:
        trials = allowed.agent_trials if asked.is_agent else allowed.trials
    arguments: dict[str, Any] = {"trials": trials, "seed": allowed.seed if seed is None else seed, **how}
    if neighbours is not None or not asked.is_agent:
        arguments["neighbours"] = neighbours
    run = partial(asked.auditor, mechanism, claim, workers=workers, executor=executor)
    if drawn:
        found, line = _examine(run, allowed, asked, arguments)
    else:
        found, line = run(confidence=allowed.confidence, **arguments), len(allowed.done)
    message = _record(found, allowed, line, asked)
    if found.verdict == "violation":
        raise AssertionError(message)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Asked:
    """What is asserted.

    Attributes:
        mechanism: The function or agent.
        claim: Its claim.
        how: Further arguments of the audit.
        is_agent: Whether it is a whole agent.
    """

    mechanism: Callable[..., Any]
    claim: MechanismClaim
    how: Mapping[str, Any]
    is_agent: bool

    @property
    def auditor(self) -> Callable[..., MechanismAudit]:
        return audit_agent if self.is_agent else audit_mechanism

    def repeat(self, found: MechanismAudit, directory: Path) -> Witness:
        """Returns a test that makes the same audit; large data will be in the directory."""
        from privcheck.testing.witness import write_witness

        arguments = {"neighbours": list(found.neighbours), **({"joint": False} if self.is_agent else {})}
        arguments |= {name: value for name, value in self.how.items() if name in _REPEATED}
        arguments |= {"trials": found.trials, "confidence": found.confidence, "seed": found.seed}
        return write_witness(self.mechanism, self.claim, arguments, directory=directory)


def _is_example() -> bool:
    """Returns whether Hypothesis runs the test.

    Raises:
        ParameterError: The test has a deadline.
    """
    hypothesis = sys.modules.get("hypothesis")
    if hypothesis is None or not hypothesis.currently_in_test_context():
        return False
    deadline = hypothesis.settings.default.deadline
    if deadline is not None:
        message = f"an audit takes seconds and this test has a deadline of {deadline.total_seconds():g} s an example"
        wanted = "add @settings(deadline=None, max_examples=20)"
        raise ParameterError(f"{message}: {wanted}", name="deadline", given=deadline)
    return True


def _allow_example(confidence: float | None) -> Allowance:
    """Returns what the examples of the running test may spend together."""
    marked = ALLOWANCE.get()
    if marked is None:
        return replace(allow(confidence), examples=_ELSEWHERE)
    if marked.audits is None:
        return replace(marked, confidence=CONFIDENCE if confidence is None else confidence)
    if confidence is not None:
        return allow(confidence)  # refuses
    return replace(marked, confidence=1 - marked.audits * (1 - marked.confidence))


def _examine(
    run: Callable[..., MechanismAudit], allowed: Allowance, asked: _Asked, arguments: Mapping[str, Any]
) -> tuple[MechanismAudit, int]:
    """Returns the audit of an example, new or known, and the number of its summary line."""
    from privcheck.testing.fingerprints import fingerprint

    examples = allowed.examples
    content = fingerprint(asked.mechanism, str(asked.claim), sorted(arguments.items()))
    if content not in examples.known:
        examples.number += 1
        alpha = (1 - allowed.confidence) / (examples.number * (examples.number + 1))
        word = hashlib.blake2b(f"{arguments['seed']} {content}".encode(), digest_size=4).digest()
        found = run(**{**arguments, "seed": int.from_bytes(word)}, confidence=math.nextafter(1 - alpha, 1))
        examples.known[content] = found if found.verdict == "violation" else replace(found, neighbours=())
    same = fingerprint(asked.mechanism, str(asked.claim))
    return examples.known[content], examples.lines.setdefault(same, len(allowed.done))


def _record(found: MechanismAudit, allowed: Allowance, line: int, asked: _Asked) -> str:
    """Keeps the audit for the summary and the report, and returns what is said of a violation."""
    violated, place = found.verdict == "violation", allowed.place
    known = allowed.done[line] if line < len(allowed.done) else None  # by an example of the same test
    if known and not violated and (known.verdict == "violation" or found.lower <= allowed.examples.largest[line]):
        return ""
    allowed.examples.largest[line] = found.lower
    directory = None
    if place is not None and (violated or place.every) and found.neighbours:
        directory = place.root() / (f"{place.name}-{line}" if line else place.name)
    page = "" if directory is None else str(directory / "report.html")
    made = SummaryLine(
        claim=found.claim,
        upper="",
        lower=f"{_LETTERS[found.unit]} ≥ {round_down(found.lower)}",
        trials=found.trials,
        confidence=allowed.confidence,
        verdict=found.verdict,
        report=page,
    )
    allowed.done[line : line + 1] = [made]
    if directory is not None and place is not None:
        witness = asked.repeat(found, directory)
        allowed.reports[line] = partial(_save, found, witness, directory, place.test, asked)
    elif violated:
        witness = _keep_data(asked, found)
    return _say(found, witness.code, page) if violated else ""


def _keep_data(asked: _Asked, found: MechanismAudit) -> Witness:
    """Returns a test whose large data are in a directory of their own, where no report is written."""
    directory = Path(tempfile.mkdtemp(prefix="privcheck-"))
    witness = asked.repeat(found, directory)
    if witness.arrays or witness.texts:
        witness.save(directory)
    else:
        directory.rmdir()
    return witness


def _say(found: MechanismAudit, code: str, page: str) -> str:
    pair = repr(found.neighbours[found.pair])
    pair = pair if len(pair) <= _LONGEST else f"{pair[: _LONGEST - 1]}…"
    said = f"{found}\nneighbours: {pair}\nthe same audit as a test:\n\n{code}"
    return f"{said}\nreport: {page}" if page else said


def _save(found: MechanismAudit, witness: Witness, directory: Path, test: str, asked: _Asked) -> None:
    from privcheck.testing.artefacts import save_page  # Jinja2 and Matplotlib only where a page is made

    witness.save(directory)
    name = getattr(asked.mechanism, "__qualname__", type(asked.mechanism).__qualname__)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    save_page(found, directory, mechanism=name, test=test, code=witness.code, started=started)
