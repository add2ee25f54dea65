"""A grid for the certificate of a numeric composition: a search in floats that its checker need not trust.

Whatever is chosen here, an accepted certificate is true; a poor choice makes its bound loose or its check slow.
Events have the fields of docs/certificates-numeric.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.stopped import noisy_max_delta, stopped_delta

Array = NDArray[np.float64]
Event = Mapping[str, Any]

LOSS_OF_DELTA = 1e-5  # share of delta given away to cut tails and to rounding, each
LEAST_STEPS, MOST_STEPS = 20, 20_000
MOST_CELLS = 40_000  # of all events' grids together; the checker takes some 60 microseconds for each
CELLS = 30  # composed losses span at most some CELLS * steps cells


def numeric_certificate(
    events: Sequence[Event], *, epsilon: Fraction, delta: Fraction, tolerance: float = 5e-5
) -> dict[str, object]:
    """The body of a certificate that ``events`` together are (``epsilon``, ``delta``)-private.

    The checker's bound is above the exact one by a share of about ``tolerance`` of epsilon, so the claim needs that
    much room; half the tolerance takes 1.4 times as long.
    """
    return {
        "events": [dict(event) for event in events],
        "grid": grid_hints(events, epsilon=epsilon, delta=delta, tolerance=tolerance),
        "epsilon": str(epsilon),
        "delta": str(delta),
    }


def grid_hints(
    events: Sequence[Event], *, epsilon: Fraction, delta: Fraction, tolerance: float = 5e-5
) -> dict[str, object]:
    """Steps, digits and trim of a grid.

    Splitting a loss to the ends of its cell of width 1/H adds a variance of about 1/(6 H^2) an event, and epsilon grows
    by about half the share that this adds to the variance of the composed loss.
    """
    merged = [event for event in events if event["law"] != "gaussian" or "rate" in event]
    discretised = sum(int(event["count"]) for event in merged) + (len(merged) < len(events))
    lost = float(delta) * LOSS_OF_DELTA
    measured = [_loss_variance(event, least=lost / discretised) for event in events]
    variance = sum(int(event["count"]) * each for event, (each, _) in zip(events, measured, strict=True))
    most = MOST_CELLS / sum(span for _, span in measured)
    fine = math.sqrt(discretised / (10 * max(variance, 1e-12) * tolerance))
    # a composition of few events is no bell curve: its curve bends within a cell
    steps = max(min(max(fine, 200 / max(float(epsilon), 0.02)), most, MOST_STEPS), LEAST_STEPS)
    products = math.ceil(math.log2(discretised)) + len(events) + 1
    return {
        "steps": str(_aligned(steps, merged)),
        "digits": min(50, math.ceil(math.log10(2 * CELLS * steps * discretised / lost))),
        "trim": f"1/{math.ceil(discretised * products / lost)}",
    }


def _aligned(steps: float, events: Sequence[Event]) -> Fraction:
    """The nearest finer grid on which the first event that has an atom of loss has it at a point.

    An atom within a cell is split to its ends, and of few events the curve bends there and nowhere else.
    """
    for event in events:
        atom = float(Fraction(event.get("epsilon", event.get("ratio", 0))))
        if atom and "rate" not in event:
            cells = max(1, math.ceil(atom * steps))
            # the checker widens its cells: strides 2, 4 ... from 64, 256 ... events on
            stride = 1 << max(0, (int(event["count"]).bit_length() - 5) // 2)
            cells = -(-cells // stride) * stride if cells >= stride else cells
            return max(Fraction(1), Fraction(1 / math.expm1(atom / cells)).limit_denominator(10**9))
    return Fraction(round(steps))


def _loss_variance(event: Event, *, least: float) -> tuple[float, float]:
    """Variance of log(P/Q) under P, where both are positive, and the span of the losses with masses above ``least``.

    By sums over a fine grid for continuous laws.
    """
    p, q = _masses(event)
    rate = float(Fraction(event.get("rate", 1)))
    p = rate * p + (1 - rate) * q
    both = (p > 0) & (q > 0)
    p, q = p[both], q[both]
    loss = np.log(p / q)
    mean = float((p * loss).sum() / p.sum())
    usual = loss[np.maximum(p, q) > least]
    return float((p * (loss - mean) ** 2).sum() / p.sum()), float(np.ptp(usual)) if usual.size else 1.0


def _binomial_masses(trials: int) -> tuple[Array, Array]:
    """Masses of X + 1 and X, X of so many fair coins, within eight deviations."""
    from scipy.special import gammaln

    reach = min(trials, round(trials / 2 + 8 * math.sqrt(trials) + 8))
    x = np.arange(max(0.0, trials - reach), reach + 1.0)
    q = np.exp(gammaln(trials + 1) - gammaln(x + 1) - gammaln(trials - x + 1) - trials * math.log(2))
    return np.append(0.0, q), np.append(q, 0.0)


def _selection_masses(event: Event) -> tuple[Array, Array]:
    """Masses of both laws by loss, from the slopes of the curve of a selection with Gaussian noise."""
    shift = math.sqrt(float(Fraction(event["squared_shift"])))
    losses = np.linspace(0.0, shift * shift / 2 + 9 * shift, 201)

    def curve(loss: float) -> float:
        if event["law"] == "stopped run":
            return stopped_delta(shift, int(event["queries"]), loss)
        return noisy_max_delta(shift, int(event["candidates"]), loss)

    bounds, ratios = np.array([curve(loss) for loss in losses.tolist()]), np.exp(losses)
    above = np.concatenate([[1 - bounds[0]], -np.diff(bounds) / np.diff(ratios), [0.0]])  # Q's mass above each
    q = np.maximum(-np.diff(above), 0.0)
    return q * ratios, q


def _masses(event: Event) -> tuple[Array, Array]:
    """The event's pair as two arrays of masses, before sampling."""
    law = event["law"]
    if law == "discrete":
        p, q = np.array([[float(Fraction(x)) for x in event[side]] for side in ("p", "q")])
        return p, q
    if law in {"randomised response", "approximate"}:
        true = math.exp(min(700.0, float(Fraction(event["epsilon"]))))
        others = int(event.get("values", 2)) - 1
        p = np.array([true, 1.0, max(0, others - 1)]) / (true + others)
        return p, p[[1, 0, 2]]
    if law in {"stopped run", "largest normal", "binomial"}:
        return _binomial_masses(int(event["trials"])) if law == "binomial" else _selection_masses(event)
    if law in {"geometric", "laplace"}:
        whole = law == "geometric"
        distance = int(event["distance"]) if whole else float(Fraction(event["ratio"]))
        scale = float(Fraction(event["epsilon"])) if whole else 1.0
        x: Array = np.arange(-400.0, 401.0 + distance) if whole else np.linspace(-40, 40 + distance, 20_001)
        p, q = (
            np.exp(-scale * abs(x - (0 if whole else distance))),
            np.exp(-scale * abs(x - (distance if whole else 0))),
        )
        return p / p.sum(), q / q.sum()
    mean = math.sqrt(float(Fraction(event["squared_ratio"])))
    weights = [float(Fraction(w)) for w in event.get("weights", (0, 1))]
    share = float(Fraction(event.get("share", 1)))
    x = np.linspace(-9 - mean, 9 + mean * (len(weights) - 1), 20_001)

    def bell(centre: float) -> Array:
        density = np.exp(-((x - centre) ** 2) / 2)
        normal: Array = density / density.sum()
        return normal

    if law == "opposite gaussians":
        return (1 - share) * bell(0) + share * bell(mean), (1 - share) * bell(0) + share * bell(-mean)
    mixed = np.zeros_like(x)
    for k, w in enumerate(weights):
        mixed += w * bell(k * mean)
    return mixed, bell(0)
