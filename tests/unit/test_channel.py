"""The channel releases what is declared, once, with the declared noise; everything else is refused before it costs."""

from __future__ import annotations

import numpy as np
import pytest

from privcheck.errors import ChannelError, LedgerError, ParameterError, UnknownNameError
from privcheck.runtime import Billboard, Channel, Ledger, NoNoise, Privatizer, RecordingChannel, ReplayChannel
from privcheck.runtime.channel import digest
from privcheck.runtime.noise import SimulatedNoise
from twins.streams import replace_user


class Bench:
    """A channel with its parts, and how often noise was drawn."""

    def __init__(self, declaration, values, noise=None, path=None):
        self.draws = 0
        self.source = noise or SimulatedNoise(1)
        self.billboard = Billboard()
        self.ledger = Ledger(declaration, values, noise="counted", path=path)
        self.channel = Channel(declaration, values, noise=self, billboard=self.billboard, ledger=self.ledger)

    words, as_declared, protects = "counted", True, False

    def add(self, noise, value, *, release, part):
        self.draws += 1
        return self.source.add(noise, value, release=release, part=part)


@pytest.fixture
def bench(tiny, values):
    return Bench(tiny, values)


def test_a_release_is_noisy_posted_and_recorded(bench):
    exact = np.arange(6.0).reshape(3, 2)
    noisy = bench.channel.release("visits", exact, part=1)
    assert noisy.shape == exact.shape
    assert (noisy != exact).all()
    assert np.array_equal(exact, np.arange(6.0).reshape(3, 2))
    assert np.array_equal(bench.billboard.read("visits", part=1), noisy)
    (entry,) = bench.ledger.entries
    assert (entry.release, entry.part, entry.output) == ("visits", 1, digest(noisy))
    assert bench.billboard.digests == {("visits", 1): digest(noisy)}


def test_the_whole_release_is_charged_with_its_first_slice(bench):
    for part in (1, 0):
        bench.channel.release("visits", np.zeros((3, 2)), part=part)
    first, second = bench.ledger.entries
    assert second.charge is None
    # H = 2, ρ = ½: 2H changes by at most 1, variance 2H/ρ = 8
    assert (first.charge.law, first.charge.l1, first.charge.l2, first.charge.linf) == ("gaussian", 4.0, 2.0, 1.0)
    assert first.charge.scale >= np.sqrt(8)


@pytest.mark.parametrize(
    ("name", "value", "part", "message"),
    [
        ("rewards", np.zeros((3, 2)), 0, "undeclared release 'rewards'.*visits, transitions"),
        ("visits", np.zeros((3, 3)), 0, r"expected float64 \(3, 2\), got float64 \(3, 3\)"),
        ("visits", np.zeros((2, 3, 2)), 0, "expected float64"),
        ("transitions", np.zeros((3, 2)), 0, r"expected float64 \(3, 2, 3\)"),
        ("visits", np.zeros((3, 2), dtype=np.float32), 0, "got float32"),
        ("visits", np.zeros((3, 2), dtype=np.int64), 0, "got int64"),
        ("visits", [[0.0, 0.0]] * 3, 0, "got list"),
        ("visits", np.full((3, 2), np.nan), 0, "not finite"),
        ("visits", np.array([[0, 0], [0, np.inf], [0, 0]]), 0, "not finite"),
        ("visits", np.zeros((3, 2)), 2, r"slice 2 is not in 0\.\.1"),
        ("visits", np.zeros((3, 2)), -1, r"slice -1 is not in 0\.\.1"),
        ("visits", np.zeros((3, 2)), 0.5, "expected the number of a slice, got 0.5"),
        ("visits", np.zeros((3, 2)), True, "expected the number of a slice, got True"),
        ("visits", np.zeros((3, 2)), np.int64(0), "expected the number of a slice"),
    ],
)
def test_what_is_not_declared_is_refused_before_anything_is_spent(bench, name, value, part, message):
    before = bench.ledger.digest
    with pytest.raises(ChannelError, match=message) as caught:
        bench.channel.release(name, value, part=part)
    assert caught.value.release == name
    assert bench.draws == 0
    assert bench.ledger.digest == before
    assert bench.ledger.entries == []
    assert bench.billboard.digests == {}


def test_each_slice_leaves_once(bench):
    bench.channel.release("visits", np.zeros((3, 2)), part=0)
    before = (bench.draws, bench.ledger.digest, bench.billboard.digests)
    with pytest.raises(ChannelError, match="slice 0 was already released; each slice is released once"):
        bench.channel.release("visits", np.zeros((3, 2)), part=0)
    assert (bench.draws, bench.ledger.digest, bench.billboard.digests) == before


def test_nothing_is_published_that_the_ledger_does_not_hold(bench):
    bench.ledger.close()
    with pytest.raises(LedgerError, match="the ledger is closed"):
        bench.channel.release("visits", np.zeros((3, 2)), part=0)
    assert bench.billboard.digests == {}


def test_a_channel_closes_only_when_everything_declared_was_released(bench, tiny, data):
    privatizer = Privatizer(data, tiny, bench.channel)
    privatizer.publish(0)
    with pytest.raises(ChannelError, match=r"visits with 2 slices, but 1 of them were not released \(first: 1\)"):
        bench.channel.close()
    assert not bench.ledger.closed
    privatizer.publish(1)
    bench.channel.close()
    assert bench.ledger.closed
    assert [(e.release, e.part) for e in bench.ledger.entries] == [
        ("visits", 0), ("transitions", 0), ("visits", 1), ("transitions", 1),
    ]  # fmt: skip


def test_a_spread_that_is_no_spread_is_refused_when_the_channel_is_made(tiny):
    with pytest.raises(ParameterError, match="expected between 1e-300 and 1e300"):
        Bench(tiny, {**tiny.values(), "rho": tiny.values()["rho"] / 10**700})


def test_the_billboard_is_frozen(bench):
    noisy = bench.channel.release("visits", np.zeros((3, 2)), part=0)
    for array in (noisy, bench.billboard.read("visits", part=0), noisy.base):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        noisy.flags.writeable = True


def test_a_published_array_is_frozen_for_its_caller_too():
    billboard, mine = Billboard(), np.zeros(3)
    billboard.publish("x", 0, mine)
    with pytest.raises(ValueError, match="read-only"):
        mine[0] = 1.0
    with pytest.raises(ChannelError, match="already on the billboard"):
        billboard.publish("x", 0, np.zeros(3))


def test_a_retired_step_keeps_its_digest(bench):
    noisy = bench.channel.release("visits", np.zeros((3, 2)), part=0)
    bench.billboard.retire(0)
    with pytest.raises(ChannelError, match="retired"):
        bench.billboard.read("visits", part=0)
    assert bench.billboard.digests == {("visits", 0): digest(noisy)}
    with pytest.raises(UnknownNameError, match=r"visits\[1\]"):
        bench.billboard.read("visits", part=1)


def test_digests_see_content_shape_and_type():
    a = np.arange(6.0)
    same = [a, a.copy(), np.arange(12.0)[::2] / 2]
    others = [a.reshape(2, 3), a.astype(np.float32), a + 1e-12, -a]
    assert len({digest(x) for x in same}) == 1
    assert len({digest(x) for x in [a, *others]}) == 5


def test_the_privatizer_lends_nothing(bench, tiny, data):
    privatizer = Privatizer(data, tiny, bench.channel)
    public = [name for name in dir(privatizer) if not name.startswith("_")]
    assert public == ["publish"]
    assert privatizer.publish(0) is None


def test_replaying_a_billboard_answers_with_the_outputs_of_the_first_run(tiny, values, data):
    first = Bench(tiny, values)
    recording = RecordingChannel(first.channel)
    neighbour = replace_user(data, 3, data.user(5))
    replay = ReplayChannel(first.billboard)
    for step in range(2):
        Privatizer(data, tiny, recording).publish(step)
        Privatizer(neighbour, tiny, replay).publish(step)
    assert list(recording.exact) == list(replay.exact)
    for key, exact in recording.exact.items():
        statistic = tiny.release(key[0]).statistic
        assert np.array_equal(exact, statistic.compute(data, step=key[1]))
        assert np.array_equal(replay.exact[key], statistic.compute(neighbour, step=key[1]))
    with pytest.raises(ChannelError, match="each slice is released once"):
        Privatizer(neighbour, tiny, replay).publish(0)


def test_without_noise_the_exact_value_is_published_and_the_source_says_so(tiny, values, data):
    bench = Bench(tiny, values, noise=NoNoise())
    exact = tiny.releases[0].statistic.compute(data, step=0)
    assert np.array_equal(bench.channel.release("visits", exact, part=0), exact)
    assert NoNoise.as_declared is NoNoise.protects is SimulatedNoise.protects is False
    assert "no privacy" in NoNoise.words
    exact[0, 0] += 1  # the published array is another one
    assert bench.billboard.read("visits", part=0)[0, 0] == exact[0, 0] - 1


def test_another_output_has_records_of_its_own_and_the_same_law(bench, tiny, values):
    exact = np.arange(6.0).reshape(3, 2)
    first = bench.channel.release("visits", exact, part=0)
    billboard, ledger = Billboard(), Ledger(tiny, values, noise="again")
    again = bench.channel.again(noise=SimulatedNoise(1), billboard=billboard, ledger=ledger)
    assert np.array_equal(again.release("visits", exact, part=0), first)
    assert np.array_equal(billboard.read("visits", part=0), first)
    assert ledger.entries == bench.ledger.entries
    assert ledger.entries[0].charge is not None  # charged anew: it is another release about the users
    with pytest.raises(ChannelError, match="was already released"):
        bench.channel.release("visits", exact, part=0)
    with pytest.raises(ChannelError, match="was already released"):
        again.release("visits", exact, part=0)
