"""Selection: the output is the index of a candidate, not its score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, moved_by_a_user, set_words
from privcheck.declare.relations import Relation
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number, truth
from privcheck.terms.symbols import Exact, Expr, minimum, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

MaxNoise = Literal["laplace", "exponential", "gumbel"]
_GAPS: Final = (0.0, 1.0, 3.0, 10.0, 1e4, 1e7)  # by how many scales the candidate that gains is behind at best
_TURNED: Final = (0.25, 0.5, 0.75)  # at what part of a move the two change places: divergences are largest there
_STDS: Final[Mapping[str, float]] = {"laplace": math.sqrt(2), "exponential": 1.0, "gumbel": math.pi / math.sqrt(6)}
_THEOREMS: Final[Mapping[str, str]] = {
    "laplace": "Dwork & Roth 2014, Claim 3.9: ε = 2Δ/b (Δ/b for monotone scores), however many candidates",
    "exponential": "Ding et al. 2021: permute-and-flip (McKenna & Sheldon 2020, Theorem 1), ε = 2Δ/b or Δ/b",
    "gumbel": "the exponential mechanism (McSherry & Talwar 2007); of range 2Δ/b or Δ/b (Dong, Durfee & Rogers 2020)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMax:
    """Report-noisy-max: every score gets fresh noise, and the index of the largest noisy score is released.

    Attributes:
        name: Name, unique in the declaration.
        noise: Law of the noise: "laplace", "exponential" (one-sided) or "gumbel".
        scale: b, scale of one draw.
        candidates: Number of candidates, 2 or more.
        sensitivity: Δ, the largest change of one score by one trajectory of a user; all scores may change at once. A
            user with up to m trajectories changes it by m·Δ, which is charged.
        monotone: Whether the scores of two neighbours differ in one direction only: counts do under adding or removing
            a user, but not under replacing one.
        gap: Whether the gap between the two largest noisy scores is released too, for Laplace noise.
        users: As in a `Release`.
        source: Reference in the paper.
    """

    name: str
    noise: MaxNoise
    scale: Expr
    candidates: Expr
    sensitivity: Expr
    monotone: bool
    gap: bool
    users: str
    source: str

    def __init__(
        self, name: str, *, noise: MaxNoise, scale: Exact | Expr, candidates: Exact | Expr,
        sensitivity: Exact | Expr = 1, monotone: bool = False, gap: bool = False, users: str = "",
        source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        if noise not in get_args(MaxNoise):
            message = f"noise, of NoisyMax: expected one of {', '.join(map(repr, get_args(MaxNoise)))}, got {noise!r}"
            raise DeclarationError(
                f"{message}; no theorem here covers other noise; for Gaussian noise, GaussianNoisyMax(…)"
            )
        for key, flag in {"monotone": monotone, "gap": gap}.items():
            truth(f"{key}, of NoisyMax", flag)
        if gap and noise != "laplace":
            message = f"gap, of NoisyMax {name!r}: expected Laplace noise with a released gap, got {noise!r}"
            raise DeclarationError(f"{message}; no theorem here covers it, leave the gap out")
        for key, given in {"noise": noise, "monotone": monotone, "gap": gap}.items():
            object.__setattr__(self, key, given)
        for key, amount in {"scale": scale, "candidates": candidates, "sensitivity": sensitivity}.items():
            object.__setattr__(self, key, number(f"{key}, of NoisyMax", amount))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output="the index of the largest noisy score" + (", and its gap to the next" if self.gap else ""),
            latex=self._latex(),
            law=self.noise,
            spread=self.scale,
            conditions=(
                Condition(what="the scale of its noise", of=self.scale, domain="positive"),
                Condition(what="the number of candidates, less one,", of=self.candidates - 1, domain="count"),
                Condition(what="the sensitivity of its scores", of=self.sensitivity, domain="nonnegative"),
            ),
            symbols=self.scale.symbols | self.candidates.symbols | self.sensitivity.symbols,
            preconditions=self._preconditions(),
            source=self.source,
        )

    def _words(self) -> str:
        """Description of the procedure in words."""
        moves = f"each moved by at most {self.sensitivity}" + (", all one way" if self.monotone else "")
        shown = "; the gap to the next is released" if self.gap else ""
        return f"{self.noise} noise of scale {self.scale} on {self.candidates} scores, {moves}{shown}"

    def _latex(self) -> str:
        """Output as a formula."""
        law = {"laplace": r"\mathrm{Lap}", "exponential": r"\mathrm{Exp}", "gumbel": r"\mathrm{Gumbel}"}[self.noise]
        return rf"\mathrm{{argmax}}_i\ \left(u_i + {law}\left({self.scale.latex()}\right)\right)"

    def _preconditions(self) -> tuple[str, ...]:
        """Preconditions on the scores."""
        one_way = ("between neighbours all scores move one way",) if self.monotone else ()
        return (f"one trajectory of a user moves each score by at most {self.sensitivity}", *one_way)

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one draw, rounded up."""
        return math.nextafter(self.scale.number(values, rounding="up") * _STDS[self.noise], math.inf)

    def with_std(self, factor: Fraction) -> NoisyMax:
        """Copy with `factor` times the standard deviation of all noise."""
        return replace(self, scale=self.scale * factor)

    def cost(self, relation: Relation) -> Cost:
        """Cost ε = 2mΔ/b, half of it for monotone scores, and ρ = min(ε²/2, ε), for Gumbel noise ε²/8.

        Lemma free-gap-of-maximum: The gap between the two largest noisy scores adds nothing to the price. Source: Ding,
        Wang, Xiao, Wang, Zhang & Kifer 2021. Proof: given the noise of all others, whose largest noisy score is M, the
        winner i with gap g has the density of its noise at M + g − uᵢ, g ≥ 0; a neighbour moves that place by at most
        2Δ, by Δ if all scores change in one direction.

        ε-DP is min(ε²/2, ε)-zCDP (Bun & Steinke 2016, Proposition 1.4), an ε-bounded range ε²/8 (Cesar & Rogers 2021).
        """
        moved, m = moved_by_a_user(self.sensitivity, relation), self.candidates
        pure = ((1 if self.monotone else 2) * moved / self.scale).simplified()
        rho = pure**2 / 8 if self.noise == "gumbel" else minimum(pure**2 / 2, pure)
        reason = f"each of {m} scores moves by at most {moved}" + (", one way only" if self.monotone else "")
        return Cost(
            sensitivity=Sensitivity(l1=m * moved, l2=sqrt(m) * moved, linf=moved, reason=reason),
            charged=moved,
            rho=rho,
            pure=pure,
            mu_squared=None,
            theorem=_THEOREMS[self.noise] + ("; the gap is free (Ding et al. 2021)" if self.gap else ""),
        )

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """The accountant's `noisy_max` event, with a gap beside the index `pure`; empty if no user changes a score."""
        from privcheck.accounting.events import noisy_max, pure

        moved = moved_by_a_user(self.sensitivity, relation).number(values, rounding="up")
        if moved == 0:
            return ()
        scale = self.scale.number(values, rounding="down")
        if self.gap:  # no longer one of finitely many answers: only the ratio of densities is bounded
            return (pure(epsilon=math.nextafter((1 if self.monotone else 2) * moved / scale, math.inf)),)
        return (noisy_max(noise=self.noise, scale=scale, sensitivity=moved, monotone=self.monotone),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Two candidates ahead of all others, one of which gains on the other, from increasing distances behind."""
        moved = moved_by_a_user(self.sensitivity, relation).number(values, rounding="down")
        scale = self.scale.number(values, rounding="up")
        if moved == 0:
            return ()
        more = int(self.candidates.number(values)) - 2
        others = f"; the other {more} are far behind" if more else ""
        pairs = []
        apart = moved / scale if self.monotone else 2 * moved / scale
        for gap in (*_GAPS, *(-part * apart for part in _TURNED)):
            second = np.array([-gap * scale, 0.0])
            first = second + np.array([-moved, 0.0 if self.monotone else moved])
            # far behind and one further have to be told apart
            shown = [f"({', '.join(f'{x:.12g}' for x in scores)})" for scores in (first, second)]
            law = _TwoLaw(noise=self.noise, scale=scale)
            outcomes = [law.log_masses(float(scores[0] - scores[1])) for scores in (first, second)]
            for i, j in ((0, 1), (1, 0)):
                pairs.append(
                    KnownPair(
                        words=f"in D the two best scores are {shown[i]}; in D′ {shown[j]}{others}",
                        data=(shown[i], shown[j]),
                        outcomes=Outcomes(log_p=outcomes[i], log_q=outcomes[j]),
                        sampler=SelectionRuns(
                            law=law,
                            scores=(tuple((first, second)[i].tolist()), tuple((first, second)[j].tolist())),
                            log_ratios=tuple((outcomes[i] - outcomes[j]).tolist()),
                        ),
                    )
                )
        return tuple(pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TwoLaw:
    """Law of the winner of two candidates."""

    noise: MaxNoise
    scale: float

    def log_masses(self, ahead: float) -> Array:
        """Compute ln P that each wins, with the first `ahead` of the second: two noises differ by more than t > 0.

        Laplace e^{−t/b}(2 + t/b)/4, exponential e^{−t/b}/2, Gumbel 1/(1 + e^{t/b}): a difference of two Gumbel draws is
        logistic.
        """
        t = abs(ahead) / self.scale
        if self.noise == "gumbel":
            behind = -float(np.logaddexp(0.0, t))
        else:
            behind = -t + (float(np.log((2 + t) / 4)) if self.noise == "laplace" else float(np.log(0.5)))
        leading = float(np.log1p(-np.exp(behind)))
        return np.array([leading, behind] if ahead >= 0 else [behind, leading])

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draw noise of the shape."""
        draw = {"laplace": rng.laplace, "gumbel": rng.gumbel}.get(self.noise)
        return rng.exponential(self.scale, shape) if draw is None else draw(0.0, self.scale, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRuns:
    """Runs of the selection on two candidates, scored by the ratio of the winner's probabilities."""

    law: _TwoLaw
    scores: tuple[tuple[float, ...], tuple[float, ...]]
    log_ratios: tuple[float, ...]

    @property
    def numbers(self) -> int:
        """One per candidate."""
        return len(self.log_ratios)

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        held = np.where(on_first[:, np.newaxis], *(np.array(scores) for scores in self.scores))
        noisy = held + self.law.draw(rng, (on_first.size, 2))
        ratios: Array = np.array(self.log_ratios)[noisy.argmax(axis=1)]
        return ratios
