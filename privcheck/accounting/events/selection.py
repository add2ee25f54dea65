"""Selection: only the index of a candidate, or of the first queries above a threshold, is released, not the scores.

Each score may change by Δ, all at once. Scores are *monotone* where, between any two neighbours, all change in the same
direction: counts under adding or removing a user, not under replacing one. Then half the noise is enough; by default
scores are not assumed monotone. A scale without a sensitivity is in units of Δ, under any relation.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from privcheck.accounting.engine.bounded import BoundedRange
from privcheck.accounting.engine.discrete import response_law
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import GaussianLaw, LostLaw
from privcheck.accounting.events.base import LEAST, Event, Piece, event, keep_fractions, ratio
from privcheck.accounting.reals import Real, real, whole
from privcheck.errors import ParameterError

_UP: Final = 1 + 1e-14  # what the probability of passing a threshold may round
_PURE: Final = "selection charged as pure DP"
_LAPLACE: Final = "selection charged as one Laplace value"  # each pair attains one point of that curve
_RANGE: Final = "bounded range charged by a pair above all"  # attained by one release alone, not beside others
_MOST: Final = 1e4  # ε of a selection: beyond it nothing is left to protect


def bounded_range(*, epsilon: Real, count: Real = 1) -> Event:
    """Mechanism of bounded range η: ln P/Q of two neighbours varies by at most η over the outputs.

    It is η-DP, and every exponential mechanism is of bounded range (Durfee & Rogers 2019). It is charged by the pair
    that dominates all such mechanisms, so adaptively chosen ones compose too: δ = (e^{η/2} − e^{ε/2})²/(e^η − 1) for
    one release, attained.

    Args:
        epsilon: η in nats.
        count: Number of releases, adaptively composed.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.bounded_range(epsilon=0.1, count=20)).epsilon(delta=1e-6).value, 4)
    1.0141
    """
    eta = real("epsilon", epsilon, strict=False, most=_MOST)
    return keep_fractions(
        event("bounded_range", _range(eta), count, _RANGE, epsilon=eta, relation=None), epsilon=epsilon
    )


def exponential_mechanism(*, epsilon: Real, monotone: bool = False, count: Real = 1) -> Event:
    """Exponential mechanism: y with probability ∝ exp(ε·u(y)/2Δ) (McSherry & Talwar 2007).

    It has range ε, and ε/2 where the scores u are monotone (Dong, Durfee & Rogers 2020).

    Args:
        epsilon: ε as in the formula, whether or not the scores are monotone.
        monotone: Whether the scores of two neighbours differ in one direction only.
        count: Number of releases, adaptively composed.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.exponential_mechanism(epsilon=0.1, count=20)).epsilon(delta=1e-6).value, 4)
    1.0141
    """
    e, one_way = real("epsilon", epsilon, strict=False, most=_MOST), _flag(monotone)
    return keep_fractions(
        event(
            "exponential_mechanism",
            _range(e / 2 if one_way else e),
            count,
            _RANGE,
            epsilon=e,
            monotone=one_way,
            relation=None,
        ),
        epsilon=epsilon,
    )


def permute_and_flip(*, epsilon: Real, monotone: bool = False, count: Real = 1) -> Event:
    """Permute-and-flip: candidates in random order, each taken with probability exp(ε(u − max u)/2Δ).

    It is ε-DP, ε/2-DP for monotone scores (McKenna & Sheldon 2020), and not of bounded range. Its law is that of
    report-noisy-max with exponential noise of scale 2Δ/ε (Ding et al. 2021), and it costs what that does (`noisy_max`).

    Args:
        epsilon: ε as in the formula.
        monotone: Whether the scores of two neighbours differ in one direction only.
        count: Number of releases, adaptively composed.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.permute_and_flip(epsilon=0.1, count=20)).epsilon(delta=1e-6).value, 4)
    1.774
    """
    e, one_way = real("epsilon", epsilon, strict=False, most=_MOST), _flag(monotone)
    pieces = _laplace(e / 2 if one_way else e)
    return keep_fractions(
        event("permute_and_flip", pieces, count, _LAPLACE, epsilon=e, monotone=one_way, relation=None),
        epsilon=epsilon,
    )


def noisy_max(
    *,
    noise: Literal["laplace", "exponential", "gumbel"],
    scale: Real,
    sensitivity: Real = 1,
    monotone: bool = False,
    count: Real = 1,
) -> Event:
    """Report-noisy-max: the index of the largest score after noise, and nothing else.

    Lemma noisy-max: The index of the largest score after Laplace noise of scale b on scores of sensitivity Δ is
    2Δ/b-DP, for monotone scores Δ/b. Source: Dwork & Roth 2014, Claim 3.9.

    Exponential noise is permute-and-flip (Ding et al. 2021), Gumbel noise the exponential mechanism with ε = 2Δ/b.

    Lemma noisy-max-laplace: With Laplace or exponential noise of scale b the index is dominated by one Laplace value of
    a = 2Δ/b, Δ/b for monotone scores, in every composition. Proof: let S be a set of indices, and T the largest noisy
    score outside S less the largest inside, in units of b. With the neighbour's scores and the same noise, T grows by
    at most a (by Δ/b, if all scores move one way). So S has probabilities B = P(T < 0) and at least A = P(T < −a).
    Scores of independent noise whose tails fall no faster than e^−x, P(x > t + s) ≥ e^−s·P(x > t) for s ≥ 0, have a
    largest one of that kind: differentiate 1 − ∏(1 − pᵢ), pᵢ = P(score i > t); its slope is at least minus the
    probability that exactly one of independent events of probabilities pᵢ happens, and it is the probability that any
    does. Hence P(T ≥ x) ≥ e^−(x − y)·P(T ≥ y) and P(T < y) ≥ e^−(x − y)·P(T < x) for y ≤ x. With m the median of T: if
    m ≥ 0, A ≥ e^−a·B; if m ≤ −a, 1 − B ≥ e^−a·(1 − A); else A ≥ ½e^−(m + a) and 1 − B ≥ ½e^m, so that A(1 − B) ≥
    ¼e^−a. In each case (A, B) is on or below the trade-off curve of two Laplace values a apart, which is these three
    lines. Attained by two candidates, at one point of the curve by each distance between their scores.

    Args:
        noise: Law of the noise.
        scale: b, the scale of one draw.
        sensitivity: Δ, the largest change of one score.
        monotone: Whether the scores of two neighbours differ in one direction only.
        count: Number of releases, adaptively composed.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.noisy_max(noise="gumbel", scale=20, count=20)).epsilon(delta=1e-6).value, 4)
    1.0141
    """
    if noise not in ("laplace", "exponential", "gumbel"):
        message = f"expected noise 'laplace', 'exponential' or 'gumbel', got {noise!r}"
        raise ParameterError(f"{message}; no theorem here covers other noise", name="noise", given=noise)
    b, moved, one_way = real("scale", scale), real("sensitivity", sensitivity, strict=False), _flag(monotone)
    e = _refuse_hardly_any_noise(ratio("noisy_max", moved, b) * (1 if one_way else 2), "scale", scale)
    given: dict[str, float | str] = {"noise": noise, "scale": b, "sensitivity": moved, "monotone": one_way}
    if noise == "gumbel":
        return keep_fractions(
            event("noisy_max", _range(e), count, _RANGE, **given, relation=None), scale=scale, sensitivity=sensitivity
        )
    return keep_fractions(
        event("noisy_max", _laplace(e), count, _LAPLACE, **given, relation=None), scale=scale, sensitivity=sensitivity
    )


def above_threshold(
    *,
    threshold_scale: Real,
    query_scale: Real,
    sensitivity: Real = 1,
    positives: Real = 1,
    monotone: bool = False,
    count: Real = 1,
) -> Event:
    """Sparse vector technique: which queries exceed a noisy threshold, until c of them have.

    Lemma above-threshold: One threshold with Laplace noise for all c positives, fresh Laplace noise for every query: ε₁
    + ε₂ with ε₁ = Δ/(threshold's scale) and ε₂ = 2cΔ/(queries' scale), for monotone queries cΔ/(queries' scale).
    Source: Lyu, Su & Li 2017, Theorems 4 and 5.

    The number of queries below does not matter. Where the threshold is redrawn after every positive, give `positives=1,
    count=c`. Numbers released beside the answers are separate events. Gaussian noise has no event here: its curve
    depends on the number of queries, and `declare.procedures.GaussianSparseVector` gives it as points.

    Args:
        threshold_scale: Laplace scale of the threshold's noise.
        query_scale: Laplace scale of every query's noise.
        sensitivity: Δ of every query.
        positives: c, the number of positives after which the run stops.
        monotone: Whether the queries of two neighbours differ in one direction only.
        count: Number of such runs, adaptively composed.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.above_threshold(threshold_scale=10, query_scale=20)).epsilon(delta=1e-6).value, 4)
    0.2
    """
    first, second = real("threshold_scale", threshold_scale), real("query_scale", query_scale)
    moved, c, one_way = real("sensitivity", sensitivity, strict=False), whole("positives", positives), _flag(monotone)
    least = ratio("above_threshold", moved, first)
    rest = ratio("above_threshold", moved, second) * c * (1 if one_way else 2)
    e = _refuse_hardly_any_noise(
        math.nextafter(least + rest, math.inf) if moved > 0 else 0.0, "query_scale", query_scale
    )
    given = {"threshold_scale": first, "query_scale": second, "sensitivity": moved, "positives": c, "monotone": one_way}
    return keep_fractions(
        event("above_threshold", _pure(e), count, _PURE, **given, relation=None),
        threshold_scale=threshold_scale,
        query_scale=query_scale,
        sensitivity=sensitivity,
    )


def laplace_histogram(*, scale: Real, threshold: Real, contribution: Real, keys: Real, count: Real = 1) -> Event:
    """Histogram over keys unknown beforehand: Laplace noise, and only noisy values from τ on are shown.

    Lemma unknown-keys: Each of the user's keys, charged both as Laplace noise and as lost with probability ½e^{−(τ −
    m)/b}, is an upper bound. Source: Korolova, Kenthapadi, Mishra & Ntoulas 2009. Proof: keys without data draw no
    noise, so a key that only one user holds is shown with that probability, and then reveals the user; the keys that
    others hold cost the same as Laplace noise.

    Args:
        scale: b.
        threshold: τ, compared with the noisy value.
        contribution: m, the largest contribution of one user to one key.
        keys: Largest number of keys that change under the declared relation: under adding or removing a user the user's
            keys, under replacing one twice as many.
        count: Number of such histograms.

    Raises:
        ParameterError: A number is out of range, or the threshold shows every key.

    >>> from privcheck import accounting as acc
    >>> event = acc.laplace_histogram(scale=2, threshold=40, contribution=1, keys=1)
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 4)
    0.5
    """
    b, m, k = real("scale", scale), real("contribution", contribution), whole("keys", keys)
    limit = real("threshold", threshold)
    relative = ratio("laplace_histogram", m, b)
    above = (limit - m) / b
    shown = math.exp(-above) / 2 if above >= 0 else 1 - math.exp(above) / 2
    pieces: list[tuple[Piece, int]] = [(LaplaceLaw(relative), k), _charge_shown(shown, k, threshold)]
    given = {"scale": b, "threshold": limit, "contribution": m, "keys": k}
    return event("laplace_histogram", pieces, count, "every key charged as shared and as new", **given, relation=None)


def gaussian_histogram(*, std: Real, threshold: Real, contribution: Real, keys: Real, count: Real = 1) -> Event:
    """Histogram over keys unknown beforehand: Gaussian noise, and only noisy values from τ on are shown.

    As `laplace_histogram`, with probability Φ((m − τ)/σ) of showing a key that only one user holds (Google's
    differential privacy team 2020, "Delta for thresholding"); the keys that others hold are one Gaussian release of
    sensitivity m√k.

    Args:
        std: σ.
        threshold: τ, compared with the noisy value.
        contribution: m, the largest contribution of one user to one key.
        keys: k, the largest number of keys that change under the declared relation, as in `laplace_histogram`.
        count: Number of such histograms.

    Raises:
        ParameterError: A number is out of range, or the threshold shows every key.

    >>> from privcheck import accounting as acc
    >>> event = acc.gaussian_histogram(std=5, threshold=40, contribution=1, keys=1)
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 4)
    0.8341
    """
    from scipy.special import ndtr

    s, m, k = real("std", std), real("contribution", contribution), whole("keys", keys)
    limit = real("threshold", threshold)
    relative = ratio("gaussian_histogram", m, s)
    lost = _charge_shown(float(ndtr((m - limit) / s)), k, threshold)
    given = {"std": s, "threshold": limit, "contribution": m, "keys": k}
    pieces: list[tuple[Piece, int]] = [(GaussianLaw(relative * relative * k), 1), lost]
    return event("gaussian_histogram", pieces, count, "every key charged as shared and as new", **given, relation=None)


def _range(eta: float) -> list[tuple[Piece, int]]:
    return [(BoundedRange(max(eta, LEAST)), 1)] if eta > 0 else []


def _laplace(epsilon: float) -> list[tuple[Piece, int]]:
    return [(LaplaceLaw(max(epsilon, LEAST)), 1)] if epsilon > 0 else []


def _pure(epsilon: float) -> list[tuple[Piece, int]]:
    return [(response_law(max(epsilon, LEAST), 2), 1)] if epsilon > 0 else []


def _refuse_hardly_any_noise(epsilon: float, name: str, given: object) -> float:
    if epsilon > _MOST:
        message = f"expected an ε of at most {_MOST:g} for one selection, got {epsilon:g}: the noise is too small"
        raise ParameterError(message, name=name, given=given)
    return epsilon


def _flag(monotone: object) -> bool:
    if not isinstance(monotone, bool):
        raise ParameterError(f"expected monotone=True or False, got {monotone!r}", name="monotone", given=monotone)
    return monotone


def _charge_shown(probability: float, keys: int, threshold: object) -> tuple[Piece, int]:
    """Upper bound on the probability that any of `keys` keys is revealed, as a δ term."""
    probability_of_any = -math.expm1(keys * math.log1p(-min(probability * _UP, 1 - 2.0**-53))) * _UP
    if probability_of_any >= 0.5:
        message = (
            f"expected a threshold that shows a user's own keys with probability below ½, got {probability_of_any:.3g}"
        )
        raise ParameterError(f"{message}: raise it", name="threshold", given=threshold)
    return LostLaw(probability_of_any), 1
