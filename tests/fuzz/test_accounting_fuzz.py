"""Random jobs for the accountant, judged by oracles of their own; and the oracles against 50-digit arithmetic.

Seeds are fixed, so that nothing here depends on chance. `make fuzz` asks 5 000 jobs.
"""

from __future__ import annotations

import re
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from accounting import lattice
from accounting.checks import check
from accounting.dense import BoundedRange, Gauss, Laplace, Sampled
from accounting.discrete import response
from accounting.jobs import Job, build, jobs
from accounting.kinds import KINDS
from accounting.known import KNOWN
from accounting.normal import Long, below, gaussian_delta
from accounting.parts import RELATION, Part
from accounting.truths import DIRECTIONS
from accounting.worlds import World

MISTAKES = ("below", "crash", "warning", "hang", "inconsistent", "vectorised")
SMOOTH = {  # kinds whose oracle needs a lattice in most pairs
    "poisson_gaussian",
    "tree",
    "laplace",
    "zcdp",
    "bounded_range",
    "exponential_mechanism",
    "noisy_max",
    "laplace_histogram",
    "mixture_of_gaussians",
    "shuffled",
    "privacy_profile",
    "trade_off",
    "renyi_curve",
}


QUICK = tuple(kind for kind in KINDS if kind not in SMOOTH)


def mistakes(chosen, *questions):
    """Returns what is below the truth, inconsistent, crashes or warns; lattices are coarse here, to be fast."""
    reports = (check(job, frozenset(questions), finest=1) for job in chosen)
    return [f for report in reports for f in report.findings if f.sort.startswith(MISTAKES)]


def test_forty_random_jobs():
    assert not mistakes(jobs(40, 7, QUICK), "delta", "same")


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.nightly) for part in (1, 2, 3))])
def test_random_jobs_of_all_kinds(part):
    assert not mistakes((job for job in jobs(260, 11) if job.number % 4 == part), "delta", "same")


@pytest.mark.every_change
@pytest.mark.slow
def test_jobs_that_were_once_wrong():
    assert not mistakes(KNOWN, "delta", "same", "power")


def as_mpf(x):
    return mp.mpf(np.format_float_scientific(Long(x), precision=25))


def test_the_oracles_import_nothing_of_privcheck():
    asking = {"__main__", "asking", "checks", "comparing", "jobs", "judging", "known", "tables"}
    oracles = [p for p in (Path(__file__).parent / "accounting").glob("*.py") if p.stem not in asking]
    assert len(oracles) > 8
    for path in oracles:
        imported = re.findall(r"^(?:from|import) (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert not [name for name in imported if name.startswith("privcheck") or name.lstrip(".") in asking], path


@pytest.mark.parametrize("x", [-40.0, -12.5, -5.0, -2.8, -1.3, -0.4, 0.0, 0.7, 3.0])
def test_the_normal_law_has_17_digits(x):
    with mp.workdps(50):
        assert abs(as_mpf(below([x])[0]) / mp.ncdf(x) - 1) < 2e-17 * (1 + x * x)


@pytest.mark.parametrize(
    ("mu", "e"), [(1.0, 0.5), (1e-3, 1e-3), (5.0, 20.0), (151.0, 11828.0), (1.0, -3.0), (0.125, 2)]
)
def test_the_gaussian_curve_lies_within_its_error(mu, e):
    with mp.workdps(60):
        m, at = mp.mpf(mu), mp.mpf(e)
        truth = mp.ncdf(m / 2 - at / m) - mp.exp(at) * mp.ncdf(-m / 2 - at / m)
        value, error = gaussian_delta(Long(mu), np.array([e]))
        assert abs(as_mpf(value[0]) - truth) <= as_mpf(error[0])
        assert error[0] < 1e-9 * value[0]


DENSE = {
    "gaussian": Gauss(Long(0.7)),
    "laplace": Laplace(Long(0.9)),
    "sampled": Sampled(Long(1.3), Long(0.2), add=False),
    "sampled, add": Sampled(Long(1.3), Long(0.2), add=True),
    "bounded range": BoundedRange(Long(1.1)),
}


@pytest.mark.parametrize("name", DENSE)
def test_both_lattices_of_a_law_enclose_its_closed_form(name):
    law = DENSE[name]
    for step in (Long(0.05), Long(0.0031)):
        for e in (-0.5, 0.0, 0.1, 0.6, 1.05):
            truth = float(law.deltas(np.array([e], dtype=Long))[0][0])
            low, high = lattice.Sum([(lattice.under(law, step), 1)]), lattice.Sum([(lattice.above(law, step), 1)])
            (least, slack), (most, more) = (s.deltas(np.array([e], dtype=Long), 0.0) for s in (low, high))
            assert least[0] - slack[0] <= truth <= most[0] + more[0] + high.infinite
            assert most[0] - least[0] < 0.6 * step


@pytest.mark.parametrize("count", [2, 3])
def test_a_composition_lies_between_its_bounds(count):
    """Gaussians are one Gaussian; without that they are put on the lattice one by one."""
    one = Gauss(Long(0.4))
    truth = float(gaussian_delta(Long(0.4) * np.sqrt(Long(count)), np.array([0.3]))[0][0])
    step = Long(0.002)
    low = lattice.Sum([(lattice.under(one, step), count)])
    high = lattice.Sum([(lattice.above(one, step), count)])
    for c in (0.0, 1.0, 4.0):
        (least, slack), (most, more) = (s.deltas(np.array([0.3], dtype=Long), c) for s in (low, high))
        assert least[0] - slack[0] <= truth <= most[0] + more[0] + high.infinite
        assert most[0] < truth * 1.0001
        assert least[0] > truth * 0.99


def test_laplace_and_response_by_quadrature():
    """A Laplace loss has atoms at ±a and density e^{(l − a)/2}/4; the response shifts it by ±ε."""
    a, e0, e = 0.8, 0.3, 0.5
    with mp.workdps(30):

        def one(at):
            atoms = mp.mpf("0.5") * max(0, 1 - mp.exp(at - a)) + mp.exp(-a) / 2 * max(0, 1 - mp.exp(at + a))
            low = max(-a, min(a, at))
            return atoms + mp.quad(lambda s: (1 - mp.exp(at - s)) * mp.exp((s - a) / 2) / 4, [low, a])

        p = 1 / (1 + mp.exp(-mp.mpf(e0)))
        truth = p * one(mp.mpf(e) - e0) + (1 - p) * one(mp.mpf(e) + e0)
    low, high = World([(Laplace(Long(a)), 1), (response(e0), 1)]).bounds(e)
    assert float(low) <= float(truth) * (1 + 1e-15)
    assert float(truth) <= float(high) * (1 + 1e-15)
    assert high - low < 1e-15


UNLIKE = {
    "gaussian": ({"std": 3.0}, {"std": 3.06}),
    "laplace": ({"scale": 5.0}, {"scale": 5.1}),
    "discrete_gaussian": ({"std": 4.0}, {"std": 4.08}),
    "poisson_gaussian": ({"std": 1.0, "rate": 0.1, **RELATION}, {"std": 1.02, "rate": 0.1, **RELATION}),
    "shuffled_bits": ({"users": 100, "probability": 0.4}, {"users": 104, "probability": 0.4}),
    "pure": ({"epsilon": 0.5}, {"epsilon": 0.49}),
    "zcdp": ({"rho": 0.1}, {"rho": 0.05}),
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_two_percent_too_little_is_found_and_two_percent_too_much_is_loose(kind, monkeypatch):
    truth, cheaper = (Part(kind, given, 2) for given in UNLIKE[kind])
    job = Job(1, (truth,), (1e-5, 0.01), (0.4, 0.8), 0.01, 3)
    assert not [f for f in check(job).findings if f.sort.startswith(("below", "loose"))]
    monkeypatch.setattr("accounting.checks.build", lambda _: build(cheaper))
    assert {"below", "below upper"} <= {f.sort for f in check(job).findings}
    monkeypatch.setattr("accounting.checks.build", lambda _: build(truth))
    if kind not in ("shuffled_bits", "zcdp"):
        assert "loose" in {f.sort for f in check(Job(1, (cheaper,), (1e-5, 0.01), (0.4, 0.8), 0.01, 3)).findings}


def test_every_kind_has_laws_in_both_directions():
    rng = np.random.default_rng(5)
    for kind in KINDS.values():
        truth = kind.truth(kind.draw(rng), 2)
        assert set(truth.ways) == set(DIRECTIONS)
        assert all(truth.ways.values())
