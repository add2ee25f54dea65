"""The frontier: every line is named where it ends, reference lines are the known values, nothing is left out unsaid."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from privcheck.reports import run_plots
from privcheck.reports.run_plots import Axis, LineName, frontier_plot, name_lines, part
from privcheck.reports.values import PricedClaim, Standing

CLAIM = PricedClaim(
    view="central", relation="replace one", claim="(rho)-zCDP", claimed=2.0, epsilon=1.0, verdict="holds",
    method="proved",
)  # fmt: skip


def standing(name, epsilon, value, **changes):
    claim = None if epsilon is None else replace(CLAIM, epsilon=epsilon)
    one = Standing(
        algorithm=name, guarantee=claim, simulated=True, value=value, std=0.1, replicates=3, optimum=4.0, uniform=0.5,
        share=value / 4, lost=0.5,
    )  # fmt: skip
    return replace(one, **changes)


SEVERAL = [
    standing("first", 2.0, 3.0), standing("first", 0.1, 1.0), standing("first", 1.0, 2.0),
    standing("plain", None, 3.9), standing("second", 0.5, 2.5, twin="plain", twin_value=3.8),
]  # fmt: skip


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=15).map(sorted), st.floats(0.001, 0.06))
def test_names_are_apart_in_order_and_within_the_plot(heights, least):
    placed = part(heights, least, 0.0, 1.0)
    assert len(placed) == len(heights)
    assert all(after - before >= least * (1 - 1e-9) for before, after in itertools.pairwise(placed))
    assert placed[0] >= -1e-9
    assert placed[-1] <= 1 + 1e-9


@given(st.lists(st.integers(0, 20), min_size=1, max_size=15, unique=True).map(sorted))
def test_names_that_do_not_overlap_stay_where_their_lines_are(heights):
    assert part(heights, 1.0, 0.0, 20.0) == heights


def test_a_name_stands_beside_its_line_and_names_below_the_plot_at_its_edge():
    axes = Figure().add_subplot()
    axes.plot([0, 1], [1, 2])
    axes.set_ylim(1.0, 3.0)
    names = [LineName(text="mine", height=2.0, colour="#000000", strong=True)]
    name_lines(axes, [*names, LineName(text="below", height=-5.0, colour="#000000")], wide=True)
    assert {text.get_text(): text.get_position()[1] for text in axes.texts} == {"mine": 2.0, "below": 1.0}


def test_points_are_in_the_order_of_their_epsilon_and_private_ones_alone():
    tracks = run_plots._tracks(SEVERAL, None)
    assert [(one.name, one.x, one.value) for one in tracks] == [
        ("first", (0.1, 1.0, 2.0), (1.0, 2.0, 3.0)), ("second", (0.5,), (2.5,)),
    ]  # fmt: skip


def test_levels_are_what_does_not_depend_on_epsilon_and_equal_ones_are_one():
    levels = {one.name: (one.value, one.learns) for one in run_plots._levels(SEVERAL, learning=True)}
    assert levels == {
        "plain": (3.9, True), "plain, as second": (3.8, True), "optimum": (4.0, False), "uniform play": (0.5, False),
    }  # fmt: skip
    best = [standing("plain", None, 4.0), standing("first", 1.0, 2.0)]
    assert [one.name for one in run_plots._levels(best, learning=True)] == ["plain = optimum", "uniform play"]
    twins = [standing(name, 1.0, 2.0, twin="plain", twin_value=3.8) for name in ("a", "b", "c")]
    assert next(one.name for one in run_plots._levels(twins, learning=True)) == "plain, as several"


def test_against_a_parameter_everything_that_learns_is_a_line():
    axis = Axis(name="K", at=(30.0, 10.0, 20.0, 10.0, 10.0))
    tracks = {one.name: one for one in run_plots._tracks(SEVERAL, axis)}
    assert tracks.keys() == {"first", "plain", "second", "plain, as second"}
    assert tracks["first"].value == (1.0, 2.0, 3.0)
    assert tracks["plain, as second"].plain
    plot = frontier_plot(SEVERAL, delta=1e-5, over=axis)
    assert "against K." in plot.caption


def test_what_cannot_be_drawn_is_said():
    plot = frontier_plot([*SEVERAL, replace(SEVERAL[0], algorithm="endless", guarantee=replace(CLAIM, epsilon=None))],
                         delta=1e-5)  # fmt: skip
    assert plot.caption.endswith("Not drawn, because no ε is finite: endless.")
    assert "at δ = 10⁻⁵" in plot.caption
    assert frontier_plot(SEVERAL[3:4], delta=1e-5) is None


@pytest.mark.parametrize(("values", "zoomed"), [((3.9, 3.95), True), ((1.0, 3.9), False)])
def test_lines_next_to_the_optimum_have_the_plot_to_themselves(values, zoomed):
    near = [standing("first", e, value) for e, value in zip((1.0, 2.0), values, strict=True)]
    plot = frontier_plot([replace(one, std=0.01) for one in near], delta=1e-5)
    assert ("uniform play 0.5, below" in plot.wide) == zoomed


@pytest.mark.parametrize(("left", "right"), [(0.009, 120.0), (0.4, 2.4), (0.09, 9.0), (1e-6, 1e6), (0.11, 0.13)])
def test_ticks_are_round_and_few(left, right):
    ticks = run_plots._ticks(left, right, 5)
    assert len(ticks) <= 5
    assert all(left <= tick <= right for tick in ticks)
