"""Matrix mechanisms: the output is C·G + Z, the encoded contributions of all steps with Gaussian noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

from privcheck.declare.mechanisms import GaussianNoise
from privcheck.declare.procedures.base import Cost, Facts, KnownPair, set_words
from privcheck.declare.procedures.encoders import MOST_STEPS, Encoder
from privcheck.declare.procedures.matrix_bins import BinRuns, Bins
from privcheck.declare.procedures.mixtures import Mixture, SampledRounds
from privcheck.declare.relations import AddRemoveOne, Relation, ReplaceOne, name_relation
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, instance, number, one_of, truth
from privcheck.terms.symbols import Exact, Expr, expression, same, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

Order = Literal["any", "fixed"]
_ONE: Final = expression(1)
_SAME: Final = 1e-12  # relative, of columns of one norm
_DOWN: Final = 1 - 1e-12  # covers the roundings of a norm of up to 5 000 rows


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixMechanism:
    """Correlated noise on a stream of contributions: C·G + Z; any B(C·G + Z) is post-processing of it.

    Row t of G is the sum of the users' contributions to step t, vectors clipped to a norm; Z is Gaussian. A user
    contributes at most k times, at least b steps apart, in public steps.

    Attributes:
        name: Name, unique in the declaration.
        encoder: C, the encoder.
        noise_multiplier: Standard deviation of every entry of Z over the clipping norm of the contributions.
        participations: k, equal to the relation's number of trajectories; 1 if users are sampled.
        separation: b, least number of steps between two contributions.
        order: "any", or "fixed" if a user's steps are i, i + b, i + 2b, …: epochs in one order.
        rate: Probability that a user, who belongs to one of b groups, is sampled in each of the group's steps, every
            b-th; None if users are not sampled so.
        bins: Number of steps of a group in an epoch, one of which is drawn for each user, uniformly, independently and
            once: the user is in that step in every epoch. With b = 1 all users are one group. None if users are not put
            in bins.
        fresh: States that its samples are drawn independently of all other releases' samples with the same law.
        users: As in a `Release`.
        source: Reference in the paper.

    Raises:
        DeclarationError: A field has an invalid value, or `participations` or `order` is given for sampled users, or
            both `rate` and `bins`.
    """

    name: str
    encoder: Encoder
    noise_multiplier: Expr
    participations: Expr
    separation: Expr
    order: Order
    rate: Expr | None
    bins: Expr | None
    fresh: bool
    users: str
    source: str

    def __init__(
        self, name: str, *, encoder: Encoder, noise_multiplier: Exact | Expr, participations: Exact | Expr = 1,
        separation: Exact | Expr = 1, order: Order = "any", rate: Exact | Expr | None = None,
        bins: Exact | Expr | None = None, fresh: bool = False, users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        instance("encoder, of MatrixMechanism", encoder, (Encoder,))
        one_of("order, of MatrixMechanism", order, get_args(Order))
        truth("fresh, of MatrixMechanism", fresh)
        if fresh and rate is None and bins is None:
            message = f"MatrixMechanism {name!r}: fresh=True is for samples, but no user is sampled"
            raise DeclarationError(f"{message}; leave it out, or give rate or bins")
        for key, given in {"encoder": encoder, "order": order, "fresh": fresh}.items():
            object.__setattr__(self, key, given)
        amounts = {"noise_multiplier": noise_multiplier, "participations": participations, "separation": separation}
        for key, amount in amounts.items():
            object.__setattr__(self, key, number(f"{key}, of MatrixMechanism", amount))
        object.__setattr__(self, "rate", None if rate is None else number("rate, of MatrixMechanism", rate))
        object.__setattr__(self, "bins", None if bins is None else number("bins, of MatrixMechanism", bins))
        if rate is not None and bins is not None:
            message = f"MatrixMechanism {name!r}: users are sampled in each step, or put in bins"
            raise DeclarationError(f"{message}; leave rate out, or bins")
        if self.sampled and (self.participations != _ONE or order != "any"):
            message = f"MatrixMechanism {name!r}: users are sampled in any step of their group"
            raise DeclarationError(f"{message}; leave participations and order out, or leave rate and bins out")

    @property
    def sampled(self) -> bool:
        """Whether the steps of a user are drawn, and secret."""
        return self.rate is not None or self.bins is not None

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output="encoded contributions with noise",
            latex=rf"C G + Z,\ Z \sim \mathcal{{N}}\left(0,\ {(self.noise_multiplier**2).latex()}\right)",
            law=GaussianNoise.name,
            spread=self.noise_multiplier,
            conditions=self._conditions(),
            symbols=self._symbols(),
            rounds=self.participations,
            schedule="a row at a time",
            preconditions=self._preconditions(),
            source=self.source,
        )

    def _words(self) -> str:
        """Description of the procedure in words."""
        who = f"users in up to {self.participations} steps, {self.separation} apart at least"
        if self.order == "fixed":
            who = f"users in up to {self.participations} steps, {self.separation} apart"
        if self.rate is not None:
            who = f"users of {self.separation} groups, sampled at rate {self.rate} in every {self.separation}-th step"
        if self.bins is not None:
            whose = "users" if same(self.separation, _ONE) else f"users of {self.separation} groups"
            who = f"{whose}, each in one of {self.bins} bins, drawn at random, in every epoch"
        return f"Gaussian, std {self.noise_multiplier} clipping norms, on the {self.encoder.words}; {who}"

    def _preconditions(self) -> tuple[str, ...]:
        """Preconditions on the contributions."""
        steps = "the steps of a user do not depend on the data"
        if self.rate is not None:
            steps = "the group of a user does not depend on the data; the sample's members are kept secret"
        if self.bins is not None:
            steps = "the group of a user does not depend on the data; the users' bins are kept secret"
        return ("every contribution is clipped", steps, "no row is released before the contributions that it encodes")

    def _conditions(self) -> tuple[Condition, ...]:
        """Its numbers, with the condition on each."""
        conditions = [
            Condition(what="its noise multiplier", of=self.noise_multiplier, domain="positive"),
            Condition(what="its participations", of=self.participations, domain="count"),
            Condition(what="the separation of its participations", of=self.separation, domain="count"),
            *self.encoder.conditions,
        ]
        if self.rate is not None:
            conditions.append(Condition(what="its rate", of=self.rate, domain="nonnegative"))
            conditions.append(Condition(what="1 minus its rate", of=1 - self.rate, domain="nonnegative"))
        if self.bins is not None:
            conditions.append(Condition(what="its bins", of=self.bins, domain="count"))
        return tuple(conditions)

    def _symbols(self) -> frozenset[str]:
        """Names of the parameters that occur in it."""
        numbers = (self.noise_multiplier, self.participations, self.separation, self.rate, self.bins)
        return self.encoder.symbols.union(*(one.symbols for one in numbers if one is not None))

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one entry of Z, in units of the clipping norm, rounded up."""
        return self.noise_multiplier.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> MatrixMechanism:
        """Copy with `factor` times the standard deviation of all noise."""
        return replace(self, noise_multiplier=self.noise_multiplier * factor)

    def cost(self, relation: Relation) -> Cost:
        """ρ = Δ²/2σ² and μ² = Δ²/σ², with Δ the encoder's sensitivity, doubled for replacing a user.

        A Gaussian mechanism on C·G; its guarantee also holds if contributions depend on the rows already released
        (Denisov et al. 2022, Theorem 2.1). For sampled users ρ is that of a user in every sample of the group, or in a
        known bin, as Rényi divergences are jointly quasi-convex (van Erven & Harremoës 2014, Theorem 13); the
        amplification by sampling at δ > 0 is computed by the accountant.

        Raises:
            DeclarationError: The relation has another number of contributions, or is not supported here.
        """
        self._check(relation)
        apart = self._move(relation)
        separation = self.separation
        if self.sampled:
            distance = separation if self.bins is None else separation * self.bins
            squares = self.encoder.squares(expression(MOST_STEPS), distance, "fixed") * apart**2
        else:
            squares = self.encoder.squares(self.participations, separation, self.order) * apart**2
        moved = sqrt(squares)
        reason = (
            f"the worst steps of one user in the {self.encoder.words}, in norms of one contribution (ℓ₁: of one entry)"
        )
        theorem = "Gaussian mechanism on C·G, adaptively: Denisov et al. 2022, Theorem 2.1"
        if self.rate is not None:
            theorem = "Gaussian mechanism on C·G; in ρ every user is in all samples of the group"
        if self.bins is not None:
            theorem = "Gaussian mechanism on C·G; in ρ the bin of every user counts as known"
        return Cost(
            sensitivity=Sensitivity(l1=sqrt(self.encoder.rows) * moved, l2=moved, linf=moved, reason=reason),
            charged=moved,
            rho=(squares / (2 * self.noise_multiplier**2)).simplified(),
            pure=None,
            mu_squared=None if self.sampled else (squares / self.noise_multiplier**2).simplified(),
            theorem=theorem,
        )

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """The accountant's event: `matrix_gaussian`, `matrix_poisson_gaussian`, or `matrix_random_allocation`."""
        from privcheck.accounting.events import matrix_gaussian, matrix_poisson_gaussian, matrix_random_allocation

        self._check(relation)
        matrix, std = self.encoder.matrix(values), self.noise_multiplier.number(values, rounding="down")
        apart = int(self.separation.number(values))
        if not matrix.any():
            return ()
        if self.rate is not None:
            q = min(1.0, self.rate.number(values, rounding="up"))
            if q == 0:
                return ()
            name = name_relation(relation)
            return (matrix_poisson_gaussian(encoder=matrix, std=std, rate=q, separation=apart, relation=name),)
        if self.bins is not None:
            bins, name = int(self.bins.number(values)), name_relation(relation)
            return (
                matrix_random_allocation(encoder=matrix, std=std, bins=bins, separation=apart, relation=name),
            )  # fmt: skip
        times = int(self.participations.number(values))
        moved = self._move(relation)
        return (
            matrix_gaussian(
                encoder=matrix, std=std, sensitivity=moved, participations=times, separation=apart, order=self.order
            ),
        )

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """One user's worst steps with one direction in all of them, and nothing, or its opposite, in D′.

        The outputs are then distinguished along C·(1_S): a Gaussian number of known mean. Sampled users are
        distinguished by the steps of their group with the longest column, which share no row; users in bins by their
        bin's effect (`matrix_bins`).
        """
        if not self.encoder.matrix(values).any():
            return ()
        if self.bins is not None:
            return self._pairs_of_bins(self.bins, values)
        found = self._of_group(values) if self.rate is not None else (self._of_steps(values),)
        pairs = []
        for steps, moved, rounds, rate in found:
            std = self.noise_multiplier.number(values, rounding="up")
            shift = moved * _DOWN / std
            against = -shift if isinstance(relation, ReplaceOne) else 0.0
            mixture = Mixture(noise=GaussianNoise(scale=1.0), weights=(1 - rate, rate), shifts=(shift, against))
            shown = ", ".join(map(str, steps[:4])) + (", …" if len(steps) > 4 else "")
            absent = "in D′ its opposite" if against else "in D′ nothing"
            for swapped in (False, True) if rate < 1 else (False,):
                one = replace(mixture, shifts=mixture.shifts[::-1]) if swapped else mixture
                there, other = ("D′", "in D nothing") if swapped else ("D", absent)
                words = f"in {there} the user contributes one vector of the clipping norm in the steps {shown}; {other}"
                pairs.append(
                    KnownPair(
                        words=words if rate == 1 else f"{words}; the user is in each step with probability {rate:.6g}",
                        data=("steps " + shown, None) if not swapped else (None, "steps " + shown),
                        outcomes=one.outcomes(),
                        rounds=rounds,
                        sampler=SampledRounds(mixture=one, rounds=rounds),
                    )
                )
        return tuple(pairs)

    def _pairs_of_bins(self, bins: Expr, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """One user of the group with the largest effects, and nothing, both ways."""
        matrix, std = self.encoder.matrix(values), self.noise_multiplier.number(values, rounding="up")
        b, groups = int(bins.number(values)), int(self.separation.number(values))
        if matrix.shape[1] % (b * groups):
            return ()  # refused where it is priced
        means = matrix.reshape(len(matrix), -1, b, groups).sum(axis=1) / std
        worst = int(np.argmax((means**2).sum(axis=(0, 1))))
        known = Bins(means=np.ascontiguousarray(means[:, :, worst]))
        shown = "" if groups == 1 else f" of the group {worst + 1} of {groups}"
        pairs = []
        for in_first in (True, False):
            there, other = ("D", "in D′ nothing") if in_first else ("D′", "in D nothing")
            words = (
                f"in {there} the user{shown} contributes one vector of the clipping norm in one of {b} bins; {other}"
            )
            data = ("one bin", None) if in_first else (None, "one bin")
            runs = BinRuns(bins=known, in_first=in_first)
            for told, laws in known.outcomes():
                law = laws if in_first else replace(laws, log_p=laws.log_q, log_q=laws.log_p)
                pairs.append(KnownPair(words=f"{words}; {told}", data=data, outcomes=law, sampler=runs))
        return tuple(pairs)

    def _of_steps(self, values: Mapping[str, Fraction]) -> tuple[list[int], float, int, float]:
        """Worst known steps, the norm by which one vector in all of them changes C·G, one round, and rate 1."""
        found = self.encoder.sensitivity(self.participations, self.separation, self.order, values)
        moved = self.encoder.matrix(values)[:, list(found.pattern)] @ np.array(found.signs)
        return [step + 1 for step in found.pattern], float(np.linalg.norm(moved)), 1, 1.0

    def _of_group(self, values: Mapping[str, Fraction]) -> tuple[tuple[list[int], float, int, float], ...]:
        """Steps of one group with the longest column, that column's length, the number of steps, and the rate."""
        assert self.rate is not None
        q, apart = self.rate.number(values), int(self.separation.number(values))
        if q == 0:
            return ()
        norms = np.linalg.norm(self.encoder.matrix(values), axis=0)
        longest = norms >= norms.max() * (1 - _SAME)
        groups = [np.flatnonzero(longest[first::apart]) * apart + first for first in range(min(apart, norms.size))]
        steps = max(groups, key=len)
        return (([int(step) + 1 for step in steps], float(norms[steps].min()), len(steps), q),)

    def _move(self, relation: Relation) -> int:
        """Change by one contribution, in clipping norms."""
        return 2 if isinstance(relation, ReplaceOne) else 1

    def _check(self, relation: Relation) -> None:
        where = f"MatrixMechanism {self.name!r}"
        if self.sampled and isinstance(relation, ReplaceOne):
            message = f"{where}: no dominating pair is known here for {relation.words!r} of sampled users"
            raise DeclarationError(f"{message}; declare AddRemoveOne or ZeroOut")
        if not self.sampled and isinstance(relation, AddRemoveOne):
            message = f"{where}: without one user all later users move up, into other steps"
            raise DeclarationError(f"{message}; declare ZeroOut or ReplaceOne, not AddRemoveOne")
        if not same(self.participations, relation.trajectories):
            message = f"{where}: a user contributes {self.participations} times, but the relation says:"
            message += f" {relation.words}"
            remedy = "declare it with `trajectories=` and the mechanism with `participations=` of one number"
            raise DeclarationError(f"{message}; {remedy}")
