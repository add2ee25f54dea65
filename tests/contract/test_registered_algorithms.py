"""What every registered algorithm must satisfy; new ones are picked up by name."""

import dataclasses
import json
import math

import pytest

from privcheck.commands.declarations import list_algorithms, price_releases, show, verify_claim
from privcheck.commands.online_runs import load_world, online_settings
from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import resolve
from privcheck.errors import LedgerError, ParameterError, UnknownNameError
from privcheck.pricing import account
from privcheck.pricing.cost import second_opinion
from privcheck.reports.markup import latex_to_mathml, safe_mathml
from privcheck.reports.values import from_json, to_json
from privcheck.runtime import Ledger, read_ledger, registry
from privcheck.runtime.results import OnlineRequest, RunRequest
from privcheck.runtime.spending import check_ledger, price_ledger
from structures import over_registry

NAMES = registry.names("algorithms")
CASES = over_registry("declared", readings=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_registered_name_is_its_own(name):
    algorithm = registry.algorithm(name)
    assert algorithm.name == name
    if algorithm.declare is not None:
        assert algorithm.declare({}).name == name
    assert algorithm.title
    assert algorithm.source


@pytest.mark.parametrize(("name", "given"), CASES)
def test_shown_accounted_and_verified_as_json(name, given):
    """With the fields that scripts rely on, and formulas that can be drawn."""
    setting = resolve_setting(name, given)
    shown, spent, judged = show(setting), price_releases(setting, 1e-5), verify_claim(setting)
    for result in (shown, spent, judged):
        text = json.dumps(to_json(result), allow_nan=False)
        assert from_json(type(result), json.loads(text)) == result
    formulas = [release.latex for release in shown.releases]
    formulas += [line.latex for step in shown.derivation for line in (step, *step.inputs)]
    assert [formula for formula in formulas if safe_mathml(latex_to_mathml(formula)) is None] == []
    assert to_json(shown).keys() >= {"name", "relation", "releases", "claim", "latex"}
    refuse_missing_fields(to_json(spent), to_json(judged))
    assert judged.joint in ({None} if setting.declared.claim.joint is None else {"follows", "unproved"})


def refuse_missing_fields(spent, said):
    assert spent.keys() >= {"algorithm", "parameters", "relation", "model", "releases", "guarantee", "methods"}
    assert spent["guarantee"].keys() >= {"epsilon", "delta", "rho", "mu", "pure_epsilon"}
    assert all(r.keys() >= {"name", "count", "sensitivity", "mechanism", "cost"} for r in spent["releases"])
    assert all(m.keys() >= {"name", "epsilon", "direction"} for m in spent["methods"])
    assert said.keys() >= {
        "algorithm", "claim", "verdict", "joint", "method", "upper_ratio", "lower_ratio", "findings", "witness",
    }  # fmt: skip
    assert said["verdict"] in {"holds", "fails", "undecided"}
    assert said["method"] in {"proved", "checked", "witness"}
    assert all(f.keys() >= {"code", "severity", "where", "message"} for f in said["findings"])


@pytest.mark.parametrize(("name", "given"), CASES)
def test_epsilon_and_delta_are_monotone_and_invert(name, given):
    numbers = account(resolve_setting(name, given).declared).at(resolve_setting(name, given).values)
    previous = math.inf
    for delta in (1e-15, 1e-10, 1e-5, 1e-2, 0.5):
        epsilon = numbers.epsilon(delta)
        assert epsilon <= previous * (1 + 1e-12)
        if numbers.unbounded:  # noise that is reused: no ε is finite, and every δ is 1
            assert (epsilon, numbers.delta(1e9)) == (math.inf, 1.0)
        else:
            # both are rounded up, a grid by 1e-5 of δ at most, and next to pure DP's ε within a few hundred of its ulps
            assert numbers.delta(epsilon * (1 + 1e-12)) <= delta * (1 + 2e-5) + 1e-16
        previous = epsilon


@pytest.mark.slow
@pytest.mark.parametrize(("name", "given"), CASES)
def test_dp_accounting_does_not_contradict(name, given):
    setting = resolve_setting(name, given)
    numbers = account(setting.declared).at(setting.values)
    opinion = second_opinion(numbers, 1e-5)
    assert (opinion is None) == (numbers.mu is None)
    if opinion is not None:
        assert opinion.epsilon == pytest.approx(numbers.epsilon(1e-5), rel=1e-3)


@pytest.mark.parametrize("name", over_registry("from data"))
def test_a_run_spends_what_is_declared_and_writes_a_ledger_that_says_so(name, tmp_path):
    environment = registry.environment("riverswim")
    own = {p.name: p.default for p in environment.parameters} | {"H": 4, "n": 50}
    data = environment.sample({k: int(v) for k, v in resolve(environment.parameters, own, owner="t").items()}, 7)
    sizes = {"H": data.trajectories.horizon, "S": data.trajectories.num_states, "A": data.trajectories.num_actions}
    sizes["d"] = sizes["S"] * sizes["A"]  # of features that nobody gave
    setting = resolve_setting(name, {}, sizes=sizes)
    path = tmp_path / "ledger.jsonl"
    result = setting.algorithm.learn_from(
        RunRequest(
            setting=setting.setting, data=data, replicates=2,
            seed=3, ledger=path if setting.declaration else None,
        )
    )  # fmt: skip
    assert result.policy.shape == (sizes["H"], sizes["S"], sizes["A"])
    assert result.returns.shape == (2,)
    if setting.declaration is None:
        assert result.ledger is None
        return
    header, entries = read_ledger(path)
    check_ledger(header, entries, setting.declaration, setting.values)
    assert (
        header["protects"] is False
    )  # simulated noise follows the declared law, and hides nothing from who has the seed
    with pytest.raises(LedgerError, match=r"line 1: .*protects"):
        check_ledger({**header, "protects": True}, entries, setting.declaration, setting.values)
    declared, found = account(setting.declaration).at(setting.values), price_ledger(header, entries)
    assert found.rho == pytest.approx(declared.rho, rel=1e-12)
    if math.isfinite(declared.pure):
        assert found.pure_epsilon == pytest.approx(declared.pure, rel=1e-12)
    with pytest.raises(LedgerError):
        check_ledger(header, entries[:-1], setting.declaration, setting.values)
    with pytest.raises(LedgerError):
        check_ledger(header, [*entries, entries[0]], setting.declaration, setting.values)
    with pytest.raises(LedgerError, match="line 1"):
        check_ledger(header, entries, setting.declaration, {**setting.values, "H": 99})
    for field, other in (("relation", "add or remove one trajectory"), ("as_declared", False), ("as_declared", "no")):
        with pytest.raises(LedgerError, match=f"line 1: the ledger's {field}"):
            check_ledger({**header, field: other}, entries, setting.declaration, setting.values)
    for part in ("x", [1], 2.5, True):
        odd = dataclasses.replace(entries[1], part=part)
        with pytest.raises(LedgerError, match="line 3"):
            check_ledger(header, [entries[0], odd, *entries[2:]], setting.declaration, setting.values)


def test_a_ledger_without_noise_has_spent_everything():
    setting = resolve_setting("dp-apvi", {})
    ledger = Ledger(setting.declared, setting.values, noise="none", as_declared=False)
    ledger.record("visits", 0, charge=None, output="")
    assert math.isinf(price_ledger(ledger.header, ledger.entries).rho)


def test_the_list_names_everything():
    assert [one.name for one in list_algorithms().algorithms] == NAMES


def test_unknown_names_and_parameters_are_refused():
    with pytest.raises(UnknownNameError, match="dp-apvi"):
        registry.algorithm("dp-apvy")
    with pytest.raises(UnknownNameError, match="rho"):
        resolve_setting("dp-apvi", {"roh": "1"})
    with pytest.raises(ParameterError, match="contradicts the data"):
        resolve_setting("dp-apvi", {"S": "3"}, sizes={"S": 4})
    with pytest.raises(ParameterError, match="known, released"):
        resolve_setting("dp-apvi", {"rewards": "maybe"})


@pytest.mark.parametrize("name", [name for name in NAMES if registry.algorithm(name).environment])
def test_the_environment_that_an_agent_is_checked_in_is_registered_and_fits(name):
    algorithm = registry.algorithm(name)
    assert registry.has_environment(algorithm.environment)
    world, _ = load_world(algorithm.environment, {}, seed=0)
    setting = online_settings([name], {"K": "2"}, world)[0]
    assert algorithm.play(OnlineRequest(setting=setting.setting, world=world, episodes=2)).regret.shape == (1, 2)
