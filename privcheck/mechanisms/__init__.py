"""Mechanisms: the sampler and the privacy cost of one kind of noise, in one class each."""

from privcheck.mechanisms.additive import Gaussian, Laplace, Mechanism, Noise
from privcheck.mechanisms.bits import draw_messages, noise_bits
from privcheck.mechanisms.shuffled import ShuffledBits
from privcheck.mechanisms.symmetric import SymmetricGaussian

__all__ = [
    "Gaussian",
    "Laplace",
    "Mechanism",
    "Noise",
    "ShuffledBits",
    "SymmetricGaussian",
    "draw_messages",
    "noise_bits",
]
