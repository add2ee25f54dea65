"""Policies and grants: reading, writing, and the check that a dataset's grants together keep its policy.

`Known` caches what never changes once it is written: grants, policies, and the store's key; and balances, by their row.
`privcheck.ledger.policies` has the certified composition of a dataset's grants.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from fractions import Fraction

from privcheck.accounting.currencies import Cost
from privcheck.accounting.sums import bound_epsilon
from privcheck.errors import BudgetError, ParameterError, UnknownNameError
from privcheck.ledger import registry, rows
from privcheck.ledger.balances import (
    Balance,
    Block,
    balance_of,
    check_cover,
    describe_balance,
    find_blocks,
    read_blocks,
    read_statement,
)
from privcheck.ledger.exact import canonical, read_fraction, read_name, write_time
from privcheck.ledger.limits import RECORDED, check_unit, needed_unit, state_unit
from privcheck.ledger.policies import bound_grants, bound_whole, join_lines
from privcheck.ledger.signing import Signer, unsigned
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import (
    CURRENCIES,
    BudgetPolicy,
    Decision,
    Entry,
    Grant,
    read_cost,
    read_currency,
    theorem_of,
)
from privcheck.ledger.wire import MOST_COUNT, parse_event


def read_policy(
    *,
    dataset: object,
    epsilon: object,
    delta: object,
    unit: object,
    asserted_units: object = False,
    remainder: object = "rho",
    until: object = None,
    by: str,
) -> BudgetPolicy:
    """Validate the fields of a policy; `by` opens the dataset, and states its unit.

    Raises:
        ParameterError: A field is out of its range.
    """
    if not isinstance(asserted_units, bool):
        message = f"expected asserted_units true or false, got {str(asserted_units)[:40]!r}"
        raise ParameterError(message, name="asserted_units", given=asserted_units)
    return BudgetPolicy(
        dataset=read_name("dataset", dataset),
        epsilon=_above_zero("epsilon", epsilon),
        delta=read_delta("delta", delta),
        unit=state_unit(unit, by=by),
        asserted_units=asserted_units,
        remainder=read_currency(remainder),
        until=None if until is None else read_time("until", until),
    )


def read_adaptive(
    *, name: object, dataset: object, currency: object, cap: object, lost: object = 0, delta: object = None,
    blocks: object = (),
) -> Grant:  # fmt: skip
    """Validate the fields of an adaptive grant.

    Raises:
        ParameterError: A field is out of its range, or δ is missing where the cap has no finite ε without one.
    """
    counted, most, aside = read_currency(currency), _above_zero("cap", cap), read_delta("lost", lost)
    at = aside if delta is None else read_delta("delta", delta)
    value = bound_epsilon(CURRENCIES[counted], Cost(amount=most, lost=aside), at)
    if not math.isfinite(value):
        message = f"expected delta above {float(aside):g} for a cap in {counted}, at which its ε is stated"
        raise ParameterError(message, name="delta", given=delta)
    return Grant(
        name=read_name("name", name),
        dataset=read_name("dataset", dataset),
        kind="adaptive",
        currency=counted,
        cap=most,
        lost=aside,
        delta=at,
        epsilon=value,
        theorem=theorem_of(counted),
        blocks=read_blocks(blocks),
    )


def read_plan(
    *, name: object, dataset: object, events: object, delta: object = 0, blocks: object = ()
) -> Grant:  # fmt: skip
    """Validate the fields of a plan: events with counts, fixed in advance, which charges count down.

    Raises:
        ParameterError: A field is out of its range, or no finite ε holds at that δ.
    """
    lines, at = join_lines(parse_event(events)), read_delta("delta", delta)
    total = sum(line["count"] for line in lines)
    if total > MOST_COUNT:
        raise ParameterError(f"expected at most {MOST_COUNT} events in a plan, got {total}", name="events")
    plan = Grant(
        name=read_name("name", name),
        dataset=read_name("dataset", dataset),
        kind="plan",
        currency="events",
        cap=Fraction(total),
        lost=Fraction(0),
        delta=at,
        epsilon=0.0,
        theorem=theorem_of("events"),
        plan=lines,
        blocks=read_blocks(blocks),
    )
    value = bound_grants([plan], delta=at)
    if not math.isfinite(value):
        message = f"expected a larger delta: the plan has no finite ε at {float(at):g}"
        raise ParameterError(message, name="delta", given=delta)
    return replace(plan, epsilon=value)


def write_policy(transaction: Transaction, policy: BudgetPolicy, *, actor: str, at: str) -> Entry:
    """Open a dataset's chain with its policy.

    Raises:
        ParameterError: The dataset has a policy already, or some of its rows are lost.
    """
    transaction.claim("name", [f"dataset {policy.dataset}"])
    registry.lock(transaction)
    _refuse_lost(transaction, policy.dataset)
    if find_policy(transaction, policy.dataset) is not None:
        message = f"dataset {policy.dataset!r} already has a policy, which cannot be changed; choose another name"
        raise ParameterError(message, name="dataset", given=policy.dataset)
    transaction.run("INSERT INTO dataset (name) VALUES (?)", (policy.dataset,))
    body = policy.to_dict()
    row = rows.append(transaction, dataset=policy.dataset, kind="policy", actor=actor, body=body, at=at)
    registry.note(transaction, "dataset", {"dataset": policy.dataset, "row": row.hash}, actor=actor, at=at)
    return row


def write_blocks(
    transaction: Transaction, dataset: str, names: object, *, disjoint_users: object, actor: str, at: str
) -> list[Block]:
    """Add blocks to a dataset; returns all blocks of the dataset.

    Raises:
        ParameterError: A name is taken, the statement that users are disjoint is missing, or the dataset was granted as
            a whole.
        UnknownNameError: There is no such dataset.
    """
    transaction.lock(dataset)
    policy = find_policy(transaction, dataset)
    if policy is None:
        raise UnknownNameError("dataset", dataset, rows.datasets(transaction))
    new, known = read_blocks(names), {block.name for block in find_blocks(transaction, dataset)}
    said = read_statement(policy, disjoint_users)
    if not new or known & set(new):
        message = f"expected names of new blocks of {dataset!r}, got {', '.join(new) or 'none'}"
        raise ParameterError(message, name="blocks", given=names)
    if not known and grants_of(transaction, dataset):
        message = f"{dataset!r} has grants to all of its data; blocks must be made before the first grant"
        raise ParameterError(f"{message}: open another dataset", name="blocks", given=names)
    body = {"blocks": list(new), "disjoint_users": said}
    rows.append(transaction, dataset=dataset, kind="blocks", actor=actor, body=body, at=at)
    return find_blocks(transaction, dataset)


def write_grant(
    transaction: Transaction, grant: Grant, *, unit: object = None, actor: str, at: str
) -> tuple[Grant, BudgetPolicy]:  # fmt: skip
    """Add a grant; returns the grant as it was written, and its dataset's policy.

    Args:
        transaction: The write transaction.
        grant: The result of `read_adaptive` or `read_plan`.
        unit: The unit for which a plan's events were priced, as of a charge.
        actor: The author of the grant.
        at: The time, in UTC.

    Raises:
        ParameterError: The name is taken, the dataset has no policy or one without a unit, its rows are lost, or a
            plan's events were priced for another unit than the dataset's.
        BudgetError: With it the dataset's grants would exceed its policy; nothing was changed.
    """
    transaction.claim("name", [f"grant {grant.name}"])
    registry.lock(transaction)
    transaction.lock(grant.dataset)
    if transaction.one("SELECT 1 FROM budget WHERE name = ?", (grant.name,)) is not None:
        raise ParameterError(f"a grant of the name {grant.name!r} already exists", name="name", given=grant.name)
    policy = find_policy(transaction, grant.dataset)
    if policy is None:
        message = (
            f"dataset {grant.dataset!r} has no policy, which sets its total budget and its protected unit; make one "
            f"first: privcheck ledger policy --dataset {grant.dataset} --epsilon E --delta D "
            "--unit 'patient, 8 trajectories, replace-one, central'"
        )
        raise ParameterError(message, name="dataset", given=grant.dataset)
    needed_unit(policy)
    _refuse_lost(transaction, grant.dataset)
    check_cover(grant, [block.name for block in find_blocks(transaction, grant.dataset)])
    if grant.kind == "plan":
        named = dict.fromkeys(str(line["relation"]) for line in grant.plan if "relation" in line)
        grant = replace(grant, unit=check_unit(policy, unit, by=f"{actor}, who grants", relations=named))
    if policy.trust == "local":
        grant = _as_recorded(grant)
    grant = _check_whole(transaction, policy, grant)
    transaction.run("INSERT INTO budget (name, dataset) VALUES (?, ?)", (grant.name, grant.dataset))
    body = {"grant": grant.to_dict(), "balance": Balance.new(grant).to_dict()}
    row = rows.append(transaction, dataset=grant.dataset, kind="grant", actor=actor, body=body, at=at, grant=grant.name)
    named = {"grant": grant.name, "dataset": grant.dataset, "row": row.hash}
    registry.note(transaction, "grant", named, actor=actor, at=at)
    return grant, policy


def close_datasets(transaction: Transaction, names: Collection[str]) -> None:
    """Close datasets with lost rows to new grants: their earlier grants and charges are unknown."""
    closed = canonical(sorted({*_closed(transaction), *names}))
    transaction.run("UPDATE meta SET value = ? WHERE name = 'lost'", (closed,))


def find_policy(transaction: Transaction, dataset: str) -> BudgetPolicy | None:
    """Policy of a dataset, or None if it has none."""
    found = rows.rows_of_kind(transaction, dataset, "policy")
    return BudgetPolicy.of(found[0].body) if found else None


def find_grant(transaction: Transaction, name: str) -> Grant:
    """Find a grant by its name.

    Raises:
        UnknownNameError: There is no grant of the name.
    """
    row = rows.first_of_grant(transaction, name)
    if row is None:
        raise UnknownNameError("grant", name, rows.grants(transaction))
    return Grant.of(row.body["grant"])


def grants_of(transaction: Transaction, dataset: str) -> list[Grant]:
    """Grants of a dataset, in the order of their creation."""
    return [Grant.of(row.body["grant"]) for row in rows.rows_of_kind(transaction, dataset, "grant")]


def read_delta(name: str, value: object) -> Fraction:
    """Read a δ.

    Raises:
        ParameterError: The value is not at least 0 and below 1.
    """
    delta = read_fraction(name, value)
    if not delta < 1:
        raise ParameterError(f"expected {name} below 1, got {value!s:.40}", name=name, given=value)
    return delta


def read_time(name: str, value: object) -> str:
    """Read a moment, and write it in UTC in the format of rows.

    Raises:
        ParameterError: The value is not a time, or has no time zone.
    """
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        message = f"expected {name} as a time with its zone, such as 2027-01-31T12:00:00Z, got {str(value)[:60]!r}"
        raise ParameterError(message, name=name, given=value)
    return write_time(moment)


def _above_zero(name: str, value: object) -> Fraction:
    number = read_fraction(name, value)
    if number == 0:
        raise ParameterError(f"expected {name} above 0, got {value!s:.40}", name=name, given=value)
    return number


def _check_whole(transaction: Transaction, policy: BudgetPolicy, grant: Grant) -> Grant:
    """Mark a grant that is late; refuse one with which the grants would exceed the dataset's policy."""
    others = grants_of(transaction, policy.dataset)
    grant = replace(grant, late=not grant.recorded and _is_charged(transaction, grant, others))
    everything = [*(one for one in others if not grant.blocks or set(one.blocks) & set(grant.blocks)), grant]
    epsilon = bound_whole(policy, everything, blocks=grant.blocks)
    if not (math.isfinite(epsilon) and Fraction(epsilon) <= policy.epsilon):
        message = (
            f"with grant {grant.name!r} the {len(everything)} grants of {policy.dataset!r} come to ε = {epsilon:.6g} "
            f"at δ = {float(policy.delta):g}, and its policy allows {float(policy.epsilon):.6g}; expected a smaller cap"
        )
        raise BudgetError(message, cost=None, remaining=None)
    return grant


def _closed(transaction: Transaction) -> list[str]:
    row = transaction.one("SELECT value FROM meta WHERE name = 'lost'")
    return [] if row is None else list(json.loads(str(row[0])))


def _refuse_lost(transaction: Transaction, dataset: str) -> None:
    """Refuse grants on a dataset with lost rows, because its earlier charges are unknown.

    Raises:
        ParameterError: Rows of the dataset are lost.
    """
    if dataset in _closed(transaction):
        message = f"rows of dataset {dataset!r} are lost: an older copy of the ledger was restored, and grants"
        message += " and charges made since then are unknown; no more grants are possible on it"
        raise ParameterError(message, name="dataset", given=dataset)


def _as_recorded(grant: Grant) -> Grant:
    """Grant of the local model: charges are recorded, each up to the cap.

    Raises:
        ParameterError: The grant is a plan, which would be counted down.
    """
    if grant.kind == "plan":
        message = "charges of the local model are recorded, not added up: expected a currency and the cap of a charge"
        raise ParameterError(message, name="events")
    return replace(grant, recorded=True, theorem=RECORDED)


def _is_charged(transaction: Transaction, grant: Grant, others: list[Grant]) -> bool:
    """Whether a block of a new grant, or its dataset as a whole, was ever charged."""
    if not grant.blocks:
        return rows.is_charged(transaction, grant.dataset)
    return any(set(balance_of(transaction, other.name).sums) & set(grant.blocks) for other in others)


class Known:
    """Cache of an open ledger."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Clear the cache: another copy of the store may have replaced it."""
        self._grants: dict[str, tuple[Grant, BudgetPolicy]] = {}
        self._balances: dict[str, tuple[str, Balance]] = {}
        self._signer: Signer | None = None

    def recall(self, name: str) -> tuple[Grant, BudgetPolicy] | None:
        """Cached grant and its dataset's policy, or None."""
        return self._grants.get(name)

    def find(self, transaction: Transaction, name: str) -> tuple[Grant, BudgetPolicy]:
        """Grant and its dataset's policy.

        Raises:
            UnknownNameError: There is no grant of the name.
        """
        if name not in self._grants:
            grant = find_grant(transaction, name)
            policy = find_policy(transaction, grant.dataset)
            assert policy is not None
            self._grants[name] = (grant, policy)
        return self._grants[name]

    def balance_of(self, transaction: Transaction, grant: str) -> Balance:
        """Balance in the last row of a grant, from the cache if that row has not changed."""
        last = rows.last_of_grant(transaction, grant)
        assert last is not None
        known = self._balances.get(grant)
        return known[1] if known is not None and known[0] == last.hash else Balance.of(last.body["balance"])

    def keep(self, row: Entry, balance: Balance) -> None:
        """Cache the balance of a row."""
        self._balances[str(row.grant)] = (row.hash, balance)

    def signer(self, read: Callable[[], AbstractContextManager[Transaction]]) -> Signer:
        """The store's key.

        Args:
            read: Opens a read transaction.

        Raises:
            StoreError: The store has no key, or the packages for signing are not installed.
        """
        if self._signer is None:
            with read() as transaction:
                return self._signer_of(transaction)
        return self._signer

    def _signer_of(self, transaction: Transaction) -> Signer:
        self._signer = self._signer or Signer.of(transaction)
        return self._signer

    def decide(self, transaction: Transaction, grant: Grant, row: Entry, balance: Balance | None = None) -> Decision:
        """Decision that a row records; a row always gives the same one.

        Args:
            transaction: The transaction.
            grant: The grant that the row is about.
            row: A row about a charge.
            balance: The row's balance, if it is already known.
        """
        return Decision(
            state=row.body["state"],
            grant=grant.name,
            charge=row.charge,
            cost=read_cost(row.body["cost"]),
            balance=describe_balance(grant, balance or Balance.of(row.body["balance"])),
            row=unsigned(row),
            sign=self._signer_of(transaction).sign_receipt,
            expires=row.body.get("expires"),
            blocks=tuple(row.body.get("blocks", ())),
            conditions=tuple(row.body.get("conditions", ())),
        )
