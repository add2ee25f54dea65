"""CALIBRATED-LINOPT: linear mixtures learned at (ε, δ)-JDP with little regret.

Every user is in one batch, and only one Gaussian vector is released about a user: Σx·y of next values, and Σφ·(r − ½)
of rewards unless they are known. Its cost is exactly that of N(0, 1) against N(μ, 1), and μ = 0.26805 is the largest
that is (1, 10⁻⁵)-DP (to five digits).

In this order: users' data (`TargetedSteps`), the statistic (`TargetSums`), the declaration, the audit world.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import FiniteMDP
from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import Sensitivity, SparseDifference
from privcheck.errors import ParameterError, TrajectoryError
from privcheck.runtime.registry import Algorithm, AuditInstance, Reading
from privcheck.runtime.results import World
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.parameters import Condition, number
from privcheck.terms.symbols import Exact, Expr, H, delta, epsilon, expression, maximum, sqrt, symbol
from privcheck_algorithms.calibrated_linopt.agent import OPTIONS, player
from privcheck_algorithms.privatizers.declaration import CALIBRATED, MU

Array = NDArray[np.float64]
Of = Literal["values", "rewards"]

_SLACK: Final = 1e-12  # a length of 1 comes out as 1 + a few roundings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetedSteps:
    """Users' data as pairs of a feature and a target, for each summed quantity.

    Within a batch V is public. With c_h the middle of the span of V_{h+1} over all states, a user who moves from (s, a)
    to s′ has the target y = (V_{h+1}(s′) − c_h)/span in [−½, ½] and the feature x_h(s, a), which is public too. Next
    states range over all states, whatever the model says: users may answer arbitrarily. The last step has no next
    value, and no release of one. Rewards have the target r − ½ and features φ.

    Attributes:
        features: (users, steps, d) features of length at most 1, by summed quantity.
        targets: (users, steps) targets in [−½, ½], by summed quantity.

    Raises:
        TrajectoryError: A shape is wrong or a value out of range; the message names the first user and step.
    """

    features: Mapping[Of, Array]
    targets: Mapping[Of, Array]

    def __post_init__(self) -> None:
        if self.features.keys() != self.targets.keys():
            message = f"expected targets for each of {sorted(self.features)}, got them for {sorted(self.targets)}"
            raise TrajectoryError(message)
        for of, x in self.features.items():
            y = self.targets[of]
            if x.ndim != 3 or y.shape != x.shape[:2]:
                message = f"{of}: expected features (users, steps, d), targets (users, steps); got {x.shape}, {y.shape}"
                raise TrajectoryError(message)
            _within(f"the length of a feature for {of}", np.sqrt(np.einsum("uhi,uhi->uh", x, x)), 1.0)
            _within(f"the size of a target of {of}", np.abs(y), 0.5)

    def __str__(self) -> str:
        told = []
        for of, x in self.features.items():
            shown = ", ".join(f"{each:.4g}" for each in x[0, 0, :2])
            told.append(f"{of}: ({shown}{', …' if x.shape[2] > 2 else ''}) with target {self.targets[of][0, 0]:.4g}")
        return f"{'; '.join(told)} at step 1, and so on for all steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSums:
    """Σ over users of x·y, a vector per step, of shape (steps, d): ‖x‖ ≤ 1 and |y| ≤ ½.

    Attributes:
        of: Summed quantity: next values, or rewards.
        steps: H − 1 for next values, at least 1; H for rewards.
        dimension: d.
    """

    of: Of
    steps: Expr
    dimension: Expr

    def __init__(self, of: Of, steps: Exact | Expr, dimension: Exact | Expr) -> None:
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "steps", number(f"steps, of sums of {of}", steps))
        object.__setattr__(self, "dimension", number(f"dimension, of sums of {of}", dimension))

    @property
    def name(self) -> str:
        """The statistic in words."""
        return "sums of x·y, y the next value about its middle" if self.of == "values" else "sums of φ·(r − ½)"

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        return r"\textstyle\sum x\, y" if self.of == "values" else r"\textstyle\sum \phi (r - \tfrac12)"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return self.steps.symbols | self.dimension.symbols

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions on its parameters."""
        return (
            Condition(what=f"the steps of sums of {self.of}", of=self.steps, domain="count"),
            Condition(what=f"the dimension of features for {self.of}", of=self.dimension, domain="count"),
        )

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data; `TargetedSteps` checks them."""
        return ("‖x‖ at most 1, y in [−½, ½]" if self.of == "values" else "‖φ‖ at most 1, rewards in [0, 1]",)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Sensitivity ‖Δ‖₂ = √steps under replacement, half of that if one user is absent.

        Lemma target-sums: A replaced user changes a step's Σ y·x, ‖x‖ ≤ 1, |y| ≤ ½, by at most 1. Proof: ‖y·x‖ ≤ ½; one
        x of length 1 with y = ½ and y′ = −½ attains it. So it is not smaller if neighbours share their first state and
        action, and with them x.

        ‖·‖₁ ≤ √d·‖·‖₂ per step, attained by equal entries.
        """
        share = expression(1) if isinstance(relation, ReplaceOne) else expression(Fraction(1, 2))
        one = Sensitivity(
            l1=share * self.steps * sqrt(self.dimension),
            l2=share * sqrt(self.steps),
            linf=share,
            reason="one feature of length 1 with targets ½ and −½, at every step",
        )
        return one.of_several(relation)

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Shape (steps, d)."""
        return (int(self.steps.number(values)), int(self.dimension.number(values)))

    def compute(self, data: TargetedSteps, *, step: int | None = None) -> Array:
        """Vectors, or that of one step from 0.

        Raises:
            TrajectoryError: The step does not exist.
        """
        x, y = data.features[self.of], data.targets[self.of]
        if step is None:
            return np.asarray(np.einsum("uhi,uh->hi", x, y))
        if not 0 <= step < y.shape[1]:
            raise TrajectoryError(f"expected a step in 0..{y.shape[1] - 1}, got {step}")
        return np.asarray(y[:, step] @ x[:, step])

    def difference(self, pair: tuple[TargetedSteps | None, TargetedSteps | None]) -> SparseDifference:
        """Change, flat over (steps, d)."""
        parts = [sign * self.compute(user) for sign, user in zip((1.0, -1.0), pair, strict=True) if user is not None]
        change: Array = np.sum(parts, axis=0).ravel()
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells.astype(np.int64), change=change[cells])


def furthest_pairs(
    sums: tuple[TargetSums, ...], values: Mapping[str, Fraction]
) -> Iterator[tuple[TargetedSteps, TargetedSteps]]:
    """Yield two users with the largest change of all sums, at every step.

    Args:
        sums: All sums of a declaration.
        values: Values of its parameters.
    """
    features, targets = {}, {}
    for one in sums:
        steps, d = one.shape(values)
        features[one.of] = np.broadcast_to(np.eye(d)[0], (1, steps, d))
        targets[one.of] = np.full((1, steps), 0.5)
    other = {of: -y for of, y in targets.items()}
    yield TargetedSteps(features=features, targets=targets), TargetedSteps(features=features, targets=other)


def draw_user(sums: tuple[TargetSums, ...], values: Mapping[str, Fraction], rng: np.random.Generator) -> TargetedSteps:
    """Random user: features along an axis or anywhere, and targets that are mostly at the ends."""
    features, targets = {}, {}
    for one in sums:
        steps, d = one.shape(values)
        x = rng.standard_normal((1, steps, d)) if rng.random() < 0.5 else np.eye(d)[rng.integers(0, d, (1, steps))]
        x /= np.linalg.norm(x, axis=2, keepdims=True) * (1 + _SLACK)
        y = rng.random((1, steps)) - 0.5
        features[one.of] = x * rng.random((1, steps, 1)) if rng.random() < 0.25 else x
        targets[one.of] = np.where(rng.random((1, steps)) < 0.75, np.rint(y + 0.5) - 0.5, y)
    return TargetedSteps(features=features, targets=targets)


def _within(what: str, numbers: Array, most: float) -> None:
    wrong = ~(numbers <= most * (1 + _SLACK))  # NaN is wrong
    if wrong.any():
        user, step = (int(i) for i in np.argwhere(wrong)[0])
        message = f"{what} is {numbers[user, step]:.6g} for user {user} at step {step + 1}, expected at most {most:g}"
        raise TrajectoryError(f"{message}; {int(wrong.sum())} are longer: scale them by a public bound")


KERNELS, FEATURES = symbol("d1", "count"), symbol("d2", "count")
WEIGHT = symbol("reward_weight", "positive")

REWARDS = Reading(
    name="rewards",
    ways=("known", "released"),
    meaning="known: the mean reward of every (s, a) is public, and costs nothing; released: noisy sums of φ·(r − ½)",
)
_OWN = (
    Parameter(name="d1", default=5, kind="count", meaning="known kernels of the mixture"),
    Parameter(name="d2", default=5, kind="count", meaning="dimension of the features in which rewards are linear"),
    Parameter(
        name="reward_weight", default=1, kind="positive", meaning="w: sums of rewards get 1/w times the noise of values"
    ),
)


def declare_calibrated(readings: Mapping[str, str]) -> Declaration:
    """CALIBRATED-LINOPT in the chosen readings: (ε, δ)-JDP by one Gaussian vector per user.

    The ℓ₂ sensitivity of Σx·y is √(H − 1) and that of Σφ·(r − ½) is √H (`TargetSums.sensitivity`). With variance σ² =
    ((H − 1) + w²·H)/μ² for the first and σ²/w² for the second, (H − 1)/σ² + w²·H/σ² = μ².
    """
    released = readings.get("rewards", "known") == "released"
    steps = maximum(H - 1, 1)  # of a single step, which has no next value, noise alone leaves
    moved: Expr = steps + (WEIGHT**2 * H if released else expression(0))
    variance = moved / MU**2
    schedule = Batches(size="users, each batch a fixed factor larger than the one before")
    values, rewards = TargetSums("values", steps, KERNELS), TargetSums("rewards", H, FEATURES)
    releases: tuple[Release, ...] = (Release("values", values, Gaussian(variance=variance), schedule=schedule),)
    if released:
        releases += (Release("rewards", rewards, Gaussian(variance=variance / WEIGHT**2), schedule=schedule),)
    sums = (values, rewards) if released else (values,)
    sizes = tuple(p for p in CALIBRATED if p.name not in {"S", "A"})  # S and A appear in nothing that is released
    return Declaration(
        name="calibrated-linopt",
        title="CALIBRATED-LINOPT: linear mixtures learned from disjoint batches, V public within each",
        source="this package; README of calibrated_linopt",
        origin=Origin(kind="own", text="README of calibrated_linopt"),
        relation=ReplaceOne("trajectory"),
        releases=releases,
        claim=Claim(ApproxDP(epsilon, delta), source="README, “The budget”", joint=Joint()),
        parameters=(*sizes, *(_OWN if released else _OWN[:1])),
        candidates=partial(furthest_pairs, sums),
        records=partial(draw_user, sums),
    )


_DEFAULT: Final = {"H": 4, "S": 3, "A": 4, "d1": 3, "d2": 1}


def audit_world(sizes: Mapping[str, int]) -> World:
    """Build the world.

    A user can change every sum by its full sensitivity, at every step. One kernel leads to all states equally, the
    others push between state 0 and the last one, according to the bits of an action. So features have equal length at
    every state and action, and values are smallest in state 0 and largest in the last state, the only rewarded one: two
    users who always go to one or the other are at the two ends of the span throughout. Their reward features are
    opposite.

    Args:
        sizes: Sizes, of which H, S, A, d1 and d2 are used; missing ones have defaults.

    Raises:
        ParameterError: Fewer than two states or kernels.

    >>> audit_world({"H": 3, "S": 2}).sizes
    {'H': 3, 'S': 2, 'A': 4, 'd': 1, 'd2': 1, 'd1': 3}
    """
    at = {name: sizes.get(name, size) for name, size in _DEFAULT.items()}
    for name in ("S", "d1"):
        if at[name] < 2:
            message = f"{name}: the world in which linear mixtures are audited needs at least 2, got {at[name]}"
            raise ParameterError(message, name=name, given=at[name])
    H, S, A, d1, d2 = at.values()
    pushes = d1 - 1
    signs = 1.0 - 2.0 * ((np.arange(A)[:, None] >> (np.arange(pushes) % 8)) & 1)  # (A, d₁ − 1)
    kernels = np.zeros((d1, S, A, S))
    kernels[0] = 1 / S
    kernels[1:, :, :, -1] = signs.T[:, None, :] / (2 * S * pushes)
    kernels[1:, :, :, 0] = -kernels[1:, :, :, -1]
    weights = np.ones(d1)
    weights[2::2] = -1.0
    phi = np.zeros((S, A, d2))
    phi[:-1, :, 0], phi[-1, :, 0] = -1.0, 1.0
    reward = np.zeros((1, S, A, 1))
    reward[:, -1] = 1.0
    transition = np.einsum("i,isat->sat", weights, kernels)[None]
    return World(
        name="pushes",
        description="a linear mixture of pushes between the first state and the last one",
        mdp=FiniteMDP(horizon=H, transition=transition, reward=reward, initial=np.eye(S)[0]),
        features=FeatureMap(phi=phi, kernels=kernels),
    )


CALIBRATED_LINOPT = Algorithm(
    name="calibrated-linopt",
    title="CALIBRATED-LINOPT: linear mixtures learned from disjoint batches, V public within each",
    source="this package; README of calibrated_linopt",
    declare=declare_calibrated,
    readings=(REWARDS,),
    options=OPTIONS,
    online=player,
    twin="calibrated-linopt",
    # small batches and one policy in each, as good as the mean model's best: policies follow the noisy sums closely
    instance=AuditInstance(
        sizes={"H": 2, "S": 2, "A": 2, "K": 8, "d1": 2, "d2": 2},
        options={
            "first_batch": Fraction(1),
            "growth": Fraction(2),
            "turns": Fraction(1),
            "spread": Fraction(1, 100_000),
        },
        world=audit_world,
    ),
)

__all__ = ["CALIBRATED_LINOPT"]
