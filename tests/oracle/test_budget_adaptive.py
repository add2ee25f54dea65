"""What an exact check of everything so far would admit, at twice the δ, and the budget ledger refuses.

A Gaussian first; then, after its output was seen, randomised response or a second Gaussian. Either way exact
composition keeps (ε, δ); the whole, which picks the branch that leaks more, has 1.9 to 2 times the δ.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

import budget_stores
from privcheck import accounting as acc
from privcheck.ledger import Actor, Book, create_store

OFFICER = Actor(name="otto", role="officer")


def gaussian_left(mu, epsilon):
    """P(N(μ, 1) loses more than ε) less e^ε times the other's, by the law of the loss N(±μ²/2, μ²)."""
    return norm.sf(epsilon, mu**2 / 2, mu) - np.exp(epsilon) * norm.sf(epsilon, -(mu**2) / 2, mu)


def response_left(of, epsilon):
    """The same of randomised response: its losses are ±of."""
    true = math.exp(of) / (1 + math.exp(of))
    masses = ((true, of), (1 - true, -of))
    return sum(mass * np.maximum(0, 1 - np.exp(epsilon - loss)) for mass, loss in masses)


def true_delta(first, second, response, epsilon):
    loss = np.linspace(first**2 / 2 - 13 * first, first**2 / 2 + 13 * first, 400_001)
    density = norm.pdf(loss, first**2 / 2, first)
    worst = np.maximum(gaussian_left(second, epsilon - loss), response_left(response, epsilon - loss))
    return float(np.trapezoid(density * worst, loss))


@pytest.mark.parametrize("spreads", [("2", "1", "2.9960", 1e-5), ("1", "0.5", "7.7087", 1e-6)])
@pytest.mark.parametrize("unit", ["rho", "mu2"])
def test_the_counterexample_is_refused(tmp_path, spreads, unit):
    first, second, response, delta = spreads
    one, two, rr = acc.gaussian(std=first), acc.gaussian(std=second), acc.pure(epsilon=response)
    epsilon = acc.compose(one, two).epsilon(delta=delta).upper
    assert acc.compose(one, rr).delta(epsilon=epsilon).upper <= delta * (1 + 1e-9)  # each branch alone would do
    leaked = true_delta(1 / float(first), 1 / float(second), float(response), epsilon)
    assert 1.9 * delta < leaked < 2 * delta

    cap = acc.Filter.within(epsilon=epsilon, delta=delta, currency={"rho": "zcdp", "mu2": "gdp"}[unit]).cap.amount
    store = create_store(str(tmp_path / "budget.db"))
    book, _ = Book.init(store)
    book.set_policy(OFFICER, dataset="d", epsilon=f"{epsilon:.12f}", delta=str(delta), unit=budget_stores.UNIT)
    book.grant(OFFICER, name="G", dataset="d", currency=unit, cap=f"{float(cap) * (1 - 1e-9):.12f}", delta=str(delta))
    assert (
        book.charge(OFFICER, grant="G", unit="dataset", event={"type": "gaussian", "std": first}).state == "committed"
    )
    fits = [
        book.quote(OFFICER, grant="G", unit="dataset", event=event).fits
        for event in ({"type": "gaussian", "std": second}, {"type": "randomized_response", "epsilon": response})
    ]
    wider = {"type": "gaussian", "std": f"{1.001 * float(second):.6f}"}
    alone = book.quote(OFFICER, grant="G", unit="dataset", event=wider).fits
    store.close()
    assert alone is (unit == "mu2")  # it is the branch that is refused there, not whatever is asked
    assert not fits[1]
    assert not all(fits)
