"""The policy view of online agents: the first user answers as in D or in D′, and later users' policies are observed.

The agents are the registered ones, on their own kernels, played episode by episode. A user is a response function
(Chowdhury & Zhou 2022, section 2.2), so the two versions of the first user are two deterministic worlds: each plays one
episode under the agent's policy, and every later user comes from the same world in both arms. The auditor writes no
exact statistics and reads nothing of the first user's episode: under joint DP their output is dropped. The first user's
policy is made before there are data, and is public.

The instance is RiverSwim with two states and two steps and eight users, where a violation would be visible, or the
world of the algorithm's audit instance if the agent needs features. The options are those of the instance: at these
sizes the papers' bonuses hide everything learned. The noise is the declared one, at the requested ε.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import FiniteMDP
from privcheck.declare.declaration import Declaration
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import ParameterError
from privcheck.runtime.online import MakePlayer, Player, Replicate
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.replicates import ready
from privcheck.runtime.results import AuditRequest, AuditResult, OnlineRequest, World
from privcheck.runtime.setting import Setting
from privcheck_algorithms.environments.finite import riverswim
from privcheck_audits.engine.scores import draw_hidden_bits
from privcheck_audits.lockstep.agents import follow_closely
from privcheck_audits.lockstep.online_agents import answers
from privcheck_audits.plan.requests import policy_meaning
from privcheck_audits.policy.view import Outputs, bound_policies, check_policy

SIZES: Final = {"H": 2, "S": 2, "A": 2, "K": 8}  # where an algorithm's own instance names none
_LATER: Final = 3  # who differs where outputs share their noise: it takes a policy before and one after
_TOLD: Final = "the actions recommended to the later users"
_TINY: Final = float(np.finfo(np.float64).tiny)  # a probability below is shown as this

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineRuns:
    """Fresh runs of a whole online agent; importable, so that blocks can run in any process.

    Attributes:
        make: Makes the registered agent.
        request: Request for the agent, in the world of the later users.
        first: The first user's response functions in D and in D′, as deterministic worlds.
        noiseless: Whether the agent plans from exact counts: the mutant that reads the data.
        place: Number of the user who differs, from 1.
    """

    make: MakePlayer
    request: OnlineRequest
    first: tuple[FiniteMDP, FiniteMDP]
    noiseless: bool = False
    place: int = 1

    def __call__(self, rng: np.random.Generator, runs: int) -> Outputs:
        """Policies of all users but the one who differs, for fresh runs on D or D′ by a hidden bit."""
        secret = draw_hidden_bits(rng, runs)
        asked = replace(self.request, seed=int(rng.integers(2**63)))
        others = ready(self.make, asked, noiseless=self.noiseless)
        with_first, with_other = (
            ready(self.make, replace(asked, world=asked.world.answered_by(mdp)), noiseless=self.noiseless)
            for mdp in self.first
        )
        rows = []
        for run, on_first in enumerate(secret):
            one = others.start(run)
            policies = self._policies(with_first if on_first else with_other, others, one)
            mixed = np.issubdtype(one.arrays[others.told].dtype, np.floating)
            rows.append(features(policies, mixed=mixed) if self.place == 1 else changes(policies, self.place))
        return Outputs(features=np.stack(rows), secret=secret)

    @property
    def whose(self) -> str:
        """The user who differs, in words."""
        return "the first user" if self.place == 1 else f"user {self.place}"

    @property
    def seen(self) -> str:
        """The users with observed policies, in words."""
        last = self.request.episodes
        return (
            f"the policies of users 2 to {last}" if self.place == 1 else f"the policies of all users but {self.place}"
        )

    def _policies(self, alone: Player, others: Player, one: Replicate) -> Array:
        """Play a run and return the policy of each user, (K, numbers); the first policy is made before any data."""
        actions, seen = self.request.world.mdp.actions, []
        for k in range(1, self.request.episodes + 1):
            (alone if k == self.place else others).play(one, k)
            seen.append(as_numbers(one.arrays[others.told], actions))
        return np.stack(seen)


def audit_policies(request: AuditRequest, algorithm: Algorithm, runs: OnlineRuns | None = None) -> AuditResult:
    """Lower bound on ε from the policies shown to later users; valid against any mechanism, and weak.

    Under local DP the same policies are computed from the users' messages, so the bound is on that claim too.

    Args:
        request: The request.
        algorithm: The algorithm; its online agent is run.
        runs: Runs of another agent, without checkpoints; None for the registered one on its instance.

    Raises:
        ParameterError: A number of the request is out of range, or the algorithm has no online agent.
        AuditError: A trial's score is not finite.
    """
    values = small(request.values, algorithm)  # not the agent's own: a mutant draws less noise than is declared
    check_policy(request, values)
    whole = runs or instance(request.setting, algorithm)
    whole(np.random.default_rng(0), 2)  # Numba compiles before the clock starts
    mdp = whole.request.world.mdp
    sizes = {"H": mdp.horizon, "S": mdp.states, "A": mdp.actions, "K": whole.request.episodes}
    return bound_policies(
        request,
        whole,
        values=values,
        seen=whole.seen,
        witness=_describe(request.declaration, whole.whose),
        instance=f"{_name(whole.request.world)}, " + ", ".join(f"{name} = {size}" for name, size in sizes.items()),
        keep=runs is None,
        meaning=lambda refuted: policy_meaning(refuted, _TOLD, whose=f"{whole.whose}'s"),
        pair=whole.first,
    )


def instance(setting: Setting, algorithm: Algorithm) -> OnlineRuns:
    """The registered agent on its small instance.

    Args:
        setting: Declaration, parameters, options and readings; sizes and some options are the instance's.
        algorithm: The algorithm; its online agent is run.

    Raises:
        ParameterError: The algorithm has no online agent.
    """
    if algorithm.online is None:
        raise ParameterError(f"{algorithm.name} has no online agent to run", name=algorithm.name)
    H, S, A, K = (_size(name, algorithm) for name in SIZES)
    options = {**follow_closely(algorithm, setting.options), **({"K": Fraction(K)} if "K" in setting.options else {})}
    values = small(setting.values, algorithm)
    if algorithm.instance.world is None:
        world = World(name="riverswim", description="of the later users", mdp=riverswim(S, H=H))
    else:
        world = algorithm.instance.world({"H": H, "S": S, "A": A, "K": K, **algorithm.instance.sizes})
        values = {name: Fraction(world.sizes.get(name, value)) for name, value in values.items()}
        S, A = world.mdp.states, world.mdp.actions
    request = OnlineRequest(setting=replace(setting, values=values, options=options), world=world, episodes=K)
    start = S - 1 if _any_start(setting.declared) else 0
    stays = answers(H, S, A, to=0, start=0, rewards=(0.0, 0.0))
    goes = answers(H, S, A, to=S - 1, start=start, rewards=(1.0, 1.0))
    shared = any("outputs" in release.draw.across for release in setting.declared.noisy)
    return OnlineRuns(
        make=algorithm.online, request=request, first=(stays, goes), place=_LATER if shared and K > _LATER else 1
    )


def small(values: Mapping[str, Fraction], algorithm: Algorithm) -> Mapping[str, Fraction]:
    """Parameters with the sizes of the algorithm's instance."""
    sizes = {**SIZES, **algorithm.instance.sizes}
    return {**values, **{name: Fraction(size) for name, size in sizes.items() if name in values}}


def features(policies: Array, *, mixed: bool) -> Array:
    """Features for the score: changes of the policies since the first one.

    Args:
        policies: (K, numbers) policies shown to each user, including the first.
        mixed: Whether the policies are log-odds; the features are then their changes from user to user and the absolute
            changes, because the first user's action is drawn from the policy and not observed. Otherwise they are
            indicators of actions, and the features say whether each differs from the first policy.
    """
    if not mixed:
        other: Array = np.abs(policies[1:] - policies[0]).ravel()
        return other
    moves: Array = np.diff(policies, axis=0)
    return np.concatenate([moves.ravel(), np.abs(moves).ravel()])


def changes(policies: Array, place: int) -> Array:
    """Features for the score if a later user differs: changes of the policies since the last one without their data.

    One number per later user, summed over the numbers of a policy: single numbers are hardly informative.

    Args:
        policies: (K, numbers) policies shown to each user.
        place: Number of the user who differs. Their own policy is not used; the reference is the policy of the user
            before, which is also made without their data.
    """
    since: Array = policies[place:] - policies[place - 2]
    return np.asarray(since.sum(axis=1))


def as_numbers(told: NDArray[np.float64] | NDArray[np.int64], actions: int) -> Array:
    """Policy of the last episode as numbers for the score.

    Log-odds of each action against the first for a mixed policy, an indicator of each action but the first otherwise.

    Args:
        told: (H, S, A) probabilities, or (H, S) actions.
        actions: A.
    """
    if np.issubdtype(told.dtype, np.floating):
        logs = np.log(np.maximum(told, _TINY))
        odds: Array = (logs[..., 1:] - logs[..., :1]).ravel()
        return odds
    indicators: Array = (told[..., None] == np.arange(1, actions)).astype(np.float64).ravel()
    return indicators


def _size(name: str, algorithm: Algorithm) -> int:
    return algorithm.instance.sizes.get(name, SIZES[name])


def _name(world: World) -> str:
    return "RiverSwim" if world.name == "riverswim" else world.description


def _any_start(declaration: Declaration) -> bool:
    return not (isinstance(declaration.relation, ReplaceOne) and declaration.relation.initial == "fixed")


def _describe(declaration: Declaration, who: str) -> str:
    start = "is in the last state throughout" if _any_start(declaration) else "goes to the last state and stays there"
    return f"in D {who} stays in state 0 with reward 0 throughout; in D′ {who} {start}, with reward 1"
