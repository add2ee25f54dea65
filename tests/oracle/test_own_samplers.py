"""Mechanisms of their authors that survived: what is wrong with each is found, and nothing is wrong with a right one.

Samplers are drawn with seed 0, 200,000 times. A comparison accuses a right sampler with a probability of at most 1e-11
(Hoeffding, Bernstein, Chernoff; Dvoretzky, Kiefer & Wolfowitz), all in this file together below 1e-8; a wrong one is
found with more than 1 − 1e-6, and seeded.
"""

# ruff: noqa: ARG005 - functions are called by name
from __future__ import annotations

import numpy as np
import pytest

from privcheck import Claim, Declaration, Parameter, verify
from privcheck.declare.procedures import Outcomes, OwnMechanism
from privcheck.declare.procedures.cells import integrate_cells
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.errors import DeclarationError
from privcheck.terms.guarantees import ApproxDP, GaussianDP, PureDP
from privcheck.terms.symbols import epsilon, minimum
from privcheck.verification.outcome_loss import pure_loss


def span(scale):
    return np.unique([a + scale * k / 8 for a in (0.0, 1.0) for k in range(-320, 321)])


def log_laplace(outputs, data, scale):
    return -np.abs(outputs - data) / scale - np.log(2 * scale)


def log_gaussian(outputs, data, scale):
    return -np.square((outputs - data) / scale) / 2 - np.log(scale * np.sqrt(2 * np.pi))


def laplace(rng, data, size, scale):
    return data + rng.laplace(0.0, scale, size)


LAPLACE = {
    "arguments": {"scale": 1 / epsilon}, "spread": "scale", "sampler": laplace, "log_density": log_laplace,
    "price": lambda scale: PureDP(1 / scale), "relation": AddRemoveOne(), "neighbours": lambda scale: [(0.0, 1.0)],
    "edges": span,
}  # fmt: skip
GAUSSIAN = {
    **LAPLACE, "sampler": lambda rng, data, size, scale: data + rng.normal(0.0, scale, size),
    "log_density": log_gaussian, "price": lambda scale: GaussianDP(1 / scale),
}  # fmt: skip
UNKNOWN = {**LAPLACE, "edges": None}


def judged(of, claim=None, **changes):
    declaration = Declaration(
        name="own", title="", source="", relation={**of, **changes}["relation"], releases=(),
        procedures=(OwnMechanism("own", **{**of, **changes}),), claim=Claim(claim or PureDP(epsilon), source="here"),
        parameters=(Parameter(name="epsilon", default=1, kind="positive", meaning="ε"),),
    )  # fmt: skip
    return verify(declaration, declaration.values())


def scaled(by):
    return lambda rng, data, size, scale: data + rng.laplace(0.0, by * scale, size)


def answers_itself(rng, data, size, scale):
    """50 + the very data, once in 1 000: a lottery that gives it away."""
    return np.where(rng.random(size) < 1e-3, 50.0 + data, laplace(rng, data, size, scale))


def answers_near(rng, data, size, scale):
    return np.where(rng.random(size) < 1e-3, data, laplace(rng, data, size, scale))


def answers_about(rng, data, size, scale):
    """As `answers_itself`, with so little noise that no two outputs are equal."""
    return np.where(rng.random(size) < 1e-3, 30.0 + data + rng.normal(0, 1e-3, size), laplace(rng, data, size, scale))


def wrong_at_large_epsilon(rng, data, size, scale):
    return data + rng.laplace(0.0, min(scale, 1.0) if scale > 0.2 else scale / 2, size)


WRONG = {
    "three per cent too small": (LAPLACE, scaled(0.97), "the usual cause is a wrong scale"),
    "three per cent too large": (LAPLACE, scaled(1.03), "the usual cause is a wrong scale"),
    "three per cent of Gaussian noise": (
        GAUSSIAN,
        lambda rng, data, size, scale: data + rng.normal(0, 0.97 * scale, size),
        "the usual cause is a wrong scale",
    ),
    "the data far out": (LAPLACE, answers_itself, r"draws are 50, which has probability 0"),
    "the data among others": (LAPLACE, answers_near, r"draws are 0, which has probability 0"),
    "about the data": (LAPLACE, answers_about, r"draws are in a cell of probability"),
    "the data, and nothing says what outputs are": (UNKNOWN, answers_itself, "draws are equal, and log_density gives"),
    "at other parameters": (LAPLACE, wrong_at_large_epsilon, r"this at epsilon = "),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sampler_is_found(name):
    of, sampler, why = WRONG[name]
    with pytest.raises(DeclarationError, match=why):
        judged(of, PureDP(epsilon) if of is not GAUSSIAN else GaussianDP(epsilon), sampler=sampler)


@pytest.mark.parametrize("of", [LAPLACE, GAUSSIAN, UNKNOWN], ids=["laplace", "gaussian", "unknown outputs"])
def test_a_right_sampler_is_not_accused(of):
    claim = GaussianDP(epsilon) if of is GAUSSIAN else PureDP(epsilon)
    for seed in range(2):
        stream = np.random.default_rng(seed)

        def reseeded(rng, data, size, scale, stream=stream):
            return of["sampler"](stream, data, size, scale)

        found = judged(of, claim, sampler=reseeded)
        assert (found.verdict, found.method) == ("holds", "checked")
        assert found.given == ("own",)


def test_draws_of_single_precision_are_not_repeated_outputs():
    found = judged(
        LAPLACE, sampler=lambda rng, data, size, scale: laplace(rng, data, size, scale).astype(np.float32).astype(float)
    )
    assert found.verdict == "holds"


def test_a_discrete_mechanism_whose_outputs_nobody_lists_may_repeat_them():
    def log_response(outputs, data, scale):
        return np.where(outputs == data, -np.log1p(np.exp(-1 / scale)), -np.log1p(np.exp(1 / scale)))

    def respond(rng, data, size, scale):
        return np.where(rng.random(size) < 1 / (1 + np.exp(-1 / scale)), data, 1 - data)

    found = judged(UNKNOWN, sampler=respond, log_density=log_response, neighbours=lambda scale: [(0, 1)])
    assert found.verdict == "holds"
    assert "not by its scale" in next(g.by for g in found.rests_on if g.kind == "stated by the author")


def test_a_price_that_is_true_at_the_default_alone_is_refused():
    with pytest.raises(DeclarationError, match="this at epsilon = "):
        judged(LAPLACE, price=lambda scale: PureDP(scale + 0), claim=PureDP(1))
    with pytest.raises(DeclarationError, match="this at epsilon = 100"):
        judged(LAPLACE, price=lambda scale: PureDP(minimum(1 / scale, 50)), claim=PureDP(1))


# neighbours that their author left out


def log_counted(outputs, data, scale):
    """A count that is doubled where five users or more are there: its author thought of two users."""
    held = sum(data) * (2 if len(data) >= 5 else 1)
    return -np.abs(outputs - held) / scale - np.log(2 * scale)


def counted(rng, data, size, scale):
    return sum(data) * (2 if len(data) >= 5 else 1) + rng.laplace(0.0, scale, size)


COUNTED = {
    **LAPLACE, "sampler": counted, "log_density": log_counted, "relation": ReplaceOne(),
    "neighbours": lambda scale: [((0.0, 1.0), (1.0, 1.0))],
    "edges": lambda scale: np.unique([a + scale * k / 8 for a in range(3) for k in range(-320, 321)]),
}  # fmt: skip


def test_neighbours_that_their_author_left_out_are_found_by_records():
    assert judged({**COUNTED, "edges": None}).verdict == "holds"  # what is stated of what was told
    with pytest.raises(DeclarationError, match=r"differ by a factor e\^2"):
        judged({**COUNTED, "edges": None}, records=lambda rng, scale: rng.uniform(0, 1))
    with pytest.raises(DeclarationError, match=r"differ by a factor e\^2"):
        judged({**COUNTED, "edges": None, "neighbours": None}, records=lambda rng, scale: rng.uniform(0, 1))


def test_records_of_a_true_price_hold_given_it():
    mean = {
        **COUNTED, "edges": None, "neighbours": None,
        "log_density": lambda outputs, data, scale: log_laplace(outputs, sum(data) / len(data), scale),
        "sampler": lambda rng, data, size, scale: sum(data) / len(data) + rng.laplace(0.0, scale, size),
    }  # fmt: skip
    found = judged(mean, records=lambda rng, scale: rng.uniform(0, 1))
    assert (found.verdict, found.method, found.given) == ("holds", "checked", ("own",))


def test_neither_neighbours_nor_records_is_refused():
    with pytest.raises(DeclarationError, match="neighbours, of OwnMechanism 'own': expected a function, got None"):
        judged(LAPLACE, neighbours=None)


def test_approximate_prices_with_a_wrong_scale_are_found_too():
    with pytest.raises(DeclarationError, match="the usual cause is a wrong scale"):
        judged(
            LAPLACE, ApproxDP(epsilon, "1e-5"), price=lambda scale: ApproxDP(1 / scale, "1e-5"), sampler=scaled(0.97)
        )


@pytest.mark.parametrize("scale", [1 / 60, 1 / 100, 1 / 500])
def test_neighbours_far_apart_do_not_lose_infinitely_by_rounding(scale):
    """The cell that others join had a mass of 1 less a sum, which was 0 under one of the two."""
    edges = np.unique([*np.linspace(-40 * scale, 1 + 40 * scale, 2001), 0.0, 1.0])
    laws = integrate_cells("own", [lambda x, at=at: log_laplace(x, at, scale) for at in (0.0, 1.0)], edges)
    lost = pure_loss(Outcomes(log_p=laws[0], log_q=laws[1]), 1)
    assert 0.999 / scale <= lost <= 1 / scale
