"""Fitted exponents: of known power laws, with intervals that cover them, and of nothing that is none."""

import html
import math
import random
import re

import numpy as np
import pytest

import privcheck
from privcheck.cli.printing import describe_sweep
from privcheck.commands.slopes import CONFIDENCE, PowerLaw, fit_power_law, parse_slopes
from privcheck.errors import ParameterError
from privcheck.reports.comparisons import sweep_page
from privcheck.reports.values import Sweep, from_json
from privcheck.runtime.registry import rate

X = (1000.0, 2000.0, 4000.0, 16000.0)
N = 5


def curves(seed, exponent, *, spread=0.25):
    """Returns replicates of y = 3x^b whose mean is exactly that: dependent along a curve, and skewed."""
    rng = np.random.default_rng(seed)
    noise = spread * (rng.standard_normal((N, 1)) + rng.standard_normal((N, len(X))))
    return 3 * np.array(X) ** exponent * np.exp(noise - spread**2)


@pytest.mark.parametrize("exponent", [0.5, -1.0, 2.0])
def test_an_exact_power_law_is_recovered(exponent):
    samples = np.tile(7 * np.array(X) ** exponent, (N, 1))
    found = fit_power_law(X, samples)
    assert found.exponent == pytest.approx(exponent, abs=1e-12)
    assert found.low == pytest.approx(exponent, abs=1e-9) == found.high
    assert found.bend == pytest.approx(1.0)


@pytest.mark.parametrize("exponent", [0.5, -1.0])
def test_the_known_exponent_is_covered_at_the_stated_confidence(exponent):
    """Of 500 sets of curves at least 445 are covered: fewer has probability below 10⁻⁸ where 95 % are."""
    found = [fit_power_law(X, curves(seed, exponent)) for seed in range(500)]
    assert CONFIDENCE == 0.95
    assert sum(one.low <= exponent <= one.high for one in found) >= 445
    assert sum(one.low <= exponent + 1 <= one.high for one in found) < 250  # the intervals are not the whole line


def test_as_a_naive_bootstrap_of_whole_curves():
    """Standard errors of 2 000 resamples differ by 2.2 % at most times: by 15 % with probability below 10⁻¹⁰."""
    samples, rng = curves(1, 0.5), random.Random(2)  # noqa: S311 - a test's resamples
    means = [sum(row[j] for row in samples) / N for j in range(len(X))]
    slopes = []
    for _ in range(2000):
        rows = [samples[rng.randrange(N)] for _ in range(N)]
        shifted = [m + math.sqrt(N / (N - 1)) * (sum(r[j] for r in rows) / N - m) for j, m in enumerate(means)]
        slopes.append(np.polyfit(np.log(X), np.log(shifted), 1)[0])
    reach = 2.7764451052 * np.std(slopes, ddof=1)  # Student's 97.5 % quantile at 4 degrees of freedom
    found = fit_power_law(X, samples)
    assert found.exponent == pytest.approx(np.polyfit(np.log(X), np.log(means), 1)[0])
    assert (found.high - found.low) / 2 == pytest.approx(reach, rel=0.15)


@pytest.mark.parametrize(
    ("x", "samples", "why"),
    [
        ((5.0,), [[1.0], [2.0]], "at least 2 values"),
        ((5.0, 5.0), [[1.0, 1.0], [2.0, 2.0]], "at least 2 values"),
        ((1.0, 2.0), [[1.0, 0.0], [2.0, 0.0]], "the mean is 0 at 2"),
        ((1.0, 2.0), [[1.0, -3.0], [2.0, 1.0]], "the mean is -1 at 2"),
        ((1.0, 2.0), [[1.0, 5.0], [2.0, -1.0], [2.0, -1.0]], "not told from 0 at 2"),
        ((1.0, 2.0), [[1.0, math.inf], [2.0, 1.0]], "not finite"),
    ],
)
def test_nothing_is_fitted_where_there_is_no_power_law(x, samples, why):
    found = fit_power_law(x, np.array(samples))
    assert isinstance(found, str)
    assert why in found


def test_one_replicate_has_an_exponent_and_no_interval():
    found = fit_power_law((1.0, 10.0), np.array([[2.0, 20.0]]))
    assert isinstance(found, PowerLaw)
    assert (found.exponent, found.low, found.high) == (pytest.approx(1.0), None, None)


@pytest.mark.parametrize(
    ("text", "over", "expected"),
    [
        ("H", {"K": ("1", "2")}, "expected a swept parameter, one of K"),
        ("K", {"K": ("5",)}, "at least 2 positive numbers"),
        ("K", {"K": ("0", "5")}, "at least 2 positive numbers"),
        ("log", {"log": ("log2", "ln")}, "at least 2 positive numbers"),
        ("K,K", {"K": ("1", "2")}, "each parameter once"),
        ("K,", {"K": ("1", "2")}, "each parameter once"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_anything_runs(text, over, expected):
    with pytest.raises(ParameterError, match=expected):
        parse_slopes(text, over)


def test_a_sweep_fits_regret_with_and_without_noise_and_their_difference():
    found = privcheck.sweep(
        ["private-ucb-vi-central", "ucb-vi"], over={"K": [40, 80, 160], "epsilon": [1, 10]}, env="riverswim", S=3, H=3,
        replicates=3, slope=["K"],
    )  # fmt: skip
    kinds = [(one.algorithm, dict(one.at), one.of) for one in found.slopes]
    private = [
        ("private-ucb-vi-central", {"epsilon": e}, of) for e in ["1", "10"] for of in ("agent", "twin", "privacy")
    ]
    assert sorted(kinds, key=str) == sorted([*private, ("ucb-vi", {}, "agent")], key=str)
    for one in found.slopes:
        points = [
            p for p in found.points
            if p.algorithm == one.algorithm and all(p.over[name] == value for name, value in one.at.items())
        ]  # fmt: skip
        mean = {
            "agent": [p.regret.mean for p in points],
            "twin": [p.regret.baseline for p in points],
            "privacy": [p.regret.mean - (p.regret.baseline or 0) for p in points],
        }[one.of]
        assert one.means == pytest.approx(mean)
        assert one.values == (40.0, 80.0, 160.0)
        assert (one.exponent is None) == bool(one.not_fitted)
        if one.exponent is not None:
            assert one.exponent == pytest.approx(np.polyfit(np.log(one.values), np.log(mean), 1)[0])
            assert one.low <= one.exponent <= one.high
    theorems = {one.of: one.theorem for one in found.slopes if one.algorithm != "ucb-vi"}
    assert theorems == {"agent": "1/2 without privacy, 0 of privacy", "twin": "1/2", "privacy": "0"}
    assert "--slope K " in found.made_by.command
    for text in (describe_sweep(found), re.sub(r"<[^>]+>", "", sweep_page(found))):
        assert "cost of privacy in regret" in text
        assert "1/2 without privacy, 0 of privacy (Chowdhury & Zhou 2022, Table 1)" in html.unescape(text).replace(
            "\xa0", " "
        )
    assert from_json(Sweep, found.to_dict()).slopes == found.slopes


def test_agents_that_learn_from_data_are_fitted_by_their_gap():
    found = privcheck.sweep(
        ["dp-apvi"], over={"rho": [1, 100]}, env="riverswim", S=3, H=3, n=400, replicates=2, slope=["rho"]
    )
    agent, twin, privacy = found.slopes
    assert {one.quantity for one in found.slopes} == {"gap"}
    assert agent.means == pytest.approx([one.gap.mean for one in found.points])
    assert len(set(twin.means)) == 1  # the twin knows no ρ, and draws nothing
    assert privacy.means == pytest.approx([a - b for a, b in zip(agent.means, twin.means, strict=True)])


def test_a_rate_is_read_from_its_exponents():
    made = rate("Theorem 1", "S 1/2, K 1/2", "K 0, epsilon -1")
    assert (str(made.main["S"]), str(made.privacy["epsilon"]), made.privacy["K"]) == ("1/2", "-1", 0)
