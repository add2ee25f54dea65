"""Accounting: from numbers to privacy costs.

For callers with numbers only: events, `compose`, and the curve's `epsilon` and `delta`, each with a tight value and a
certified upper bound; filters and odometers, calibration, plans, and conversions between guarantees. Declarations and
records of runs are priced by `privcheck.pricing`.

Imports `errors` and `terms` only: the room knows numbers, and nothing that declares, prices, verifies or runs.
Promises: every upper bound is rounded up and every lower bound down, and no answer depends on the order of calls.
"""

from privcheck.accounting.accuracy import error_bound, spread_for_error
from privcheck.accounting.billboard_lemma import Check, JointClaim, joint
from privcheck.accounting.calibration import Calibrated, CalibratedWhole, calibrate, calibrate_whole
from privcheck.accounting.conversions import (
    claim_delta,
    claim_epsilon,
    gdp_delta,
    gdp_epsilon,
    pure_delta,
    zcdp_delta,
    zcdp_to_epsilon,
)
from privcheck.accounting.currencies import Compressed, Cost, Currency, compress_to_mu
from privcheck.accounting.curve import Curve, compose, parallel
from privcheck.accounting.dp_events import from_dp_event
from privcheck.accounting.events import (
    Event,
    above_threshold,
    allocated,
    approximate,
    bounded_range,
    discrete_gaussian,
    discrete_laplace,
    exponential_mechanism,
    gaussian,
    gaussian_histogram,
    laplace,
    laplace_histogram,
    loss_distribution,
    matrix_gaussian,
    matrix_poisson_gaussian,
    matrix_random_allocation,
    matrix_sensitivity,
    mixture_of_gaussians,
    noisy_max,
    non_private,
    permute_and_flip,
    poisson,
    poisson_gaussian,
    privacy_profile,
    pure,
    random_allocation,
    randomized_response,
    renyi_curve,
    symmetric_gaussian,
    trade_off,
    tree,
    truncated_poisson_gaussian,
    with_replacement,
    without_replacement,
    zcdp,
)
from privcheck.accounting.events.shuffled import shuffled, shuffled_bits, shuffled_randomized_response
from privcheck.accounting.figures import Figure, Figures
from privcheck.accounting.filters import Filter
from privcheck.accounting.groups import group, user_level
from privcheck.accounting.odometers import Odometer
from privcheck.accounting.opacus_accountant import OpacusAccountant
from privcheck.accounting.plans import Plan
from privcheck.accounting.repeating import repeat_and_select
from privcheck.accounting.targets import Advantage, BayesRisk, Posterior, Reconstruction, TruePositiveRate
from privcheck.accounting.to_dp_events import to_dp_event, to_dp_relation

__all__ = [
    "Advantage",
    "BayesRisk",
    "Calibrated",
    "CalibratedWhole",
    "Check",
    "Compressed",
    "Cost",
    "Currency",
    "Curve",
    "Event",
    "Figure",
    "Figures",
    "Filter",
    "JointClaim",
    "Odometer",
    "OpacusAccountant",
    "Plan",
    "Posterior",
    "Reconstruction",
    "TruePositiveRate",
    "above_threshold",
    "allocated",
    "approximate",
    "bounded_range",
    "calibrate",
    "calibrate_whole",
    "claim_delta",
    "claim_epsilon",
    "compose",
    "compress_to_mu",
    "discrete_gaussian",
    "discrete_laplace",
    "error_bound",
    "exponential_mechanism",
    "from_dp_event",
    "gaussian",
    "gaussian_histogram",
    "gdp_delta",
    "gdp_epsilon",
    "group",
    "joint",
    "laplace",
    "laplace_histogram",
    "loss_distribution",
    "matrix_gaussian",
    "matrix_poisson_gaussian",
    "matrix_random_allocation",
    "matrix_sensitivity",
    "mixture_of_gaussians",
    "noisy_max",
    "non_private",
    "parallel",
    "permute_and_flip",
    "poisson",
    "poisson_gaussian",
    "privacy_profile",
    "pure",
    "pure_delta",
    "random_allocation",
    "randomized_response",
    "renyi_curve",
    "repeat_and_select",
    "shuffled",
    "shuffled_bits",
    "shuffled_randomized_response",
    "spread_for_error",
    "symmetric_gaussian",
    "to_dp_event",
    "to_dp_relation",
    "trade_off",
    "tree",
    "truncated_poisson_gaussian",
    "user_level",
    "with_replacement",
    "without_replacement",
    "zcdp",
    "zcdp_delta",
    "zcdp_to_epsilon",
]
