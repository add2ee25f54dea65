"""privcheck: privacy accounting, verification and auditing for reinforcement learning.

The names below are the public API; each is loaded when it is first used, so that `import privcheck` loads neither
SymPy, SciPy, Numba nor dp_accounting.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privcheck.support.kernels import place_cache
from privcheck.support.lazy import load_lazily

if TYPE_CHECKING:
    from privcheck.accounting import gdp_delta, gdp_epsilon, zcdp_delta, zcdp_to_epsilon
    from privcheck.api import audit, budget, calibrate, check, compare, publish, run, sweep, verify_claim
    from privcheck.data.reading import Users, read_trajectories
    from privcheck.data.trajectories import Trajectories
    from privcheck.declare.declaration import L1, L2, Claim, Declaration, Joint, Parameter, Release
    from privcheck.declare.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
    from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
    from privcheck.declare.schedules import Sample
    from privcheck.pricing import account
    from privcheck.reports.policies import Policy, load_policy
    from privcheck.runtime import Billboard, Channel, Ledger, Privatizer, SimulatedNoise, read_ledger
    from privcheck.runtime.auditors import (
        MechanismAudit,
        audit_agent,
        audit_float_noise,
        audit_mechanism,
        audit_one_run,
    )
    from privcheck.runtime.noise import ReleaseNoise
    from privcheck.runtime.plain_agents import PlainAgent
    from privcheck.runtime.registry import Algorithm
    from privcheck.runtime.training_audits import audit_training, gradient_canaries
    from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP
    from privcheck.terms.unit import Unit
    from privcheck.verification import verify

    __version__: str

_HOMES = (
    ("privcheck.accounting", ("gdp_delta", "gdp_epsilon", "zcdp_delta", "zcdp_to_epsilon")),
    ("privcheck.api", ("audit", "budget", "calibrate", "check", "compare", "publish", "run", "sweep", "verify_claim")),
    ("privcheck.runtime.auditors", ("MechanismAudit", "audit_float_noise", "audit_mechanism", "audit_one_run")),
    ("privcheck.declare.declaration", ("L1", "L2", "Claim", "Declaration", "Joint", "Parameter", "Release")),
    ("privcheck.terms.guarantees", ("ZCDP", "ApproxDP", "GaussianDP", "PrivacyProfile", "PureDP", "RenyiDP")),
    ("privcheck.declare.mechanisms", ("DiscreteGaussian", "DiscreteLaplace", "Gaussian", "Laplace")),
    ("privcheck.runtime.plain_agents", ("PlainAgent",)),
    ("privcheck.reports.policies", ("Policy", "load_policy")),
    ("privcheck.pricing", ("account",)),
    ("privcheck.data.reading", ("Users", "read_trajectories")),
    ("privcheck.runtime.registry", ("Algorithm",)),
    ("privcheck.declare.relations", ("AddRemoveOne", "ReplaceOne", "ZeroOut")),
    ("privcheck.runtime", ("Billboard", "Channel", "Ledger", "Privatizer", "SimulatedNoise", "read_ledger")),
    ("privcheck.runtime.noise", ("ReleaseNoise",)),
    ("privcheck.runtime.training_audits", ("audit_training", "gradient_canaries")),
    ("privcheck.declare.schedules", ("Sample",)),
    ("privcheck.data.trajectories", ("Trajectories",)),
    ("privcheck.terms.unit", ("Unit",)),
    ("privcheck.verification", ("verify",)),
    ("privcheck.runtime.auditors", ("audit_agent",)),
)
_load, __dir__ = load_lazily(__name__, _HOMES)

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
    "audit_training",
    "budget",
    "calibrate",
    "check",
    "compare",
    "gdp_delta",
    "gdp_epsilon",
    "gradient_canaries",
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
    """Load a public name's module and return the name."""
    if name == "__version__":
        from importlib.metadata import version

        return version("privcheck")
    return _load(name)
