"""Episodes a second of the linear online agents on one core, and what they reach, beside a published LSVI-UCB.

    python benchmarks/linear_speed.py [--write]

`linear-signs`, d = 10, S = 2, A = 256, H = 20, K = 10⁴; one replicate of each of the seeds 0 to 19 (fewer where one
takes more than a second), each with its own model. Seconds are CPU time of a run on one core, the median, without
compilation. The share is of the uniform policy's regret, with its standard error. Users' randomness, evaluation of
policies and the record are included. The peer is LSVI-UCB of rlberry-scool, run in the same model for as many episodes
as it does in some seconds; where it is not installed the line says so. In an environment of its own, beside other work
on the same machine, version 0.7.3 did 0.34 episodes a second (K = 20, a plan for every episode).
"""

import statistics
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from privcheck.commands.online_runs import load_world, online_settings
from privcheck.data.finite_models import evaluate, uniform
from privcheck.runtime.replicates import run
from privcheck.runtime.results import OnlineRequest

K = 10_000
CASES = [
    ("lsvi-ucb", {"centred": "on"}, 20), ("lsvi-ucb", {}, 20), ("lsvi-ucb", {"growth": "1", "batches": str(K)}, 2),
    ("lsvi-ucb-pp", {"centred": "on"}, 20), ("lsvi-ucb-pp", {}, 20),
    ("luyo-lsvi-ucb", {}, 20), ("luyo-lsvi-ucb", {"centred": "on"}, 20),
    ("ngo-lsvi-ucb", {}, 10), ("ngo-lsvi-ucb", {"centred": "on"}, 10),
    ("dp-lsvi-ucb-pp", {}, 5), ("dp-lsvi-ucb-pp-as-printed", {}, 5), ("published-lsvi-ucb-pp", {}, 5),
]  # fmt: skip
PEER, PEER_EPISODES = "rlberry_scool", 20


def request(name, seed, *, episodes=K, **given):
    world, _ = load_world("linear-signs", {"model": str(seed + 1)}, seed=0)
    setting = online_settings([name], {"K": str(episodes), **given}, world)[0]
    return setting.algorithm, OnlineRequest(setting=setting.setting, world=world, episodes=episodes, seed=seed)


def measure(name, given, seeds):
    algorithm, warm = request(name, 0, episodes=50, **given)
    run(algorithm.online, warm)
    shares, rates = [], []
    for seed in range(seeds):
        algorithm, asked = request(name, seed, **given)
        mdp, began = asked.world.mdp, time.process_time()
        found = run(algorithm.online, asked)
        rates.append(K / (time.process_time() - began))
        left = found.optimal - evaluate(mdp, uniform(mdp.horizon, mdp.states, mdp.actions))
        shares.append(100 * found.regret[0, -1] / (K * left))
    return statistics.median(rates), statistics.mean(shares), statistics.stdev(shares) / np.sqrt(seeds)


def measure_peer():
    """Returns episodes a second of rlberry-scool's LSVI-UCB in the same model."""
    from rlberry.envs.finite_mdp import FiniteMDP
    from rlberry_scool.agents.linear import LSVIUCBAgent

    _, asked = request("lsvi-ucb", 0, episodes=50)
    mdp, phi = asked.world.mdp, asked.world.features.phi
    env = FiniteMDP(mdp.mean_reward[0], mdp.transition[0], initial_state_distribution=int(mdp.initial.argmax()))
    agent = LSVIUCBAgent(
        env,
        horizon=mdp.horizon,
        feature_map_fn=lambda _: Features(phi),
        gamma=1.0,
        reg_factor=1.0,
        bonus_scale_factor=0.5,
    )
    began = time.process_time()
    agent.fit(budget=PEER_EPISODES)
    return PEER_EPISODES / (time.process_time() - began)


class Features:
    """The peer's feature map of a table φ, (S, A, d)."""

    def __init__(self, phi):
        self.phi, self.shape = phi, (phi.shape[-1],)

    def map(self, state, action):
        return self.phi[state, action]


def lines():
    yield "| agent | options | seeds | share of uniform's regret | episodes/s on one core |"
    yield "| --- | --- | ---: | ---: | ---: |"
    best = 0.0
    for name, given, seeds in CASES:
        rate, share, error = measure(name, given, seeds)
        best = max(best, rate) if name == "lsvi-ucb" else best
        words = ", ".join(f"{key} = {value}" for key, value in given.items()) or "–"
        yield f"| `{name}` | {words} | {seeds} | {share:.1f} ± {error:.1f} % | {rate:,.0f} |"
    if find_spec(PEER) is None:
        yield f"\n{PEER} is not installed: no line of it, and no ratio."
    else:
        rate = measure_peer()
        yield f"| LSVI-UCB of {PEER} | K = {PEER_EPISODES}; its cost grows with K² | 1 | – | {rate:,.2f} |"
        yield f"\n`lsvi-ucb` with determinants: {best / rate:,.0f} times as many as {PEER}."


def main():
    shown = []
    for line in lines():
        print(line, flush=True)
        shown.append(line)
    if "--write" in sys.argv:
        head = "# Linear online agents: speed and regret\n\n" + " ".join((__doc__ or "").split("\n\n", 2)[2].split())
        text = head + "\n\n" + "\n".join(shown) + "\n"
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
