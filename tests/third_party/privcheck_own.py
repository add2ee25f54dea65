"""Somebody else's package: a small UCB-VI of its own, honest and broken in ten ways, registered by entry points.

Each is declared alike, with Laplace noise in binary trees. `PLAIN` and `PLAIN_*` are plain agents, whose halves meet
only in channel and billboard; the others write their own loop, counters and noise in NumPy and show audits a face.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from privcheck.data.finite_models import evaluate, one_hot, sample_trajectories, solve
from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Tree
from privcheck.declare.statistics import RewardSums, TransitionCounts
from privcheck.runtime.online import DONE, VALUE, Player, Record, Replicate, blank, grid, note
from privcheck.runtime.plain_agents import PlainAgent
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.replicates import seeds
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import A, H, K, S, ceil_log2, epsilon, maximum

NAMES = ("rewards", "transitions")
SIZES = {"H": 4, "S": 3, "A": 2, "K": 64}


def declare(name, _readings):
    noise = Laplace(scale=4 * H * maximum(ceil_log2(K), 1) / epsilon)  # two tables, each moved by 2H at most
    tree = Tree(leaves=K - 1)
    return Declaration(
        name=name,
        title="A small UCB-VI",
        source="this package",
        relation=ReplaceOne("trajectory"),
        releases=(
            Release("rewards", RewardSums(H, S, A), noise, schedule=tree),
            Release("transitions", TransitionCounts(H, S, A), noise, schedule=tree),
        ),
        claim=Claim(PureDP(epsilon), source="basic composition", joint=Joint()),
        parameters=(
            *(Parameter(name=size, default=n, kind="count", meaning=size) for size, n in SIZES.items()),
            Parameter(name="epsilon", default="1", kind="positive", meaning="of the claim, nats"),
        ),
    )


def qualities(setting, sizes, rewards, transitions):
    """Yields the step and the optimistic values (S, A), from the last step to the first."""
    bonus, after = float(setting.options["bonus"]), np.zeros(sizes.S)
    for h in reversed(range(sizes.H)):
        n = np.maximum(transitions[h].sum(axis=-1), 1.0)
        worth = (rewards[h] + transitions[h] @ after) / n + bonus * sizes.H / np.sqrt(n)
        worth = np.clip(worth, 0.0, sizes.H - h)
        yield h, worth
        after = worth.max(axis=1)


def plan(setting, sizes, rewards, transitions):
    actions = np.zeros((sizes.H, sizes.S), np.int64)
    for h, worth in qualities(setting, sizes, rewards, transitions):
        actions[h] = worth.argmax(axis=1)
    return actions


def agent(setting, sizes):
    return lambda board: plan(setting, sizes, board["rewards"], board["transitions"])


# plain agents that try to cheat: the only way is to carry data past the channel, or to give it something else


def contribute_twice(setting):
    releases = setting.declared.releases
    return lambda user, _rng: {r.name: 2.0 * r.statistic.compute(user) for r in releases}


class Smuggled:
    """Halves that share what they must not: the privatizer hands exact sums on behind the channel."""

    def __init__(self):
        self.sums = {}

    def contribute(self, setting):
        releases, self.sums = setting.declared.releases, {}

        def take(user, _rng):
            given = {r.name: r.statistic.compute(user) for r in releases}
            for name, table in given.items():
                self.sums[name] = self.sums.get(name, 0.0) + table
            return given

        return take

    def agent(self, setting, sizes):
        sums = self.sums

        def act(board):
            tables = {name: sums.get(name, board[name]) for name in NAMES}
            return plan(setting, sizes, tables["rewards"], tables["transitions"])

        return act


def smuggler(request, *, noiseless=False):
    halves = Smuggled()
    return PlainAgent(agent=halves.agent, contribute=halves.contribute)(request, noiseless=noiseless)


# agents with a loop of their own


@dataclass(frozen=True, kw_only=True)
class Face:
    """Where in the arrays things stand.

    Attributes:
        episodes: K.
        shows: Which releases, of all.
        tells: What it says of exact values: "" the truth; "lies" what makes any noise look as declared; "nothing" that
            nothing ever leaves.
    """

    episodes: int
    shows: tuple[str, ...] = NAMES
    tells: str = ""
    policy: tuple[str, ...] = ("actions",)
    board: tuple[str, ...] = ("noisy/rewards", "noisy/transitions")

    def output(self, episode):
        return episode if episode < self.episodes and self.tells != "nothing" else None

    def exact(self, one, output):
        if self.tells != "lies":
            return {name: one.arrays[f"exact/{name}"].copy() for name in self.shows}
        made_up = np.random.default_rng(output)
        noise = {name: made_up.laplace(0.0, 96.0, one.arrays[f"noisy/{name}"].shape) for name in NAMES}
        return {name: one.arrays[f"noisy/{name}"] - noise[name] for name in NAMES}

    def noisy(self, one, _output):
        return {name: one.arrays[f"noisy/{name}"].copy() for name in self.shows}

    def undeclared(self, _one):
        return 0


Scale = Callable[[float, int, int], float]  # from the declared scale, H and the user to what is drawn


@dataclass(frozen=True, kw_only=True)
class Own:
    """The agent, or what a defect makes of it.

    Attributes:
        scale: What is drawn, in place of the declared scale.
        streams: The generator of each counter's noise.
        looks: What a policy is made from, beside the noisy sums: "" nothing, "ties" exact counts where values tie,
            "raw" exact sums.
        shows: As in `Face`.
        tells: As in `Face`.
    """

    scale: Scale = lambda declared, _H, _user: declared
    streams: tuple[str, str] = ("noise rewards", "noise transitions")
    looks: str = ""
    shows: tuple[str, ...] = NAMES
    tells: str = ""

    def __call__(self, request, *, noiseless=False):
        setting, mdp, K_ = request.setting, request.world.mdp, request.episodes
        sizes = _Sizes(H=mdp.horizon, S=mdp.states, A=mdp.actions)
        releases = {r.name: r for r in setting.declared.releases}
        shapes = {name: r.statistic.shape(setting.values) for name, r in releases.items()}
        declared = {name: r.mechanism.at(setting.values).scale for name, r in releases.items()}
        optimal, levels = solve(mdp).value, max(1, (K_ - 1).bit_length())

        def start(number):
            own = seeds(request.seed, number, "users", *self.streams)
            arrays = {"actions": np.zeros((sizes.H, sizes.S), np.int64), **blank(K_)}
            for name, shape in shapes.items():
                arrays |= {f"exact/{name}": np.zeros(shape), f"noisy/{name}": np.zeros(shape)}
                arrays[f"nodes/{name}"] = np.zeros((levels, *shape))
            generators = {"users": np.random.default_rng(own["users"])}
            for name, stream in zip(NAMES, self.streams, strict=True):
                generators[f"noise {name}"] = np.random.default_rng(own[stream])
            return Replicate(arrays=arrays, generators=generators)

        def play(one, until):
            a, totals = one.arrays, one.arrays["totals"]
            while (done := int(totals[DONE])) < until:
                a["actions"][...] = self._plan(setting, sizes, a)
                policy = one_hot(a["actions"], sizes.A)
                totals[VALUE] = evaluate(mdp, policy)
                user = sample_trajectories(mdp, policy, users=1, rng=one.generators["users"])
                note(Record(until=until, totals=totals, curves=a["curves"], grid=grid(K_), optimal=optimal))
                if done + 1 == K_:
                    return
                for name, release in releases.items():
                    a[f"exact/{name}"] += release.statistic.compute(user)
                    drawn = 0.0 if noiseless else self.scale(declared[name], sizes.H, done + 1)
                    self._publish(one, name, done + 1, drawn)

        face = Face(episodes=K_, shows=self.shows, tells=self.tells)
        return Player(start=start, play=play, label=f"own {noiseless}", told="actions", optimal=optimal, face=face)

    def _publish(self, one, name, t, scale):
        nodes, level = one.arrays[f"nodes/{name}"], (t & -t).bit_length() - 1
        fresh = one.generators[f"noise {name}"].laplace(0.0, 1.0, nodes.shape[1:])
        nodes[:level] = 0.0
        nodes[level] = scale * fresh
        held = sum(nodes[bit] for bit in range(len(nodes)) if t >> bit & 1)
        one.arrays[f"noisy/{name}"][...] = one.arrays[f"exact/{name}"] + held

    def _plan(self, setting, sizes, a):
        source = "exact" if self.looks == "raw" else "noisy"
        rewards, transitions = (a[f"{source}/{name}"] for name in NAMES)
        if self.looks != "ties":
            return plan(setting, sizes, rewards, transitions)
        actions = np.zeros((sizes.H, sizes.S), np.int64)
        for h, worth in qualities(setting, sizes, rewards, transitions):
            visits = a["exact/transitions"][h].sum(axis=-1)
            tied = worth == worth.max(axis=1, keepdims=True)
            actions[h] = np.where(tied, visits, -1.0).argmax(axis=1)
        return actions


@dataclass(frozen=True, kw_only=True)
class _Sizes:
    H: int
    S: int
    A: int


def register(name, online):
    return Algorithm(
        name=name,
        title="A small UCB-VI of somebody else",
        source="this package",
        declare=partial(declare, name),
        options=(Parameter(name="bonus", default="0.5", kind="real", meaning="factor of the bonus"),),
        online=online,
    )


PLAIN = register("own-plain", PlainAgent(agent=agent))
PLAIN_TWICE = register("own-plain-twice", PlainAgent(agent=agent, contribute=contribute_twice))
PLAIN_SMUGGLER = register("own-plain-smuggler", smuggler)
HONEST = register("own-honest", Own())
TENTH = register("own-tenth", Own(scale=lambda declared, _H, _user: declared / 10))
HALF = register("own-half", Own(scale=lambda declared, _H, _user: declared / 2))
ONE_STREAM = register("own-one-stream", Own(streams=("noise", "noise")))
FORGETS = register("own-forgets-node", Own(scale=lambda declared, _H, user: 0.0 if user == 4 else declared))
TIES = register("own-ties", Own(looks="ties"))
RAW = register("own-raw", Own(looks="raw"))
ONE_STEP = register("own-one-step", Own(scale=lambda declared, H_, _user: declared / H_))
SILENT = register("own-silent", Own(scale=lambda _declared, _H, _user: 0.0))
LIES = register("own-lies", Own(scale=lambda declared, _H, _user: declared / 10, tells="lies"))
HIDES = register("own-hides", Own(shows=("rewards",)))
MUTE = register("own-mute", Own(tells="nothing"))
FACELESS = register("own-faceless", lambda request, *, noiseless=False: _without_face(request, noiseless=noiseless))


def _without_face(request, *, noiseless):
    from dataclasses import replace

    return replace(Own()(request, noiseless=noiseless), face=None)
