"""A run that learned nothing says so first, with the reason and what to try; one that learned never does."""

import json

import numpy as np
import pandas as pd
import pytest

import privcheck
from privcheck.cli.main import main
from privcheck.commands.learning_check import judge_acting, judge_learned
from privcheck.commands.settings import resolve_setting
from privcheck.reports import render_text
from privcheck.reports.files import as_report
from privcheck.reports.values import Gap, RanOnline, Regret, from_json
from privcheck.reports.wording import figure
from privcheck.runtime.results import OnlineResult, RunResult

RIVER = {"env": "riverswim", "S": 4, "H": 6, "K": 4000}
# less of uniform play's regret is left than 95 %
LEARNS = [
    ("ucb-vi", {}), ("ucb-vi", {"bonus_scale": "0.1"}), ("oppo", {}), ("policy-elimination", {}),
    ("private-ucb-vi-central", {"epsilon": "1000"}), ("private-ucb-po-central", {"epsilon": "1000"}),
    ("private-ucb-vi-calibrated", {"epsilon": "100"}), ("pucb", {"epsilon": "1000"}), ("calibrated-ucb-vi", {}),
    ("shuffled-ucb-vi", {}),
]  # fmt: skip
DOES_NOT = [
    ("ucb-vi", {"preset": "paper"}, "its bonus exceeds what can be earned", "--set preset=practical"),
    ("ucb-vi", {"bonus_scale": "3"}, "its bonus exceeds", "it without --set bonus_scale"),
    ("oppo", {"preset": "paper"}, "its bonus exceeds", "--set preset=practical"),
    ("private-ucb-vi-central", {"preset": "paper"}, "its bonus exceeds", "calibrated-ucb-vi"),
    ("private-ucb-po-central", {"epsilon": "0.1"}, "of its noise: without it (oppo)", "a larger epsilon"),
    ("calibrated-ucb-vi", {"K": 100}, "its policy never changed", "more episodes (K)"),
]
CAUSES = {"bonus": "its bonus exceeds", "noise": "of its noise", "unchanged": "its policy never changed"}


@pytest.mark.parametrize(("name", "given"), LEARNS)
def test_a_run_that_learned_is_never_said_not_to_have(name, given):
    ran = privcheck.run(name, **{**RIVER, **given})
    assert ran.regret.share_of_uniform < 0.95
    assert ran.did_not_learn is None
    assert ran.to_dict()["did_not_learn"] is None


@pytest.mark.parametrize(("name", "given", "reason", "advice"), DOES_NOT)
def test_a_run_that_did_not_says_why_and_what_to_try(name, given, reason, advice, tmp_path):
    ran = privcheck.run(name, out=tmp_path, **{**RIVER, **given})
    assert ran.regret.share_of_uniform > 0.9
    assert reason in ran.did_not_learn.because
    assert advice in ran.did_not_learn.advice
    kept = json.loads((tmp_path / "run.json").read_text())
    why = ran.did_not_learn
    assert kept["did_not_learn"] == {"because": why.because, "advice": why.advice, "cause": why.cause}
    assert CAUSES[why.cause] in reason
    assert from_json(RanOnline, kept, "run").did_not_learn == ran.did_not_learn
    page = (tmp_path / "run.html").read_text()
    assert page.index("Nothing was learned") < page.index("Regret</h2>")


def test_noise_is_not_named_where_the_same_constants_do_not_learn_without_it():
    """SDP-PE as printed at the paper's sizes: its twin keeps 84 % of K·V*, so the noise alone does not explain it."""
    ran = privcheck.run("sdp-pe-as-printed", env="riverswim", S=4, H=6, K=20_000)
    assert ran.choices["constants"] == "printed"
    assert ran.regret.twin == "policy-elimination"
    assert ran.regret.baseline / ran.regret.maximum == pytest.approx(0.84, abs=0.02)
    assert ran.did_not_learn.cause == "unknown"
    assert "because of its noise" not in render_text(as_report(ran))
    assert "without noise (policy-elimination) the same constants lose 90 %" in ran.did_not_learn.because


def test_a_twin_without_the_constants_is_replaced_by_the_agent_without_noise():
    """λ̃ and β of DP-LSVI-UCB++ follow the noise: LSVI-UCB++ has no such constants, and is no twin at them."""
    ran = privcheck.run("dp-lsvi-ucb-pp", env="linear-signs", K=40, preset="paper")
    assert ran.regret.twin == "dp-lsvi-ucb-pp without noise"
    assert ran.regret.baseline > 0
    assert privcheck.run("dp-lsvi-ucb-pp", env="linear-signs", K=40).regret.twin == "lsvi-ucb-pp"


def test_it_is_the_first_line_of_the_terminal(capsys):
    asked = ["riverswim", "--set", "K=300", "--set", "preset=paper"]
    with pytest.raises(SystemExit):
        main(["run", "ucb-vi", "--env", *asked])
    assert capsys.readouterr().out.startswith("ucb-vi did not learn, because its bonus exceeds what can be earned")
    with pytest.raises(SystemExit):
        main(["run", "dp-apvi", "--env", "riverswim", "--set", "H=4", "--set", "S=3", "--set", "preset=paper"])
    out = capsys.readouterr().out
    assert out.startswith("dp-apvi did not learn, because every Q̂ is 0")
    assert out.count("did not learn") == 1


def test_pessimism_that_leaves_nothing_is_told_from_a_policy():
    small = {"env": "riverswim", "H": 4, "S": 3}
    assert privcheck.run("dp-apvi", **small).did_not_learn is None
    told = privcheck.run("dp-apvi", preset="paper", **small).did_not_learn
    assert "--set preset=practical" in told.advice
    assert privcheck.run("apvi", preset="paper", **small, n=20).did_not_learn is not None
    assert privcheck.run("apvi", **small).did_not_learn is None
    pessimistic = privcheck.run("vapvi", env="linear-synthetic", H=4, n=200, C="1000")
    assert "every Q̂ is 0" in pessimistic.did_not_learn.because
    assert privcheck.run("vapvi", env="linear-synthetic", H=4, n=200).did_not_learn is None


def made(late, *, switches=9.0, at_limit=None):
    """Returns a run of 100 episodes in which uniform play loses 1 each, and the last quarter's policies `late`."""
    lost = np.where(np.arange(1, 101) > 75, late, 1.0)
    return OnlineResult(
        episodes=np.arange(1, 101),
        regret=np.cumsum(lost)[None],
        value=1.0 - lost[None],
        switches=np.full((1, 100), switches),
        optimal=1.0,
        policy=np.full((2, 1, 2), 0.5),
        ledger=None,
        diagnostics={},
        seconds=1.0,
        at_limit=at_limit,
    )


@pytest.mark.parametrize("at_limit", [None, 0.0, 0.7, 1.0])
@pytest.mark.parametrize("switches", [0.0, 1.0, 99.0])
@pytest.mark.parametrize("late", [0.0, 0.04, 0.2, 0.9, 0.949, 0.951, 1.0, 1.3])
def test_the_last_policies_decide_whatever_the_agent_says(late, switches, at_limit):
    setting, result = resolve_setting("ucb-vi", {"preset": "paper"}), made(late, switches=switches, at_limit=at_limit)
    regret = Regret(
        mean=float(result.regret[0, -1]), std=None, optimal=0.0, maximum=100.0, share=1.0, twin=None, baseline=None,
        uniform=100.0, share_of_uniform=float(result.regret[0, -1]) / 100,
    )  # fmt: skip
    said = judge_acting(setting, result, regret)
    assert (said is not None) == (late >= 0.95 or (switches == 0 and late > 0.05))
    if said is not None:
        assert ("bonus" in said.because) == (at_limit is not None and at_limit >= 0.5)
    nothing_to_lose = judge_acting(setting, result, Regret(**{**vars_of(regret), "uniform": 0.0}))
    assert nothing_to_lose is None


def vars_of(regret):
    return {name: getattr(regret, name) for name in regret.__slots__}


@pytest.mark.parametrize(("worthless", "share", "said"), [
    (1.0, None, True), (1.0, 0.9, True), (0.99, None, False), (0.99, 0.97, False), (0.0, 1.0, True),
    (None, None, False),
])  # fmt: skip
def test_what_is_said_of_data(worthless, share, said):
    result = RunResult(
        returns=None, claimed=np.zeros(1), baseline=None, policy=np.ones((1, 1, 1)), ledger=None, diagnostics={},
        seconds=1.0, worthless=worthless,
    )  # fmt: skip
    told = judge_learned(resolve_setting("dp-apvi", {}), result, Gap(mean=share, uniform=1.0, share_of_uniform=share))
    assert (told is not None) == said
    if told is not None:
        assert "more users or a larger rho" in told.advice


def test_of_users_own_data_the_agents_own_estimate_is_shown_with_what_it_is(tmp_path):
    frame = pd.DataFrame(
        [(user, h, 0, user % 2, float(user % 2), 0) for user in range(400) for h in (1, 2)],
        columns=["episode", "step", "state", "action", "reward", "next_state"],
    )
    ran = privcheck.run(
        "dp-apvi", data=frame, users=privcheck.Users(one_episode_is_one_user=True), parameters={"rewards": "released"}
    )
    ran.save(tmp_path / "run.html")
    for text in (render_text(as_report(ran)), (tmp_path / "run.html").read_text()):
        assert "own estimate" in text
        said = "pessimistic, from the noisy releases; no lower bound, and the true value is unknown"
        assert said in " ".join(text.split())
        assert figure(ran.value.claimed) in text
