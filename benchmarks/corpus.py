"""Mechanisms of published libraries audited as they are called: `benchmarks/corpus.md`.

    make corpus               installs the pinned libraries into .venv-corpus and runs this
    make corpus-smartnoise    smartnoise-sql, which needs an older OpenDP: `benchmarks/corpus_smartnoise.md`
    make corpus-tumult        Tumult's libraries, which need Java and NumPy 1: `benchmarks/corpus_tumult.md`

Every entry is a function of a dataset in a line or two, its claim and two neighbouring datasets. Each call gets a copy
of the dataset, and a dataset that a call changes in place is named. Libraries draw their own randomness, so that bounds
differ from run to run; at 99.9 % confidence one of a hundred correct functions is accused in ten runs. A verdict other
than the one that is on record ends the script with 1.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import os
import sys
import tempfile
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
AHEAD = 1_000  # runs that are drawn in one call where a call takes long


@dataclass(frozen=True)
class Case:
    """A mechanism as its library is called.

    Attributes:
        library: The distribution's name.
        name: The mechanism's name there.
        run: One output for a dataset.
        many: Whether `run` takes a number of runs as well and returns a list of so many, which are then drawn ahead.
        claim: What the library promises.
        pair: Two neighbouring datasets.
        broken: Whether a violation is on record.
        trials: Runs under each neighbour.
    """

    library: str
    name: str
    run: Callable[..., Any]
    claim: Any
    pair: tuple[Any, Any]
    broken: bool = False
    trials: int = 10_000
    many: bool = False


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

    def slope(x: Any) -> Any:
        made = models.LinearRegression(epsilon=1, bounds_X=(0, 10), bounds_y=(0, 1), fit_intercept=False)
        return made.fit(np.array([[0.0]] * 20 + [[x]]), np.array([0.0] * 20 + [1.0])).coef_

    found.append(case("models.LinearRegression", slope, (0.1, 10.0), trials=2_000, broken=True))
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


def smartnoise() -> list[Case]:
    """Noise and SQL queries of smartnoise-sql; a query's claim is its `get_privacy_cost` for ε = 1 a statistic.

    Most of a query's time goes to its text, so that many runs are one query: grouped by the run, each with other users.
    """
    import pandas as pd
    import snsql
    from snsql.sql._mechanisms.approx_bounds import approx_bounds
    from snsql.sql.privacy import Gaussian, Laplace, Mechanism, Mechanisms, Privacy, Stat

    columns = {
        "run": {"type": "int"},
        "id": {"type": "int", "private_id": True},
        "x": {"type": "float", "lower": 0.0, "upper": 1.0},
        "n": {"type": "int", "lower": 0, "upper": 1},
        "g": {"type": "string"},
    }
    gaussian = Mechanisms()
    gaussian.map = dict.fromkeys(Stat, Mechanism.gaussian)

    def noise(name: str, made: Any, claim: Any = ONE, pair: Any = (0.0, 1.0)) -> Case:
        return Case("smartnoise-sql", name, lambda x, runs: made.release([x] * runs), claim, pair, many=True)

    def query(
        asked: str, claim: Any, pair: Any, *, by: str = "", mechanisms: Any = None, told: Any = None, **more: Any
    ) -> Case:
        table = {"censor_dims": False, "clamp_counts": False, "max_ids": 1, **(told or {}), **columns}
        words = f"SELECT {asked}{f' GROUP BY {by}' if by else ''}{', gaussian' if mechanisms else ''}"

        def run(data: Any, runs: int) -> Any:
            users = len(data["id"])
            frame = pd.DataFrame({key: list(values) * runs for key, values in data.items()})
            frame["run"] = np.repeat(np.arange(runs), users)
            frame["id"] += 1000 * frame["run"]
            privacy = Privacy(epsilon=1.0, delta=0.05, mechanisms=mechanisms)
            reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"d": {"t": table}}})
            found = reader.execute(" ".join(["SELECT run,", asked, "FROM d.t GROUP BY run", by and f", {by}"]))
            answers: list[Any] = [[] for _ in range(runs)]
            for row in found[1:]:
                answers[int(row[0])].append(tuple(row[1:]))
            return [sorted(each) if by else each[0] for each in answers]

        return Case("smartnoise-sql", words, run, claim, pair, many=True, trials=2_000, **more)

    def rows(x: Any, n: Any = None, g: Any = None, users: Any = None) -> dict[str, Any]:
        size = len(x)
        return {"id": list(users or range(size)), "x": x, "n": n or [1] * size, "g": list(g or "a" * size)}

    fewer = (rows([0.2, 0.5, 0.9, 1.0], [1, 0, 1, 1]), rows([0.2, 0.5, 0.9], [1, 0, 1]))
    outside = (rows([0.2, 0.5, 0.9, 7.0]), rows([0.2, 0.5, 0.9]))  # is clamped to 1
    rare = (rows([0.5] * 4, g="aaab"), rows([0.5] * 3, g="aaa"))  # a group of one user
    twice = (rows([0.5] * 4, g="abab", users=[0, 0, 1, 2]), rows([0.5] * 2, g="ab", users=[1, 2]))
    crowd = (rows([9.0] * 12), rows([9.0] * 11))  # outside of the bounds, all of them
    half, two, three = ApproxDP(1, "1/20"), PureDP(2), PureDP(3)
    return [
        noise("Laplace", Laplace(1.0, sensitivity=1)),
        noise("Laplace, bounds", Laplace(1.0, lower=-1, upper=1)),
        noise("Laplace, two contributions", Laplace(1.0, sensitivity=1, max_contrib=2), ONE, (0.0, 2.0)),
        noise("Gaussian", Gaussian(1.0, delta=0.05, sensitivity=1), half),
        noise("Gaussian, two contributions", Gaussian(1.0, delta=0.05, sensitivity=1, max_contrib=2), half, (0.0, 2.0)),
        Case("smartnoise-sql", "approx_bounds", lambda x: approx_bounds(x, 1.0), ONE, ([3.0] * 20, [3.0] * 19),
             trials=200),
        query("COUNT(*) AS c", ONE, fewer),
        query("COUNT(DISTINCT id) AS c", ONE, fewer),
        query("SUM(x) AS s", ONE, fewer),
        query("SUM(x) AS s", ONE, outside),
        query("SUM(n) AS s", ONE, fewer),
        query("AVG(x) AS m", two, fewer),
        query("VAR(x) AS v", three, fewer),
        query("STDDEV(x) AS v", three, outside),
        query("COUNT(*) AS c", half, fewer, mechanisms=gaussian),
        query("SUM(x) AS s", half, outside, mechanisms=gaussian),
        query("g, COUNT(DISTINCT id) AS c", half, rare, by="g", told={"censor_dims": True}),
        query("g, COUNT(DISTINCT id) AS c, SUM(x) AS s", ApproxDP(2, "1/20"), rare, by="g", told={"censor_dims": True}),
        query("g, COUNT(*) AS c", ONE, twice, by="g", told={"max_ids": 2}),
        query("n, SUM(x) AS s", ONE, crowd, by="n"),
    ]  # fmt: skip


def tumult() -> list[Case]:
    """Measurements of tmlt.core, and queries of a tmlt.analytics session, for a group of rows a run as above."""
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain
    from tmlt.core.domains.pandas_domains import PandasSeriesDomain
    from tmlt.core.measurements import noise_mechanisms as noise
    from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
    from tmlt.core.measures import PureDP as Pure

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    real, whole = NumpyFloatDomain(), (np.int64(0), np.int64(1))
    median = NoisyQuantile(PandasSeriesDomain(real), Pure(), 0.5, 0.0, 1.0, 1)
    warehouse = tempfile.mkdtemp()  # of what a session caches
    settings = {"spark.sql.shuffle.partitions": "1", "spark.sql.warehouse.dir": warehouse}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()

    def query(name: str, asked: Callable[[Any], Any]) -> Case:
        def run(data: Any, runs: int) -> Any:
            frame = pd.DataFrame({"run": np.repeat(np.arange(runs), len(data)), "x": list(data) * runs})
            session = Session.from_dataframe(
                privacy_budget=PureDPBudget(1), source_id="t", dataframe=spark.createDataFrame(frame),
                protected_change=AddOneRow(),
            )  # fmt: skip
            groups = QueryBuilder("t").groupby(KeySet.from_dict({"run": list(range(runs))}))
            return session.evaluate(asked(groups), PureDPBudget(1)).toPandas().set_index("run").iloc[:, 0].tolist()

        return Case("tmlt.analytics", name, run, ONE, FEWER, many=True, trials=2_000)

    return [
        Case("tmlt.core", "AddLaplaceNoise", noise.AddLaplaceNoise(real, 1), ONE, (0.0, 1.0)),
        Case("tmlt.core", "AddGeometricNoise", noise.AddGeometricNoise(1), ONE, whole),
        Case("tmlt.core", "AddGaussianNoise", noise.AddGaussianNoise(real, 4), ZCDP("1/8"), (0.0, 1.0)),
        Case("tmlt.core", "AddDiscreteGaussianNoise", noise.AddDiscreteGaussianNoise(4), ZCDP("1/8"), whole),
        Case("tmlt.core", "NoisyQuantile", lambda x: median(pd.Series(x)), ONE, FEWER),
        query("Session, count", lambda groups: groups.count()),
        query("Session, sum", lambda groups: groups.sum("x", 0, 1)),
        query("Session, average", lambda groups: groups.average("x", 0, 1)),
    ]


SETS = {
    "": (diffprivlib, opendp, pydp, ldpy, pure_ldp),
    "smartnoise": (smartnoise,),
    "tumult": (tumult,),
}
FEWER_RUNS = {
    "": " (5,000 of\n`count_nonzero`, 2,000 of `PCA` and of `LinearRegression`)",
    "smartnoise": " (2,000 of\nqueries, 200 of `approx_bounds`)",
    "tumult": " (2,000 of\nqueries of a session)",
}
HEAD = """# Published libraries, audited as they are called

`make corpus{dash}`: the libraries in the versions of `corpus{line}_requirements.txt`, {trials}, confidence 99.9 %. A
violation is on record where *expected* says so; the page “Found in the wild” of the documentation has how to see it by
hand. *Changed*: a call changed the dataset that it was given.

| library | mechanism | claim | expected | found | lower bound | changed | seconds |
| --- | --- | --- | --- | --- | ---: | --- | ---: |
"""


def same(given: Any, before: Any) -> bool:
    """Whether a dataset is as it was."""
    return bool(given == before) if isinstance(given, dict) else np.array_equal(np.asarray(given), np.asarray(before))


def audited(case: Case, seed: int) -> tuple[str, bool]:
    """Row of the table, and whether the verdict is the one on record."""
    began, changed = time.perf_counter(), []

    ahead: dict[str, list[Any]] = {}

    def run(data: Any, rng: np.random.Generator) -> Any:
        kept, _ = ahead.setdefault(repr(data), []), rng  # the library draws its own
        if not kept:
            given = copy.deepcopy(data)
            kept += case.run(given, AHEAD) if case.many else [case.run(given)]
            if not changed and not same(given, data):
                changed.append(True)
        return kept.pop()

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
    parser.add_argument("--set", default="", choices=SETS, help="libraries that are installed together")
    parser.add_argument("--only", default="", help="a library or mechanism whose name contains this; writes no table")
    parser.add_argument("--seed", type=int, default=0)
    how = parser.parse_args()
    cases = [case for library in SETS[how.set] for case in library()]
    rows, wrong = [], 0
    for case in cases:
        if how.only in f"{case.library} {case.name}":
            row, right = audited(case, how.seed)
            wrong += not right
            rows.append(row)
            print(row if right else f"{row}  <- NOT ON RECORD", flush=True)
    if not how.only:
        line = f"_{how.set}" if how.set else ""
        text = HEAD.format(
            dash=line.replace("_", "-"), line=line,
            trials=f"{cases[0].trials:,} runs under each neighbour" + FEWER_RUNS[how.set],
        ) + "\n".join(rows) + "\n"  # fmt: skip
        Path(__file__).with_name(f"corpus{line}.md").write_text(text, encoding="utf-8")
    sys.exit(f"{wrong} verdicts differ from those on record" if wrong else 0)


if __name__ == "__main__":
    main()
