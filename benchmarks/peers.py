"""Other testers of black boxes, asked about the same functions; blackbox.py asks those that are installed.

* jax-privacy: `CanaryScoreAuditor.epsilon_clopper_pearson` over all thresholds with its Bonferroni correction; for
  claims of Gaussian DP `epsilon_from_gdp`.
* dp_auditorium, Google's: `HistogramTester` with 20 bins, and `HockeyStickPropertyTester` with its default model and
  training (TensorFlow). It is not on PyPI: its folder of google/differential-privacy has to be on the path.

They test a claim of (ε, δ). One of zCDP or Gaussian DP is handed to them as the ε that it implies at δ = .01. The first
two take one number a run, and learn none: they are given the sum of an output's numbers, and its first number, each at
half of α. The last is given all numbers, standardised by the first tenth of the runs. All of them share α among
directions, scores and pairs. Outputs that are no numbers are written as numbers first: a text by the numbers in it and
its length, None, NaN, infinity, an exception and a missing place by one number each, a dict by its keys' hashes and its
values.
"""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Mapping
from importlib.util import find_spec
from types import GeneratorType

import numpy as np

from privcheck import ApproxDP, GaussianDP, PureDP
from privcheck.accounting.engine.gdp import gdp_epsilon

DELTA = 0.01  # at which claims of zCDP and GDP are tested
BINS = 20
NONE, ERROR, MISSING = -1e3, -2e3, -3e3


def numbers(output):
    """Returns an output as a list of numbers."""
    if isinstance(output, str):
        return [*map(float, re.findall(r"-?\d+\.?\d*", output)), float(len(output))]
    if isinstance(output, Mapping):
        return [x for key, value in output.items() for x in (zlib.crc32(str(key).encode()) % 997, *numbers(value))]
    if hasattr(output, "itertuples"):  # a frame: its index is the first number of a row
        output = [value for row in output.itertuples() for value in row]
    if isinstance(output, list | tuple | GeneratorType):
        return [x for value in output for x in numbers(value)]
    if isinstance(output, Exception):
        return [ERROR]
    return [NONE if output is None or not math.isfinite(output) else float(output)]


def outputs(given, dataset, runs, rng):
    """Returns one list of numbers a run."""

    def once():
        try:
            return given.run(dataset, rng)
        except Exception as error:  # noqa: BLE001  what it raises is an output
            return error

    if given.run.__code__.co_argcount == 2:
        return [numbers(once()) for _ in range(runs)]
    return np.asarray(given.run(dataset, runs, rng), dtype=np.float64).reshape(runs, -1)


def table(given, pair, runs, seed):
    """Returns the outputs on D and on D′, each (runs, columns)."""
    both = [
        outputs(given, dataset, runs, rng)
        for dataset, rng in zip(pair, np.random.default_rng(seed).spawn(2), strict=True)
    ]
    width = max(len(row) for rows in both for row in rows)
    return [
        np.array([[*row, *[MISSING] * (width - len(row))] for row in rows]) if isinstance(rows, list)
        else np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=MISSING)
        for rows in both
    ]  # fmt: skip


def approximate(claim):
    """Returns the (ε, δ) that a claim implies."""
    if isinstance(claim, PureDP):
        return claim.epsilon.number(rounding="up"), 0.0
    if isinstance(claim, ApproxDP):
        return claim.epsilon.number(rounding="up"), claim.delta.number(rounding="up")
    if isinstance(claim, GaussianDP):
        return gdp_epsilon(claim.mu.number(rounding="up"), DELTA), DELTA
    orders = np.linspace(1.001, 60, 100_000)  # Canonne, Kamath & Steinke 2020, Corollary 13
    rho = claim.rho.number(rounding="up")
    return float((rho * orders + np.log(1 / (orders * DELTA)) / (orders - 1) + np.log1p(-1 / orders)).min()), DELTA


def scores(first, second):
    """Returns one number a run, in one way or two, on D and on D′."""
    sums = first.sum(axis=1), second.sum(axis=1)
    return [sums] if first.shape[1] == 1 else [sums, (first[:, 0], second[:, 0])]


def jax_privacy(first, second, claim, *, alpha):
    from jax_privacy.auditing import CanaryScoreAuditor

    epsilon, delta = approximate(claim)
    ways = [(sign * x, sign * y) for x, y in scores(first, second) for sign in (1, -1)]
    for inside, outside in ways:
        auditor = CanaryScoreAuditor(inside, outside)
        if isinstance(claim, GaussianDP):
            found = auditor.epsilon_from_gdp(alpha / len(ways), delta)
        else:
            found = auditor.epsilon_clopper_pearson(alpha / len(ways), delta, one_sided=False)
        if found > epsilon:
            return True
    return False


def histogram(first, second, claim, *, alpha):
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers.histogram_tester import HistogramTester

    epsilon, delta = approximate(claim)
    if not epsilon:
        return False
    ways = [way for x, y in scores(first, second) for way in ((x, y), (y, x))]
    pilot = first.shape[0] // 10
    for x, y in ways:
        low, high = np.quantile(np.concatenate([x[:pilot], y[:pilot]]), [0.001, 0.999])
        config = property_tester_config.HistogramPropertyTesterConfig(
            test_discrete_mechanism=False, histogram_size=BINS, min_value=low - 1e-9, max_value=high + 1e-9,
            approximate_dp=privacy_property.ApproximateDp(epsilon=epsilon, delta=delta),
        )  # fmt: skip
        tester = HistogramTester(config)
        if tester.reject_property(tester.estimate_lower_bound(x[pilot:], y[pilot:], alpha / len(ways))):
            return True
    return False


def hockey_stick(first, second, claim, *, alpha):
    os.environ.update(TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3")
    import tensorflow as tf
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers import hockey_stick_tester

    epsilon, delta = approximate(claim)
    if not epsilon:
        return False
    tf.keras.utils.set_random_seed(0)
    pilot = first.shape[0] // 10
    some = np.concatenate([first[:pilot], second[:pilot]])
    first, second = (
        (rows[pilot:] - some.mean(axis=0)) / np.maximum(some.std(axis=0), 1e-6) for rows in (first, second)
    )
    for x, y in ((first, second), (second, first)):
        config = property_tester_config.HockeyStickPropertyTesterConfig(
            training_config=hockey_stick_tester.make_default_hs_training_config(),
            approximate_dp=privacy_property.ApproximateDp(epsilon=epsilon, delta=delta),
        )
        model = hockey_stick_tester.make_default_hs_base_model()
        tester = hockey_stick_tester.HockeyStickPropertyTester(config, model)
        if tester.reject_property(tester.estimate_lower_bound(x, y, alpha / 2)):
            return True
    return False


TESTERS = {
    "jax-privacy": (jax_privacy, ("jax_privacy",)),
    "dp_auditorium, histogram": (histogram, ("dp_auditorium",)),
    "dp_auditorium, hockey-stick": (hockey_stick, ("dp_auditorium", "tensorflow")),
}


def installed(name):
    """Returns whether all that a tester needs can be imported."""
    return all(find_spec(module) is not None for module in TESTERS[name][1])


def accuses(name, given, *, trials, seed, confidence=0.99):
    """Returns whether a tester rejects a function's claim on one of its pairs, with `trials` runs on each neighbour."""
    alpha = (1 - confidence) / len(given.pairs)
    return any(
        TESTERS[name][0](*table(given, pair, trials, seed), given.claim, alpha=alpha) for pair in given.pairs
    )  # fmt: skip
