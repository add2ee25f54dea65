"""Mechanisms of published libraries audited as they are called: `benchmarks/corpus.md`.

    make corpus     installs the pinned libraries into .venv-corpus and runs this

Every entry is a function of a dataset in a line or two, its claim and two neighbouring datasets. Each call gets a copy
of the dataset, and a dataset that a call changes in place is named. Libraries draw their own randomness, so that bounds
differ from run to run; at 99.9 % confidence one of a hundred correct functions is accused in ten runs. A verdict other
than the one that is on record ends the script with 1.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privcheck import ZCDP, ApproxDP, PureDP, audit_mechanism

warnings.simplefilter("ignore")  # of the libraries: deprecated calls, bounds that they would rather be told

ONE, LOSS = PureDP(1), ApproxDP(1, "1/20")
VALUES = ([0.2, 0.5, 0.9, 0.0], [0.2, 0.5, 0.9, 1.0])  # one record replaced
FEWER = ([0.2, 0.5, 0.9, 1.0], [0.2, 0.5, 0.9])  # one record removed
BITS = ([1, 0, 1, 0], [1, 0, 1, 1])
SCORES = ([0, 1, 1], [1, 0, 1])  # each score changes by at most 1
UP = ([0, 0, 0], [1, 1, 1])
ANSWERS = (0, 1)  # of one user, by herself


@dataclass(frozen=True)
class Case:
    """A mechanism as its library is called.

    Attributes:
        library: The distribution's name.
        name: The mechanism's name there.
        run: One output for a dataset.
        claim: What the library promises.
        pair: Two neighbouring datasets.
        broken: Whether a violation is on record.
        trials: Runs under each neighbour.
    """

    library: str
    name: str
    run: Callable[[Any], Any]
    claim: Any
    pair: tuple[Any, Any]
    broken: bool = False
    trials: int = 10_000


def diffprivlib() -> list[Case]:
    """Mechanisms and statistics of IBM's library."""
    from diffprivlib import mechanisms as m
    from diffprivlib import models, tools

    def scalar(name: str, claim: Any = ONE, pair: Any = (0.0, 1.0), **given: Any) -> Case:
        made = getattr(m, name)
        return Case("diffprivlib", name, lambda x: made(**given).randomise(x), claim, pair)

    unit = {"sensitivity": 1, "lower": 0, "upper": 1}
    whole = {"sensitivity": 1, "lower": 0, "upper": 3}
    found = [
        scalar("Laplace", epsilon=1, sensitivity=1),
        scalar("LaplaceTruncated", epsilon=1, **unit),
        scalar("LaplaceFolded", epsilon=1, **unit),
        scalar("LaplaceBoundedDomain", epsilon=1, **unit),
        scalar("LaplaceBoundedNoise", LOSS, epsilon=1, delta=0.05, sensitivity=1),
        scalar("Staircase", epsilon=1, sensitivity=1),
        scalar("Snapping", epsilon=1, **unit),
        scalar("Gaussian", ApproxDP("9/10", "1/20"), epsilon=0.9, delta=0.05, sensitivity=1),
        scalar("GaussianAnalytic", LOSS, epsilon=1, delta=0.05, sensitivity=1),
        scalar("GaussianDiscrete", LOSS, (0, 1), epsilon=1, delta=0.05, sensitivity=1),
        scalar("Uniform", ApproxDP(0, "1/5"), delta=0.2, sensitivity=1),
        scalar("Geometric", ONE, (0, 1), epsilon=1, sensitivity=1),
        scalar("GeometricTruncated", ONE, (0, 1), epsilon=1, **whole),
        scalar("GeometricFolded", ONE, (0, 1), epsilon=1, **whole),
        scalar("Binary", ONE, ("a", "b"), epsilon=1, value0="a", value1="b"),
    ]
    utilities = [["a", "b", 1], ["a", "c", 2], ["b", "c", 1]]

    def case(name: str, run: Callable[[Any], Any], pair: Any, **more: Any) -> Case:
        return Case("diffprivlib", name, run, ONE, pair, **more)

    def chosen(name: str, pair: Any, **given: Any) -> Case:
        made, words = getattr(m, name), ", monotonic" * bool(given)
        return case(name + words, lambda x: made(epsilon=1, sensitivity=1, utility=x, **given).randomise(), pair)

    def statistic(name: str, run: Callable[[Any], Any], pair: Any = VALUES, **more: Any) -> Case:
        return case(f"tools.{name}", lambda x: run(np.array(x)), pair, **more)

    categorical = m.ExponentialCategorical
    found.append(
        case(
            "ExponentialCategorical", lambda x: categorical(epsilon=1, utility_list=utilities).randomise(x), ("a", "b")
        )
    )
    for name in ("Exponential", "PermuteAndFlip"):
        found += [chosen(name, SCORES), chosen(name, ([0, 0, 0], [1, 0, 0]), monotonic=True)]
    for name in ("mean", "var", "std", "sum", "median"):
        made = getattr(tools, name)
        found.append(statistic(name, lambda x, made=made: made(x, epsilon=1, bounds=(0, 1))))
    found += [
        statistic("count_nonzero", lambda x: tools.count_nonzero(x, epsilon=1), BITS, trials=5_000),
        statistic("histogram", lambda x: tools.histogram(x, epsilon=1, bins=3, range=(0, 1))[0], FEWER),
        statistic("quantile", lambda x: tools.quantile(x, 0.25, epsilon=1, bounds=(0, 1))),
    ]

    def axes(x: Any) -> Any:  # the table is the caller's own array, as users hand theirs
        made = models.PCA(n_components=1, epsilon=1, data_norm=2, bounds=(0, 1), centered=False)
        return np.abs(made.fit(x).components_)

    rows = np.array([[0.1, 0.9], [0.8, 0.2], [0.5, 0.4], [0.0, 0.0]])
    other = rows.copy()
    other[3] = 1
    found.append(case("models.PCA", axes, (rows, other), trials=2_000))
    return found


def opendp() -> list[Case]:
    """Measurements of OpenDP's library, each at the distance that its map gives."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    real = (dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float))
    whole = (dp.atom_domain(T=int), dp.absolute_distance(T=int))
    scores = (dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int))
    ask = {
        "make_laplace, float": (dp.m.make_laplace(*real, scale=1.0), ONE, (0.0, 1.0)),
        "make_laplace, int": (dp.m.make_laplace(*whole, scale=1.0), ONE, (0, 1)),
        "make_geometric": (dp.m.make_geometric(*whole, scale=1.0), ONE, (0, 1)),
        "make_geometric, bounds": (dp.m.make_geometric(*whole, scale=1.0, bounds=(0, 3)), ONE, (0, 1)),
        "make_gaussian, float": (dp.m.make_gaussian(*real, scale=2.0), ZCDP("1/8"), (0.0, 1.0)),
        "make_gaussian, int": (dp.m.make_gaussian(*whole, scale=2.0), ZCDP("1/8"), (0, 1)),
        "make_randomized_response_bool": (dp.m.make_randomized_response_bool(0.731), ONE, (False, True)),
        "make_randomized_response": (dp.m.make_randomized_response([0, 1, 2, 3], 0.475), ONE, ANSWERS),
        "make_noisy_max": (dp.m.make_noisy_max(*scores, dp.max_divergence(), scale=2.0), ONE, SCORES),
        "make_canonical_noise": (dp.m.make_canonical_noise(*real, d_in=1.0, d_out=(1.0, 0.05)), LOSS, (0.0, 1.0)),
    }  # fmt: skip
    return [Case("opendp", name, run, claim, pair) for name, (run, claim, pair) in ask.items()]


def pydp() -> list[Case]:
    """Statistics of PyDP, which wraps Google's library."""
    from pydp.algorithms import laplacian
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism as gaussian  # noqa: N813 - a line is short
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    def statistic(name: str, dtype: str, pair: Any, **more: Any) -> Case:
        made = getattr(laplacian, name)
        given = {"lower_bound": 0, "upper_bound": 1} if name != "Count" else {}
        return Case("python-dp", f'{name}(dtype="{dtype}")',
                    lambda x: made(epsilon=1.0, dtype=dtype, **given).quick_result(x), ONE, pair, **more)  # fmt: skip

    return [
        Case("python-dp", "LaplaceMechanism", lambda x: LaplaceMechanism(1.0, 1.0).add_noise(x), ONE, (0.0, 1.0)),
        Case("python-dp", "GaussianMechanism", lambda x: gaussian(1.0, 0.05, 1.0).add_noise(x), LOSS, (0.0, 1.0)),
        statistic("Count", "int", ([1, 0, 1, 1], [1, 0, 1])),
        statistic("BoundedSum", "float", FEWER),
        statistic("BoundedSum", "int", ([1, 0, 1, 1], [1, 0, 1])),
        statistic("BoundedMean", "float", FEWER),
        statistic("BoundedMean", "int", ([1, 1], [1]), broken=True),
        statistic("BoundedVariance", "float", FEWER),
        statistic("BoundedStandardDeviation", "float", FEWER),
        statistic("Median", "float", FEWER),
        statistic("Max", "float", FEWER),
        statistic("Min", "float", FEWER),
    ]  # fmt: skip


def ldpy() -> list[Case]:
    """Clients of multi-freq-ldpy: each sends one user's answer."""
    from multi_freq_ldpy.pure_frequency_oracles import ADP, GRR, HE, SS, UE

    library = "multi-freq-ldpy"
    return [
        Case(library, "GRR_Client", lambda x: GRR.GRR_Client(x, 4, 1.0), ONE, ANSWERS),
        Case(library, "UE_Client, optimal", lambda x: UE.UE_Client(x, 4, 1.0, True), ONE, ANSWERS),
        Case(library, "UE_Client, symmetric", lambda x: UE.UE_Client(x, 4, 1.0, False), ONE, ANSWERS),
        Case(library, "HE_Client", lambda x: HE.HE_Client(x, 4, 1.0), ONE, ANSWERS),
        Case(library, "ADP_Client", lambda x: ADP.ADP_Client(x, 4, 1.0), ONE, ANSWERS),
        Case(library, "SS_Client", lambda x: SS.SS_Client(x, 8, 1.0), ONE, ANSWERS, broken=True),
    ]


def pure_ldp() -> list[Case]:
    """Clients of pure-ldp."""
    from pure_ldp import frequency_oracles as oracles

    clients = {
        "DEClient": oracles.DEClient(1.0, 4),
        "UEClient, optimal": oracles.UEClient(1.0, 4, True),
        "UEClient": oracles.UEClient(1.0, 4, False),
        "HEClient": oracles.HEClient(1.0, 4),
        "HadamardResponseClient": oracles.HadamardResponseClient(1.0, 4, None),
    }
    return [
        Case("pure-ldp", name, lambda x, one=one: one.privatise(x + 1), ONE, ANSWERS) for name, one in clients.items()
    ]


LIBRARIES = (diffprivlib, opendp, pydp, ldpy, pure_ldp)
HEAD = """# Published libraries, audited as they are called

`make corpus`: the libraries in the versions of `corpus_requirements.txt`, {trials} runs under each neighbour (5 000 of
`count_nonzero`, 2 000 of `PCA`), confidence 99.9 %. A violation is on record where *expected* says so; the page “Found
in the wild” of the documentation has how to see it by hand. *Changed*: a call changed the dataset that it was given.

| library | mechanism | claim | expected | found | lower bound | changed | seconds |
| --- | --- | --- | --- | --- | ---: | --- | ---: |
"""


def audited(case: Case, seed: int) -> tuple[str, bool]:
    """Row of the table, and whether the verdict is the one on record."""
    began, changed = time.perf_counter(), []

    def run(data: Any, rng: np.random.Generator) -> Any:
        given, _ = copy.deepcopy(data), rng  # the library draws its own
        out = case.run(given)
        if not changed and not np.array_equal(np.asarray(given), np.asarray(data)):
            changed.append(True)
        return out

    found = audit_mechanism(run, case.claim, neighbours=[case.pair], trials=case.trials, confidence=0.999, seed=seed)
    expected = "violation" if case.broken else "consistent"
    letter = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}[found.unit]
    library = f"{case.library} {importlib.metadata.version(case.library)}"
    cells = (library, case.name, str(case.claim), expected, found.verdict, f"{letter} ≥ {found.lower:.3g}",
             "yes" if changed else "", f"{time.perf_counter() - began:.1f}")  # fmt: skip
    return f"| {' | '.join(cells)} |", found.verdict == expected


def main() -> None:
    """Audit every case; write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a library or mechanism whose name contains this; writes no table")
    parser.add_argument("--seed", type=int, default=0)
    how = parser.parse_args()
    cases = [case for library in LIBRARIES for case in library()]
    rows, wrong = [], 0
    for case in cases:
        if how.only in f"{case.library} {case.name}":
            row, right = audited(case, how.seed)
            wrong += not right
            rows.append(row)
            print(row if right else f"{row}  <- NOT ON RECORD", flush=True)
    if not how.only:
        text = HEAD.format(trials="10 000") + "\n".join(rows) + "\n"
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    sys.exit(f"{wrong} verdicts differ from those on record" if wrong else 0)


if __name__ == "__main__":
    main()
