"""Combinators of events inside one another: what they share, what they are called, and what they must never be below.

The twin sees a nesting over a Gaussian as the law of how far a user's draws move the noise, {distance: probability},
and integrates two mixtures over short intervals: masses of intervals are below the truth, whatever their number. It
shares no code with the accountant. All nestings are drawn from fixed seeds.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from privcheck import accounting as acc
from privcheck.accounting.currencies import Currency, cost_of
from privcheck.errors import ParameterError

ZERO_OUT = {"relation": "zero-out"}
EDGES = np.concatenate([[-np.inf], np.linspace(-9, 40, 4901), [np.inf]])
SLACK = 1 + 1e-9


def twin(moves, epsilon):
    """A lower bound on the larger direction of δ(ε) of Σp·N(move, 1) against N(0, 1)."""
    p = sum(chance * np.diff(ndtr(EDGES - move)) for move, chance in moves.items())
    q = np.diff(ndtr(EDGES))
    return max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))


def together(one, other):
    """Moves of two users who are drawn each by themselves."""
    found = {}
    for (a, p), (b, q) in itertools.product(one.items(), other.items()):
        found[a + b] = found.get(a + b, 0.0) + p * q
    return found


def group(moves, size):
    found = {0.0: 1.0}
    for _ in range(size):
        found = together(found, moves)
    return found


def sampled(moves, rate):
    found = {move: rate * chance for move, chance in moves.items()}
    found[0.0] = found.get(0.0, 0.0) + 1 - rate
    return found


def tree(moves, leaves):
    """A user's draws hold in every node of the path, which is ⌊log₂ T⌋ + 1 nodes long."""
    return {move * math.sqrt(leaves.bit_length()): chance for move, chance in moves.items()}


BASES = {
    "gaussian": (acc.gaussian(std=1.5), {1 / 1.5: 1.0}),
    "poisson_gaussian": (acc.poisson_gaussian(std=1, rate=0.05, **ZERO_OUT), {0.0: 0.95, 1.0: 0.05}),
    "mixture_of_gaussians": (
        acc.mixture_of_gaussians(std=2, sensitivities=[0, 1, 2], probabilities=[0.8, 0.15, 0.05], **ZERO_OUT),
        {0.0: 0.8, 0.5: 0.15, 1.0: 0.05},
    ),
    "without_replacement": (
        acc.without_replacement(event=acc.gaussian(std=1.5), users=20, batch=2, **ZERO_OUT),
        {0.0: 0.9, 1 / 1.5: 0.1},
    ),
    "truncated_poisson_gaussian": (  # of so many that next to none is left out
        acc.truncated_poisson_gaussian(std=1, rate=0.05, users=30, most=30, **ZERO_OUT),
        {0.0: 0.95, 1.0: 0.05},
    ),
}
AROUND = {
    "group": (lambda e: acc.group(e, size=2), lambda m: group(m, 2)),
    "user_level": (lambda e: acc.user_level(e, records=3), lambda m: group(m, 3)),
    "tree": (lambda e: acc.tree(node=e, leaves=4, participations=1), lambda m: tree(m, 4)),
    "deeper tree": (lambda e: acc.tree(node=e, leaves=8, participations=1), lambda m: tree(m, 8)),
    "poisson": (lambda e: acc.poisson(event=e, rate=0.3, **ZERO_OUT), lambda m: sampled(m, 0.3)),
}


def nestings(number, seed):
    """Distinct names of events over a Gaussian, up to four deep, at most one group: many leave no privacy."""
    rng = np.random.default_rng(seed)
    seen = set()
    while len(seen) < number:
        names = [str(rng.choice(list(BASES))), *map(str, rng.choice(list(AROUND), int(rng.integers(1, 4))))]
        if sum(name in ("group", "user_level") for name in names) > 1 or tuple(names) in seen:
            continue
        seen.add(tuple(names))
        yield names


@pytest.mark.parametrize("names", list(nestings(14, 30)), ids="-".join)
def test_a_nesting_is_never_below_what_its_users_draw_once(names):
    made, moves = BASES[names[0]]
    for name in names[1:]:
        wrap, moved = AROUND[name]
        made, moves = wrap(made), moved(moves)
    curve, label = acc.compose(made), acc.compose(BASES[names[0]][0]).delta(epsilon=0.2).direction
    for epsilon in (0.0, 0.4, 1.5):
        found = curve.delta(epsilon=epsilon)
        assert found.upper * SLACK >= twin(moves, epsilon)
        assert found.direction == "upper" or label == "exact"
    if {"group", "user_level"} & set(names) and names[0] != "gaussian":
        assert curve.delta(epsilon=0.4).direction == "upper"


@pytest.mark.parametrize("name", BASES)
def test_more_users_leaves_releases_and_larger_rates_never_cost_less(name):
    made = BASES[name][0]
    ladders = [
        [made, acc.group(made, size=2), acc.group(made, size=3)],
        [acc.tree(node=acc.group(made, size=k), leaves=4, participations=1) for k in (1, 2)],
        [acc.group(acc.tree(node=made, leaves=t, participations=1), size=2) for t in (1, 2, 4)],
        [acc.poisson(event=acc.tree(node=made, leaves=3, participations=1), rate=q, **ZERO_OUT) for q in (0.1, 0.3, 1)],
        [made, 2 * made, 3 * made],
    ]
    for ladder in ladders:
        for epsilon in (0.3, 2.0):
            costs = [acc.compose(step).delta(epsilon=epsilon).upper for step in ladder]
            assert all(b >= a * (1 - 1e-9) for a, b in itertools.pairwise(costs))


@pytest.mark.parametrize("name", [*BASES, "poisson(laplace)", "poisson(poisson)"])
def test_orders_that_commute_agree(name):
    if name in BASES:
        made = BASES[name][0]
    else:
        inner = acc.laplace(scale=3) if "laplace" in name else acc.poisson_gaussian(std=1, rate=0.2, **ZERO_OUT)
        made = acc.poisson(event=inner, rate=0.1, **ZERO_OUT)
    pairs = [
        (
            acc.tree(node=acc.group(made, size=2), leaves=5, participations=1),
            acc.group(acc.tree(node=made, leaves=5, participations=1), size=2),
        ),
        (
            acc.tree(node=acc.poisson(event=made, rate=0.2, **ZERO_OUT), leaves=5, participations=1),
            acc.poisson(event=acc.tree(node=made, leaves=5, participations=1), rate=0.2, **ZERO_OUT),
        ),
        (
            acc.tree(node=acc.tree(node=made, leaves=2, participations=1), leaves=4, participations=1),
            acc.tree(node=acc.tree(node=made, leaves=4, participations=1), leaves=2, participations=1),
        ),
    ]
    for one, other in pairs:
        a, b = (acc.compose(x).delta(epsilon=0.3).value for x in (one, other))
        assert a == pytest.approx(b, rel=1e-4)


@pytest.mark.parametrize("how", ["group", "user_level", "plan", "filter"])
def test_the_tree_of_a_sampled_group_knows_that_its_nodes_share_the_sample(how):
    """Both users sampled: q² of moving by 2·√4 at σ = 1; one alone costs 4.285 and the tree of both was 1.1886."""
    one = acc.poisson_gaussian(std=1, rate=0.01, relation="add-remove")
    pair = acc.user_level(one, records=2) if how == "user_level" else acc.group(one, size=2)
    made = acc.tree(node=pair, leaves=8, participations=1)
    alone = acc.tree(node=one, leaves=8, participations=1)
    if how == "filter":
        order = Currency(name="renyi", order=Fraction(4))
        assert cost_of(made, order).amount >= cost_of(alone, order).amount
        return
    found = (acc.Plan.of(made) if how == "plan" else acc.compose(made)).epsilon(delta=1e-6)
    assert twin(tree(group({0.0: 0.99, 1.0: 0.01}, 2), 8), 7.76) > 1e-6
    assert found.value >= 7.76
    assert found.direction == "upper"


def test_a_tree_of_repeated_sampled_runs_is_refused_and_the_other_order_is_priced():
    one = acc.poisson_gaussian(std=2, rate=0.1, **ZERO_OUT)
    for best in (acc.repeat_and_select(one, mean=3), acc.group(acc.repeat_and_select(one, mean=3), size=2)):
        with pytest.raises(ParameterError, match="share the sample"):
            acc.tree(node=best, leaves=4, participations=1)
    outside = acc.repeat_and_select(acc.tree(node=one, leaves=4, participations=1), mean=3)
    assert acc.compose(outside).epsilon(delta=1e-5).value > acc.compose(one).epsilon(delta=1e-5).value
    unsampled = acc.tree(node=acc.repeat_and_select(acc.gaussian(std=9), mean=3), leaves=4, participations=1)
    assert math.isfinite(acc.compose(unsampled).epsilon(delta=1e-5).value)


BOUNDS = {
    "permute_and_flip": acc.permute_and_flip(epsilon=0.5),
    "exponential_mechanism": acc.exponential_mechanism(epsilon=0.5),
    "above_threshold": acc.above_threshold(threshold_scale=4, query_scale=9),
    "gaussian_histogram": acc.gaussian_histogram(std=5, threshold=60, contribution=1, keys=1),
    "group(pure)": acc.group(acc.pure(epsilon=0.3), size=2),
    "privacy_profile": acc.privacy_profile({0: 0.2, 1: 0.01, 3: 1e-7}),
    "replaced": acc.poisson(event=acc.laplace(scale=4), rate=0.2, relation="replace-one"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_no_label_is_stronger_than_its_parts(name):
    bound = BOUNDS[name]
    relation = {"relation": bound.relation or "zero-out"}
    assert acc.compose(bound).epsilon(delta=1e-5).direction == "upper"
    nested = [
        acc.tree(node=bound, leaves=4, participations=1),
        acc.tree(node=acc.tree(node=bound, leaves=2, participations=1), leaves=2, participations=1),
        acc.group(bound, size=2),
        acc.without_replacement(event=bound, users=9, batch=9, relation="replace-one"),
        acc.compose(bound, acc.gaussian(std=9)),
        acc.parallel(bound, bound),
        acc.compose(acc.Plan.of(bound).curve),
    ]
    if bound.relation is None:
        nested.append(acc.poisson(event=acc.laplace(scale=9), replaced=bound, rate=1, relation="replace-one"))
        nested.append(acc.poisson(event=bound, rate=0.5, **relation))
    for made in nested:
        curve = acc.compose(made)
        figures = [curve.epsilon(delta=1e-3), curve.delta(epsilon=0.1), curve.epsilons([1e-3]), curve.deltas([0.1])]
        assert {figure.direction for figure in figures} == {"upper"}


def test_orders_are_bounds_at_delta_0_too():
    best = acc.repeat_and_select(acc.permute_and_flip(epsilon=0.1), mean=5)
    assert acc.compose(best).epsilon(delta=0).direction == "upper"


THIRD, ODD = Fraction(1, 3), Fraction(5, 3)
EXACT = {
    "pure": (lambda: acc.pure(epsilon="1/3"), THIRD, None),
    "randomized_response": (lambda: acc.randomized_response(epsilon=THIRD), THIRD, None),
    "approximate": (lambda: acc.approximate(epsilon=THIRD, delta="1/3"), THIRD, None),
    "laplace": (lambda: acc.laplace(scale=ODD, sensitivity="1/7"), Fraction(3, 35), None),
    "discrete_laplace": (lambda: acc.discrete_laplace(scale=ODD), 1 / ODD, None),
    "bounded_range": (lambda: acc.bounded_range(epsilon=THIRD), THIRD, THIRD**2 / 8),
    "exponential_mechanism": (lambda: acc.exponential_mechanism(epsilon=0.3), Fraction(3, 10), Fraction(9, 800)),
    "monotone": (lambda: acc.exponential_mechanism(epsilon=THIRD, monotone=True), THIRD / 2, THIRD**2 / 32),
    "permute_and_flip": (lambda: acc.permute_and_flip(epsilon=THIRD), THIRD, None),
    "noisy_max": (lambda: acc.noisy_max(noise="laplace", scale=ODD), 2 / ODD, None),
    "above_threshold": (
        lambda: acc.above_threshold(threshold_scale=ODD, query_scale=7, positives=2),
        1 / ODD + Fraction(4, 7),
        None,
    ),
    "gaussian": (lambda: acc.gaussian(std=ODD), None, 1 / ODD**2 / 2),
    "discrete_gaussian": (lambda: acc.discrete_gaussian(std=ODD), None, 1 / ODD**2 / 2),
    "zcdp": (lambda: acc.zcdp(rho=THIRD), None, THIRD),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_filter_charges_fractions_as_fractions(name):
    make, pure, rho = EXACT[name]
    made = make()
    for wrap, times in ((made, 1), (3 * made, 3), (acc.tree(node=made, leaves=4, participations=1), 3)):
        exactly = wrap is made or times == wrap.count
        for currency, amount in (("pure", pure), ("zcdp", rho), ("gdp", 2 * rho if name == "gaussian" else None)):
            if amount is None:
                continue
            lost = 1 if name == "approximate" else 0
            found = cost_of(wrap, Currency(name=currency))
            assert amount * times <= found.amount <= amount * times * (1 + (0 if exactly else Fraction(1, 10**14)))
            assert found.lost >= lost * times * THIRD
    if pure is not None:
        with mpmath.workdps(40):
            e = mpmath.mpf(pure.numerator) / pure.denominator
            of_a_value = name in ("laplace", "permute_and_flip", "noisy_max")  # its divergence of order 1
            truth = e + mpmath.exp(-e) - 1 if of_a_value else mpmath.mpf(0)
            if rho is None and not of_a_value and "laplace" not in name:
                truth = e * mpmath.tanh(e / 2)
            zcdp = cost_of(made, Currency(name="zcdp")).amount
            assert mpmath.mpf(zcdp.numerator) / zcdp.denominator >= truth


def test_three_thirds_fill_a_cap_of_one_and_no_more():
    budget = acc.Filter("pure", cap=1)
    for _ in range(3):
        budget.spend(acc.pure(epsilon="1/3"))
    assert budget.remaining.amount == 0
    assert not budget.can_afford(acc.pure(epsilon="1e-300"))
    meter = acc.Odometer("gdp", delta=1e-6)
    meter.spend(acc.gaussian(std=ODD, count=25))
    assert meter.spent.amount == 9


def test_events_that_differ_in_a_fraction_are_two_events():
    near, third = acc.pure(epsilon=1 / 3), acc.pure(epsilon="1/3")
    assert near != third
    assert third == acc.pure(epsilon=THIRD)
    assert acc.compose(near, third) == acc.compose(third, near)
    assert acc.Plan.of(near).digest != acc.Plan.of(third).digest
    assert str(third) == "pure(epsilon=1/3)"
    assert acc.pure(epsilon=0.1) == acc.pure(epsilon="0.1") == acc.pure(epsilon=Fraction(1, 10))


@pytest.mark.parametrize(
    "make",
    [
        lambda tiny: acc.pure(epsilon=tiny),
        lambda tiny: acc.zcdp(rho=tiny),
        lambda tiny: acc.zcdp(rho=1, xi=tiny),
        lambda tiny: acc.gaussian(std=1, sensitivity=tiny),
        lambda tiny: acc.laplace(scale=1, sensitivity=tiny),
        lambda tiny: acc.approximate(epsilon=1, delta=tiny),
        lambda tiny: acc.exponential_mechanism(epsilon=tiny),
        lambda tiny: acc.poisson_gaussian(std=1, rate=0.1, sensitivity=tiny, relation="add-remove"),
    ],
)
@pytest.mark.parametrize("tiny", ["1e-400", Fraction(1, 10**400)])
def test_what_no_float_holds_is_refused_and_not_free(make, tiny):
    with pytest.raises(ParameterError, match="round it up"):
        make(tiny)
    assert acc.Filter("pure", cap=1).spend(tiny).amount == Fraction(1, 10**400)


def losses_of(p, q):
    """The largest loss in either direction, and δ at an ε; to be asked with many digits."""
    pairs = [[mpmath.mpf(x.numerator) / x.denominator for x in map(Fraction, pair)] for pair in zip(p, q, strict=True)]
    sides = (pairs, [(b, a) for a, b in pairs])

    def delta(e):
        return max(mpmath.fsum(max(mpmath.mpf(0), a - mpmath.exp(e) * b) for a, b in side) for side in sides)

    return max(abs(mpmath.log(a / b)) for a, b in pairs), delta


NEAR = Fraction(1, 3) + Fraction(1, 10**30)
TABLES = {
    "thirds": ([2 * THIRD, THIRD], [THIRD, 2 * THIRD]),
    "sevenths": ([Fraction(5, 7), Fraction(2, 7)], [Fraction(2, 7), Fraction(5, 7)]),
    "strings": (["0.1", "0.9"], ["0.3", "0.7"]),
    "a float beside": ([Fraction(1, 7), Fraction(6, 7)], [0.25, 0.75]),
    "equal as floats": ([THIRD, 2 * THIRD], [NEAR, 1 - NEAR]),
    "small masses": ([1.0, 2.576390535062338e-273], [1.0, 5.714883930425302e-274]),
    "far apart": ([1.0, 5e-201], [1.0, 1.6e-301]),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_fractions_is_charged_as_fractions(name):
    """Of masses near 1e-273 the loss was 7e-14 short, and a third beside a third and 1e-30 was free."""
    p, q = TABLES[name]
    made = acc.loss_distribution(p, q)
    charged = cost_of(made, Currency(name="pure")).amount
    with mpmath.workdps(60):
        largest, delta = losses_of(p, q)
        for found in (charged, Fraction(acc.compose(made).epsilon(delta=0).upper)):
            number = mpmath.mpf(found.numerator) / found.denominator
            assert largest <= number <= largest * (1 + mpmath.mpf("4e-15"))
        if largest > 1e-9:
            for share in (0.0, 0.3, 0.9):
                truth = delta(share * largest)
                assert truth <= acc.compose(made).delta(epsilon=float(share * largest)).upper
    backwards = acc.loss_distribution(q, p)
    assert cost_of(backwards, Currency(name="pure")).amount == pytest.approx(charged, rel=1e-15)


def test_tables_that_are_equal_as_floats_only_are_two_events():
    near, third = ([NEAR, 1 - NEAR], [0.5, 0.5]), ([THIRD, 2 * THIRD], [0.5, 0.5])
    assert acc.loss_distribution(*near) != acc.loss_distribution(*third)
    assert acc.loss_distribution([THIRD, 2 * THIRD], ["1/3", "2/3"]).pieces == ()
    assert acc.loss_distribution(["1/2", "1/2"], [0.5, 0.5]).pieces == ()


@pytest.mark.parametrize("tiny", ["1e-400", Fraction(1, 10**305)])
def test_an_outcome_that_no_float_holds_is_refused_and_not_left_out(tiny):
    """A tenth power of ten between 1e-400 and 1e-390 is a loss of 23; both were 0, and the event was free."""
    with pytest.raises(ParameterError, match="rest of a truncated law"):
        acc.loss_distribution([tiny, 1 - Fraction(tiny)], ["1/2", "1/2"])
    with pytest.raises(ParameterError, match="expected p at least 0 and finite, got 'x'"):
        acc.loss_distribution(["x", 1], [0, 1])
