"""The online agents see billboards alone: another user's data behind the same billboards changes no policy."""

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.data.trajectories import Trajectories
from privcheck.declare.procedures.charges import charge
from privcheck.runtime import Billboard, Channel, Ledger, ReplayChannel, SimulatedNoise
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_algorithms.privatizers.counters import levels
from twins.paper_002 import trace

K, CHANGED = 12, 2  # the third user differs
AGENTS = [
    ("private-ucb-vi-central", "vi"), ("private-ucb-vi-local", "vi"),
    ("private-ucb-po-central", "po"), ("private-ucb-po-local", "po"),
]  # fmt: skip


def asked(name):
    world = World(name="test", description="", mdp=random_mdp(S=3, A=2, H=3, seed=6))
    given = {"K": str(K), "epsilon": "300", "bonus_scale": "0.02", "precision_scale": "0.1"}
    setting = online_settings([name], given, world)[0]
    return OnlineRequest(
        setting=setting.setting,
        world=world, episodes=K, seed=1,
    )  # fmt: skip


def other(user):
    """Returns a user in another state and with another reward at every step, who starts alike."""
    states = (user.states + 1) % 3
    states[:, 0] = user.states[:, 0]
    return Trajectories(
        states=states, actions=user.actions, rewards=1 - user.rewards.round(), num_states=3, num_actions=2
    )


@pytest.mark.parametrize(("name", "kind"), AGENTS)
def test_replay(name, kind):
    request, billboards = asked(name), {}

    def opening(k):
        billboards[k] = Billboard()
        ledger = Ledger(request.declaration, request.values, noise="simulated")
        return Channel(
            request.declaration, request.values, noise=SimulatedNoise(k), billboard=billboards[k], ledger=ledger
        ), billboards[k]

    first = trace(request, kind=kind, opener=opening)
    users = [other(user) if i == CHANGED else user for i, user in enumerate(first.users)]
    assert len({policy.tobytes() for policy in first.policies}) > 3
    exact = []
    for answers in (first.users, users):
        replays = {k: ReplayChannel(billboard) for k, billboard in billboards.items()}
        again = trace(request, kind=kind, opener=lambda k, r=replays: (r[k], billboards[k]), answers=answers)
        assert all(np.array_equal(p, q) for p, q in zip(first.policies, again.policies, strict=True))
        assert all(
            np.array_equal(p[table], q[table]) for p, q in zip(first.tables, again.tables, strict=True) for table in p
        )
        exact.append(replays)
    central = name.endswith("central")
    moved = dict.fromkeys(("visits", "costs", "transitions"), 0.0)
    nodes = set()
    for k in billboards:
        for (release, part), value in exact[0][k].exact.items():
            distance = np.abs(value - exact[1][k].exact[release, part]).sum()
            moved[release] += distance
            if distance:
                nodes.add(k)
                assert (k - (k & -k) if central else k - 1) < CHANGED + 1 <= k
    assert 1 <= len(nodes) <= (levels(K) if central else 1)
    for release in request.declaration.releases:
        assert 0 < moved[release.name] <= charge(release, request.declaration.relation, request.values).l1
