"""A question about a declaration is computed once, and the answer is that of whoever asks for the first time."""

import copy
import gc
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner

from privcheck import ApproxDP, Claim, Declaration, PrivacyProfile, account, verify
from privcheck.cli.main import main
from privcheck.commands.declarations import calibrate_noise, price_releases, show, verify_claim
from privcheck.commands.settings import resolve_setting
from privcheck.declare.procedures.charges import charge
from privcheck.errors import DeclarationError, ParameterError, UnknownNameError
from privcheck.pricing import Priced, Prices, calibration, cost, events, least_factor, least_noise, once, priced
from privcheck.pricing.calibration import needed_factor, needed_noise
from privcheck.runtime import registry
from privcheck.runtime.setting import Setting
from privcheck.verification import candidates, judge

SMALL = {"dp-apvi": {"H": "4", "S": "3", "A": "2"}, "shuffled-arms": {}, "noisy-max": {}, "dp-sgd": {}}


def declared(name="dp-apvi"):
    return registry.algorithm(name).declare({})


@pytest.fixture
def asked(monkeypatch):
    """How often each question was computed, by the question and what it was asked about."""
    counts, kept = Counter(), []

    def count(module, name, about):
        original = getattr(module, name)

        def counted(*args, **kwargs):
            kept.append(args)  # so that no other object gets an id that was counted
            counts[(name, *about(*args, **kwargs))] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, counted)

    def at(declaration, values, *rest):
        return (id(declaration), tuple(sorted(values.items())), *rest)

    count(priced, "account", lambda declaration: (id(declaration),))
    count(priced, "settle_sizes", at)
    count(priced, "compose_numbers", lambda composed, values, _: at(composed.declaration, values))
    count(candidates, "find_pairs", at)
    count(cost, "declared_branches", lambda declaration, _, values: at(declaration, values))
    count(calibration, "calibrate", lambda target, *_, **__: (target,))
    return counts


@pytest.mark.parametrize("name", SMALL)
def test_the_commands_about_one_setting_ask_each_question_once(name, asked):
    setting = resolve_setting(name, SMALL[name])
    show(setting)
    price_releases(setting, 1e-5, full=True)
    verdict = verify_claim(setting)
    assert verdict.repair is not None
    price_releases(setting.charged, 1e-5)
    for _ in range(2):
        try:
            calibrate_noise(setting, epsilon=1.0, delta=1e-5)
        except ParameterError as error:
            assert error.message  # noqa: PT017 - messages behind a shuffler are not calibrated
    once_each = {key: number for key, number in asked.items() if key[0] != "calibrate"}
    assert {key[0] for key in once_each} >= {"account", "settle_sizes", "compose_numbers", "declared_branches"}
    assert max(once_each.values()) == 1, [key for key, number in once_each.items() if number > 1]


@pytest.mark.parametrize("name", ["adassp", "noisy-max"])
def test_a_check_asks_each_question_once(name, asked, tmp_path):
    words = ["check", name, "--trials", "300", "--workers", "1", "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code in {0, 1, 3}, done.output
    assert max(asked.values()) == 1, [key for key, number in asked.items() if number > 1]
    assert {key[0] for key in asked} >= {"account", "compose_numbers", "declared_branches", "calibrate", "find_pairs"}


def test_points_of_a_profile_and_sizes_of_batches_are_priced_once(asked):
    base = declared("dp-apvi-laplace")
    profile = Claim(PrivacyProfile(((30, 0), (20, "1e-6"))), source="")
    judged = Priced(replace(base, claim=profile))
    first = judge(judged)
    before = Counter(asked)
    assert judge(judged) is first
    assert asked == before
    assert max(asked.values()) == 1


@pytest.mark.parametrize("name", [*SMALL, "private-ucb-vi-central", "sparse-vector-1", "rappor"])
def test_what_is_kept_is_what_is_computed_alone(name):
    declaration = declared(name)
    values = declaration.values()
    kept = Priced(declaration)
    alone = account(declaration)
    assert kept.values == values
    assert kept.account.derivation == alone.derivation
    assert (kept.account.rho, kept.account.pure, kept.account.mu_squared) == (alone.rho, alone.pure, alone.mu_squared)
    numbers = alone.at(values)
    assert kept.numbers == numbers
    assert kept.epsilon(1e-6) == numbers.epsilon(1e-6)
    assert kept.numbers is kept.numbers
    assert kept.account is kept.account
    for release in declaration.noisy:
        assert kept.charges[release.name] == charge(release, declaration.relation, values)


def test_the_doors_give_what_a_priced_declaration_gives():
    declaration = declared("dp-apvi-laplace")
    kept, target = Priced(declaration), {"epsilon": 2.0, "delta": 1e-6}
    assert least_noise(declaration, {}, **target) == needed_noise(kept, **target)
    assert least_factor(declaration, {}, **target) == needed_factor(kept, **target)
    door, inside = verify(declaration, {}), judge(kept)
    assert (door.verdict, door.upper_ratio, door.lower_ratio, door.repair) == (
        inside.verdict,
        inside.upper_ratio,
        inside.lower_ratio,
        inside.repair,
    )


def test_settings_that_are_made_from_one_another_share_their_prices():
    declaration = declared()
    setting = Setting(declaration=declaration, values=declaration.values())
    moved = setting.at({"H": Fraction(3)})
    assert replace(setting, options={"C": Fraction(2)}).priced is setting.priced
    assert moved.priced is not setting.priced
    assert moved.priced is setting.priced.at({"H": Fraction(3)})
    assert moved.priced.account is setting.priced.account  # no parameter changes the expressions
    assert moved.priced.numbers != setting.priced.numbers or moved.values != setting.values
    assert Setting(declaration=declaration, values=declaration.values()).priced is not setting.priced
    assert setting == Setting(declaration=declaration, values=declaration.values())  # prices are no part of it
    assert "prices" not in repr(setting)


def test_some_of_the_parameters_and_all_of_them_are_one():
    declaration, prices = declared(), Prices()
    assert prices.of(declaration, {}) is prices.of(declaration, declaration.values())
    assert prices.of(declaration, {}) is Priced(declaration, prices=prices).at({})


def test_a_declaration_that_is_gone_leaves_no_answers_to_another():
    prices = Prices()
    seen = set()
    for number in range(1, 12):
        claim = Claim(ApproxDP(number, "1e-6"), source="")
        one = replace(declared("noisy-max"), claim=claim)
        asked = prices.of(one, {})
        assert asked.declaration is one
        assert asked.account.declaration is one
        seen.add(id(asked))
        del one, asked
        gc.collect()
    assert len(seen) == 11


def test_answers_are_kept_by_arguments_and_errors_are_not():
    calls = []

    @once
    def question(priced, word, *, loud=False):
        calls.append((word, loud))
        if word == "bad":
            raise ValueError(word)
        return None if word == "none" else word.upper() if loud else word

    one = Priced(declared())
    assert [question(one, "a"), question(one, "a"), question(one, "a", loud=True), question(one, "none")] == [
        "a",
        "a",
        "A",
        None,
    ]
    assert question(one, "none") is None
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            question(one, "bad")
    assert question(Priced(one.declaration), "a") == "a"
    assert calls == [("a", False), ("a", True), ("none", False), ("bad", False), ("bad", False), ("a", False)]


def test_another_process_computes_its_own_answers():
    prices = Prices()
    kept = prices.of(declared(), {})
    sent = copy.deepcopy(prices)  # by the same protocol as what is sent to a worker
    assert sent.of(kept.declaration, {}) is not kept
    assert prices.of(kept.declaration, {}) is kept


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"nobody": Fraction(1)}, UnknownNameError, "nobody"),
        ({"H": Fraction(1, 2)}, ParameterError, "H"),
    ],
)
def test_parameters_are_checked_at_the_door(values, error, words):
    with pytest.raises(error, match=words):
        Priced(declared(), values)
    with pytest.raises(error, match=words):
        Priced(declared()).at(values)


@pytest.mark.parametrize("given", [True, 1.0, [1]])
def test_what_only_looks_like_a_known_parameter_is_refused(given):
    kept = Priced(declared(), {"H": Fraction(1)})
    with pytest.raises(ParameterError, match="H"):
        kept.at({"H": given})


def test_what_is_no_declaration_is_refused():
    with pytest.raises(DeclarationError, match=r"Priced: expected a Declaration.*registry\.algorithm"):
        Priced("dp-apvi")
    assert isinstance(Priced(declared()).declaration, Declaration)
    assert events.settle_sizes(declared(), declared().values()) == ()
