"""Procedures: mechanisms whose output is not a value plus noise, each with its price, its pairs and its runs."""

from privcheck.procedures.base import Cost, Facts, KnownPair, Outcomes, Procedure, Sampler, check_releases
from privcheck.procedures.encoders import Encoder, banded_square_root, binary_tree, prefix_sums, square_root
from privcheck.procedures.histogram import StabilityHistogram
from privcheck.procedures.local import RandomisedResponse
from privcheck.procedures.matrices import MatrixMechanism
from privcheck.procedures.on_sample import OnSample, SharedSample, draw_together, sample_of
from privcheck.procedures.own import OwnMechanism
from privcheck.procedures.planar import PlanarLaplace
from privcheck.procedures.scored_choice import ScoredChoice
from privcheck.procedures.selection import NoisyMax
from privcheck.procedures.shuffled import ShuffledRandomizer
from privcheck.procedures.smooth import SmoothNoise
from privcheck.procedures.sparse_vector import SparseVector
from privcheck.procedures.unary import UnaryEncoding, optimised_unary, permanent_response, symmetric_unary
from privcheck.procedures.votes import NoisyVotes
from privcheck.procedures.wishart import WishartNoise

OURS = (
    SharedSample,
    NoisyMax,
    ScoredChoice,
    SparseVector,
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
    OwnMechanism,
)

__all__ = [
    "OF_SEVERAL",
    "OURS",
    "Cost",
    "Encoder",
    "Facts",
    "KnownPair",
    "MatrixMechanism",
    "NoisyMax",
    "NoisyVotes",
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
