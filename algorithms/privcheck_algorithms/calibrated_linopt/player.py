"""CALIBRATED-LINOPT in its world: batches of users, their exact sums, noise, and the agent behind the billboard.

`believe` and `choose` (agent) read the billboard alone; `release` is the channel's side; `serve` (kernels) is where
users are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.online.driver import seeds
from privcheck.online.player import Player, Replicate
from privcheck.online.recording import DONE, SWITCHES, Record, blank, grid
from privcheck.planning import solve
from privcheck.results import OnlineRequest
from privcheck_algorithms.calibrated_linopt.agent import Numbers, Past, believe, choose
from privcheck_algorithms.calibrated_linopt.kernels import Batch, serve
from privcheck_algorithms.calibrated_linopt.mixture import design, mixture
from privcheck_algorithms.linear.mixtures import find_kernels
from privcheck_algorithms.online.batches import schedule
from privcheck_algorithms.online.faces import BatchFace
from privcheck_algorithms.online.private import NOISE, declared
from privcheck_algorithms.online.sizes import MEMORY, refuse
from privcheck_algorithms.online.sparse_mdp import compress, value_greedy

Array = NDArray[np.float64]


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Returns CALIBRATED-LINOPT in its world, ready to play.

    Args:
        request: What is asked.
        noiseless: No noise is drawn; the agent plans as with noise.

    Raises:
        ParameterError: The world has no kernels of a mixture, sizes that are not the environment's, no episode, tables
            beyond 8 GB, or a refused option.
    """
    refuse(request, vectors=0)
    c = numbers(request)
    ends = schedule(request.episodes, first=int(c.option["first_batch"]), growth=c.option["growth"])
    B, G = len(ends), int(c.option["turns"])
    refuse_tables(request, c, batches=B)
    mdp, steps, drawn = request.world.mdp, c.H if c.public is None else 0, 0.0 if noiseless else 1.0
    w, truth, points = compress(mdp), solve(mdp), grid(request.episodes)
    S, d1, d2 = mdp.states, len(c.known.basis), c.phi.shape[-1]
    names = tuple(release.name for release in declared(request).noisy)

    def start(number: int) -> Replicate:
        own = seeds(request.seed, number, "users", "noise", "draws")
        arrays = {
            "values": np.zeros((B, max(c.H - 1, 1), d1)),
            "exact_values": np.zeros((max(c.H - 1, 1), d1)),
            "rewards": np.zeros((B, steps, d2)),
            "exact_rewards": np.zeros((steps, d2)),
            "bases": np.zeros((B, c.H + 1, S)),
            "played": np.zeros((B, G, c.H, S), np.int64),
            "actions": np.zeros((c.H, S), np.int64),
            "worth": np.zeros(G),
            "changes": np.zeros(G, np.bool_),
        }
        generators = {name: np.random.default_rng(one) for name, one in own.items()}
        return Replicate(arrays=arrays | blank(request.episodes), generators=generators)

    def begin(one: Replicate, batch: int) -> None:
        a = one.arrays
        past = Past(
            values=a["values"][:batch],
            rewards=a["rewards"][:batch],
            bases=a["bases"][:batch],
            played=a["played"][:batch],
            sizes=np.diff(ends, prepend=0)[:batch].astype(np.float64),
        )
        chosen, basis = choose(believe(past, c), c, one.generators["draws"])
        a["bases"][batch], a["played"][batch], a["actions"][...] = basis, chosen, chosen[0]
        for turn in range(G):
            judged, values = np.full((c.H, S), -1), np.zeros((c.H + 1, S))
            a["worth"][turn] = value_greedy(w, chosen[turn], judged, values)
        a["changes"][...] = (chosen != np.roll(chosen, 1, axis=0)).any(axis=(1, 2))
        done = int(a["totals"][DONE])
        if batch and (chosen[done % G] != a["played"][batch - 1, (done - 1) % G]).any():
            a["totals"][SWITCHES] += 1.0
        a["exact_values"][...] = a["exact_rewards"][...] = 0.0

    def block(one: Replicate, until: int) -> None:
        a, g = one.arrays, one.generators
        while (done := int(a["totals"][DONE])) < until:
            batch = int(np.searchsorted(ends, done, side="right"))
            begun = int(ends[batch - 1]) if batch else 0
            if done == begun:
                begin(one, batch)
            within = design(c.known, a["bases"][batch])
            users = Batch(
                begun=begun,
                policies=a["played"][batch],
                worth=a["worth"],
                changes=a["changes"],
                targets=within.targets,
                x=within.x @ c.known.basis.T,
                values=a["exact_values"],
                phi=c.phi,
                rewards=a["exact_rewards"],
            )
            record = Record(min(until, int(ends[batch])), a["totals"], a["curves"], points, truth.value)
            serve(w, g["users"], users, record)
            if a["totals"][DONE] == ends[batch] and batch + 1 < B:  # nobody comes after the last batch
                a["values"][batch] = release(a["exact_values"], drawn * c.sigma, g["noise"])
                if steps:
                    a["rewards"][batch] = release(a["exact_rewards"], drawn * c.sigma_rewards, g["noise"])

    return Player(
        start=start,
        play=block,
        label="calibrated-linopt, noiseless" if noiseless else "calibrated-linopt",
        told="actions",
        optimal=truth.value,
        face=BatchFace(names=names, ends=tuple(ends.tolist()), policy=("actions", "played", "bases")),
        noise=NOISE,
        diagnostics={"batches": float(B), "noise_std": c.sigma, "noise_std_rewards": c.sigma_rewards},
    )


def numbers(request: OnlineRequest) -> Numbers:
    """Returns the agent's numbers; the noise from the declaration.

    Raises:
        ParameterError: The world has no kernels of a mixture or other dimensions than are declared, or growth is below
            1.
    """
    declaration, world, features = declared(request), request.world, find_kernels(request)
    known = mixture(np.asarray(features.kernels), world.public_model.initial)
    for name, found in features.sizes.items():
        if name in request.values and request.values[name] != found:
            message = f"{name}: {request.values[name]} is declared, but {world.name} has {found}; leave {name} out"
            raise ParameterError(message, name=name, given=request.values[name])
    if request.options["growth"] < 1:
        message = f"growth (each batch is so much larger): expected at least 1, got {request.options['growth']}"
        raise ParameterError(message, name="growth", given=request.options["growth"])
    noise = {r.name: r.mechanism.at(request.values).scale for r in declaration.noisy}
    mdp, public = world.mdp, None
    if "rewards" not in noise:
        public = np.broadcast_to(world.public_model.mean_reward, (mdp.horizon, mdp.states, mdp.actions)).copy()
    return Numbers(
        H=mdp.horizon,
        known=known,
        phi=np.ascontiguousarray(features.phi),
        public=public,
        sigma=noise["values"],
        sigma_rewards=noise.get("rewards", 0.0),
        option={name: float(value) for name, value in request.options.items()},
    )


def release(exact: Array, sigma: float, noise: np.random.Generator) -> Array:
    """Returns exact + fresh Gaussian noise: the channel's side, once a batch and release."""
    return np.asarray(exact + sigma * noise.standard_normal(exact.shape))


def refuse_tables(request: OnlineRequest, c: Numbers, *, batches: int) -> None:
    """Refuses tables, policies and expected visits beyond 8 GB.

    Raises:
        ParameterError: They need more.
    """
    S, A, d2 = c.phi.shape
    d1, q = c.known.basis.shape
    kept = (batches + 1) * c.H * (d1 + d2 + S * (1 + float(c.option["turns"])))
    passing = batches * c.H * S * A * (1 + q) + (d1 + q + 1) * S * S * A
    needed = 8.0 * (kept * request.replicates + passing * max(1, min(request.workers, request.replicates)))
    if needed > MEMORY:
        message = (
            f"{batches} batches of sums and of {int(c.option['turns'])} policies in {request.replicates} replicates "
            f"need {needed / 1e9:.1f} GB, at most {MEMORY / 1e9:g} GB are taken: fewer --replicates or turns, a larger "
            "growth or first_batch, or smaller S, A or H"
        )
        raise ParameterError(message, name="replicates", given=request.replicates)
