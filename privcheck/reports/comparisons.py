"""Comparison of algorithms: headline, one table in one unit, and the files of a sweep."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Final

from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports import tables
from privcheck.reports.files import encode
from privcheck.reports.summary import NOTHING_LEARNED, Notice, Tone
from privcheck.reports.tables import Cell
from privcheck.reports.values import PricedClaim, SlopeFit, Standing, Sweep, SweepPoint, from_json
from privcheck.reports.wording import NOTHING, capitalise, figure, keep_together, percent, say_holds, spell_out
from privcheck.support.files import write_together

_VIEWS = {
    "joint": "-JDP", "releases": "-DP of releases", "local": "-LDP",
    "shuffle": "-DP behind a shuffler", "central": "-DP",
}  # fmt: skip
_REASONS = {  # of one agent, of several
    "bonus": (", because its bonus exceeds what can be earned", ", because their bonus exceeds what can be earned"),
    "penalty": (
        ", because its penalty exceeds what can be earned",
        ", because their penalty exceeds what can be earned",
    ),
    "unchanged": (", because its policy never changed", ", because their policies never changed"),
    "noise": (
        ", because of its noise: without it the same constants learn",
        ", because of their noise: without it the same constants learn",
    ),
    "unknown": (
        ": its last policies are worth no more than uniformly random ones",
        ": their last policies are worth no more than uniformly random ones",
    ),
}
_SPREAD = 2.0  # standard errors of a difference: closer values are called equal


def headline(standings: Sequence[Standing], *, delta: float) -> str:
    """The agents that learned, with their guarantees, and why the others did not, in a sentence or two.

    Args:
        standings: Results of the algorithms in one environment.
        delta: δ of their ε.
    """
    known = [one for one in standings if one.value is not None]
    if not known:
        return "The true value of these policies is unknown: users' own data give none to compare."
    private = [one for one in known if one.guarantee is not None]
    plain = [one for one in known if one.guarantee is None]
    said = [_say_group(private, delta=delta, private=True)] if private else []
    if plain:
        said.append(_say_group(plain, delta=delta, private=False, after=bool(private)))
    names = tuple(one.algorithm for one in known)  # as users type them, at the start of a sentence too
    return " ".join(one if one.startswith(names) else capitalise(one) for one in said)


def sweep_headline(points: Sequence[SweepPoint], *, over: Sequence[str], budgets: Sequence[str], delta: float) -> str:
    """The agents that learned, from which guarantee on, and why the others did not, in a sentence or two.

    If the grid has parameters that are not part of a guarantee, the headline is about their last setting.

    Args:
        points: All points of a sweep.
        over: The swept parameters.
        budgets: Swept parameters that are part of a guarantee.
        delta: δ of every ε.
    """
    others = [name for name in over if name not in budgets]
    settings = list_settings(points, others)
    last = settings[-1] if settings else {}
    here = [one.standing for one in points if one.standing is not None and is_at(one, last)]
    where = f"At {', '.join(f'{spell_out(name)} = {value}' for name, value in last.items())}: " if last else ""
    return f"{where}{_say_courses(here, delta=delta)}"


def list_settings(points: Sequence[SweepPoint], names: Sequence[str]) -> list[dict[str, str]]:
    """The distinct settings of these parameters, from the points that have the largest number of them."""
    found = [{name: one.over[name] for name in names if name in one.over} for one in points if not one.refused]
    most = max((len(one) for one in found), default=0)
    return list({tuple(one.items()): one for one in found if len(one) == most and most}.values())


def is_at(point: SweepPoint, setting: Mapping[str, str]) -> bool:
    """Whether a point is at a setting, as far as it has the parameters."""
    return all(point.over.get(name, value) == value for name, value in setting.items())


def _say_courses(standings: Sequence[Standing], *, delta: float) -> str:
    """The results of each private algorithm as its ε grows, then those without privacy, as text."""
    known = [one for one in standings if one.value is not None]
    courses: dict[str, list[Standing]] = {}
    for one in sorted(known, key=lambda one: math.inf if (e := _epsilon(one)) is None else e):
        courses.setdefault(one.algorithm, []).append(one)
    if all(len(course) == 1 for course in courses.values()):
        return headline(standings, delta=delta)
    private = [course for course in courses.values() if course[0].guarantee is not None]
    private.sort(key=lambda course: -max(one.value or 0.0 for one in course))
    plain = [one for one in known if one.guarantee is None]
    said = "; ".join(_say_course(course, delta=delta) for course in private)
    return f"{said}. {headline(plain, delta=delta)}" if plain else f"{said}."


def _epsilon(one: Standing) -> float | None:
    return None if one.guarantee is None else one.guarantee.epsilon


def _say_course(course: Sequence[Standing], *, delta: float) -> str:
    """The guarantee from which an algorithm learns, and its values, as text."""
    learned = [one for one in course if one.did_not_learn is None]
    name, last = course[0].algorithm, course[-1]
    if not learned:
        return f"{name} learned nothing up to {say_guarantee(last.guarantee, delta)}{_reason(last)}"
    first, end = learned[0], learned[-1]
    if len(learned) == len(course):
        more = "" if end is first else f" and {_say_worth(end, brief=True)}{_at(end.guarantee, delta)}"
        return f"{name} reaches {_say_worth(first)}{_at(first.guarantee, delta)}{more}"
    if list(course[-len(learned) :]) == learned:
        reached = f"{name} learns from {say_guarantee(first.guarantee, delta)} on ({_say_worth(first)}"
        more = "" if end is first else f", {_say_worth(end, brief=True)}{_at(end.guarantee, delta)}"
        return f"{reached}{more})"
    best = max(learned, key=lambda one: one.value or 0.0)
    reached = f"{_say_worth(best)}{_at(best.guarantee, delta)}"
    return f"{name} learned at {len(learned)} of {len(course)} points, at best {reached}"


def _reason(one: Standing) -> str:
    return "" if one.did_not_learn is None else _REASONS[one.did_not_learn.cause][0]


def _say_group(group: Sequence[Standing], *, delta: float, private: bool, after: bool = False) -> str:
    learned = sorted((one for one in group if one.did_not_learn is None), key=lambda one: -(one.value or 0.0))
    failed = [one for one in group if one.did_not_learn is not None]
    without = "without privacy, " if not private else ""
    if not learned:
        return f"{without}{_say_failed(failed, delta=delta, others=False, all_of=len(group) > 1 and not after)}."
    reached = f"{without}{_say_learned(learned, delta=delta)}"
    return f"{reached}; {_say_failed(failed, delta=delta, others=True, all_of=False)}." if failed else f"{reached}."


def _say_learned(learned: Sequence[Standing], *, delta: float) -> str:
    best = learned[0]
    if len(learned) > 1 and all(_are_equal(best, other) for other in learned[1:]):
        names = _join([one.algorithm for one in learned])
        shares = all(one.share is not None for one in learned)
        worth = _join([_say_worth(one, brief=shares) for one in learned]) + (" of the optimum" if shares else "")
        where = [say_guarantee(one.guarantee, delta) for one in learned if one.guarantee is not None]
        levels = f", at {_join(where)}" if where else ""
        return f"{names} do equally well within the spread over seeds: {worth}{levels}"
    first = f"{best.algorithm} reaches {_say_worth(best)}{_at(best.guarantee, delta)}"
    others = [f"{one.algorithm} {_say_worth(one, brief=True)}{_at(one.guarantee, delta)}" for one in learned[1:]]
    return ", ".join([first, *others])


def _say_worth(one: Standing, *, brief: bool = False) -> str:
    if one.share is None:
        return f"a value of {figure(one.value)}"
    return percent(one.share, rounding="down") + ("" if brief else " of the optimum")


def _at(guarantee: PricedClaim | None, delta: float) -> str:
    return "" if guarantee is None else f" at {say_guarantee(guarantee, delta)}"


def say_guarantee(guarantee: PricedClaim | None, delta: float) -> str:
    """A guarantee in a comparison's unit, as text.

    Args:
        guarantee: Guarantee of the algorithm; None if it is not private.
        delta: δ of the comparison.
    """
    if guarantee is None:
        return "no privacy"
    if guarantee.epsilon is None:
        return f"no finite ε (δ = {figure(delta)})"
    epsilon = figure(guarantee.epsilon, digits=3, rounding="up")
    return f"({epsilon}, {figure(delta)}){_VIEWS[guarantee.view]}"


def _say_failed(failed: Sequence[Standing], *, delta: float, others: bool, all_of: bool) -> str:
    """The agents that learned nothing and why, grouped by reason, as text."""
    causes = [one.did_not_learn.cause for one in failed if one.did_not_learn is not None]
    if len(set(causes)) == 1 and (others or all_of) and len(failed) > 1:
        who = "the others" if others else f"none of the {len(failed)} agents"
        return f"{who} learned {'nothing' if others else 'anything'}{_REASONS[causes[0]][1]}"
    parts = []
    for cause, some in groupby(sorted(zip(causes, failed, strict=True), key=lambda p: p[0]), key=lambda p: p[0]):
        group = [one for _, one in some]
        at = _at(group[0].guarantee, delta) if len(group) == 1 and not others else ""
        parts.append(f"{_join([one.algorithm for one in group])} learned nothing{at}{_REASONS[cause][len(group) > 1]}")
    return "; ".join(parts)


def _are_equal(one: Standing, other: Standing) -> bool:
    """Whether two values are within two standard errors of their difference."""
    assert one.value is not None
    assert other.value is not None
    if one.std is None or other.std is None:
        return one.value == other.value
    error = math.sqrt(one.std**2 / one.replicates + other.std**2 / other.replicates)
    return abs(one.value - other.value) <= _SPREAD * error


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


VIEWS = {
    "joint": "joint DP",
    "releases": "DP of the releases, not of what follows",
    "local": "local DP",
    "shuffle": "behind a shuffler",
    "central": "DP",
}
_TONES: dict[str, Tone] = {"holds": "good", "fails": "bad", "undecided": "open"}
SIMULATED = (
    "These runs drew seeded floating-point noise, which is right for a comparison and wrong for a release: anyone with "
    "the seed can remove it. The guarantees are those of the same algorithms with fresh noise; nothing here protects "
    "any data."
)


COLUMNS = ("agent", "guarantee", "claim", "#value", "#of the optimum")


def standing_cells(one: Standing, *, delta: float) -> list[str | Cell]:
    """An algorithm's row under `COLUMNS`: guarantee, claim, value.

    Args:
        one: Its result in the comparison.
        delta: The common δ.
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
    """The claimed ε at the common δ, and the verdict on the claim."""
    claimed = "no number" if given.claimed is None else f"ε = {figure(given.claimed, digits=3, rounding='up')}"
    return f"{claimed}: {say_verdict(given)}"


def say_verdict(given: PricedClaim) -> str:
    """The verdict on a claim in a few words; if it holds only for the releases, with the state of joint DP."""
    if given.verdict != "holds":
        return given.verdict
    return (
        say_holds(given.method, given.given) if given.joint in (None, "follows") else f"holds; joint DP {given.joint}"
    )


def warnings(standings: Sequence[Standing], *, delta: float) -> tuple[Notice, ...]:
    """Warnings to read before using a figure: claims that do not hold, and simulated noise.

    Args:
        standings: Results of the algorithms; several points of one algorithm share one warning.
        delta: The common δ.
    """
    return (*_warn_of_claims(standings, delta=delta), *_warn_of_simulated(standings))


def remarks(standings: Sequence[Standing]) -> tuple[Notice, ...]:
    """Remarks on the figures: agents that learned nothing, with advice, and guarantees of different kinds."""
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
    """Yield a remark that guarantees of different kinds or with different neighbours cannot be ranked."""
    private = {one.algorithm: one.guarantee for one in standings if one.guarantee is not None}
    kinds: dict[str, list[str]] = {}
    for name, given in private.items():
        kinds.setdefault(f"{VIEWS[given.view]}, neighbours “{given.relation}”", []).append(name)
    if len(kinds) > 1:
        parts = "; ".join(f"{', '.join(names)}: {kind}" for kind, names in kinds.items())
        text = f"These ε measure different things, so the smaller one need not be the stronger guarantee. {parts}."
        yield Notice(tone="plain", title="Guarantees of different kinds", text=text)


JSON_NAME: Final = "sweep.json"
HTML_NAME: Final = "sweep.html"
_FOLDED: Final = 24  # rows: a longer table is folded
_OWN: Final = (
    "All points learned from the same users. With release noise each point would be another release about them: the "
    "costs add up, and choosing the best point is one more look at the data."
)


def save_sweep(result: Sweep, directory: Path) -> None:
    """Write sweep.json, sweep.html and the plots, all or none; the same sweep gives the same bytes.

    Args:
        result: A sweep.
        directory: Output folder.

    Raises:
        PrivcheckError: The files cannot be written; the previous ones are unchanged.
    """
    kept = result.without_clocks()
    pictures = _pictures(kept)
    write_together(directory, {JSON_NAME: encode(kept), HTML_NAME: sweep_page(kept), **pictures})
    for path in directory.glob("frontier-*.svg"):
        if path.name not in pictures:  # of another sweep, whose json and page are gone
            path.unlink()


def _pictures(result: Sweep) -> dict[str, str]:
    """The plots as SVG files by name: frontier-1.svg and so on."""
    try:
        drawn = result.plot().svgs
    except ParameterError:  # nothing to draw
        return {}
    return {f"frontier-{number}.svg": svg for number, svg in enumerate(drawn, start=1)}


def render_sweep_again(directory: Path) -> Path:
    """Write sweep.html from sweep.json alone and return its path.

    Raises:
        FileFormatError: The sweep is missing or cannot be read by this version.
        PrivcheckError: The page cannot be written; the previous one is unchanged.
    """
    file = directory / JSON_NAME
    try:
        page = sweep_page(from_json(Sweep, json.loads(file.read_bytes().decode("utf-8")), "sweep"))
    except (OSError, ValueError, ParameterError) as error:
        message = f"{file}: expected the output of `privcheck sweep NAME… --over … --out DIR`; {error!s}"
        raise FileFormatError(message) from None
    write_together(directory, {HTML_NAME: page})
    return directory / HTML_NAME


def sweep_page(result: Sweep) -> str:
    """Page of a sweep."""
    from privcheck.reports.html import (
        inline,
        made_facts,  # here, not above: they load matplotlib
        template,
    )
    from privcheck.reports.run_plots import frontiers

    standings = [one.standing for one in result.points if one.standing is not None]
    users = sorted({one.episodes for one in result.points if not one.refused})
    counted = figure(users[0]) if len(users) == 1 else f"{figure(users[0])} to {figure(users[-1])}"
    grid = "; ".join(f"{spell_out(name)} = {', '.join(values)}" for name, values in result.over.items())
    seeds = "" if result.replicates == 1 else f" · {result.replicates} seeds"
    return template("sweep.html.j2").render(
        names=", ".join(result.algorithms),
        title=keep_together(result.headline),
        subtitle=f"{result.environment} · {counted} users · {grid}{seeds}",
        warnings=(*warnings(standings, delta=result.delta), *_warn_of_own_data(result), *_warn_of_refused(result)),
        plots=[(where, inline(plot)) for where, plot in frontiers(result)],
        table=points_table(result),
        folded=len(result.points) > _FOLDED,
        slopes=slopes_table(result),
        remarks=remarks(standings),
        made=result.made_by,
        facts_of=made_facts(result.made_by),
    )


def points_table(result: Sweep) -> tables.ReportTable | None:
    """Table of the points, one row each."""
    caption = (
        f"Guarantee: the accountant's bound on the declared releases. Claim: the ε that it implies at δ = "
        f"{figure(result.delta)}, and whether it holds, judged in its own unit. Value: true expected return of the "
        f"policy learned last{_say_spread(result)}."
    )
    shown = [name for name, values in result.over.items() if len(values) > 1]
    columns = (COLUMNS[0], *(f"#{spell_out(name)}" for name in shown), *COLUMNS[1:])
    return tables.table(caption, columns, [_row(one, shown, result.delta) for one in result.points])


_OF: Final = {"agent": "with noise", "twin": "without noise", "privacy": "cost of privacy"}


def slopes_table(result: Sweep) -> tables.ReportTable | None:
    """Table of the fitted exponents beside the theorems'; None if none were asked for."""
    if not result.slopes:
        return None
    confidence = result.slopes[0].confidence
    caption = (
        f"Exponents b of y ∝ x^b, fitted to means over {result.replicates} replicates; intervals at "
        f"{percent(confidence)} from resampled replicates, about their randomness alone. A theorem's exponents are "
        "those of its upper bound, without logarithms; its two terms add up."
    )
    columns = ("agent", "along", "at", "of", "#exponent", "#interval", "theorem", "remark")
    return tables.table(caption, columns, [_slope_row(one) for one in result.slopes])


def _slope_row(one: SlopeFit) -> list[str | tables.Cell]:
    at = ", ".join(f"{spell_out(name)} = {value}" for name, value in one.at.items())
    what = f"{one.quantity} {_OF[one.of]}" if one.of != "privacy" else f"{_OF[one.of]} in {one.quantity}"
    interval = "" if one.low is None or one.high is None else f"{_signed(one.low)} to {_signed(one.high)}"
    fitted: str | tables.Cell = NOTHING if one.exponent is None else _signed(one.exponent)
    remark: str | tables.Cell = one.remark
    if one.not_fitted:
        remark = tables.Cell(text=f"not fitted: {one.not_fitted}", tone="open")
    theorem = f"{one.theorem.replace('-', '−')} ({one.source})" if one.theorem else ""
    return [one.algorithm, spell_out(one.parameter), at, what, fitted, interval, theorem, remark]


def _signed(exponent: float) -> str:
    return f"{exponent:.2f}".replace("-", "−")


def _say_spread(result: Sweep) -> str:
    if result.replicates == 1:
        return ""
    acted = any(one.regret is not None for one in result.points)
    drawn = "seeds" if acted else "draws of noise, all on the same users"
    return f", mean ± standard deviation over {result.replicates} {drawn}"


def _row(one: SweepPoint, shown: Sequence[str], delta: float) -> list[str | tables.Cell]:
    over = [one.over.get(name, "") for name in shown]
    if one.standing is None:
        return [one.algorithm, *over, tables.Cell(text="refused", tone="bad"), "", "", ""]
    name, *rest = standing_cells(one.standing, delta=delta)
    return [name, *over, *rest]


def _warn_of_own_data(result: Sweep) -> list[Notice]:
    many = len([one for one in result.points if not one.refused])
    if not result.own_data or many < 2:
        return []
    return [Notice(tone="bad", title=f"{many} looks at the same users", text=_OWN)]


def _warn_of_refused(result: Sweep) -> list[Notice]:
    return [
        Notice(tone="bad", title="Refused", text=f"{one.algorithm}{_where(one.over)}: {one.refused}.")
        for one in result.points
        if one.refused
    ]


def _where(over: Mapping[str, str]) -> str:
    return "" if not over else " at " + ", ".join(f"{spell_out(name)} = {value}" for name, value in over.items())


def group_points(result: Sweep) -> list[tuple[dict[str, str], list[SweepPoint]]]:
    """Group the points by their settings outside guarantees; a point with fewer parameters is in several groups."""
    others = [name for name in result.over if name not in result.budgets]
    settings = list_settings(result.points, others) or [{}]
    return [(setting, [one for one in result.points if is_at(one, setting)]) for setting in settings]


def find_axis(result: Sweep) -> str | None:
    """The x axis if no swept parameter is part of a guarantee: the first parameter with positive numbers only."""
    if result.budgets:
        return None
    return next((name for name, values in result.over.items() if all(as_number(one) for one in values)), None)


def as_number(text: str) -> float | None:
    """A positive value as a number; None if it is not one."""
    try:
        value = float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        return None
    return value if value > 0 else None
