"""Deliberately broken mechanisms, each with its true loss: the auditors' own tests.

An auditor that has never been seen to fail shows nothing. None of these is registered, and none is meant to be run on
anybody's data.
"""

from mutants.declared import (
    Overlooked,
    Rescaled,
    counted_twice,
    rescaled_noise,
    short_sensitivity,
    std_for_variance,
)
from mutants.running import SharedNoise, peeking, peeking_online, quieter

__all__ = [
    "Overlooked",
    "Rescaled",
    "SharedNoise",
    "counted_twice",
    "peeking",
    "peeking_online",
    "quieter",
    "rescaled_noise",
    "short_sensitivity",
    "std_for_variance",
]
