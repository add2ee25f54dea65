"""What is registered, as tests of the audits take it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privcheck.data.features import FeatureMap
from privcheck.runtime import registry
from privcheck.runtime.results import World

DP_APVI, DP_APVI_LAPLACE = registry.audit_plan("dp-apvi"), registry.audit_plan("dp-apvi-laplace")
SDP_PE, SDP_PE_AS_PRINTED = registry.audit_plan("sdp-pe"), registry.audit_plan("sdp-pe-as-printed")
ALGORITHMS = {name: registry.algorithm(name) for name in registry.names("algorithms")}


def with_features(world: World) -> World:
    """Returns the world with two random kernels and reward features, which agents of linear mixtures need."""
    rng, S, A = np.random.default_rng(0), world.mdp.states, world.mdp.actions
    phi = rng.random((S, A, 2)) / 2
    return replace(world, features=FeatureMap(phi=phi, kernels=rng.dirichlet(np.ones(S), size=(2, S, A))))
