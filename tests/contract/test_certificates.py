"""Every verdict of the registry has a certificate that the checker accepts, or says why it has none."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from privcheck.commands.certificates import CheckedCertificate, certificate_of, run_checker
from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.procedures import GaussianNoisyMax, NoisyMax
from privcheck.declare.relations import ReplaceOne, ZeroOut
from privcheck.declare.schedules import EveryEpisode, Tree
from privcheck.declare.statistics import RewardSums, TransitionCounts, VisitCounts
from privcheck.pricing import Priced
from privcheck.runtime import registry
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import A, H, K, S, epsilon, rho
from privcheck.verification import judge

DECLARED = [name for name in registry.names("algorithms") if registry.algorithm(name).declare is not None]
WITHOUT = {  # no word for their release, their noise or their pair (a sample's replaced unit is none), or more rounds
    # than the checker composes
    "banded-matrix-factorisation", "choice-and-sum", "matrix-factorisation", "private-awr", "published-privorl-n",
    "sdp-pe-as-printed", "shuffled-bandit", "sparse-vector-3",
}  # fmt: skip
UNDECIDED = {"dp-policy-evaluation", "private-q-learning", "published-privorl-j"}


def certified(name: str) -> CheckedCertificate:
    declare = registry.algorithm(name).declare
    assert declare is not None
    return certificate_of(Priced(declare({})))


@pytest.mark.parametrize("name", DECLARED)
def test_a_verdict_is_certified_or_says_why_not(name: str) -> None:
    found = certified(name)
    assert found.brief.accepted == (name not in WITHOUT | UNDECIDED), found.brief.says
    assert found.brief.says.startswith("accepted: " if found.brief.accepted else "not certified: ")
    if found.brief.accepted:
        assert found.certificate is not None
        assert found.brief.digest == found.certificate.digest
        assert len(found.certificate.text) < 16_000


@pytest.mark.parametrize(
    ("name", "priced"), [("gaussian-sparse-vector", "threshold-free"), ("gaussian-noisy-max", "one-score")]
)
def test_prices_of_gaussian_selections_that_are_too_low_are_refuted(name: str, priced: str) -> None:
    declare = registry.algorithm(name).declare
    assert declare is not None
    found = certificate_of(Priced(declare({"priced": priced})))
    assert found.brief.accepted, found.brief.says
    assert found.certificate is not None
    assert found.certificate.kind == "refuted"


@pytest.mark.parametrize(("one_way", "by"), [(False, "C-GDP-APPROX"), (True, "C-NUMERIC")])
def test_few_scores_are_certified_as_one_gaussian_value_and_many_by_their_curve(*, one_way: bool, by: str) -> None:
    best = GaussianNoisyMax("best", std=6, candidates=30 if one_way else 2, monotone=one_way)
    found = certificate_of(Priced(declaration(best, claim=ApproxDP(1, "1/100000"), relation=ReplaceOne("user"))))
    assert found.brief.accepted, found.brief.says
    assert found.certificate is not None
    assert found.certificate.document["steps"][-1]["rule"] == by


def test_nine_in_ten_verdicts_are_certified() -> None:
    assert len(WITHOUT) <= len(set(DECLARED) - UNDECIDED) / 10


SIZES = tuple(Parameter(name=n, default=3, kind="count", meaning="") for n in ("H", "S", "A", "K"))
BUDGETS = tuple(Parameter(name=n, default="1/2", kind="positive", meaning="") for n in ("epsilon", "rho"))


def declaration(*releases, claim, relation=None, **more) -> Declaration:
    return Declaration(
        name="ours", title="ours", source="ours", relation=relation or ReplaceOne(), releases=tuple(releases),
        claim=Claim(claim, source="ours"), parameters=(*SIZES, *BUDGETS), **more,
    )  # fmt: skip


TREES = Release("rewards", RewardSums(H, S, A), Laplace(scale=2 * H * 2 / epsilon), schedule=Tree(leaves=K))
OFTEN = Release("visits", VisitCounts(H, S, A), Gaussian(variance=2 * H * K / rho), schedule=EveryEpisode(outputs=K))
ONCE = Release("moves", TransitionCounts(H, S, A), Gaussian(variance=H / rho))


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (declaration(TREES, claim=PureDP(epsilon), relation=ZeroOut()), "holds-at"),  # 3 leaves: two levels
        (declaration(OFTEN, claim=ZCDP(rho)), "holds-for-all"),
        (declaration(ONCE, claim=ZCDP(rho)), "holds-for-all"),
        (declaration(ONCE, claim=ZCDP(rho * Fraction(19, 20))), "refuted"),
        (declaration(TREES, claim=PureDP(epsilon * Fraction(19, 20))), "refuted"),
        (declaration(OFTEN, claim=ApproxDP(4, "1/1000")), "holds-at"),
        (declaration(OFTEN, claim=ApproxDP("1/2", "1/1000")), "refuted"),
    ],
)
def test_the_certificate_says_what_the_verdict_says(made: Declaration, kind: str) -> None:
    priced = Priced(made)
    found = certificate_of(priced)
    assert found.brief.accepted, found.brief.says
    assert found.brief.kind == kind
    verdict = judge(priced).verdict
    assert found.certificate is not None
    assert found.certificate.document["conclusion"]["verdict"] == verdict


def test_what_is_stated_is_named_in_the_accepted_line() -> None:
    chosen = NoisyMax("winner", noise="laplace", scale=2 / epsilon, candidates=5)
    found = certificate_of(Priced(declaration(chosen, claim=PureDP(epsilon))))
    assert found.brief.accepted
    assert "stated-sensitivity: winner" in found.brief.says


def test_joint_dp_names_what_vouches_for_its_premise() -> None:
    joint = Joint(sees=("billboard", "own data"))
    for sees, about in ((joint, "outputs"), (Joint(sees=("others' data",)), "releases")):
        claim = Claim(ZCDP(rho), source="ours", joint=sees)
        priced = Priced(replace(declaration(OFTEN, claim=ZCDP(rho)), claim=claim))
        found, ran = certificate_of(priced), certificate_of(priced, "actions; bit for bit on 8 pairs of neighbours")
        assert found.brief.accepted, found.brief.says
        assert found.certificate is not None
        assert found.certificate.document["conclusion"]["about"] == about
        assert ("as stated (the declaration" in found.brief.says) == (about == "outputs")
        assert ("evidence and no proof (actions; bit for bit" in ran.brief.says) == (about == "outputs")


def test_a_changed_certificate_is_rejected_in_the_process_of_its_own() -> None:
    certificate = certified("dp-apvi").certificate
    assert certificate is not None
    assert run_checker(certificate.text)[0] == 0
    document = json.loads(certificate.text)
    document["declared"]["releases"][0]["mechanism"]["variance"] = "1/7"
    code, line = run_checker(json.dumps(document))
    assert (code, line.split(":")[1].strip()) == (1, "digest")
    document = json.loads(certificate.text)
    document["format"] = "privcheck-certificate/9"
    assert run_checker(json.dumps(document))[0] == 3


def test_the_command_writes_what_the_checker_reads(tmp_path: Path) -> None:
    file = tmp_path / "dp-apvi.json"
    command = [sys.executable, "-m", "privcheck", "verify", "dp-apvi", "--certificate", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Checked independently, by a program that shares no code with privcheck" in " ".join(done.stdout.split())
    checked = subprocess.run([sys.executable, "-m", "privcheck_check", str(file)], capture_output=True, check=True)
    assert checked.stdout.startswith(b"accepted: dp-apvi")
    command = [sys.executable, "-m", "privcheck", "verify", "shuffled-bandit", "--certificate", str(tmp_path / "none")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "not certified" in refused.stderr
    assert not (tmp_path / "none").exists()
