"""Charging a run to a team's budget: only claims that hold, reserved before the run, committed before it draws.

The reservation is the accountant's cost of the releases, whatever the paper states. Once noise may have been drawn, the
charge stays, whatever happens to the run; it is released only if the run ended before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from privcheck.accounting import compress_to_mu
from privcheck.accounting.reals import decimal
from privcheck.commands.certificates import certificate_of
from privcheck.commands.ledger_client import Desk, open_till
from privcheck.commands.provenance import exact_parameters
from privcheck.commands.run_budget import Nobody, Paying, describe_finding
from privcheck.commands.settings import Chosen, resolve_setting
from privcheck.errors import BudgetError, ParameterError, StoreError
from privcheck.ledger.exact import canonical, digest, write_number
from privcheck.ledger.values import CurrencyName
from privcheck.pricing import NumericAccount
from privcheck.reports.values import Audited
from privcheck.runtime.ledger import read_ledger
from privcheck.runtime.results import NoiseKind
from privcheck.runtime.run_folders import folder_for
from privcheck.runtime.spending import Spent, price_ledger
from privcheck.support.files import write_whole
from privcheck.terms.symbols import Expr, to_float
from privcheck.verification import judge

if TYPE_CHECKING:
    from privcheck.ledger.client import Client

RECEIPT: Final = "receipt.json"
_CEILING: Final = Context(prec=15, rounding=ROUND_CEILING)
_JUDGED_WITHIN: Final = 300.0  # seconds
_NO_COST: Final = "has no finite cost in the grant's currency"

Event = dict[str, Any]


@contextmanager
def charged(
    setting: Chosen,
    *,
    ledger: str | None,
    grant: str | None,
    noise: NoiseKind,
    replicates: int,
    key: str | None = None,
    out: Path | None = None,
) -> Iterator[Paying]:
    """Reserve the cost of a run; calling the yielded hooks before the first draw commits it.

    Args:
        setting: The algorithm of the run.
        ledger: Store of the budget; None to charge nothing.
        grant: The grant to charge.
        noise: Noise of the run.
        replicates: Number of times the releases are made.
        key: Idempotency key, under which a continued run is charged once.
        out: Folder of the receipt; None to write none.

    Raises:
        BudgetError: The grant cannot afford it, or its claim does not hold; nothing was drawn.
        ParameterError: One of ledger and grant is missing, or there is no finite cost in the grant's currency.
    """
    if ledger is None and grant is None:
        yield Nobody()
        return
    if ledger is None or grant is None:
        message = "expected --ledger URL and --grant NAME together: the budget, and its grant"
        raise ParameterError(message, name="ledger", given=ledger or grant)
    with open_till(ledger) as till:
        charge = _reserve(till, grant, setting.with_noise(noise), replicates, key)
        purse = _Purse(till, charge, out, released=noise == "release")
        try:
            yield purse
        except BaseException as error:
            purse.give_back(f"the run ended before its first draw: {type(error).__name__}")
            raise
        purse.give_back("nothing was run")


def price_setting(setting: Chosen, currency: CurrencyName, *, replicates: int = 1) -> tuple[Event, dict[str, Any]]:
    """Cost of an algorithm's releases to one of its users, as an event of a currency, with the claim for the charge.

    The claim is judged under its own relation; the cost is that of all trajectories of a user.

    Raises:
        BudgetError: The claim does not hold.
        ParameterError: There is no finite cost in the currency.
    """
    judged = setting.judged
    declaration, verdict = judged.declared, judge(judged.priced)
    if verdict.verdict != "holds":
        raise BudgetError(_not_holding(declaration.name, verdict.verdict), cost=None, remaining=None)
    event = event_of(setting, currency)
    if event is None:
        raise ParameterError(f"{declaration.name} {_NO_COST}, {currency}", name="grant", given=currency)
    about = describe_claim(setting, verdict.verdict, given=verdict.given, certified=True)
    return {**event, "count": replicates}, {**about, "verdict": verdict.verdict}


def event_of(setting: Chosen, currency: CurrencyName) -> Event | None:
    """Cost of an algorithm's releases as an event of a currency; None if it is infinite."""
    priced = setting.charged.priced
    composed = priced.account
    return _as_event(priced.numbers, currency, rho=composed.rho, pure=composed.pure, values=priced.values)


def describe_claim(
    setting: Chosen, verdict: str, *, given: Sequence[str] = (), certified: bool = False
) -> dict[str, Any]:
    """Claim of a charged algorithm: name, parameters, unit of privacy, statements of its author and its certificate.

    For joint DP it has the evidence for each condition of the billboard lemma; None means not met.

    Args:
        setting: The algorithm.
        verdict: Verdict on its claim.
        given: Names of the author's statements that the verdict assumes.
        certified: Whether to name the digest of the verdict's certificate, if the independent checker accepts one.
    """
    declaration = setting.declared
    certificate = certificate_of(setting.judged.priced).brief if certified else None
    about: dict[str, Any] = {
        "algorithm": declaration.name,
        "parameters": exact_parameters(setting),
        "unit": setting.setting.protected.to_dict(),
        **({"given": list(given)} if given else {}),
        **({"certificate": certificate.digest} if certificate is not None and certificate.accepted else {}),
    }
    joint = declaration.claim.joint
    if joint is None:
        return about
    sees = f"declared: actions are computed from {' and '.join(joint.sees)}"
    met = {
        "outputs": None if "others' data" in joint.sees else sees,
        "billboard": f"the claim of {declaration.name} was verified, and holds" if verdict == "holds" else None,
    }
    return {**about, "joint": met}


def charge_algorithm(
    desk: Desk, grant: str, algorithm: str, sets: Mapping[str, str], *, key: str | None,
    blocks: Sequence[str] | None = None,
) -> Event:  # fmt: skip
    """Charge an algorithm's releases, if its claim holds, at the accountant's cost.

    A service judges the claim itself, with the algorithms that are installed there.

    Raises:
        BudgetError: The claim does not hold.
        ParameterError: There is no finite cost in the grant's currency.
    """
    if desk.service is not None:
        claim = _judge_there(desk.service, algorithm, sets)
        return desk.service.charge(grant=grant, claim=claim, key=key, blocks=blocks)
    event, about = price_setting(resolve_setting(algorithm, sets), desk.currency(grant))
    return desk.charge(grant=grant, event=event, key=key, claim=about, blocks=blocks)


def _judge_there(service: Client, algorithm: str, sets: Mapping[str, str]) -> str:
    """Wait until a service has judged a claim that holds, and return the claim's name.

    Raises:
        BudgetError: The claim does not hold.
        StoreError: The claim is not judged within five minutes.
    """
    end = time.monotonic() + _JUDGED_WITHIN
    while (told := service.claim(algorithm, sets))["state"] == "running":
        if time.monotonic() > end:
            raise StoreError(f"{service.url}: {algorithm} is still being judged; ask again")
        time.sleep(1)
    if told["state"] != "holds":
        raise BudgetError(_not_holding(algorithm, told["state"]), cost=None, remaining=None)
    return str(told["claim"])


def _not_holding(algorithm: str, verdict: str) -> str:
    message = f"the verdict on {algorithm} is {verdict!r}, and only verified claims are charged"
    return f"{message}; see: privcheck verify {algorithm}"


def import_run(desk: Desk, grant: str, path: Path, *, unit: str | None = None) -> Event:
    """Charge a finished run from its own record (ledger.jsonl); the same record is charged once.

    Args:
        desk: The ledger.
        grant: The grant to charge.
        path: Path of the record.
        unit: Unit of privacy, only for an older record without one; as for a charge.

    Raises:
        LedgerError: The record was changed or cut short.
        ParameterError: The record has no finite cost in the grant's currency, or there is no unit or there are two.
    """
    header, entries = read_ledger(path)
    own = header.get("unit")
    if (own is None) == (unit is None):
        said = "names no unit of privacy" if own is None else f"names its own unit of privacy, {own}"
        remedy = (
            "give --unit, as 'patient, 8 trajectories, replace-one, central', or --unit dataset, by which you state "
            f"that the run was priced for the dataset's unit (its relation was: {header['relation']})"
            if own is None
            else "leave --unit out"
        )
        raise ParameterError(f"{path}: the record {said}; {remedy}", name="unit", given=unit)
    spent = price_ledger(header, entries)
    currency = desk.currency(grant)
    event = _as_event(spent, currency)
    if event is None:
        raise ParameterError(f"{path}: its releases {_NO_COST}, {currency}", name="grant", given=grant)
    mark = digest(path.read_text(encoding="utf-8"))
    claim = {name: header[name] for name in ("algorithm", "parameters", "noise")}
    claim["record"] = mark
    offered = unit if own is None else own
    return desk.charge(grant=grant, event=event, unit=offered, key=f"import-{mark}", claim=claim)


def find_audited(setting: Chosen, *, ledger: str | None, charge: str | None) -> Callable[[Audited], None]:
    """A function that records an audit's verdict as evidence of a charge; a violation freezes the grant.

    Raises:
        ParameterError: One of ledger and charge is missing, or the charge is of another algorithm or other parameters.
    """
    if ledger is None or charge is None:
        message = "expected --ledger URL and --charge ID together: the budget, and the audited charge"
        raise ParameterError(message, name="ledger", given=ledger or charge)
    about = describe_claim(setting, "holds")
    with open_till(ledger) as till:
        claim = till.find_charge(charge)["claim"] or {}
    for name in ("algorithm", "parameters"):
        if claim.get(name) != about[name]:
            message = (
                f"charge {charge} is of {name} {claim.get(name)}, and the audited algorithm has {about[name]}; "
                "expected "
            )
            raise ParameterError(f"{message}the same, or: privcheck ledger evidence", name="charge", given=charge)

    def record(result: Audited) -> None:
        found = describe_finding([result])
        if found is not None:
            with open_till(ledger) as till:
                till.add_evidence(charge, verdict=found[0], report=found[1])

    return record


def run_key(setting: Chosen, **more: object) -> str:
    """Idempotency key of a run that may be continued: the same for the same run with the same details."""
    parts = {"algorithm": setting.algorithm.name, "parameters": exact_parameters(setting), **setting.readings}
    return f"run-{digest(canonical({**parts, **setting.options_used, **{n: str(v) for n, v in more.items()}}))[:32]}"


class _Purse:
    """Reservation of a run until it has begun or ended; calling it commits."""

    def __init__(self, till: Desk, charge: str, out: Path | None, *, released: bool) -> None:
        self._till, self._charge, self._out, self._released = till, charge, out, released
        self._begun = False

    def __call__(self) -> None:
        """Commit; from here on the charge stays, even if it is unknown whether the commit was written."""
        self._begun = True
        decision = self._till.commit(self._charge)
        if decision["state"] != "committed":
            raise BudgetError(f"refused: {decision['reason']}", cost=None, remaining=None)
        if self._out is not None:
            self._out.mkdir(parents=True, exist_ok=True)
            write_whole(folder_for(self._out, released=self._released) / RECEIPT, canonical(decision) + "\n")

    def judge(self, views: Iterable[Audited]) -> bool:
        """Record the audits of the coming run; False after a violation, which freezes the grant."""
        found = describe_finding(views)
        if found is not None:
            self._till.add_evidence(self._charge, verdict=found[0], report=found[1])
        return found is None or found[0] == "consistent"

    def give_back(self, why: str) -> None:
        """Release the reservation, unless noise may have been drawn."""
        if not self._begun:
            self._till.release(self._charge, evidence=why)


def _reserve(till: Desk, grant: str, setting: Chosen, replicates: int, key: str | None) -> str:
    """Reserve the cost of a run and return the reservation's id."""
    event, claim = price_setting(setting, till.currency(grant), replicates=replicates)
    for attempt in range(1000):
        own = None if key is None else f"{key}-{attempt}"
        decision = till.reserve(grant=grant, event=event, claim=claim, key=own)
        if decision["state"] == "refused":
            raise BudgetError(f"refused: {decision['reason']}", cost=None, remaining=decision["remaining"])
        charge = str(decision["id"])
        if key is None or till.find_charge(charge)["state"] != "released":
            return charge  # an attempt that ended before its first draw was released, and this is a new one
    raise BudgetError(f"{grant}: 1000 attempts of this run were released", cost=None, remaining=None)


def _as_event(
    cost: NumericAccount | Spent,
    currency: CurrencyName,
    *,
    rho: Expr | None = None,
    pure: Expr | None = None,
    values: Mapping[str, Fraction] | None = None,
) -> Event | None:
    """A cost as an event of a currency; None if it is infinite in that currency."""
    pure_epsilon = cost.pure if isinstance(cost, NumericAccount) else cost.pure_epsilon
    if isinstance(cost, NumericAccount) and cost.unbounded:
        return None
    epsilon = _write(pure_epsilon, pure, values)
    if currency == "epsilon":
        return None if epsilon is None else {"type": "pure", "epsilon": epsilon}
    if currency == "rho":
        written = _write(cost.rho, rho, values)
        return None if written is None else {"type": "zcdp", "rho": written}
    if currency == "mu2" and cost.mu is not None:
        written = _write(to_float(Fraction(cost.mu) ** 2, rounding="up"))
        return None if written is None else {"type": "gdp", "mu2": written}
    if currency == "mu2" and isinstance(cost, NumericAccount):
        whole = compress_to_mu(cost.curve)
        written = _write(to_float(whole.mu_squared, rounding="up"))
        return None if written is None or whole.lost else {"type": "gdp", "mu2": written}
    return {"type": "pure", "epsilon": epsilon} if currency == "mu2" and epsilon is not None else None


def _write(bound: float, expression: Expr | None = None, values: Mapping[str, Fraction] | None = None) -> str | None:
    """A bound as a decimal of 15 digits, rounded up; exact if its expression is such a decimal."""
    if bound == float("inf"):
        return None
    exact = None if expression is None else expression.rational(values)
    if exact is not None and exact <= Fraction(bound) and decimal(to_float(exact, rounding="nearest")) == exact:
        return write_number(exact)
    up = _CEILING.create_decimal(Decimal(bound))
    return write_number(Fraction(max(up, Decimal("1e-30")) if bound > 0 else Decimal(0)))
