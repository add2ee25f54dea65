"""Procedures: mechanisms whose output is not a value plus noise, each with its price, known pairs and runs."""

from privcheck.declare.procedures.adaptive_sparse_vector import AdaptiveSparseVector
from privcheck.declare.procedures.base import Cost, Facts, KnownPair, Outcomes, Procedure, Sampler, check_releases
from privcheck.declare.procedures.encoders import Encoder, banded_square_root, binary_tree, prefix_sums, square_root
from privcheck.declare.procedures.gaussian_noisy_max import GaussianNoisyMax
from privcheck.declare.procedures.gaussian_sparse_vector import GaussianSparseVector
from privcheck.declare.procedures.histogram import StabilityHistogram
from privcheck.declare.procedures.matrices import MatrixMechanism
from privcheck.declare.procedures.normalised_sums import NormalisedSum
from privcheck.declare.procedures.own_mechanism import OwnMechanism
from privcheck.declare.procedures.planar_laplace import PlanarLaplace
from privcheck.declare.procedures.randomised_response import RandomisedResponse
from privcheck.declare.procedures.scored_choice import ScoredChoice
from privcheck.declare.procedures.selection import NoisyMax
from privcheck.declare.procedures.shared_samples import OnSample, SharedSample, draw_together, sample_of
from privcheck.declare.procedures.shuffle import ShuffledRandomizer
from privcheck.declare.procedures.smooth_noise import SmoothNoise
from privcheck.declare.procedures.sparse_vector import SparseVector
from privcheck.declare.procedures.unary_encoding import (
    UnaryEncoding,
    optimised_unary,
    permanent_response,
    symmetric_unary,
)
from privcheck.declare.procedures.votes import NoisyVotes
from privcheck.declare.procedures.wishart_noise import WishartNoise

OURS = (
    SharedSample,
    NoisyMax,
    NormalisedSum,
    ScoredChoice,
    SparseVector,
    AdaptiveSparseVector,
    GaussianSparseVector,
    GaussianNoisyMax,
    NoisyVotes,
    RandomisedResponse,
    UnaryEncoding,
    ShuffledRandomizer,
    StabilityHistogram,
    PlanarLaplace,
    WishartNoise,
    MatrixMechanism,
    OnSample,
    SmoothNoise,
)  # their prices are theorems, their pairs compared with other code in the tests

# priced for users with several trajectories; an own mechanism's stated relation gives the number
OF_SEVERAL = (
    SharedSample,
    MatrixMechanism,
    NoisyMax,
    ScoredChoice,
    SparseVector,
    AdaptiveSparseVector,
    GaussianSparseVector,
    GaussianNoisyMax,
    OwnMechanism,
)

__all__ = [
    "OF_SEVERAL",
    "OURS",
    "AdaptiveSparseVector",
    "Cost",
    "Encoder",
    "Facts",
    "GaussianNoisyMax",
    "GaussianSparseVector",
    "KnownPair",
    "MatrixMechanism",
    "NoisyMax",
    "NoisyVotes",
    "NormalisedSum",
    "OnSample",
    "Outcomes",
    "OwnMechanism",
    "PlanarLaplace",
    "Procedure",
    "RandomisedResponse",
    "Sampler",
    "ScoredChoice",
    "SharedSample",
    "ShuffledRandomizer",
    "SmoothNoise",
    "SparseVector",
    "StabilityHistogram",
    "UnaryEncoding",
    "WishartNoise",
    "banded_square_root",
    "binary_tree",
    "check_releases",
    "draw_together",
    "optimised_unary",
    "permanent_response",
    "prefix_sums",
    "sample_of",
    "square_root",
    "symmetric_unary",
]
