"""Lockstep replay of running online agents: D′ behind D's billboard, with one user who answers differently.

After every episode the noisy tables of the run on D′ are replaced by those of D, so that both runs see the same history
of billboards and must play the same policies; this is the billboard lemma's premise, and is checked bit for bit, as are
all other outputs of the agent. Its memory of past billboards is in its replicate, and is compared too. The exact values
are compared output by output: for a tree the P-sum that closes, for a local privatizer the user's message, for batches
the batch's tables.

Users are response functions (Chowdhury & Zhou 2022, section 2.2): deterministic worlds, one for each neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import FiniteMDP
from privcheck.declare.declaration import Declaration
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import AuditError
from privcheck.runtime.online import Replicate, Tables
from privcheck.runtime.results import World
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_audits.engine.outputs import TURN, Read, Said, describe_moved, find_differences, is_said, list_fields
from privcheck_audits.lockstep.agents import CheckedFace, Twin, Watched, act, policies, read_shown, same_policies
from privcheck_audits.lockstep.replay import Distance, Moved, Replayed, add_until_departure
from privcheck_audits.lockstep.streams import TreeNodes
from privcheck_audits.plan.pictures import show_pair


def response_pairs(declaration: Declaration, world: World) -> Iterator[tuple[FiniteMDP, FiniteMDP, str]]:
    """Yield pairs of users who change counters as much as possible, as response functions, with descriptions.

    One stays in state 0, the other goes to the last state and stays there, both with reward c throughout, or one with
    0 and the other with 1; if step 1 is common to neighbours, they differ in its reward. In a world with features,
    further pairs stay in the two states with the most distant features: as matrices, with different rewards, and as
    vectors, with reward 1.
    """
    mdp = world.mdp
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    fixed = isinstance(declaration.relation, ReplaceOne) and declaration.relation.initial == "fixed"
    start = 0 if fixed else S - 1
    for one_reward, other_reward in ((0.0, 1.0), (1.0, 1.0), (0.0, 0.0)):
        first = 1.0 - one_reward if fixed else other_reward
        one = answers(H, S, A, to=0, start=0, rewards=(one_reward, one_reward))
        other = answers(H, S, A, to=S - 1, start=start, rewards=(first, other_reward))
        stays, goes = (
            f"stays in state 0 with reward {one_reward:g}",
            f"is in state {S - 1} with reward {other_reward:g}",
        )
        yield one, other, f"in D the user {stays}, in D′ {goes}"
        yield other, one, f"in D the user {goes}, in D′ {stays}"
    if world.features is not None and not fixed:
        for (i, j), reward in zip(_find_far_states(world.features.phi), (0.0, 1.0), strict=True):
            one, other = (answers(H, S, A, to=s, start=s, rewards=(r, r)) for s, r in ((i, 1.0), (j, reward)))
            yield (
                one,
                other,
                f"in D the user stays in state {i} with reward 1, in D′ in state {j} with reward {reward:g}",
            )


def _find_far_states(phi: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yield two pairs of states: with the most distant outer products, and features, whatever the actions.

    Args:
        phi: (S, A, d) features.
    """
    S, A, _ = phi.shape
    rows = phi.reshape(S * A, -1)
    inner = rows @ rows.T
    squares = np.diag(inner)
    for apart in (
        squares[:, None] ** 2 + squares**2 - 2 * inner**2,
        squares[:, None] + squares - 2 * inner,
    ):
        least = apart.reshape(S, A, S, A).min(axis=(1, 3))
        i, j = np.unravel_index(int(least.argmax()), least.shape)
        yield int(i), int(j)


def random_responses(mdp: FiniteMDP, rng: np.random.Generator, *, model: bool) -> tuple[FiniteMDP, FiniteMDP, str]:
    """Two users who answer by random tables, or the agent's own world against another one.

    Args:
        mdp: The agent's own world.
        rng: Generator of the users.
        model: Whether to use a user of the world and one of another random world.
    """
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    if model:
        other = random_mdp(S=S, A=A, H=H, seed=int(rng.integers(2**31)), stationary=True)
        return mdp, other, "in D a user of the world, in D′ of another one"
    one, two = (_table(rng, H, S, A) for _ in range(2))
    return one, two, "two users with random response tables"


def answers(H: int, S: int, A: int, *, to: int, start: int, rewards: tuple[float, float]) -> FiniteMDP:
    """User who goes to one state whatever the action; rewards in state 0, and elsewhere."""
    transition = np.zeros((1, S, A, S))
    transition[..., to] = 1.0
    reward = np.full((1, S, A, 1), rewards[1])
    reward[:, 0] = rewards[0]
    return FiniteMDP(horizon=H, transition=transition, reward=reward, initial=np.eye(S)[start])


def _table(rng: np.random.Generator, H: int, S: int, A: int) -> FiniteMDP:
    transition = np.eye(S)[rng.integers(0, S, size=(1, S, A))]
    reward = rng.integers(0, 2, size=(1, S, A, 1)).astype(np.float64)
    return FiniteMDP(horizon=H, transition=transition, reward=reward, initial=np.eye(S)[0])


_UNREPEATED: Final = (
    "behind the same billboards the agent does not repeat itself on the same data, so that its dependence cannot be "
    "tested: draw from the replicate's generators, and keep its memory in its arrays (PlainAgent's `memory`)"
)
_UNREPEATED_WORDS: Final = (
    "; its printed, logged and written output must repeat too: leave out times, addresses and names of temporary files"
)
_OTHER: Final = "the agent plays another policy or returns other figures"
_DRAWN_ELSEWHERE: Final = (
    "users with the same answers send other messages when queried again with the same randomness, so that the "
    "sensitivity cannot be tested: let a privatizer half draw from the user's own generator alone "
    "(`contribute(user, rng)` of a PlainAgent), and every other agent from its replicate's generators"
)
_ELSEWHERE: Final = (
    "another copy of the agent that continues its replicate plays another policy: some state is outside of the "
    "replicate's arrays and generators, where it is not in checkpoints and cannot be replayed with another user's "
    "data. Keep the memory of past billboards in the replicate (PlainAgent's `memory`)"
)
_ROUNDING: Final = 1e-9  # relative: of P-sums of costs and rewards, which are differences of sums over all users
_REPEATED: Final = 1e-6  # relative to the charge: by how much at most what is repeated is off
_EPS: Final = 8 * float(np.finfo(np.float64).eps)  # of a message that is a difference of noisy sums


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlinePairs:
    """A block of pairs: the worst response functions first, as the first user; then those and others, anywhere.

    Attributes:
        agents: The agent, under one or several options, which take turns.
    """

    agents: tuple[Watched, ...]

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Replayed:
        """Replay a number of pairs."""
        with TURN:  # blocks on other threads would change what an agent keeps in its module
            for agent in self.agents:
                _follow(agent, 0, episodes=1)  # what a process says once, such as where it imports, is said before
            return add_until_departure(self._one(rng, number) for number in range(first, first + runs))

    def _one(self, rng: np.random.Generator, number: int) -> Replayed:
        agent = self.agents[number % len(self.agents)]
        mdp, K = agent.request.world.mdp, agent.request.episodes
        fixed = list(response_pairs(agent.declaration, agent.request.world))
        position = 1 if number < len(fixed) else int(rng.integers(1, max(2, K)))
        if number < len(fixed) or number % 3 == 0:
            one, other, words = fixed[number % len(fixed)]
        else:
            one, other, words = random_responses(mdp, rng, model=number % 3 == 1)
        seed = int(rng.integers(2**63))
        replayed = replay_agent(agent, (one, other), position, seed=seed, words=words)
        if number >= len(self.agents):
            return replayed
        answering = (fixed[0][1], random_responses(mdp, rng, model=False)[0])
        others = tuple(replace(one, initial=mdp.initial) for one in answering)  # whose law may be public
        return replayed + replay_history(agent, others, seed=seed) + continue_elsewhere(agent, seed=seed)


def replay_agent(
    agent: Watched, pair: tuple[FiniteMDP, FiniteMDP], position: int, *, seed: int, words: str
) -> Replayed:
    """Replay a running agent on a pair: distance of each release, and whether its other outputs are unchanged.

    After a difference or an excess over the charge, the agent is played again on D alone, twice, and after a difference
    on both once more: the user caused it only if the outputs then repeat on D, and differ again on D′.

    Args:
        agent: The agent.
        pair: The user's response functions in D and D′, as worlds.
        position: Number of the user, from 1.
        seed: Seed of the users and of D's noise.
        words: The pair in words.
    """
    replayed, moved = _replay_once(agent, pair, position, seed=seed, words=words)
    if not replayed.broken:
        return replayed
    same, unrepeated = _replay_once(agent, (pair[0], pair[0]), position, seed=seed, words=words)
    if not unrepeated and (drawn := _list_unrepeated(agent, same)):
        kept = (replace(one, exceeds=False) if one.release in drawn else one for one in replayed.distances)
        return replace(replayed, distances=tuple(kept), unrepeated=len(drawn), doubt=_DRAWN_ELSEWHERE)
    if not moved or (not unrepeated and _replay_once(agent, pair, position, seed=seed, words=words)[1]):
        return replayed
    until_then, _ = _replay_once(agent, pair, position, seed=seed, words=words, stop=True)
    doubt = _doubt(unrepeated or moved)
    return replace(until_then, departures=0, departure="", unrepeated=replayed.departures, doubt=doubt)


def _doubt(unrepeated: Collection[str]) -> str:
    return _UNREPEATED + (_UNREPEATED_WORDS if any(is_said(place) for place in unrepeated) else "")


def _replay_once(
    agent: Watched, pair: tuple[FiniteMDP, FiniteMDP], position: int, *, seed: int, words: str, stop: bool = False
) -> tuple[Replayed, frozenset[str]]:
    """Play D and D′ side by side; returns the result and the places at which the outputs differ.

    Args:
        agent: As for `replay_agent`, like the following.
        pair: The user's response functions.
        position: Number of the user.
        seed: Seed of the users and of D's noise.
        words: The pair in words.
        stop: Whether to end before the outputs of the first episode with different policies, after which the two runs
            have different users. The distances until then are lower bounds, so that an excess over a charge remains
            one.
    """
    release_values = agent.request.values
    moved = {release.name: Moved(release=release, rounding=_ROUNDING) for release in agent.declaration.noisy}
    arms = [_Arm(agent, seed, mdp) for mdp in pair]
    ours, theirs = (arm.one for arm in arms)
    face = arms[0].face
    changes = departures = extra = 0
    before: dict[str, bytes] = {}
    handed: set[str] = set()
    for episode in range(1, agent.request.episodes + 1):
        mine = arms[0].play(episode, alone=episode == position)
        if face.replay:
            _read_outputs(theirs, ours, face)
        other = arms[1].play(episode, alone=episode == position)
        shown = arms[0].shown()
        differs = find_differences(shown, arms[1].shown())
        departures += bool(differs)
        handed |= differs
        if differs and stop:
            break
        policy = {name: array.tobytes() for name, array in policies(face, ours).items()}
        changes += bool(before) and policy != before
        before = policy
        extra = max(extra, *(face.undeclared(arm.one) for arm in arms))
        for name, table in mine.items():
            moved[name].slack = max(moved[name].slack, arms[0].slack())
            moved[name].same_slices = moved[name].same_slices and mine.keys() == other.keys()
            moved[name].add(table, other.get(name, table))
        _behind(theirs, ours, face.board)
    where = f"user {position}: {words}"
    distances = [d for m in moved.values() for d in m.distances(agent.declaration.relation, release_values, where)]
    distances += [_report_undeclared(name, where) for name in sorted(set[str]().union(*(arm.unlike for arm in arms)))]
    if extra:
        distances.append(
            Distance(
                release="numbers that are not declared",
                norm="l1",
                measured=math.inf,
                charged=0.0,
                exceeds=True,
                pair=f"the billboard holds {extra} more numbers than declared",
            )
        )
    replayed = Replayed(
        pairs=1,
        distances=tuple(distances),
        policies=agent.request.episodes,
        changes=changes,
        departures=departures,
        departure=f"{where}; behind the same billboards {describe_moved(handed, _OTHER)}" if departures else "",
        compared=list_fields(shown),
        shown=show_pair(pair, f"Responses of user {position} in D and in D′ to any action."),
        words=where,
    )
    return replayed, frozenset(handed)


def _list_unrepeated(agent: Watched, same: Replayed) -> set[str]:
    """Releases that differ in a replay on the same data, by more than rounding.

    The rounding of messages that are differences of noisy sums is far smaller.
    """
    names = {release.name for release in agent.declaration.noisy}
    moved = (one for one in same.distances if one.release in names and math.isfinite(one.measured))
    return {one.release for one in moved if one.measured > _REPEATED * one.charged}


def _report_undeclared(release: str, where: str) -> Distance:
    words = "the value before noise is not the declared statistic of the user's trajectory under the recommended policy"
    of = f"{release} of the user's trajectory"
    return Distance(release=of, norm="l1", measured=math.inf, charged=0.0, exceeds=True, pair=f"{where}; {words}")


def replay_history(agent: Watched, others: Iterable[FiniteMDP], *, seed: int) -> Replayed:
    """Test whether an agent plays the same behind one history of billboards, whatever its users do.

    One copy of the agent plays a whole run, so that state outside its replicate is included. A preliminary run brings
    state that is kept between runs to the same value for all later runs.

    Args:
        agent: The agent.
        others: Other response functions of all users.
        seed: Seed of the users and of the noise.
    """
    _follow(agent, seed)
    boards, shown = _follow(agent, seed)
    _, again = _follow(agent, seed, boards=boards)
    if shown != again:
        unrepeated = set[str]().union(*map(find_differences, shown, again))
        return Replayed(pairs=0, distances=(), unrepeated=1, doubt=_doubt(unrepeated))
    for mdp in others:
        _, theirs = _follow(agent, seed, mdp=mdp, boards=boards)
        for episode, (one, other) in enumerate(zip(shown, theirs, strict=True), start=1):
            if differs := find_differences(one, other):
                words = (
                    f"all users answer differently; in episode {episode}, behind the same billboards, "
                    f"{describe_moved(differs, _OTHER)}"
                )
                return Replayed(pairs=0, distances=(), departures=1, departure=words)
    return Replayed(pairs=0, distances=())


def _follow(
    agent: Watched,
    seed: int,
    *,
    mdp: FiniteMDP | None = None,
    boards: Sequence[Tables] | None = None,
    episodes: int | None = None,
) -> tuple[list[Tables], list[Read]]:
    """Billboard after each episode of a run, and all outputs of the agent until then.

    Args:
        agent: The agent.
        seed: Seed of the users and of the noise.
        mdp: Response function of all users; None for the agent's own world.
        boards: Billboards that replace the run's own after each episode; None to keep the run's.
        episodes: Number of episodes; None for all.
    """
    said = Said()
    with said.listen():
        player = agent.player(seed, mdp=mdp)
        face, one = agent.face(player), player.start(0)
    posted: list[Tables] = []
    shown: list[Read] = []
    for episode in range(1, (episodes or agent.request.episodes) + 1):
        given = None if boards is None else boards[episode - 1]
        if face.replay and given is not None:
            _post(one, given)
            one.arrays[face.replay][...] = 1
        with said.listen():
            player.play(one, episode)
        shown.append(read_shown(face, [player], one, said))
        if given is not None:
            _post(one, given)
        posted.append({name: one.arrays[name].copy() for name in face.board})
    return posted, shown


def _post(one: Replicate, board: Tables) -> None:
    for name, table in board.items():
        one.arrays[name][...] = table


def continue_elsewhere(agent: Watched, *, seed: int) -> Replayed:
    """Test whether the agent plays the same when other copies of it continue its replicate.

    State outside the replicate's arrays and generators is in no checkpoint, and one user's data cannot be exchanged
    under it: only `replay_history` tests whether it is a function of past billboards.

    Args:
        agent: The agent.
        seed: Seed of the users and of the noise.
    """
    unrepeated = 0
    with Said().listen():  # two copies say more than one: compared elsewhere
        alone, *turns = (agent.player(seed) for _ in range(3))
        face = agent.face(alone)
        ours, theirs = alone.start(0), turns[0].start(0)
        for episode in range(1, agent.request.episodes + 1):
            alone.play(ours, episode)
            turns[episode % 2].play(theirs, episode)
            unrepeated += not same_policies(face, ours, theirs)
    return Replayed(pairs=0, distances=(), unrepeated=unrepeated, doubt=_ELSEWHERE if unrepeated else "")


class _Arm:
    """A run on D or on D′."""

    def __init__(self, agent: Watched, seed: int, mdp: FiniteMDP) -> None:
        self._agent, self._seed, self._mdp = agent, seed, mdp
        self.unlike: set[str] = set()  # releases to which the user added something else than they did
        self._nodes = {release.name: TreeNodes() for release in agent.declaration.noisy}
        self._said = Said()
        with self._said.listen():
            self._players = {alone: agent.player(seed, mdp=mdp if alone else None) for alone in (True, False)}
            self.player = self._players[False]
            self.face = agent.face(self.player)
            self.one: Replicate = self.player.start(0)
            self._local = self.face.exact(self.one, 1) is None
            self._twin = Twin(agent, seed) if self._local else None
            self._noiseless = {
                alone: agent.player(seed, mdp=mdp if alone else None, noiseless=True)
                for alone in ((True, False) if self._local else ())
            }

    def play(self, episode: int, *, alone: bool) -> Tables:
        """Play an episode and return the exact values before noise; empty if nothing was released.

        Args:
            episode: Number of the episode.
            alone: Whether its user is the one in whom D and D′ differ.
        """
        message = None
        before = self.face.exact(self.one, episode - 1) if alone else None
        with self._said.listen():
            if self._twin is not None:
                message = self._twin.message(self._noiseless[alone], self.one, episode)
            self._players[alone].play(self.one, episode)
        output = self.face.output(episode)
        if self._twin is not None:
            self._twin.check(self.one, episode)
        if output is None:
            return {}
        exact = self.face.exact(self.one, output) if message is None else message
        if exact is None:
            gone = f"episode {episode}: exact values that were available before are missing"
            raise AuditError(gone, trial=episode, seed=self._seed)
        user = act(self._mdp, self.one.arrays[self.player.told]) if alone else None
        if user is not None:
            self.unlike |= set(self.face.unlike(self.face.contributions(before, exact, message), self.one, user))
        if message is not None:
            return exact
        trees = self._agent.trees
        return {n: self._nodes[n].close(output, table) if n in trees else table for n, table in exact.items()}

    def shown(self) -> Read:
        """All outputs of the agent so far, from all of its copies, with side outputs."""
        return read_shown(self.face, [self.player, self._players[True]], self.one, self._said)

    def slack(self) -> float:
        """Rounding tolerance of the distance of two messages: each is a difference of noisy sums."""
        if not self._local:
            return 0.0
        cells = 2 * self._agent.request.world.mdp.horizon
        largest = max(float(np.abs(self.one.arrays[name]).max(initial=0.0)) for name in self.face.board)
        return cells * _EPS * largest


def _read_outputs(one: Replicate, other: Replicate, face: CheckedFace) -> None:
    """Give a replicate the outputs of another one for the episode that it plays next."""
    for name in face.board:
        one.arrays[name][...] = other.arrays[name]
    one.arrays[face.replay][...] = 1


def _behind(one: Replicate, other: Replicate, board: tuple[str, ...]) -> None:
    """Put a replicate behind another one's billboard; later users answer both alike."""
    for name in board:
        one.arrays[name][...] = other.arrays[name]
    one.generators["users"].bit_generator.state = other.generators["users"].bit_generator.state
