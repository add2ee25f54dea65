"""The numeric accountant beside dp-accounting and, where they are installed, its peers: the same jobs in the same run.

    python benchmarks/accountant.py [--write] [--quick]

Medians; every repetition asks for slightly other parameters, so that no cache answers. dp-accounting is used at its
defaults (grid 1e-4) as add/remove on float multipliers; prv-accountant with an error of 0.01 in ε. `--quick` leaves out
what takes others more than ten seconds; `--write` puts the table beside this script.
"""

import itertools
import math
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import dp_accounting
import numpy as np
from dp_accounting import ComposedDpEvent, GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant

from privcheck import accounting as acc
from privcheck.accounting.currencies import cost_of
from privcheck.pricing import account
from privcheck_algorithms.dp_apvi import GAUSSIAN

_fresh = (1 + i * 1e-13 for i in itertools.count(1))  # parameters that no cache has seen
_RELATIONS = {
    "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
}
PEERS = ("dp-accounting", "autodp", "PLD_accounting", "prv-accountant", "riskcal", "opendp")
CALLS, STEPS, RATE = 10_000, 10_000, 0.01


@dataclass(frozen=True, kw_only=True)
class Row:
    """A job, our way and theirs: functions that return a figure."""

    job: str
    ours: Callable[[], float]
    repeats: int = 5
    limit: float = math.inf  # seconds
    theirs: dict[str, Callable[[], float]] = field(default_factory=dict)
    slow: tuple[str, ...] = ()  # peers that are left out by --quick


def timed(work, repeats):
    """Returns the median of wall times in seconds, and the last result."""
    if repeats > 1:
        work()
    times, result = [], None
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - started)
    return statistics.median(times), result


# --- ours


def mixed():
    return acc.compose(acc.gaussian(std=30 * next(_fresh), count=1000), acc.laplace(scale=50, count=500))


def sgd(std=1.1, count=STEPS):
    return acc.compose(acc.poisson_gaussian(std=std * next(_fresh), rate=RATE, count=count, relation="add-remove"))


def spreads():
    one = next(_fresh)
    return [(0.9 + 0.01 * i) * one for i in range(100)]


def sgd_steps():
    return (
        acc.compose(*(acc.poisson_gaussian(std=s, rate=RATE, relation="add-remove") for s in spreads()))
        .epsilon(delta=1e-5)
        .upper
    )


def scales():
    one = next(_fresh)
    return [(100 + 0.01 * i) * one for i in range(CALLS)]


def laplaces():
    return acc.compose(*(acc.laplace(scale=b) for b in scales())).epsilon(delta=1e-6).value


def gaussian_epsilons(one):
    return sum(float(one(0.5 + 1e-5 * i, 1e-6)) for i in range(CALLS)) / CALLS


def zcdp_epsilons(one):
    return sum(float(one(0.1 + 1e-5 * i, 1e-6)) for i in range(CALLS)) / CALLS


def our_calibration():
    start = next(_fresh)
    return acc.calibrate((1.0, 1e-6), lambda std: acc.gaussian(std=std, count=1000), start=100 * start).scale


def our_sgd_calibration():
    start = next(_fresh)
    return acc.calibrate(
        (2.0, 1e-5),
        lambda std: acc.poisson_gaussian(std=std, rate=RATE, count=STEPS, relation="add-remove"),
        start=start,
    ).scale


# --- dp-accounting


def their_mixed():
    gaussians = SelfComposedDpEvent(GaussianDpEvent(float(30 * next(_fresh))), 1000)
    return ComposedDpEvent([gaussians, SelfComposedDpEvent(LaplaceDpEvent(50.0), 500)])


def their_sgd(std=1.1, count=STEPS):
    return SelfComposedDpEvent(PoissonSampledDpEvent(RATE, GaussianDpEvent(float(std * next(_fresh)))), count)


def their_steps():
    return ComposedDpEvent([PoissonSampledDpEvent(RATE, GaussianDpEvent(float(s))) for s in spreads()])


def their_laplaces():
    return ComposedDpEvent([LaplaceDpEvent(float(b)) for b in scales()])


def their_rare():
    return SelfComposedDpEvent(PoissonSampledDpEvent(2.52e-4, GaussianDpEvent(float(1.417 * next(_fresh)))), 500)


def their_rarest():
    return SelfComposedDpEvent(PoissonSampledDpEvent(1e-11, GaussianDpEvent(float(next(_fresh)))), 10**15)


def their_laplace(count):
    return SelfComposedDpEvent(LaplaceDpEvent(float(20 * next(_fresh))), count)


def their_sampled_laplace():
    return SelfComposedDpEvent(PoissonSampledDpEvent(0.1, LaplaceDpEvent(float(2 * next(_fresh)))), 20)


def by(accountant, event, delta):
    """Returns work for an accountant of dp-accounting."""
    return lambda: accountant().compose(event()).get_epsilon(delta)


def calibration_by(accountant, event, epsilon, delta, guess):
    def work():
        interval = dp_accounting.LowerEndpointAndGuess(0.5, guess)
        return dp_accounting.calibrate_dp_mechanism(accountant, event, epsilon, delta, interval, tol=1e-6)

    return work


def their_deltas():
    fine = privacy_loss_distribution.from_gaussian_mechanism(1.1 * next(_fresh), sampling_prob=RATE)
    return float(fine.self_compose(STEPS).get_delta_for_epsilon(np.linspace(0, 10, 100_000))[-1])


# --- the peers


def autodp_epsilon(parts, delta):
    """Returns work for autodp's Rényi accountant; parts are (Rényi curve, count, rate or None)."""

    def work():
        from autodp import rdp_acct

        accountant = rdp_acct.anaRDPacct()
        for curve, count, rate in parts():
            if rate is None:
                accountant.compose_mechanism(curve, count)
            else:
                accountant.compose_poisson_subsampled_mechanisms1(curve, rate, count)
        return float(accountant.get_eps(delta))

    return work


def _gaussian_curve(std):
    return lambda alpha: alpha / (2 * std**2)


def _laplace_curve(scale):
    from autodp import rdp_bank

    return lambda alpha: rdp_bank.RDP_laplace({"b": scale}, alpha)


def prv_epsilon(stds, count, delta):
    """Returns work for prv-accountant: its upper bound."""

    def work():
        from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

        mechanisms = [PoissonSubsampledGaussianMechanism(RATE, float(s)) for s in stds()]
        counts = [count] * len(mechanisms)
        accountant = PRVAccountant(
            prvs=mechanisms, max_self_compositions=counts, eps_error=0.01, delta_error=delta / 1000
        )
        return float(accountant.compute_epsilon(delta, counts)[2])

    return work


def riskcal_calibration():
    from riskcal.calibration.core import CalibrationConfig, CalibrationTarget, calibrate_parameter
    from riskcal.calibration.dpsgd import create_dpsgd_epsilon_evaluator

    evaluator = create_dpsgd_epsilon_evaluator(sample_rate=RATE, num_steps=STEPS, target_delta=1e-5)
    target = CalibrationTarget(kind="epsilon_delta", epsilon=2.0, delta=1e-5)
    config = CalibrationConfig(increasing=False, param_min=0.5, param_max=10.0, target_tol=1e-4, param_tol=1e-4)
    return float(vars(calibrate_parameter(evaluator, target, config))["parameter_value"])


def autodp_gaussians():
    from autodp import dp_bank

    return gaussian_epsilons(lambda mu, delta: dp_bank.get_eps_ana_gaussian(1 / mu, delta))


def opendp_curve():
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    made = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0)
    one = dp.c.make_zCDP_to_approxDP(made).map(math.sqrt(0.2))
    return sum(one.epsilon(1e-6 * (1 + 1e-7 * i)) for i in range(CALLS)) / CALLS


def rows():
    """Yields the rows of the table."""
    yield Row(
        job="ε of 1000 Gaussians + 500 Laplace, δ = 1e-6, tight value",
        ours=lambda: mixed().epsilon(delta=1e-6).value,
        repeats=50,
        limit=5e-3,
        theirs={
            "PLD": by(PLDAccountant, their_mixed, 1e-6),
            "RDP": by(RdpAccountant, their_mixed, 1e-6),
            "autodp": autodp_epsilon(
                lambda: [(_gaussian_curve(30), 1000, None), (_laplace_curve(50), 500, None)], 1e-6
            ),
        },
    )
    yield Row(job="the same, certified upper bound", ours=lambda: mixed().epsilon(delta=1e-6).upper, repeats=10)
    yield Row(
        job="the same at δ = 1e-60, tight value",
        ours=lambda: mixed().epsilon(delta=1e-60).value,
        repeats=50,
        limit=5e-3,
        theirs={"PLD": by(PLDAccountant, their_mixed, 1e-60)},
    )
    yield Row(job="the same at δ = 1e-60, certified", ours=lambda: mixed().epsilon(delta=1e-60).upper, repeats=10)
    yield Row(
        job="std of 1000 Gaussians for (1, 1e-6)",
        ours=our_calibration,
        repeats=20,
        limit=20e-3,
        theirs={
            "PLD": calibration_by(
                PLDAccountant, lambda s: SelfComposedDpEvent(GaussianDpEvent(float(s)), 1000), 1.0, 1e-6, 100.0
            )
        },
        slow=("PLD",),
    )
    yield Row(
        job="ε at 10⁵ δ from 1e-60 to ½",
        ours=lambda: mixed().epsilons(np.geomspace(1e-60, 0.5, 100_000)).values[0],
        limit=1,
    )
    yield Row(
        job="δ at 10⁵ ε from 0 to 30", ours=lambda: mixed().deltas(np.linspace(0, 30, 100_000)).values[-1], limit=1
    )
    yield Row(job="DP-APVI's budget at given numbers", ours=budget, repeats=50, limit=2e-3)
    yield Row(
        job="DP-SGD, T = 10⁴, q = 0.01, std 1.1, δ = 1e-5, certified",
        ours=lambda: sgd().epsilon(delta=1e-5).upper,
        limit=50e-3,
        theirs={
            "PLD": by(PLDAccountant, their_sgd, 1e-5),
            "RDP": by(RdpAccountant, their_sgd, 1e-5),
            "autodp": autodp_epsilon(lambda: [(_gaussian_curve(1.1), STEPS, RATE)], 1e-5),
            "prv-accountant": prv_epsilon(lambda: [1.1 * next(_fresh)], STEPS, 1e-5),
        },
    )
    yield Row(
        job="its std for (2, 1e-5)",
        ours=our_sgd_calibration,
        limit=150e-3,
        theirs={
            "PLD": calibration_by(PLDAccountant, their_sgd, 2.0, 1e-5, 2.0),
            "RDP": calibration_by(RdpAccountant, their_sgd, 2.0, 1e-5, 2.0),
            "riskcal": riskcal_calibration,
        },
        slow=("PLD", "riskcal"),
    )
    yield Row(
        job="100 different DP-SGD steps, certified",
        ours=sgd_steps,
        limit=300e-3,
        theirs={
            "PLD": by(PLDAccountant, their_steps, 1e-5),
            "RDP": by(RdpAccountant, their_steps, 1e-5),
            "autodp": autodp_epsilon(lambda: [(_gaussian_curve(s), 1, RATE) for s in spreads()], 1e-5),
            "prv-accountant": prv_epsilon(spreads, 1, 1e-5),
        },
        slow=("autodp", "prv-accountant"),
    )
    yield Row(
        job="10⁴ different Laplaces, δ = 1e-6",
        ours=laplaces,
        repeats=3,
        limit=1,
        theirs={"RDP": by(RdpAccountant, their_laplaces, 1e-6)},
        slow=("RDP",),
    )
    yield Row(
        job="10⁴ Gaussian ε(δ), calls",
        ours=lambda: gaussian_epsilons(acc.gdp_epsilon),
        limit=0.2,
        theirs={
            "closed form": lambda: gaussian_epsilons(lambda mu, d: dp_accounting.get_epsilon_gaussian(1 / mu, d)),
            "autodp": autodp_gaussians,
        },
        slow=("closed form", "autodp"),
    )
    yield Row(
        job="10⁴ ρ-zCDP → ε, calls",
        ours=lambda: zcdp_epsilons(acc.zcdp_to_epsilon),
        limit=50e-3,
        theirs={"opendp": opendp_curve},
        slow=("opendp",),
    )
    yield Row(
        job="10⁵ δ of the DP-SGD job",
        ours=lambda: sgd().deltas(np.linspace(0, 10, 100_000)).values[-1],
        repeats=3,
        limit=1,
        theirs={"PLD": their_deltas},
    )
    yield Row(
        job="`poisson_gaussian(std=.4376, rate=.00215, count=2)`, ε at 100 δ",
        ours=lambda: (
            acc.compose(acc.poisson_gaussian(std=0.4376 * next(_fresh), rate=0.00215, count=2, relation="add-remove"))
            .epsilons(np.geomspace(1e-9, 0.1, 100))
            .values[0]
        ),
        repeats=3,
        limit=1,
    )
    for relation, peers in _RELATIONS.items():
        yield Row(
            job=f"500 steps at q = 2.52·10⁻⁴, std 1.417, δ = 1e-6, {relation}, certified",
            ours=lambda relation=relation: rare(relation).epsilon(delta=1e-6).upper,
            theirs={"PLD": lambda peers=peers: PLDAccountant(peers).compose(their_rare()).get_epsilon(1e-6)},
        )
    for count in (20, 500):
        yield Row(
            job=f"{count} Laplaces, scale 20, δ = 1e-6",
            ours=lambda count=count: (
                acc.compose(acc.laplace(scale=20 * next(_fresh), count=count)).epsilon(delta=1e-6).upper
            ),
            repeats=20,
            theirs={"PLD": by(PLDAccountant, lambda count=count: their_laplace(count), 1e-6)},
        )
    yield Row(
        job="20 Laplaces on Poisson samples, scale 2, q = 0.1, δ = 1e-6",
        ours=lambda: sampled_laplace().epsilon(delta=1e-6).upper,
        repeats=10,
        theirs={"PLD": by(PLDAccountant, their_sampled_laplace, 1e-6)},
    )
    for (what, run), (law, shape) in itertools.product(RUNS.items(), SHAPES.items()):
        yield Row(
            job=f"the best of 10 runs of {what}, {law} number, δ = 1e-6, certified",
            ours=lambda run=run, law=law: (
                acc.compose(acc.repeat_and_select(run[0](next(_fresh)), mean=10, law=law)).epsilon(delta=1e-6).upper
            ),
            theirs={
                "RDP": by(RdpAccountant, lambda run=run, shape=shape: their_best(run[1](next(_fresh)), shape), 1e-6)
            },
        )
    for n, rate, most, count in ((4, 0.25, 2, 40), (1000, RATE, 20, 100), (1000, RATE, 12, 100)):
        given = {"users": n, "rate": rate, "most": most}
        yield Row(
            job=f"{count} truncated Poisson samples, n = {n}, q = {rate}, B = {most}, std 1, δ = 1e-6, certified",
            ours=lambda given=given, count=count: truncated(**given, count=count).epsilon(delta=1e-6).upper,
            theirs={"PLD": by(PLDAccountant, lambda given=given, k=count: their_truncated(**given, count=k), 1e-6)},
        )
    twice, once = "limit law 1.367568…", "limit law 0.648105…"
    for law, limit in (
        (acc.randomized_response(epsilon=1e-5), twice),
        (acc.discrete_laplace(scale=1e5), twice),
        (acc.bounded_range(epsilon=1e-5), once),
    ):
        yield Row(
            job=f"10⁹ × {law.kind} of ε = 1e-5, δ = 1e-6 ({limit})",
            ours=lambda law=law: acc.compose(10**9 * law).epsilon(delta=1e-6).upper,
        )
    yield Row(
        job="10¹⁵ steps at q = 10⁻¹¹, std 1, δ = 1e-6, certified",
        ours=lambda: (
            acc.compose(acc.poisson_gaussian(std=1.0 * next(_fresh), rate=1e-11, count=10**15, relation="add-remove"))
            .epsilon(delta=1e-6)
            .upper
        ),
        theirs={"PLD": by(PLDAccountant, their_rarest, 1e-6)},
        slow=("PLD",),
    )
    for way in ("upper", "lower"):
        yield Row(
            job=f"random allocation, 1 of 1000 rounds, std 1, 100 epochs, δ = 1e-5, certified {way}",
            ours=lambda way=way: getattr(allocated().epsilon(delta=1e-5), way),
            repeats=3,
            limit=1,
        )
    others = {
        "a user replaced": lambda: allocated(relation="replace-one"),
        "10 of 1000 rounds": lambda: allocated(participations=10),
        "Laplace noise of scale 1": allocated_laplace,
    }
    for (what, make), way in itertools.product(others.items(), ("upper", "lower")):
        yield Row(
            job=f"… {what}, certified {way}",
            ours=lambda make=make, way=way: getattr(make().epsilon(delta=1e-5), way),
            repeats=3,
        )
    for std, bins, epochs, delta in ((1.0, 100, 1, 1e-5), (1.0, 100, 10, 1e-5), (0.8, 391, 5, 1.25e-5)):
        for way in ("upper", "lower"):
            yield Row(
                job=f"balls in {bins} bins, std {std}, {epochs} epochs, δ = {delta}, certified {way}",
                ours=lambda way=way, std=std, bins=bins, epochs=epochs, delta=delta: getattr(
                    acc.compose(balls(std, bins, epochs)).epsilon(delta=delta), way
                ),
                repeats=3,
                theirs={"PLD_accounting": their_balls(std, bins, epochs, delta, way)},
            )
    yield Row(
        job="50 permute-and-flip of ε = .5, δ = 1e-6",
        ours=lambda: acc.compose(50 * acc.permute_and_flip(epsilon=0.5 * next(_fresh))).epsilon(delta=1e-6).upper,
        repeats=5,
    )
    for what, make in (("the exponential mechanism", acc.exponential_mechanism), ("Laplace noise", unit_laplace)):
        yield Row(
            job=f"μ² that a filter charges for {what} of ε = 1",
            ours=lambda make=make: float(cost_of(make(epsilon=1.0 * next(_fresh)), acc.Currency(name="gdp")).amount),
            repeats=5,
        )


def unit_laplace(*, epsilon):
    return acc.laplace(scale=1 / epsilon)


def balls(std, bins, epochs):
    return acc.random_allocation(std=std * next(_fresh), rounds=bins, epochs=epochs, relation="add-remove")


def their_balls(std, bins, epochs, delta, way):
    def work():
        import PLD_accounting as pa

        params = pa.PrivacyParams(sigma=std * next(_fresh), num_steps=bins, num_epochs=epochs, delta=delta)
        bound = pa.BoundType.DOMINATES if way == "upper" else pa.BoundType.IS_DOMINATED
        config = pa.AllocationSchemeConfig(loss_discretization=0.05)
        return float(pa.gaussian_allocation_epsilon_configurable(params=params, config=config, bound_type=bound))

    return work


def truncated(count, **given):
    std = 1.0 * next(_fresh)
    event = acc.truncated_poisson_gaussian(std=std, count=count, relation="add-remove", **given)
    return acc.compose(event)


def their_truncated(users, rate, most, count):
    """Their prices count users - 1 others beside the user who is added, and so are of as many users as ours."""
    one = dp_accounting.dp_event.TruncatedSubsampledGaussianDpEvent(users, rate, most, 1.0 * next(_fresh))
    return SelfComposedDpEvent(one, count)


RUNS = {
    "a Gaussian, std 20": (lambda f: acc.gaussian(std=20 * f), lambda f: GaussianDpEvent(20 * f)),
    "50 Laplaces, scale 20": (
        lambda f: acc.laplace(scale=20 * f, count=50),
        lambda f: SelfComposedDpEvent(LaplaceDpEvent(20 * f), 50),
    ),
    "DP-SGD, T = 10³, q = 0.01, std 1.1": (
        lambda f: acc.poisson_gaussian(std=1.1 * f, rate=RATE, count=1000, relation="add-remove"),
        lambda f: SelfComposedDpEvent(PoissonSampledDpEvent(RATE, GaussianDpEvent(1.1 * f)), 1000),
    ),
}
SHAPES = {"geometric": 1.0, "poisson": math.inf}


def their_best(run, shape):
    return dp_accounting.dp_event.RepeatAndSelectDpEvent(run, 10.0, shape)


def allocated(relation="add-remove", participations=1):
    event = acc.random_allocation(
        std=1.0 * next(_fresh), rounds=1000, participations=participations, epochs=100, relation=relation
    )
    return acc.compose(event)


def allocated_laplace():
    noise = acc.laplace(scale=1.0 * next(_fresh))
    return acc.compose(acc.allocated(event=noise, rounds=1000, epochs=100, relation="add-remove"))


def rare(relation):
    event = acc.poisson_gaussian(std=1.417 * next(_fresh), rate=2.52e-4, count=500, relation=relation)
    return acc.compose(event)


def sampled_laplace():
    drawn = acc.poisson(event=acc.laplace(scale=2 * next(_fresh)), rate=0.1, relation="add-remove", count=20)
    return acc.compose(drawn)


def budget():
    return _ACCOUNT.at(_VALUES).methods(1e-5)[0].epsilon


def shown(found):
    seconds, value = found
    value = f"{value:.9g}" if isinstance(value, float) else str(value)
    return f"{seconds * 1e3:,.1f} ms ({value})"


def peer(row, name, ours):
    """Returns a cell's text for a peer: its time and figure, and how many times ours that is."""
    if name in row.slow and "--quick" in sys.argv:
        return f"{name}: left out"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = timed(row.theirs[name], 1 if name in row.slow or name == "PLD_accounting" else 3)  # of up to 30 s
    except ImportError:
        return f"{name}: not installed"
    return f"{name}: {shown(found)}, {found[0] / ours:.3g} ×"


def versions():
    for name in PEERS:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} not installed"


_ACCOUNT = account(GAUSSIAN.declare({}))
_VALUES = GAUSSIAN.declare({}).values({})

if __name__ == "__main__":
    table = ["| job | privcheck | limit | others (times ours) |", "| --- | --- | --- | --- |"]
    for row in rows():
        found = timed(row.ours, row.repeats)
        limit = f"{row.limit * 1e3:,.0f} ms" if math.isfinite(row.limit) else "–"
        limit += " **missed**" if found[0] > row.limit else ""
        cells = [peer(row, name, found[0]) for name in row.theirs]
        table.append(f"| {row.job} | {shown(found)} | {limit} | {'; '.join(cells) or '–'} |")
        print(table[-1], flush=True)
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    where += f", load {os.getloadavg()[0]:.1f}"
    text = f"# The accountant\n\n`python benchmarks/accountant.py --write`; {where}, NumPy {np.__version__}, "
    text += f"{', '.join(versions())}; medians.\n\n"
    if "--write" in sys.argv:
        Path(__file__).with_suffix(".md").write_text(text + "\n".join(table) + "\n", encoding="utf-8")
