"""The command, the format, and certificates made false by hand, rule by rule."""

import ast
import json
import math
import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import certificate_mutations as mutations
import certificate_samples as samples
import certificate_twins as twins
import privcheck_check
from certificate_verdicts import edited, verdict
from privcheck_check.check import check
from privcheck_check.values import FILE_BYTES, Rejected, UnknownKind, parse, read_fraction, read_integer

PACKAGE = Path(privcheck_check.__file__).parent
SCHEMA = Path(__file__).parents[2] / "docs" / "certificate.schema.json"


def test_it_imports_the_standard_library_alone_and_asserts_nothing() -> None:
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not isinstance(node, ast.Assert), path
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                root = name.partition(".")[0]
                assert root == "privcheck_check" or root in sys.stdlib_module_names, (path, name)


def run(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command, alone on its path: no site packages."""
    environment = {"PYTHONPATH": str(PACKAGE.parent), "PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-S", *options, "-m", "privcheck_check", str(path)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=False, timeout=60)


def test_exit_codes(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    for document, status, word in (
        (samples.sealed(samples.DP_APVI), 0, "accepted: "),
        (edited(samples.sealed(samples.DP_APVI), "declared", "name", to="other"), 1, "rejected: digest"),
        (edited(samples.DP_APVI, "kind", to="proved"), 3, "unknown kind: "),
        (edited(samples.DP_APVI, "format", to="privcheck-certificate/2"), 3, "unknown kind: "),
    ):
        path.write_text(json.dumps(document))
        found = run(path)
        assert (found.returncode, found.stdout.startswith(word)) == (status, True), found
        assert found.stdout.count("\n") == 1
    assert run(path, "-O").returncode == 3
    path.write_bytes(b" " * (FILE_BYTES + 1))
    assert run(path).returncode == 1
    assert run(tmp_path / "none.json").returncode == 2


def test_a_name_cannot_write_a_second_line(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    document = edited(samples.DP_APVI, "declared", "name", to="x\naccepted: \x1b[2K everything \ud800")
    path.write_text(json.dumps(samples.sealed(document)))
    found = run(path)
    assert found.returncode == 0
    assert found.stdout.count("\n") == 1
    assert "\x1b" not in found.stdout


@pytest.mark.parametrize("name", samples.ALL)
def test_samples_are_accepted_and_fit_the_schema(name: str) -> None:
    document = samples.sealed(samples.ALL[name])
    assert verdict(document) == "accepted"
    schema = jsonschema_rs.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    schema.validate(document)
    assert not schema.is_valid(document | {"more": 1})


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 1}', "[1.0]", "[1e3]", "[NaN]", "[Infinity]", "[-Infinity]", "[" * 25 + "]" * 25,
     "[" + "9" * 401 + "]", "[01]",
     "{", "", '"\\ud800', "[1,]"],
)  # fmt: skip
def test_text_that_is_no_certificate(text: str) -> None:
    with pytest.raises(Rejected, match="format"):
        parse(text.encode())


def test_brackets_inside_strings_are_no_nesting() -> None:
    assert parse(json.dumps(["[" * 500 + '\\"' + "{" * 500]).encode()) == ["[" * 500 + '\\"' + "{" * 500]


@pytest.mark.parametrize(
    "value", [True, 1.0, None, "1.0", "1/0", "01", "1/-2", " 1", "1/2/3", "٣", "1_0", "-", [1], "9" * 401]
)
def test_values_that_are_no_numbers(value: object) -> None:
    with pytest.raises(Rejected):
        read_fraction(value, "here")
    with pytest.raises(Rejected):
        read_integer(value, "here", least=2)


SMALL = ("declared", "releases", 0, "mechanism")
FALSE: list[tuple[str, dict[str, Any], str]] = [
    # how it was made false, the certificate, the rule that has to reject it
    ("less noise", edited(samples.DP_APVI, *SMALL, "variance", to=["/", ["*", "199/100", "H"], "rho"]), "gaussian"),
    ("less noise, for all", edited(samples.APVI_FOR_ALL, *SMALL, "variance", to=samples.term("(2*H - 1)/rho")),
     "gaussian"),
    ("another relation", edited(samples.LSVI, "declared", "unit", "trajectories", to=2), "gaussian"),
    ("a larger unit", edited(samples.BOUNDED_APVI, "declared", "unit", "trajectories", to=["+", "m", 1]), "gaussian"),
    ("a total too small", edited(samples.DP_APVI, "steps", 2, "at_most", to="999/1000"), "T-COMPOSE"),
    ("a claim too small", edited(samples.DP_APVI, "declared", "claim", "rho", to="999/1000"), "C-ZCDP"),
    ("a smaller delta", edited(samples.GAUSSIAN, "declared", "claim", "delta", to="1/1000000000000"), "C-GDP-APPROX"),
    ("one noise for all values", edited(samples.LSVI, "declared", "releases", 0, "schedule", "noise", to="shared"),
     "T-REPEAT"),
    ("a release without a step", edited(samples.DP_APVI, "steps", to=samples.DP_APVI["steps"][1:]), "steps"),
    ("a bound without proof", edited(samples.UCBVI, "bounds", 0, "at_least", to=samples.term("2*bit_length(K-1)")),
     "B-MAX"),
    ("an unknown assumption", edited(samples.DP_APVI, "assumed", to=[]), "assumed"),
    ("a divisor that may be 0", edited(samples.UCBVI, *SMALL, "scale", to=samples.term("6*H*bit_length(K-1)/epsilon")),
     "for all parameters"),
    ("no noise at the least value", edited(samples.APVI_FOR_ALL, "declared", "parameters", "H", "least", to=0),
     "for all parameters"),
    ("a delta above one", edited(samples.PATE, "declared", "parameters", "delta", "most", to=2), "for all parameters"),
    ("no noise at f = 2", edited(samples.RAPPOR, "declared", "parameters", "f", "most", to=2), "randomised-response"),
    ("a size that may be negative", edited(samples.LSVI, "declared", "releases", 0, "statistic", "steps",
                                           to=samples.term("H-2")), "S-SIZE"),
    ("joint DP of a central model", edited(samples.DP_APVI, "joint", to={"outputs": "construction", "by": "x"}),
     "J-BILLBOARD"),
    ("another start", edited(samples.UCB_VI, "evidence", "pair", 1, 0, "states", 0, to=1), "R-PAIR"),
    ("two users for one", edited(samples.UCB_VI, "evidence", "pair", 1, to=samples.UCB_VI["evidence"]["pair"][1] * 2),
     "R-PAIR"),
    ("the same user", edited(samples.UCB_VI, "evidence", "pair", 1, to=samples.UCB_VI["evidence"]["pair"][0]),
     "refuted"),
    ("no user at all", edited(samples.UCB_VI, "evidence", "pair", 1, to=[]), "R-PAIR"),
    ("a state out of range", edited(samples.UCB_VI, "evidence", "pair", 1, 0, "states", 20, to=6), "R-RANGE"),
    ("a reward out of range", edited(samples.UCB_VI, "evidence", "pair", 1, 0, "rewards", 0, to="3/2"), "R-RANGE"),
    ("a shorter trajectory", edited(samples.UCB_VI, "evidence", "pair", 1, 0, "actions", to=[0] * 19), "R-RANGE"),
    ("one release alone", edited(samples.UCB_VI, "evidence", "using", to=["visits"]), "refuted"),
    ("a release twice", edited(samples.UCB_VI, "evidence", "using", to=["visits", "visits", "costs"]), "evidence"),
    ("a larger claim", edited(samples.UCB_VI, "declared", "claim", "epsilon", to=2), "refuted"),
    ("a feature too long", edited(samples.LINEAR_REFUTED, "evidence", "pair", 0, 0, "features", "phi", 1, to=["4/5",
     "4/5"]),
     "R-RANGE"),
    ("a steeper guarantee", edited(samples.AUDIT, "declared", "guarantee", "epsilon", to=1), "A-TAIL"),
    ("a smaller alpha", edited(samples.AUDIT, "declared", "alpha", to="1/1000"), "A-TAIL"),
    ("runs left out", edited(edited(samples.AUDIT, "evidence", "guesses", to=900), "declared", "guarantee",
                             to={"currency": "gdp", "mu": "1/10"}), "A-GUESSES"),
    ("limits too close", edited(samples.EVENTS, "evidence", "second_at_most", to="3/10"), "A-EVENTS"),
    ("limits too wide", edited(samples.EVENTS, "evidence", "first_at_least", to="69/100"), "A-TAIL"),
    ("a larger charge", samples.ledger([*samples.ROWS, samples.row("e", "1/5")]), "G-SUMS"),
    ("a charge given back twice", samples.ledger([*samples.ROWS, samples.row("c", "3/10", "released")]), "G-SUMS"),
    ("a committed charge given back", samples.ledger([*samples.ROWS, samples.row("b", "1/5", "released")]), "G-SUMS"),
    ("a row dropped", edited(samples.LEDGER, "evidence", "rows", to=samples.LEDGER["evidence"]["rows"][1:]), "G-CHAIN"),
    ("rows cut off", edited(samples.LEDGER, "evidence", "rows", to=samples.LEDGER["evidence"]["rows"][:-1]), "G-CHAIN"),
    ("caps above the policy", samples.ledger(samples.ROWS, grants={"team": 1}), "G-CAPS"),
    ("a cost too small", edited(samples.SGD, "steps", 0, "at_most", to="99/121"), "gaussian"),
    ("another rate", edited(samples.SGD, "declared", "parameters", "rate", "value", to="1/10"), "numeric"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "rule"), [each[1:] for each in FALSE], ids=[each[0] for each in FALSE])
def test_a_certificate_made_false_is_rejected_by_its_rule(document: dict[str, Any], rule: str) -> None:
    assert verdict(document) == rule


def test_a_parameter_cannot_take_the_name_of_an_opaque_term() -> None:
    """A floor of its own for `max(1, bit_length(K − 1))` would prove anything."""
    for name in ("max((1) / 1)", "#2", "+H", "h", "log(2)"):
        document = edited(samples.UCBVI, "declared", "parameters", name, to=samples.integer(10**6, 10**6))
        assert verdict(document) == "declared"


def test_two_bounds_on_one_factor_are_not_confused() -> None:
    """M ≥ b and M ≥ 1 have different remainders: with one name for both, M − b and M − 1 would cancel."""
    document = edited(samples.UCBVI, "steps", 3, "at_most", to=samples.term("epsilon*bit_length(K-1)"))
    document["bounds"] += [{"rule": "B-MAX", "term": samples.term("max(1, bit_length(K-1))"), "at_least": 1}]
    assert verdict(document) == "C-PURE"
    document["declared"]["claim"]["epsilon"] = samples.term("epsilon/2")
    assert verdict(document) == "C-PURE"


@pytest.mark.parametrize(
    "term",
    [["^", ["^", ["^", "rho", 64], 64], 64], ["exp", ["^", "H", 8]], ["/", 1, ["-", "H", 20]], ["log", ["-", "H", 30]],
     ["sqrt", -1], ["bit_length", "1/2"], ["^", "H", "1/3"], ["^", "H", 65], ["max"], ["-", 1], "unknown", ["eval", 1],
     ["+", *[["*", *["H"] * 60]] * 60]],
)  # fmt: skip
@pytest.mark.parametrize("name", ["DP_APVI", "APVI_FOR_ALL"])
def test_hostile_terms_are_rejected(term: Any, name: str) -> None:
    document = getattr(samples, name)
    assert verdict(edited(document, *SMALL, "variance", to=["/", "1/1000", term])) != "accepted"
    assert verdict(edited(document, "steps", 0, "at_most", to=["+", "rho", ["*", -1, term]])) != "accepted"


def test_work_is_bounded() -> None:
    wide = ["+", *[["*", *["H"] * 8, ["+", "H", "rho"]] for _ in range(60)]]
    for _ in range(3):
        wide = ["^", wide, 8]
    assert verdict(edited(samples.APVI_FOR_ALL, "steps", 0, "at_most", to=wide)) != "accepted"
    long = edited(samples.VAPVI, "declared", "parameters", "H", "value", to=10**9)
    assert verdict(edited(long, "kind", to="holds-at")) != "accepted"


def test_joint_dp_says_on_whose_word() -> None:
    document = edited(samples.UCBVI, "joint", to={"outputs": "lockstep", "by": "1000 pairs, seed 3"})
    document["conclusion"] = document["conclusion"] | {"about": "outputs"}
    sentence = check(mutations.data(samples.sealed(document)))
    assert "evidence and no proof (1000 pairs, seed 3)" in sentence
    with pytest.raises(UnknownKind):
        check(b'{"format": "privcheck-certificate/1", "kind": ["holds-at"]}')


def test_a_divisor_that_vanishes_at_one_place_is_not_positive() -> None:
    """e^z − 1 is 0 at z = 0, and 1 − f at f = 1, though both are at least 0."""
    parameters = samples.APVI_FOR_ALL["declared"]["parameters"]
    for name, range_, divisor in (
        ("z", samples.integer(3, 0), ["-", ["exp", "z"], 1]),
        ("f", samples.real("1/2", most=1), ["-", 1, "f"]),
        ("z", samples.integer(3, 0), ["*", "z", "rho"]),
        ("z", samples.integer(3, 0), ["+", "z", ["bit_length", "z"]]),
    ):
        document = edited(samples.APVI_FOR_ALL, "declared", "parameters", to=parameters | {name: range_})
        document = edited(document, *SMALL, "variance", to=["/", samples.term("2*H/rho"), ["*", "1/1000", divisor]])
        assert verdict(document) == "for all parameters"
        allowed = edited(document, "declared", "parameters", name, to=range_ | {"least": "1/4" if name == "f" else 1})
        assert verdict(allowed) in ({"for all parameters"} if name == "f" else {"gaussian"})


def test_an_opaque_target_does_not_change_with_the_step() -> None:
    statistic = samples.linear("sum", "max(1, H-h)")
    assert verdict(edited(samples.VAPVI, "declared", "releases", 1, "statistic", to=statistic)) == "for all parameters"


def test_a_shared_start_has_shared_features() -> None:
    users = [[{"states": [0], "actions": [0], "features": {"phi": [[1, 0], [x, 1 - x]]}}] for x in (0, 1)]
    document = edited(samples.LINEAR_REFUTED, "declared", "relation", to="replace-one-same-start")
    document = edited(document, "declared", "claim", "delta", to="1/100")
    assert verdict(edited(document, "evidence", "pair", to=users)) == "accepted"
    users[1][0]["features"] = {"phi": [[0, 1], [1, 0]]}
    assert verdict(edited(document, "evidence", "pair", to=users)) == "R-PAIR"


def test_two_trajectories_have_a_leaf_each() -> None:
    document = edited(samples.UCB_VI, "declared", "unit", "trajectories", to=2)
    assert verdict(document) == "accepted"
    pair = [side * 2 for side in samples.UCB_VI["evidence"]["pair"]]
    assert verdict(edited(document, "evidence", "pair", to=pair)) == "T-TOUCH"


def divergence(order: Any, rho: str, law: str = "laplace") -> str:
    """One bit with Laplace noise of scale 1 and one with a Gaussian of variance 4, against a claim of ρ."""
    bit = {"kind": "bits", "bits": 1, "ones": 1}
    releases = [samples.release("a", bit, law, scale="1"), samples.release("b", bit, "gaussian", variance="4")]
    declared = samples.UCB_VI["declared"] | {
        "relation": "add-remove", "releases": releases, "claim": {"currency": "zcdp", "rho": rho, "source": ""},
    }  # fmt: skip
    evidence = {"pair": [[{"vectors": {"a": [1], "b": [1]}}], []], "using": ["a", "b"], "order": order}
    return verdict(samples.UCB_VI | {"declared": declared, "evidence": evidence})


def test_a_divergence_of_both_noises() -> None:
    """D_2 = log(2/3·e + 1/3·e^(−2)) + 2/8 = .8687 against 2ρ."""
    assert divergence(2, "434/1000") == "accepted"
    assert divergence(2, "435/1000") == "refuted"
    assert divergence(2, "434/1000", "discrete-laplace") == "L-RENYI"


@pytest.mark.parametrize("field", ["features", "targets", "weights", "vectors", "states", "actions", "rewards"])
def test_data_of_another_shape(field: str) -> None:
    for wrong in ([[1]], 7, "x", {"phi": 1}):
        document = edited(samples.LINEAR_REFUTED, "evidence", "pair", 0, 0, field, to=wrong)
        if field == "vectors" and wrong == [[1]]:
            continue
        assert verdict(document) in ("R-PAIR", "R-RANGE")


def sampled(law: str, relation: str, rate: str) -> str:
    document = edited(samples.SGD, "declared", "relation", to=relation)
    document = edited(document, "declared", "parameters", "rate", to=samples.real(rate))
    release = samples.release("gradients", {"kind": "bounded", "l1": 1, "l2": 1}, law,
                              {"kind": "sampled", "times": "rounds", "rate": "rate"},
                              **({"scale": "1"} if law == "laplace" else {"variance": "1"}))  # fmt: skip
    document = edited(document, "declared", "releases", to=[release])
    document = edited(document, "declared", "claim", to={"currency": "pure", "epsilon": 101, "source": ""})
    document["steps"] = [{"rule": law, "release": "gradients", "at_most": 101}, {"rule": "T-COMPOSE", "at_most": 101},
                         {"rule": "C-PURE"}]  # fmt: skip
    return verdict(document)


def test_samples_are_of_users_added_or_removed() -> None:
    assert sampled("laplace", "add-remove", "1") == "accepted"
    assert sampled("laplace", "replace-one", "1") == "T-SAMPLED"
    assert sampled("laplace", "add-remove", "3/2") == "T-SAMPLED"
    assert sampled("gaussian", "add-remove", "1") == "gaussian"


@pytest.mark.parametrize(
    "code", ["data-in-range", "unit", "sequential", "secret-sample: gradients", "stated-sensitivity: choice"]
)
def test_every_assumption_is_listed(code: str) -> None:
    listed = [each for each in samples.SGD["assumed"] if each["code"] != code]
    assert len(listed) == len(samples.SGD["assumed"]) - 1
    assert verdict(edited(samples.SGD, "assumed", to=listed)) == "assumed"


@pytest.mark.parametrize("name", samples.ALL)
def test_another_conclusion_is_rejected(name: str) -> None:
    for field in ("verdict", "scope", "about"):
        document = edited(samples.ALL[name], "conclusion", field, to="everything")
        assert verdict(document) == "conclusion"


def shared(times: int, claim: dict[str, Any], *, same: bool = False) -> str:
    """Sums after every episode with one draw of noise for all of them."""
    schedule = {"kind": "repeat", "times": times, "noise": "shared"}
    gram = samples.release("gram", samples.linear("outer"), "gaussian-matrix", schedule, variance="10**9", diagonal=2)
    declared = samples.LINEAR_REFUTED["declared"] | {
        "releases": [gram],
        "claim": claim | {"source": ""},
    }  # fmt: skip
    pair = samples.LINEAR_REFUTED["evidence"]["pair"]
    evidence = {"pair": [pair[0], pair[0] if same else pair[1]], "using": ["gram"]}
    return verdict(samples.LINEAR_REFUTED | {"declared": declared, "evidence": evidence})


def test_one_noise_for_two_sums_tells_the_difference() -> None:
    for claim in ({"currency": "zcdp", "rho": 1000}, {"currency": "pure", "epsilon": 1000},
                  {"currency": "gdp", "mu": 1000},
                  {"currency": "approx", "epsilon": 1000, "delta": "999/1000"}):  # fmt: skip
        assert shared(2, claim) == "accepted"
        assert shared(1, claim) == "refuted"
        assert shared(2, claim, same=True) == "refuted"
    assert shared(2, {"currency": "approx", "epsilon": 1, "delta": 1}) == "refuted"


def event(epsilon: str, delta: str, law: str = "laplace") -> str:
    """Two bits with noise of scale 1: with probability 1/4 both are on the side where the loss is 2."""
    bits = {"kind": "bits", "bits": 2, "ones": 2}
    declared = samples.UCB_VI["declared"] | {
        "relation": "add-remove", "releases": [samples.release("a", bits, law, scale="1")],
        "claim": {"currency": "approx", "epsilon": epsilon, "delta": delta, "source": ""},
    }  # fmt: skip
    evidence = {"pair": [[{"vectors": {"a": [1, 1]}}], []], "using": ["a"]}
    return verdict(samples.UCB_VI | {"declared": declared, "evidence": evidence})


def test_the_curve_of_two_coordinates() -> None:
    """δ at ε = 1 of two Laplace coordinates moved by a scale each, by a sum over a fine grid of their losses."""
    x = [-20 + (i + 0.5) / 400 for i in range(17_000)]
    mass = [math.exp(-abs(each - 1)) / 800 for each in x]
    loss = [abs(each) - abs(each - 1) for each in x]
    ends = Counter[float]()
    for each, size in zip(loss, mass, strict=True):
        ends[round(each, 3)] += size
    exact = sum(p * q * max(0.0, 1 - math.exp(1 - a - b)) for a, p in ends.items() for b, q in ends.items())
    assert event("1", str(Fraction(exact * 0.998))) == "accepted"
    assert event("1", str(Fraction(exact * 1.001))) == "refuted"
    assert event("2", "0") == "refuted"
    assert event("1", "158/1000", "discrete-laplace") == "accepted"  # 1/4·(1 − e^(1 − 2))
    assert event("1", "159/1000", "discrete-laplace") == "refuted"


@pytest.mark.parametrize(("weight", "target"), [("-1/2", 1), ("1/2", -1), ("3/2", 1), (1, "3/2")])
def test_weights_and_targets_out_of_range(weight: Any, target: Any) -> None:
    for ok in (True, False):
        user = {"features": {"phi": [[1, 0], [1, 0]]}, "weights": {"sums": [1, 1 if ok else weight]},
                "targets": {"sums": [1, 1 if ok else target]}}  # fmt: skip
        other = user | {
            "features": {"phi": [[-1, 0], [-1, 0]]},
            "weights": {"sums": [1, 1]},
            "targets": {"sums": [1, 1]},
        }
        declared = samples.LINEAR_REFUTED["declared"] | {
            "releases": [samples.release("sums", samples.linear("sum"), "gaussian", variance="1")],
            "claim": {"currency": "zcdp", "rho": "1/1000", "source": ""},
        }
        evidence = {"pair": [[user], [other]], "using": ["sums"]}
        found = verdict(samples.LINEAR_REFUTED | {"declared": declared, "evidence": evidence})
        assert found == ("accepted" if ok else "R-RANGE")


def test_trajectories_have_one_length() -> None:
    short = [{"states": [0, 5], "actions": [0], "rewards": [0]}]
    document = edited(samples.UCB_VI, "declared", "releases", 0, "statistic", "steps", to=1)
    document = edited(document, "evidence", "using", to=["visits"])
    assert verdict(edited(document, "evidence", "pair", 1, to=short)) == "R-RANGE"


BITS = {"kind": "bits", "bits": 2, "ones": 1}
ODD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    # a statistic, a mechanism that does not go with it, the rule that says so
    (samples.linear("sum"), {"law": "laplace", "scale": 1}, "laplace"),
    (samples.linear("sum"), {"law": "gaussian-matrix", "variance": 1, "diagonal": 1}, "gaussian-matrix"),
    (BITS, {"law": "gaussian-matrix", "variance": 1, "diagonal": 1}, "gaussian-matrix"),
    (samples.table(["state"], "reward"), {"law": "discrete-laplace", "scale": 1}, "discrete-laplace"),
    (samples.table(["state"], "reward"), {"law": "discrete-gaussian", "variance": 1}, "discrete-gaussian"),
    (samples.linear("sum"), {"law": "discrete-gaussian", "variance": 1}, "discrete-gaussian"),
    (samples.table(["state"]), {"law": "randomised-response", "keep": "2/3", "answers": 2}, "randomised-response"),
    (BITS, {"law": "randomised-response", "keep": "1/3", "answers": 2}, "randomised-response"),
    (BITS, {"law": "randomised-response", "keep": "2/3", "answers": 1}, "randomised-response"),
    (BITS, {"law": "noisy-max", "scale": 100, "noise": "gumbel", "one_sided": False}, "noisy-max"),
    ({"kind": "selection", "moves": 1}, {"law": "laplace", "scale": 1}, "laplace"),
    (BITS, {"law": "laplace", "scale": -1}, "laplace"),
    (BITS | {"ones": -1}, {"law": "laplace", "scale": 1}, "S-SIZE"),
    (BITS | {"ones": "1/2"}, {"law": "laplace", "scale": 1}, "evaluate"),
    (samples.table(["state"], steps="1/2"), {"law": "laplace", "scale": 1}, "evaluate"),
]


@pytest.mark.parametrize(("statistic", "mechanism", "rule"), ODD)
def test_what_does_not_go_together(statistic: dict[str, Any], mechanism: dict[str, Any], rule: str) -> None:
    document = edited(samples.DP_APVI, "declared", "releases", 0, "statistic", to=statistic)
    document = edited(document, "declared", "releases", 0, "mechanism", to=mechanism)
    document = edited(document, "steps", 0, to={"rule": mechanism["law"], "release": "visits", "at_most": 10**6})
    document["assumed"] = samples.assumed("sequential", "stated-sensitivity: visits")
    assert verdict(document) == rule


def test_a_shared_start_needs_a_step() -> None:
    document = edited(samples.DP_APVI, "declared", "relation", to="replace-one-same-start")
    for name in ("visits", "transitions"):
        steps = ("declared", "releases", name == "transitions", "statistic", "steps")
        assert verdict(edited(document, *steps, to=["-", "H", 19])) == "accepted"
        found = verdict(edited(document, *steps, to=["-", "H", 20]))
        assert found == ("S-TABLE" if name == "visits" else "accepted")


@pytest.mark.parametrize(("count", "rule"), [(0, "S-UNIT"), ("1/2", "evaluate"), (-1, "evaluate")])
def test_a_unit_has_whole_trajectories(count: Any, rule: str) -> None:
    assert verdict(edited(samples.DP_APVI, "declared", "unit", "trajectories", to=count)) == rule


PAGE = Path(__file__).parents[2] / "docs" / "certificates-by-hand.md"


def test_the_page_shows_certificates_and_what_the_checker_says() -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```")
    certificates = [each.removeprefix("json\n") for each in blocks if each.startswith("json")]
    lines = [each.removeprefix("text\n").strip() for each in blocks if each.startswith("text")]
    assert [f"accepted: {check(each.encode())}" for each in certificates] == lines
    assert len(lines) == 2


def bounds(rule: str, term: str, at_least: str, least: int = 1) -> str:
    """Whether a bound is proved: DP-APVI's certificate with one more, for integers n and k from `least`."""
    document = edited(samples.APVI_FOR_ALL, "bounds", to=[
        {"rule": rule, "term": samples.term(term), "at_least": samples.term(at_least)},
    ])  # fmt: skip
    parameters = samples.APVI_FOR_ALL["declared"]["parameters"]
    parameters = parameters | {"n": samples.integer(5, least), "k": samples.integer(5, least)}
    return verdict(edited(document, "declared", "parameters", to=parameters))


@pytest.mark.parametrize(
    ("rule", "term", "proved", "refused"),
    [  # the second bound is not proved
        ("B-MAX", "max(n, k)", "n", "n + k"),
        ("B-MAX", "max(n, k)", "k", "2*k"),
        ("B-MIN", "n", "min(n, k)", "max(n, k)"),
        ("B-MIN", "log(n)", "min(k, log(n))", "min(k, log(k))"),
        ("B-BITS", "bit_length(n)", "log(n)/log(2)", "log(n)/log(3/2)"),
        ("B-BITS", "bit_length(n)", "log(n)/log(2)", "log(n + 1)/log(2)"),
        ("B-POWER", "log(n)", "(bit_length(n) - 1)*log(2)", "bit_length(n)*log(2)"),
        ("B-LOG", "log(n + k)", "log(n)", "log(n + 2*k)"),
        ("B-LOG", "log(n)", "log(1)", "log(k)"),
    ],
)
def test_inequalities(rule: str, term: str, proved: str, refused: str) -> None:
    assert bounds(rule, term, proved) == "accepted"
    assert bounds(rule, term, refused) == rule
    for other in {"B-MAX", "B-MIN", "B-BITS", "B-POWER", "B-LOG"} - {rule}:
        assert bounds(other, term, proved) != "accepted"
    assert bounds(rule, f"2*({term})", proved) == rule
    assert bounds(rule, f"({term})**2", proved) == rule


def test_inequalities_of_numbers_that_may_be_zero() -> None:
    assert bounds("B-BITS", "bit_length(n)", "log(n)/log(2)", least=0) == "for all parameters"
    assert bounds("B-BITS", "bit_length(n + 1)", "log(n + 1)/log(2)", least=0) == "accepted"


FILES = {"refuted": {"refuted", "laws", "costs", "curves"}, "holds-at": {"holds", "costs", "curves"},
         "holds-for-all": {"holds", "costs", "curves", "products"}, "numeric": {"numeric"},
         "audit": {"counts", "curves"}, "ledger": {"counts", "curves"}}  # fmt: skip
SHARED = {"values", "declared", "terms", "enclosures", "check"}
LOADED = """
import sys
from privcheck_check.check import check
check(sys.stdin.buffer.read())
print(*(name.partition(".")[2] for name in sys.modules if name.startswith("privcheck_check.")))
"""


@pytest.mark.parametrize("name", ["gaussian", "ucb-vi", "vapvi", "numeric", "audit", "ledger"])
def test_a_kind_is_checked_by_its_own_files(name: str) -> None:
    document = samples.sealed(samples.ALL[name])
    found = subprocess.run(
        [sys.executable, "-S", "-c", LOADED],
        input=mutations.data(document), capture_output=True, check=True, timeout=60,
        env={"PYTHONPATH": str(PACKAGE.parent), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert set(found.stdout.decode().split()) == SHARED | FILES[document["kind"]]


def test_caps_in_every_currency_at_the_edge() -> None:
    """Caps of 3/5: as ε; as Σμ² by the exact curve at ε = 2; as Σρ by the order 5 at ε = 7."""
    caps: list[tuple[str, Any, float]] = [("epsilon", "delta", 0.0), ("mu2", "delta", twins.curve(0.6, 2.0))]
    for currency, field, edge in caps:
        for factor in ("1000001/1000000", "999999/1000000"):
            if currency == "epsilon":
                policy = {"epsilon": str(Fraction(3, 5) * Fraction(factor)), "delta": 0}
            else:
                policy = {"epsilon": 2, field: str(Fraction(edge) * Fraction(factor))}
            expected = "accepted" if Fraction(factor) > 1 else "G-CAPS"
            assert verdict(samples.ledger(samples.ROWS, currency=currency, policy=policy)) == expected
    for order, expected in (("5", "accepted"), ("2", "G-CAPS"), ("20", "G-CAPS")):
        policy = {"epsilon": 7, "delta": "1/1000000", "order": order}
        assert verdict(samples.ledger(samples.ROWS, policy=policy)) == expected
    assert verdict(samples.ledger(samples.ROWS, policy={"epsilon": 7, "delta": 0, "order": 5})) == "G-CAPS"
    assert verdict(samples.ledger(samples.ROWS, policy={"epsilon": 7, "delta": "1/1000000"})) == "G-CAPS"
    assert verdict(samples.ledger([samples.row("a", -1)])) == "G-SUMS"
    assert verdict(samples.ledger([samples.row("a", 1, grant="other")])) == "G-SUMS"
    two = [samples.row("a", "1/10", "reserved"), samples.row("a", "1/5")]
    assert verdict(samples.ledger(two)) == "G-SUMS"


@pytest.mark.parametrize(
    "guarantee", [{"currency": "approx", "epsilon": "1/2", "delta": "1/10"}, {"currency": "gdp", "mu": 1}]
)
def test_guesses_against_other_guarantees(guarantee: dict[str, Any]) -> None:
    """The least count of 1 000 whose probability is at most 1 %, by the exact binomial law."""
    likely = twins.phi(0.5) if guarantee["currency"] == "gdp" else (math.exp(0.5) + 0.1) / (1 + math.exp(0.5))
    least = next(k for k in range(1001) if mutations.tail(1000, k, likely) <= 0.01)
    for count, expected in ((least, "accepted"), (least - 1, "A-TAIL")):
        document = edited(samples.AUDIT, "declared", "guarantee", to=guarantee)
        assert verdict(edited(document, "evidence", "correct", to=count)) == expected


def test_a_million_runs_are_within_the_work() -> None:
    document = edited(samples.AUDIT, "declared", "guarantee", "epsilon", to="1/1000")
    for correct, expected in ((501_416, "accepted"), (501_400, "A-TAIL")):  # 2.33 standard deviations above 500 250
        evidence = {"runs": 10**6, "guesses": 10**6, "correct": correct}
        assert verdict(edited(document, "evidence", to=evidence)) == expected
