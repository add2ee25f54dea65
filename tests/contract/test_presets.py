"""Presets of agents' constants: chosen by name, told in every result, and without any say in what is released."""

import dataclasses
import functools
import json

import numpy as np
import pytest

import privcheck
from privcheck.commands.declarations import list_algorithms, show
from privcheck.commands.online_runs import load_world, online_settings
from privcheck.commands.settings import resolve_setting
from privcheck.errors import DeclarationError, ParameterError, UnknownNameError
from privcheck.pricing import account
from privcheck.runtime import registry
from privcheck.runtime.replicates import open_ledger, ready
from privcheck.runtime.results import OnlineRequest
from structures import over_registry

RUNNING = [name for name in registry.names("algorithms") if registry.algorithm(name).runs]
PRESETS = ("practical", "paper")


@functools.cache
def listed():
    return {one.name: one for one in list_algorithms().algorithms}


@pytest.mark.parametrize("name", over_registry("running", "declared"))
def test_a_preset_changes_nothing_that_is_declared(name):
    shown, settings = [], []
    for preset in PRESETS:
        setting = resolve_setting(name, {"preset": preset})
        settings.append(setting)
        shown.append(json.dumps(show(setting).to_dict(), sort_keys=True))
    practical, paper = settings
    assert shown[0] == shown[1]  # every release, its law, sensitivity and schedule, and the derivation of the cost
    assert practical.values == paper.values
    costs = [account(setting.declared).at(setting.values) for setting in settings]
    assert [costs[0].rho, costs[0].pure] == [costs[1].rho, costs[1].pure]


@pytest.mark.parametrize("name", over_registry("online", "declared"))
def test_a_preset_changes_neither_the_charges_nor_the_noise_that_is_drawn(name):
    """The first output less what it was added to is the noise: the same stream, the same scale, the same place."""
    ledgers, noises = [], []
    for preset in PRESETS:
        world, rest = load_world(*small_world(name), seed=0)
        setting = online_settings([name], {**rest, "preset": preset}, world)[0]
        request = OnlineRequest(setting=setting.setting, world=world, episodes=16)
        player = ready(setting.algorithm.online, request)
        ledger = open_ledger(request, player, noiseless=False)
        ledgers.append([(entry.release, entry.part, entry.charge) for entry in ledger.entries])
        one, face = player.start(0), player.face
        episode = next((k for k in range(1, 17) if face.output(k) is not None), None)
        if episode is None:  # batches are longer, of agents with one set of constants
            noises.append({})
            assert not setting.algorithm.printed
            continue
        player.play(one, episode)
        output = face.output(episode)
        exact, noisy = face.exact(one, output), face.noisy(one, output)
        noises.append({} if exact is None else {at: noisy[at] - exact[at] for at in exact if at in noisy})
    assert ledgers[0] == ledgers[1]
    for at in noises[0].keys() & noises[1].keys():
        scale = np.abs(noises[0][at]).max() + 1
        assert np.abs(noises[0][at] - noises[1][at]).max() <= 1e-9 * scale, at


def small_world(name):
    """Returns an environment for 16 users, and what has to be set there."""
    usual = {"shuffled-arms": "bandit", "calibrated-linopt": "linear-hypercube"}
    environment = registry.algorithm(name).environment or usual.get(name, "riverswim")
    known = {p.name for p in registry.environment(environment).parameters}
    declared = {p.name for p in registry.algorithm(name).declare({}).parameters}
    return environment, {k: v for k, v in {"K": "16", "H": "2", "S": "3"}.items() if k in known | (declared & {"K"})}


def constants_of(algorithm, preset):
    """Returns the constants by which the agent's presets differ, as a preset has them."""
    defaults = {option.name: str(option.default) for option in algorithm.options}
    defaults |= {reading.name: reading.ways[0] for reading in algorithm.readings}
    chosen = algorithm.printed if preset == "paper" else defaults
    return {name: str(chosen[name]) for name in algorithm.printed}


@pytest.mark.parametrize("name", RUNNING)
def test_both_presets_are_named_with_their_constants(name):
    algorithm = registry.algorithm(name)
    constants = {preset: constants_of(algorithm, preset) for preset in PRESETS}
    shown = listed()[name]
    differing = {one.name for one in shown.constants if one.practical != one.paper}
    assert differing == {at for at in constants["paper"] if constants["paper"][at] != constants["practical"][at]}
    assert differing == set(algorithm.printed)  # nothing is called printed that is the default anyway
    used = resolve_setting(name, {"preset": "paper"})
    own = used.readings | {at: float(value) for at, value in used.setting.options.items()}
    assert all(own[at] == (value if at in used.readings else float(value)) for at, value in algorithm.printed.items())


@pytest.mark.parametrize("name", RUNNING)
def test_what_is_recommended_instead_is_another_agent_that_runs(name):
    instead = registry.algorithm(name).instead
    assert instead != name
    assert not instead or registry.algorithm(instead).runs


def test_what_is_set_wins_over_the_preset():
    setting = resolve_setting("ucb-vi", {"preset": "paper", "bonus_scale": "1/7"})
    assert float(setting.options["bonus_scale"]) == pytest.approx(1 / 7)
    ran = privcheck.run("ucb-vi", env="riverswim", K=50, preset="paper", bonus_scale="0.5")
    assert ran.preset.name == "paper"
    assert ran.preset.constants == {"bonus_scale": "0.5"}
    assert ran.preset.overridden == ("bonus_scale",)


def test_a_run_says_which_preset_it_had():
    for preset, scale in (("practical", "0.003"), ("paper", "1")):
        document = privcheck.run("ucb-vi", env="riverswim", K=50, preset=preset).to_dict()
        assert document["preset"] == {
            "name": preset, "same": False, "constants": {"bonus_scale": scale}, "overridden": [],
        }  # fmt: skip
    learned = privcheck.run("dp-apvi", env="riverswim", H=4, S=3, preset="paper").to_dict()
    assert (learned["preset"]["name"], learned["preset"]["constants"]) == ("paper", {"bonus_scale": "1"})


def test_agents_with_one_set_of_constants_say_so():
    ran = privcheck.run("calibrated-ucb-vi", env="riverswim", K=400, preset="paper")
    assert ran.preset.same
    assert "practical and paper are the same" in ran.preset.words


def test_presets_that_do_not_exist_are_refused_with_those_that_do():
    with pytest.raises(UnknownNameError, match=r"unknown preset 'papr'; did you mean paper\?"):
        resolve_setting("ucb-vi", {"preset": "papr"})
    declared_only = next(n for n in registry.names("algorithms") if not registry.algorithm(n).runs)
    with pytest.raises(ParameterError, match="has no agent"):
        resolve_setting(declared_only, {"preset": "paper"})


def test_printed_constants_have_to_be_the_agents_own():
    algorithm = registry.algorithm("ucb-vi")
    with pytest.raises(DeclarationError, match="printed constants are of its options"):
        dataclasses.replace(algorithm, printed={"epsilon": "1"})
    with pytest.raises(ParameterError, match="bonus_scale"):
        dataclasses.replace(algorithm, printed={"bonus_scale": "-1"})
