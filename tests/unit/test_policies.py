"""Policies as files: what is saved is loaded again, what was changed is refused, what is asked is answered."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import Policy, load_policy
from privcheck.cli.main import main
from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports.policies import describe_policy
from privcheck.reports.values import PolicyLabels, PolicyRecord, PolicyValue

WORTH = PolicyValue(true=None, claimed=0.25, note="an estimate")


def policy_of(probabilities, **changes):
    steps, states, actions = probabilities.shape
    record = PolicyRecord(
        policy="", digest="", algorithm="mine", learned_from="trips", steps=steps, states=states, actions=actions,
        guarantee=None, value=WORTH, **changes,
    )  # fmt: skip
    return Policy(probabilities=probabilities, record=record)


def random_policy(steps, states, actions, seed, **changes):
    return policy_of(np.random.default_rng(seed).dirichlet(np.full(actions, 0.3), (steps, states)), **changes)


NAMED = PolicyLabels(states=("well", "ill", "gone"), actions=("wait", "treat"))


@settings(max_examples=30)
@given(st.tuples(*[st.integers(1, 6)] * 3), st.integers(0, 2**32))
def test_what_is_saved_is_loaded(tmp_path_factory, sizes, seed):
    policy = random_policy(*sizes, seed)
    path = policy.save(tmp_path_factory.mktemp("p"))
    for place in (path, path.with_name("policy.json"), path.parent):
        again = load_policy(place)
        np.testing.assert_array_equal(again.probabilities, policy.probabilities)
        assert dataclasses.replace(again.record, policy="", digest="") == policy.record
        assert again.record.to_dict() == json.loads(path.with_name("policy.json").read_text(encoding="utf-8"))


def test_labels_name_states_and_actions(tmp_path):
    policy = load_policy(random_policy(4, 3, 2, 0, labels=NAMED).save(tmp_path))
    likeliest = policy.probabilities[2, 1].argmax()
    assert policy.act(2, "ill") == policy.act(2, 1) == NAMED.actions[likeliest]
    frame = policy.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["step", "state", "action", "probability"]
    assert set(frame.state) == set(NAMED.states)
    assert frame.groupby(["step", "state"]).probability.sum().to_numpy() == pytest.approx(1)


def test_actions_are_drawn_by_their_probabilities():
    """False alarm: below 1e-9 (Hoeffding, 20 000 draws within 0.025)."""
    policy = policy_of(np.array([[[0.2, 0.8]]]))
    rng = np.random.default_rng(1)
    drawn = [policy.act(0, 0, rng) for _ in range(20_000)]
    assert abs(drawn.count("1") / 20_000 - 0.8) < 0.025
    assert policy.act(0, 0) == "1"


@pytest.mark.parametrize(
    ("step", "state", "says"),
    [
        (4, 0, "step 4: expected 0 to 3"),
        (-1, 0, "step -1"),
        (0, 3, "state 3: expected a code from 0 to 2"),
        (0, -1, "state -1"),
        (0, "sick", "no state 'sick'; the policy knows well, ill, gone"),
    ],
)
def test_steps_and_states_that_are_none_are_refused(step, state, says):
    with pytest.raises(ParameterError, match=says):
        random_policy(4, 3, 2, 0, labels=NAMED).act(step, state)


@pytest.mark.parametrize(
    "wrong", [np.ones((1, 2, 2)), np.array([[[1.5, -0.5]]]), np.array([[[np.nan, 1.0]]]), np.zeros((1, 1, 2))]
)
def test_what_is_no_policy_is_refused(wrong):
    with pytest.raises(ParameterError, match="probabilities"):
        policy_of(wrong)


def test_labels_must_be_as_many_and_different():
    for labels in (PolicyLabels(states=("a", "b")), PolicyLabels(actions=("a", "a"))):
        with pytest.raises(ParameterError, match="different labels"):
            random_policy(1, 3, 2, 0, labels=labels)


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    path = random_policy(2, 3, 2, 0).save(tmp_path)
    other = random_policy(2, 3, 2, 1).save(tmp_path / "other")
    path.write_bytes(other.read_bytes())
    with pytest.raises(FileFormatError, match=r"does not match policy\.npz"):
        load_policy(tmp_path)
    record = json.loads((tmp_path / "policy.json").read_text(encoding="utf-8"))
    (tmp_path / "policy.json").write_text(json.dumps(record | {"steps": "two"}), encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"policy\.steps"):
        load_policy(tmp_path)
    (tmp_path / "policy.json").write_text("{", encoding="utf-8")
    with pytest.raises(FileFormatError, match="not a policy"):
        load_policy(tmp_path)
    path.unlink()
    with pytest.raises(FileFormatError, match=r"no policy in .* writes one"):
        load_policy(tmp_path)
    with pytest.raises(FileFormatError, match=r"expected policy\.npz, policy\.json or the directory"):
        load_policy(tmp_path / "other.npz")


def test_rows_join_equal_steps_and_say_what_is_left_out():
    table = np.zeros((5, 2, 2))
    table[:, 0, 1] = 1
    table[:3, 1, 0] = table[3:, 1, 1] = 1
    policy = policy_of(table)
    rows = [("0", "0–4", "1", "1"), ("1", "0–2", "0", "1"), ("1", "3–4", "1", "1")]
    assert describe_policy(policy) == rows
    assert describe_policy(policy, most=1) == [rows[0], ("… and 2 more rows", "", "", "")]


def test_a_run_leaves_its_policy_and_the_command_shows_it(tmp_path):
    def call(*arguments):
        return CliRunner().invoke(main, [*map(str, arguments)])

    asked = ("run", "dp-apvi", "--env", "riverswim", "--set", "n=200", "--set", "H=4", "--set", "S=3")
    ran = call(*asked, "--replicates", "3", "--out", tmp_path, "--json")
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["policy_file"] == "policy.npz"
    shown = call("policy", tmp_path, "--out", tmp_path / "p.svg", "--json")
    document = json.loads(shown.stdout)
    assert {"policy", "labels", "guarantee", "value"} <= document.keys()
    assert document["labels"] == {"states": ["0", "1", "2"], "actions": ["0", "1"]}
    assert document["guarantee"]["ledger"] == json.loads(ran.stdout)["ledger"]["digest"]
    assert "rho = 1" in document["guarantee"]["claim"]
    assert (tmp_path / "p.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert "policy of dp-apvi, learned from riverswim" in call("policy", tmp_path).stdout
    refused = call("policy", tmp_path, "--out", tmp_path / "p.doc")
    assert refused.exit_code == 2
    assert ".svg, .png, .pdf" in refused.stderr


def test_an_online_run_leaves_its_policy_and_a_baseline_no_guarantee(tmp_path):
    asked = ["run", "ucb-vi", "--env", "riverswim", "--set", "K=50", "--set", "H=3", "--set", "S=3"]
    ran = CliRunner().invoke(main, [*asked, "--out", str(tmp_path), "--json"])
    assert ran.exit_code == 0, ran.stderr
    policy = load_policy(tmp_path)
    assert policy.record.guarantee is None
    assert policy.record.value.true == pytest.approx(json.loads(ran.stdout)["curves"]["value"]["mean"][-1])
    assert "not a private algorithm" in policy.record.value.note
