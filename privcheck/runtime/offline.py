"""Agents that learn from a dataset: a pass from releases to a policy, alone or joined with a privatizer into a run.

The agent half is a `Pass`: it sees the billboard, requests the publication of one step after the other, and never sees
data. The privatizer half holds the data and sees the channel. Both are registered together (`OfflineAgent`); `run` is
the entry point for users, and audits give the same two halves channels of their own.

An agent with only its post-processing implemented (`PolicyRuns`) draws nothing itself and has no privatizer half:
audits draw the declared noise, on an instance that the agent names, and test the resulting policies. Their results say
that no registered agent ran.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Declaration
from privcheck.declare.relations import Pair
from privcheck.errors import ParameterError
from privcheck.runtime import Billboard, Channel, Ledger, NoiseSource, Privatizer, SimulatedNoise
from privcheck.runtime.channel import ReleaseChannel
from privcheck.runtime.discretisation import as_drawn
from privcheck.runtime.noise import ReleaseNoise
from privcheck.runtime.results import Remark, RunRequest, RunResult
from privcheck.runtime.setting import Setting

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learnt:
    """Result of an agent on a billboard, or of its non-private twin on data.

    Attributes:
        policy: (H, S, A) action probabilities.
        values: (H, S) the agent's own estimate of the return to come.
        claimed: Its estimate of the policy's expected return.
        diagnostics: Figures about the learning, from the billboard only, by name; a twin has none.
        remarks: The agent's remarks on them, from the billboard only.
    """

    policy: Array
    values: Array
    claimed: float
    diagnostics: Mapping[str, float]
    remarks: tuple[Remark, ...] = ()


class Pass(Protocol):
    """The agent half."""

    def __call__(
        self, billboard: Billboard, publish: Callable[[int], None], *, done: Callable[[], None] = ...
    ) -> Learnt:
        """Compute policy and values from the billboard alone.

        Args:
            billboard: Where the noisy statistics appear.
            publish: Requests the noisy statistics of one step, counted from 0, each once; it returns nothing.
            done: Called after each step.
        """
        ...


class MakePass(Protocol):
    """Factory of the agent half, from public information."""

    def __call__(self, setting: Setting, *, reward: Array | None) -> Pass:
        """Make the pass.

        Args:
            setting: Declaration, parameters, options and readings.
            reward: r(s, a, s′), public, broadcastable to (S, A, S); None if it is not public.

        Raises:
            ParameterError: An option is refused, or the reward function is neither public nor released.
        """
        ...


class DataHolder(Protocol):
    """The privatizer half: `privcheck.runtime.Privatizer`, or another one."""

    def publish(self, step: int) -> None:
        """Release every declared statistic's slice at one step through its channel."""
        ...


MakePrivatizer = Callable[[Trajectories, Declaration, ReleaseChannel], DataHolder]
MakeRegressing = Callable[[Trajectories, Setting, ReleaseChannel, Billboard], DataHolder]
Batch = Callable[[Mapping[str, Array]], tuple[NDArray[np.int64], Array]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineAgent:
    """An agent that learns from a dataset, as it is registered.

    Attributes:
        make: Makes the agent half.
        privatizer: Makes the privatizer half.
        regressing: Makes a privatizer half that regresses on public features, with targets and weights that it computes
            from the billboard; None for `privatizer`.
        batch: Makes many passes in one call, for audits: from noisy statistics by release, (B, H, …) each, to greedy
            actions and values, (B, H, S) each. None to make one pass after the other.
        baseline: The true return of the non-private twin on the same data; None if there is no twin.
        users: Number of other users in audits, so that typical counts are in the policy's range; None for four times
            the noise per cell.
    """

    make: MakePass
    privatizer: MakePrivatizer = Privatizer
    regressing: MakeRegressing | None = None
    batch: Callable[[Setting, Array], Batch] | None = None
    baseline: Callable[[RunRequest], float] | None = None
    users: Callable[[Setting], int] | None = None

    def hold(self, data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> DataHolder:
        """Make the privatizer half with its data.

        Args:
            data: The users' trajectories.
            setting: Declaration, parameters, options, readings and features.
            channel: The channel that releases.
            billboard: The noisy releases; the privatizer only reads them.
        """
        if self.regressing is not None:
            return self.regressing(data, setting, channel, billboard)
        return self.privatizer(data, setting.released, channel)


def run(agent: OfflineAgent, request: RunRequest) -> RunResult:
    """Run all replicates; each has its own noise, spawned from the seed by its number.

    A replicate's result depends on the seed and its number alone, not on the number of replicates. Release noise has no
    seed, and one run is one release.

    Raises:
        ParameterError: There is no declaration, sizes differ from the data's, or the agent refuses the request; release
            noise is requested for several replicates, or cannot be drawn for the declaration.
    """
    data = request.data
    source = release_source(request.replicates) if request.noise == "release" else None
    features = data.features if agent.regressing is None else data.feature_map
    _refuse_sizes(request, features)
    setting = replace(request.setting, features=features)
    if source is not None and setting.drawn is None:
        setting = setting.drawing(as_drawn(setting.declared, setting.values, prices=setting.prices))
    prepared = agent.make(setting, reward=data.reward)
    total, finished = request.replicates * data.trajectories.horizon, 0

    def tick() -> None:
        nonlocal finished
        finished += 1
        request.progress(finished, total)

    started = time.perf_counter()
    runs = [
        run_once(
            agent,
            prepared,
            setting,
            data.trajectories,
            noise=source or SimulatedNoise(replicate_seed(request.seed, replicate)),
            path=request.ledger if replicate == 0 else None,
            done=tick,
        )
        for replicate in range(request.replicates)
    ]
    seconds = time.perf_counter() - started
    twin = agent.baseline if data.public and data.evaluate is not None else None
    return RunResult(
        returns=np.array([data.evaluate(learnt.policy) for learnt, _ in runs]) if data.evaluate else None,
        claimed=np.array([learnt.claimed for learnt, _ in runs]),
        baseline=None if twin is None else twin(request),
        policy=runs[0][0].policy,
        ledger=runs[0][1],
        diagnostics=runs[0][0].diagnostics,
        seconds=seconds,
        remarks=runs[0][0].remarks,
        worthless=float(np.mean([share_worthless(learnt) for learnt, _ in runs])),
    )


def share_worthless(learnt: Learnt) -> float:
    """Share of all steps and states at which the agent's own value is 0."""
    return float((learnt.values == 0).mean())


def run_once(
    agent: OfflineAgent,
    prepared: Pass,
    setting: Setting,
    data: Trajectories,
    *,
    noise: NoiseSource,
    path: Path | None = None,
    done: Callable[[], None] = lambda: None,
) -> tuple[Learnt, Ledger]:
    """Make one run and its ledger: privatizer → channel → billboard → pass.

    Args:
        agent: As it is registered.
        prepared: Its agent half, ready to run.
        setting: Declaration, parameters, options and readings.
        data: The data to learn from; only the privatizer gets the trajectories.
        noise: The noise source.
        path: Where the ledger is written, or None.
        done: Called after each step.
    """
    declaration, values, billboard = setting.released, setting.values, Billboard()
    ledger = Ledger(
        declaration,
        values,
        noise=noise.words,
        as_declared=noise.as_declared,
        protects=noise.protects,
        path=path,
        unit=setting.protected,
    )
    try:
        channel = Channel(declaration, values, noise=noise, billboard=billboard, ledger=ledger)
        privatizer = agent.hold(data, setting, channel, billboard)
        learnt = prepared(billboard, privatizer.publish, done=done)
        channel.close()
    except BaseException:  # an interrupt too: the record of what was spent stays, marked as partial
        ledger.abandon()
        raise
    return learnt, ledger


def release_source(replicates: int) -> ReleaseNoise:
    """Make the source of release noise for one run.

    Raises:
        ParameterError: Several replicates are requested, or OpenDP is not installed.
    """
    refuse_replicates(replicates)
    return ReleaseNoise()


def refuse_replicates(replicates: int) -> None:
    """Refuse several replicates with release noise.

    Raises:
        ParameterError: There is more than one replicate.
    """
    if replicates > 1:
        message = (
            f"{replicates} replicates with release noise are {replicates} releases: use --replicates 1, and simulated "
            "noise to study the variation"
        )
        raise ParameterError(message, name="replicates", given=replicates)


def replicate_seed(seed: int, replicate: int) -> int:
    """Seed of one replicate's noise: 128 bits, the same for any number of replicates."""
    words = np.random.SeedSequence(seed, spawn_key=(replicate,)).generate_state(4, np.uint32)
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


def _refuse_sizes(request: RunRequest, features: FeatureMap | None) -> None:
    trajectories, values = request.data.trajectories, request.values
    actual = {"H": trajectories.horizon, "S": trajectories.num_states, "A": trajectories.num_actions}
    actual |= {} if features is None else features.sizes
    wrong = [
        f"{name}={values[name]} but {size} in the data"
        for name, size in actual.items()
        if name in values and values[name] != size
    ]
    if wrong:
        raise ParameterError(f"the declaration does not fit {request.data.name}: {'; '.join(wrong)}", name=wrong[0][0])


class DrawPolicies(Protocol):
    """Fresh runs; an importable object, so that blocks of runs can be made in any process."""

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Features of the policies, (runs, features), each run with its own declared noise.

        Args:
            rng: Generator of the noise.
            on_first: (runs,) whether the run is on the first of the two neighbours.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyRuns:
    """An agent's post-processing on its own instance, ready to run, with the words that a result needs.

    Attributes:
        draw: Makes fresh runs.
        pair: The user who differs, in D and in D′.
        seen: What the features show: "the policies of users 2 to 4".
        told: The same in an outsider's words: "what the other users were told to do".
        instance: The environment of the users, without its sizes.
        witness: Remark on the pair, beside the users' behaviour; empty if there is none.
        remark: A sentence on the meaning of the result; empty if there is none.
    """

    draw: DrawPolicies
    pair: Pair
    seen: str
    told: str
    instance: str
    witness: str = ""
    remark: str = ""


MakePolicies = Callable[[Setting], PolicyRuns]
