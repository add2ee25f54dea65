"""Mechanisms: the sampler and the privacy cost of one kind of noise, in one class each."""

from privcheck.mechanisms.additive import Gaussian, Laplace, Mechanism, Noise
from privcheck.mechanisms.symmetric import SymmetricGaussian

__all__ = ["Gaussian", "Laplace", "Mechanism", "Noise", "SymmetricGaussian"]
