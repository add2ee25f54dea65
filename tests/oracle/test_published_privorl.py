"""PrivORL's published code: its loops run as they are written, and its losses by integrals that share no code."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from privcheck import verify
from privcheck.declare.declaration import resolve
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import DeclarationError, ParameterError
from privcheck_algorithms.gallery.privorl import count_copies, privorl_j, privorl_n, run_passes

DELTA = 1e-6
MAZE, CHEETAH = "maze2d-umaze-dense-v1", "halfcheetah-medium-replay-v2"
PIECES = {MAZE: 977, CHEETAH: 202}


def judged(declaration, **given):
    return verify(declaration, resolve(declaration.parameters, given, owner=declaration.name))


# PrivORL-J: a transcription of scripts/training_v1.py and utils/training_v1.py, for gradients of one number


def finetune(copies_in_all, gradient_of, rng, *, clip=1.0, multiplier=1.0):
    """Yield one list a pass, of the noisy means of its batches, each with the batch's size.

    Args:
        gradient_of: Gradient of a copy, by its id, before clipping; the same for each of its fragments.
    """
    total_fragments = copies_in_all * 993
    length = len(range(0, copies_in_all, 32))
    per_epoch = length * (total_fragments / copies_in_all)
    epochs = int(np.ceil(4e5 / per_epoch))
    done = 0
    for _ in range(epochs):
        target = min(per_epoch, 4e5 - done)
        completed, seen = 0, []
        order = rng.permutation(copies_in_all)
        for start in range(0, copies_in_all, 32):
            batch = order[start : start + 32]
            means = gradient_of(batch)  # of 32 equal fragments each
            clipped = means * np.minimum(1.0, clip / (np.abs(means) + 1e-6))
            noisy = clipped.mean() + rng.standard_normal() * multiplier * clip / len(batch)
            seen.append((noisy, len(batch), batch))
            completed += 32 * len(batch)
            if completed >= target:
                break
        yield seen
        done += completed
        if done >= 4e5:
            break


@pytest.mark.parametrize("copies", [1, 31, 32, 33, 300, 977, 9_850, 10_100, 12_499, 12_500, 12_513, 48_850])
def test_the_passes_are_those_of_the_loops(copies):
    rng = np.random.default_rng(1)
    run = [(len(seen), sum(size for _, size, _ in seen)) for seen in finetune(copies, np.zeros_like, rng)]
    assert [(one.batches, one.drawn) for one in run_passes(copies)] == run


def test_sizes_that_are_reported():
    assert [(one.batches, one.drawn) for one in run_passes(977 * 50)] == [(391, 12_512)]
    assert [(one.batches, one.drawn) for one in run_passes(202 * 50)] == [(307, 9_824), (84, 2_688)]


@pytest.mark.parametrize(
    ("of_one", "others", "drawn"), [(1, 0, 1), (2, 4, 3), (3, 3, 5), (2, 5, 0), (4, 2, 6), (3, 5, 2)]
)
def test_the_law_of_the_copies_against_all_orders(of_one, others, drawn):
    found = Counter(
        sum(place < drawn for place in places) for places in itertools.combinations(range(of_one + others), of_one)
    )
    law = [found[k] / found.total() for k in range(of_one + 1)]
    np.testing.assert_allclose(count_copies(of_one, others, drawn), law, rtol=1e-14)


def law_of_copies(trajectories, copies=50):
    """(·,) probabilities of 0, 1, … copies in a run, by SciPy, over the passes as the loops have them."""
    law = np.ones(1)
    for seen in finetune(trajectories * copies, np.zeros_like, np.random.default_rng(2)):
        drawn = sum(size for _, size, _ in seen)
        law = np.convolve(law, stats.hypergeom(trajectories * copies, copies, drawn).pmf(np.arange(copies + 1)))
    return law


def true_epsilon(law, batches, multiplier=1.0):
    """ε at δ of K + N(0, Tσ²) against N(0, Tσ²): the likelihood ratio grows with the sum, so a threshold is best."""
    k, std = np.arange(law.size), multiplier * math.sqrt(batches)

    def excess(e):
        def log_ratio(x):
            return np.logaddexp.reduce(np.log(np.maximum(law, 1e-300)) + (k * x - k**2 / 2) / std**2) - e

        x = brentq(log_ratio, -1e4 * std, 1e4 * std)
        return law @ stats.norm.sf((x - k) / std) - math.exp(e) * stats.norm.sf(x / std) - DELTA

    return brentq(excess, 1e-3, 60)


@pytest.mark.parametrize("dataset", [MAZE, CHEETAH])
def test_the_loss_against_a_closed_form(dataset):
    """From below, and within 10⁻⁴ of it."""
    truth = true_epsilon(law_of_copies(PIECES[dataset]), 391)
    assert truth == pytest.approx({MAZE: 3.2797, CHEETAH: 19.7038}[dataset], abs=1e-3)
    for target in (1, 5, 10, 15, 20):
        verdict = judged(privorl_j({"dataset": dataset}), epsilon=target)
        assert truth * (1 - 1e-4) <= verdict.lower_ratio * target <= truth * (1 + 1e-9)
        assert verdict.verdict == ("fails" if target < truth else "undecided")
        assert verdict.upper_ratio == math.inf


@pytest.mark.parametrize(
    ("trajectories", "copies", "multiplier"), [(300, 1, 1.0), (60, 7, 3.0), (500, 50, 0.7), (2_000, 2, 0.5)]
)
def test_the_loss_at_other_sizes(trajectories, copies, multiplier):
    batches = sum(one.batches for one in run_passes(trajectories * copies))
    truth = true_epsilon(law_of_copies(trajectories, copies), batches, multiplier)
    given = {"trajectories": trajectories, "copies": copies, "noise_multiplier": str(multiplier)}
    found = judged(privorl_j({}), epsilon=1, **given).lower_ratio
    assert truth * (1 - 1e-3) <= found <= truth * (1 + 1e-9)


def test_runs_of_the_loops_have_the_laws_of_the_pair():
    """300 runs on either dataset; each comparison errs with probability below 10⁻⁹."""
    runs, rng = 300, np.random.default_rng(3)
    trajectories, copies = PIECES[CHEETAH], 50
    totals, used = {}, []
    for told, size in (("present", 1e3), ("absent", 0.0)):
        totals[told] = []
        for _ in range(runs):
            total = held = 0.0
            for seen in finetune(trajectories * copies, lambda ids, size=size: size * (ids % trajectories == 0), rng):
                total += sum(noisy * many for noisy, many, _ in seen)  # the user of the noisy mean knows its size
                held += sum(int((ids % trajectories == 0).sum()) for _, _, ids in seen)
            totals[told].append(total)
            used.append(held)
    law = law_of_copies(trajectories)
    mean = law @ np.arange(law.size)
    std = math.sqrt(law @ (np.arange(law.size) - mean) ** 2)
    assert abs(np.mean(used) - mean) < 6.5 * std / math.sqrt(2 * runs)
    values = resolve(privorl_j({"dataset": CHEETAH}).parameters, {}, owner="here")
    (one,) = privorl_j({"dataset": CHEETAH}).releases
    for pair in one.pairs(ZeroOut("trajectory"), values):
        ratios = pair.outcomes.log_p - pair.outcomes.log_q
        for told, logs in zip(pair.data, (pair.outcomes.log_p, pair.outcomes.log_q), strict=True):
            scores = pair.sampler.mixture.log_ratio(np.array(totals[told]))
            for bar in (-1.0, 0.0, 1.0):
                share = float(np.exp(logs[ratios > bar]).sum())
                assert abs(np.mean(scores > bar) - share) < 6.5 * math.sqrt(share * (1 - share) / runs) + 2e-3


def test_every_target_has_the_same_noise():
    """`target_epsilon` sets nothing but the claim."""
    (one,) = privorl_j({}).releases
    values = [resolve(privorl_j({}).parameters, {"epsilon": e}, owner="here") for e in (1, 20)]
    assert one.std(values[0]) == one.std(values[1]) == 1.0


def test_a_certain_copy_and_a_copy_that_is_never_used():
    assert count_copies(3, 2, 5) == (0, 0, 0, 1)
    assert count_copies(3, 2, 0) == (1, 0, 0, 0)


@pytest.mark.parametrize(
    "relation", [AddRemoveOne("trajectory"), ReplaceOne("trajectory"), ZeroOut("user", trajectories=2)]
)
def test_other_relations_are_refused(relation):
    (one,) = privorl_j({}).releases
    with pytest.raises(DeclarationError, match="declare ZeroOut"):
        one.cost(relation)


def test_no_bound_from_above_is_stated():
    declaration = privorl_j({})
    (one,) = declaration.releases
    cost = one.cost(declaration.relation)
    assert cost.rho.number({}) == math.inf
    assert cost.pure is None
    assert cost.mu_squared is None
    (event,) = one.events(declaration.relation, declaration.values())
    assert "non" in repr(event).lower()


# PrivORL-N


def renyi_epsilon(multiplier, rate, rounds):
    """ε at δ by Rényi divergences of sampled Gaussians, summed here (Mironov et al. 2019; Balle et al. 2020)."""
    z = np.arange(-20 * multiplier, 64 + 20 * multiplier, multiplier / 100)
    density = stats.norm.logpdf(z, scale=multiplier) + math.log(multiplier / 100)
    ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * z - 1) / (2 * multiplier**2))
    best = math.inf
    for order in (*np.arange(1.1, 10.95, 0.1), *range(12, 64)):
        spent = rounds * np.logaddexp.reduce(order * ratio + density) / (order - 1) + math.log1p(-1 / order)
        best = min(best, spent - (math.log(DELTA) + math.log(order)) / (order - 1))
    return best


@pytest.mark.parametrize("target", [1, 10])
def test_the_noise_reaches_the_target_by_renyi_divergences(target):
    values = resolve(privorl_n({}).parameters, {"epsilon": target}, owner="here")
    reached = renyi_epsilon(float(values["noise_multiplier"]), 1 / 6250, 31_250)
    assert target - 0.01 - 1e-4 <= reached <= target + 1e-4


def test_the_default_noise_is_the_one_that_the_search_finds():
    """At the defaults it is not computed; at a target that differs by nothing in floats it is."""
    parameters = privorl_n({}).parameters
    (noise,) = (one for one in parameters if one.name == "noise_multiplier")
    values = {one.name: one.check(one.default) for one in parameters}
    moved = noise.follows({**values, "epsilon": values["epsilon"] + Fraction(1, 10**30)})
    assert moved == values["noise_multiplier"]


def test_a_target_that_no_noise_reaches_is_refused():
    with pytest.raises(ParameterError, match="set a larger epsilon"):
        resolve(privorl_n({}).parameters, {"epsilon": "1e-12"}, owner="here")


@pytest.mark.parametrize("target", [1, 10])
def test_the_verdict_on_one_transition_against_another_accountant(target):
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    verdict = judged(privorl_n({}), epsilon=target)
    values = resolve(privorl_n({}).parameters, {"epsilon": target}, owner="here")
    step = dp.PoissonSampledDpEvent(1 / 6250, dp.GaussianDpEvent(float(values["noise_multiplier"])))
    accountant = PLDAccountant(value_discretization_interval=1e-4)  # rounded up
    accountant.compose(dp.SelfComposedDpEvent(step, 31_250))
    assert verdict.verdict == "holds"
    assert verdict.lower_ratio * target <= accountant.get_epsilon(DELTA) <= verdict.upper_ratio * target * 1.1
