"""What a comparison says first follows from its runs alone: who learned, at which guarantee, why the others did not."""

from dataclasses import replace

import pytest

from privcheck.reports.comparisons import headline, remarks, say_guarantee, standing_cells, sweep_headline, warnings
from privcheck.reports.values import NotLearned, PricedClaim, Standing, SweepPoint

DELTA = 1e-5
CLAIM = PricedClaim(
    view="joint", relation="replace one trajectory by any other", claim="joint (epsilon)-DP with epsilon = 1",
    claimed=1.0, epsilon=0.9999954, verdict="holds", method="checked", joint="follows", sentence="At most the claim.",
)  # fmt: skip
GOOD = Standing(
    algorithm="good", guarantee=CLAIM, simulated=True, value=3.36, std=0.02, replicates=5, optimum=4.0, uniform=0.4,
    share=0.84, lost=0.1,
)  # fmt: skip


def failing(name, cause="bonus", **changes):
    why = NotLearned(because="it says so", advice="more", cause=cause)
    return replace(GOOD, algorithm=name, value=0.4, share=0.1, did_not_learn=why, **changes)


def said(*standings):
    return headline(standings, delta=DELTA)


def test_one_that_learned_and_others_of_one_reason():
    assert said(failing("a"), GOOD, failing("b")) == (
        "good reaches 84 % of the optimum at (1, 10⁻⁵)-JDP; the others learned nothing, because their bonus exceeds "
        "what can be earned."
    )


def test_one_that_learned_and_another():
    assert said(GOOD, failing("a", "noise")) == (
        "good reaches 84 % of the optimum at (1, 10⁻⁵)-JDP; a learned nothing, because of its noise: without it the "
        "same constants learn."
    )


def test_reasons_that_differ_are_told_apart():
    assert said(GOOD, failing("a", "unchanged"), failing("b", "unknown"), failing("c", "unchanged")) == (
        "good reaches 84 % of the optimum at (1, 10⁻⁵)-JDP; a and c learned nothing, because their policies never "
        "changed; b learned nothing: its last policies are worth no more than uniformly random ones."
    )


def test_none_learned():
    assert said(failing("a"), failing("b")) == (
        "None of the 2 agents learned anything, because their bonus exceeds what can be earned."
    )
    assert said(failing("a", "penalty")) == (
        "a learned nothing at (1, 10⁻⁵)-JDP, because its penalty exceeds what can be earned."
    )


def test_all_learned_the_best_first():
    second = replace(
        GOOD, algorithm="second", value=2.0, share=0.5, guarantee=replace(CLAIM, view="local", epsilon=2.5)
    )
    assert said(second, GOOD) == ("good reaches 84 % of the optimum at (1, 10⁻⁵)-JDP, second 50 % at (2.5, 10⁻⁵)-LDP.")


def test_values_within_the_spread_are_equal():
    close = replace(GOOD, algorithm="close", value=3.35, share=0.8375, guarantee=replace(CLAIM, epsilon=2.0))
    assert said(close, GOOD) == (
        "good and close do equally well within the spread over seeds: 84 % and 83.7 % of the optimum, at "
        "(1, 10⁻⁵)-JDP and (2, 10⁻⁵)-JDP."
    )
    apart = replace(close, value=3.32, share=0.83)  # 0.04 is more than two standard errors, 2·√(2·0.02²/5) = 0.0253
    assert "equally" not in said(apart, GOOD)
    single = replace(close, std=None, replicates=1)
    assert "equally" not in said(single, replace(GOOD, std=None, replicates=1))
    assert "equally" in said(replace(single, value=3.36), replace(GOOD, std=None, replicates=1))


def test_without_privacy_is_said_apart():
    plain = replace(GOOD, algorithm="plain", guarantee=None, value=3.999, share=0.99975)
    assert said(plain, GOOD).endswith("-JDP. Without privacy, plain reaches 99.9 % of the optimum.")
    assert said(plain) == "Without privacy, plain reaches 99.9 % of the optimum."
    assert said(plain, replace(plain, algorithm="same")) == (
        "Without privacy, plain and same do equally well within the spread over seeds: 99.9 % and 99.9 % "
        "of the optimum."
    )
    lost = replace(failing("lost"), guarantee=None)
    assert said(GOOD, lost).endswith(
        "Without privacy, lost learned nothing, because its bonus exceeds what can be earned."
    )


def test_what_is_not_known_is_not_said():
    unknown = replace(GOOD, value=None, share=None)
    assert "is unknown" in said(unknown)
    assert "84 %" in said(unknown, replace(GOOD, algorithm="known"))
    negative = replace(GOOD, value=-2.0, share=None, optimum=-1.0)
    assert said(negative) == "good reaches a value of −2 at (1, 10⁻⁵)-JDP."
    unbounded = replace(CLAIM, epsilon=None)
    assert say_guarantee(unbounded, DELTA) == "no finite ε (δ = 10⁻⁵)"


@pytest.mark.parametrize(("view", "end"), [
    ("joint", "-JDP"), ("local", "-LDP"), ("shuffle", "-DP behind a shuffler"), ("central", "-DP"),
    ("releases", "-DP of releases"),
])  # fmt: skip
def test_every_view_has_its_own_name(view, end):
    assert say_guarantee(replace(CLAIM, view=view), DELTA) == f"(1, 10⁻⁵){end}"


def test_an_epsilon_is_never_written_too_small_nor_a_share_too_large():
    assert say_guarantee(replace(CLAIM, epsilon=0.1234), DELTA).startswith("(0.124,")
    assert "99.9 %" in said(replace(GOOD, share=0.99999))


def test_warnings_say_which_claims_fail_that_noise_was_simulated_and_which_guarantees_are_unlike():
    broken = replace(
        GOOD, algorithm="broken",
        guarantee=replace(CLAIM, verdict="fails", joint="unproved", view="releases", epsilon=0.148, sentence="Twice."),
    )  # fmt: skip
    said = "Twice. In the unit of this page its releases cost ε ≤ 0.148 at δ = 10⁻⁵. Joint DP is unproved."
    first, second = warnings([GOOD, broken], delta=DELTA)
    assert (first.tone, first.title) == ("bad", "A claim fails")
    assert "broken claims joint ε-DP" in first.text
    assert first.text.endswith(said)
    assert warnings([GOOD, broken, broken], delta=DELTA)[0].text.endswith(f"{said} The same at all its 2 points.")
    assert second.title == "Simulated noise: not for release"
    assert warnings([replace(GOOD, simulated=False)], delta=DELTA) == ()
    (unlike,) = remarks([GOOD, broken])
    assert "good: joint DP" in unlike.text
    assert "broken: DP of the releases" in unlike.text
    assert remarks([GOOD, replace(GOOD, algorithm="like")]) == ()
    (nothing,) = remarks([failing("a"), failing("a")])
    assert nothing.text == "a, at 2 of 2 points, did not learn, because it says so; try more."
    assert remarks([failing("a")])[0].text == "a did not learn, because it says so; try more."


def test_a_row_has_guarantee_claim_and_value():
    cells = [cell if isinstance(cell, str) else cell.text for cell in standing_cells(GOOD, delta=DELTA)]
    assert cells == ["good", "(1, 10⁻⁵)-JDP", "ε = 1: holds, checked", "3.36 ± 0.02", "84 %"]


def course(name, *levels, **changes):
    """Returns a point for each level: (ε, share) where something was learned, (ε, cause) where nothing was."""
    points = []
    for epsilon, what in levels:
        here = replace(GOOD, algorithm=name, guarantee=replace(CLAIM, epsilon=epsilon), **changes)
        if isinstance(what, str):
            why = NotLearned(because="it says so", advice="more", cause=what)
            here = replace(here, value=0.1, share=0.025, did_not_learn=why)
        else:
            here = replace(here, value=4 * what, share=what)
        points.append(
            SweepPoint(
                algorithm=name, over={"epsilon": str(epsilon)}, environment="e", replicates=5, episodes=9, standing=here
            )
        )
    return points


def swept(*points):
    return sweep_headline(points, over=("epsilon",), budgets=("epsilon",), delta=DELTA)


def test_a_sweep_says_from_where_on_something_is_learned():
    assert swept(*course("a", (2.0, 0.9), (0.5, 0.25))) == (
        "a reaches 25 % of the optimum at (0.5, 10⁻⁵)-JDP and 90 % at (2, 10⁻⁵)-JDP."
    )
    assert swept(*course("a", (0.1, "noise"), (1.0, 0.5), (2.0, 0.9))) == (
        "a learns from (1, 10⁻⁵)-JDP on (50 % of the optimum, 90 % at (2, 10⁻⁵)-JDP)."
    )
    assert swept(*course("a", (0.1, "noise"), (2.0, 0.9))) == "a learns from (2, 10⁻⁵)-JDP on (90 % of the optimum)."
    assert swept(*course("a", (0.1, "noise"), (2.0, "bonus"))) == (
        "a learned nothing up to (2, 10⁻⁵)-JDP, because its bonus exceeds what can be earned."
    )
    assert swept(*course("a", (0.1, 0.5), (1.0, "unknown"), (2.0, 0.25))) == (
        "a learned at 2 of 3 points, at best 50 % of the optimum at (0.1, 10⁻⁵)-JDP."
    )


def test_a_sweep_says_the_best_first_and_what_is_reached_without_privacy_last():
    plain = replace(GOOD, algorithm="plain", guarantee=None, value=3.999, share=0.99975)
    point = SweepPoint(algorithm="plain", over={}, environment="e", replicates=5, episodes=9, standing=plain)
    said = swept(*course("a", (1.0, "noise"), (2.0, "noise")), *course("b", (1.0, 0.5), (2.0, 0.75)), point)
    assert said == (
        "b reaches 50 % of the optimum at (1, 10⁻⁵)-JDP and 75 % at (2, 10⁻⁵)-JDP; a learned nothing up to "
        "(2, 10⁻⁵)-JDP, because of its noise: without it the same constants learn. Without privacy, plain reaches "
        "99.9 % of the optimum."
    )


def test_a_grid_of_more_than_guarantees_is_told_at_its_last_setting():
    points = [
        replace(one, over={"K": users, **one.over})
        for users, share in (("10", 0.1), ("20", 0.3))
        for one in course("a", (1.0, share), (2.0, 2 * share))
    ]
    said = sweep_headline(points, over=("K", "epsilon"), budgets=("epsilon",), delta=DELTA)
    assert said == "At K = 20: a reaches 30 % of the optimum at (1, 10⁻⁵)-JDP and 60 % at (2, 10⁻⁵)-JDP."
