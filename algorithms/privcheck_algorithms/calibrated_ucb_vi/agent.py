"""The agent of CALIBRATED-UCB-VI: the channel's side of batches that each follow one public policy.

`kernels.policy_batches` learns and plans from the noisy tables alone, `online.policy_runs` runs the users. The README
has the budget, the readings and their price.
"""

from __future__ import annotations

import numpy as np

from privcheck.declare.declaration import Parameter
from privcheck.declare.statistics.grid import OnGrid
from privcheck.errors import ParameterError
from privcheck.runtime.noise import ReleaseNoise
from privcheck.runtime.online import Player, Replicate
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.online.batches import Batch, release
from privcheck_algorithms.online.policy_runs import LEARNER, PolicyRuns, tune
from privcheck_algorithms.online.private import NOISE, declared, refuse

OPTIONS = (
    Parameter(name="first_batch", default=256, kind="count", meaning="users of the first batch"),
    Parameter(name="growth", default="1.05", kind="positive", meaning="each batch is so much larger; at least 1"),
    *LEARNER,
)


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of CALIBRATED-UCB-VI in its world.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; the agent plans as with noise.

    Raises:
        ParameterError: Sizes other than the environment's, no episode, tables beyond 8 GB, or an invalid option.
    """
    refuse(request, vectors=0)
    pooled = request.readings.get("counts", "pooled") == "pooled"
    _refuse_pooled(request, pooled=pooled)
    releases, mdp = declared(request).noisy, request.world.mdp
    sigma = {release.name: release.mechanism.at(request.values).scale for release in releases}
    shapes = {release.name: release.statistic.shape(request.values) for release in releases}
    tuning = tune(
        request, sigma=sigma["transitions"], sigma_rewards=sigma.get("rewards", 1.0), centre=0.5, pooled=pooled
    )
    public = None if "rewards" in shapes else np.broadcast_to(mdp.mean_reward, (mdp.horizon, mdp.states, mdp.actions))
    unit = reward_unit(request)
    runs = PolicyRuns(request, tuning=tuning, shapes=shapes, rounded=False, public=public, unit=unit)
    drawn = 0.0 if noiseless else 1.0

    def leave(one: Replicate, batch: Batch) -> None:
        for name, std in sigma.items():
            exact = one.arrays[f"exact_{name}"]
            one.arrays[name][batch.number] = release(exact, drawn * std, one.generators["noise"])

    def publish(one: Replicate, batch: Batch) -> None:
        source = ReleaseNoise()  # of this batch
        for i, entry in enumerate(request.setting.released.noisy):
            grid_of, noise = entry.statistic, entry.mechanism.at(request.values)
            assert isinstance(grid_of, OnGrid)
            whole = one.arrays[f"exact_{entry.name}"] / float(grid_of.unit)
            one.arrays[entry.name][batch.number] = grid_of.shown(source.add(noise, whole, release=i, part=0))

    published = request.noise == "release" and not noiseless
    return runs.batches.player(
        "calibrated-ucb-vi",
        runs.agent(publish if published else leave),
        noiseless=noiseless,
        names=tuple(shapes),
        noise=ReleaseNoise().words if published else NOISE,
        protects=published,
        diagnostics={f"noise_std_{name}": std for name, std in sigma.items()},
    )


def reward_unit(request: OnlineRequest) -> float:
    """Grid for users' rewards: that of the reward sums under release noise; 0 for no rounding."""
    drawn = request.setting.drawn
    grids = [] if drawn is None else [r.statistic.unit for r in drawn.noisy if isinstance(r.statistic, OnGrid)]
    return float(max(grids, default=0))


def _refuse_pooled(request: OnlineRequest, *, pooled: bool) -> None:
    if pooled and request.world.mdp.transition.shape[0] > 1:
        message = f"counts=pooled: {request.world.name} changes with the step; use --set counts=steps"
        raise ParameterError(message, name="counts", given="pooled")
