"""Agents with the least noise for a claim have it for every claim, not for the default alone."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.declare.declaration import Parameter, resolve
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing.calibration import least_factor
from privcheck.runtime.registry import algorithm
from privcheck.runtime.results import OnlineRequest, World
from privcheck.verification import verify
from privcheck_algorithms.environments.finite import riverswim

CLAIMS = [("1/10", "1/100000"), ("1/2", "1/1000000"), ("3", "1/1000")]


@pytest.mark.parametrize(("epsilon", "beta"), CLAIMS)
def test_sdp_pe_has_the_least_noise_for_any_claim(epsilon, beta):
    declaration = algorithm("sdp-pe-calibrated").declare({})
    values = declaration.values({"epsilon": epsilon, "beta": beta})
    assert verify(declaration, values).verdict == "holds"
    assert verify(declaration, values | {"mu": values["mu"] * Fraction(102, 100)}).verdict == "fails"
    factor = least_factor(declaration, values, epsilon=float(Fraction(epsilon)), delta=float(Fraction(beta)))
    decoys = math.ceil(144 / values["mu"] ** 2)
    assert 1 - 2 / decoys - 2e-4 < factor <= 1 + 1 / decoys  # a whole number of bits


def naive_delta(decoys, moved, epsilon):
    """Returns δ(ε) of so many counters Bin(N, ½) + 1 against Bin(N, ½), by a circular convolution of ln k/(N + 1 − k).

    Losses are rounded to the nearest of 2¹⁷ multiples that reach 12 standard deviations.
    """
    k, cells = np.arange(1, decoys + 1), 2**16
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, decoys + 1)))])
    chance = np.exp(logs[decoys] - logs[k - 1] - logs[decoys + 1 - k] - decoys * math.log(2))
    reach = 24 * math.sqrt(moved / decoys)
    at = np.rint(np.log(k / (decoys + 1 - k)) * cells / reach).astype(int)
    near = np.abs(at) < cells
    table = np.bincount(at[near] % (2 * cells), chance[near], 2 * cells)
    whole = np.fft.irfft(np.fft.rfft(table) ** moved, 2 * cells)
    losses = np.where(np.arange(2 * cells) < cells, np.arange(2 * cells), np.arange(2 * cells) - 2 * cells)
    losses = losses * reach / cells
    above = losses > epsilon
    shown = moved * 0.5**decoys  # all N bits and the user's are 1, which nobody else could send
    return float((whole[above] * -np.expm1(epsilon - losses[above])).sum() + shown)


@pytest.mark.parametrize(("epsilon", "beta"), CLAIMS)
def test_a_naive_composition_agrees(epsilon, beta):
    declaration = algorithm("sdp-pe-calibrated").declare({})
    values = declaration.values({"epsilon": epsilon, "beta": beta})
    decoys = math.ceil(144 / values["mu"] ** 2)
    fewer = math.floor(decoys * 0.999) - 1
    there, below = (naive_delta(number, 36, float(Fraction(epsilon))) for number in (decoys, fewer))
    assert there <= 1.005 * float(Fraction(beta))
    assert below >= 0.995 * float(Fraction(beta))


@pytest.mark.parametrize(
    ("name", "failure"), [("shuffled-ucb-vi", "beta"), ("shuffled-arms", "beta"), ("calibrated-ucb-vi", "delta")]
)
def test_its_kin_too(name, failure):
    declaration = algorithm(name).declare({})
    values = declaration.values({"epsilon": "1/2", failure: "1/1000000"})
    assert verify(declaration, values).verdict == "holds"
    factor = least_factor(declaration, values, epsilon=0.5, delta=1e-6)
    assert 0.99 < factor <= 1.01


def test_runs_draw_it_and_what_is_given_stands():
    world = World(name="river", description="", mdp=riverswim(4, H=6))
    for given, decoys in (({"epsilon": "2"}, None), ({"epsilon": "2", "mu": "0.268"}, 2005)):
        setting = online_settings(["sdp-pe-calibrated"], given | {"K": "30"}, world)[0]
        request = OnlineRequest(setting=setting.setting, world=world, episodes=30, replicates=1, seed=0)
        drawn = 4 * algorithm("sdp-pe-calibrated").online(request).diagnostics["noise_std"] ** 2
        assert drawn == pytest.approx(decoys or math.ceil(144 / setting.values["mu"] ** 2))
        assert drawn < 600 or decoys


def test_what_follows_is_checked():
    twice = Parameter(name="b", default=1, kind="count", meaning="b", follows=lambda values: 2 * values["a"])
    parameters = (Parameter(name="a", default=3, kind="real", meaning="a"), twice)
    assert resolve(parameters, {}, owner="x") == {"a": 3, "b": 6}
    assert resolve(parameters, {"b": 5}, owner="x") == {"a": 3, "b": 5}
    with pytest.raises(ParameterError, match="whole number"):
        resolve(parameters, {"a": "1/3"}, owner="x")
    with pytest.raises(DeclarationError, match="follows"):
        Parameter(name="b", default=1, kind="count", meaning="b", follows=3)
