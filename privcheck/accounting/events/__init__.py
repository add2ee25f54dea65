"""Events: pure values for the releases of mechanisms, with counts."""

from privcheck.accounting.events.base import Event, Piece
from privcheck.accounting.events.matrices import (
    matrix_gaussian,
    matrix_poisson_gaussian,
    matrix_random_allocation,
    matrix_sensitivity,
    mixture_of_gaussians,
)
from privcheck.accounting.events.noise import (
    approximate,
    discrete_gaussian,
    discrete_laplace,
    gaussian,
    laplace,
    non_private,
    pure,
    randomized_response,
    symmetric_gaussian,
    zcdp,
)
from privcheck.accounting.events.own import loss_distribution, privacy_profile, renyi_curve, trade_off
from privcheck.accounting.events.sampling import (
    allocated,
    poisson,
    poisson_gaussian,
    random_allocation,
    truncated_poisson_gaussian,
    with_replacement,
    without_replacement,
)
from privcheck.accounting.events.selection import (
    above_threshold,
    bounded_range,
    exponential_mechanism,
    gaussian_histogram,
    laplace_histogram,
    noisy_max,
    permute_and_flip,
)
from privcheck.accounting.events.shuffled import shuffled, shuffled_bits, shuffled_randomized_response
from privcheck.accounting.events.trees import tree

__all__ = [
    "Event",
    "Piece",
    "above_threshold",
    "allocated",
    "approximate",
    "bounded_range",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_mechanism",
    "gaussian",
    "gaussian_histogram",
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
    "permute_and_flip",
    "poisson",
    "poisson_gaussian",
    "privacy_profile",
    "pure",
    "random_allocation",
    "randomized_response",
    "renyi_curve",
    "shuffled",
    "shuffled_bits",
    "shuffled_randomized_response",
    "symmetric_gaussian",
    "trade_off",
    "tree",
    "truncated_poisson_gaussian",
    "with_replacement",
    "without_replacement",
    "zcdp",
]
