"""How a dataset or a grant stands, in a word and a sentence: what a page says first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from privcheck.ledger.answers import Charge

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How something stands.

    Attributes:
        tone: good, open (somebody should look), bad (nothing goes on), or plain.
        word: In a word or two.
        sentence: In a sentence.
    """

    tone: Literal["good", "open", "bad", "plain"]
    word: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The parts of a cap, in per cent of it, for a drawing.

    Attributes:
        committed: What may have been released.
        reserved: What may still be.
    """

    committed: float
    reserved: float


def standing_of_dataset(dataset: Json, *, now: str) -> Standing:
    """Returns how a dataset stands.

    Args:
        dataset: As `Book.show` says it.
        now: The time, in UTC.
    """
    grants = dataset["grants"]
    if (closed := _why_closed(dataset, now)) is not None:
        return Standing(tone="bad", word=closed[0], sentence=closed[1])
    if not grants:
        return Standing(tone="plain", word="No grants", sentence="Nobody may charge it: it has no grants yet.")
    frozen = [grant for grant in grants if grant["balance"]["state"] == "frozen"]
    if frozen:
        names = _join([grant["name"] for grant in frozen])
        sentence = f"{names} {'is' if len(frozen) == 1 else 'are'} frozen: an officer has to look."
        return Standing(tone="bad", word="Frozen" if frozen == grants else "Partly frozen", sentence=sentence)
    full = [grant for grant in grants if Fraction(grant["balance"]["free"]) == 0]
    if len(full) == len(grants):
        return Standing(tone="open", word="Spent", sentence="Nothing of its grants is left.")
    if full:
        return Standing(tone="good", word="Open", sentence=f"Nothing is left of {_join([g['name'] for g in full])}.")
    return Standing(tone="good", word="Open", sentence="All its grants have something left.")


def _why_closed(dataset: Json, now: str) -> tuple[str, str] | None:
    """Why nothing may be charged to a dataset at all, in a word and a sentence; None where something may."""
    policy, support = dataset["policy"], dataset["support"]
    if support["state"] != "as declared":
        return "Not supported", support["sentence"]
    if policy["until"] is not None and policy["until"] <= now:
        return "Ended", "Its policy is over: nothing is charged any more."
    if policy["unit"] is None:
        unknown = "Its policy does not say how many trajectories a user has: nothing more is granted or charged."
        return "Closed", unknown
    return None


def standing_of_grant(grant: Json) -> Standing:
    """Returns how a grant stands."""
    if grant["balance"]["state"] == "frozen":
        return Standing(tone="bad", word="frozen", sentence="Nothing may be charged to it any more.")
    if Fraction(grant["balance"]["free"]) == 0:
        return Standing(tone="open", word="spent", sentence="Nothing is left.")
    return Standing(tone="good", word="open", sentence="It may be charged.")


def standing_of_charge(charge: Charge) -> Standing:
    """Returns how a charge stands."""
    if charge.state == "committed":
        sentence = "Noise may have been drawn: it stays spent, and is never refunded."
        return Standing(tone="plain", word="Committed", sentence=sentence)
    if charge.state == "released":
        return Standing(tone="good", word="Released", sentence="Nothing was drawn, and nothing is spent by it.")
    if charge.expired:
        sentence = "Nobody knows whether noise was drawn. It counts as spent until an officer attests that none was."
        return Standing(tone="open", word="Expired", sentence=sentence)
    return Standing(tone="open", word="Reserved", sentence="Set aside for a run; it counts as spent until released.")


def bar_of(grant: Json) -> Bar:
    """Returns the parts of a grant's cap."""
    return bar_of_sums(grant["balance"], grant["balance"]["cap"])


def bar_of_sums(sums: Json, cap: str) -> Bar:
    """Returns the parts of a cap that are committed and reserved."""
    parts = [float(100 * Fraction(sums[name]) / Fraction(cap)) for name in ("committed", "reserved")]
    return Bar(committed=round(parts[0], 3), reserved=round(parts[1], 3))


def _join(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]}, {names[1]} and {len(names) - 2} more"
