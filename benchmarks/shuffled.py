"""The comparison of paper 003 (its figure's setting): regret as a share of K·V* on RiverSwim, S = 4, H = 6.

`python benchmarks/shuffled.py` prints K = 2·10⁴ on 20 seeds in some minutes; `--long` K = 2·10⁵ too. Agents that are
not registered are left out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privcheck import registry
from privcheck.commands.online import load_world, settle_together
from privcheck.planning import evaluate, one_hot
from privcheck.results import OnlineRequest, World

STATES, STEPS = 4, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """An agent with its settings.

    Attributes:
        name: As it is registered.
        sets: NAME=VALUE pairs.
        words: What it is, in the table.
    """

    name: str
    sets: dict[str, str]
    words: str


CONTESTANTS = (
    Contestant(name="ucb-vi", sets={}, words="UCB-VI, printed bonus"),
    Contestant(name="ucb-vi", sets={"bonus_scale": "0.01"}, words="UCB-VI, bonus × .01"),
    Contestant(name="policy-elimination", sets={"constants": "printed", "width": "1"}, words="PE, printed C = 1"),
    Contestant(name="policy-elimination", sets={}, words="PE, explicit"),
    Contestant(name="policy-elimination", sets={"policies": "implicit"}, words="PE, implicit"),
    Contestant(name="sdp-pe-as-printed", sets={}, words="SDP-PE as printed"),
    Contestant(name="sdp-pe", sets={}, words="SDP-PE, printed τ, C = .005"),
    Contestant(name="sdp-pe-calibrated", sets={}, words="SDP-PE, calibrated noise"),
    Contestant(name="dp-ucbvi-central", sets={}, words="DP-UCBVI, JDP"),
    Contestant(name="dp-ucbvi-local", sets={}, words="DP-UCBVI, LDP"),
    Contestant(name="calibrated-ucb-vi", sets={"counts": "steps"}, words="CALIBRATED-UCB-VI, (1, 10⁻⁵)-JDP"),
    Contestant(name="shuffled-ucb-vi", sets={}, words="SHUFFLED-UCB-VI, (1, 10⁻⁵)-SDP"),
)


def measure(one: Contestant, world: World, K: int, seeds: Sequence[int]) -> np.ndarray:
    """Returns the regret of every seed, as a share of K·V*."""
    settings = settle_together([registry.algorithm(one.name)], {**one.sets, "K": str(K)}, world)
    shares = []
    for seed in seeds:
        request = OnlineRequest(
            setting=settings[0].setting, world=world, episodes=K, replicates=1, seed=seed, workers=1
        )
        result = settings[0].algorithm.play(request)
        shares.append(result.regret[0, -1] / (K * result.optimal))
    return np.array(shares)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="K = 2·10⁵ too")
    parser.add_argument("--seeds", type=int, default=20)
    asked = parser.parse_args()
    world, _ = load_world("riverswim", {"S": str(STATES), "H": str(STEPS)}, seed=0)
    sizes = (20_000, 200_000) if asked.long else (20_000,)
    known = set(registry.names("algorithms"))
    left = evaluate(world.mdp, one_hot(np.zeros((STEPS, STATES), np.int64), 2))
    print("share of K·V* in %, ε = 1, β = 10⁻⁵, mean ± standard error over", asked.seeds, "seeds")
    print("| agent |", " | ".join(f"K = {K}" for K in sizes), "|")
    print("| --- |", " | ".join("---" for _ in sizes), "|")
    for one in CONTESTANTS:
        if one.name not in known:
            continue
        cells = []
        for K in sizes:
            shares = 100 * measure(one, world, K, range(asked.seeds))
            error = shares.std(ddof=1) / math.sqrt(len(shares)) if len(shares) > 1 else math.nan
            cells.append(f"{shares.mean():.1f} ± {error:.1f}")
        print(f"| {one.words} |", " | ".join(cells), "|", flush=True)
    best = settle_together([registry.algorithm("policy-elimination")], {"K": "3"}, world)[0]
    optimal = best.algorithm.play(OnlineRequest(setting=best.setting, world=world, episodes=3)).optimal
    print("| always left |", " | ".join(f"{100 * (1 - left / optimal):.1f}" for _ in sizes), "|")
    print("The printed protocol learns nothing at its own sizes: no policy is ever eliminated.")


if __name__ == "__main__":
    main()
