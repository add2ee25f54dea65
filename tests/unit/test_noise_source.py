"""Noise sources: a stream of its own for every slice, and no copies in other processes."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

from privcheck.declare.mechanisms import LAWS, GaussianNoise, Noiseless
from privcheck.errors import ChannelError, ParameterError
from privcheck.runtime import SimulatedNoise

GAUSSIAN = GaussianNoise(scale=2.0)


def test_the_same_slice_has_the_same_noise_in_any_order():
    keys = [(release, part) for release in range(3) for part in range(4)]
    forward, backward = SimulatedNoise(9), SimulatedNoise(9)
    first = {k: forward.add(GAUSSIAN, np.zeros(5), release=k[0], part=k[1]) for k in keys}
    second = {k: backward.add(GAUSSIAN, np.zeros(5), release=k[0], part=k[1]) for k in reversed(keys)}
    assert all(np.array_equal(first[k], second[k]) for k in keys)


def test_no_two_slices_and_no_two_seeds_share_noise():
    drawn = [
        SimulatedNoise(seed).add(GAUSSIAN, np.zeros(50), release=release, part=part)
        for seed in range(4)
        for release in range(4)
        for part in range(4)
    ]
    assert len(np.unique(np.concatenate(drawn))) == 64 * 50  # continuous draws: a repetition means a shared stream


def test_noise_is_added_to_a_copy():
    exact = np.ones(4)
    noisy = SimulatedNoise(0).add(GAUSSIAN, exact, release=0, part=0)
    assert np.array_equal(exact, np.ones(4))
    again = SimulatedNoise(0).add(GAUSSIAN, exact + 3, release=0, part=0)
    assert np.allclose(again - noisy, 3)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ParameterError, match="expected a seed"):
        SimulatedNoise(seed)


@pytest.mark.parametrize("use", [ForkingPickler.dumps, copy.copy, copy.deepcopy])
def test_copies_are_refused(use):
    with pytest.raises(ChannelError, match="give each worker a source with its own seed"):
        use(SimulatedNoise(0))


FORKED = """
import os, sys
import numpy as np
from privcheck.errors import ChannelError
from privcheck.declare.mechanisms import GaussianNoise
from privcheck.runtime import SimulatedNoise
source = SimulatedNoise(0)
child = os.fork()
if child == 0:
    try:
        source.add(GaussianNoise(scale=1.0), np.zeros(2), release=0, part=0)
    except ChannelError:
        os._exit(7)
    os._exit(0)
_, status = os.waitpid(child, 0)
source.add(GaussianNoise(scale=1.0), np.zeros(2), release=0, part=0)  # the parent may go on
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_is_refused():
    # in a process of its own: the test runner's threads do not like to be forked
    assert subprocess.run([sys.executable, "-c", FORKED], check=False, timeout=60).returncode == 7


def test_a_law_without_noise_has_no_likelihood_ratio():
    none = Noiseless()
    assert np.array_equal(none.draw(np.random.default_rng(0), (2, 3)), np.zeros((2, 3)))
    with pytest.raises(ParameterError, match="nothing to score"):
        none.log_ratio(np.zeros(3), np.ones(3))


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_log_ratio_is_the_difference_of_log_densities(law):
    noise = LAWS[law](scale=1.7)
    rng = np.random.default_rng(3)
    x, change = rng.normal(0, 5, (40, 6)), rng.choice([-1.0, 0.5, 1.0], 6)

    def log_density(value):
        power = np.square(value / 1.7) / 2 if law == "gaussian" else np.abs(value) / 1.7
        return -power.sum(axis=1)

    # output y = f(D) + x has noise x under D and x + f(D) − f(D′) under D′
    assert np.allclose(noise.log_ratio(x, change), log_density(x) - log_density(x + change))
