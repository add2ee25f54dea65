"""Input and output of the ledger's commands: events, units and receipts in, short text and exports out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from privcheck.cli.options import columns, pages_of_columns, wrapped_columns
from privcheck.commands.ledger_client import Desk
from privcheck.errors import ParameterError
from privcheck.ledger import Receipt, Spending, parse_event
from privcheck.ledger.forecasts import say_forecast
from privcheck.ledger.limits import STATED
from privcheck.ledger.rows import REGISTRY
from privcheck.ledger.values import BudgetPolicy
from privcheck.ledger.views import join_charged, state_charges, write_dp_event
from privcheck.reports.values import document
from privcheck.terms.unit import Unit

if TYPE_CHECKING:
    from privcheck.commands.ledger_client import Desk
    from privcheck.ledger.heads import Head


def describe_new(result: dict[str, Any]) -> str:
    """Text of a new ledger: the first token, and where to keep it."""
    return "\n".join([
        f"a new ledger: {result['store']}",
        f"the officer's token, which is not shown again: {result['officer_token']}",
        *_say_token(result["store"]),
        "next: privcheck ledger policy, for the (ε, δ) of a dataset; then privcheck ledger grant and charge",
    ])  # fmt: skip


def _say_token(store: str) -> list[str]:
    """What the officer's token is for."""
    keep = "keep it in a file that only you can read, for --token-file, or in PRIVCHECK_LEDGER_TOKEN"
    if not store.startswith("sqlite:"):
        return [keep]
    return [f"it is for `privcheck serve`; on this machine whoever may write the file is officer without it. {keep}"]


def describe_granted(result: dict[str, Any]) -> str:
    """Text of a grant, with its policy."""
    grant = result["grant"]
    head = f"grant {grant['name']}: {grant['currency']} ≤ {grant['cap']} of {grant['dataset']}"
    head += ", from the remainder" if grant["late"] else ""
    at = f"ε ≤ {float(grant['epsilon']):.6g} at δ = {_small(grant['delta'])}, by {grant['theorem']}"
    plan = [] if grant["unit"] is None else [f"unit of its events' price: {_say_unit(grant['unit'])}"]
    return "\n".join([head, at, *plan, f"policy, {_say_policy(result['policy'])}"])


def describe_policy(result: dict[str, Any]) -> str:
    """Text of a policy."""
    return f"dataset {result['policy']['dataset']}: {_say_policy(result['policy'])}"


def describe_blocks(result: dict[str, Any]) -> str:
    """Table of the blocks of a dataset."""
    lines = [
        ("block", "by", "no common user, because"),
        *((b["name"], b["by"], b["disjoint_users"]) for b in result["blocks"]),
    ]
    return f"dataset {result['dataset']}, divided:\n{columns(lines)}"


def describe_quote(result: dict[str, Any]) -> str:
    """Text of a quote: the cost, and how often it fits."""
    times = "any number of times" if result["times"] is None else f"{result['times']:,} times"
    what = f"it would cost {_cost(result)}; {result['remaining']} is left, enough for it {times}"
    return what if result["reason"] is None else f"{what}\nrefused: {result['reason']}"


def describe_decision(result: dict[str, Any]) -> str:
    """Text of a decision on a request to spend."""
    left = f"{result['remaining']} of {result['balance']['cap']} ({result['balance']['currency']}) is left"
    if recorded := result["balance"]["recorded"]:
        left = (
            f"recorded, not added: a user who took part in all has lost ε ≤ {recorded['epsilon']} at δ = "
            f"{recorded['delta']}"
        )
    if result["state"] == "refused":
        told = "" if result["reason"].endswith(" is left") else f"; {left}"
        return f"refused: {result['reason']}{told}\nnothing was charged, and the ledger keeps no record of the request"
    lines = [f"{result['state']}: {result['id']}, {_cost(result)}; {left}"]
    if result["expires"] is not None:
        lines.append(f"until {result['expires']}; afterwards it counts as spent until an officer releases it")
    receipt = result["receipt"]
    lines.append(f"receipt: {receipt['dataset']}, row {receipt['seq']}, {receipt['hash']}")
    lines.append(f"`privcheck ledger show --charge {result['id']} --json` prints it signed, to keep outside the ledger")
    return "\n".join(lines)


def describe_shown(result: dict[str, Any]) -> str:
    """Text of datasets with their grants."""
    if not result["datasets"]:
        return "no datasets yet: privcheck ledger policy"
    return "\n\n".join(describe_dataset(one) for one in result["datasets"])


def describe_charge(result: dict[str, Any]) -> str:
    """Text of a charge: its cost, its event, and the conditions under which it is one of joint DP."""
    charge = result["charge"]
    claim = charge["claim"] or {}
    conditions = claim.get("joint", {}).get("conditions", ())
    told = [
        ("charge", charge["id"]),
        ("grant", f"{charge['grant']} of {charge['dataset']}"),
        ("state", charge["state"] + (", expired: an officer has to decide" if charge["expired"] else "")),
        ("cost", _short(charge["cost"]["amount"])),
        ("by", f"{charge['actor']}, {charge['at'][:19]}"),
        ("event", str(charge["event"])),
        ("unit", "never stated" if charge["unit"] is None else _say_unit(charge["unit"])),
        *((name, str(claim[name])) for name in ("algorithm",) if name in claim),
        *(("given", ", ".join(claim["given"])) for _ in claim.get("given", ())[:1]),
        *((name, str(claim[name])) for name in ("certificate",) if name in claim),
        *(("blocks", ", ".join(charge["blocks"])) for _ in charge["blocks"][:1]),
        *((f"if {one['name']}", f"{one['statement']} ({one['how']})") for one in conditions),
        ("row", charge["hash"]),
    ]  # fmt: skip
    return wrapped_columns(told)


def describe_checked(result: dict[str, Any]) -> str:
    """Text of a check of the chains."""
    found = [f"problem: {problem}" for problem in result["problems"]] or ["no problems found"]
    found += [f"note: {note}" for note in result.get("notes", ())]
    if (since := result.get("since")) is not None:
        found += [
            f"{name}: read from row {seq + 1}; the rows before were checked earlier" for name, seq in since.items()
        ]
    heads = [(name, str(head["seq"]), head["hash"]) for name, head in result["datasets"].items()]
    note = "a chain cut at its end is consistent too: give a kept --receipt or --heads"
    return "\n".join([*found, "", columns([("dataset", "rows", "head"), *heads]), "", note])


def describe_accepted(result: dict[str, Any]) -> str:
    """Text of an acceptance: whether the store is open for writing again, and which rows are missing."""
    told = [f"problem: {problem}" for problem in result["problems"]]
    told += [f"lost: {_chain(name)}: rows that were written are missing" for name in result["lost"]]
    told += [f"not compared: {name}: give the receipt of its last charge" for name in result["uncompared"]]
    if not result["accepted"]:
        what = "restore a newer copy, or give --freeze-lost, which counts the whole caps there as spent"
        return "\n".join([*told, f"not accepted, and read-only: {what}"])
    frozen = f"; frozen: {', '.join(result['frozen'])}" if result["frozen"] else ""
    ended = f"; tokens revoked, make new ones: {', '.join(result['revoked'])}" if result["revoked"] else ""
    return "\n".join([*told, f"accepted: the ledger accepts writes again{frozen}{ended}"])


def describe_backup(result: dict[str, Any]) -> str:
    """Text of a backup: its rows and heads."""
    count = result["rows"]["entry"]
    first = (
        f"{result['file']}: {count:,} rows of the ledger {result['store']}, of {result['at']}; its chains fit together"
    )
    heads = [(name, str(head["seq"]), head["hash"]) for name, head in result["datasets"].items()]
    doubt = [f"it was read-only when it was copied: {result['doubt']}"] if result["doubt"] else []
    return "\n".join([first, *doubt, "", columns([("dataset", "rows", "head"), *heads])])


def describe_restored(result: dict[str, Any]) -> str:
    """Text of a restored backup, and how to open it for writing."""
    kept = [f"the replaced file is kept: {result['kept']}"] if result["kept"] else []
    first = f"{result['store']}: restored, as of {result['backup']['at']}"
    if not result["doubt"]:
        return "\n".join([first, *kept, "no later write was acknowledged: the ledger accepts writes"])
    verify = f"privcheck ledger verify --store {shlex.quote(result['url'])} --receipts receipts.jsonl --accept"
    return "\n".join([
        first,
        *kept,
        f"read-only: {result['doubt']}",
        "an officer compares it with all kept receipts, and freezes the datasets of lost rows:",
        f"  {verify}",
        f"  {verify} --freeze-lost",
    ])  # fmt: skip


def describe_token(result: dict[str, Any]) -> str:
    """Text of a new or revoked token."""
    if result.get("revoked"):
        return f"the token of {result['name']} is revoked"
    return f"{result['role']} {result['name']}; the token, which is not shown again: {result['token']}"


def describe_tokens(result: dict[str, Any]) -> str:
    """Table of the tokens by owner."""
    lines = [(t["name"], t["role"], ", ".join(t["grants"]), *_days(t), t["made_by"]) for t in result["tokens"]]
    return columns([("name", "role", "grants", "expires", "revoked", "made by"), *lines])


def describe_frozen(result: dict[str, Any]) -> str:
    """Text of a frozen grant."""
    return f"grant {result['grant']} is frozen: it accepts no more charges"


def describe_evidence(result: dict[str, Any]) -> str:
    """Text of recorded audit evidence."""
    if result["verdict"] == "violation":
        return f"{result['charge']}: an audit found a violation; its grant is frozen"
    return f"{result['charge']}: an audit found no violation"


def describe_event(result: dict[str, Any]) -> str:
    """The events as one DpEvent, as text."""
    return str(result["event"])


def describe_lines(shown: dict[str, Any], lines: Sequence[dict[str, Any]]) -> str:
    """Text of a statement: composition of the grants, and a table of the noise."""
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
    digests = {one["certificate"]: one["about"] for one in lines if one["certificate"]}
    certified = [f"certificate of the verdict on {about}: {digest}" for digest, about in digests.items()]
    return "\n".join(["composition:", *composed, between, "", columns(told), *certified])


def describe_charges(pages: Iterable[Sequence[dict[str, Any]]]) -> Iterator[str]:
    """Yield a table of charges, one page of lines after another."""
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


def _say_policy(policy: dict[str, Any], *, unit: bool = True) -> str:
    keeps = f"({float(policy['epsilon']):.6g}, {_small(policy['delta'])})-DP"
    until = "" if policy["until"] is None else f", until {policy['until']}"
    read = BudgetPolicy.of(policy)
    asserted = "; asserted units are charged too" if read.asserted_units else ""
    return f"{keeps}{until}{f'; unit: {read.unit_words}' if unit else ''}{asserted}"


def _say_unit(unit: dict[str, Any]) -> str:
    """A unit of privacy in words, with who stated it."""
    read = Unit.of(unit)
    return f"{read.words}; stated by {read.stated_by}"


def describe_dataset(one: dict[str, Any]) -> str:
    """Text of a dataset with its grants."""
    heading = ("grant", "currency", "cap", "committed", "reserved", "free", "state", "ε of the cap")
    lines = [
        (g["name"], g["currency"], g["cap"], *(_short(g["balance"][n]) for n in ("committed", "reserved", "free")),
         g["balance"]["state"], f"{float(g['epsilon']):.6g} at δ = {_small(g['delta'])}")
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
    left = [
        f"{g['name']}: {say_forecast(g['forecast'], g['currency'], until=one['policy']['until'])}"
        for g in one["grants"] if g.get("forecast") is not None
    ]  # fmt: skip
    first = [f"{one['name']}: {_say_policy(one['policy'], unit=False)}", one["support"]["sentence"]]
    first += [one["clock"]] if one.get("clock") else []
    return "\n".join([*first, columns([heading, *lines]), *blocks, *left, note])


def _cost(result: dict[str, Any]) -> str:
    cost = result["cost"]
    lost = "" if cost["lost"] == "0" else f" and δ = {cost['lost']}"
    return f"{result['balance']['currency']} = {_short(cost['amount'])}{lost}"


def _days(token: dict[str, Any]) -> list[str]:
    return [(token[end] or "")[:19] for end in ("expires", "revoked")]


def _small(delta: str) -> str:
    """δ as people write it: 1e-06 for 0.000001; an exact text that a float rounds stays as it is."""
    short = f"{float(Fraction(delta)):g}"
    return short if Fraction(short) == Fraction(delta) else delta


def _short(number: str) -> str:
    top, _, bottom = number.partition("/")
    return number if len(number) <= 12 else f"{float(top) / float(bottom or 1):.9g}"


_PAGE: Final = 1000  # charges that are held at the same time


def export_event(desk: Desk, dataset: str) -> dict[str, Any]:
    """The charges that count as spent, as one DpEvent written in Python.

    It is the sequence of charges. If charges depended on earlier answers, its composition is no guarantee; the caps
    are.

    Raises:
        ParameterError: An event has no form in dp_accounting.
        UnknownNameError: There is no such dataset.
    """
    shown = desk.show(dataset)["datasets"][0]
    events = join_charged((c["state"], c["event"]) for c in _charges(desk, shown))
    return {
        "form": "dp-event",
        "dataset": dataset,
        "unit": shown["policy"]["unit"],
        "event": write_dp_event(events),
        "events": sum(e["count"] for e in events),
    }


def write_statement(desk: Desk, dataset: str, *, as_json: bool) -> Iterator[str]:
    """Yield a statement in pieces: the dataset, its charges up to the shown head, and that head.

    Raises:
        UnknownNameError: There is no such dataset.
    """
    shown = desk.show(dataset)["datasets"][0]
    lines = state_charges(_charges(desk, shown))  # a first way through; the second one lists them
    yield from (_write_json if as_json else _write_words)(shown, lines, _pages(_charges(desk, shown)))


def _write_json(
    shown: dict[str, Any], lines: list[dict[str, Any]], pages: Iterator[list[dict[str, Any]]]
) -> Iterator[str]:  # fmt: skip
    first = json.dumps(document({"form": "statement", "dataset": shown, "lines": lines}), allow_nan=False)
    yield f'{first.removesuffix("}")}, "charges": ['
    comma = ""
    for page in pages:
        for charge in document({"charges": page})["charges"]:
            yield comma + json.dumps(charge, allow_nan=False)
            comma = ", "
    head = json.dumps(document({"head": shown["head"]})["head"], allow_nan=False)
    yield f'], "head": {head}}}\n'


def _write_words(
    shown: dict[str, Any], stated: list[dict[str, Any]], pages: Iterator[list[dict[str, Any]]]
) -> Iterator[str]:  # fmt: skip
    yield f"{describe_dataset(shown)}\n\n{describe_lines(shown, stated)}\n\n"
    for lines in describe_charges(pages):
        yield f"{lines}\n"
    head = shown["head"]
    yield f"\nhead: row {head['seq']} of {head['at']}, {head['hash']}\nsignature: {head['signature']}\n"


def _charges(desk: Desk, shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a dataset's charges up to the shown head: later charges are not part of the statement."""
    last = shown["head"]["seq"]
    return takewhile(lambda charge: charge["seq"] <= last, desk.charges(shown["name"]))


def _pages(charges: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while page := list(islice(charges, _PAGE)):
        yield page


_WAYS: Final = "--event, --event-file, --gaussian-rho, --gaussian-std, --laplace-epsilon or --pure-epsilon"


def give(desk: Desk, **fields: Any) -> dict[str, Any]:
    """Make a grant, and return it with the policy it belongs to.

    Raises:
        click.UsageError: The options give neither a cap in a currency nor a plan, or mix the two.
    """
    file, given = fields.pop("plan"), {name: value for name, value in fields.items() if value is not None}
    if (file is None) != ("currency" in given and "cap" in given) or (file is not None and "lost" in given):
        raise click.UsageError("give --currency and --cap, or --plan")
    if file is not None:
        given |= {"events": file.read_text(encoding="utf-8"), "unit": read_unit(given.get("unit"))}
    elif "unit" in given:
        raise click.UsageError("--unit goes with --plan: a cap is for the dataset's unit")
    return desk.grant(**given)


def change_token(
    desk: Desk, *, name: str, role: str | None, grants: tuple[str, ...], expires: str | None
) -> dict[str, Any]:
    """Make a new token, or revoke one if no role is given."""
    if role is None:
        desk.revoke_token(name)
        return {"name": name, "revoked": True}
    token = desk.make_token(name=name, role=role, grants=grants, expires=expires)
    return {"name": name, "role": role, "grants": list(grants), "expires": expires, "token": token}


def read_event(
    *,
    event: str | None,
    event_file: Path | None,
    gaussian_rho: str | None,
    gaussian_std: str | None,
    laplace_epsilon: str | None,
    pure_epsilon: str | None,
    sensitivity: str | None,
    count: str | None,
) -> Spending:
    """The released event, from the options.

    Raises:
        click.UsageError: The options describe the event twice, or not at all.
        ParameterError: The event is invalid.
    """
    short: dict[str, Any] = {
        "rho": ("gaussian", gaussian_rho),
        "std": ("gaussian", gaussian_std),
        "epsilon": ("laplace", laplace_epsilon),
        "pure": ("pure", pure_epsilon),
    }
    given = {field: pair for field, pair in short.items() if pair[1] is not None}
    if len(given) + (event is not None) + (event_file is not None) != 1:
        raise click.UsageError(f"give exactly one event: {_WAYS}, or --algorithm NAME")
    if event is not None or event_file is not None:
        if sensitivity is not None or count is not None:
            raise click.UsageError("--sensitivity and --count go into the event's JSON")
        return parse_event(event if event_file is None else event_file.read_text(encoding="utf-8"))
    if sensitivity is not None and gaussian_std is None:
        raise click.UsageError("--sensitivity goes with --gaussian-std")
    field, (kind, value) = next(iter(given.items()))
    more = {"sensitivity": sensitivity, "count": count}
    fields = {"epsilon" if field == "pure" else field: value, **{n: v for n, v in more.items() if v is not None}}
    return parse_event({"type": kind, **fields})


def read_unit(unit: str | None) -> str:
    """The unit for which an event was priced, from the option.

    Raises:
        click.UsageError: The option is missing.
    """
    if unit is None:
        message = (
            "expected --unit beside an event: the unit of its price, as 'patient, 8 trajectories, replace-one, "
            "central'; or --unit dataset, by which you state that it was priced for the dataset's unit (ledger show)"
        )
        raise click.UsageError(message)
    return unit


def state(conditions: tuple[str, ...]) -> dict[str, Any] | None:
    """The claim of an event for which conditions of joint DP are stated; None without conditions."""
    return {"joint": dict.fromkeys(conditions, STATED)} if conditions else None


def read_receipt(text: str) -> Receipt:
    """Parse a receipt: its JSON, that of a charge with a receipt, or a file with either.

    Raises:
        ParameterError: The text is not a receipt.
    """
    given = text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8")
    try:
        data = json.loads(given)
        found = data.get("receipt") or data.get("head") or data
    except (ValueError, AttributeError):
        message = "expected a receipt: the JSON that a charge printed, or its field receipt"
        raise ParameterError(message, name="receipt", given=text) from None
    return Receipt.parse(found)


def read_receipts(file: Path) -> list[Receipt]:
    """The receipts of a file, one per line.

    Raises:
        ParameterError: A line is not a receipt.
    """
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    if wrong := [line for line in lines if not line.lstrip().startswith("{")]:
        message = f"expected receipts as JSON, one per line, got {wrong[0][:60]!r}"
        raise ParameterError(message, name="receipts", given=wrong[0])
    return [read_receipt(line) for line in lines]


def read_heads(place: str | None) -> tuple[Head, ...]:
    """The heads that a witness keeps; empty without a witness.

    Raises:
        ParameterError: The witness has no heads.
        StoreError: The witness cannot be read.
    """
    if place is None:
        return ()
    from privcheck.ledger.heads import Evidence
    from privcheck.ledger.witnesses import open_witness

    found = Evidence.parse(open_witness(place).read(), name="heads").heads
    if not found:
        raise ParameterError(f"expected heads in {place!r}, and there are none", name="heads", given=place)
    return found
