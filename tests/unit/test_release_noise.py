"""Release noise at the door: what it refuses, what stands in its ledger, and that a run is one release."""

import copy
import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

from privcheck import (
    ZCDP,
    Claim,
    Declaration,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Parameter,
    PureDP,
    Release,
    ReplaceOne,
    check,
    load_policy,
)
from privcheck.cli.printing import describe_shown_policy
from privcheck.commands.datasets import load
from privcheck.commands.declarations import verify_claim
from privcheck.commands.online_runs import load_world, run_online, settle_together
from privcheck.commands.run_outputs import show_policy
from privcheck.commands.runs import run
from privcheck.commands.settings import settle
from privcheck.declare.mechanisms import DiscreteGaussianNoise, GaussianNoise
from privcheck.declare.statistics import VisitCounts
from privcheck.errors import ChannelError, LedgerError, ParameterError
from privcheck.pricing import account
from privcheck.reports.summary import notices
from privcheck.reports.values import About, Report
from privcheck.runtime import noise, read_ledger, registry
from privcheck.runtime.discretisation import as_drawn
from privcheck.runtime.noise import ReleaseNoise
from privcheck.runtime.offline import RunRequest
from privcheck.runtime.spending import check_ledger, price_ledger
from privcheck.terms.guarantees import GaussianDP
from privcheck.terms.symbols import A, H, S

NOISE = DiscreteGaussianNoise(scale=3.0)


def choose(name, **given):
    """Returns an algorithm's setting with a few simulated users."""
    algorithm = registry.algorithm(name)
    source = load(env="riverswim", given={"H": "3", "n": "40", **given}, algorithm=algorithm, seed=1, data=None,
                  rewards=None, features=None)  # fmt: skip
    return settle(algorithm, source.given, sizes=source.sizes), source


def test_what_is_no_whole_number_is_refused_before_anything_is_drawn():
    source = ReleaseNoise()
    for value in (0.5, np.nan, np.inf, 2.0**52):
        with pytest.raises(ChannelError, match="whole numbers of at most 2⁵¹"):
            source.add(NOISE, np.array([1.0, value]), release=0, part=0)
    with pytest.raises(ChannelError, match="'gaussian' is neither"):
        source.add(GaussianNoise(scale=1.0), np.zeros(2), release=0, part=0)
    with pytest.raises(ChannelError, match="at most 2⁴⁵"):
        source.add(DiscreteGaussianNoise(scale=1e14), np.zeros(2), release=0, part=0)
    source.add(NOISE, np.zeros(2), release=0, part=0)  # nothing of all that counts as a draw


def test_a_slice_is_drawn_once():
    source = ReleaseNoise()
    source.add(NOISE, np.zeros(2), release=0, part=0)
    source.add(NOISE, np.zeros(2), release=0, part=1)
    with pytest.raises(ChannelError, match="a second draw would be a second release"):
        source.add(NOISE, np.zeros(2), release=0, part=0)


def test_values_keep_their_shape_and_large_ones_their_digits():
    exact = np.array([[2.0**51, -(2.0**51)], [7.0, 0.0]])
    noisy = ReleaseNoise().add(DiscreteGaussianNoise(scale=1e-2), exact, release=0, part=0)  # e^(−5000): no noise
    assert np.array_equal(noisy, exact)
    assert noisy is not exact


@pytest.mark.parametrize("use", [ForkingPickler.dumps, copy.copy, copy.deepcopy])
def test_copies_are_refused(use):
    with pytest.raises(ChannelError, match="a release is made in one process"):
        use(ReleaseNoise())


FORKED = """
import os, sys
import numpy as np
from privcheck.errors import ChannelError
from privcheck.declare.mechanisms import DiscreteGaussianNoise
from privcheck.runtime.noise import ReleaseNoise
source = ReleaseNoise()
child = os.fork()
if child == 0:
    try:
        source.add(DiscreteGaussianNoise(scale=1.0), np.zeros(2), release=0, part=0)
    except ChannelError:
        os._exit(7)
    os._exit(0)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_is_refused():
    assert subprocess.run([sys.executable, "-c", FORKED], check=False, timeout=120).returncode == 7


def test_without_the_extra_one_message_says_how_to_install_it(monkeypatch):
    def missing(_):
        raise PackageNotFoundError

    monkeypatch.setattr(noise, "version", missing)
    setting, source = choose("dp-apvi")
    with pytest.raises(ParameterError, match=r"not installed: pip install 'privcheck\[release\]'$"):
        run(setting, source, noise="release")
    monkeypatch.setattr(noise, "version", lambda _: "0.12.1")
    with pytest.raises(ParameterError, match=r"at least 0\.14; 0\.12\.1 is installed: pip install"):
        ReleaseNoise()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("dp-apvi", {}),
        ("dp-apvi", {"rewards": "released"}),
        ("dp-apvi-laplace", {}),
        ("dp-vapvi", {}),
        ("calibrated-vapvi", {}),
    ],
)
def test_a_run_charges_what_is_drawn_and_says_that_it_protects(name, given, tmp_path):
    setting, source = choose(name, **given)
    ran = run(setting, source, noise="release", out=tmp_path)
    header, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert (header["protects"], header["as_declared"]) == (True, True)
    assert {entry.charge.law for entry in entries if entry.charge} <= {"discrete gaussian", "discrete laplace"}
    drawn = as_drawn(setting.declared, setting.values)
    check_ledger(header, entries, drawn, setting.values)
    with pytest.raises(LedgerError):
        check_ledger(header, entries, setting.declared, setting.values)
    declared, spent = account(setting.declared).at(setting.values), price_ledger(header, entries)
    if name == "dp-apvi-laplace":
        assert spent.pure_epsilon <= declared.pure * (1 + 1e-12)
    else:
        assert declared.rho * (1 - 4e-6) <= spent.rho <= declared.rho * (1 + 1e-12)
    assert ran.ledger.protects
    assert load_policy(tmp_path).record.guarantee.protects
    warned = {notice.title for notice in notices_of(ran)}
    assert not warned & {"Simulated noise: not for release", "No noise was drawn", "Noise source not recorded"}
    with pytest.raises(ParameterError, match="holds the ledger of an earlier run"):
        run(setting, private(source), noise="release", out=tmp_path)


def notices_of(ran):
    return notices(Report(privcheck=About(version="0"), run=ran))


def private(source):
    return replace(source, data=replace(source.data, public=False))


def test_a_release_is_judged_as_the_discrete_mechanism():
    setting, _ = choose("dp-apvi", rewards="released")
    judged = setting.with_noise("release").judged
    assert {release.mechanism.law.name for release in judged.declared.releases} == {"discrete gaussian"}
    assert verify_claim(judged).verdict == "holds"
    assert setting.with_noise("simulated").judged == setting


def test_a_report_of_a_release_prices_what_was_drawn_and_says_so():
    """And its curve bounds both mechanisms: the audits, which are compared with it, draw the declared noise."""
    setting, _ = choose("dp-apvi")
    report = check("dp-apvi", env="riverswim", n=40, H=3, trials=100, noise="release", workers=1)
    assert {release.mechanism.split(",")[0] for release in report.budget.releases} == {"discrete Gaussian"}
    assert {release.law for release in report.calibrate.releases} == {"discrete gaussian"}
    assert {release.mechanism.split(",")[0] for release in report.show.releases} == {"Gaussian"}
    assert "Release noise is discrete" in [notice.title for notice in notices(report)]
    drawn, declared = (
        account(one).at(setting.values) for one in (as_drawn(setting.declared, setting.values), setting.declared)
    )
    priced, curve = report.budget.guarantee, report.budget.curve
    assert priced.epsilon == drawn.epsilon(priced.delta) > declared.epsilon(priced.delta)
    assert curve.delta_upper == tuple(max(drawn.delta(e), declared.delta(e)) for e in curve.epsilon)


def test_simulated_runs_protect_nobody_and_cost_what_is_declared(tmp_path):
    setting, source = choose("dp-apvi")
    ran = run(setting, source, out=tmp_path)
    header, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert (header["protects"], header["as_declared"], ran.ledger.protects) == (False, True, False)
    assert price_ledger(header, entries).rho == pytest.approx(account(setting.declared).at(setting.values).rho)
    assert "Simulated noise: not for release" in [notice.title for notice in notices_of(ran)]


def test_replicates_are_several_releases():
    setting, source = choose("dp-apvi")
    with pytest.raises(ParameterError, match="2 replicates with release noise are 2 releases"):
        run(setting, source, noise="release", replicates=2)
    with pytest.raises(ParameterError, match="2 releases"):
        setting.algorithm.learn_from(
            RunRequest(setting=setting.setting, data=source.data, noise="release", replicates=2)
        )


def test_a_run_that_was_cut_short_is_not_drawn_again(tmp_path, monkeypatch):
    setting, source = choose("dp-apvi")
    honest, calls = ReleaseNoise.add, []

    def interrupted(self, *args, **how):
        calls.append(how)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return honest(self, *args, **how)

    monkeypatch.setattr(ReleaseNoise, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(setting, source, noise="release", out=tmp_path)
    torn = (tmp_path / "ledger.jsonl.partial").read_text().splitlines()
    assert len(torn) == 3  # the header, and what left before
    with pytest.raises(ParameterError, match="interrupted run"):
        run(setting, source, noise="release", out=tmp_path)
    assert (tmp_path / "ledger.jsonl.partial").read_text().splitlines() == torn


def online(name, **given):
    algorithm = registry.algorithm(name)
    world, rest = load_world("riverswim", {"H": "3", "K": "600", **given}, seed=0)
    return settle_together([algorithm], rest, world)[0], world


def test_calibrated_ucb_vi_draws_release_noise_and_leaves_no_checkpoint(tmp_path):
    setting, world = online("calibrated-ucb-vi")
    ran = run_online(setting, world, noise="release", out=tmp_path)
    header, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert ran.ledger.protects
    assert header["noise"].startswith("release: ")
    check_ledger(header, entries, as_drawn(setting.declared, setting.values), setting.values)
    assert ran.spent.rho <= account(setting.declared).at(setting.values).rho
    assert not list(tmp_path.glob("checkpoint*"))
    with pytest.raises(ParameterError, match="is not continued"):
        run_online(setting, world, noise="release", out=tmp_path)


def test_agents_that_draw_in_a_kernel_refuse_and_name_those_that_do_not():
    setting, world = online("private-ucb-vi-central")
    with pytest.raises(
        ParameterError, match="release noise is available for calibrated-ucb-vi, calibrated-vapvi, dp-apvi"
    ):
        run_online(setting, world, noise="release")


def declared(mechanism, claim, **how):
    return Declaration(
        name="x", title="x", source="x", relation=ReplaceOne("trajectory"),
        releases=(Release("visits", VisitCounts(H, S, A), mechanism, **how),), claim=Claim(claim, source="x"),
        parameters=tuple(Parameter(name=n, default=2, kind="count", meaning=n) for n in "HSA"),
    )  # fmt: skip


def test_discrete_declarations_stay_and_others_are_refused():
    for mechanism, claim in ((DiscreteGaussian(variance=4), ZCDP(1)), (DiscreteLaplace(scale=4), PureDP(1))):
        given = declared(mechanism, claim)
        assert as_drawn(given, {}).releases == given.releases
    for name, why in (("sdp-pe", "discrete Gaussian or Laplace"), ("dp-lsvi-ucb-pp-as-printed", "the same noise")):
        setting = settle(registry.algorithm(name), {})
        with pytest.raises(ParameterError, match=why):
            as_drawn(setting.declared, setting.values)
    with pytest.raises(ParameterError, match=r"claims in zCDP, pure and \(ε, δ\)-DP"):
        as_drawn(declared(Gaussian(variance=4), GaussianDP(1)), {})


def test_a_policy_is_publishable_only_where_what_it_comes_with_was_compared(tmp_path):
    setting, source = choose("dp-apvi", n=40, H=2)
    ran = run(setting, source, noise="release", out=tmp_path / "compared")
    kept = load_policy(tmp_path / "compared").record.guarantee
    assert kept.compared == ran.compared
    assert kept.compared.startswith("policy, values, claimed, diagnostics, remarks, printed lines, log records")
    assert "bit for bit" in kept.compared
    assert kept.publishable
    assert "may be published (compared: policy" in shown(tmp_path / "compared")
    unseen = run(setting, source, noise="release", out=tmp_path / "unseen", compared="")
    assert unseen.policy.record.guarantee.protects
    assert "NOT to be published: it was not compared" in shown(tmp_path / "unseen")
    assert "do not publish before" in unseen.policy.record.value.note


def shown(directory):
    return describe_shown_policy(show_policy(directory, picture=None, whole=False))


def test_an_agent_that_hands_back_exact_data_is_refused_before_anything_is_drawn(tmp_path):
    setting, source = choose("dp-apvi", n=40, H=2)
    honest, seen, begun = setting.algorithm.offline, {}, []

    def hold(data, declaration, channel):
        seen["mean"] = float(data.states.sum())
        return honest.privatizer(data, declaration, channel)

    def make(given, *, reward):
        learn = honest.make(given, reward=reward)
        return lambda billboard, publish, **more: replace(learn(billboard, publish, **more), claimed=seen["mean"])

    leaky = replace(setting.algorithm, offline=replace(honest, make=make, privatizer=hold))
    with pytest.raises(ParameterError, match=r"dp-apvi is not released: .*returns other figures: claimed"):
        run(replace(setting, algorithm=leaky), source, noise="release", out=tmp_path, begin=lambda: begun.append(1))
    assert not begun
    assert not list(tmp_path.iterdir())
