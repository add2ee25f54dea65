"""Bounds of random allocations over generated parameters: `benchmarks/allocation.md`.

    python benchmarks/allocation.py            asks this package
    make peers                                 asks PLD_accounting, too

A question is a std, t rounds, k participations, epochs, a δ and a relation. The gap is 1 − lower/upper of ε. Where our
lower bound is above our upper bound, PLD_accounting's lower bound above our upper or our lower above its upper bound,
the script prints the question and ends with 1. PLD_accounting has questions of its own, with a user added or removed
and k = 1: for k > 1 it composes blocks of rounds, which bound the epoch from above only. Its bounds are the best of
those at several steps of its grid.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from peers_newest import ABSOLUTE, RELATIVE, patience, quantiles, some, versions

from privcheck import accounting as acc

STEPS = (0.2, 0.05, 0.01)  # of the peer's grid: finer ones as long as a question …
QUICK = 0.4  # … took less than so many seconds
PATIENCE = 30  # seconds a question to the peer
WIDEST = 20  # rows
AIM = 0.02  # gap


@dataclass(frozen=True)
class Question:
    """What ε is asked of.

    Attributes:
        number: Its number.
        std: Standard deviation of the noise.
        rounds: t.
        participations: k.
        epochs: Epochs.
        delta: δ.
        relation: Relation between the two data sets.
    """

    number: int
    std: float
    rounds: int
    participations: int
    epochs: int
    delta: float
    relation: str

    @property
    def group(self) -> str:
        """Row of the table."""
        several = "k = 1" if self.participations == 1 else "k > 1"
        return f"{'a user replaced' if self.relation == 'replace-one' else 'a user present or not'}, {several}"

    def __str__(self) -> str:
        said = f"std {self.std:g}, {self.participations} of {self.rounds}, × {self.epochs}, δ = {self.delta:.0e}"
        return f"{said}, {self.relation}"


@dataclass
class Answers:
    """What all said.

    Attributes:
        gaps: 1 − lower/upper of every question.
        ours: Both bounds.
        above: Seconds of the upper bound.
        below: Seconds of the lower bound.
        over: Our upper bound over the peer's lower bound, less 1.
        beside: The peer's upper bound over ours, less 1.
        seconds: Of the peer, all together.
        asked: Questions to both.
        wrong: Contradictions.
    """

    gaps: dict[Question, float] = field(default_factory=dict)
    ours: dict[Question, tuple[float, float]] = field(default_factory=dict)
    above: dict[Question, float] = field(default_factory=dict)
    below: dict[Question, float] = field(default_factory=dict)
    over: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    seconds: float = 0.0
    asked: int = 0
    wrong: list[str] = field(default_factory=list)

    def blame(self, line: str) -> None:
        """Note a contradiction."""
        self.wrong.append(line)
        print(line, flush=True)


def questions(number: int, seed: int) -> Iterator[Question]:
    """Draw questions: their numbers are uniform on a logarithmic scale."""
    rng = np.random.default_rng(seed)
    for i in range(number):
        rounds = int(some(rng, 2, 1001))
        several = bool(rng.integers(2)) and rounds > 2
        yield Question(
            number=i,
            std=some(rng, 0.5, 8),
            rounds=rounds,
            participations=int(some(rng, 2, min(rounds, 101))) if several else 1,
            epochs=int(some(rng, 1, 101)),
            delta=float(f"{10 ** rng.uniform(-9, -3):.0e}"),
            relation=str(rng.choice(["add-remove", "zero-out", "replace-one"], p=[0.45, 0.1, 0.45])),
        )


def questions_to_peer(number: int, seed: int) -> list[Question]:
    """Draw questions that PLD_accounting has lower bounds for."""
    drawn = (q for i in itertools.count(1) for q in questions(1000, seed + i))
    kept = (q for q in drawn if q.relation == "add-remove" and q.participations == 1)
    return [replace(q, number=i) for i, q in enumerate(itertools.islice(kept, number))]


def ask_peer(asked: Question) -> tuple[float, float]:
    """Bounds of PLD_accounting."""
    import PLD_accounting as pa

    params = pa.PrivacyParams(
        sigma=asked.std,
        num_steps=asked.rounds,
        num_epochs=asked.epochs,
        delta=asked.delta,
    )
    lower, upper, began = 0.0, math.inf, time.monotonic()
    for step in STEPS:
        config = pa.AllocationSchemeConfig(loss_discretization=step)
        high, low = (
            float(pa.gaussian_allocation_epsilon_configurable(params=params, config=config, bound_type=way))
            for way in (pa.BoundType.DOMINATES, pa.BoundType.IS_DOMINATED)
        )
        lower, upper = max(lower, low), min(upper, high)
        if time.monotonic() - began > QUICK:
            break
    return lower, upper


def judge(asked: Question, answers: Answers) -> tuple[float, float]:
    """Our bounds."""
    event = acc.random_allocation(
        std=asked.std,
        rounds=asked.rounds,
        participations=asked.participations,
        epochs=asked.epochs,
        relation=asked.relation,
    )
    began = time.process_time()
    figure = acc.compose(event).epsilon(delta=asked.delta)
    upper = float(figure.upper or 0.0)
    middle = time.process_time()
    lower = float(figure.lower) if figure.bounded_below else 0.0
    answers.above[asked], answers.below[asked] = middle - began, time.process_time() - middle
    answers.ours[asked], answers.gaps[asked] = (lower, upper), 1 - lower / upper if upper > 0 else 0.0
    if lower > upper * (1 + RELATIVE) + ABSOLUTE:
        answers.blame(f"{asked.number}: {lower:.9g} ≤ ε ≤ {upper:.9g}: {asked}")
    return lower, upper


def compare(asked: Question, answers: Answers, kept: dict[str, list[float]]) -> None:
    """Ask both one question.

    Args:
        asked: The question.
        answers: Where the answers go.
        kept: Answers of PLD_accounting by question, an empty list for none.
    """
    answers.asked += 1
    below, above = judge(asked, answers)
    if (known := str(asked)) not in kept:
        began = time.monotonic()
        kept[known] = []
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"), patience(PATIENCE):
                warnings.simplefilter("ignore")  # theirs
                kept[known] = [*ask_peer(asked), time.monotonic() - began]
        except Exception as error:  # noqa: BLE001  whatever a library raises is told
            print(f"{asked}: {type(error).__name__}: {str(error)[:90]}", flush=True)
    if not kept[known]:
        return
    lower, upper, seconds = kept[known]
    answers.seconds += seconds
    answers.over.append(above / lower - 1 if lower > 0 else math.inf)
    answers.beside.append(upper / above - 1)
    if lower > above * (1 + RELATIVE) + ABSOLUTE or below > upper * (1 + RELATIVE) + ABSOLUTE:
        answers.blame(f"{asked.number}: [{lower:.9g}, {upper:.9g}], ours [{below:.9g}, {above:.9g}]: {asked}")


def row(name: str, asked: list[Question], answers: Answers) -> str:
    """Row of the table of gaps."""
    gaps = np.array([answers.gaps[q] for q in asked])
    seconds = [np.array([of[q] for q in asked]) for of in (answers.above, answers.below)]
    cells = [name, str(len(asked)), *(f"{np.quantile(gaps, share):.2%}" for share in (0.5, 0.9, 0.99, 1))]
    cells += [f"{float(np.mean(gaps <= AIM)):.0%}"]
    cells += [f"{np.median(each):.2f} / {each.max():.2f}" for each in seconds]
    return f"| {' | '.join(cells)} |\n"


def report(answers: Answers, beside: Answers, seed: int) -> str:
    """The page."""
    asked, version = list(answers.gaps), versions()["PLD_accounting"]
    text = "# Random allocation: how far apart the bounds are\n\n"
    text += f"`python benchmarks/allocation.py --number {len(asked)}`: {len(asked)} questions of seed {seed}: "
    text += "std .5 to 8, 2 to 1 000 rounds, "
    text += (
        "1 to 100 participations, 1 to 100 epochs, δ 10⁻⁹ to 10⁻³, a user added or removed, zeroed out or replaced. "
    )
    text += f"{len(answers.wrong)} contradictions. The gap is 1 − lower/upper of ε; seconds are of one processor, the "
    text += "median and the most.\n\n| neighbours | questions | median gap | 90 % | 99 % | widest | "
    text += f"up to {AIM:.0%} | seconds, upper | seconds, lower |\n"
    text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    for group in sorted({q.group for q in asked}):
        text += row(group, [q for q in asked if q.group == group], answers)
    text += row("all", asked, answers)
    small = [q for q in asked if answers.ours[q][1] <= 10]
    text += row("… of them ε up to 10", small, answers) if small else ""
    text += "\n## Beside PLD_accounting\n\n"
    if beside.asked:
        text += (
            f"PLD_accounting {version} was asked {beside.asked} questions of its own, drawn alike, k = 1 and a user "
            f"added or removed, at steps of {STEPS[0]}, and finer ones where it answers in {QUICK} s. It answered "
            f"{len(beside.over)} in {PATIENCE} s each. {len(beside.wrong)} contradictions. "
            "Least / median / 90 % / largest:\n\n"
        )
        text += f"* our upper bound over its lower bound, less 1: {quantiles(beside.over)}\n"
        text += f"* its upper bound over ours, less 1: {quantiles(beside.beside)}\n"
        ours = sum(beside.above.values()) + sum(beside.below.values())
        text += f"* seconds, all together: its {beside.seconds:.0f}, ours {ours:.0f}\n"
    else:
        text += "Not asked: it is not installed here (`make peers` installs it).\n"
    text += "\n## Contradictions\n\n"
    text += "".join(f"* {line}\n" for line in answers.wrong + beside.wrong) or "None.\n"
    text += f"\n## The {WIDEST} widest\n\n| question | lower | upper | gap |\n| --- | ---: | ---: | ---: |\n"
    for q in sorted(asked, key=lambda q: -answers.gaps[q])[:WIDEST]:
        lower, upper = answers.ours[q]
        text += f"| {q} | {lower:.5g} | {upper:.5g} | {answers.gaps[q]:.1%} |\n"
    return text + WHY


WHY = """
The wide gaps are those of several participations whose noise is small, with losses of 10 to 1 000. Which side is loose
was found by simulation with tilted outcomes, which knows δ to a few percent: the upper bound, by blocks of rounds. They
reveal which rounds belong together, and most if they have two sizes. Where a user is present or not the bound by a
Poisson sample's ratio takes their place; it is loose where rounds are few or tell much, for then the sample's size is
known well, and for ε below 0 blocks are charged.
"""


def main() -> None:
    """Ask all; write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--question", type=int, default=None, help="one question by its number; writes no page")
    parser.add_argument("--to-peer", type=int, default=545, help="questions to PLD_accounting, which answers some 500")
    parser.add_argument("--kept", type=Path, default=None, help="answers of PLD_accounting, to be asked only once")
    how = parser.parse_args()
    answers, beside = Answers(), Answers()
    for asked in questions(how.number, how.seed):
        if how.question not in (None, asked.number):
            continue
        judge(asked, answers)
        if how.question is not None:
            print(asked, answers.ours[asked], answers.above[asked], answers.below[asked])
            return
    kept: dict[str, list[float]] = json.loads(how.kept.read_text()) if how.kept and how.kept.exists() else {}
    for asked in questions_to_peer(how.to_peer, how.seed) if versions()["PLD_accounting"] else ():
        compare(asked, beside, kept)
        if how.kept:
            how.kept.write_text(json.dumps(kept))
    Path(__file__).with_suffix(".md").write_text(report(answers, beside, how.seed), encoding="utf-8")
    sys.exit(f"{len(answers.wrong + beside.wrong)} contradictions" if answers.wrong + beside.wrong else 0)


if __name__ == "__main__":
    main()
