"""Whether the chains of a ledger fit together, add up, and still have what receipts were given for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privcheck.errors import LedgerError, ParameterError
from privcheck.ledger import granting, registry, rows, trees
from privcheck.ledger.answers import Receipt
from privcheck.ledger.balances import Balance, Sums
from privcheck.ledger.exact import write_number
from privcheck.ledger.heads import Head
from privcheck.ledger.planning import count_lines
from privcheck.ledger.policies import bound_whole
from privcheck.ledger.signing import Signer
from privcheck.ledger.store import Transaction
from privcheck.ledger.units import check_unit
from privcheck.ledger.values import WHOLE, Entry, Grant, Policy, complete_event, read_cost
from privcheck.ledger.wire import parse_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Whether a ledger is what was once written.

    Attributes:
        ok: No problem was found.
        rows: How many rows were read.
        datasets: The head of every chain, by dataset: its place and hash.
        problems: What is wrong, one sentence each.
    """

    ok: bool
    rows: int
    datasets: dict[str, dict[str, Any]]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields."""
        return {"ok": self.ok, "rows": self.rows, "datasets": self.datasets, "problems": list(self.problems)}


def check_chains(transaction: Transaction, *, receipts: Sequence[Receipt] = (), heads: Sequence[Head] = ()) -> Checked:
    """Returns whether every chain fits together, adds up, and still has what receipts and heads were given for."""
    problems: list[str] = []
    last: dict[str, dict[str, Any]] = {}
    seen: dict[tuple[str, int], str] = {}
    count = 0
    wanted = {(receipt.dataset, receipt.seq) for receipt in receipts}
    for name in rows.datasets(transaction):
        walk = _Walk(name)
        try:
            for row in rows.rows_of_dataset(transaction, name):
                walk.take(row)
                if (name, row.seq) in wanted:
                    seen[name, row.seq] = row.hash
        except LedgerError as error:
            walk.problems.append(str(error))
        problems += walk.problems or _check_policy(transaction, name)
        count += walk.seq
        last[name] = {"seq": walk.seq, "hash": walk.hash}
    problems += _check_grants(transaction)
    problems += registry.find_problems(transaction)
    problems += trees.find_problems(transaction, heads)
    if receipts:
        signer = Signer.of(transaction)
        problems += [problem for receipt in receipts if (problem := _check_receipt(receipt, seen, signer))]
    return Checked(ok=not problems, rows=count, datasets=last, problems=tuple(problems))


class _Walk:
    """One way through a chain: hashes, places, and every balance summed again from the costs alone."""

    def __init__(self, dataset: str) -> None:
        self.dataset, self.seq, self.hash = dataset, 0, ""
        self.problems: list[str] = []
        self._grants: dict[str, Grant] = {}
        self._balances: dict[str, Balance] = {}
        self._states: dict[str, str] = {}
        self._opened: dict[str, Entry] = {}
        self._blocks: set[str] = set()
        self._policy: Policy | None = None
        # where, and how many of each event of a plan
        self._charges: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {}

    def take(self, row: Entry) -> None:
        """Takes the next row."""
        self.seq += 1
        if row.seq != self.seq:
            self._say(row, f"row {self.seq} is missing")
            self.seq = row.seq
        if row.prev != self.hash:
            self._say(row, "the chain breaks: it does not follow the row before it")
        if not rows.is_sealed(row):
            self._say(row, "it was changed after it was written: its hash does not fit")
        self.hash = row.hash
        try:
            self._add_up(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._say(row, f"not a row of a ledger: {error!r:.80}")

    def _add_up(self, row: Entry) -> None:
        self._learn(row)
        if row.grant is None:
            return
        grant, told = self._grants.get(row.grant), Balance.of(row.body["balance"])
        if grant is None:
            self._say(row, f"grant {row.grant!r} was never made")
            return
        before = self._balances[row.grant]
        after = self._follow(row, grant, before)
        if after.sums != told.sums:
            self._say(row, f"its balance is not the sum of what was charged to {row.grant!r}")
        for place in after.sums:
            self._check_cap(row, grant, after.at(grant, place), f" on block {place}" if place else "")
        if grant.recorded and row.kind == "charge":
            cost = read_cost(row.body["cost"])
            if cost.amount > grant.cap or cost.lost > grant.lost:
                self._say(row, f"it costs more than grant {grant.name!r} allows a charge")
        if (row.held, row.lost) != told.shares(grant):
            self._say(row, "its share of the cap is not that of its balance")
        if told.frozen != (before.frozen or row.kind == "freeze"):
            self._say(row, f"grant {row.grant!r} is frozen or is not, without a row that says so")
        self._balances[row.grant] = told

    def _learn(self, row: Entry) -> None:
        """Takes what a row says of the dataset, or of a new grant or charge."""
        if row.kind == "policy":
            self._policy = Policy.of(row.body)
        if row.kind == "blocks":
            self._blocks |= set(row.body["blocks"])
        if row.kind == "grant" and row.grant is not None:
            self._open(row, row.grant, Grant.of(row.body["grant"]))
        if row.kind == "charge":
            self._check_unit(row, row.body.get("unit"), row.body["event"].get("events", [row.body["event"]]))

    def _open(self, row: Entry, name: str, grant: Grant) -> None:
        if grant.recorded and not (self._policy is not None and self._policy.trust == "local"):
            self._say(row, f"charges to grant {name!r} are not added, and the dataset is not of the local model")
        self._grants[name], self._balances[name] = grant, Balance.new(grant)
        if not set(grant.blocks) <= self._blocks or bool(grant.blocks) != bool(self._blocks):
            self._say(row, f"grant {name!r} is to other blocks than the dataset has")
        if grant.kind == "plan":
            self._check_unit(row, grant.unit, grant.plan)

    def _check_unit(self, row: Entry, unit: object, events: Sequence[Mapping[str, Any]]) -> None:
        """What is charged or planned was priced for the dataset's unit; a policy from before units says nothing."""
        if self._policy is None or self._policy.unit is None:
            return
        named = [str(event["relation"]) for event in events if "relation" in event]
        try:
            check_unit(self._policy, unit, by=f"{row.actor}, who charges", relations=named)
        except ParameterError as error:
            self._say(row, f"its unit of privacy is not the dataset's: {error}")

    def _check_cap(self, row: Entry, grant: Grant, sums: Sums, where: str) -> None:
        held, counts = sums.held(grant.cap), [line["count"] for line in grant.plan]
        if any(n > most for n, most in zip(sums.used, counts, strict=True)):
            self._say(row, f"more events of plan {grant.name!r} were charged than it has{where}")
        if not grant.recorded and (held.amount > grant.cap or held.lost > grant.lost):
            over = float(Fraction(held.amount) / grant.cap)
            self._say(row, f"grant {grant.name!r} is overspent{where}: {over:.6g} of its cap {write_number(grant.cap)}")

    def _follow(self, row: Entry, grant: Grant, before: Balance) -> Balance:
        """Returns the balance after a row, from the row's cost, state and blocks."""
        if row.charge is None:
            return before
        cost, state, was = read_cost(row.body["cost"]), row.body["state"], self._states.get(row.charge)
        self._states[row.charge] = state
        if was is None:
            lines = count_lines(grant.plan, parse_event(complete_event(row.body["event"]))) if grant.plan else ()
            self._charges[row.charge] = (tuple(row.body.get("blocks", ())) or WHOLE, lines)
            self._opened[row.charge] = row
        places, lines = self._charges[row.charge]
        if state == "released":
            self._check_attested(row, self._opened[row.charge])
        if not set(places) <= set(grant.places):
            self._say(row, f"charge {row.charge} is to other blocks than grant {grant.name!r} covers")
        if was is None and state in ("reserved", "committed"):
            return before.spend(grant, places, cost, lines, state)
        if (was, state) == ("reserved", "committed"):
            return before.commit(grant, places, cost)
        if (was, state) == ("reserved", "released"):
            return before.release(grant, places, cost, lines)
        self._say(row, f"charge {row.charge} cannot be {state} after it was {was or 'nothing'}")
        return before

    def _check_attested(self, row: Entry, opened: Entry) -> None:
        """What has expired is given back by another than who reserved it."""
        ends = opened.body["expires"]
        if row.actor == opened.actor and ends is not None and ends <= row.at:
            self._say(row, f"charge {row.charge} had expired, and {row.actor}, who reserved it, attested it")

    def _say(self, row: Entry, what: str) -> None:
        self.problems.append(f"{self.dataset}, row {row.seq}: {what}")


def _check_policy(transaction: Transaction, dataset: str) -> list[str]:
    """Returns problems of the whole: a policy that its grants together do not keep."""
    policy, grants = granting.find_policy(transaction, dataset), granting.grants_of(transaction, dataset)
    if policy is None:
        return [f"{dataset}: its policy is missing"]
    epsilon = bound_whole(policy, grants)
    if math.isfinite(epsilon) and Fraction(epsilon) <= policy.epsilon:
        return []
    return [f"{dataset}: its grants come to ε = {epsilon:.6g}, and its policy allows {float(policy.epsilon):.6g}"]


def _check_grants(transaction: Transaction) -> list[str]:
    """Returns problems of the table that finds a grant's dataset."""
    problems = []
    for name in rows.grants(transaction):
        try:
            row = rows.first_of_grant(transaction, name)
        except LedgerError:
            continue  # the chain's walk has said so
        if row is None or row.kind != "grant":
            problems.append(f"grant {name}: the row that made it is missing")
    return problems


def _check_receipt(receipt: Receipt, seen: dict[tuple[str, int], str], signer: Signer) -> str | None:
    where = f"{receipt.dataset}, row {receipt.seq}"
    if not signer.is_signed(receipt):
        return f"the receipt of {where} was not signed by this store"
    found = seen.get((receipt.dataset, receipt.seq))
    if found is None:
        return f"{where}: a receipt was given for it, and it is not there: the chain was cut, or is an older copy"
    if found != receipt.hash:
        return f"{where}: a receipt was given for another row in its place: the chain was written anew"
    return None
