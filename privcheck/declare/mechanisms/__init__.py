"""Mechanisms: one file a law, with its sampler, price, likelihood ratio and the test statistics of its noise.

A new law of this package is a file here and a line each in `LAWS` and `PRICED` (docs/how-to-add.md).
"""

from typing import Final

from privcheck.declare.mechanisms.base import Mechanism, Noise, Noiseless, lacks
from privcheck.declare.mechanisms.gaussian import DiscreteGaussian, DiscreteGaussianNoise, Gaussian, GaussianNoise
from privcheck.declare.mechanisms.laplace import DiscreteLaplace, DiscreteLaplaceNoise, Laplace, LaplaceNoise
from privcheck.declare.mechanisms.shuffled_bits import (
    ShuffledBits,
    ShuffledBitsNoise,
    ShuffledIntegersNoise,
    ShuffledNoise,
    draw_messages,
    noise_bits,
    shuffled_noise,
)
from privcheck.declare.mechanisms.symmetric_gaussian import SymmetricGaussian, SymmetricGaussianNoise

LAWS: Final[dict[str, type[Noise]]] = {  # as ledgers name them
    law.name: law
    for law in (
        GaussianNoise,
        LaplaceNoise,
        DiscreteGaussianNoise,
        DiscreteLaplaceNoise,
        ShuffledBitsNoise,
        ShuffledIntegersNoise,
    )
}
# whose prices are theorems; all others' are their word
PRICED = (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace, SymmetricGaussian, ShuffledBits)

__all__ = [
    "LAWS",
    "PRICED",
    "DiscreteGaussian",
    "DiscreteGaussianNoise",
    "DiscreteLaplace",
    "DiscreteLaplaceNoise",
    "Gaussian",
    "GaussianNoise",
    "Laplace",
    "LaplaceNoise",
    "Mechanism",
    "Noise",
    "Noiseless",
    "ShuffledBits",
    "ShuffledBitsNoise",
    "ShuffledIntegersNoise",
    "ShuffledNoise",
    "SymmetricGaussian",
    "SymmetricGaussianNoise",
    "draw_messages",
    "lacks",
    "noise_bits",
    "shuffled_noise",
]
