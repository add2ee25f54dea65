"""Table × declaration × plan × dataset: no charge is below what a naive count says the dataset's unit loses."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import privcheck
from privcheck import Users
from privcheck.errors import ParameterError, PrivcheckError, TrajectoryError
from privcheck.ledger import Book, create_store
from privcheck.ledger.registry import Actor

OFFICER = Actor(name="ana", role="officer")
RHO = Fraction(1, 8)
RELATIONS = ("replace-one", "replace-one-same-start", "add-remove", "zero-out")
WAYS = ("column", "column", "column", "word", "nothing")
MODELS = ("central", "joint", "shuffle", "local")


def table_of(owners, *, named):
    """A row a step, two steps an episode, with the owner of each episode."""
    n = len(owners)
    states = np.arange(3 * n).reshape(n, 3) % 2
    columns = {
        "episode": np.repeat(np.arange(n), 2), "step": np.tile([1, 2], n), "state": states[:, :2].ravel(),
        "action": np.zeros(2 * n, int), "reward": np.zeros(2 * n), "next_state": states[:, 1:].ravel(),
    }  # fmt: skip
    return pa.table(columns | ({"patient_id": np.repeat(owners, 2)} if named else {}))


def draw(rng):
    """One combination: who the table says its users are, and whom the dataset's policy protects."""
    most = 3 if rng.random() < 0.4 else 1
    owners = [owner for owner in range(3) for _ in range(rng.integers(1, most + 1))]
    way = WAYS[rng.integers(len(WAYS))]
    stated = (None, 1, 2, 3)[rng.integers(4)] if way == "column" else None
    common = rng.random(3) < 0.7  # so that many combinations are wrong in one place at most
    needed = {
        "who": "patient" if common[0] else "ward", "m": int(rng.integers(1, 4 if rng.random() < 0.5 else 2)),
        "relation": "replace-one" if common[1] else RELATIONS[rng.integers(4)],
        "model": "central" if common[2] else MODELS[rng.integers(4)], "asserted": bool(rng.random() < 0.5),
    }  # fmt: skip
    return owners, way, stated, needed


def told(way, stated):
    if way == "column":
        return Users(column="patient_id", max_trajectories=stated)
    return Users(one_episode_is_one_user=True, who="patient") if way == "word" else Users()


def opened(tmp_path, name, needed):
    book, _ = Book.init(create_store(str(tmp_path / name)))
    unit = f"{needed['who']}, {needed['m']} trajectories, {needed['relation']}, {needed['model']}"
    book.set_policy(OFFICER, dataset="D", epsilon="400", delta="1e-6", unit=unit, asserted_units=needed["asserted"])
    book.grant(OFFICER, name="G", dataset="D", currency="rho", cap="20", delta="1e-6")
    return book


def allowed(owners, way, stated, needed):
    """Whether DP-APVI on this table may be charged to this dataset, by a count of its own; and the least charge."""
    episodes = max(Counter(owners).values()) if way == "column" else 1
    most = stated or 1
    if way == "nothing" or episodes > most:
        return False, None
    central = needed["model"] in ("central", "joint")  # what everybody may see, the other users may see
    same = needed["relation"] in ("replace-one", "replace-one-same-start")
    fits = needed["who"] == "patient" and most >= needed["m"] and central and same
    # all trajectories of a patient alike, against as many others: every count moves m-fold, and ρ m²-fold
    return fits and (way != "word" or needed["asserted"]), RHO * needed["m"] ** 2


@pytest.mark.parametrize(
    "seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(10, 40))]
)
def test_what_a_run_is_charged_covers_whom_the_dataset_protects(tmp_path, seed):
    rng = np.random.default_rng(seed)
    owners, way, stated, needed = draw(rng)
    book = opened(tmp_path, "budget.db", needed)
    data = table_of(owners, named=way == "column" or rng.random() < 0.5)
    fine, least = allowed(owners, way, stated, needed)
    asked = {"data": data, "users": told(way, stated), "S": 2, "A": 1, "rho": RHO}
    charged = {"ledger": str(tmp_path / "budget.db"), "grant": "G"}
    if not fine:
        with pytest.raises((ParameterError, TrajectoryError)):
            privcheck.run("dp-apvi", **asked, **charged)
        assert book.charges(OFFICER, "D") == []
        book.store.close()
        return
    ran = privcheck.run("dp-apvi", **asked, **charged)
    (charge,) = book.charges(OFFICER, "D")
    book.store.close()
    assert charge.state == "committed"
    assert charge.cost.amount >= least
    assert charge.cost.amount == pytest.approx(RHO * (stated or 1) ** 2, rel=1e-12)
    assert (charge.unit["who"], charge.unit["trajectories"]) == ("patient", stated or 1)
    assert ran.unit.trajectories >= needed["m"]
    assert ran.spent.rho >= least


def test_the_combinations_are_of_both_kinds():
    kinds = Counter(allowed(*draw(np.random.default_rng(seed)))[0] for seed in range(40))
    assert min(kinds[True], kinds[False]) >= 6


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("named", ["replace-one", "add-remove", "zero-out"])
def test_a_plan_of_a_sampled_event_serves_its_own_relation_alone(tmp_path, relation, named):
    needed = {"who": "patient", "m": 1, "relation": relation, "model": "central", "asserted": False}
    book = opened(tmp_path, "budget.db", needed)
    event = {"type": "poisson_gaussian", "std": "4", "rate": "0.1", "relation": named}
    serves = named == relation or (named, relation) == ("replace-one", "replace-one-same-start")
    unit = f"patient, 1 trajectory, {relation}, central"
    if serves:
        book.plan(OFFICER, name="P", dataset="D", events=event, delta="1e-6", unit=unit)
    else:
        with pytest.raises(PrivcheckError, match="relation"):
            book.plan(OFFICER, name="P", dataset="D", events=event, delta="1e-6", unit=unit)
    book.store.close()
