"""privcheck: privacy accounting, verification and auditing for reinforcement learning.

The names below are the public API; each is loaded when it is first used, so that `import privcheck` loads neither
SymPy, SciPy, Numba nor dp_accounting.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from privcheck.kernel_cache import place_cache

if TYPE_CHECKING:
    from privcheck.accounting import gdp_delta, gdp_epsilon, zcdp_delta, zcdp_to_epsilon
    from privcheck.api import audit, budget, calibrate, check, compare, publish, run, sweep, verify_claim
    from privcheck.auditors import MechanismAudit, audit_float_noise, audit_mechanism, audit_one_run
    from privcheck.declaration import L1, L2, Claim, Declaration, Joint, Parameter, Release
    from privcheck.guarantees import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP
    from privcheck.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
    from privcheck.online.plain import PlainAgent
    from privcheck.policies import Policy, load_policy
    from privcheck.pricing import account
    from privcheck.reading import Users, read_trajectories
    from privcheck.registry import Algorithm
    from privcheck.relations import AddRemoveOne, ReplaceOne, ZeroOut
    from privcheck.runtime import Billboard, Channel, Ledger, Privatizer, SimulatedNoise, read_ledger
    from privcheck.runtime.release_noise import ReleaseNoise
    from privcheck.schedules import Sample
    from privcheck.trajectories import Trajectories
    from privcheck.unit import Unit
    from privcheck.verification import verify
    from privcheck.whole_agents import audit_agent

    __version__: str

_HOMES = {
    "privcheck.accounting": ("gdp_delta", "gdp_epsilon", "zcdp_delta", "zcdp_to_epsilon"),
    "privcheck.api": ("audit", "budget", "calibrate", "check", "compare", "publish", "run", "sweep", "verify_claim"),
    "privcheck.auditors": ("MechanismAudit", "audit_float_noise", "audit_mechanism", "audit_one_run"),
    "privcheck.declaration": ("L1", "L2", "Claim", "Declaration", "Joint", "Parameter", "Release"),
    "privcheck.guarantees": ("ZCDP", "ApproxDP", "GaussianDP", "PrivacyProfile", "PureDP", "RenyiDP"),
    "privcheck.mechanisms": ("DiscreteGaussian", "DiscreteLaplace", "Gaussian", "Laplace"),
    "privcheck.online.plain": ("PlainAgent",),
    "privcheck.policies": ("Policy", "load_policy"),
    "privcheck.pricing": ("account",),
    "privcheck.reading": ("Users", "read_trajectories"),
    "privcheck.registry": ("Algorithm",),
    "privcheck.relations": ("AddRemoveOne", "ReplaceOne", "ZeroOut"),
    "privcheck.runtime": ("Billboard", "Channel", "Ledger", "Privatizer", "SimulatedNoise", "read_ledger"),
    "privcheck.runtime.release_noise": ("ReleaseNoise",),
    "privcheck.schedules": ("Sample",),
    "privcheck.trajectories": ("Trajectories",),
    "privcheck.unit": ("Unit",),
    "privcheck.verification": ("verify",),
    "privcheck.whole_agents": ("audit_agent",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "L1",
    "L2",
    "ZCDP",
    "AddRemoveOne",
    "Algorithm",
    "ApproxDP",
    "Billboard",
    "Channel",
    "Claim",
    "Declaration",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "GaussianDP",
    "Joint",
    "Laplace",
    "Ledger",
    "MechanismAudit",
    "Parameter",
    "PlainAgent",
    "Policy",
    "PrivacyProfile",
    "Privatizer",
    "PureDP",
    "Release",
    "ReleaseNoise",
    "RenyiDP",
    "ReplaceOne",
    "Sample",
    "SimulatedNoise",
    "Trajectories",
    "Unit",
    "Users",
    "ZeroOut",
    "account",
    "audit",
    "audit_agent",
    "audit_float_noise",
    "audit_mechanism",
    "audit_one_run",
    "budget",
    "calibrate",
    "check",
    "compare",
    "gdp_delta",
    "gdp_epsilon",
    "load_policy",
    "publish",
    "read_ledger",
    "read_trajectories",
    "run",
    "sweep",
    "verify",
    "verify_claim",
    "zcdp_delta",
    "zcdp_to_epsilon",
]


place_cache(Path(__file__).parent)


def __getattr__(name: str) -> object:
    """Returns a public name, loading its module."""
    if name == "__version__":
        from importlib.metadata import version

        return version("privcheck")
    if name not in _HOME:
        raise AttributeError(f"module 'privcheck' has no attribute {name!r}; public names: {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
