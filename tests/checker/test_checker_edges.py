"""Edges that no certificate of the other tests comes near: what only a change of one sign, end or number would show."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mpmath
import pytest

import certificate_mutations as mutations
import certificate_samples as samples
from certificate_verdicts import edited, refused, verdict
from privcheck_check import curves, values
from privcheck_check.check import check, needed
from privcheck_check.declared import WEIGHTS
from privcheck_check.terms import WORK, allow, evaluate, spend
from privcheck_check.values import DEPTH, Rejected, UnknownKind, parse
from test_checker_costs import BITS, GRID, SCORES, VECTOR, cost, made
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


def test_a_certificate_of_another_format_is_not_read_as_one_of_this() -> None:
    whole = samples.sealed(samples.DP_APVI)
    assert check(mutations.data(whole))
    with pytest.raises(UnknownKind):
        check(mutations.data(whole | {"format": "privcheck-certificate/2"}))


@pytest.mark.parametrize("given", [b"[]", b"1", b'{"format": "another/1"}', b"{}"])
def test_another_format_is_not_a_kind_that_is_known(given: bytes) -> None:
    with pytest.raises(UnknownKind):
        check(given)


# ── Claims at the end of an enclosure ──

WIDE = ["-", ["sqrt", 2], ["sqrt", 2]]  # 0, with ends on either side


def test_a_claim_is_taken_at_its_low_end() -> None:
    part = made("laplace", BITS, {"scale": 3})  # 2/3
    steps = [{"rule": "laplace", "release": "r", "at_most": "2/3"}, {"rule": "T-COMPOSE", "at_most": "2/3"}]
    for epsilon, said in (("2/3", "accepted"), (["+", "2/3", WIDE], "C-PURE")):
        claim = {"currency": "pure", "epsilon": epsilon}
        assert verdict(at_numbers([part], claim, [*steps, {"rule": "C-PURE"}])) == said


def test_the_claims_of_a_curve_and_of_an_order_are_taken_at_their_low_ends() -> None:
    part = made("gaussian", BITS, {"variance": 3})  # μ² = 2/3, ρ = 1/3

    def said(amount: str, end: dict[str, Any], epsilon: Any, delta: Any) -> str:
        steps = [{"rule": "gaussian", "release": "r", "at_most": amount}, {"rule": "T-COMPOSE", "at_most": amount}, end]
        return verdict(at_numbers([part], {"currency": "approx", "epsilon": epsilon, "delta": delta}, steps))

    high = curves.gaussian_delta((F(2, 3),) * 2, (F(1),) * 2)[1]
    for delta, expected in ((str(high), "accepted"), (["+", str(high), WIDE], "C-GDP-APPROX")):
        assert said("2/3", {"rule": "C-GDP-APPROX"}, 1, delta) == expected
    high = curves.order_epsilon((F(1, 3),) * 2, (F(1, 1000),) * 2, F(5))[1]
    for epsilon, expected in ((str(high), "accepted"), (["+", str(high), WIDE], "C-ZCDP-ORDER")):
        assert said("1/3", {"rule": "C-ZCDP-ORDER", "order": 5}, epsilon, "1/1000") == expected


# ── Samples that releases share ──


def together(currency: str, stated: str, total: str, rule: str) -> str:
    law, spread = ("laplace", {"scale": 1}) if currency == "pure" else ("gaussian", {"variance": 1})
    releases = [
        made(law, {"kind": "bounded", "l1": 1, "l2": 1}, spread, {"kind": "sampled", "times": 1, "rate": "1/2"})
        | {"name": name, "sample": "batch"}
        for name in "rs"
    ]
    steps: list[Any] = [{"rule": law, "release": name, "at_most": stated} for name in "rs"]
    steps += [{"rule": "T-COMPOSE", "at_most": total}, {"rule": rule}]
    return verdict(
        at_numbers(releases, {"currency": currency, "epsilon" if currency == "pure" else "rho": total}, steps)
    )


def test_only_epsilon_of_a_sample_is_amplified_and_only_once() -> None:
    assert together("zcdp", "1/2", "1", "C-ZCDP") == "accepted"
    assert together("zcdp", "1/2", "7/10", "C-ZCDP") == "T-COMPOSE"  # log(1 + (e − 1)/2) = .62
    assert together("pure", "1", "14339/10000", "C-PURE") == "accepted"  # log(1 + (e² − 1)/2) = 1.43378
    assert together("pure", "1", "14337/10000", "C-PURE") == "T-COMPOSE"
    assert together("pure", "63/100", "14339/10000", "C-PURE") == "laplace"  # of each alone .62


# ── Numeric compositions ──


def events(
    releases: list[dict[str, Any]], costs: list[Any], epsilon: Any, delta: Any, **changed: Any
) -> dict[str, Any]:
    steps: list[Any] = [
        {"rule": each["mechanism"]["law"], "release": each["name"], "at_most": amount}
        for each, amount in zip(releases, costs, strict=True)
    ]
    claim = {"currency": "approx", "epsilon": epsilon, "delta": delta}
    return at_numbers(releases, claim, [*steps, {"rule": "C-NUMERIC", "grid": GRID}], **changed)


def counters(changed: int, **terms: Any) -> dict[str, Any]:
    law = {"noise_bits": 10, "chance": "1/2"} | terms
    return made("shuffled-bits", {"kind": "stated", "l1": changed, "l2": changed}, law)


def test_counters_that_no_unit_changes_cost_nothing_and_coins_are_fair() -> None:
    relation = {"relation": "replace-one"}
    assert verdict(events([counters(0)], [0], "1/1000", "1/1000", **relation)) == "accepted"
    assert verdict(events([counters(1)], [1], "1/1000", "1/1000", **relation)) == "numeric"
    assert verdict(events([counters(1, chance="1/3")], [1], 9, "9/10", **relation)) == "shuffled-bits"
    assert verdict(events([counters(1)], [1], 9, "9/10", **relation)) == "accepted"


def test_noise_bits_are_rounded_down() -> None:
    """One counter of ten fair bits shifts by one: δ(1/2) = .0936; of nine, .1058."""
    wide = ["*", ["sqrt", 50], ["sqrt", 2]]  # 10, with ends on either side
    for bits, said in ((10, "accepted"), (wide, "numeric")):
        found = events([counters(1, noise_bits=bits)], [1], "1/2", "1/10", relation="replace-one")
        assert verdict(found) == said


def test_events_of_every_law_are_composed() -> None:
    told = made("theorem", BITS, {"cost": 1, "currency": "gdp", "theorem": "x"})
    matrix = made("gaussian-matrix", samples.linear("outer", steps="1"), {"variance": 1, "diagonal": 2})
    for part, amount in ((told, 1), (matrix, "1/2")):
        assert verdict(events([part], [amount], 9, "1/100")) == "accepted"
        assert verdict(events([part], [amount], "1/100", "1/100")) == "numeric"
    many = made("randomised-response", {"kind": "bits", "bits": 10, "ones": 10}, {"keep": "e", "answers": 8})
    many["mechanism"]["keep"] = "11/40"  # ε = log(77/29)
    epsilon = F(98, 100)
    assert verdict(events([many], [str(epsilon)], 5, "1/50")) == "accepted"


def test_rates_are_fractions_and_of_sums() -> None:
    bounded = {"kind": "bounded", "l1": 1, "l2": 1}

    def part(law: str, terms: dict[str, Any], rate: Any, times: int = 3) -> dict[str, Any]:
        statistic = BITS if law == "randomised-response" else bounded
        return made(law, statistic, terms, {"kind": "sampled", "times": times, "rate": rate})

    laplace = {"scale": 1}
    assert verdict(events([part("laplace", laplace, "1/2")], [1], 5, "1/10")) == "accepted"
    assert verdict(events([part("laplace", laplace, ["sqrt", "1/2"])], [1], 5, "1/10")) == "T-SAMPLED"
    response = part("randomised-response", {"keep": "1/2", "answers": 2}, "1/2")
    assert verdict(events([response], [0], 9, "1/10")) == "T-SAMPLED"
    assert verdict(events([part("laplace", laplace, 0)], [1], "1/1000", "1/1000")) == "accepted"
    assert verdict(events([part("laplace", laplace, "1/2", times=0)], [1], "1/1000", "1/1000")) == "accepted"


def test_a_sample_is_composed_once_with_all_that_is_of_it() -> None:
    def part(name: str, times: int = 2, variance: int = 4) -> dict[str, Any]:
        schedule = {"kind": "sampled", "times": times, "rate": "1/2"}
        return made("gaussian", {"kind": "bounded", "l1": 1, "l2": 1}, {"variance": variance}, schedule) | {
            "name": name
        }

    both = [part("r") | {"sample": "b"}, part("s") | {"sample": "b"}]
    one = [part("r", variance=2)]  # the same noise as one sum

    def accepted(releases: list[dict[str, Any]], costs: list[Any], hundredths: int) -> bool:
        return verdict(events(releases, costs, f"{hundredths}/100", "1/1000")) == "accepted"

    least = next(k for k in range(50, 900, 5) if accepted(one, ["1/2"], k))
    assert accepted(both, ["1/4", "1/4"], least)
    assert not accepted(both, ["1/4", "1/4"], least - 5)
    other = [part("r") | {"sample": "b"}, part("s", times=3) | {"sample": "b"}]
    assert verdict(events(other, ["1/4", "1/4"], 9, "9/10")) == "T-SAMPLED"


def test_every_part_of_the_users_is_composed() -> None:
    small, large = (made("laplace", {"kind": "bounded", "l1": 1, "l2": 1}, {"scale": s}) for s in (10, 1))
    for parts, said in ((("a", "a"), "accepted"), (("a", "b"), "numeric")):
        releases = [
            small | {"name": "r", "part": parts[0]},
            (small, large)[parts[1] == "b"] | {"name": "s", "part": parts[1]},
        ]
        costs = ["1/10", "1/10" if parts[1] == "a" else 1]
        assert verdict(events(releases, costs, "1/2", "1/100")) == said


def test_the_grid_is_asked_about_the_low_ends_of_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("privcheck_check.numeric.check_numeric", asked.append)
    part = made("laplace", BITS, {"scale": 3})
    assert verdict(events([part], ["2/3"], ["+", "1/2", WIDE], ["+", "1/8", WIDE])) == "accepted"
    assert F(asked[0]["epsilon"]) < F(1, 2)
    assert F(asked[0]["delta"]) < F(1, 8)


@pytest.mark.parametrize("field", ["source", "epsilon", "grid"])
def test_a_numeric_document_is_read_and_composed(field: str) -> None:
    good = samples.NUMERIC
    assert verdict(good) == "accepted"
    wrong = {
        "source": edited(good, "declared", "source", to=5),
        "epsilon": edited(good, "declared", "epsilon", to="1/100"),
        "grid": edited(good, "evidence", to={}),
    }[field]
    assert verdict(wrong) == {"source": "declared", "epsilon": "numeric", "grid": "evidence"}[field]


# ── What is assumed, said and allowed ──


def test_what_a_refutation_takes_to_be_attainable_is_asked_for() -> None:
    def release(statistic: str, shared: str = "", law: str = "laplace") -> Any:
        part = SimpleNamespace(kind=statistic)
        return SimpleNamespace(name="r", statistic=part, mechanism=SimpleNamespace(kind=law), shared=shared)

    for releases, codes in (
        ([release("table")], set()),
        ([release("linear")], {"attainable"}),
        ([release("selection"), release("table")], {"attainable"}),
        ([release("table"), release("table", "outputs")], {"attainable"}),
        ([release("table", "cells")], set()),
        ([release("stated", law="theorem")], {"stated-law: r", "stated-change: r"}),
    ):
        assert needed(SimpleNamespace(releases=releases), "refuted") == codes  # type: ignore[arg-type]


def test_an_audit_says_that_its_runs_took_place() -> None:
    assert verdict(samples.AUDIT) == "accepted"
    assert verdict(edited(samples.AUDIT, "assumed", to=[])) == "assumed"
    assert verdict(edited(samples.AUDIT, "assumed", to="none")) == "assumed"


def test_the_sentence_names_users_of_several_trajectories_and_what_is_stated() -> None:
    part = made("laplace", {"kind": "bounded", "l1": 1, "l2": 1}, {"scale": 1})
    steps = [{"rule": "laplace", "release": "r", "at_most": 3}, {"rule": "T-COMPOSE", "at_most": 3}, {"rule": "C-PURE"}]
    claim = {"currency": "pure", "epsilon": 3}
    for number, words in ((1, "of a user,"), (3, "of a user of up to 3 trajectories,")):
        found = at_numbers([part], claim, steps, unit={"who": "user", "trajectories": number})
        assert words in check(mutations.data(samples.sealed(found)))


def test_the_sentence_of_a_refutation_names_what_is_stated() -> None:
    said = check(mutations.data(samples.sealed(samples.CHOICES_REFUTED)))
    assert said.endswith(", given stated-change: own; stated-law: own")


@pytest.mark.parametrize("fault", [ZeroDivisionError, OverflowError, MemoryError, RecursionError, ValueError])
def test_a_certificate_that_breaks_the_arithmetic_is_rejected(fault: type[Exception], monkeypatch: Any) -> None:
    def broken(_: object) -> str:
        raise fault

    monkeypatch.setattr("privcheck_check.check._check", broken)
    with pytest.raises(Rejected, match="beyond what this checker computes with"):
        check(b"{}")


@pytest.mark.parametrize("kind", ["foo", 5, None, ["refuted"]])
def test_another_kind_is_not_known(kind: object) -> None:
    with pytest.raises(UnknownKind):
        check(mutations.data({"format": "privcheck-certificate/1", "kind": kind}))


def test_joint_privacy_is_no_field_of_a_refutation() -> None:
    refutation = next(each for each in samples.ALL.values() if each["kind"] == "refuted")
    assert verdict(refutation) == "accepted"
    assert verdict(refutation | {"joint": {"outputs": "construction", "by": "x"}}) == "format"


def test_answers_are_two_at_least() -> None:
    for answers, said in ((1, "randomised-response"), (2, "accepted")):
        part = made("randomised-response", {"kind": "bits", "bits": 1, "ones": 1}, {"keep": "1/2", "answers": answers})
        if answers == 1:
            part["mechanism"]["keep"] = 1
        assert cost(part, "pure", 1) == said


def test_a_sum_without_a_largest_change_has_its_cost_as_a_whole() -> None:
    part = made("laplace", {"kind": "bounded", "l1": 1, "l2": 1}, {"scale": 1})  # 1 + 1/e − 1
    assert cost(part, "zcdp", "3679/10000") == "accepted"
    assert cost(part, "zcdp", "3678/10000") == "laplace"


def test_the_weight_of_a_cost_is_what_the_reward_lacks() -> None:
    assert WEIGHTS["cost"] == (1, -1)


@pytest.mark.parametrize("missing", ["noise_bits", "chance", "users"])
def test_counters_of_integers_are_declared_whole(missing: str) -> None:
    terms: dict[str, Any] = {"noise_bits": 10, "chance": "1/2", "users": 5}
    whole = made("shuffled-integers", {"kind": "stated", "l1": 1, "l2": 1}, terms)
    claim = {"currency": "pure", "epsilon": 9}
    steps = [{"rule": "shuffled-integers", "release": "r", "at_most": 9}, {"rule": "T-COMPOSE", "at_most": 9}]
    assert verdict(at_numbers([whole], claim, [*steps, {"rule": "C-PURE"}])) == "shuffled-integers"
    del terms[missing]
    part = made("shuffled-integers", {"kind": "stated", "l1": 1, "l2": 1}, terms)
    assert verdict(at_numbers([part], claim, [*steps, {"rule": "C-PURE"}])) == "declared: r"


def test_outputs_may_share_a_draw_where_users_answer_by_themselves() -> None:
    claim = {"currency": "pure", "epsilon": 9}
    steps = [{"rule": "laplace", "release": "r", "at_most": 9}, {"rule": "T-COMPOSE", "at_most": 9}, {"rule": "C-PURE"}]
    for kind, said in (("local", "L-SHARED"), ("once", "declared: r")):
        part = made("laplace", BITS, {"scale": 1}, {"kind": kind}) | {"shared": "outputs"}
        assert verdict(at_numbers([part], claim, steps, relation="replace-one", model="local")) == said


def test_the_largest_value_of_a_parameter_is_positive() -> None:
    part = made("laplace", BITS, {"scale": 1})
    claim = {"currency": "pure", "epsilon": 9}
    steps = [{"rule": "laplace", "release": "r", "at_most": 9}, {"rule": "T-COMPOSE", "at_most": 9}, {"rule": "C-PURE"}]
    for most, said in ((1, "accepted"), (0, "declared: parameter n")):
        parameters = {"n": {"kind": "integer", "least": 0, "value": 0, "most": most}}
        assert verdict(at_numbers([part], claim, steps, parameters=parameters)) == said


# ── The command ──


def test_the_command_says_one_line_and_the_status(tmp_path: Path, capsysbinary: Any) -> None:
    from privcheck_check.__main__ import main

    def said(*given: str) -> tuple[int, str, str]:
        status = main(list(given))
        out, err = capsysbinary.readouterr()
        return status, out.decode("utf-8"), err.decode("utf-8")

    file = tmp_path / "certificate.json"
    good = samples.sealed(samples.DP_APVI)
    file.write_bytes(mutations.data(good))
    status, out, err = said(str(file))
    assert (status, err) == (0, "")
    assert out == f"accepted: {check(file.read_bytes())}\n"
    file.write_bytes(mutations.data(good | {"digest": "x\u001b[31m\ud800"}))
    assert said(str(file)) == (1, "rejected: digest: not the digest of what is declared\n", "")
    file.write_bytes(mutations.data(good | {"kind": "some\u001bthing"}))
    status, out, err = said(str(file))
    assert (status, err) == (3, "")
    assert out.startswith("unknown kind: ")
    assert "\u001b" not in out
    for given in ((), (str(file), str(file))):
        assert said(*given) == (2, "", "usage: python -m privcheck_check certificate.json\n")
    status, out, err = said(str(tmp_path / "none.json"))
    assert (status, out) == (2, "")
    assert "none.json" in err


def test_the_command_reads_a_byte_more_than_a_certificate_may_have(tmp_path: Path, monkeypatch: Any) -> None:
    from privcheck_check import __main__ as command

    read: list[int] = []
    monkeypatch.setattr(command, "check", lambda data: str(read.append(len(data))))
    file = tmp_path / "long.json"
    for size in (2**20, 2**20 + 1, 2**20 + 9):
        file.write_bytes(b" " * size)
        assert command.main([str(file)]) == 0
    assert read == [2**20, 2**20 + 1, 2**20 + 1]


def test_a_certificate_has_at_most_a_mebibyte() -> None:
    assert refused(parse, b"0" + b" " * 2**20)
    assert parse(b"0" + b" " * (2**20 - 1)) == 0


def test_what_a_certificate_says_is_printed_without_what_steers_a_terminal(monkeypatch: Any, capsysbinary: Any) -> None:
    from privcheck_check import __main__ as command

    monkeypatch.setattr(command, "check", lambda _: "a\u001b[31mb\nc é")
    assert command.main([__file__]) == 0
    assert capsysbinary.readouterr().out == "accepted: a?[31mb?c é\n".encode()


# ── Sums over steps ──


def test_a_sum_has_at_most_its_number_of_steps() -> None:
    allow()
    assert evaluate(("sum", F(4000), "h"), {}) == (F(4000 * 4001 // 2),) * 2
    assert refused(evaluate, ("sum", F(4001), "h"), {})


# ── Sizes and squares ──


def test_a_document_has_at_most_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert values.FILE_BYTES == 2**20
    monkeypatch.setattr(values, "FILE_BYTES", 5)
    assert parse(b"[1,2]") == [1, 2]
    assert refused(parse, b"[1,2] ")


def test_a_quote_after_an_escaped_backslash_ends_a_string() -> None:
    text = r'["\\", ' + "[" * DEPTH + "]" * DEPTH + "]"
    with pytest.raises(Rejected, match="nested"):
        parse(text.encode())


def test_every_certificate_has_all_of_the_work() -> None:
    allow()
    spend(WORK)
    assert check(mutations.data(samples.sealed(samples.DP_APVI)))


def test_squares_of_a_table_are_of_its_weight_and_its_spread() -> None:
    """Of a centred reward ½ and 1: one step replaced changes by max(2·¼, 1) = 1; with a start in common by 1."""
    for weight, relation, square in (
        ("centred-reward", "replace-one", F(1)), ("centred-reward", "replace-one-same-start", F(1)),
        ("reward", "replace-one", F(2)), ("reward", "replace-one-same-start", F(1)), ("one", "replace-one", F(2)),
        ("centred-reward", "add-remove", F(1, 4)),
    ):  # fmt: skip
        table = samples.table(["state", "action"], weight) | {"steps": 1, "states": 2, "actions": 1}
        part = made("gaussian", table, {"variance": 1})
        assert cost(part, "zcdp", square / 2, relation=relation) == "accepted"
        assert cost(part, "zcdp", square / 2 - F(1, 1000), relation=relation) == "gaussian"


def test_the_tight_cost_of_laplace_noise_is_tried_at_numbers_only() -> None:
    """Two bits at t = ε/2 scales each: 2·(t + e^(−t) − 1) of ρ, which is ε²/2 for all parameters."""
    part = {"name": "r", "statistic": BITS, "mechanism": {"law": "laplace", "scale": ["/", 2, "e"]},
            "schedule": {"kind": "once"}}  # fmt: skip
    for stated, said in (("e**(2/1)/2", "accepted"), ("2*(e/2 + exp(0 - e/2) - 1)", "laplace")):
        found = samples.holds_for_all(
            "x", "add-remove", {"e": samples.real(1)}, [(part, stated)], {"currency": "zcdp", "rho": stated},
            "C-ZCDP", stated, codes=("sequential",),
        )  # fmt: skip
        assert verdict(found) == said
    assert cost(made("laplace", BITS, {"scale": 2}), "zcdp", "2131/10000") == "accepted"  # 2·(½ + e^(−½) − 1) = .21306
    assert cost(made("laplace", BITS, {"scale": 2}), "zcdp", "2130/10000") == "laplace"
