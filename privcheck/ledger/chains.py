"""Verification of the ledger's chains: their hashes, their sums, and kept receipts; and checkpoints of it.

A verification can continue from the checkpoint of an earlier one, a file of its reader apart from the store.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from privcheck.accounting.currencies import Cost
from privcheck.errors import LedgerError, ParameterError
from privcheck.ledger import grants as granting
from privcheck.ledger import registry, rows, schema, trees
from privcheck.ledger.balances import Balance, Sums
from privcheck.ledger.exact import canonical, digest, write_number
from privcheck.ledger.heads import Head
from privcheck.ledger.limits import check_unit, explain_clock
from privcheck.ledger.marks import Identity
from privcheck.ledger.merkle import Growing
from privcheck.ledger.policies import bound_whole, count_lines
from privcheck.ledger.signing import Signer
from privcheck.ledger.store import Row, Transaction
from privcheck.ledger.values import WHOLE, BudgetPolicy, Entry, Grant, Receipt, complete_event, read_cost, write_cost
from privcheck.ledger.wire import parse_event

_FORM: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """State of a verification of the chains.

    It has the head of every chain with the state after the rows up to it, so that earlier rows need not be read again,
    or trusted. They are not checked for later changes; the check is that the head itself is there, unchanged.

    Attributes:
        store: The number of the store.
        chains: By dataset: the position and hash of the head, and the state after the rows up to it.
    """

    store: str
    chains: Mapping[str, Mapping[str, Any]]


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Read the checkpoint in a file; None if there is no file yet.

    Raises:
        ParameterError: The file is not a checkpoint of this version, or was truncated or changed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: cannot be read: {error}", name="checkpoint", given=str(path)) from None
    try:
        data = json.loads(text)
        told = data.pop("digest")
        fits = data["form"] == _FORM and digest(canonical(data)) == told
        found = Checkpoint(store=data["store"], chains=data["chains"]) if fits else None
    except (ValueError, KeyError, TypeError, AttributeError):
        found = None
    if found is None:
        message = f"{path}: not a checkpoint of this version, or changed; expected one written by verify, or"
        raise ParameterError(f"{message} no file, to read all rows from the start", name="checkpoint", given=str(path))
    return found


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint in place of an earlier one, atomically.

    Raises:
        ParameterError: The file cannot be written.
    """
    data = {"form": _FORM, "store": checkpoint.store, "chains": checkpoint.chains}
    text = canonical({**data, "digest": digest(canonical(data))})
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        message = f"{path}: the checkpoint cannot be written: {error.strerror}"
        raise ParameterError(message, name="checkpoint", given=str(path)) from None


_OF_CHARGES: Final = frozenset({"charge", "commit", "release"})  # kinds of rows; all others are rare
_FITTING: Final = 1000  # units that are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Result of a verification of the ledger.

    Attributes:
        ok: No problem was found.
        rows: Number of rows that were read.
        datasets: The head of every chain, by dataset: its position and hash.
        problems: The problems, one sentence each.
        notes: Observations that are not problems, one sentence each.
        since: The row of each chain after which a check from a checkpoint began; None for a full check.
        checkpoint: The checkpoint from which the next check may continue; None if there is a problem.
    """

    ok: bool
    rows: int
    datasets: dict[str, dict[str, Any]]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    since: dict[str, int] | None = None
    checkpoint: Checkpoint | None = None

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON, without the checkpoint, which is stored elsewhere."""
        since = {} if self.since is None else {"since": self.since}
        plain = {"ok": self.ok, "rows": self.rows, "datasets": self.datasets, "problems": list(self.problems)}
        return {**plain, "notes": list(self.notes), **since}


def check_chains(
    transaction: Transaction,
    *,
    receipts: Sequence[Receipt] = (),
    heads: Sequence[Head] = (),
    after: Checkpoint | None = None,
    at: str | None = None,
) -> Checked:
    """Verify the hashes and sums of every chain, and that every row with a kept receipt or head is still there.

    Every row is read once, in pages; between pages only balances, open reservations and the positions of rare rows are
    kept. The projections, `privcheck.ledger.schema`, are compared with them.

    Args:
        transaction: A read transaction.
        receipts: Kept receipts.
        heads: Kept heads.
        after: The checkpoint of an earlier check: rows before it are not read again, except its heads.
        at: The time by this machine's clock, in UTC, for comparison with the newest rows; None: no comparison.
    """
    store = Identity.of(transaction).store
    begun, problems = _begin(transaction, store, after)
    walks = {name: begun.get(name) or _Walk(name) for name in rows.datasets(transaction)}
    since = {name: walk.seq for name, walk in walks.items()}
    read, whole = 0, True
    for name, walk in walks.items():
        try:
            for page in rows.pages_of_dataset(transaction, name, after=walk.seq):
                walk.take(page, rows.find_begun(transaction, page))
                read += len(page)
            problems += walk.problems or _check_policy(transaction, name) or _compare(transaction, name, walk)
        except LedgerError as error:
            whole = False
            problems += [*walk.problems, str(error)]
    if whole:
        grants = {grant: name for name, walk in walks.items() for grant in walk.grants}
        problems += schema.compare_names(transaction, grants)
    problems += registry.find_problems(transaction)
    problems += trees.find_problems(transaction, heads, begun={name: walk.tree for name, walk in walks.items()})
    last = {name: {"seq": walk.seq, "hash": walk.hash} for name, walk in walks.items()}
    if receipts:
        signer = Signer.of(transaction)
        problems += [told for receipt in receipts if (told := _check_receipt(transaction, receipt, last, signer))]
    chains = {name: walk.to_dict() for name, walk in walks.items()} if not problems else {}
    clocks = [] if at is None or problems else [explain_clock(name, walk.at, at=at) for name, walk in walks.items()]
    return Checked(
        ok=not problems,
        rows=read,
        datasets=last,
        problems=tuple(dict.fromkeys(problems)),
        notes=tuple(note for note in clocks if note is not None),
        since=None if after is None else since,
        checkpoint=None if problems else Checkpoint(store=store, chains=chains),
    )


def _begin(transaction: Transaction, store: str, after: Checkpoint | None) -> tuple[dict[str, _Walk], list[str]]:
    """Verifiers that continue from a checkpoint, and problems where the store does not match it."""
    if after is None:
        return {}, []
    if after.store != store:
        return {}, ["the checkpoint belongs to another ledger; all rows were read from the start"]
    begun: dict[str, _Walk] = {}
    problems = []
    for name, state in sorted(after.chains.items()):
        where = f"{name}, row {state['seq']}: it was checked before"
        try:
            row = rows.row_at(transaction, name, state["seq"])
        except LedgerError as error:
            problems.append(str(error))
            continue
        if row is None:
            problems.append(f"{where}, but is missing: the chain was cut, or is an older copy")
        elif row.hash != state["hash"]:
            problems.append(f"{where}, but another is in its place: the chain was rewritten")
        else:
            begun[name] = _Walk.of(name, state)
    return begun, problems


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A reservation that was neither committed nor released.

    Attributes:
        grant: Name of the grant.
        actor: The author of the reservation.
        expires: When it ends.
        cost: Its cost.
        places: The places that it is charged to.
        lines: Number of releases of each event of a plan.
    """

    grant: str
    actor: str
    expires: str | None
    cost: Cost
    places: tuple[str, ...]
    lines: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON."""
        return {
            "grant": self.grant, "actor": self.actor, "expires": self.expires, "cost": write_cost(self.cost),
            "places": list(self.places), "lines": list(self.lines),
        }  # fmt: skip


class _Walk:
    """Verifier of one chain: hashes, positions, and every balance summed again from the costs alone.

    Charges that are over are not kept: a row about a charge that is not open must be its first, and `begun` has the
    position of each charge's first row. That comes from an index; without it a charge that is begun twice would be
    added twice, which overstates the spending.
    """

    def __init__(self, dataset: str) -> None:
        self.dataset, self.seq, self.hash, self.at = dataset, 0, "", ""
        self.problems: list[str] = []
        self.grants: dict[str, Grant] = {}
        self.policy: BudgetPolicy | None = None
        self.rare: dict[str, list[int]] = {}
        self.reserved: dict[str, _Open] = {}
        self.balances: dict[str, Balance] = {}
        self.tree = Growing()  # over the rows that were read
        self._blocks: set[str] = set()
        self._fitting: set[tuple[str, str, tuple[str, ...]]] = set()  # units that fit: who, what, relations

    def to_dict(self) -> dict[str, Any]:
        """State after the rows so far, as JSON."""
        return {
            "seq": self.seq, "hash": self.hash, "at": self.at, "rare": self.rare, "blocks": sorted(self._blocks),
            "policy": None if self.policy is None else self.policy.to_dict(),
            "grants": [grant.to_dict() for grant in self.grants.values()],
            "balances": {name: balance.to_dict() for name, balance in self.balances.items()},
            "reserved": {name: one.to_dict() for name, one in self.reserved.items()},
            "tree": [[level, node.hex()] for level, node in self.tree.complete],
        }  # fmt: skip

    @staticmethod
    def of(dataset: str, state: Mapping[str, Any]) -> _Walk:
        """Verifier that continues from a `to_dict` state."""
        walk = _Walk(dataset)
        walk.seq, walk.hash, walk.at = state["seq"], state["hash"], state["at"]
        walk.rare = {kind: list(places) for kind, places in state["rare"].items()}
        walk.policy = None if state["policy"] is None else BudgetPolicy.of(state["policy"])
        walk.grants = {grant["name"]: Grant.of(grant) for grant in state["grants"]}
        walk.reserved = {
            name: _Open(**{**one, "cost": read_cost(one["cost"]), "places": tuple(one["places"]),
                           "lines": tuple(one["lines"])})
            for name, one in state["reserved"].items()
        }  # fmt: skip
        walk.balances = {name: Balance.of(balance) for name, balance in state["balances"].items()}
        walk._blocks = set(state["blocks"])
        walk.tree = Growing([(level, bytes.fromhex(node)) for level, node in state["tree"]])
        return walk

    def take(self, page: Sequence[Row], begun: Mapping[str, int]) -> None:
        """Verify the next page of rows.

        Args:
            page: The rows as stored.
            begun: Position of the first row about each charge that the page mentions.
        """
        for told in page:
            self._take(told, rows.parse_row(told), begun)

    def _take(self, told: Row, row: Entry, begun: Mapping[str, int]) -> None:
        self.seq += 1
        if row.seq != self.seq:
            self._say(row, f"row {self.seq} is missing")
            self.seq = row.seq
        if row.prev != self.hash:
            self._say(row, "the chain breaks: it does not follow the row before it")
        if not rows.is_sealed(told):
            self._say(row, "it was changed after it was written: its hash does not match")
        self.hash, self.at = row.hash, row.at
        if row.kind not in _OF_CHARGES:
            self.rare.setdefault(row.kind, []).append(row.seq)
        try:
            self._add_up(row, begun)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._say(row, f"not a row of a ledger: {error!r:.80}")

    def _add_up(self, row: Entry, begun: Mapping[str, int]) -> None:
        self._learn(row)
        if row.grant is None:
            return
        grant = self.grants.get(row.grant)
        if grant is None:
            self._say(row, f"grant {row.grant!r} was never made")
            return
        before = self.balances[row.grant]
        after = self._follow(row, grant, before, begun)
        if row.kind == "freeze":
            after = replace(after, frozen=True)
        written = row.body["balance"]
        # where it is written as we write it, it need not be read
        told = after if written == after.to_dict() else Balance.of(written)
        if after.sums != told.sums:
            self._say(row, f"its balance is not the sum of the charges to {row.grant!r}")
        for place in after.sums:
            self._check_cap(row, grant, after.at(grant, place), f" on block {place}" if place else "")
        if grant.recorded and row.kind == "charge":
            cost = read_cost(row.body["cost"])
            if cost.amount > grant.cap or cost.lost > grant.lost:
                self._say(row, f"it costs more than grant {grant.name!r} allows for one charge")
        if (row.held, row.lost) != told.shares(grant):
            self._say(row, "its share of the cap is not that of its balance")
        if told.frozen != after.frozen:
            self._say(row, f"grant {row.grant!r} changed its frozen state without a row for it")
        self.balances[row.grant] = told

    def _learn(self, row: Entry) -> None:
        """Record a row's policy, blocks or grant, and check the unit of a charge."""
        if row.kind == "policy":
            self.policy = BudgetPolicy.of(row.body)
            self._fitting.clear()
        if row.kind == "blocks":
            self._blocks |= set(row.body["blocks"])
        if row.kind == "grant" and row.grant is not None:
            self._open(row, row.grant, Grant.of(row.body["grant"]))
        if row.kind == "charge":
            self._check_unit(row, row.body.get("unit"), row.body["event"].get("events", [row.body["event"]]))

    def _open(self, row: Entry, name: str, grant: Grant) -> None:
        if grant.recorded and not (self.policy is not None and self.policy.trust == "local"):
            self._say(row, f"charges to grant {name!r} are not added up, but the dataset does not use the local model")
        self.grants[name], self.balances[name] = grant, Balance.new(grant)
        if not set(grant.blocks) <= self._blocks or bool(grant.blocks) != bool(self._blocks):
            self._say(row, f"grant {name!r} has blocks that the dataset lacks")
        if grant.kind == "plan":
            self._check_unit(row, grant.unit, grant.plan)

    def _check_unit(self, row: Entry, unit: object, events: Sequence[Mapping[str, Any]]) -> None:
        """Check that an event was priced for the dataset's unit; skipped if the policy has none."""
        if self.policy is None or self.policy.unit is None:
            return
        named = tuple(str(event["relation"]) for event in events if "relation" in event)
        asked = (row.actor, repr(unit), named)
        if asked not in self._fitting:  # most rows are as one before
            try:
                check_unit(self.policy, unit, by=f"{row.actor}, who charges", relations=named)
            except ParameterError as error:
                self._say(row, f"its unit of privacy is not the dataset's: {error}")
            else:
                if len(self._fitting) < _FITTING:
                    self._fitting.add(asked)

    def _check_cap(self, row: Entry, grant: Grant, sums: Sums, where: str) -> None:
        held, counts = sums.held(grant.cap), [line["count"] for line in grant.plan]
        if any(n > most for n, most in zip(sums.used, counts, strict=True)):
            self._say(row, f"more events were charged to plan {grant.name!r} than it has{where}")
        if not grant.recorded and (held.amount > grant.cap or held.lost > grant.lost):
            over = float(Fraction(held.amount) / grant.cap)
            self._say(row, f"grant {grant.name!r} is overspent{where}: {over:.6g} of its cap {write_number(grant.cap)}")

    def _follow(self, row: Entry, grant: Grant, before: Balance, begun: Mapping[str, int]) -> Balance:
        """Balance after a row, from its cost, its state and the first row about its charge."""
        if row.charge is None:
            return before
        cost, state = read_cost(row.body["cost"]), row.body["state"]
        opened = self.reserved.pop(row.charge, None)
        if opened is not None:
            return self._end(row, opened, grant, before, cost)
        if begun.get(row.charge, row.seq) < row.seq:
            self._say(row, f"charge {row.charge} cannot be {state} after it was committed or released")
            return before
        return self._spend(row, row.charge, grant, before, cost)

    def _end(self, row: Entry, opened: _Open, grant: Grant, before: Balance, cost: Cost) -> Balance:
        """Balance after a row about an open reservation."""
        state = row.body["state"]
        if (opened.grant, opened.cost) != (grant.name, cost):
            self._say(row, f"charge {row.charge} was reserved in grant {opened.grant!r}, or at another cost")
        elif state == "committed":
            return before.commit(grant, opened.places, cost)
        elif state == "released":
            self._check_attested(row, opened)
            return before.release(grant, opened.places, cost, opened.lines)
        else:
            self._say(row, f"charge {row.charge} cannot be {state} after it was reserved")
        return before

    def _spend(self, row: Entry, charge: str, grant: Grant, before: Balance, cost: Cost) -> Balance:
        """Balance after the first row about a charge."""
        state = row.body["state"]
        lines = count_lines(grant.plan, parse_event(complete_event(row.body["event"]))) if grant.plan else ()
        places = tuple(row.body.get("blocks", ())) or WHOLE
        if not set(places) <= set(grant.places):
            self._say(row, f"charge {charge} has blocks that grant {grant.name!r} does not cover")
        if state == "reserved":
            self.reserved[charge] = _Open(
                grant=grant.name, actor=row.actor, expires=row.body["expires"], cost=cost, places=places, lines=lines
            )
        if state in ("reserved", "committed"):
            return before.spend(grant, places, cost, lines, state)
        self._say(row, f"charge {charge} cannot be {state}: it was never reserved")
        return before

    def _check_attested(self, row: Entry, opened: _Open) -> None:
        """Check that an expired reservation was not released by its own author."""
        if row.actor == opened.actor and opened.expires is not None and opened.expires <= row.at:
            self._say(row, f"charge {row.charge} had expired, and was attested by {row.actor}, who had reserved it")

    def _say(self, row: Entry, what: str) -> None:
        self.problems.append(f"{self.dataset}, row {row.seq}: {what}")


def _check_policy(transaction: Transaction, dataset: str) -> list[str]:
    """Problems of a dataset as a whole: a missing policy, or grants that exceed it."""
    policy, grants = granting.find_policy(transaction, dataset), granting.grants_of(transaction, dataset)
    if policy is None:
        return [f"{dataset}: its policy is missing"]
    epsilon = bound_whole(policy, grants)
    if math.isfinite(epsilon) and Fraction(epsilon) <= policy.epsilon:
        return []
    return [f"{dataset}: its grants come to ε = {epsilon:.6g}, and its policy allows {float(policy.epsilon):.6g}"]


def _compare(transaction: Transaction, dataset: str, walk: _Walk) -> list[str]:
    """Differences between a dataset's chain and the tables from which decisions are made."""
    reserved = {name: str(one.expires) for name, one in walk.reserved.items()}
    problems = schema.compare(transaction, dataset, rare=walk.rare, reserved=reserved)
    if granting.find_policy(transaction, dataset) != walk.policy:
        problems.append(f"{dataset}: its policy is not that of its chain")
    if granting.grants_of(transaction, dataset) != list(walk.grants.values()):
        problems.append(f"{dataset}: its grants are not those of its chain")
    for name, balance in walk.balances.items():
        last = rows.last_of_grant(transaction, name)
        if last is None or Balance.of(last.body["balance"]) != balance:
            problems.append(f"{dataset}: the last row about grant {name!r} is not that of its chain (REINDEX)")
    return problems


def _check_receipt(
    transaction: Transaction, receipt: Receipt, heads: Mapping[str, Mapping[str, Any]], signer: Signer
) -> str | None:
    where = f"{receipt.dataset}, row {receipt.seq}"
    if not signer.is_signed(receipt):
        return f"the receipt of {where} was not signed by this store"
    try:
        row = rows.row_at(transaction, receipt.dataset, receipt.seq) if receipt.dataset in heads else None
    except LedgerError as error:
        return str(error)
    if row is None:
        return f"{where}: a receipt was given for it, but it is missing: the chain was cut, or is an older copy"
    if row.hash != receipt.hash:
        return f"{where}: a receipt was given for another row in its place: the chain was rewritten"
    return None
