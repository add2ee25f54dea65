"""The linear agents of three papers on the worlds of this package, one table a paper.

    python benchmarks/linear.py                       all sections, and writes linear.md and linear_value.svg
    python benchmarks/linear.py online                of offline, online, mixture, starts, value one or more
    python benchmarks/linear.py online --write        and puts them in their places in linear.md

Each table: without privacy, the papers' agents as printed, the same with the least noise for the same claim, and the
calibrated agent. Shares are of the uniformly random policy's regret (offline: of its value gap); ± is a standard error.
Models and seeds are those from 1 and 0 on, which nothing was tuned on.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from privcheck.commands.datasets import load
from privcheck.commands.online_runs import load_world, online_settings, run_online
from privcheck.commands.runs import run
from privcheck.commands.settings import Chosen, settle
from privcheck.data.finite_models import evaluate, solve, uniform
from privcheck.pricing import account
from privcheck.pricing.calibration import least_factor
from privcheck.runtime import registry
from privcheck.runtime.results import World
from privcheck.terms.guarantees import ApproxDP
from privcheck.verification import verify

OUT = Path(__file__).with_suffix(".md")
PICTURE = OUT.with_name("linear_value.svg")
MODELS, FEW = 20, 5
SLOW = (
    "dp-lsvi-ucb-pp",
    "dp-lsvi-ucb-pp-as-printed",
    "private-linopt-vi",
    "private-linopt-po",
)  # and they learn nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of what the uniform policy loses, one a model.

    Attributes:
        each: (models,) shares.
        seconds: Wall time of one run.
    """

    each: np.ndarray
    seconds: float

    @property
    def words(self) -> str:
        share, spread = 100 * self.each.mean(), 100 * self.each.std(ddof=1) / math.sqrt(self.each.size)
        return f"{share:.1f} ± {spread:.1f} %"


def chosen(setting: Chosen, *, least: bool) -> Chosen:
    """Returns the setting, with the least noise for the same claim if asked: all spreads by one factor."""
    if setting.declaration is None or not least:
        return setting
    squared = Fraction(math.ceil(factor(setting) ** 2 * 10**9), 10**9)  # rounded up
    releases = tuple(
        replace(r, mechanism=replace(r.mechanism, variance=r.mechanism.variance * squared), budget=None)
        for r in setting.declaration.releases
    )
    changed = replace(setting.declaration, releases=releases)
    found = verify(changed, setting.values)
    assert found.verdict == "holds", (changed.name, found.verdict)
    return replace(setting, setting=replace(setting.setting, declaration=changed))


@lru_cache(maxsize=64)
def _factor(name: str, parameters: tuple[tuple[str, Fraction], ...], readings: tuple[tuple[str, str], ...]) -> float:
    algorithm, values = registry.algorithm(name), dict(parameters)
    declared = algorithm.declare(dict(readings))
    claimed = declared.claim.guarantee
    if isinstance(claimed, ApproxDP):
        epsilon, delta = (float(e.number(values)) for e in (claimed.epsilon, claimed.delta))
        return least_factor(declared, values, epsilon=epsilon, delta=delta)
    spent = account(declared).at(values).rho  # ρ of Gaussians goes as 1/variance
    return math.sqrt(spent / claimed.rho.number(values))


def factor(setting: Chosen) -> float:
    """Returns the least multiple of the declared spreads that the claim needs."""
    key = tuple(sorted(setting.values.items())), tuple(sorted(setting.readings.items()))
    return _factor(setting.algorithm.name, *key)


def online(name: str, env: str, *, sets: Mapping[str, object], least: bool = False, models: int = MODELS) -> Shares:
    """Returns an online agent's shares of the uniform policy's regret, a model each."""
    shares, seconds = [], []
    for model in range(1, models + 1):
        world, given = load_world(env, {"model": str(model), **{k: str(v) for k, v in sets.items()}}, seed=0)
        setting = chosen(online_settings([name], given, world)[0], least=least)
        setting = replace(setting, algorithm=replace(setting.algorithm, twin=None))
        found = run_online(setting, world, seed=model - 1, workers=1)
        shares.append(found.regret.share_of_uniform)
        seconds.append(found.seconds)
    return _done(name, env, sets, Shares(each=np.array(shares), seconds=float(np.mean(seconds))), least=least)


def offline(name: str, *, sets: Mapping[str, object], least: bool = False, models: int = MODELS) -> Shares:
    """Returns an offline agent's shares of the uniform policy's gap on linear-synthetic, a model each."""
    shares, seconds, algorithm = [], [], registry.algorithm(name)
    for model in range(1, models + 1):
        given = {"model": str(model), **{k: str(v) for k, v in sets.items()}}
        source = load(env="linear-synthetic", data=None, rewards=None, given=given, algorithm=algorithm, seed=model - 1)
        setting = chosen(settle(algorithm, source.given, sizes=source.sizes), least=least)
        started = time.perf_counter()
        found = run(setting, source, seed=model - 1)
        seconds.append(time.perf_counter() - started)
        shares.append(found.gap.share_of_uniform)
    return _done(
        name, "linear-synthetic", sets, Shares(each=np.array(shares), seconds=float(np.mean(seconds))), least=least
    )


def _done(name: str, env: str, sets: Mapping[str, object], found: Shares, *, least: bool) -> Shares:
    print(name, env, dict(sets), "least noise" if least else "", found.words, f"{found.seconds:.2f} s", flush=True)
    return found


def table(head: str, columns: Iterable[str], rows: Iterable[str]) -> list[str]:
    names = [head, *columns, "seconds", "releases"]
    return ["| " + " | ".join(names) + " |", "| --- " * len(names) + "|", *rows]


def row(label: str, name: str, cells: Iterable[Shares | None]) -> str:
    found = list(cells)
    seconds = max((cell.seconds for cell in found if cell is not None), default=0.0)
    words = [cell.words if cell else "" for cell in found]
    return "| " + " | ".join([label, *words, f"{seconds:.2f}", releases(name)]) + " |"


def releases(name: str) -> str:
    """Returns what an agent releases, in words."""
    algorithm = registry.algorithm(name)
    if algorithm.declare is None:
        return "everything"
    names: dict[str, list[str]] = {}
    for release in algorithm.declare({}).releases:
        names.setdefault(release.schedule.words.partition(",")[0], []).append(release.name)
    return "; ".join(f"{', '.join(several)}: {words}" for words, several in names.items())


def trivial(label: str, env: str, which: str, *, columns: int, sets: Mapping[str, object], models: int = MODELS) -> str:
    """Returns the row of a policy that learns nothing: its share is the same however many users there are."""
    shares = []
    for model in range(1, models + 1):
        world, _ = load_world(env, {"model": str(model), **{k: str(v) for k, v in sets.items()}}, seed=0)
        regret = trivial_regret(world)
        shares.append(regret[which] / regret["uniform"])
    found = Shares(each=np.array(shares), seconds=0.0)
    return "| " + " | ".join([label, *[found.words] * columns, "", "nothing"]) + " |"


def trivial_regret(world: World) -> dict[str, float]:
    """Returns V* − V^π of the uniform and the myopic policy."""
    mdp = world.mdp
    rewards = np.broadcast_to(mdp.mean_reward, (mdp.horizon, mdp.states, mdp.actions))
    best = np.isclose(rewards, rewards.max(axis=-1, keepdims=True))
    policies = {
        "uniform": uniform(mdp.horizon, mdp.states, mdp.actions),
        "myopic": best / best.sum(axis=-1, keepdims=True),
    }
    optimal = solve(mdp).value
    return {name: optimal - evaluate(mdp, policy) for name, policy in policies.items()}


def offline_table() -> list[str]:
    sizes = (200, 1_000, 10_000)

    def line(label: str, name: str, *, least: bool = False, **sets: object) -> str:
        return row(label, name, (offline(name, sets={"n": n, **sets}, least=least) for n in sizes))

    return table(
        "agent, ρ = 1",
        [f"n = {n:,}".replace(",", " ") for n in sizes],
        [
            trivial("myopic: true mean rewards, no data", "linear-synthetic", "myopic", columns=3, sets={}),
            line("`pevi`", "pevi"),
            line("`vapvi`", "vapvi"),
            line("`dp-vapvi`, E/2 as bounded", "dp-vapvi", E_scale=1),
            line("`dp-vapvi`, default E × 9", "dp-vapvi"),
            line("`dp-vapvi`, default, least noise", "dp-vapvi", least=True),
            line("`dp-vapvi-unsplit`, default", "dp-vapvi-unsplit"),
            line("`dp-vapvi-unsplit`, default, least noise", "dp-vapvi-unsplit", least=True),
            line("**`calibrated-vapvi`**", "calibrated-vapvi"),
        ],
    )


def online_table() -> list[str]:
    env, sizes = "linear-signs", (1_000, 10_000, 100_000)

    def line(label: str, name: str, *, least: bool = False, upto: int = 10_000, **sets: object) -> str:
        models = FEW if name in SLOW else MODELS
        run_at = partial(online, name, env, least=least, models=models)
        return row(label, name, (run_at(sets={"K": K, **sets}) if upto >= K else None for K in sizes))

    return table(
        "agent, ρ = 1, H = 20",
        [f"K = {K:,}".replace(",", " ") for K in sizes],
        [
            trivial("myopic", env, "myopic", columns=3, sets={}),
            line("`lsvi-ucb`", "lsvi-ucb", centred="off", upto=10**5),
            line("`lsvi-ucb`, centred", "lsvi-ucb", centred="on", upto=10**5),
            line("`lsvi-ucb-pp`", "lsvi-ucb-pp"),
            line("`dp-lsvi-ucb-pp`", "dp-lsvi-ucb-pp"),
            line("`dp-lsvi-ucb-pp`, least noise", "dp-lsvi-ucb-pp", least=True),
            line("`dp-lsvi-ucb-pp-as-printed` (not private)", "dp-lsvi-ucb-pp-as-printed"),
            line("`luyo-lsvi-ucb`", "luyo-lsvi-ucb"),
            line("`luyo-lsvi-ucb`, centred", "luyo-lsvi-ucb", centred="on"),
            line("`ngo-lsvi-ucb`", "ngo-lsvi-ucb"),
            line("`ngo-lsvi-ucb`, centred", "ngo-lsvi-ucb", centred="on"),
            line("**`calibrated-lsvi-ucb`**", "calibrated-lsvi-ucb", upto=10**5),
        ],
    )


def mixture_table() -> list[str]:
    env, K = "linear-hypercube", 20_000

    def line(label: str, name: str, *, least: bool = False, **sets: object) -> str:
        models = FEW if name in SLOW else MODELS
        run_at = partial(online, name, env, least=least, models=models)
        return row(label, name, [run_at(sets={"K": K, "H": H, **sets}) for H in (6, 20)])

    return table(
        "agent, (1, 10⁻⁵), K = 20 000",
        ["H = 6", "H = 20"],
        [
            trivial("myopic", env, "myopic", columns=2, sets={}),
            line("`ucrl-vtr`", "ucrl-vtr"),
            line("`linear-oppo`", "linear-oppo"),
            line("`private-linopt-vi`", "private-linopt-vi"),
            line("`private-linopt-vi`, least noise", "private-linopt-vi", least=True),
            line("`private-linopt-po`", "private-linopt-po"),
            line("`private-linopt-po`, least noise", "private-linopt-po", least=True),
            line("**`calibrated-linopt`**", "calibrated-linopt"),
        ],
    )


def starts_table() -> list[str]:
    """Returns from which budget on a paper's agent learns at its own sizes: a share that falls below one half."""
    budgets = tuple(10**power for power in range(9))
    cases = (
        ("`dp-vapvi`, n = 10 000", partial(offline, "dp-vapvi", models=5), {"n": 10_000}, "ρ"),
        ("`dp-vapvi-unsplit`, n = 10 000", partial(offline, "dp-vapvi-unsplit", models=5), {"n": 10_000}, "ρ"),
        *(
            (f"`{name}`, K = 10 000", partial(online, name, "linear-signs", models=3), {"K": 10_000}, "ρ")
            for name in ("dp-lsvi-ucb-pp", "luyo-lsvi-ucb", "ngo-lsvi-ucb")
        ),
        *(
            (f"`{name}`, H = 6, K = 20 000", partial(online, name, "linear-hypercube", models=3), {"K": 20_000}, "ε")
            for name in ("private-linopt-vi", "private-linopt-po")
        ),
    )  # fmt: skip
    rows = []
    for label, share, sets, budget in cases:
        at = None
        for value in budgets:
            at = share(sets={**sets, {"ρ": "rho", "ε": "epsilon"}[budget]: value})
            if at.each.mean() < 0.5:
                rows.append(f"| {label} | {budget} = {value:.0e} | {at.words} |")
                break
        else:
            rows.append(f"| {label} | not up to {budgets[-1]:.0e} | {at.words} |")
    head = ["| agent | below one half from | share there |", "| --- | --- | --- |"]
    return [
        "Powers of ten were tried; without noise `lsvi-ucb` and `lsvi-ucb-pp` themselves leave 44 and 69 %.",
        "",
        *head,
        *rows,
    ]


def value_table() -> list[str]:
    """Returns the shares that the picture shows, and draws it: value against ρ at fixed numbers of users."""
    from matplotlib.figure import Figure

    budgets = ("0.01", "0.1", "1", "10", "100")
    names = ("calibrated-vapvi", "dp-vapvi-unsplit", "dp-vapvi")
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    rows = []
    for axes, n in zip(figure.subplots(1, 2, sharey=True), (1_000, 10_000), strict=True):
        for name in names:
            found = [offline(name, sets={"n": n, "rho": rho}, models=10) for rho in budgets]
            mean = [100 * (1 - one.each.mean()) for one in found]
            error = [100 * one.each.std(ddof=1) / math.sqrt(one.each.size) for one in found]
            axes.errorbar([float(rho) for rho in budgets], mean, yerr=error, label=name, marker="o", markersize=3)
            rows.append(f"| `{name}`, n = {n} | " + " | ".join(one.words for one in found) + " |")
        plain = offline("pevi", sets={"n": n}, models=10)
        axes.axhline(
            100 * (1 - plain.each.mean()), color="0.4", linestyle="--", linewidth=0.9, label="pevi, not private"
        )
        axes.axhline(0, color="0.4", linestyle=":", linewidth=0.9, label="uniform policy")
        axes.set(xscale="log", xlabel="ρ", title=f"{n} users")
    figure.axes[0].set_ylabel("share of the uniform policy's gap closed, %")
    figure.axes[1].legend(fontsize=8)
    figure.savefig(PICTURE, metadata={"Date": None})
    return ["| agent | " + " | ".join(f"ρ = {rho}" for rho in budgets) + " |", "| --- " * 6 + "|", *rows,
            "", f"![value against ρ]({PICTURE.name})"]  # fmt: skip


SECTIONS = {
    "offline": ("Qiao & Wang 2022 on `linear-synthetic`: share of the uniform policy's value gap", offline_table),
    "online": ("Sahu 2025 on `linear-signs`: share of the uniform policy's regret", online_table),
    "mixture": ("Zhou 2022 on `linear-hypercube`: share of the uniform policy's regret", mixture_table),
    "starts": ("From which budget the papers' agents learn", starts_table),
    "value": ("Value against ρ at fixed numbers of users, `linear-synthetic`", value_table),
}
HEAD = """# The linear agents: Qiao & Wang 2022, Sahu 2025 and Zhou 2022

`python benchmarks/linear.py`. Shares of what the uniformly random policy loses, in %, with one standard error over 20
models (of agents that draw noise every episode: 5) that nothing was tuned on, one run each; seconds are those of the
longest run in the row. "Least noise": all declared spreads multiplied by one factor, so that the releases cost exactly
what is claimed.
"""


def placed(parts: dict[str, str]) -> str:
    """Returns the written page with sections in their places: the new ones, and of the others those it has."""
    if len(parts) < len(SECTIONS) and OUT.exists():
        written = OUT.read_text()
        for name, (title, _) in SECTIONS.items():
            _, found, rest = written.partition(f"## {title}\n")
            if found and name not in parts:
                parts[name] = f"## {title}\n{rest.partition(chr(10) + '## ')[0]}".rstrip("\n")
    return "\n".join([HEAD, *(f"{parts[name]}\n" for name in SECTIONS if name in parts)])


if __name__ == "__main__":
    asked = [name for name in sys.argv[1:] if name != "--write"] or list(SECTIONS)
    parts = {name: "\n".join([f"## {SECTIONS[name][0]}", "", *SECTIONS[name][1]()]) for name in asked}
    print("\n".join([HEAD, *parts.values()]))
    if not sys.argv[1:] or "--write" in sys.argv:
        OUT.write_text(placed(parts))
