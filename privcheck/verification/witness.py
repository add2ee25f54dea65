"""Lower bounds: two concrete neighbouring datasets and the exact loss between the two output distributions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from privcheck.brief import Brief
from privcheck.declaration import Declaration
from privcheck.guarantees import ApproxDP
from privcheck.pricing import Priced
from privcheck.regressors import Regressors
from privcheck.releases import Release
from privcheck.rows import take_rows
from privcheck.statistics import SparseDifference
from privcheck.trajectories import Trajectories
from privcheck.verification.candidates import UserPair, candidate_pairs
from privcheck.verification.known_pairs import PricedPair, Shown, joint_pairs, known_pairs
from privcheck.verification.neighbours import fault
from privcheck.verification.pair_loss import pair_loss, told_parts
from privcheck.verification.shuffled_loss import shuffled_epsilon
from privcheck.verification.units import unit_of

_ROWS: Final = 3  # trajectories of a user that are compared before they are told as alike


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Witness(Brief):
    """Two neighbouring datasets, as the one user in which they differ, and how far they can be told apart.

    Attributes:
        pair: That user's data in D and in D′; None where the user is absent.
        loss: The exact loss in the claim's own unit (ρ of zCDP, μ of Gaussian DP, δ of (0, δ)-DP, else ε), rounded
            down; ∞ where outputs reveal an exact difference.
        changes: Per release that holds the user, of one contribution, ‖f(D) − f(D′)‖₁ and ‖f(D) − f(D′)‖₂².
        words: The pair in words.
        by: What tells the two apart, where not everything does: the names of procedures and releases; empty for all
            noisy statistics together.
        group: The user's group in a partition of the users; empty without one.
    """

    pair: UserPair
    loss: float
    changes: Mapping[str, tuple[float, float]]
    words: str
    group: str = ""
    by: tuple[str, ...] = ()


def find_witness(
    declaration: Declaration, values: Mapping[str, Fraction], *, more: Sequence[UserPair] = ()
) -> Witness | None:
    """Returns the worst of the extreme pairs for all releases together, or None where no user can move anything.

    Beside them stand the pairs that the procedures know: an attacker may look at one of them alone, at several, or at
    procedures and noisy statistics together. The loss is that of one concrete pair (see `pair_loss` and `joint_pairs`),
    therefore a lower bound on the declaration's.

    Args:
        declaration: What is attacked.
        values: Its parameters.
        more: Pairs to try beside `candidate_pairs`; those that are no neighbours are left out.
    """
    return worst_witness(Priced(declaration, values), more)


def worst_witness(priced: Priced, more: Sequence[UserPair] = ()) -> Witness | None:
    """As `find_witness`, of what is priced already."""
    declaration, values = priced.declaration, priced.values
    best: Witness | None = None
    alone, together = list(known_pairs(declaration, values)), list[PricedPair]()
    for group in declaration.groups:
        releases = declaration.seen_by(group)
        allowed = (pair for pair in more if not fault(declaration.relation, releases, pair, values))
        worst: Witness | None = None
        for pair in itertools.chain(candidate_pairs(priced, group), allowed):
            moved = {r.name: r.moved(pair, values) for r in releases}
            loss = pair_loss(declaration, moved, values)
            if worst is None or loss > worst.loss:
                differences = {r.name: r.statistic.difference(r.one_contribution(pair)) for r in releases}
                changes = {name: (d.l1, d.l2_squared) for name, d in differences.items()}
                words = describe(pair) + _how(declaration, releases, moved, values)
                worst = Witness(pair=pair, loss=loss, changes=changes, words=words, group=group)
        if worst is not None and (best is None or worst.loss > best.loss):
            best = worst
        together += joint_pairs(declaration, values, group, _shown(declaration, worst, values), alone)
    for known in (*alone, *together):
        if best is None or known.loss > best.loss:
            words = known.words if len(known.names) > 1 else f"{known.words} ({known.names[0]})"
            best = Witness(pair=known.data, loss=known.loss, changes={}, words=words, group=known.users, by=known.names)
    return best if best is not None and best.loss > 0 else None


def _shown(declaration: Declaration, worst: Witness | None, values: Mapping[str, Fraction]) -> list[Shown]:
    """Returns what the noisy statistics show of the pair that is worst for them, where procedures stand beside them."""
    if worst is None or not worst.loss > 0:
        return []
    noisy = declaration.seen_by(worst.group)
    if len(noisy) == len(declaration.joined_for(worst.group)):
        return []
    moved = {r.name: r.moved(worst.pair, values) for r in noisy}
    parts = told_parts(declaration, moved, values)
    return [Shown(names=tuple(moved), data=worst.pair, words=worst.words, parts=parts)] if parts else []


def _how(
    declaration: Declaration,
    releases: Sequence[Release],
    moved: Mapping[str, SparseDifference],
    values: Mapping[str, Fraction],
) -> str:
    """Returns by which messages the two are told apart, where that needs saying."""
    claim = declaration.claim.guarantee
    if unit_of(declaration, values) != "epsilon" or not isinstance(claim, ApproxDP):
        return ""
    words = shuffled_epsilon(releases, moved, values, claim.delta.number(values, rounding="up"))[1]
    return f"; {words}" if words else ""


def describe(pair: UserPair) -> str:
    """Returns the one user's two data in words, run-length coded."""
    tabular = any(isinstance(user, Trajectories | Regressors) for user in pair)
    first, second = ("nothing" if user is None and not tabular else _user(user) for user in pair)
    return f"in D the user has {first}; in D′ {second}; all other users are the same"


def _user(user: Any) -> str:
    if user is None:
        return "no trajectory"
    if isinstance(user, Regressors):
        return _tell_regressors(user)
    if not isinstance(user, Trajectories):
        return str(user)
    if user.users > 1:
        return _tell_rows(user.users, [_user(user.user(i)) for i in range(min(user.users, _ROWS))])
    cells = list(zip(user.states[0, :-1].tolist(), user.actions[0].tolist(), user.rewards[0].tolist(), strict=True))
    parts, start = [], 0
    for step in range(1, len(cells) + 1):
        if step == len(cells) or cells[step] != cells[start]:
            steps = f"step {step}" if step == start + 1 else f"steps {start + 1}–{step}"
            state, action, reward = cells[start]
            parts.append(f"(state {state}, action {action}, reward {reward:g}) at {steps}")
            start = step
    shown = parts if len(parts) <= 4 else [*parts[:3], "…"]
    return ", ".join(shown) + f", then state {user.states[0, -1]}"


def _tell_rows(number: int, rows: Sequence[str]) -> str:
    """Returns several trajectories of one user; those that are looked at are usually alike."""
    if len(set(rows)) == 1:
        return f"{number} trajectories, each {rows[0]}"
    return f"{number} trajectories: {'; '.join(rows[:2])}" + ("; …" if number > 2 else "")


def _tell_regressors(user: Regressors) -> str:
    """Returns the first two coordinates of the vectors and the targets, run-length coded over steps."""
    if user.users > 1:
        return _tell_rows(
            user.users, [_tell_regressors(take_rows(user, slice(i, i + 1))) for i in range(min(user.users, _ROWS))]
        )
    columns = []
    for name, column in user.vectors.items():
        shown = ", ".join(f"{x:.4g}" for x in column[0, 0, :2])
        columns.append(f"{name} = ({shown}{', 0, …' if column.shape[2] > 2 else ''})")
    columns += [f"{name} = {column[0, 0]:.4g}" for name, column in (*user.targets.items(), *user.weights.items())]
    return (
        f"at step 1 {', '.join(columns)}, and so on for {user.horizon} steps"
        if user.horizon > 1
        else ", ".join(columns)
    )
