"""A plain online agent with release noise: whole numbers leave, the board shows them in their own unit."""

import numpy as np
import pytest

from privcheck import Algorithm, Claim, Declaration, Joint, Laplace, Parameter, PlainAgent, PureDP, Release, ReplaceOne
from privcheck.commands.online_runs import load_world, run_online, settle_together
from privcheck.declare.schedules import Tree
from privcheck.declare.statistics import RewardSums, TransitionCounts
from privcheck.errors import ParameterError
from privcheck.runtime import read_ledger
from privcheck.terms.symbols import A, H, K, S, ceil_log2, epsilon, maximum

SIZES = [Parameter(name=n, default=d, kind="count", meaning=n) for n, d in {"H": 3, "S": 3, "A": 2, "K": 9}.items()]
EPSILON = Parameter(name="epsilon", default="1", kind="positive", meaning="of the claim, nats")
SEEN = []


def declare(_):
    noise, tree = Laplace(scale=4 * H * maximum(ceil_log2(K), 1) / epsilon), Tree(leaves=K - 1)
    tables = {"rewards": RewardSums(H, S, A), "transitions": TransitionCounts(H, S, A)}
    return Declaration(
        name="small", title="x", source="x", relation=ReplaceOne("trajectory"),
        releases=tuple(Release(name, table, noise, schedule=tree) for name, table in tables.items()),
        claim=Claim(PureDP(epsilon), source="x", joint=Joint()), parameters=(*SIZES, EPSILON),
    )  # fmt: skip


def agent(setting, sizes):
    def plan(board):
        SEEN.append({name: table.copy() for name, table in board.items()})
        return np.zeros((sizes.H, sizes.S), int)

    return plan


def choose(**how):
    small = Algorithm(name="small", title="x", source="x", declare=declare, online=PlainAgent(agent=agent, **how))
    world, rest = load_world("riverswim", {"S": "3", "H": "3", "K": "9"}, seed=0)
    return settle_together([small], rest, world)[0], world


def test_a_plain_agent_reads_release_noise_in_the_statistics_own_unit(tmp_path):
    SEEN.clear()
    setting, world = choose()
    ran = run_online(setting, world, noise="release", out=tmp_path)
    header, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert (header["protects"], ran.ledger.protects) == (True, True)
    assert {entry.charge.law for entry in entries if entry.charge} == {"discrete laplace"}
    assert not list(tmp_path.glob("checkpoint*"))
    last, scale = SEEN[-1], 4 * 3 * 4
    for table in last.values():
        grid = table * 2**24
        assert (np.rint(grid) == grid).all()
        assert (np.rint(table) != table).any()  # missed with probability 2⁻⁴³²
    for table in last.values():  # sums of up to three draws of b = 48: beyond 60 b with probability below 10⁻²²
        assert np.abs(table).max() < 60 * scale
        assert np.abs(table).max() > 1  # as much noise as is declared: missed below (1/48)¹⁸
    run_online(setting, world, noise="release")
    assert not np.array_equal(SEEN[-1]["rewards"], last["rewards"])  # no seed


def test_contributions_of_ones_own_are_not_rounded_and_refused():
    contribute = lambda _: lambda user, _rng: {"rewards": user.rewards, "transitions": user.rewards}  # noqa: E731
    setting, world = choose(contribute=contribute)
    with pytest.raises(ParameterError, match="which are not rounded to a grid"):
        run_online(setting, world, noise="release")
