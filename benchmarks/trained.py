"""Private agents beyond tables: returns of the greedy policy after training on users who play one episode each.

    python benchmarks/trained.py                 all sections, and writes trained.md
    python benchmarks/trained.py tune            of tune, levels, users, gymnasium, speed one or more; writes nothing

Simulated users and simulated noise. δ = 10⁻⁵, replace-one. Seeds 100 to 102 chose the rates, for the private agent and
for its twin with the same effort; the tables are of seeds 0 to 4, and returns of 200 fresh users for each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from privcheck.verification import verify
from privcheck_algorithms.trained import (
    ACROBOT,
    CART_POLE,
    PRIVATE_POLICY_GRADIENT,
    LinearPolicy,
    PolicyGradient,
    SimulatedUsers,
    TanhPolicy,
    greedy_returns,
    no_noise,
    simulated_noise,
    train,
)
from privcheck_algorithms.trained.policies import greedy

OUT = Path(__file__).with_suffix(".md")
DECLARED = PRIVATE_POLICY_GRADIENT.declare({})
FRESH, TUNING = range(5), range(100, 103)
OFF = "off"  # the twin: the same agent without noise
RATES = (0.1, 0.2, 0.4)


@dataclass(frozen=True, kw_only=True)
class Case:
    title: str
    agent: PolicyGradient
    batch: int
    twin_rate: float  # tuned by itself


NET = Case(
    title="CartPole, net of 16 units",
    agent=PolicyGradient(task=CART_POLE, policy=TanhPolicy(inputs=4, actions=2, units=16), rate=0.2),
    batch=250,
    twin_rate=0.2,
)
LINE = Case(
    title="CartPole, linear",
    agent=PolicyGradient(task=CART_POLE, policy=LinearPolicy(inputs=4, actions=2), rate=0.2),
    batch=250,
    twin_rate=0.2,
)
SWING = Case(
    title="Acrobot, linear",
    agent=PolicyGradient(task=ACROBOT, policy=LinearPolicy(inputs=6, actions=2), rate=0.2, discount=0.99),
    batch=500,
    twin_rate=0.2,
)
SWING_NET = Case(
    title="Acrobot, net of 16 units",
    agent=PolicyGradient(task=ACROBOT, policy=TanhPolicy(inputs=6, actions=2, units=16), rate=0.2, discount=0.99),
    batch=500,
    twin_rate=0.2,
)
CASES = (NET, LINE, SWING, SWING_NET)


def trained(case: Case, level: str, seed: int, *, users: int = 10_000, rate: float | None = None):
    """Parameters after a training, with its CPU seconds and its number of environment steps."""
    chosen = rate or (case.twin_rate if level == OFF else case.agent.rate)
    agent = replace(case.agent, rate=chosen)
    given = {"K": users, "B": min(case.batch, users // 20), "d": agent.policy.dimension + 1}  # 20 updates at least
    at = DECLARED.values(given if level == OFF else given | {"epsilon": level})
    counted = Counted(SimulatedUsers(task=agent.task, seed=seed))
    begun = time.process_time()
    noise = no_noise if level == OFF else simulated_noise(seed)
    found = train(agent, counted, declaration=DECLARED, values=at, noise=noise)
    return found.parameters, time.process_time() - begun, counted.steps


class Counted:
    """Users whose steps are counted, for the speed."""

    def __init__(self, of):
        self.of, self.steps = of, 0

    def play(self, choose, users):
        episodes = self.of.play(choose, users)
        self.steps += int(episodes.lengths.sum())
        return episodes


def judged(case: Case, level: str, seed: int, **given) -> float:
    parameters, _, _ = trained(case, level, seed, **given)
    fresh = greedy_returns(case.agent.task, case.agent.policy, parameters, seed=10**6 + seed, episodes=200)
    return float(fresh.mean())


def shown(returns: list[float]) -> str:
    """Mean and sample deviation over seeds, and the worst seed."""
    return f"{np.mean(returns):.1f} ± {np.std(returns, ddof=1):.1f} ({min(returns):.0f})"


def tune() -> Iterator[str]:
    yield "| agent | | " + " | ".join(f"rate {rate}" for rate in RATES) + " |"
    yield "| --- | --- |" + " --- |" * len(RATES)
    for case in CASES:
        for level in ("1", OFF):
            cells = [shown([judged(case, level, seed, rate=rate) for seed in TUNING]) for rate in RATES]
            yield f"| {case.title}, B = {case.batch} | {said(level)} | {' | '.join(cells)} |"


def levels() -> Iterator[str]:
    sweep = ("1/2", "1", "2", OFF)
    yield "| agent | uniform | " + " | ".join(said(level) for level in sweep) + " |"
    yield "| --- | --- |" + " --- |" * len(sweep)
    for case in CASES:
        cells = [shown([judged(case, level, seed) for seed in FRESH]) for level in sweep]
        yield f"| {case.title}, B = {case.batch} | {uniform(case):.0f} | {' | '.join(cells)} |"


def users() -> Iterator[str]:
    sizes = (2_000, 3_000, 5_000)
    yield "| agent | | " + " | ".join(f"K = {size:,}".replace(",", " ") for size in sizes) + " |"
    yield "| --- | --- |" + " --- |" * len(sizes)
    for case in (NET, SWING):
        for level in ("1", OFF):
            cells = [shown([judged(case, level, seed, users=size) for seed in FRESH]) for size in sizes]
            yield f"| {case.title}, B = K/20 | {said(level)} | {' | '.join(cells)} |"


def in_gymnasium() -> Iterator[str]:
    import gymnasium

    yield "| agent, ε = 1 | mean return in Gymnasium's own environment, by seed |"
    yield "| --- | --- |"
    for case in (NET, SWING):
        own, means = gymnasium.make(case.agent.task.gymnasium), []
        for seed in FRESH:
            parameters, _, _ = trained(case, "1", seed)
            totals = []
            for episode in range(20):
                seen, _ = own.reset(seed=1000 * seed + episode)
                total, over = 0.0, False
                while not over:
                    scaled = (np.asarray(seen, dtype=np.float64) - case.agent.task.centre) / case.agent.task.scale
                    action = int(greedy(case.agent.policy.logits(parameters, scaled)))
                    seen, reward, ended, cut, _ = own.step(case.agent.task.actions[action])
                    total, over = total + float(reward), ended or cut
                totals.append(total)
            means.append(np.mean(totals))
        yield f"| {case.title} | {', '.join(f'{mean:.1f}' for mean in means)} |"


def speed() -> Iterator[str]:
    yield "| agent, K = 10 000 | CPU seconds, ε = 1 | twin | steps a CPU second, ε = 1 | twin |"
    yield "| --- | --- | --- | --- | --- |"
    for case in CASES:
        private = [trained(case, "1", seed) for seed in range(3)]
        twin = [trained(case, OFF, seed) for seed in range(3)]
        seconds, steps = sum(one[1] for one in private), sum(one[2] for one in private)
        alone, others = sum(one[1] for one in twin), sum(one[2] for one in twin)
        speeds = f"{steps / seconds / 1e6:.2f} M | {others / alone / 1e6:.2f} M"
        yield f"| {case.title} | {seconds / 3:.2f} | {alone / 3:.2f} | {speeds} |"


def uniform(case: Case) -> float:
    """Mean return of the policy that takes both actions equally often."""
    parameters, agent = case.agent.policy.initial(), case.agent
    from privcheck_algorithms.trained.policies import sampled

    episodes = SimulatedUsers(task=agent.task, seed=77).play(
        lambda seen, chances, _: sampled(agent.policy.logits(parameters, seen), chances), range(1000)
    )
    return float(episodes.returns.mean())


def said(level: str) -> str:
    return "without noise" if level == OFF else f"ε = {level}"


SECTIONS = {
    "levels": (levels, "Return of the final greedy policy, K = 10 000"),
    "gymnasium": (in_gymnasium, "The same policies in Gymnasium's own environment, 20 episodes each"),
    "tune": (tune, "What was tuned: Adam's rate, on seeds 100 to 102"),
    "users": (users, "By the number of users"),
    "speed": (speed, "Speed, one core, per-user gradients included"),
}
HEAD = """# Trained agents

`python benchmarks/trained.py`. Simulated users, one episode each; δ = 10⁻⁵, replace-one, joint DP. Mean ± sample
deviation over five seeds that nothing was tuned on (worst seed), each the mean of 200 fresh users under the greedy
policy. {verdict}

What was tuned, with the same effort for the agent and for its twin, is in the third table: three rates of three runs
each on simulated users, for every task and policy. C = 3, γ = 0.98 (CartPole) or 0.99 (Acrobot), B, the scales of
observations, q = 0.15 and the first batch without an update come from some forty earlier private runs on seeds 100 to
105. These choices are public here; on real users they would cost."""


def main(asked: list[str]) -> None:
    found = verify(DECLARED, DECLARED.values({}))
    verdict = f"`privcheck verify private-policy-gradient`: {found.verdict}, joint DP {found.joint}"
    text = [HEAD.format(verdict=f"{verdict}, {found.upper_ratio:.6f} of the claim.")]
    for name, (section, title) in SECTIONS.items():
        if asked and name not in asked:
            continue
        lines = []
        for line in section():
            print(line, flush=True)
            lines.append(line)
        text.append(f"## {title}\n\n" + "\n".join(lines))
        if not asked:
            OUT.write_text("\n\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
