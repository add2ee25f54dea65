"""Private agents beyond tables: returns of the greedy policy after training on users who play one episode each.

    python benchmarks/trained.py                 all sections, and writes trained.md
    python benchmarks/trained.py tune            of the sections one or more; writes nothing
    python benchmarks/trained.py curves --write  the same, and writes them into trained.md in place of the last ones

Simulated users and simulated noise. δ = 10⁻⁵, replace-one. Seeds 100 to 102 chose the rates, for the private agent and
for its twin with the same effort; the tables are of seeds 200 to 204, and returns of 200 fresh users for each.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from privcheck import GaussianDP, audit_one_run
from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.verification import verify
from privcheck_algorithms.trained import (
    ACROBOT,
    CANCER,
    CART_POLE,
    HIV,
    MOUNTAIN_CAR,
    PENDULUM,
    PRIVATE_AWR,
    PRIVATE_EVOLUTION_STRATEGIES,
    PRIVATE_FITTED_Q,
    PRIVATE_MODEL_PLANNING,
    PRIVATE_NATURAL_GRADIENT,
    PRIVATE_POLICY_GRADIENT,
    RULES,
    AdvantageWeighted,
    DosePolicy,
    EvolutionStrategies,
    FittedQ,
    LinearPolicy,
    LoggedUsers,
    MirrorPolicy,
    ModelPlanning,
    NaturalGradient,
    Network,
    OptaxRule,
    PolicyGradient,
    SimulatedUsers,
    TanhPolicy,
    drawn_returns,
    greedy_returns,
    no_noise,
    simulated_noise,
    simulated_sample,
    train,
    with_products,
)
from privcheck_algorithms.trained.cancer import DEATH, DOSES, MONTHS, develop, hazard, month_rewards
from privcheck_algorithms.trained.policies import greedy, sampled
from privcheck_algorithms.trained.policy_gradient import draw_rows
from privcheck_algorithms.trained.tasks import play
from privcheck_audits.lockstep.training_canaries import TrainingCanaries

OUT = Path(__file__).with_suffix(".md")
PICTURE = OUT.parents[1] / "docs" / "trained.svg"
GRADIENT = PRIVATE_POLICY_GRADIENT.declare({})
SEARCH = PRIVATE_EVOLUTION_STRATEGIES.declare({})
NATURAL = PRIVATE_NATURAL_GRADIENT.declare({})
FRESH, TUNING = range(200, 205), range(100, 103)
OFF = "off"  # the twin: the same agent without noise
RATES = (0.2, 0.4, 0.8)


@dataclass(frozen=True, kw_only=True)
class Case:
    title: str
    agent: PolicyGradient | EvolutionStrategies | NaturalGradient
    batch: int
    norm: int = 3
    rate: float  # of the private agent …
    twin_rate: float  # … and of its twin, each the best of RATES on seeds 100 to 102

    @property
    def declared(self):
        if isinstance(self.agent, NaturalGradient):
            return NATURAL
        return SEARCH if isinstance(self.agent, EvolutionStrategies) else GRADIENT


def linear(task) -> LinearPolicy:
    return LinearPolicy(inputs=task.inputs, actions=len(task.actions), constant=False)


NET = Case(
    title="CartPole, policy gradient, net of 16 units",
    agent=PolicyGradient(task=CART_POLE, policy=TanhPolicy(inputs=4, actions=2, units=16)),
    batch=250,
    rate=0.2,
    twin_rate=0.2,
)
SWING = Case(
    title="Acrobot, policy gradient, linear",
    agent=PolicyGradient(task=ACROBOT, policy=linear(ACROBOT), discount=0.99),
    batch=500,
    norm=5,
    rate=0.4,
    twin_rate=0.4,
)
POLE = Case(
    title="CartPole, evolution strategies, linear",
    agent=EvolutionStrategies(task=CART_POLE, policy=linear(CART_POLE)),
    batch=500,
    norm=1,
    rate=0.4,
    twin_rate=0.4,
)
ARM = replace(
    POLE,
    title="Acrobot, evolution strategies, linear",
    agent=EvolutionStrategies(task=ACROBOT, policy=linear(ACROBOT)),
)
CAR = replace(
    POLE,
    title="MountainCar, evolution strategies, linear",
    agent=EvolutionStrategies(task=MOUNTAIN_CAR, policy=linear(MOUNTAIN_CAR)),
)
ROD = replace(
    POLE,
    title="Pendulum, evolution strategies, odd",
    agent=EvolutionStrategies(task=PENDULUM, policy=MirrorPolicy(turned=(False, True, True))),
)
CASES = (NET, SWING, POLE, ARM, CAR, ROD)
WALK = Case(
    title="CartPole, natural gradient, net of 16 units",
    agent=NaturalGradient(task=CART_POLE, policy=NET.agent.policy),
    batch=250,
    rate=0.45,
    twin_rate=0.45,
)
WALK_RATES = (0.3, 0.45, 0.9)  # in units of policy change
CARE = Case(  # judged by drawn actions: its greedy policy is the worse one, for private agents and twins
    title="HIV treatment, policy gradient, linear",
    agent=PolicyGradient(task=HIV, policy=LinearPolicy(inputs=6, actions=4)),
    batch=500,
    rate=0.8,
    twin_rate=0.8,
)
DOSE = replace(
    POLE,
    title="cancer dosing, evolution strategies, one mean dose",
    agent=EvolutionStrategies(task=CANCER, policy=DosePolicy(inputs=3, doses=DOSES), spread=1.0),
)
CARE_RATES = (0.4, 0.8, 1.6)
# The best known policy: greedy and linear on the same inputs, found without privacy by CMA-ES on 78 000 patients.
# Better ones are likely to exist.
BEST_CARE = np.array(
    [
        [-10.5, -27.5, -6.7],
        [8.1, -7.3, -3.1],
        [-22.5, -15.7, 9.2],
        [3.0, -6.0, -9.9],
        [2.3, -9.5, 11.9],
        [4.9, 3.9, 3.6],
        [-10.9, 7.7, 20.8],
    ]
)


def trained(case: Case, level: str, seed: int, *, users: int = 10_000, rate: float | None = None):
    """Parameters after a training, with its CPU seconds and its number of environment steps."""
    agent = replace(case.agent, rate=rate or (case.twin_rate if level == OFF else case.rate))
    batch = min(case.batch, users // 20 // 2 * 2)  # 20 updates at least, and pairs of users
    given = {"K": users, "B": batch, "C": case.norm, "d": sum(agent.blocks.values())}
    at = case.declared.values(given if level == OFF else given | {"epsilon": level})
    counted = Counted(SimulatedUsers(task=agent.task, seed=seed))
    begun = time.process_time()
    noise = no_noise if level == OFF else simulated_noise(seed)
    found = train(agent, counted, declaration=case.declared, values=at, noise=noise)
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
    returns = drawn_returns if case is CARE else greedy_returns
    fresh = returns(case.agent.task, case.agent.policy, parameters, seed=10**6 + seed, episodes=200)
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
            yield f"| {case.title} | {said(level)} | {' | '.join(cells)} |"
    runs = len(CASES) * 2 * len(RATES) * len(TUNING)
    yield ""
    each = len(RATES) * len(TUNING)
    yield f"Budget of tuning: {runs} trainings, {each} for each private agent and as many for its twin."


def levels() -> Iterator[str]:
    sweep = ("1/5", "1/2", "1", OFF)
    yield "| agent | uniform | " + " | ".join(said(level) for level in sweep) + " |"
    yield "| --- | --- |" + " --- |" * len(sweep)
    for case in CASES:
        cells = [shown([judged(case, level, seed) for seed in FRESH]) for level in sweep]
        yield f"| {case.title}, B = {case.batch} | {uniform(case):.0f} | {' | '.join(cells)} |"


def users() -> Iterator[str]:
    sizes = (1_000, 3_000)
    yield "| agent | | " + " | ".join(f"K = {size:,}".replace(",", " ") for size in sizes) + " |"
    yield "| --- | --- |" + " --- |" * len(sizes)
    for case in CASES:
        for level in ("1", OFF):
            cells = [shown([judged(case, level, seed, users=size) for seed in FRESH]) for size in sizes]
            yield f"| {case.title}, B = min({case.batch}, K/20) | {said(level)} | {' | '.join(cells)} |"


def in_gymnasium() -> Iterator[str]:
    yield "| agent, ε = 1 | mean return in Gymnasium's own environment, by seed |"
    yield "| --- | --- |"
    for case in CASES:
        means = []
        for seed in FRESH:
            parameters, _, _ = trained(case, "1", seed)
            means.append(np.mean(gymnasium_returns(case.agent.task, case.agent.policy, parameters, seed)))
        yield f"| {case.title} | {', '.join(f'{mean:.1f}' for mean in means)} |"


def gymnasium_returns(task, policy, parameters, seed: int) -> list[float]:
    """Returns of 20 episodes of the greedy policy in Gymnasium's own environment."""
    import gymnasium

    own, totals = gymnasium.make(task.gymnasium), []
    for episode in range(20):
        seen, _ = own.reset(seed=1000 * seed + episode)
        total, over = 0.0, False
        while not over:
            scaled = (np.asarray(seen, dtype=np.float64) - task.centre) / task.scale
            given = task.actions[int(greedy(policy.logits(parameters, scaled)))]
            seen, reward, ended, cut, _ = own.step(np.array([given]) if task is PENDULUM else given)
            total, over = total + float(reward), ended or cut
        totals.append(total)
    return totals


def hiv() -> Iterator[str]:
    """The share of the way from untreated patients to the best known policy, in sums of rewards."""

    def untreated(seen, _, __):
        return np.zeros(len(seen), np.int64)

    least = float(SimulatedUsers(task=HIV, seed=77).play(untreated, range(200)).returns.mean())
    most = float(greedy_returns(HIV, CARE.agent.policy, BEST_CARE.ravel(), seed=77, episodes=200).mean())

    def shares(level: str, seeds: range, rate: float) -> list[float]:
        return [100 * (judged(CARE, level, seed, rate=rate) - least) / (most - least) for seed in seeds]

    chance = uniform(CARE)
    yield "Policies are judged by the actions that they draw, as in training."
    yield f"Returns: untreated {least / 1e6:.2f}·10⁶, uniform {chance / 1e6:.2f}·10⁶, best known {most / 1e9:.2f}·10⁹."
    yield ""
    columns = " | ".join(f"tuning, rate {rate}" for rate in CARE_RATES)
    yield f"| share of the way, % | {columns} | seeds 200 to 204 | seeds 205 to 216 |"
    yield "| --- |" + " --- |" * (len(CARE_RATES) + 2)
    means = {}
    for level in ("1", OFF):
        tried = [shares(level, TUNING, rate) for rate in CARE_RATES]
        best = CARE_RATES[int(np.argmax([np.mean(one) for one in tried]))]
        found = [shares(level, seeds, best) for seeds in (FRESH, range(205, 217))]
        means[level] = [float(np.mean(one)) for one in (tried[CARE_RATES.index(best)], *found, found[0] + found[1])]
        cells = [f"{np.mean(one):.2f} ± {np.std(one, ddof=1):.2f}" for one in tried]
        cells += [f"rate {best}: {np.mean(one):.2f} ± {np.std(one, ddof=1):.2f} ({min(one):.2f})" for one in found]
        yield f"| {CARE.title}, {said(level)} | {' | '.join(cells)} |"
    of = [f"{100 * one / twin:.0f} %" for one, twin in zip(means["1"], means[OFF], strict=True)]
    yield ""
    yield f"At ε = 1, of the twin's mean share: {of[0]} on the tuning seeds, {of[1]} on seeds 200 to 204,"
    yield f"{of[2]} on 205 to 216, {of[3]} on these 17 together."


def best_plans(patients: int) -> float:
    """Mean over patients of the largest expected return: the model tells nothing on the way but that one lives."""
    starts = CANCER.start(draw_rows(CANCER, 77, range(patients))[0])[:, 2:4]
    plans = np.array(list(itertools.product(DOSES, repeat=MONTHS)))
    totals = []
    for first in starts:
        seen = np.full(len(plans), first[0]), np.full(len(plans), first[1])
        alive, total = np.ones(len(plans)), np.zeros(len(plans))
        for month in range(MONTHS):
            after = develop(*seen, (first[0], first[1]), plans[:, month])
            lives = np.exp(-(hazard(*seen) + hazard(*after)) / 2)
            total += alive * (lives * month_rewards(seen, after) + (1 - lives) * DEATH)
            alive, seen = alive * lives, after
        totals.append(total.max())
    return float(np.mean(totals))


def cancer() -> Iterator[str]:
    """Returns of dosing policies, beside constant doses, and the best plan of doses for each patient."""
    users = SimulatedUsers(task=CANCER, seed=77)

    def constant(dose: int) -> float:
        return float(users.play(lambda seen, _, __: np.full(len(seen), dose), range(2000)).returns.mean())

    fixed = ", ".join(f"{constant(dose):.1f} at {DOSES[dose]}" for dose in range(len(DOSES)))
    yield f"Returns of constant doses: {fixed}; of uniform ones {uniform(DOSE):.1f}."
    yield f"The best plan of doses for each patient, from the known model by trying all: {best_plans(500):.1f}."
    yield ""
    sweep = ("1/5", "1/2", "1", OFF)
    yield "| agent | " + " | ".join(f"{said(level)}" for level in sweep) + " |"
    yield "| --- |" + " --- |" * len(sweep)
    cells = [shown([judged(DOSE, level, seed) for seed in FRESH]) for level in sweep]
    yield f"| {DOSE.title}, B = {DOSE.batch}, K = 10 000 | {' | '.join(cells)} |"
    yield ""
    yield "| tuned on seeds 100 to 102 | " + " | ".join(f"rate {rate}" for rate in RATES) + " |"
    yield "| --- |" + " --- |" * len(RATES)
    for level in ("1", OFF):
        cells = [shown([judged(DOSE, level, seed, rate=rate) for seed in TUNING]) for rate in RATES]
        yield f"| {said(level)} | {' | '.join(cells)} |"


def natural() -> Iterator[str]:
    """The natural gradient beside the gradient: the same network, batches and users."""
    yield "| tuning, K = 10 000 | " + " | ".join(f"rate {rate}" for rate in WALK_RATES) + " |"
    yield "| --- |" + " --- |" * len(WALK_RATES)
    for level in ("1/5", "1", OFF):
        cells = [shown([judged(WALK, level, seed, rate=rate) for seed in TUNING]) for rate in WALK_RATES]
        yield f"| natural gradient, {said(level)} | {' | '.join(cells)} |"
    yield ""
    yield "| seeds 200 to 209 | " + " | ".join(words for _, _, words in HARD) + " |"
    yield "| --- |" + " --- |" * len(HARD)
    for case in (NET, WALK):
        found = [[judged(case, level, seed, users=users) for seed in range(200, 210)] for level, users, _ in HARD]
        cells = [f"{shown(one)}, {sum(x >= 475 for x in one)} of 10 at 475" for one in found]
        yield f"| {case.title} | {' | '.join(cells)} |"
    yield ""
    yield "Rank, damping and the other numbers were found with about 40 settings on seeds 100 to 107, more effort"
    yield "than the gradient had."
    spent = [sum(trained(WALK, level, seed)[1] for seed in range(3)) / 3 for level in ("1", OFF)]
    yield f"A natural gradient takes {spent[0]:.2f} CPU seconds at ε = 1, and its twin {spent[1]:.2f}, with K = 10 000."


HARD = (
    ("1", 1_000, "ε = 1, K = 1 000"),
    ("1", 3_000, "ε = 1, K = 3 000"),
    (OFF, 3_000, "without noise, K = 3 000"),
    ("1/5", 10_000, "ε = 1/5, K = 10 000"),
)


def many() -> Iterator[str]:
    """ε = 1/5 with more users: batches grow with K, so that noise matters less and the number of updates stays."""
    yield "| agent, B = K/40 | ε = 1/5, K = 50 000 |"
    yield "| --- | --- |"
    for case in (SWING, POLE, NET, WALK):
        found = [judged(replace(case, batch=1250), "1/5", seed, users=50_000) for seed in FRESH]
        yield f"| {case.title} | {shown(found)} |"


def deep() -> Iterator[str]:
    """The network in JAX and in NumPy: gradients, trainings and their CPU seconds."""
    import jax.numpy as jnp
    import optax

    form = NET.agent.policy
    parts = np.split(form.initial(), [64, 80, 96])
    first = [part.reshape(shape) for part, shape in zip(parts, ((4, 16), (16,), (16, 1), (1,)), strict=True)]

    def apply(parameters, seen):
        return jnp.tanh(seen @ parameters[0] + parameters[1]) @ parameters[2] + parameters[3]

    network = Network(apply=apply, first=first, inputs=4, actions=2)
    rng = np.random.default_rng(0)
    seen, slopes = rng.normal(size=(250, 200, 4)), rng.normal(size=(250, 200, 1))
    at = form.initial() + rng.normal(size=97)
    apart = np.abs(network.gradients(at, seen, slopes) - form.gradients(at, seen, slopes)).max()
    same = replace(NET, agent=replace(NET.agent, policy=network))
    with_optax = replace(same, agent=replace(same.agent, rule=OptaxRule(transformation=optax.scale_by_adam())))
    yield f"Gradients of 250 users with 200 steps each differ by {apart:.1e} at most."
    yield ""
    yield f"| {NET.title}, K = 4 000, B = 200, ε = 1, seed 200 | parameters differ by | CPU seconds |"
    yield "| --- | --- | --- |"
    wanted = None
    for case, words in ((NET, "NumPy"), (same, "JAX"), (with_optax, "JAX, and Optax's Adam")):
        parameters, seconds, _ = trained(case, "1", 200, users=4_000)
        wanted = parameters if wanted is None else wanted
        yield f"| {words} | {np.abs(parameters - wanted).max():.1e} | {seconds:.1f} |"


def curves() -> Iterator[str]:
    """Return against users so far, and against ε: the mean of three seeds, and the worst and the best of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for case, colour in DRAWN:
        users, returns = on_the_way(case, "1")
        left.plot(users, returns.mean(axis=0), color=colour, label=case.title.removeprefix("CartPole, "))
        left.fill_between(users, returns.min(axis=0), returns.max(axis=0), color=colour, alpha=0.15, linewidth=0)
        found = np.array([[judged(case, level, seed) for seed in DRAWN_SEEDS] for level in SWEPT])
        right.plot([float(Fraction(level)) for level in SWEPT], found.mean(axis=1), color=colour, marker="o", ms=3)
        right.fill_between([float(Fraction(level)) for level in SWEPT], found.min(axis=1), found.max(axis=1),
                           color=colour, alpha=0.15, linewidth=0)  # fmt: skip
        yield f"* {case.title}: {', '.join(f'{x:.0f}' for x in found.mean(axis=1))} at ε = {', '.join(SWEPT)}"
    left.set(xlabel="users so far, ε = 1", ylabel="return of the greedy policy", ylim=(0, 510))
    right.set(xscale="log", xlabel="ε, with K = 10 000 users", ylim=(0, 510))
    right.set_xticks([float(Fraction(level)) for level in SWEPT], SWEPT)
    right.minorticks_off()
    left.legend(frameon=False, loc="lower right", fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None})
    yield ""
    yield "![return against users and against ε](../docs/trained.svg)"


def on_the_way(case: Case, level: str):
    """Users so far, and returns (seeds, times) of the greedy policies before every fourth batch."""
    agent, rows = replace(case.agent, rate=case.rate), []
    given = {"K": 10_000, "B": case.batch, "C": case.norm, "d": sum(agent.blocks.values()), "epsilon": level}
    for seed in DRAWN_SEEDS:
        at, users = case.declared.values(given), SimulatedUsers(task=agent.task, seed=seed)
        found = train(agent, users, declaration=case.declared, values=at, noise=simulated_noise(seed))
        seen = [state.parameters for state in found.states[::4]]
        means = [greedy_returns(agent.task, agent.policy, one, seed=10**6 + seed, episodes=20).mean() for one in seen]
        rows.append(means)
    return np.arange(len(rows[0])) * 4 * case.batch, np.array(rows)


DRAWN = ((NET, "tab:blue"), (WALK, "tab:orange"), (POLE, "tab:green"))
SWEPT = ("1/10", "1/5", "1/2", "1")
DRAWN_SEEDS = range(200, 203)


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
    """Mean return of the policy that takes all actions equally often."""
    task = case.agent.task
    form = linear(task)
    starts, uniforms = draw_rows(task, 77, range(1000))

    def choose(seen, chances, _):
        return sampled(form.logits(form.initial(), seen), chances)

    return float(play(task, choose, users=range(1000), starts=starts, uniforms=uniforms).returns.mean())


def one_run() -> Iterator[str]:
    """Canaries of one private training: CartPole, evolution strategies on the net of 97 parameters."""
    agent = EvolutionStrategies(task=CART_POLE, policy=TanhPolicy(inputs=4, actions=2, units=16))
    values, bounds = SEARCH.values({"B": 250, "d": 97}), []
    claim = GaussianDP(str(float(values["mu"])))
    yield "| seed | verdict | right guesses | lower bound on μ (0.26805 is claimed) | lower bound on ε at δ = 10⁻⁵ |"
    yield "| --- | --- | --- | --- | --- |"
    for seed in FRESH:
        users = SimulatedUsers(task=CART_POLE, seed=seed)
        made = TrainingCanaries(agent=agent, users=users, declaration=SEARCH, values=values, inputs=4, limit=500)
        found = audit_one_run(made, claim, canaries=1000, confidence=0.95, seed=seed)
        bounds.append(gdp_epsilon(found.lower, 1e-5, rounding="down") if found.lower > 0 else 0.0)
        right = found.evidence["right_guesses"]
        guesses = f"{right} of {right + found.evidence['wrong_guesses']}"
        yield f"| {seed} | {found.verdict} | {guesses} | {found.lower:.3f} | {bounds[-1]:.2f} |"
    exact = gdp_epsilon(found.reachable, 1e-5, rounding="down")
    yield ""
    yield f"Median {np.median(bounds):.2f}; the audit can show {exact:.2f} if nothing but the noise blurs the scores."


@dataclass(frozen=True, kw_only=True)
class Logged:
    title: str
    task: object
    policy: object
    behaviour: tuple[float, ...]  # parameters of the policy that chose the logged actions …
    spread: float = 0.0  # … and the deviation of users' own parameters around them
    features: object = None  # of the critic and of Q; None for their default
    norms: Mapping[str, str] = field(default_factory=dict)  # C where it is not that of LEARNERS

    def log(self, seed: int):
        """Episodes of 10 000 users who drew their actions."""
        users, d = 10_000, len(self.behaviour)
        own = np.array(self.behaviour) + self.spread * np.random.default_rng((seed, 7)).standard_normal((users, d))

        def drawn(seen, uniforms, asked):
            return sampled(self.policy.logits_apart(own[asked], seen), uniforms)

        return SimulatedUsers(task=self.task, seed=seed).play(drawn, range(users))


LOGS = (
    Logged(
        title="CartPole, one behaviour",
        task=CART_POLE,
        policy=linear(CART_POLE),
        behaviour=(-1.0, -1.0, 1.0, 1.0),
    ),
    Logged(
        title="CartPole, every user's own behaviour",
        task=CART_POLE,
        policy=linear(CART_POLE),
        behaviour=(-1.0, -1.0, 1.0, 1.0),
        spread=2.0,
    ),
    Logged(
        title="Pendulum, one behaviour",
        task=PENDULUM,
        policy=ROD.agent.policy,
        behaviour=(-0.97, 0.31, 0.34, -0.98),
        features=with_products,
        norms={"private-fitted-q": "2"},
    ),
)
LEARNERS = {  # by name: the declaration, its C, what was tuned, and its values
    "behaviour cloning": (PRIVATE_AWR.declare({}), "1/4", "rate", (0.1, 0.2, 0.4)),
    "private-awr": (PRIVATE_AWR.declare({}), "1", "temperature", (0.02, 0.05, 0.1)),
    "private-fitted-q": (PRIVATE_FITTED_Q.declare({}), "1/4", "ridge", (0.003, 0.01, 0.03)),
    "private-model-planning": (PRIVATE_MODEL_PLANNING.declare({}), "2", "ridge", (0.003, 0.01, 0.03)),
}


def learner(case: Logged, name: str, value: float):
    given = {"task": case.task, "policy": case.policy, LEARNERS[name][2]: value}
    if name == "private-model-planning":
        return ModelPlanning(**given, rules=RULES[case.task.name])
    if case.features is not None:
        given["features"] = case.features
    if name == "private-fitted-q":
        return FittedQ(**given)
    return AdvantageWeighted(**{"temperature": None, "discount": 0.95} | given)


def learned(case: Logged, name: str, value: float, *, level: str, seed: int, episodes):
    """Parameters after a training on logged episodes, and its CPU seconds."""
    declared, norm, _, _ = LEARNERS[name]
    agent = learner(case, name, value)
    given = {"C": case.norms.get(name, norm), "d": sum(agent.blocks.values())}
    at = declared.values(given if level == OFF else given | {"epsilon": level})
    begun = time.process_time()
    found = train(
        agent,
        LoggedUsers(episodes=episodes),
        declaration=declared,
        values=at,
        noise=no_noise if level == OFF else simulated_noise(seed),
        sample=simulated_sample(seed) if declared.others else None,
    )
    return found.parameters, time.process_time() - begun


def tune_logged(case: Logged) -> tuple[dict[tuple[str, str], float], list[str]]:
    """The best value of each learner's number by name and level, on seeds 100 to 102, and rows of a table."""
    logs, chosen, rows = {seed: case.log(seed) for seed in TUNING}, {}, []
    for name, (_, _, number, tried) in LEARNERS.items():
        for level in ("1", OFF):
            found = []
            for value in tried:
                made = [learned(case, name, value, level=level, seed=seed, episodes=log) for seed, log in logs.items()]
                found.append([greedily(case, one, seed) for (one, _), seed in zip(made, logs, strict=True)])
            chosen[name, level] = tried[int(np.argmax([np.mean(one) for one in found]))]
            cells = " | ".join(f"{value}: {shown(one)}" for value, one in zip(tried, found, strict=True))
            rows.append(f"| {case.title}, {name} | {said(level)} | {number} | {cells} |")
            print(rows[-1], flush=True)
    return chosen, rows


def greedily(case: Logged, parameters, seed: int) -> float:
    return float(greedy_returns(case.task, case.policy, parameters, seed=10**6 + seed, episodes=200).mean())


def compare_logged(case: Logged, chosen: dict[tuple[str, str], float]) -> tuple[list[str], list[str]]:
    """Rows of returns on five fresh data sets, and of those in Gymnasium's own environment."""
    returns, seconds, own = {key: [] for key in chosen}, dict.fromkeys(chosen, 0.0), {name: [] for name in LEARNERS}
    behaved, usual = [], []
    for seed in FRESH:
        log = case.log(seed)
        behaved.append(float(log.returns.mean()))
        usual.append(greedily(case, np.array(case.behaviour), seed))
        for (name, level), value in chosen.items():
            parameters, spent = learned(case, name, value, level=level, seed=seed, episodes=log)
            returns[name, level].append(greedily(case, parameters, seed))
            seconds[name, level] += spent / len(FRESH)
            if level == "1":
                own[name].append(np.mean(gymnasium_returns(case.task, case.policy, parameters, seed)))
    base = max(np.mean(returns["behaviour cloning", level]) for level in ("1", OFF))
    rows = [f"| {case.title} | the behaviour, drawn | | {shown(behaved)} | | |"]
    rows.append(f"| {case.title} | the behaviour, greedy | | {shown(usual)} | | |")
    for name in LEARNERS:
        private, twin = returns[name, "1"], returns[name, OFF]
        gains = np.mean(private) - base, np.mean(twin) - base
        share = f"{100 * gains[0] / gains[1]:.0f} %" if min(gains) > 0 else "none"
        share = "" if name == "behaviour cloning" else share
        spent = f"{seconds[name, '1']:.1f}, {seconds[name, OFF]:.1f}"
        rows.append(f"| {case.title} | {name} | {shown(private)} | {shown(twin)} | {share} | {spent} |")
        print(rows[-1], flush=True)
    return rows, [f"| {case.title}, {name} | {', '.join(f'{one:.1f}' for one in own[name])} |" for name in LEARNERS]


def offline() -> Iterator[str]:
    """Logged episodes: tuned on seeds 100 to 102, then five fresh data sets; greedy policies on 200 fresh users."""
    rows, tuned, checked = [], [], []
    for case in LOGS:
        chosen, tried = tune_logged(case)
        found, own = compare_logged(case, chosen)
        rows, tuned, checked = rows + found, tuned + tried, checked + own
    for name, (declared, *_) in list(LEARNERS.items())[1:]:
        found = verify(declared, declared.values({}))
        yield f"`{name}`: {found.verdict}, {found.upper_ratio:.6f} of the claim."
    yield "Users drew their actions from softmax policies whose parameters are in the benchmark; the greedy one (where"
    yield "users have parameters of their own, that of their mean) and the logged returns are mediocre. Gains are over"
    yield "behaviour cloning at ε = 1 or without noise, whichever is better."
    yield ""
    yield "| logged episodes | policy | ε = 1 | without noise | share of the twin's gain | CPU seconds, ε = 1, twin |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield from rows
    yield ""
    yield "The same policies at ε = 1 in Gymnasium's own environment, 20 episodes each:"
    yield ""
    yield "| learner | mean return by seed |"
    yield "| --- | --- |"
    yield from checked
    yield ""
    yield "What was tuned, on seeds 100 to 102, 9 trainings for each learner and as many for its twin:"
    yield ""
    yield "| learner | | number | value: return | value: return | value: return |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield from tuned


def said(level: str) -> str:
    return "without noise" if level == OFF else f"ε = {level}"


SECTIONS = {
    "levels": (levels, "Return of the final greedy policy, K = 10 000"),
    "gymnasium": (in_gymnasium, "The same policies in Gymnasium's own environment, 20 episodes each"),
    "tune": (tune, "What was tuned: Adam's rate, on seeds 100 to 102"),
    "users": (users, "By the number of users"),
    "natural": (natural, "Natural gradients in five directions of the network's 97"),
    "many": (many, "ε = 1/5 with 50 000 users"),
    "curves": (curves, "CartPole: return against users and against ε"),
    "deep": (deep, "The network in JAX"),
    "hiv": (hiv, "HIV treatment, K = 10 000 patients: the share of the way from untreated to the best known policy"),
    "cancer": (cancer, "Cancer dosing: six months of chemotherapy (Zhao, Kosorok & Zeng 2009)"),
    "offline": (offline, "Logged episodes, K = 10 000: central DP, one episode a user"),
    "speed": (speed, "Speed, one core, per-user vectors included"),
    "one-run": (one_run, "One-run audit of ε = 1, 1 000 canaries of 10 000 users, confidence 95 %"),
}
HEAD = """# Trained agents

`python benchmarks/trained.py`. Simulated users, one episode each; δ = 10⁻⁵, replace-one, joint DP. Mean ± sample
deviation over five seeds that nothing was tuned on, 200 to 204 (worst seed), each the mean of 200 fresh users under the
greedy policy. {verdict}"""


def put(name: str, section: str) -> None:
    """Write one section into the page, in place of the last one or at the end."""
    title = SECTIONS[name][1]
    parts = OUT.read_text(encoding="utf-8").rstrip("\n").split("\n\n## ")
    kept = [part for part in parts if part.partition("\n")[0] != title]
    titles = [one for _, one in SECTIONS.values()]
    place = 1 + sum(titles.index(part.partition("\n")[0]) < titles.index(title) for part in kept[1:])
    kept.insert(place, section.removeprefix("## "))
    OUT.write_text("\n\n## ".join(kept) + "\n", encoding="utf-8")


def main(given: list[str]) -> None:
    asked = [name for name in given if name != "--write"]
    said_of = []
    for declared in (GRADIENT, NATURAL, SEARCH):
        found = verify(declared, declared.values({}))
        said_of.append(
            f"`{declared.name}`: {found.verdict}, joint DP {found.joint}, {found.upper_ratio:.6f} of the claim."
        )
    text = [HEAD.format(verdict=" ".join(said_of))]
    for name, (section, title) in SECTIONS.items():
        if asked and name not in asked:
            continue
        lines = []
        for line in section():
            print(line, flush=True)
            lines.append(line)
        text.append(f"## {title}\n\n" + "\n".join(lines))
        if asked != given:
            put(name, text[-1])
        if not asked:
            OUT.write_text("\n\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
