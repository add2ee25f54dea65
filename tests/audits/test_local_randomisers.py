"""Users who draw: `contribute(user, rng)` of the shuffle page's agent, its replays, and what is refused.

Audits of honest agents run at α = 1e-9: a reseed fails with probability below 1e-8.
"""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from privcheck import verify
from privcheck.declare.mechanisms import ShuffledBits
from privcheck.errors import ParameterError, TrajectoryError
from privcheck.runtime.plain_agents import PlainAgent
from privcheck.runtime.registry import plan_for
from privcheck.runtime.results import AuditRequest, OnlineRequest, World
from privcheck.runtime.setting import Setting
from privcheck.runtime.spending import check_ledger
from privcheck.support.display import silent
from privcheck.terms.symbols import n
from privcheck_algorithms.environments.finite import random_mdp

PAGE = Path(__file__).parents[2] / "docs/shuffle.md"
BLOCK = next(b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL) if "MINE" in b)
MODULE: dict = {"verify": lambda *_: SimpleNamespace(verdict="")}  # seconds; `test_the_page_s_agent_holds` asks
exec(compile(BLOCK, str(PAGE), "exec"), MODULE)  # noqa: S102 - our own documents
MINE = MODULE["MINE"]


def declare(**changed):
    declaration = MINE.declare({})
    return dataclasses.replace(
        declaration, releases=tuple(dataclasses.replace(one, **changed) for one in declaration.releases)
    )


def rebuilt(declaration=None, **changed):
    """Returns the page's algorithm with another privatizer half, other batches or another declaration."""
    whole = declaration or MINE.declare({})
    return dataclasses.replace(MINE, declare=lambda _: whole, online=dataclasses.replace(MINE.online, **changed))


def setting_of(algorithm=MINE, **values):
    declaration = algorithm.declare({})
    return Setting(declaration=declaration, values=declaration.values(values), options={})


def asked(algorithm=MINE, *, K=120, replicates=1, workers=1, directory=None, progress=silent):
    mdp = random_mdp(S=2, A=2, H=2, seed=3)  # rewards between 0 and 1
    return OnlineRequest(
        setting=setting_of(algorithm, K=K), world=World(name="test", description="", mdp=mdp), episodes=K,
        replicates=replicates, seed=5, workers=workers, directory=directory, progress=progress,
    )  # fmt: skip


def look(algorithm, view="lockstep", trials=12):
    setting = setting_of(algorithm)
    return plan_for(algorithm).audit(
        AuditRequest(setting=setting, view=view, delta=1e-5, trials=trials, confidence=1 - 1e-9)
    )


def test_rewards_that_are_no_bits_need_a_user_who_rounds():
    with pytest.raises(TrajectoryError, match=r"rng\.random\(rewards\.shape\) < rewards.*contribute\(user, rng\)"):
        rebuilt(contribute=None).play(asked())
    MINE.play(asked())


def test_the_page_s_agent_holds():
    declaration = MINE.declare({})
    assert verify(declaration, declaration.values()).verdict == "holds"


@pytest.mark.parametrize("view", ["lockstep", "noise"])
def test_the_page_s_agent_is_consistent_and_attains_its_charge(view):
    found = look(MINE, view)
    assert (found.verdict, found.agent_ran) == ("consistent", True)
    if view == "lockstep":
        assert max(v for name, v in found.evidence.items() if "l1_moved" in name) == 1.0


def test_a_run_repeats_for_any_number_of_workers_and_after_a_kill(tmp_path, monkeypatch):
    straight = MINE.play(asked(replicates=3))
    spread = MINE.play(asked(replicates=3, workers=3))
    assert np.array_equal(straight.regret, spread.regret)
    assert straight.ledger.entries == spread.ledger.entries
    monkeypatch.setattr("privcheck.runtime.replicates._SAVE_EVERY", 0.0)
    monkeypatch.setattr("privcheck.runtime.replicates._WORK", 0)

    def kill(done, _):
        if done > 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MINE.play(asked(replicates=3, directory=tmp_path, progress=kill))
    resumed = MINE.play(asked(replicates=3, directory=tmp_path))
    assert np.array_equal(resumed.regret, straight.regret)
    assert resumed.ledger.entries == straight.ledger.entries
    setting = asked().setting
    check_ledger(resumed.ledger.header, resumed.ledger.entries, setting.declared, setting.values)


def play_and_keep(algorithm, **given):
    """Returns all that users sent in a run, and how the replicate's exact sums stood after every batch."""
    sent, sums, make = [], [], algorithm.online.contribute

    def contribute(setting):
        inner = make(setting)

        def send(user, rng):
            sent.append(inner(user, rng))
            return sent[-1]

        return send

    request = asked(algorithm, **given)
    player = dataclasses.replace(algorithm.online, contribute=contribute)(request)
    one = player.start(0)
    for episode in range(1, request.episodes + 1):
        player.play(one, episode)
        if player.face.output(episode) is not None:
            sums.append((episode, player.face.exact(one, player.face.output(episode))))
    return sent, sums


def greedy_of(setting):
    """A user who draws a hundred numbers more where their reward is above a half."""
    inner = MODULE["contribute"](setting)

    def send(user, rng):
        message = inner(user, rng)
        rng.random(100 if user.rewards.max() > 0.5 else 0)
        return message

    return send


def test_what_one_user_draws_changes_no_other_user_s_messages():
    """Batches are sums of what their users sent, whatever each has drawn besides."""
    sent, sums = play_and_keep(MINE)
    others, _ = play_and_keep(rebuilt(contribute=greedy_of))
    assert len(sent) == 120
    for one, other in zip(sent, others, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    begun = 0
    for episode, exact in sums:
        for name, table in exact.items():
            assert np.array_equal(table, sum(one[name] for one in sent[begun:episode]))
        begun = episode
    bits = np.array([message["rewards"].sum() for message in sent])
    assert set(bits.tolist()) == {0.0, 1.0, 2.0}  # rewards are bits; 120 users miss one of these below 1e-9


@pytest.mark.parametrize(
    ("half", "got"),
    [
        (lambda _: lambda _user: {}, "too many positional"),
        (lambda _: lambda _user, *, rng: rng, "too many positional"),
        (lambda _: 7, "7"),
    ],
)
def test_a_privatizer_half_of_the_user_alone_is_refused_with_the_remedy(half, got):
    with pytest.raises(ParameterError, match=rf"\(user, rng\), got .*{got}.*second argument"):
        rebuilt(contribute=half).play(asked())


def twice(setting):
    inner = MODULE["contribute"](setting)
    return lambda user, rng: {name: 2 * table for name, table in inner(user, rng).items()}


def rounds_wide(setting):
    """Rewards that are rounded to 0 or 3."""
    inner = MODULE["contribute"](setting)

    def send(user, rng):
        message = inner(user, rng)
        return {**message, "rewards": 3 * message["rewards"]}

    return send


@pytest.mark.parametrize("half", [twice, rounds_wide])
def test_a_user_who_sends_more_than_is_charged_is_a_violation(half):
    found = look(rebuilt(contribute=half), trials=4)
    assert found.verdict == "violation"
    assert "doubt" not in found.evidence


def unseeded(setting):
    inner, rng = MODULE["contribute"](setting), np.random.default_rng()
    return lambda user, _: inner(user, rng)


def test_users_who_draw_elsewhere_are_undecided_and_not_accused():
    """The chance that two runs of 40 pairs draw the same bits is below 1e-9."""
    found = look(rebuilt(contribute=unseeded), trials=40)
    assert (found.verdict, found.evidence["departures"]) == ("undecided", 0)
    assert "contribute(user, rng)" in found.evidence["doubt"]


def test_batches_have_the_noise_of_their_own_size():
    """Of 16 users 15 bits each, of 32 users 8: with the other size's noise the noise view would say so."""
    sized = declare(mechanism=ShuffledBits(users=n, threshold=Fraction(240)))
    assert look(rebuilt(sized), "noise").verdict == "consistent"
    player = rebuilt(sized).online(asked(rebuilt(sized)))
    assert [player.face.batches(output) for output in (1, 2)] == [
        {"rewards": (16,), "transitions": (16,)},
        {"rewards": (32,), "transitions": (32,)},
    ]


def test_batches_of_undeclared_sizes_are_refused():
    with pytest.raises(ParameterError, match=r"a batch of 20 users, where Batches\(sizes=…\) declares 16, 32"):
        rebuilt(ends=lambda _, K: (20, K)).play(asked())


def test_privatizer_halves_of_classes_and_partial_functions_pass():
    class Half:
        def __init__(self, setting):
            self.send = MODULE["contribute"](setting)

        def __call__(self, user, rng, /):
            return self.send(user, rng)

    whole = dataclasses.replace(MINE, online=PlainAgent(agent=MODULE["agent"], contribute=Half, ends=MODULE["ends"]))
    assert np.array_equal(whole.play(asked()).regret, MINE.play(asked()).regret)
