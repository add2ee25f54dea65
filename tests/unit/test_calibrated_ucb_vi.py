"""CALIBRATED-UCB-VI: what it counts, what that costs, how it plans, and that it learns."""

import math
from itertools import pairwise

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.commands.settings import resolve_setting
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import ParameterError
from privcheck.pricing import account
from privcheck.runtime.replicates import run
from privcheck.runtime.results import OnlineRequest, World
from privcheck.testing.enumeration import all_users
from privcheck_algorithms.calibrated_ucb_vi.agent import player
from privcheck_algorithms.environments.finite import random_mdp, riverswim
from privcheck_algorithms.kernels.sparse_mdp import compress
from privcheck_algorithms.online.batches import release, schedule
from privcheck_algorithms.online.policy_cells import PolicyCells


def asked(mdp, *, K=2000, replicates=2, seed=0, **given):
    where = World(name="test", description="", mdp=mdp)
    setting = online_settings(["calibrated-ucb-vi"], {"K": str(K)} | {k: str(v) for k, v in given.items()}, where)[0]
    return OnlineRequest(
        setting=setting.setting,
        world=where, episodes=K, replicates=replicates, seed=seed,
    )  # fmt: skip


READINGS = [{}, {"rewards": "known"}, {"initial": "fixed"}, {"counts": "steps"}]


@pytest.mark.parametrize("given", READINGS, ids=str)
def test_every_reading_is_as_private_as_claimed_and_hardly_more(given):
    setting = resolve_setting("calibrated-ucb-vi", given)
    numbers = account(setting.declared).at(setting.values)
    assert 0.9999 < numbers.epsilon(1e-5) <= 1


@pytest.mark.parametrize(("K", "first", "growth"), [(1, 384, 1.2), (384, 384, 1.2), (400, 384, 1.2), (10**5, 7, 1.0)])
def test_every_user_is_in_one_batch(K, first, growth):
    ends = schedule(K, first=first, growth=growth)
    assert ends[-1] == K
    assert (np.diff(ends, prepend=0) > 0).all()


def test_the_channel_draws_at_the_declared_scale():
    """χ² of 10⁴ draws within 6 standard deviations: error below 1e-8."""
    noise = release(np.full(10_000, 5.0), 2.0, np.random.default_rng(0)) - 5
    assert (noise**2).sum() / 4 == pytest.approx(10_000, abs=6 * math.sqrt(20_000))


def test_one_policy_a_batch_learns_by_step_and_pooled():
    """Ten runs below 11 % of K·V* (goal), by step; measured 4.1 ± .3 and 6.1 ± .5 %, single runs ± 2."""
    for mdp, counts in ((riverswim(4, H=6), "steps"), (riverswim(6, H=20), "pooled")):
        found = run(player, asked(mdp, K=20_000, replicates=10, seed=78, counts=counts))
        assert found.regret[:, -1].mean() <= 0.11 * 20_000 * found.optimal
    known = run(player, asked(riverswim(4, H=6), K=4000, replicates=5, rewards="known", mu=50))
    assert known.value[:, -1] == pytest.approx(known.optimal, rel=0.01)


@pytest.mark.parametrize("H", [1, 2, 3])
def test_centred_rewards_move_as_far_as_is_charged(H):
    statistic = PolicyCells(of="centred rewards")
    charged = statistic.sensitivity(ReplaceOne("trajectory"))
    everybody = all_users(H, 2, 1)
    tables = np.stack([statistic.compute(everybody.user(i)).ravel() for i in range(everybody.users)])
    pairs = tables[:, None] - tables[None]
    values = {"H": H, "S": 2}
    assert (pairs**2).sum(axis=2).max() == pytest.approx(charged.l2.number(values) ** 2)
    assert np.abs(pairs).sum(axis=2).max() == pytest.approx(charged.l1.number(values))
    assert np.abs(pairs).max() == pytest.approx(charged.linf.number(values))


def test_switches_are_batches_with_another_policy_than_the_one_before():
    request = asked(riverswim(4, H=6), K=350, replicates=1, first_batch=40, growth="1.2", mu=9)  # grid: all of K
    ends = schedule(350, first=40, growth=1.2)
    agent = player(request)
    one = agent.start(0)
    agent.play(one, 350)
    shown = [one.arrays["played"][int(np.searchsorted(ends, k, side="right"))] for k in range(350)]
    changed = [(a != b).any() for a, b in pairwise(shown)]
    assert run(player, request).switches[0].tolist() == [0.0, *np.cumsum(changed)]
    assert sum(changed) > 1


def test_what_is_refused():
    with pytest.raises(ParameterError, match="batches"):
        run(player, asked(riverswim(3, H=3), first_batch=1, growth=1, K=10**8))
    with pytest.raises(ParameterError, match="GB"):
        run(player, asked(riverswim(6, H=10**8)))
    with pytest.raises(ParameterError, match="growth"):
        run(player, asked(riverswim(3, H=3), growth="0.9"))
    with pytest.raises(ParameterError, match="counts=steps"):
        run(player, asked(random_mdp(S=3, A=2, H=3, seed=0)))
    assert run(player, asked(random_mdp(S=3, A=2, H=3, seed=0), counts="steps")).regret.shape[0] == 2
    assert compress(riverswim(3, H=3)).S == 3
