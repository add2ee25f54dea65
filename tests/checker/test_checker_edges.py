"""Edges that no certificate of the other tests comes near: what only a change of one sign, end or number would show."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest

import certificate_mutations as mutations
import certificate_samples as samples
from certificate_verdicts import refused, verdict
from privcheck_check import curves
from privcheck_check.check import check
from privcheck_check.values import DEPTH, Rejected, UnknownKind, parse
from test_checker_costs import BITS, SCORES, VECTOR, cost, made
from test_checker_costs import document as at_numbers

F = Fraction


# ── Reading ──


def test_brackets_after_an_escaped_quote_are_nesting() -> None:
    text = r'["a\"b", ' + "[" * DEPTH + "]" * DEPTH + "]"
    with pytest.raises(Rejected, match="nested"):
        parse(text.encode())
    assert parse(text.replace("[]", "").encode()) is not None


@pytest.mark.parametrize("data", [b"x", b'"\xff"', b"[1", b""])
def test_bytes_that_are_no_json_are_rejected(data: bytes) -> None:
    assert refused(parse, data)


# ── Curves ──


def test_the_gaussian_curve_takes_the_ends_of_a_wide_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "square_root", lambda _: (F(1), F(2)))
    low, high = curves.gaussian_delta((F(1), F(4)), (F(1), F(1)))
    with mpmath.workdps(60):
        half = mpmath.mpf(1) / 2
        for found, true in (
            (low, mpmath.ncdf(half - 1) - mpmath.e * mpmath.ncdf(-half - half)),
            (high, mpmath.ncdf(1 - half) - mpmath.e * mpmath.ncdf(-1 - 1)),
        ):
            assert abs(mpmath.mpf(found.numerator) / found.denominator - max(true, 0)) < mpmath.mpf(10) ** -50


# ── Costs ──


def for_all(law: str, statistic: dict[str, Any], terms: dict[str, Any], total: str, **changed: Any) -> str:
    """The verdict on a claim of a pure cost for all K ≥ 1, K being 10."""
    found = samples.holds_for_all(
        "x", changed.pop("relation", "add-remove"), {"K": samples.integer(10)} | changed.pop("parameters", {}),
        [({"name": "r", "statistic": statistic, "mechanism": {"law": law} | terms,
           "schedule": changed.pop("schedule", {"kind": "once"})}, total)],
        {"currency": "pure", "epsilon": total}, "C-PURE", total,
        codes=("sequential", "stated-sensitivity: r", "secret-sample: r", "theorem: r", "public-schedule: r"),
    )  # fmt: skip
    return verdict(found)


def test_a_count_is_not_negative_for_any_parameter() -> None:
    count = ["-", "K", 5]
    repeat, sampled = {"kind": "repeat", "noise": "fresh"}, {"kind": "sampled", "rate": 1}
    terms = {"cost": 1, "currency": "pure", "theorem": "x"}
    assert for_all("theorem", BITS, terms, "K", schedule=repeat | {"times": "K"}) == "accepted"
    assert for_all("theorem", BITS, terms, "K", schedule=repeat | {"times": count}) == "T-REPEAT"
    assert for_all("theorem", BITS, terms, "K*log(1+exp(1)-1)", schedule=sampled | {"times": "K"}) == "accepted"
    assert for_all("theorem", BITS, terms, "K*log(1+exp(1)-1)", schedule=sampled | {"times": count}) == "T-SAMPLED"


@pytest.mark.parametrize(
    ("law", "statistic", "terms", "rule"),
    [
        ("laplace", BITS, {"scale": 1}, "accepted"),
        ("discrete-laplace", BITS, {"scale": 1}, "accepted"),
        ("gaussian", BITS, {"variance": 1}, "accepted"),
        ("discrete-gaussian", BITS, {"variance": 1}, "accepted"),
        ("gaussian-matrix", samples.linear("outer", steps="1"), {"variance": 1, "diagonal": 2}, "accepted"),
        ("laplace", {"kind": "stated", "l1": 1, "l2": 1}, {"scale": 1}, "T-SAMPLED"),
        ("noisy-max", SCORES, {"scale": 1, "noise": "gumbel", "one_sided": False}, "T-SAMPLED"),
        ("theorem", BITS, {"cost": 1, "currency": "zcdp", "theorem": "x"}, "T-SAMPLED"),
    ],
)
def test_samples_of_units_set_to_zero_are_of_sums_with_noise(
    law: str, statistic: dict[str, Any], terms: dict[str, Any], rule: str
) -> None:
    part = made(law, statistic, terms, {"kind": "sampled", "times": 2, "rate": 1})
    assert cost(part, "zcdp", 100, relation="zero-out") == rule
    assert cost(part, "zcdp", 100) == "accepted"
    assert cost(part, "zcdp", 100, relation="replace-one-same-start") == "T-SAMPLED"


def test_one_number_of_a_centred_table_changes_by_one() -> None:
    """ℓ₁ of 1 in one cell, from −1/2 to 1/2, against a scale of 1: t + e^(−t) − 1 at t = 1, which is 0.36788."""
    table = samples.table(["state", "action"], "centred-reward") | {"steps": 1, "states": 2, "actions": 1}
    part = made("laplace", table, {"scale": 1})
    for relation in ("replace-one", "replace-one-same-start"):
        assert cost(part, "zcdp", "3679/10000", relation=relation) == "accepted"
        assert cost(part, "zcdp", "3678/10000", relation=relation) == "laplace"
    assert cost(part, "zcdp", "1066/10000") == "accepted"  # a half: 0.10653
    assert cost(part, "zcdp", "1065/10000") == "laplace"


def test_a_sparse_vector_as_a_whole_is_no_laplace_noise() -> None:
    """ε = 2/3 + 16/5 has ε²/2 = 7.476; its 99 queries by themselves 99·(0.4 + e^(−0.4) − 1) = 6.962."""
    part = made("sparse-vector", SCORES, VECTOR | {"one_sided": False})
    assert cost(part, "zcdp", "697/100") == "accepted"
    assert cost(part, "zcdp", "696/100") == "sparse-vector"


@pytest.mark.parametrize("name", ["steps", "states", "actions", "bits", "ones"])
def test_sizes_are_whole(name: str) -> None:
    table = samples.table(["state"]) | {"steps": 2, "states": 2, "actions": 2}
    statistic = BITS if name in BITS else table
    part = made("laplace", statistic, {"scale": 1})
    assert cost(part, "pure", 100) == "accepted"
    assert cost(part | {"statistic": statistic | {name: "5/2"}}, "pure", 100) == "evaluate"


def test_what_no_unit_changes_costs_nothing() -> None:
    nothing = {"kind": "stated", "l1": 0, "l2": 0}
    for law, terms, currency in (
        ("laplace", {"scale": 0}, "pure"),
        ("laplace", {"scale": 0}, "gdp"),
        ("gaussian", {"variance": 0}, "pure"),
        ("gaussian", {"variance": 0}, "zcdp"),
    ):
        assert cost(made(law, nothing, terms), currency, 0) == "accepted"
        assert cost(made(law, nothing | {"l2": 1, "l1": 1}, terms), currency, 0) in (law, "evaluate")
    said = made("theorem", nothing, {"cost": "5/3", "currency": "pure", "theorem": "x"})
    assert cost(said, "pure", "5/3") == "accepted"
    assert cost(said, "pure", 1) == "theorem"


@pytest.mark.parametrize("schedule", [{"kind": "disjoint"}, {"kind": "tree", "leaves": 1}])
def test_what_is_said_of_one_value_is_for_one_trajectory(schedule: dict[str, Any]) -> None:
    theorem = made("theorem", BITS, {"cost": 1, "currency": "pure", "theorem": "x"}, schedule)
    stated = made("laplace", {"kind": "stated", "l1": 1, "l2": 1}, {"scale": 1}, schedule)
    for part in (theorem, stated):
        assert cost(part, "pure", 1) == "accepted"
        assert cost(part, "pure", 99, unit={"who": "user", "trajectories": 2}) == "S-STATED"
    sums = made("laplace", {"kind": "bounded", "l1": 1, "l2": 1}, {"scale": 1}, schedule)
    assert cost(sums, "pure", 2, unit={"who": "user", "trajectories": 2}) == "accepted"
    assert cost(theorem | {"schedule": {"kind": "once"}}, "pure", 1, unit={"who": "u", "trajectories": 2}) == "accepted"


# ── The document ──


def test_a_digest_of_something_else_is_rejected() -> None:
    whole = samples.sealed(
        at_numbers([made("laplace", BITS, {"scale": "4"})], {"currency": "pure", "epsilon": "1/2"}, [])
    )
    with pytest.raises(Rejected) as fault:
        check(mutations.data(whole | {"digest": "sha256:" + "0" * 64}))
    assert fault.value.rule == "digest"


@pytest.mark.parametrize("given", [b"[]", b"1", b'{"format": "another/1"}', b"{}"])
def test_another_format_is_not_a_kind_that_is_known(given: bytes) -> None:
    with pytest.raises(UnknownKind):
        check(given)
