"""PRIVATE-UCB-VI whose tree does not fit into memory: the same run, bit by bit, from noise that is drawn again."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.errors import ParameterError
from privcheck.runtime.replicates import CHECKPOINT, run
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_algorithms.kernels.sparse_mdp import Walk
from privcheck_algorithms.kernels.tables import size, split
from privcheck_algorithms.online import private
from privcheck_algorithms.private_ucb_po.agent import player as po_player
from privcheck_algorithms.private_ucb_vi.agent import player
from privcheck_algorithms.private_ucb_vi.agent import player as vi_player
from privcheck_algorithms.privatizers import noise, recompute
from privcheck_algorithms.privatizers.counters import close_node, levels


def asked(name="private-ucb-vi-central", *, S=3, H=3, A=2, K=37, **more):
    world = World(name="test", description="", mdp=random_mdp(S=S, A=A, H=H, seed=2))
    given = {"K": str(K), "epsilon": "3000", "precision_scale": "0.1", "bonus_scale": "0.02"}
    setting = online_settings([name], given, world)[0]
    return OnlineRequest(
        setting=setting.setting,
        world=world, episodes=K, seed=5, **more,
    )  # fmt: skip


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("regret", "value", "switches"))


SIZES = [(3, 3, 2, 37), (5, 4, 3, 130), (6, 20, 2, 20), (1, 1, 2, 9), (2, 3, 1, 1)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("noiseless", [False, True])
def test_it_is_the_run_that_keeps_its_tree(sizes, noiseless, monkeypatch):
    request = asked(**dict(zip("SHAK", sizes, strict=True)), replicates=2)
    kept = run(player, request, noiseless=noiseless)
    monkeypatch.setattr(private, "vectors", lambda _: math.inf)  # of a tree that is kept
    again = run(player, request, noiseless=noiseless)
    assert same(kept, again)
    assert (kept.diagnostics["noise_drawn_again"], again.diagnostics["noise_drawn_again"]) == (0.0, 1.0)
    assert noiseless or kept.ledger.entries == again.ledger.entries
    if sizes == (5, 4, 3, 130):
        assert kept.switches[0, -1] > 20  # or equality would say little


def test_it_depends_on_no_threads_and_continues_where_it_was_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(private, "vectors", lambda _: math.inf)  # of a tree that is kept
    monkeypatch.setattr("privcheck.runtime.replicates._SAVE_EVERY", 0.0)
    monkeypatch.setattr("privcheck.runtime.replicates._WORK", 0)
    request = asked(replicates=3, directory=tmp_path)
    straight = run(player, dataclasses.replace(request, directory=None, workers=3))
    seen = []

    def kill(done, _):
        seen.append(done)
        if len(seen) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(player, dataclasses.replace(request, progress=kill))
    assert (tmp_path / CHECKPOINT).stat().st_size < 200_000
    assert same(run(player, request), straight)


def test_a_steps_tables_are_those_of_the_tree():
    H, S, A, K = 3, 3, 2, 20  # 90 counters: parts begin within blocks of sixteen draws
    rng, M = np.random.default_rng(1), size(3, 3, 2)
    paths, taken, costs = rng.integers(0, S, (K, H + 1)), rng.integers(0, A, (K, H)), rng.random((K, H))
    kept, again = (
        noise.open_channel(noise.LAPLACE, 3.0, streams=noise.lanes(np.random.SeedSequence(7)), rng=rng, piece=16)
        for _ in range(2)
    )
    exact, prefix, noisy = np.zeros(M), np.zeros((levels(K), M)), np.zeros(M)
    visits, sums, transitions = split(exact, H, S, A)
    past = recompute.RecomputedTree(
        S=S, A=A, marks=np.zeros((levels(K), recompute.PARTS, H, *noise.SHAPE), np.uint64),
        paths=np.zeros((K, H + 1), np.int64), taken=np.zeros((K, H), np.int64), costs=np.zeros((K, H)),
        exact=np.zeros(S * A * (S + 2)),
    )  # fmt: skip
    step = np.zeros(S * A * (S + 2))
    for t in range(1, K):
        for h in range(H):
            cell = paths[t - 1, h] * A + taken[t - 1, h]
            visits[h, cell] += 1
            sums[h, cell] += costs[t - 1, h]
            transitions[h, paths[t - 1, h + 1], cell] += 1
        close_node(kept, t, exact, prefix, noisy)
        recompute.remember(past, again, t, Walk(paths[t - 1], taken[t - 1], costs[t - 1]))
        assert np.array_equal(kept.streams, again.streams)  # the streams stand where they would
        tables = split(noisy, H, S, A)
        for h in range(H):
            recompute.write(past, again, t, h, step)
            assert np.array_equal(step, np.concatenate([table[h].ravel() for table in tables]))
        assert not past.exact.any()


@pytest.mark.parametrize(("name", "make"), [("private-ucb-po-central", po_player), ("private-ucb-vi-local", vi_player)])
def test_where_nothing_is_drawn_again_too_many_counters_are_refused(name, make):
    request = asked(name, S=60, H=20, A=10, K=1000, replicates=2000)
    with pytest.raises(ParameterError, match="GB"):
        make(request)


def test_all_states_of_icu_sepsis_fit():
    large = SimpleNamespace(mdp=SimpleNamespace(horizon=20, states=716, actions=25))
    request = dataclasses.replace(asked(K=20_000), world=large, workers=2)
    again = private.recomputes_noise(request)
    assert 0 < private.needed(request, vectors=again) < 0.3e9
    assert private.needed(request, vectors=private.vectors(request)) > 30e9
