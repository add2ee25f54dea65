"""What only several columns tell: pairs, sums over columns, repetitions, and the sketch, each against a slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck_audits.blackbox import dependence
from privcheck_audits.blackbox import width as narrowing
from privcheck_audits.blackbox.dependence import learn_dependence, learn_sums, partners, pick_pairs, standardise
from privcheck_audits.blackbox.features import feature_map
from privcheck_audits.blackbox.scores import grid_steps, on_grid
from privcheck_audits.blackbox.width import WIDEST, echoes, figure_sizes, pick_columns, shape, sum_columns


def outputs(seed, runs, width, *, moved=None):
    """Returns Laplace noise and a hidden bit that moves one column."""
    rng = np.random.default_rng(seed)
    rows, secret = rng.laplace(size=(runs, width)), rng.random(runs) < 0.5
    if moved is not None:
        rows[secret, moved] += 1
    return rows, secret


def distances(rows, secret):
    """Returns what each pair tells beyond its columns one by one: Mahalanobis distances by np.cov, pair by pair."""
    runs, width = rows.shape
    arms = [rows[secret], rows[~secret]]
    within = sum(np.cov(arm.T, bias=True) * len(arm) for arm in arms) / runs
    moved = arms[0].mean(axis=0) - arms[1].mean(axis=0)
    gain = np.zeros((width, width))
    for i in range(width):
        for j in range(i + 1, width):
            both = within[np.ix_([i, j], [i, j])]
            alone = moved[i] ** 2 / both[0, 0] + moved[j] ** 2 / both[1, 1]
            gain[i, j] = moved[[i, j]] @ np.linalg.solve(both, moved[[i, j]]) - alone
    return gain


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32),
    width=st.integers(3, 12),
    share=st.floats(0.6, 0.98),
    step=st.sampled_from([2, 5, 256]),
)
def test_the_pair_that_tells_most_is_the_one_of_a_search_pair_by_pair(seed, width, share, step):
    rows, secret = outputs(seed, 900, width, moved=0)
    rows[:, -1] = share * (rows[:, 0] - secret) * np.sign(0.5 - seed % 2) + (1 - share) * rows[:, -1]
    gain = distances(rows, secret)
    best = np.unravel_index(gain.argmax(), gain.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependence, "_STEP", step)  # several blocks
        found = pick_pairs(standardise(rows, secret)).tolist()
    assert list(best) in found
    assert best == (0, width - 1)


def test_pairs_without_dependence_are_left_alone():
    for seed in range(20):  # each pair list of noise is empty but with probability 10⁻³ or so; the seeds are fixed
        rows, secret = outputs(seed, 800, 60, moved=3)
        assert len(pick_pairs(standardise(rows, secret))) <= 1


@pytest.mark.parametrize(("factor", "offset"), [(1.0, 0.0), (-1.0, 0.0), (2.0, 3.0)])
def test_the_residual_of_shared_noise_is_free_of_noise(factor, offset):
    rows, secret = outputs(1, 1_000, 90)
    rows[:, 50] = offset + factor * rows[:, 7]
    rows[secret, 7] += 1
    found = learn_dependence(rows, secret)
    at = found.pairs.tolist().index([7, 50])
    assert found.slopes[at] == pytest.approx(factor, abs=1e-9)
    rest = found(rows)[:, at] - offset
    assert rest == pytest.approx(-factor * secret, abs=1e-6)


def test_a_sum_of_three_is_found_with_its_third_column_and_by_the_discriminant():
    rows, secret = outputs(2, 1_500, 120)
    rows[:, 80] = rows[:, 11] + rows[:, 40]
    rows[secret, 11] += 1
    assert set(partners(standardise(rows, secret), np.array([11, 80]))) == {11, 40, 80}
    found = learn_dependence(rows, secret)
    line = (rows @ found.lines)[:, 0]  # nearly without a ridge
    assert line[secret].min() > line[~secret].max()


def test_directions_show_a_correlation_that_only_one_neighbour_has():
    rows, secret = outputs(3, 3_000, 60)
    rows[secret, 20] = rows[secret, 45]
    found = learn_dependence(rows, secret)
    size = found(rows)[:, -found.waves.shape[1] :]
    assert max(abs(np.median(column[secret]) - np.median(column[~secret])) for column in size.T) > 2
    assert [20, 45] in found.pairs.tolist()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), width=st.integers(2, 9), runs=st.integers(40, 200))
def test_sums_are_those_of_loops_over_runs_and_columns(seed, width, runs):
    rows, secret = outputs(seed, runs, width)
    rows[secret] *= 1.7
    rows[secret] += 1
    found = learn_sums(rows, secret)
    table = found(rows, np.arange(12))
    few = np.flatnonzero(np.arange(12) % 5 != seed % 5)
    assert found(rows, few) == pytest.approx(table[:, few], rel=1e-9, abs=1e-9)
    for run in range(0, runs, 17):
        wanted = np.zeros(table.shape[1])
        for column in range(width):
            value = rows[run, column]
            on, off = found.bends[:, column]
            drawn = min(max(value, found.low[column]), found.high[column]) - found.middle[column]
            wanted[0:3] += value * found.moved[column]
            wanted[3:6] += (abs(value - on) - abs(value - off)) * found.bent[column]
            wanted[6:9] += drawn**2 * found.squares[column]
            wanted[9:12] += abs(value - found.middle[column]) * found.sizes[column]
        assert table[run] == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_a_leak_that_no_column_shows_adds_up():
    rng = np.random.default_rng(4)
    rows, secret = rng.normal(size=(4_000, 200)), rng.random(4_000) < 0.5
    rows[secret] += 0.05  # a 20th of a standard deviation; together .7
    fresh, known = rng.normal(size=(4_000, 200)), rng.random(4_000) < 0.5
    fresh[known] += 0.05
    found = learn_sums(rows, secret)(fresh, np.array([0]))[:, 0]
    apart = (found[known].mean(axis=0) - found[~known].mean(axis=0)) / found.std(axis=0)
    assert apart > 0.35  # error probability below 10⁻⁹: half of what the true weights give
    assert (learn_sums(rows, secret).moved != 0).sum(axis=0)[2] < 100


def repeats(row):
    """Returns the nine figures of one output, by loops."""
    width = len(row)
    groups = {}
    for value in row:
        if value % 1 != 0:
            groups.setdefault(value % 1, []).append(value)
    matched = [sorted(group) for group in groups.values() if len(group) > 1]
    half = width // 2
    one, other = sorted(row[:half]), sorted(row[half : 2 * half])
    shifted = [b - a for a, b in zip(one, other, strict=True)]
    mirrored = [b + a for a, b in zip(reversed(one), other, strict=True)]
    away = np.array(row) - np.mean(row)
    alike = [sum(away[i] * away[(i + lag) % width] for i in range(width)) for lag in range(1, half + 1)]
    return [
        sum(len(group) - 1 for group in matched),
        max((group[-1] - group[0] for group in matched), default=0.0),
        sum(group[-1] - group[0] for group in matched),
        np.log(np.std(shifted) + 1e-12),
        np.log(np.std(mirrored) + 1e-12),
        np.mean(shifted),
        np.mean(mirrored),
        max(alike) / max(1e-12, sum(away**2)),
        int(np.argmax(alike)),
    ]


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), width=st.integers(4, 13))
def test_echoes_are_those_of_loops(seed, width):
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(5, width)) * 2, 2)
    half = width // 2
    rows[1, half : 2 * half] = rng.permutation(rows[1, :half]) + 3
    rows[2, half : 2 * half] = -rows[2, :half]
    rows = on_grid(rows, np.full(width, 2.0**-20))
    found = echoes(rows)
    for row, figures in zip(rows, found, strict=True):
        wanted = repeats(row)
        pairs_apart = [1, 2] if max(np.unique(row % 1, return_counts=True)[1]) < 3 else []  # three: of neighbours only
        for at in (0, *pairs_apart, 5, 6, 7):
            assert figures[at] == pytest.approx(wanted[at], rel=1e-6, abs=1e-9)
        for at in (3, 4):
            assert np.exp(figures[at]) == pytest.approx(np.exp(wanted[at]), rel=1e-6, abs=1e-7)
    assert found[1, 0] >= half - (rows[1] % 1 == 0).sum()
    assert figure_sizes(width) == (shape(rows).shape[1], found.shape[1])


def test_single_numbers_have_no_figures():
    for width in (1, 2, 3):
        rows = np.ones((3, width))
        assert figure_sizes(width) == (shape(rows).shape[1], echoes(rows).shape[1])


def test_a_restricted_map_gives_the_same_columns_and_keeps_the_outputs():
    rng = np.random.default_rng(5)
    for width in (1, 2, 7, 70):
        rows, secret = outputs(6, 600, width, moved=0)
        rows = np.round(rows, 1)
        at = on_grid(rows, grid_steps(rows, secret))
        every = feature_map(at, secret)
        table = every(at)
        chosen = rng.random(table.shape[1]) < 0.3
        chosen[: every.kept.size] = True
        few = every.restricted(chosen)
        figured = every(at, (shape(at), echoes(at)))
        assert few(at) == pytest.approx(figured[:, chosen], rel=1e-9, abs=1e-9)
        again = rng.random(chosen.sum()) < 0.5
        again[: every.kept.size] = True
        assert few.restricted(again)(at) == pytest.approx(table[:, chosen][:, again], rel=1e-9, abs=1e-9)


def test_the_sketch_of_few_columns_is_the_runs_and_does_not_depend_on_blocks():
    rows, secret = outputs(7, 300, 700)
    whole = sum_columns(rows, secret, 0)
    parts = sum_columns(rows[:90], secret[:90], 0) + sum_columns(rows[90:], secret[90:], 90)
    assert np.array_equal(whole.sketch, parts.sketch)
    assert np.array_equal(whole.signs, parts.signs)
    assert np.array_equal(pick_columns(whole).columns, pick_columns(parts).columns)
    order = np.argsort(whole.buckets // 2)
    assert np.array_equal(np.abs(whole.sketch[order]), np.abs(rows))


def test_a_small_sketch_keeps_correlations_about(monkeypatch):
    monkeypatch.setattr(narrowing, "_SKETCH", 40 * 600)  # 40 buckets a neighbour for 500 runs
    rows, secret = outputs(8, 500, 600, moved=9)
    rows[:, 400] = 5 - rows[:, 9] + secret
    spread = sum_columns(rows, secret, 0)
    assert spread.buckets.size == 80
    standard = narrowing._standard(spread, spread.runs[:, None])
    both = np.concatenate(standard.arms)
    alike = both.T.astype(np.float64) @ both / len(both)
    assert alike[9, 400] == pytest.approx(-1, abs=1e-4)
    exact = np.corrcoef(np.concatenate([rows[arm] - rows[arm].mean(axis=0) for arm in (secret, ~secret)]).T)
    off = (alike - exact)[~np.eye(600, dtype=bool)]
    assert off.std() < 0.2  # about 1/√80
    assert [9, 400] in pick_pairs(standard).tolist()


@pytest.mark.parametrize("width", [600, 2_500])
def test_columns_that_share_noise_are_kept_of_wide_outputs(width):
    rows, secret = outputs(9, 600, width)
    rows[:, width // 2] = rows[:, 5] + rows[:, width - 7]
    rows[:, 17] = 3 - 2 * rows[:, 21]
    rows[secret, 5] += 1
    rows[secret, 17] += 1
    narrow = pick_columns(sum_columns(rows, secret, 0))
    assert {5, 17, 21, width // 2, width - 7} <= set(narrow.columns.tolist())
    assert narrow.columns.size == WIDEST
    assert not narrow.echoed


def test_repetitions_of_wide_outputs_are_looked_at_where_they_tell():
    rows, secret = outputs(10, 300, 800)
    for run in np.flatnonzero(secret):
        rows[run, 400:] = np.random.default_rng(run).permutation(rows[run, :400])
    narrow = pick_columns(sum_columns(rows, secret, 0))
    assert narrow.echoed
    out = narrow(rows)
    assert out.shape == (300, narrow.width)
    assert np.array_equal(out[:, -echoes(rows).shape[1] :], echoes(rows))
