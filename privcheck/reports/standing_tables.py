"""What pages and terminals say of algorithms side by side: one table in one unit, and what to know before using it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privcheck.reports.headlines import say_guarantee
from privcheck.reports.summary import NOTHING_LEARNED, Notice, Tone
from privcheck.reports.tables import Cell
from privcheck.reports.values import PricedClaim, Standing
from privcheck.reports.wording import NOTHING, figure, percent, say_holds, spell_out

VIEWS = {
    "joint": "joint DP",
    "releases": "DP of the releases, not of what follows",
    "local": "local DP",
    "shuffle": "behind a shuffler",
    "central": "DP",
}
_TONES: dict[str, Tone] = {"holds": "good", "fails": "bad", "undecided": "open"}
SIMULATED = (
    "These runs drew seeded floating-point noise, which is right for a comparison and wrong for a release: whoever has "
    "the seed can remove it. The guarantees are those of the same algorithms with fresh noise; nothing here protects "
    "anybody's data."
)


COLUMNS = ("agent", "guarantee", "claim", "#value", "#of the optimum")


def standing_cells(one: Standing, *, delta: float) -> list[str | Cell]:
    """Returns an algorithm's row under `COLUMNS`: guarantee, claim, what was reached.

    Args:
        one: How it came off.
        delta: The common one.
    """
    given = one.guarantee
    claim = NOTHING if given is None else Cell(text=_say_claim(given), tone=_TONES[given.verdict])
    spread = "" if one.std is None else f" ± {figure(one.std, digits=2, rounding='up')}"
    return [
        one.algorithm,
        "not private" if given is None else say_guarantee(given, delta),
        claim,
        NOTHING if one.value is None else figure(one.value) + spread,
        Cell(
            text=NOTHING if one.share is None else percent(one.share, rounding="down"),
            tone="plain" if one.did_not_learn is None else "open",
        ),
    ]


def _say_claim(given: PricedClaim) -> str:
    """Returns the ε that is claimed at the common δ and the verdict on the claim."""
    claimed = "no number" if given.claimed is None else f"ε = {figure(given.claimed, digits=3, rounding='up')}"
    return f"{claimed}: {say_verdict(given)}"


def say_verdict(given: PricedClaim) -> str:
    """Returns the verdict on a claim in a few words; where only the releases hold it, that joint DP does not follow."""
    if given.verdict != "holds":
        return given.verdict
    return (
        say_holds(given.method, given.given) if given.joint in (None, "follows") else f"holds; joint DP {given.joint}"
    )


def warnings(standings: Sequence[Standing], *, delta: float) -> tuple[Notice, ...]:
    """Returns what a reader must know before using a figure: claims that do not hold, and simulated noise.

    Args:
        standings: Of the algorithms; what several points of one algorithm have in common is said once.
        delta: The common one.
    """
    return (*_warn_of_claims(standings, delta=delta), *_warn_of_simulated(standings))


def remarks(standings: Sequence[Standing]) -> tuple[Notice, ...]:
    """Returns what goes with the figures: who learned nothing and what to try, and guarantees of unlike kinds."""
    return (*_warn_of_nothing_learned(standings), *_warn_of_unlike(standings))


def _warn_of_claims(standings: Sequence[Standing], *, delta: float) -> Iterator[Notice]:
    said: set[str] = set()
    for one in standings:
        given = one.guarantee
        if given is None or given.verdict == "holds" or one.algorithm in said:
            continue
        said.add(one.algorithm)
        same = [other.guarantee for other in standings if other.algorithm == one.algorithm]
        many = sum(other is not None and other.verdict == given.verdict for other in same)
        sure = f" In the unit of this page its releases cost ε ≤ {figure(given.epsilon, digits=3, rounding='up')}"
        sure = "" if given.epsilon is None else f"{sure} at δ = {figure(delta)}."
        text = f"{one.algorithm} claims {spell_out(given.claim)}. {given.sentence}{sure}"
        text += "" if given.joint in (None, "follows") else f" Joint DP is {given.joint}."
        if len(same) > 1:
            text += f" The same at {'all' if many == len(same) else f'{many} of'} its {len(same)} points."
        title = "A claim fails" if given.verdict == "fails" else "A claim is undecided"
        yield Notice(tone="bad" if given.verdict == "fails" else "open", title=title, text=text)


def _warn_of_nothing_learned(standings: Sequence[Standing]) -> Iterator[Notice]:
    said: set[tuple[str, str]] = set()
    for one in standings:
        why = one.did_not_learn
        if why is not None and (one.algorithm, why.cause) not in said:
            said.add((one.algorithm, why.cause))
            same = [other.did_not_learn for other in standings if other.algorithm == one.algorithm]
            many = sum(other is not None and other.cause == why.cause for other in same)
            points = "" if len(same) == 1 else f", at {many} of {len(same)} points,"
            yield Notice(tone="open", title=NOTHING_LEARNED, text=f"{one.algorithm}{points} {why.words}.")


def _warn_of_simulated(standings: Sequence[Standing]) -> Iterator[Notice]:
    if any(one.simulated for one in standings):
        yield Notice(tone="open", title="Simulated noise: not for release", text=SIMULATED)


def _warn_of_unlike(standings: Sequence[Standing]) -> Iterator[Notice]:
    """Yields that guarantees of unlike kinds or about unlike neighbours are no rank order."""
    private = {one.algorithm: one.guarantee for one in standings if one.guarantee is not None}
    kinds: dict[str, list[str]] = {}
    for name, given in private.items():
        kinds.setdefault(f"{VIEWS[given.view]}, neighbours “{given.relation}”", []).append(name)
    if len(kinds) > 1:
        parts = "; ".join(f"{', '.join(names)}: {kind}" for kind, names in kinds.items())
        text = f"These ε are about unlike things, so the smaller one need not be the stronger guarantee. {parts}."
        yield Notice(tone="plain", title="Guarantees of unlike kinds", text=text)
