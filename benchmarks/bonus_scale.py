"""The true value of what DP-APVI learns on ICU-Sepsis, by bonus_scale: where the practical default comes from.

    python benchmarks/bonus_scale.py [--write]

20 000 users, 20 steps, 24 states; four samples of users times four draws of noise; half a minute. `--write` puts the
table beside this script.
"""

import sys
from pathlib import Path

import numpy as np

from privcheck.declare.declaration import resolve
from privcheck.runtime.results import RunRequest
from privcheck.runtime.setting import Setting
from privcheck_algorithms.dp_apvi import GAUSSIAN, LAPLACE
from privcheck_algorithms.environments import ICU_SEPSIS

SCALES = ("1", "0.1", "0.01", "1e-3", "1e-4", "1e-5", "1e-6", "1e-7", "0")
SAMPLES, DRAWS = 4, 4
LEGEND = (
    f"20 000 users, H = 20, 24 states. Mean ± standard deviation over {SAMPLES} samples of users × {DRAWS} draws of "
    "noise. Worthless: share of (step, state) in which every action is worth 0 after the penalty, so that action 0 is "
    "taken by the rule for ties. Vacuous: share of known cells whose penalty is at least H − h + 1. The agent's claim "
    "is its own estimate; with a penalty scaled down it is no lower bound."
)
CASES = (("ρ = 1", GAUSSIAN, {"rho": "1"}), ("ρ = 10", GAUSSIAN, {"rho": "10"}), ("ε = 10", LAPLACE, {"epsilon": "10"}))


def measure(algorithm, values, scale, data):
    declaration = algorithm.declare({})
    options = resolve(algorithm.options, {"bonus_scale": scale}, owner=algorithm.name)
    return [
        algorithm.learn_from(
            RunRequest(
                setting=Setting(declaration=declaration, values=declaration.values(values), options=options),
                data=sample,
                replicates=DRAWS,
                seed=seed,
            )
        )
        for seed, sample in enumerate(data)
    ]


def main() -> None:
    data = [ICU_SEPSIS.sample({"n": 20_000, "H": 20, "S": 24}, seed) for seed in range(SAMPLES)]
    references = ", ".join(f"{name} {value:.4f}" for name, value in data[0].references.items())
    lines = [
        "# True value by bonus_scale, ICU-Sepsis",
        "",
        f"{LEGEND} Users' reference values: {references}.",
    ]
    for name, algorithm, values in CASES:
        lines += [
            "",
            f"## {algorithm.name}, {name}",
            "",
            "| bonus_scale | value | claimed | APVI | worthless | vacuous |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for scale in SCALES:
            results = measure(algorithm, values, scale, data)
            value = np.concatenate([r.returns for r in results])
            shares = [
                np.mean([r.diagnostics[key] for r in results])
                for key in ("share_of_states_worth_nothing", "share_of_known_cells_with_vacuous_penalty")
            ]
            claimed, baseline = (np.mean([getattr(r, key) for r in results]) for key in ("claimed", "baseline"))
            lines.append(
                f"| {scale} | {value.mean():.4f} ± {value.std():.4f} | {claimed:.3f} | {baseline:.4f} "
                f"| {shares[0]:.0%} | {shares[1]:.0%} |"
            )
    table = "\n".join(lines) + "\n"
    print(table)
    if "--write" in sys.argv[1:]:
        Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
