"""Assertions about privacy for test suites. In a test marked `privacy` they share one α with the whole session.

Inside `@given` the audits of a test share its allowance, an audit's seed comes from its content, and results are
cached: an example that failed fails again whenever Hypothesis repeats it, so that it can be shrunk.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import hashlib
import inspect
import math
import sys
import tempfile
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np

from privcheck.declare.declaration import Declaration
from privcheck.errors import DeclarationError, ParameterError
from privcheck.runtime.auditors import MechanismAudit, MechanismClaim, Neighbours, Workers, audit_agent, audit_mechanism
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck.runtime.setting import Setting
from privcheck.support.plugins import load_entry
from privcheck.terms.guarantees import claimed_delta
from privcheck.terms.symbols import Exact
from privcheck.testing.session import (
    ALLOWANCE,
    CONFIDENCE,
    TRIALS,
    Allowance,
    AuditRecord,
    Examples,
    SummaryLine,
)
from privcheck.verification import Verification, judge

if TYPE_CHECKING:
    from privcheck.testing.failure_report import Witness


DeclarationView = Literal["releases", "lockstep", "noise"]
_PAIRS = 50  # of the lockstep view, two runs each
_RUNS = 50  # of the noise view


def assert_declaration(
    declaration: Declaration,
    sets: Mapping[str, Exact] | None = None,
    *,
    views: Sequence[DeclarationView] = ("lockstep", "noise", "releases"),
    trials: int | None = None,
    confidence: float | None = None,
    seed: int | None = None,
) -> Verification:
    """Assert that a declaration's claim holds and that audits of its statistics and noise refute nothing.

    Args:
        declaration: The checked declaration.
        sets: Parameters with other values than the defaults.
        views: The audits; α is divided among those that draw noise.
        trials: Runs under each neighbour in the releases view; by default 10 000, or the session's option.
        confidence: By default 0.99; must be left out in a test marked `privacy`, where the session sets it.
        seed: By default 0, or the session's option.

    Raises:
        AssertionError: The claim fails or is undecided, a statistic exceeds its stated sensitivity, or an audit found a
            violation.
        ParameterError: An argument is out of range, or the marker announced fewer audits.
    """
    __tracebackhide__ = True
    called = _calling()
    allowed = allow(confidence)
    values = declaration.values(dict(sets or {}))
    setting = Setting(declaration=declaration, values=values)
    try:
        verified = judge(setting.priced)
    except DeclarationError as error:  # a statistic contradicts itself, on a pair that the message names
        raise AssertionError(str(error)) from error
    drawing = [view for view in views if view != "lockstep"]
    delta = _delta(declaration)
    runs = {"lockstep": _PAIRS, "noise": _RUNS, "releases": allowed.trials if trials is None else trials}
    problems = []
    lower = ""
    if verified.verdict != "holds":
        findings = "; ".join(f"{finding.code}: {finding.message}" for finding in verified.findings) or verified.repair
        problems.append(f"verify: {verified.claim} {verified.verdict} ({findings})")
    for view in views:
        result = _view(
            view,
            AuditRequest(
                setting=setting,
                view=view,
                delta=delta,
                trials=runs[view],
                confidence=1 - (1 - allowed.confidence) / max(1, len(drawing)),
                seed=allowed.seed if seed is None else seed,
            ),
        )
        if result.epsilon_lower is not None:
            lower = f"ε ≥ {round_down(result.epsilon_lower)}"
        if result.verdict == "violation":
            problems.append(f"{view}: {result.method}; {result.witness}; {dict(result.evidence)}")
    upper = setting.priced.epsilon(delta)
    allowed.records[len(allowed.done)] = AuditRecord(
        file=called[0],
        line=called[1],
        seed=allowed.seed if seed is None else seed,
        method=f"verification, and audits of the views {', '.join(views)}",
        notes=tuple(problem[:_LONGEST] for problem in problems),
    )
    allowed.done.append(
        SummaryLine(
            claim=verified.claim,
            upper=f"ε ≤ {_up(upper)}" + (f" at δ = {delta:g}" if delta else ""),
            lower=lower,
            trials=runs["releases"] if "releases" in views else 0,
            confidence=allowed.confidence,
            verdict=verified.verdict if verified.verdict != "holds" else "violation" if problems else "consistent",
        )
    )
    if problems:
        raise AssertionError(f"{declaration.name}: " + "\n".join(problems)[:2_000])
    return verified


def allow(confidence: float | None) -> Allowance:
    """Allowance of an audit in the running test; outside a marked test, with the given confidence.

    Raises:
        ParameterError: The test is marked, and a confidence is given or all announced audits were made.
    """
    allowed = ALLOWANCE.get()
    given = CONFIDENCE if confidence is None else confidence
    if allowed is None:
        return Allowance(trials=TRIALS, confidence=given, seed=0, audits=None)
    if allowed.audits is None:
        return replace(allowed, confidence=given)
    if confidence is not None:
        message = "a test marked `privacy` shares one α with its session: leave out `confidence`"
        raise ParameterError(f"{message}, set --privacy-confidence", name="confidence", given=confidence)
    if len(allowed.done) >= allowed.audits:
        message = f"expected {allowed.audits} audits in this test, as its marker says, and this is one more"
        more = len(allowed.done) + 1
        raise ParameterError(f"{message}; mark it `@pytest.mark.privacy(audits={more})`", name="audits", given=more)
    return allowed


def _calling() -> tuple[str, int]:
    """File and line of the call of the assertion that asks."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = None if frame is None else frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _delta(declaration: Declaration) -> float:
    claimed = claimed_delta(declaration.claim.guarantee)
    return 1e-5 if claimed is None or claimed.symbols else claimed.number(rounding="down")


def _view(view: str, request: AuditRequest) -> AuditResult:
    attack = cast("Callable[[AuditRequest], AuditResult]", load_entry("auditors", view, kind="view"))
    return attack(request)


def round_down(value: float) -> str:
    """A lower bound with four decimals, rounded down."""
    return f"{math.floor(value * 1e4) / 1e4:g}" if math.isfinite(value) else "∞"


def _up(value: float) -> str:
    return f"{math.ceil(value * 1e4) / 1e4:g}" if math.isfinite(value) else "∞"


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
    """Assert that an audit does not refute the claim of a function or of a whole agent, and return the audit.

    It never shows that the function is private: a bug with a small effect, or one visible only on other neighbours,
    passes. With Hypothesis the pair is an argument of the test, and the reported example is the smallest failing pair
    found. The audits of all examples of a test share the α of one audit.

    Args:
        mechanism: A function as in `privcheck.audit_mechanism`, making many runs per call or one; a whole agent as in
            `privcheck.audit_agent` if any argument of the latter is given (`dataset`, `joint`, …).
        claim: `PureDP`, `ApproxDP`, `ZCDP` or `GaussianDP`.
        neighbours: Pairs of neighbouring datasets; for an agent, `dataset` may be given instead.
        trials: Runs under each neighbour; by default 10 000, or the session's option, and 500 for an agent.
        confidence: By default 0.99; must be left out in a test marked `privacy`, where the session sets it.
        seed: By default 0, or the session's option.
        stop: End as soon as the claim is refuted, which takes a few hundred runs for a gross violation. By default only
            audits of agents do.
        workers: Number of threads.
        executor: Makes the blocks of runs instead, as in `privcheck.audit_mechanism`.
        more: Further arguments of `audit_mechanism` (`exceptions`, `one_at_a_time`) or `audit_agent`.

    Raises:
        AssertionError: The audit found a violation; the message has the bound, the pair, a test that repeats the audit,
            and the path of the report.
        ParameterError: An argument is out of range, the marker announced fewer audits, or a test with Hypothesis has a
            deadline or data that cannot be fingerprinted.
        MechanismError: The function cannot be judged.
    """
    __tracebackhide__ = True
    how = {**more, **({} if stop is None else {"stop": stop})}
    is_agent = bool(_AGENTS & set(more))
    asked = _Asked(mechanism=mechanism, claim=claim, how=how, is_agent=is_agent, called=_calling())
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
    """Subject of the assertion.

    Attributes:
        mechanism: The function or agent.
        claim: Its claim.
        how: Further arguments of the audit.
        is_agent: Whether it is a whole agent.
        called: File and line of the call.
    """

    mechanism: Callable[..., Any]
    claim: MechanismClaim
    how: Mapping[str, Any]
    is_agent: bool
    called: tuple[str, int]

    @property
    def auditor(self) -> Callable[..., MechanismAudit]:
        return audit_agent if self.is_agent else audit_mechanism

    def repeat(self, found: MechanismAudit, directory: Path) -> Witness:
        """A test that repeats the audit; large data will be in the directory."""
        from privcheck.testing.failure_report import write_witness

        arguments = {"neighbours": list(found.neighbours), **({"joint": False} if self.is_agent else {})}
        arguments |= {name: value for name, value in self.how.items() if name in _REPEATED}
        arguments |= {"trials": found.trials, "confidence": found.confidence, "seed": found.seed}
        return write_witness(self.mechanism, self.claim, arguments, directory=directory)


def _is_example() -> bool:
    """Whether Hypothesis runs the test.

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
    """Joint allowance of the examples of the running test."""
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
    """The audit of an example, new or cached, and the number of its summary line."""
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
    """Store the audit for the summary and the report, and return the message of a violation; else an empty text."""
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
    allowed.records[line] = AuditRecord(
        file=asked.called[0],
        line=asked.called[1],
        seed=found.seed,
        method=found.method,
        claimed=f"{_LETTERS[found.unit]} ≤ {_up(found.claimed)}" + (f" at δ = {found.delta:g}" if found.delta else ""),
        neighbours=_show_pair(found) if violated else "",
        code=witness.code if violated else "",
        notes=found.notes,
    )
    return _say(found, witness.code, page) if violated else ""


def _keep_data(asked: _Asked, found: MechanismAudit) -> Witness:
    """A test with its large data in a temporary directory, for audits without a report."""
    directory = Path(tempfile.mkdtemp(prefix="privcheck-"))
    witness = asked.repeat(found, directory)
    if witness.arrays or witness.texts:
        witness.save(directory)
    else:
        directory.rmdir()
    return witness


def _show_pair(found: MechanismAudit) -> str:
    pair = repr(found.neighbours[found.pair])
    return pair if len(pair) <= _LONGEST else f"{pair[: _LONGEST - 1]}…"


def _say(found: MechanismAudit, code: str, page: str) -> str:
    said = f"{found}\nneighbours: {_show_pair(found)}\nthe same audit as a test:\n\n{code}"
    return f"{said}\nreport: {page}" if page else said


def _save(found: MechanismAudit, witness: Witness, directory: Path, test: str, asked: _Asked) -> None:
    from privcheck.testing.failure_report import save_page  # Jinja2 and Matplotlib only where a page is made

    witness.save(directory)
    name = getattr(asked.mechanism, "__qualname__", type(asked.mechanism).__qualname__)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    save_page(found, directory, mechanism=name, test=test, code=witness.code, started=started)


_PLAIN: Final = (bool, int, float, complex, str, bytes)
_BY_REPR: Final = (fractions.Fraction, decimal.Decimal, dt.date, dt.time, dt.timedelta, PurePath)
_DEEPEST: Final = 100


def fingerprint(*values: Any) -> str:
    """A text that is the same for values of the same content, in this process and in others.

    Functions are identified by module, name, code, defaults and captured variables.

    Raises:
        ParameterError: The content of a value cannot be read.
    """
    return hashlib.blake2b(repr([_content(value, 0) for value in values]).encode(), digest_size=16).hexdigest()


def _content(value: Any, depth: int) -> Any:
    """Content of a value as nested tuples of texts."""
    if depth > _DEEPEST:
        raise _unknown(value)
    if value is None or type(value) in _PLAIN:
        return (type(value).__name__, repr(value))
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return (value.dtype.str, np.shape(value), hashlib.blake2b(np.ascontiguousarray(value).tobytes()).hexdigest())
    if isinstance(value, _BY_REPR):
        return (_name(type(value)), repr(value))
    if isinstance(value, enum.Enum | type | types.ModuleType | types.BuiltinFunctionType | np.ufunc):
        return (_name(type(value)), _name(value), getattr(value, "name", ""))
    parts = _parts(value)
    return (_name(type(value)), *(_content(part, depth + 1) for part in parts))


def _parts(value: Any) -> Iterable[Any]:
    """The parts of a value."""
    for kinds, parts in _MADE_OF:
        if isinstance(value, kinds):
            return parts(value)
    if type(value).__module__.partition(".")[0] == "pandas":
        return _frame(value)
    if dataclasses.is_dataclass(value):
        return [getattr(value, each.name) for each in dataclasses.fields(value)]
    if type(value).__module__ not in ("builtins", "numpy.random._generator") and hasattr(value, "__dict__"):
        return [vars(value)]
    raise _unknown(value)


def _function(value: types.FunctionType) -> list[Any]:
    captured = [cell.cell_contents for cell in value.__closure__ or ()]
    return [value.__module__, value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__, captured]


def _frame(value: Any) -> list[Any]:
    index = value.index if hasattr(value, "index") and not callable(value.index) else ()
    if hasattr(value, "columns"):
        columns = [[str(value.dtypes.iloc[i]), value.iloc[:, i].tolist()] for i in range(value.shape[1])]
        return [list(value.columns), list(index), columns]
    return [str(value.dtype), list(index), value.tolist()]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"


def _unknown(value: Any) -> ParameterError:
    kind = type(value).__qualname__
    message = f"the content of {kind} objects is not visible, so a failing example could not be repeated"
    wanted = "under Hypothesis give functions, arrays, numbers, texts, lists, dicts, dataclasses or data frames"
    return ParameterError(f"{message}; {wanted}", name="mechanism", given=value)


_MADE_OF: Final[tuple[tuple[Any, Callable[[Any], Iterable[Any]]], ...]] = (
    (dict, lambda value: [part for item in value.items() for part in item]),
    ((set, frozenset), lambda value: sorted(repr(_content(each, 1)) for each in value)),
    ((list, tuple), list),
    (types.FunctionType, _function),
    (types.CodeType, lambda value: [value.co_code, value.co_names, value.co_consts]),
    (types.MethodType, lambda value: [value.__self__, value.__func__]),
    (functools.partial, lambda value: [value.func, value.args, value.keywords]),
)
