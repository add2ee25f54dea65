"""Training driven by a declaration: batches, clipping, noise and price are read from it, and from nothing else.

Every user plays one episode, in one of the disjoint batches that the declaration's schedule states. The policy of a
batch follows from the noisy sums of the batches before it; of its episodes a per-user vector is computed, clipped block
by block to the declared norms and summed, and a channel adds the declared noise. A learner is handed those noisy sums
and nothing else. With `Poisson` batches, all episodes are played before the first round, each user's by the first
policy or as they were logged, and every round uses a fresh secret sample of them.

The price: by parallel composition all batches together cost what one costs (a user is in one of them), one Gaussian
vector whose blocks are priced together; and as everybody else sees functions of noisy sums and their own data, the
guarantee holds as joint DP by the billboard lemma (Hsu et al. 2014, arXiv:1311.2828). Poisson batches are priced by the
declaration's accountant; the ledger of a training records each of their rounds at what it costs a user who is in it.

Release noise is exact, on whole numbers: each user's clipped vector is then rounded to a public grid before it is
summed, and the price contains by how much that may lengthen it (`privcheck.runtime.discretisation`).

Promises: `Training` has only functions of noisy sums and public numbers. Sums are divided by the declared batch size,
never by a number from the data. A per-user vector that is not finite counts as 0, for itself alone: an error would show
that a user has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import numpy as np

from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.mechanisms.base import Charge
from privcheck.declare.procedures.charges import charge
from privcheck.declare.relations import ReplaceOne, most_trajectories
from privcheck.declare.schedules import Batches, Once, Poisson
from privcheck.declare.statistics import ClippedSums, Vectors
from privcheck.declare.statistics.grid import OnGrid
from privcheck.errors import DeclarationError, ParameterError
from privcheck.runtime.channel import Billboard, Channel, digest
from privcheck.runtime.discretisation import as_drawn
from privcheck.runtime.ledger import Ledger
from privcheck.runtime.noise import NoiseSource, NoNoise, ReleaseNoise, SimulatedNoise
from privcheck.terms.unit import Unit
from privcheck_algorithms.trained.tasks import Array, Choose, Episodes

S = TypeVar("S")
Sums = Mapping[str, Array]

_MOST: Final = 100_000  # batches: each is an update
_LARGEST: Final = 1e150  # squares of larger entries may overflow
_GRID: Final = 2**53  # uniform numbers are multiples of its inverse


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of the per-user vector, clipped by itself.

    Attributes:
        name: Name of its release.
        dimension: Number of its coordinates.
        norm: C, to which each user's part is clipped, ℓ₂.
    """

    name: str
    dimension: int
    norm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a declaration says about a training.

    Attributes:
        users: K, who take part; a rest that fills no batch does not.
        batch: B, users of every batch; of Poisson batches, the expected number, rounded.
        blocks: Parts of the per-user vector, in the order of their releases.
        rate: Of Poisson batches, the chance of each user to be in a round, rounded down to a multiple of 2⁻⁵³.
        rounds: Of Poisson batches, their number.
        grids: How the sums are rounded for release noise, by release; empty for noise on real numbers.
    """

    users: int
    batch: int
    blocks: tuple[Block, ...]
    rate: float | None = None
    rounds: int = 0
    grids: Mapping[str, OnGrid] = field(default_factory=dict)

    @property
    def batches(self) -> int:
        """Number of batches: ⌊K/B⌋, or the rounds."""
        return self.users // self.batch if self.rate is None else self.rounds

    @property
    def dimension(self) -> int:
        """Coordinates of a per-user vector, d."""
        return sum(block.dimension for block in self.blocks)

    def members(self) -> Iterator[range]:
        """Users of every batch, by number: disjoint; of Poisson batches all users, of whom each round has a sample."""
        for number in range(self.batches):
            yield range(number * self.batch, (number + 1) * self.batch) if self.rate is None else range(self.users)


def read_plan(declaration: Declaration, values: Mapping[str, Fraction]) -> Plan:
    """Read batches, blocks and norms from a declaration.

    Args:
        declaration: One `ClippedSums` a block with Gaussian noise, in equal `Batches(sizes=…)` of the parameter `K`'s
            users; or a single one in `Poisson` batches.
        values: Its parameters.

    Raises:
        DeclarationError: It states another unit, relation, schedule, statistic or law than this training runs.
        ParameterError: No batch, or more than 10⁵.
    """
    if not isinstance(declaration.relation, ReplaceOne) or most_trajectories(declaration.relation, values) != 1:
        raise DeclarationError(f"{declaration.name}: expected to replace one user with one episode, "
                               f"got {declaration.relation.words}")  # fmt: skip
    releases = declaration.statistics_released
    sampled = len(releases) == 1 and isinstance(releases[0].schedule, Poisson)
    if len(releases) != len(declaration.releases) or declaration.shared_draws or (declaration.others and not sampled):
        raise DeclarationError(f"{declaration.name}: expected fresh noise on clipped sums, and no other release")
    if "K" not in values:
        raise DeclarationError(f"{declaration.name}: expected a parameter K, the number of users")
    blocks, sizes = [], set[tuple[int, ...]]()
    for release in releases:
        statistic, schedule = release.statistic, release.schedule
        if not isinstance(statistic, ClippedSums) or statistic.ball != "l2" or statistic.per != "record":
            raise DeclarationError(f"{release.name}: expected ClippedSums in ℓ₂ of one record a user, "
                                   f"got {statistic.name}")  # fmt: skip
        if not isinstance(release.mechanism, Gaussian):
            raise DeclarationError(f"{release.name}: expected Gaussian noise, got {release.mechanism.words}")
        if isinstance(schedule, Poisson) and schedule.most is None and not release.users:
            sizes.add((max(1, round(int(values["K"]) * schedule.rate.number(values))),))
        elif not isinstance(schedule, Batches) or schedule.sizes is None or release.users:
            raise DeclarationError(f"{release.name}: expected disjoint Batches(sizes=…) of all users, each user once, "
                                   "or Poisson batches of them that are not cut off")  # fmt: skip
        else:
            sizes.add(schedule.sizes(values))
        norm = statistic.norm.number(values, rounding="down")
        blocks.append(Block(name=release.name, dimension=statistic.shape(values)[1], norm=norm))
    if len(sizes) != 1 or len(next(iter(sizes))) != 1:
        raise DeclarationError(
            f"{declaration.name}: expected batches of one size for all releases, got {sorted(sizes)}"
        )
    plan = Plan(users=int(values["K"]), batch=next(iter(sizes))[0], blocks=tuple(blocks))
    if isinstance(schedule := releases[0].schedule, Poisson):
        rate = math.floor(Fraction(schedule.rate.number(values, rounding="down")) * _GRID) / _GRID
        plan = replace(plan, rate=rate, rounds=int(schedule.rounds.number(values)))
    if not 1 <= plan.batches <= _MOST:
        message = f"K = {plan.users} users in batches of {plan.batch}: expected 1 to {_MOST} batches"
        raise ParameterError(f"{message}; choose another K or B", name="B", given=plan.batch)
    return plan


class Users(Protocol):
    """Where episodes come from."""

    def play(self, choose: Choose, users: range) -> Episodes:
        """Let each of these users play one episode by the public policy; one row a user, in their order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoggedUsers:
    """Users who have played already, each one episode, by policies of their own that need not be known.

    Attributes:
        episodes: One row a user; user number i is the i-th.
    """

    episodes: Episodes

    def play(self, choose: Choose, users: range) -> Episodes:
        """The episodes of these users, whatever the policy.

        Raises:
            ParameterError: There are fewer users.
        """
        if users and max(users[0], users[-1]) >= len(self.episodes.users):
            message = f"user {max(users[0], users[-1])}: only {len(self.episodes.users)} users were logged"
            raise ParameterError(f"{message}; choose a smaller K", name="K", given=len(self.episodes.users))
        return self.episodes.of(np.arange(users.start, users.stop, users.step))


class Agent(Protocol[S]):
    """What the author of a trained agent writes. A state follows from public numbers and noisy sums."""

    @property
    def blocks(self) -> Mapping[str, int]:
        """Coordinates of the per-user vector's parts, by release and in order; the declaration must have the same."""
        ...

    def begin(self, plan: Plan) -> S:
        """State before any user: public."""
        ...

    def choose(self, state: S) -> Choose:
        """The policies of the next batch: from observations, one uniform number and the user's number a row."""
        ...

    def per_user_vector(self, state: S, episodes: Episodes) -> Array:
        """Vectors (B, d), unclipped. A row may depend on the state and on its own user's episode, on nothing else."""
        ...

    def update(self, state: S, sums: Sums, plan: Plan) -> S:
        """State after a batch, from its noisy sums by release, each (dimension,)."""
        ...

    def result(self, state: S) -> Array:
        """The parameters that a training ends with, (parameters,)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training(Generic[S]):
    """What leaves a training: functions of noisy sums and public numbers.

    Attributes:
        parameters: The final policy's.
        sums: Noisy sums of each batch, by release.
        states: States before each batch, and after the last.
        plan: What was read from the declaration.
        ledger: The record of the releases: a training is charged once, with its first batch.
    """

    parameters: Array
    sums: tuple[Sums, ...]
    states: tuple[S, ...]
    plan: Plan
    ledger: Ledger


def single_round(declaration: Declaration) -> Declaration:
    """The declaration of one round of Poisson batches, for a user who is in it; any other one as it is."""
    rounds = [replace(one, schedule=Once()) for one in declaration.statistics_released]
    return replace(declaration, releases=tuple(rounds)) if declaration.others else declaration


class _NoRecord:
    """Records nothing: batches after the first cost nothing more, as their users are others."""

    def record(self, release: str, part: int, *, charge: Charge | None, output: str) -> None:
        """Record nothing."""

    def close(self) -> None:
        """Do nothing."""


def simulated_noise(seed: int) -> Callable[[int], NoiseSource]:
    """Noise sources of the batches, by number: seeded and in floating point, for simulation and audits only."""
    return lambda batch: SimulatedNoise(int(np.random.SeedSequence(seed, spawn_key=(batch,)).generate_state(1)[0]))


def no_noise(_: int) -> NoiseSource:
    """Source of a batch without noise, for twins: nothing is protected."""
    return NoNoise()


def release_noise(_: int) -> NoiseSource:
    """Source of a batch's release noise: exact, from system entropy, without a seed.

    Raises:
        ParameterError: OpenDP is not installed, or is too old.
    """
    return ReleaseNoise()


def simulated_sample(seed: int) -> Callable[[int], np.random.Generator]:
    """Random numbers of the Poisson batches, by round: seeded, for simulation and audits only."""
    return lambda batch: np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, batch)))


def _keep_nothing(_: int, __: Sums) -> None:
    """Keep no sums: the training cannot be continued."""


def train(
    agent: Agent[S],
    users: Users,
    *,
    declaration: Declaration,
    values: Mapping[str, Fraction],
    noise: Callable[[int], NoiseSource],
    sample: Callable[[int], np.random.Generator] | None = None,
    ledger: Path | None = None,
    drawn: Declaration | None = None,
    steps: int | None = None,
    unit: Unit | None = None,
    finished: Sequence[Sums] = (),
    keep: Callable[[int, Sums], None] = _keep_nothing,
) -> Training[S]:
    """Train an agent on users who play one episode each, as a declaration says.

    A training that was stopped goes on from its noisy sums, without another episode of the users who have played: its
    states are functions of them.

    Args:
        agent: The agent.
        users: Who play, or whose episodes were logged.
        declaration: The releases; see `read_plan`.
        values: All its parameters (`Declaration.values`).
        noise: A fresh source for every batch, by its number: `simulated_noise(seed)`, `release_noise`, or `no_noise`
            for the twin.
        sample: Random numbers of every Poisson batch, by its number, secret and independent of the noise:
            `simulated_sample(seed)`; None for disjoint batches.
        ledger: Where the ledger is written; None keeps it in memory.
        drawn: The declaration on a grid, from which noise is drawn (`privcheck.runtime.discretisation.as_drawn`); None
            for `as_drawn` of the declaration where the source protects users, and for the declaration itself elsewhere.
        steps: Public limit of the steps of an episode, to which all are padded on a grid (`Episodes.padded`); required
            there.
        unit: Who is protected; None for the declaration's own unit.
        finished: Noisy sums of the first batches, by a training that was stopped.
        keep: Called with the number and the noisy sums of each batch, as soon as it is finished.

    Raises:
        DeclarationError: The declaration is not one of such a training.
        ParameterError: The agent's vectors have other parts than are declared, or there is no batch, or sources are of
            several kinds, or finished sums are of another training, or release noise costs more than is declared, or
            Poisson batches have no random numbers, or disjoint ones have some, or Poisson batches are to have release
            noise or to go on from finished ones.
        ChannelError: A sum is not finite.
    """
    plan, first = read_plan(declaration, values), noise(0)
    _refuse_other_parts(agent, plan)
    _refuse_sample(plan, sample, first, finished)
    if drawn is None:
        drawn = as_drawn(declaration, values) if first.protects else declaration
    grids = {r.name: r.statistic for r in drawn.noisy if isinstance(r.statistic, OnGrid)}
    if grids and steps is None:
        message = "release noise needs the public limit of an episode's steps, so that no user's vector depends on how"
        raise ParameterError(f"{message} long others play, to the last bit: give steps=", name="steps")
    plan = replace(plan, grids=grids)
    _refuse_finished(finished, plan)
    book = Ledger(
        drawn, values, noise=first.words, as_declared=first.as_declared, protects=first.protects, path=ledger, unit=unit
    )
    try:
        channel = Channel(
            single_round(drawn), values, noise=first, billboard=Billboard(), ledger=_NoRecord() if finished else book
        )
        state, states, sums = agent.begin(plan), [], list[Sums]()
        logged = None if sample is None else _samples(users.play(agent.choose(state), range(plan.users)), plan, sample)
        for number, members in enumerate(plan.members()):
            if number < len(finished):
                noisy = dict(finished[number])
                if number == 0:
                    _record_again(book, drawn, values, noisy)
            else:
                if number:
                    source = noise(number)
                    _refuse_other_kind(source, first, number)
                    record = _NoRecord() if sample is None else book
                    channel = channel.again(noise=source, billboard=Billboard(), ledger=record)
                episodes = users.play(agent.choose(state), members) if logged is None else logged(number)
                if grids and steps is not None:
                    episodes = episodes.padded(steps)
                exact = _exact_sums(agent, state, episodes, plan)
                noisy = {name: channel.release(name, value, part=0) for name, value in exact.items()}
                keep(number, noisy)
            states.append(state)
            sums.append(noisy)
            state = agent.update(state, noisy, plan)
    except BaseException:  # an interrupt too: the record of what was spent stays, marked as partial
        book.abandon()
        raise
    book.close()
    return Training(parameters=agent.result(state), sums=tuple(sums), states=(*states, state), plan=plan, ledger=book)


def _samples(episodes: Episodes, plan: Plan, sample: Callable[[int], np.random.Generator]) -> Callable[[int], Episodes]:
    """Poisson samples of episodes that were played, by the round's number."""
    rate = plan.rate or 0.0
    return lambda number: episodes.of(np.flatnonzero(sample(number).random(plan.users) < rate))


def _refuse_other_parts(agent: Agent[S], plan: Plan) -> None:
    declared = {block.name: block.dimension for block in plan.blocks}
    if dict(agent.blocks) != declared or list(agent.blocks) != list(declared):
        message = f"the agent's vectors have the parts {dict(agent.blocks)}, and {declared} are declared"
        raise ParameterError(f"{message}: declare the agent's dimensions", name="d", given=str(declared))


def _refuse_sample(
    plan: Plan, sample: Callable[[int], np.random.Generator] | None, first: NoiseSource, finished: Sequence[Sums]
) -> None:
    if (plan.rate is None) != (sample is None):
        message = "expected random numbers of the samples, sample=…, with Poisson batches and with no others"
        raise ParameterError(message, name="sample")
    if sample is not None and (first.protects or finished):
        message = "trainings on Poisson samples are simulated, and whole: their samples are drawn from a seed"
        raise ParameterError(f"{message}; use simulated noise and no finished sums", name="sample")


def _refuse_other_kind(source: NoiseSource, first: NoiseSource, number: int) -> None:
    if (source.words, source.as_declared) != (first.words, first.as_declared):
        message = f"batch {number}: expected noise of the same kind as that of batch 0, which the ledger names"
        raise ParameterError(f"{message}, got {source.words}", name="noise", given=source.words)


def _refuse_finished(finished: Sequence[Sums], plan: Plan) -> None:
    wanted = {block.name: (block.dimension,) for block in plan.blocks}
    for number, sums in enumerate(finished):
        found = {name: np.shape(value) for name, value in sums.items()}
        if found != wanted or number >= plan.batches:
            message = f"finished batch {number} has sums {found}, expected {wanted} of at most {plan.batches} batches"
            raise ParameterError(f"{message}: give those of the same training", name="finished", given=number)


def _record_again(book: Ledger, drawn: Declaration, values: Mapping[str, Fraction], sums: Sums) -> None:
    """Record the first batch of a training that goes on: the same lines as when it was released."""
    for release in drawn.noisy:
        due = charge(release, drawn.relation, values)
        book.record(release.name, 0, charge=due, output=digest(sums[release.name]))


def _exact_sums(agent: Agent[S], state: S, episodes: Episodes, plan: Plan) -> dict[str, Array]:
    """Clipped sums of a batch, by release: they go into the channel and nowhere else."""
    vectors = np.zeros((0, plan.dimension))  # of an empty sample: an agent need not know that there are any
    if len(episodes.users):
        vectors = np.asarray(agent.per_user_vector(state, episodes), dtype=np.float64)
    wanted = (plan.batch if plan.rate is None else len(episodes.users), plan.dimension)
    if vectors.shape != wanted:
        message = f"expected per-user vectors {wanted}, got {vectors.shape}"
        raise ParameterError(f"{message}: one row a user of the batch", name="per_user_vector")
    return clipped_sums(vectors, plan)


def clipped_sums(vectors: Array, plan: Plan) -> dict[str, Array]:
    """Σ over users of each block, clipped to its norm, by release.

    Args:
        vectors: (B, d), unclipped; a row with a NaN or an entry beyond 10¹⁵⁰ counts as 0, for itself alone.
        plan: The blocks. With a grid, each clipped vector is rounded to it, and the sum is in whole numbers of its
            unit.
    """
    usable = (np.abs(vectors) <= _LARGEST).all(axis=1, keepdims=True)  # False of NaN
    sums, start = dict[str, Array](), 0
    for block in plan.blocks:
        part = np.where(usable, vectors[:, start : start + block.dimension], 0.0)
        clipped, grid = Vectors(rows=part, norm=block.norm), plan.grids.get(block.name)
        sums[block.name] = clipped.rows.sum(axis=0) if grid is None else grid.compute(clipped, step=0)
        start += block.dimension
    return sums
