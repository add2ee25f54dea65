"""Specimens that publish what libraries publish: dicts, texts, None, NaN, frames, exceptions; each with a mended twin.

One run at a time, as such functions are written.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mutants.specimen import OneRun, Specimen, twins
from privcheck.terms.guarantees import ApproxDP, PureDP

_ONE = PureDP(1)
_PUBLIC = ("a", "b", "c")
_ONE_STEP = -math.expm1(-1)


def clamped_sum(*, tests_nan: bool) -> OneRun:
    """Returns the noisy sum of records clamped to [0, 1] by comparisons, which NaN passes unless it is tested for."""

    def clamp(x: float) -> float:
        if x > 1:
            return 1.0
        return 0.0 if x < 0 or (tests_nan and math.isnan(x)) else x

    return lambda given, rng: sum(map(clamp, given)) + rng.laplace(0, 1)


def large_groups(*, ties: bool) -> OneRun:
    """Returns the noisy counts of groups, where they are above 4, or reach it too."""

    def run(given: dict[str, int], rng: np.random.Generator) -> dict[str, int]:
        noisy = {key: given[key] + int(rng.geometric(_ONE_STEP) - rng.geometric(_ONE_STEP)) for key in sorted(given)}
        return {key: count for key, count in noisy.items() if count > 4 or (ties and count == 4)}

    return run


def counts_of(*, keys: str) -> OneRun:
    """Returns noisy counts of the data's keys, sorted, or all public ones as they first appear, or in public order."""

    def run(given: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
        counts = Counter(given)
        shown = {
            "found": sorted(counts),
            "as they appear": list(dict.fromkeys((*given, *_PUBLIC))),
            "public": _PUBLIC,
        }[keys]
        return {key: counts[key] + rng.laplace(0, 1) for key in shown}

    return run


def typed_sum(*, by_data: bool) -> OneRun:
    """Returns the noisy sum of records in [0, 4]: as an integer where all of them are whole, or always as a float."""

    def run(given: Sequence[float], rng: np.random.Generator) -> float:
        noisy = sum(given) + rng.laplace(0, 4)
        return round(noisy) if by_data and all(x == int(x) for x in given) else float(noisy)

    return run


def suppressed(*, signed: bool) -> OneRun:
    """Returns a noisy balance and a suppressed one: the exact one times zero, which has its sign, or zero."""
    return lambda given, rng: (given + rng.laplace(0, 1), given * 0.0 if signed else 0.0)


def group_means(*, noisy_counts: bool) -> OneRun:
    """Returns the noisy means of two groups of records in [0, 1]; NaN for an empty one, or by noisy counts."""

    def run(given: Sequence[Sequence[float]], rng: np.random.Generator) -> list[float]:
        def mean(group: Sequence[float]) -> float:
            noisy = sum(group) + rng.laplace(0, 2)
            if noisy_counts:
                return noisy / max(len(group) + rng.laplace(0, 2), 1.0)
            return noisy / 10 if group else math.nan

        return [mean(group) for group in given]

    return run


def mean_or_error(*, checks: bool) -> OneRun:
    """Returns the noisy sum of records over a public number; refuses an empty dataset where it `checks`."""

    def run(given: Sequence[float], rng: np.random.Generator) -> float:
        if checks and not given:
            raise ValueError("mean of no records")
        return (sum(given) + rng.laplace(0, 1)) / 10

    return run


def message(*, exact: bool) -> OneRun:
    """Returns a sentence with a noisy sum and the number of records, exact or noisy."""

    def run(given: Sequence[float], rng: np.random.Generator) -> str:
        number = len(given) if exact else round(len(given) + rng.laplace(0, 2))
        return f"sum {sum(given) + rng.laplace(0, 2):.1f} over {number} records"

    return run


def small_group(*, exact: bool) -> OneRun:
    """Returns a noisy count, or None where it is below 5: the exact one, or the noisy one."""

    def run(given: int, rng: np.random.Generator) -> float | None:
        noisy = given + rng.laplace(0, 1)
        return None if (given if exact else noisy) < 5 else float(noisy)

    return run


def decimals(*, of_data: bool) -> OneRun:
    """Returns a noisy sum of records in [0, 1] as text, with as many decimals as the records have, or two."""

    def run(given: Sequence[str], rng: np.random.Generator) -> str:
        digits = max(len(x.partition(".")[2]) for x in given) if of_data else 2
        return f"{sum(map(float, given)) + rng.laplace(0, 1):.{digits}f}"

    return run


def with_warning(*, warns: bool) -> OneRun:
    """Returns a noisy sum of records clipped to [0, 1], and whether any was clipped."""

    def run(given: Sequence[float], rng: np.random.Generator) -> dict[str, Any]:
        noisy = float(np.clip(given, 0, 1).sum()) + rng.laplace(0, 1)
        return {"sum": noisy, "clipped": max(given) > 1} if warns else {"sum": noisy}

    return run


def odometer(*, exact: bool) -> OneRun:
    """Returns a noisy count at ε = ½, another where the first (or the exact) is above 5, and the ε that was spent."""

    def run(given: float, rng: np.random.Generator) -> dict[str, float]:
        answers = [given + rng.laplace(0, 2)]
        if (given if exact else answers[0]) > 5:
            answers.append(given + rng.laplace(0, 2))
        return {"count": float(np.mean(answers)), "spent": 0.5 * len(answers)}

    return run


def frame(*, keeps_index: bool) -> OneRun:
    """Returns a frame of groups with noisy counts; its index says in which row each group was first, or nothing."""

    def run(given: Sequence[str], rng: np.random.Generator) -> pd.DataFrame:
        rows = [*given, *_PUBLIC]
        noisy = {"group": _PUBLIC, "noisy": [given.count(key) + rng.laplace(0, 1) for key in _PUBLIC]}
        return pd.DataFrame(noisy, index=[rows.index(key) for key in _PUBLIC] if keeps_index else None)

    return run


def stream(*, exact_stop: bool) -> OneRun:
    """Returns running sums of noisy records, as a generator that stops when they, or the exact ones, reach 3."""

    def run(given: Sequence[float], rng: np.random.Generator) -> Iterator[float]:
        exact = noisy = 0.0
        for record in given:
            exact, noisy = exact + record, noisy + record + rng.laplace(0, 1)
            yield float(noisy)
            if (exact if exact_stop else noisy) >= 3:
                return

    return run


AS_PUBLISHED: tuple[Specimen, ...] = (
    *twins(
        "NaN past the clamp", _ONE, ([0.5, 0.5, math.nan], [0.5, 0.5, 1.0]),
        broken=clamped_sum(tests_nan=False), mended=clamped_sum(tests_nan=True), losses=(math.inf, 1),
        why="every output is NaN, or none", source="google/differential-privacy#405, #411",
    ),
    *twins(
        "threshold released too", ApproxDP(1, "0.0134"), ({"a": 1}, {}),
        broken=large_groups(ties=True), mended=large_groups(ties=False), losses=(math.inf, 0),
        why="released with probability α³/(1 + α) = .0364 > δ where nobody is there; mended, α⁴/(1 + α) = .01339",
        source="opendp/opendp#2922",
    ),
    *twins(
        "keys found in the data", _ONE, (["a", "b", "c"], ["a", "b"]),
        broken=counts_of(keys="found"), mended=counts_of(keys="public"), losses=(math.inf, 1),
        why="the key is there or not", source="OpenMined/PipelineDP#110, opendp/smartnoise-sdk#309",
    ),
    *twins(
        "keys in the order of the data", _ONE, (["b", "a", "b"], ["a", "b"]),
        broken=counts_of(keys="as they appear"), mended=counts_of(keys="public"), losses=(math.inf, 1),
        why="one order on each", source="arx-deidentifier/arx#218",
    ),
    *twins(
        "integer where the data are whole", _ONE, ([1, 2, 3], [1, 2, 3.5]),
        broken=typed_sum(by_data=True), mended=typed_sum(by_data=False), losses=(math.inf, 0.125),
        why="one type on each; mended, Laplace noise, ½ over 4",
    ),
    *twins(
        "sign of a suppressed zero", _ONE, (0, -1),
        broken=suppressed(signed=True), mended=suppressed(signed=False), losses=(math.inf, 1), why="0.0, or −0.0",
    ),
    *twins(
        "NaN for an empty group", _ONE, (([0.2], [1.0]), ([0.2], [])),
        broken=group_means(noisy_counts=False), mended=group_means(noisy_counts=True), losses=(math.inf, 1),
        kinds=("exact", "at most"), why="NaN, or not; mended, sums and counts at ε = ½ each",
    ),
    *twins(
        "exception for no records", _ONE, ([1.0], []),
        broken=mean_or_error(checks=True), mended=mean_or_error(checks=False), losses=(math.inf, 1),
        why="an exception, or not", source="opendp/smartnoise-core#355 (the mean of no records)",
    ),
    *twins(
        "message with the number of records", _ONE, ([1.0, 1.0], [1.0]),
        broken=message(exact=True), mended=message(exact=False), losses=(math.inf, 1), kinds=("exact", "at most"),
        why="the number is told; mended, sum and number at ε = ½ each",
    ),
    *twins(
        "None below an exact count", _ONE, (4, 5),
        broken=small_group(exact=True), mended=small_group(exact=False), losses=(math.inf, 1),
        why="None always, or never; mended, a noisy count's post-processing",
    ),
    *twins(
        "as many decimals as the data", _ONE, (["0.5", "0.25"], ["0.5", "0.125"]),
        broken=decimals(of_data=True), mended=decimals(of_data=False), losses=(math.inf, 0.125),
        why="two decimals, or three; mended, Laplace noise", kinds=("exact", "at most"),
    ),
    *twins(
        "warning that a record was clipped", _ONE, ([0.5, 1.0], [0.5, 1.5]),
        broken=with_warning(warns=True), mended=with_warning(warns=False), losses=(math.inf, 0),
        why="the warning is there or not", source="IBM/differential-privacy-library#20 (warnings by data)",
    ),
    *twins(
        "budget spent by exact counts", _ONE, (5, 6),
        broken=odometer(exact=True), mended=odometer(exact=False), losses=(math.inf, 1), kinds=("exact", "at most"),
        why="what was spent tells the branch; mended, two answers at ε = ½ (Rogers et al. 2016)",
    ),
    *twins(
        "frame with the data's index", _ONE, (["b", "a", "b"], ["a", "b"]),
        broken=frame(keeps_index=True), mended=frame(keeps_index=False), losses=(math.inf, 1),
        why="one index on each", source="arx-deidentifier/arx#218",
    ),
    *twins(
        "stream that stops at the exact sum", _ONE, ([1, 1, 1, 1], [1, 1, 0, 1]),
        broken=stream(exact_stop=True), mended=stream(exact_stop=False), losses=(math.inf, 1),
        kinds=("exact", "at most"), why="three numbers, or four; mended, post-processing of noisy records",
    ),
)  # fmt: skip
