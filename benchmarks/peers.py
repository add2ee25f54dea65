"""Other testers of black boxes, asked about the same functions; blackbox.py asks those that are installed.

* jax-privacy: `CanaryScoreAuditor.epsilon_clopper_pearson` over all thresholds with its Bonferroni correction; for
  claims of Gaussian DP `epsilon_from_gdp`.
* dp_auditorium, Google's: `HistogramTester` with 20 bins, and `HockeyStickPropertyTester` with its default model and
  training (TensorFlow). Its folder `python/dp_auditorium` of google/differential-privacy has to be on the path.
* DP-Sniper (Bichsel et al. 2021): both classifiers of its paper, logistic regression and a perceptron (10, 5), in
  both directions, with its settings but for 30 batches. A third of the runs trains; a third places the threshold at c
  = .01, as in the paper, and at .1, which suits fewer runs than its 10⁷, and chooses among the eight attacks; a third
  tests the one that is chosen, by its Clopper–Pearson bounds. It knows pure ε: at δ > 0 its lower bound is that of
  (p₁ − δ)/p₂. The folder of eth-sri/dp-sniper has to be on the path; PyTorch.
* Delta-Siege (Lokna et al. 2023): its `WitnessOptimization` over a perceptron (10, 5) on standardised numbers, in
  both directions, with thirds of the runs as above. A claim of Gaussian DP is searched along its whole curve, one of
  (ε, δ) at its δ. “Bits” is its own classifier, a logistic regression on the 64 bits of each number, of functions
  with at most four numbers. A float 0 + y and a float 1 + y have other last bits (Mironov 2012), so that it accuses
  functions that are correct for real numbers; rounded to multiples of 2⁻²⁰, all of those that were asked again (16 of
  19) were spared. Our audit puts outputs on a grid first, and `audit_float_noise` tests the bits. The folder of
  eth-sri/Delta-Siege has to be on the path; its own mechanisms and its copy of DP-Opt, which need eight libraries,
  are left out.

They test a claim of (ε, δ). One of zCDP or Gaussian DP is handed to them as the ε that it implies at δ = .01, but for
Delta-Siege. The first two take one number a run, and learn none: they are given the sum of an output's numbers, and
its first number, each at half of α. The others are given all numbers; the hockey-stick tester has them standardised
by the first tenth of the runs. All share α among pairs; those of jax-privacy and dp_auditorium among directions and
scores too. Outputs that are no numbers are written as numbers first: a text by the numbers in it and its length,
None, NaN, infinity, an exception and a missing place by one number each, which DP-Sniper is told as flags, a dict by
its keys' hashes and its values.
"""

from __future__ import annotations

import importlib
import math
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import GeneratorType, ModuleType

import numpy as np
from scipy.optimize import brentq

from privcheck import ApproxDP, GaussianDP, PureDP
from privcheck.accounting.engine.gdp import gdp_epsilon

DELTA = 0.01  # at which claims of zCDP and GDP are tested
BINS = 20
NONE, ERROR, MISSING = -1e3, -2e3, -3e3


def numbers(output):
    """Returns an output as a list of numbers."""
    if isinstance(output, str):
        return [*map(float, re.findall(r"-?\d+\.?\d*", output)), float(len(output))]
    if isinstance(output, Mapping):
        return [x for key, value in output.items() for x in (zlib.crc32(str(key).encode()) % 997, *numbers(value))]
    if hasattr(output, "itertuples"):  # a frame: its index is the first number of a row
        output = [value for row in output.itertuples() for value in row]
    if isinstance(output, list | tuple | GeneratorType):
        return [x for value in output for x in numbers(value)]
    if isinstance(output, Exception):
        return [ERROR]
    return [NONE if output is None or not math.isfinite(output) else float(output)]


def outputs(given, dataset, runs, rng):
    """Returns one list of numbers a run."""

    def once():
        try:
            return given.run(dataset, rng)
        except Exception as error:  # noqa: BLE001  what it raises is an output
            return error

    if given.run.__code__.co_argcount == 2:
        return [numbers(once()) for _ in range(runs)]
    return np.asarray(given.run(dataset, runs, rng), dtype=np.float64).reshape(runs, -1)


def table(given, pair, runs, seed):
    """Returns the outputs on D and on D′, each (runs, columns)."""
    both = [
        outputs(given, dataset, runs, rng)
        for dataset, rng in zip(pair, np.random.default_rng(seed).spawn(2), strict=True)
    ]
    width = max(len(row) for rows in both for row in rows)
    return [
        np.array([[*row, *[MISSING] * (width - len(row))] for row in rows]) if isinstance(rows, list)
        else np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=MISSING)
        for rows in both
    ]  # fmt: skip


def approximate(claim):
    """Returns the (ε, δ) that a claim implies."""
    if isinstance(claim, PureDP):
        return claim.epsilon.number(rounding="up"), 0.0
    if isinstance(claim, ApproxDP):
        return claim.epsilon.number(rounding="up"), claim.delta.number(rounding="up")
    if isinstance(claim, GaussianDP):
        return gdp_epsilon(claim.mu.number(rounding="up"), DELTA), DELTA
    orders = np.linspace(1.001, 60, 100_000)  # Canonne, Kamath & Steinke 2020, Corollary 13
    rho = claim.rho.number(rounding="up")
    return float((rho * orders + np.log(1 / (orders * DELTA)) / (orders - 1) + np.log1p(-1 / orders)).min()), DELTA


def scores(first, second):
    """Returns one number a run, in one way or two, on D and on D′."""
    sums = first.sum(axis=1), second.sum(axis=1)
    return [sums] if first.shape[1] == 1 else [sums, (first[:, 0], second[:, 0])]


def jax_privacy(first, second, claim, *, alpha):
    from jax_privacy.auditing import CanaryScoreAuditor

    epsilon, delta = approximate(claim)
    ways = [(sign * x, sign * y) for x, y in scores(first, second) for sign in (1, -1)]
    for inside, outside in ways:
        auditor = CanaryScoreAuditor(inside, outside)
        if isinstance(claim, GaussianDP):
            found = auditor.epsilon_from_gdp(alpha / len(ways), delta)
        else:
            found = auditor.epsilon_clopper_pearson(alpha / len(ways), delta, one_sided=False)
        if found > epsilon:
            return True
    return False


def histogram(first, second, claim, *, alpha):
    without_its_generators()
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers.histogram_tester import HistogramTester

    epsilon, delta = approximate(claim)
    if not epsilon:
        return False
    ways = [way for x, y in scores(first, second) for way in ((x, y), (y, x))]
    pilot = first.shape[0] // 10
    for x, y in ways:
        low, high = np.quantile(np.concatenate([x[:pilot], y[:pilot]]), [0.001, 0.999])
        config = property_tester_config.HistogramPropertyTesterConfig(
            test_discrete_mechanism=False, histogram_size=BINS, min_value=low - 1e-9, max_value=high + 1e-9,
            approximate_dp=privacy_property.ApproximateDp(epsilon=epsilon, delta=delta),
        )  # fmt: skip
        tester = HistogramTester(config)
        if tester.reject_property(tester.estimate_lower_bound(x[pilot:], y[pilot:], alpha / len(ways))):
            return True
    return False


def hockey_stick(first, second, claim, *, alpha):
    without_its_generators()
    os.environ.update(TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3")
    import tensorflow as tf
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers import hockey_stick_tester

    epsilon, delta = approximate(claim)
    if not epsilon:
        return False
    tf.keras.utils.set_random_seed(0)
    pilot = first.shape[0] // 10
    some = np.concatenate([first[:pilot], second[:pilot]])
    first, second = (
        (rows[pilot:] - some.mean(axis=0)) / np.maximum(some.std(axis=0), 1e-6) for rows in (first, second)
    )
    for x, y in ((first, second), (second, first)):
        config = property_tester_config.HockeyStickPropertyTesterConfig(
            training_config=hockey_stick_tester.make_default_hs_training_config(),
            approximate_dp=privacy_property.ApproximateDp(epsilon=epsilon, delta=delta),
        )
        model = hockey_stick_tester.make_default_hs_base_model()
        tester = hockey_stick_tester.HockeyStickPropertyTester(config, model)
        if tester.reject_property(tester.estimate_lower_bound(x, y, alpha / 2)):
            return True
    return False


class Drawn:
    """Outputs that were drawn before, as a mechanism whose datasets are 0 and 1; each part in its order."""

    def __init__(self, first, second):
        self.rows, self.used = (first, second), [0, 0]

    def m(self, dataset, n_samples=1):
        """Returns the next outputs."""
        begin = self.used[dataset]
        self.used[dataset] = begin + n_samples
        return self.rows[dataset][begin : begin + n_samples]


def thirds(first, second):
    """Returns the runs in three parts of one size, for training, choosing and testing."""
    size = len(first) // 3
    return size, [(first[i * size : (i + 1) * size], second[i * size : (i + 1) * size]) for i in range(3)]


def dp_sniper(first, second, claim, *, alpha):
    import torch
    from dpsniper.attack.dpsniper import DPSniper
    from dpsniper.attack.ml_attack import MlAttack
    from dpsniper.classifiers import classifier_factory as factories
    from dpsniper.classifiers.feature_transformer import FlagsFeatureTransformer
    from dpsniper.classifiers.torch_optimizer_factory import AdamOptimizerFactory, SGDOptimizerFactory
    from dpsniper.probability.binomial_cdf import lcb, ucb
    from dpsniper.probability.estimators import PrEstimator
    from dpsniper.search.ddconfig import DDConfig
    from dpsniper.utils.paths import set_output_directory
    from dpsniper.utils.torch import torch_initialize

    epsilon, delta = approximate(claim)
    size, (train, choose, test) = thirds(first, second)
    size -= size % 1000 if size >= 10_000 else 0  # as its configuration asks
    config = DDConfig(
        n_train=size, n=size, n_check=size, n_final=size, n_processes=1, training_batch_size=-(-size // 30)
    )
    flags = [value for value in (NONE, ERROR, MISSING) if (first == value).any() or (second == value).any()]
    given = {
        "in_dimensions": first.shape[1] * (1 + len(flags)),
        "feature_transform": FlagsFeatureTransformer(flags) if flags else None,
    }
    classifiers = (
        factories.LogisticRegressionFactory(optimizer_factory=SGDOptimizerFactory(), **given),
        factories.MultiLayerPerceptronFactory(
            optimizer_factory=AdamOptimizerFactory(), regularization_weight=0.0001, **given
        ),
    )

    def shown(attack, part, inside, level):
        """Returns the lower bound on ε of an attack, at 1 − level."""
        drawn = PrEstimator(Drawn(*part), size, config)
        hits = [int(drawn.compute_pr_estimate(dataset, attack) * size) for dataset in (inside, 1 - inside)]
        low, high = lcb(size, hits[0], level / 2) - delta, ucb(size, hits[1], level / 2)
        return math.log(low / high) if low > 0 else -math.inf

    torch_initialize(torch_threads=1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        set_output_directory(folder)
        attacks = []
        for inside in (0, 1):
            for classifier in classifiers:
                drawn = Drawn(*(np.concatenate([a[:size], b[:size]]) for a, b in zip(train, choose, strict=True)))
                attack = DPSniper(drawn, classifier, config).best_attack(inside, 1 - inside)
                ranked = np.sort(attack.classifier.predict_probabilities(choose[1 - inside][:size]))[::-1]
                wider = MlAttack(attack.classifier, *DPSniper._find_threshold(ranked, 0.1 * size))  # noqa: SLF001  its own choice of a threshold
                attacks += [
                    (shown(each, choose, inside, alpha), i, each, inside)
                    for i, each in enumerate((attack, wider), start=len(attacks))
                ]
        _, _, attack, inside = max(attacks)
        return shown(attack, test, inside, alpha) > epsilon


def delta_siege(first, second, claim, *, alpha, bits=False):
    import torch
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    without_its_mechanisms()
    from deltasiege.attack import LinesearchEstimator, WitnessOptimization
    from deltasiege.attack.witnesses import Witness
    from deltasiege.classifiers import BitPatternFeatureTransformer, SklearnClassifier
    from deltasiege.logging import Logger
    from deltasiege.main import Trial
    from deltasiege.mechanism import Mechanism
    from deltasiege.utils import Config

    if bits and first.shape[1] > 4:
        return False
    epsilon, delta = approximate(claim)
    size, parts = thirds(first, second)

    class Recorded(Mechanism):
        """Outputs that were drawn before; `part` says which."""

        part = 0

        def __call__(self, dataset, n):
            return np.ascontiguousarray(parts[self.part][dataset][:n])

        def guarantee_(self, epsilon, delta):
            """Falls as ε or δ rises: e^(−ε), or 1/μ for a claim of Gaussian DP."""
            if not isinstance(claim, GaussianDP):
                return math.exp(-epsilon) if epsilon > -700 else math.inf
            if epsilon <= 0 or delta <= 0:
                return math.inf
            if not math.isfinite(epsilon) or gdp_epsilon(50, delta) < epsilon:
                return 0.0
            if gdp_epsilon(1e-6, delta) >= epsilon:
                return 1e6
            return 1 / brentq(lambda mu: gdp_epsilon(mu, delta) - epsilon, 1e-6, 50, xtol=1e-6)

        def perturb_delta(self, new_delta):
            if not isinstance(claim, GaussianDP):
                return self.epsilon
            return gdp_epsilon(1 / self.g0, new_delta) if 0 < new_delta < 1 else None

    np.random.seed(0)  # noqa: NPY002, TID251  the global generator is what it draws from
    torch.manual_seed(0)
    steps = np.geomspace(1e-9, 0.99, 100) if isinstance(claim, GaussianDP) else np.array([delta])
    classifier = make_pipeline(StandardScaler(), MLPClassifier((10, 5), random_state=0, early_stopping=True))
    if bits:
        classifier = make_pipeline(BitPatternFeatureTransformer(), LogisticRegression(max_iter=1000))
    trial = Trial(
        config=Config(
            n_train=size, n_init=size, n_check=size, n_final=size, batch_size=size, confidence=1 - alpha, n_jobs=1
        ),
        input_pair=(0, 1),
        mechanism=Recorded(epsilon=epsilon, delta=delta),
        classifier_factories=SklearnClassifier.get_factory(classifier=classifier),
        witnesses_factories=WitnessOptimization.get_factory(estimator=LinesearchEstimator(delta_steps=steps)),
        logger=Logger(Logger.State.DOWN),
    )
    trial._init_classifiers()  # noqa: SLF001  the steps of its `run`, each with its own runs
    trial.mechanism.part = 1
    trial._init_witnesess()  # noqa: SLF001  the steps of its `run`, each with its own runs
    trial._run_estimation(Witness.State.Check)  # noqa: SLF001  the steps of its `run`, each with its own runs
    best = min(trial.witnesses, key=lambda witness: witness.estimate_c)
    trial.mechanism.part = 2
    best.state = Witness.State.Final
    best.compute_estimate()
    return bool(best.estimate_c < 1)


def bare(name, folder):
    """Lets modules of a package be imported without what the package imports itself; returns the package."""
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [str(folder)]
    return package


def without_its_mechanisms():
    """Lets Delta-Siege be imported without the libraries that its own mechanisms and DP-Opt's witness call."""
    name, witness = "deltasiege.mechanism", "deltasiege.attack.witnesses.witness_dpopt"
    if name not in sys.modules:
        package = bare(name, Path(find_spec("deltasiege").origin).parent / "mechanism")
        package.__getattr__ = lambda what: getattr(importlib.import_module(f"{name}.mechanism"), what)
        bare(witness, "").WitnessDPOpt = None


def without_its_generators():
    """Lets one of dp_auditorium's testers be imported without Vizier and the other testers' libraries."""
    if "dp_auditorium" not in sys.modules:
        folder = Path(find_spec("dp_auditorium").origin).parent
        bare("dp_auditorium", folder)
        bare("dp_auditorium.testers", folder / "testers")


TESTERS = {
    "jax-privacy": (jax_privacy, ("jax_privacy",)),
    "dp_auditorium, histogram": (histogram, ("dp_auditorium",)),
    "dp_auditorium, hockey-stick": (hockey_stick, ("dp_auditorium", "tensorflow")),
    "DP-Sniper": (dp_sniper, ("dpsniper", "torch", "tensorboard", "sklearn")),
    "Delta-Siege": (delta_siege, ("deltasiege", "torch", "optuna", "sklearn")),
    "Delta-Siege, bits": (partial(delta_siege, bits=True), ("deltasiege", "torch", "optuna", "sklearn")),
}


def installed(name):
    """Returns whether all that a tester needs can be imported."""
    return all(find_spec(module) is not None for module in TESTERS[name][1])


def accuses(name, given, *, trials, seed, confidence=0.99):
    """Returns whether a tester rejects a function's claim on one of its pairs, with `trials` runs on each neighbour."""
    alpha = (1 - confidence) / len(given.pairs)
    return any(
        TESTERS[name][0](*table(given, pair, trials, seed), given.claim, alpha=alpha) for pair in given.pairs
    )  # fmt: skip
