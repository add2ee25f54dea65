"""Agents behind a shuffler in the noise view: honest ones pass, and those whose messages tell more are found.

At 99.9999 % confidence: an honest agent is accused with probability at most 10⁻⁶ each; seeds are fixed.
"""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import kstest

from mutants.messages import forgets_decoys, lets_order_through, sends_sums, shares_order
from privcheck.commands.settings import resolve_setting
from privcheck.declare.mechanisms.shuffled_bits import ShuffledBitsNoise
from privcheck.runtime.online import Sent
from privcheck.runtime.registry import algorithm
from privcheck.runtime.results import AuditRequest
from privcheck_audits.lockstep.agent_views import noise
from privcheck_audits.lockstep.shuffler import _Order, bet_on_links, dither, hear_shuffler

SMALL = {"shuffled-ucb-vi": {"H": "2", "S": "2", "K": "40"}, "shuffled-arms": {"A": "4", "K": "64"}}
NAMES = tuple(SMALL)


def asked(name, trials=8):
    setting = resolve_setting(name, SMALL[name])
    return AuditRequest(
        setting=setting.setting, view="noise", delta=1e-5, trials=trials, confidence=0.999999, seed=3
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_honest_agent_is_consistent_and_its_messages_were_seen(name):
    result = noise(asked(name), algorithm(name))
    assert result.agent_ran
    assert result.verdict == "consistent"
    assert result.evidence["messages"] > 5_000
    assert result.evidence["counters_with_wrong_messages"] == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("mutant", "words"),
    [(lets_order_through, "order of"), (forgets_decoys, "number and kind"), (sends_sums, "number and kind")],
)
def test_mutants_are_found(mutant, words, name):
    honest = algorithm(name)
    result = hear_shuffler(
        asked(name, 8 if name == "shuffled-ucb-vi" else 60), replace(honest, online=mutant(honest.online))
    )
    assert result.verdict == "violation"
    assert words in result.evidence["refuted"]


@pytest.mark.parametrize(("name", "trials"), [("shuffled-ucb-vi", 6), ("shuffled-arms", 60)])
def test_one_order_for_all_counters_is_found_and_orders_of_their_own_are_not(name, trials):
    honest, larger = (
        algorithm(name),
        {"shuffled-ucb-vi": {"H": "3", "S": "4", "K": "100"}, "shuffled-arms": SMALL[name]},
    )
    setting = resolve_setting(name, larger[name])
    request = replace(asked(name, trials), setting=setting.setting)
    result = hear_shuffler(request, replace(honest, online=shares_order(honest.online)))
    assert result.verdict == "violation"
    assert "links of counters" in result.evidence["refuted"]
    assert hear_shuffler(request, honest).verdict == "consistent"


@pytest.mark.parametrize("shares", [0.0, 0.3, 1.0])
def test_bets_on_links_are_fair(shares):
    """Exactly: over all orders of two counters of four places the mean of what is won is at most 1."""
    first, second = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])
    third = np.array([1.0, 1.0, 1.0, 0.0])
    own, rows = np.array([shares, 0.1, 0.2]), []
    for a, b in product(permutations(range(4)), repeat=2):
        rows.append(bet_on_links(np.stack([first, second[list(a)], third[list(b)]]), own))
    assert (np.exp(rows).mean(axis=0) <= 1 + 1e-12).all()
    assert np.exp(rows).max() > 1


def test_linked_users_are_seen_whatever_their_labels():
    rng = np.random.default_rng(1)
    own = np.eye(24)[rng.integers(0, 24, 60)].T
    messages = np.concatenate([own, rng.integers(0, 2, (24, 200))], axis=1)
    together = messages[:, rng.permutation(260)]
    assert bet_on_links(together, own.mean(axis=1)).max() > 20
    assert bet_on_links(1 - together, 1 - own.mean(axis=1)).max() > 20
    assert bet_on_links(rng.permuted(together, axis=1), own.mean(axis=1)).max() < 15


def test_noise_is_made_gaussian():
    rng = np.random.default_rng(0)
    law = ShuffledBitsNoise(scale=np.sqrt(40) / 2, senders=1, threshold=40.0)
    own = rng.integers(0, 9, 20_000).astype(float)
    noisy = own + rng.binomial(40, 0.5, own.size) - 20
    made = dither({"a": noisy}, {"a": own}, {"a": law}, rng)["a"]
    assert kstest(made / law.scale, "norm").pvalue > 1e-9


def test_an_analyser_who_counts_something_else_is_seen():
    messages = np.random.default_rng(0).integers(0, 2, (4, 200)).astype(np.int8)
    order, honest = _Order(), messages.sum(axis=1) - 95.0
    own = np.ones(4)
    order.look(Sent("a", messages, 200, 10), honest, own)
    assert order._wrong == 0
    order.look(Sent("a", messages, 200, 10), honest + np.array([0, 0, 1, 0]), own)
    assert order._wrong == 1
