"""Short text of the ledger's answers, from the same values that `--json` prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from privcheck.commands.widths import columns, pages_of_columns, wrapped_columns
from privcheck.ledger.rows import REGISTRY
from privcheck.ledger.values import Policy
from privcheck.unit import Unit


def describe_new(result: dict[str, Any]) -> str:
    """Returns the first token, and what to do with it."""
    return "\n".join([
        f"a new ledger: {result['store']}",
        f"the officer's token, which is not shown again: {result['officer_token']}",
        "keep it in a file that only you can read, for --token-file, or in PRIVCHECK_LEDGER_TOKEN",
    ])  # fmt: skip


def describe_granted(result: dict[str, Any]) -> str:
    """Returns the grant, and the policy that it is a part of."""
    grant = result["grant"]
    head = f"grant {grant['name']}: {grant['currency']} ≤ {grant['cap']} of {grant['dataset']}"
    head += ", from the remainder" if grant["late"] else ""
    at = f"ε ≤ {float(grant['epsilon']):.6g} at δ = {grant['delta']}, by {grant['theorem']}"
    plan = [] if grant["unit"] is None else [f"its events were priced for: {_say_unit(grant['unit'])}"]
    return "\n".join([head, at, *plan, f"policy, {_say_policy(result['policy'])}"])


def describe_policy(result: dict[str, Any]) -> str:
    """Returns the policy."""
    return f"dataset {result['policy']['dataset']}: {_say_policy(result['policy'])}"


def describe_blocks(result: dict[str, Any]) -> str:
    """Returns the blocks that a dataset has."""
    lines = [
        ("block", "by", "no common user, because"),
        *((b["name"], b["by"], b["disjoint_users"]) for b in result["blocks"]),
    ]
    return f"dataset {result['dataset']}, divided:\n{columns(lines)}"


def describe_quote(result: dict[str, Any]) -> str:
    """Returns what it would cost, and how often it fits."""
    times = "any number of times" if result["times"] is None else f"{result['times']:,} times"
    what = f"it would cost {_cost(result)}; {result['remaining']} is left, in which it fits {times}"
    return what if result["reason"] is None else f"{what}\nrefused: {result['reason']}"


def describe_decision(result: dict[str, Any]) -> str:
    """Returns what became of the request."""
    left = f"{result['remaining']} of {result['balance']['cap']} ({result['balance']['currency']}) is left"
    if recorded := result["balance"]["recorded"]:
        left = (
            f"recorded, not added: who took part in all has lost ε ≤ {recorded['epsilon']} at δ = {recorded['delta']}"
        )
    if result["state"] == "refused":
        return f"refused: {result['reason']}; {left}"
    lines = [f"{result['state']}: {result['id']}, {_cost(result)}; {left}"]
    if result["expires"] is not None:
        lines.append(f"until {result['expires']}; afterwards it counts as spent until an officer releases it")
    receipt = result["receipt"]
    return "\n".join([*lines, f"receipt: {receipt['dataset']}, row {receipt['seq']}, {receipt['hash']}"])


def describe_shown(result: dict[str, Any]) -> str:
    """Returns datasets with their grants."""
    if not result["datasets"]:
        return "no datasets yet: privcheck ledger policy"
    return "\n\n".join(describe_dataset(one) for one in result["datasets"])


def describe_charge(result: dict[str, Any]) -> str:
    """Returns one charge: what it costs, what it is for, and under which conditions it is one of joint DP."""
    charge = result["charge"]
    claim = charge["claim"] or {}
    conditions = claim.get("joint", {}).get("conditions", ())
    told = [
        ("charge", charge["id"]),
        ("grant", f"{charge['grant']} of {charge['dataset']}"),
        ("state", charge["state"] + (", expired: an officer has to look at it" if charge["expired"] else "")),
        ("cost", _short(charge["cost"]["amount"])),
        ("by", f"{charge['actor']}, {charge['at'][:19]}"),
        ("event", str(charge["event"])),
        ("unit", "never stated" if charge["unit"] is None else _say_unit(charge["unit"])),
        *((name, str(claim[name])) for name in ("algorithm",) if name in claim),
        *(("given", ", ".join(claim["given"])) for _ in claim.get("given", ())[:1]),
        *(("blocks", ", ".join(charge["blocks"])) for _ in charge["blocks"][:1]),
        *((f"if {one['name']}", f"{one['statement']} ({one['how']})") for one in conditions),
        ("row", charge["hash"]),
    ]  # fmt: skip
    return wrapped_columns(told)


def describe_checked(result: dict[str, Any]) -> str:
    """Returns whether the chains fit together."""
    found = [f"problem: {problem}" for problem in result["problems"]] or ["no problems found"]
    found += [f"note: {note}" for note in result.get("notes", ())]
    if (since := result.get("since")) is not None:
        found += [
            f"{name}: read from row {seq + 1}; the rows before were checked earlier" for name, seq in since.items()
        ]
    heads = [(name, str(head["seq"]), head["hash"]) for name, head in result["datasets"].items()]
    note = "a chain that was cut at its end fits together too: give a --receipt or --heads that were kept"
    return "\n".join([*found, "", columns([("dataset", "rows", "head"), *heads]), "", note])


def describe_accepted(result: dict[str, Any]) -> str:
    """Returns whether the store is written again, and what is missing in it."""
    told = [f"problem: {problem}" for problem in result["problems"]]
    told += [f"lost: {_chain(name)}: rows were written that are not there" for name in result["lost"]]
    told += [f"not compared: {name}: give the receipt of its last charge" for name in result["uncompared"]]
    if not result["accepted"]:
        what = "put back a newer copy, or give --freeze-lost: what was charged there then counts as all"
        return "\n".join([*told, f"not accepted, and read-only: {what}"])
    frozen = f"; frozen: {', '.join(result['frozen'])}" if result["frozen"] else ""
    ended = f"; tokens ended, make new ones: {', '.join(result['revoked'])}" if result["revoked"] else ""
    return "\n".join([*told, f"accepted: the ledger is written again{frozen}{ended}"])


def describe_backup(result: dict[str, Any]) -> str:
    """Returns what a backup has."""
    count = result["rows"]["entry"]
    first = (
        f"{result['file']}: {count:,} rows of the ledger {result['store']}, of {result['at']}; its chains fit together"
    )
    heads = [(name, str(head["seq"]), head["hash"]) for name, head in result["datasets"].items()]
    doubt = [f"it was in doubt when it was copied: {result['doubt']}"] if result["doubt"] else []
    return "\n".join([first, *doubt, "", columns([("dataset", "rows", "head"), *heads])])


def describe_restored(result: dict[str, Any]) -> str:
    """Returns what was put back, and how it is written again."""
    kept = [f"what was there is kept: {result['kept']}"] if result["kept"] else []
    first = f"{result['store']}: put back, as of {result['backup']['at']}"
    if not result["doubt"]:
        return "\n".join([first, *kept, "nothing was acknowledged after it: the ledger is written on"])
    verify = f"privcheck ledger verify --store {shlex.quote(result['url'])} --receipts receipts.jsonl --accept"
    return "\n".join([
        first,
        *kept,
        f"read-only: {result['doubt']}",
        "an officer compares it with all receipts that were kept, and where rows are lost freezes their datasets:",
        f"  {verify}",
        f"  {verify} --freeze-lost",
    ])  # fmt: skip


def describe_token(result: dict[str, Any]) -> str:
    """Returns the token."""
    if result.get("revoked"):
        return f"the token of {result['name']} is ended"
    return f"{result['role']} {result['name']}; the token, which is not shown again: {result['token']}"


def describe_tokens(result: dict[str, Any]) -> str:
    """Returns whose tokens there are."""
    lines = [(t["name"], t["role"], ", ".join(t["grants"]), *_days(t), t["made_by"]) for t in result["tokens"]]
    return columns([("name", "role", "grants", "expires", "revoked", "made by"), *lines])


def describe_frozen(result: dict[str, Any]) -> str:
    """Returns that nothing more is charged."""
    return f"grant {result['grant']} is frozen: nothing more is charged to it"


def describe_evidence(result: dict[str, Any]) -> str:
    """Returns what was written."""
    if result["verdict"] == "violation":
        return f"{result['charge']}: an audit found a violation; its grant is frozen"
    return f"{result['charge']}: an audit found nothing against it"


def describe_event(result: dict[str, Any]) -> str:
    """Returns the events as one."""
    return str(result["event"])


def describe_lines(shown: dict[str, Any], lines: Sequence[dict[str, Any]]) -> str:
    """Returns what a statement says of noise and composition."""
    told = [
        ("grant", "times", "noise", "sensitivity", "relation", "cost of one", "state", "stated by"),
        *(
            (one["grant"], str(one["times"]), one["noise"], one["sensitivity"], one["relation"],
             _short(one["cost"]["amount"]), one["state"], str(one["stated_by"]))
            for one in lines
        ),
    ]  # fmt: skip
    composed = [f"{g['name']}: {g['theorem']}; covers {g['concurrency']}" for g in shown["grants"]]
    between = f"between grants: {shown['between_grants']}"
    return "\n".join(["composition:", *composed, between, "", columns(told)])


def describe_charges(pages: Iterable[Sequence[dict[str, Any]]]) -> Iterator[str]:
    """Yields a table of charges, a page of lines after the other."""
    heading = ("charge", "grant", "state", "cost", "by", "when", "for", "unit")
    return pages_of_columns(heading, ([_charge_line(charge) for charge in page] for page in pages))


def _charge_line(c: dict[str, Any]) -> tuple[str, ...]:
    return (
        c["id"], c["grant"], c["state"], _short(c["cost"]["amount"]), c["actor"], c["at"][:19],
        (c["claim"] or {}).get("algorithm") or str(c["event"]["type"]),
        "never stated" if c["unit"] is None else Unit.of(c["unit"]).text,
    )  # fmt: skip


def _chain(name: str) -> str:
    return "names and tokens" if name == REGISTRY else name


def _say_policy(policy: dict[str, Any]) -> str:
    keeps = f"({float(policy['epsilon']):.6g}, {policy['delta']})-DP"
    until = "" if policy["until"] is None else f", until {policy['until']}"
    read = Policy.of(policy)
    asserted = "; asserted units are charged too" if read.asserted_units else ""
    return f"{keeps}{until}; unit: {read.unit_words}{asserted}"


def _say_unit(unit: dict[str, Any]) -> str:
    """Returns a unit of privacy in words, and who stated it."""
    read = Unit.of(unit)
    return f"{read.words}; stated by {read.stated_by}"


def describe_dataset(one: dict[str, Any]) -> str:
    """Returns a dataset with its grants."""
    heading = ("grant", "currency", "cap", "committed", "reserved", "free", "state", "ε of the cap")
    lines = [
        (g["name"], g["currency"], g["cap"], *(_short(g["balance"][n]) for n in ("committed", "reserved", "free")),
         g["balance"]["state"], f"{float(g['epsilon']):.6g} at δ = {g['delta']}")
        for g in one["grants"]
    ]  # fmt: skip
    divided = [
        (g["name"], block, *(_short(sums[n]) for n in ("committed", "reserved", "free")))
        for g in one["grants"] for block, sums in g["balance"]["blocks"].items()
    ]  # fmt: skip
    blocks = [columns([("grant", "block", "committed", "reserved", "free"), *divided])] if divided else []
    note = one["grants"][0]["note"] if one["grants"] else "no grants yet"
    if taken := one["taken_part_in_all"]:
        lost = f"a user who took part in all has lost ε ≤ {taken['epsilon']} at δ = {taken['delta']}"
        note = f"caps and the policy are those of one message; charges are recorded, not added: {lost}\n{note}"
    first = [f"{one['name']}: {_say_policy(one['policy'])}", one["support"]["sentence"]]
    first += [one["clock"]] if one.get("clock") else []
    return "\n".join([*first, columns([heading, *lines]), *blocks, note])


def _cost(result: dict[str, Any]) -> str:
    cost = result["cost"]
    lost = "" if cost["lost"] == "0" else f" and δ = {cost['lost']}"
    return f"{result['balance']['currency']} = {_short(cost['amount'])}{lost}"


def _days(token: dict[str, Any]) -> list[str]:
    return [(token[end] or "")[:19] for end in ("expires", "revoked")]


def _short(number: str) -> str:
    top, _, bottom = number.partition("/")
    return number if len(number) <= 12 else f"{float(top) / float(bottom or 1):.9g}"
