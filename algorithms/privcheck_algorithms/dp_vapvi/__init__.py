"""DP-VAPVI (Qiao & Wang 2022, Algorithm 2), declared twice: with the users split, and as its experiments run it."""

from collections.abc import Mapping
from fractions import Fraction

from privcheck.runtime.registry import Algorithm, AuditInstance
from privcheck.runtime.results import World
from privcheck_algorithms.dp_vapvi import conformance
from privcheck_algorithms.dp_vapvi.agent import AGENT, OPTIONS
from privcheck_algorithms.dp_vapvi.declaration import DIMENSION, FEATURES, declare_split, declare_unsplit
from privcheck_algorithms.linear.audit_worlds import two_ends
from privcheck_algorithms.papers import DP_VAPVI_RATE, OFFLINE


def make_world(sizes: Mapping[str, int]) -> World:
    """World of audits, with the printed features' dimension if the declaration has no d."""
    return two_ends({"d": DIMENSION, **sizes})


# where the policy follows the noisy sums, and a pass takes a fraction of a millisecond
INSTANCE = AuditInstance(sizes={"H": 2, "d": 2}, options={"C": Fraction(0), "E_scale": Fraction(1)}, world=make_world)

SPLIT = Algorithm(
    name="dp-vapvi",
    title="DP-VAPVI: offline value iteration with linear features",
    source="Qiao & Wang 2022, arXiv:2206.00810, Algorithm 2",
    paper=OFFLINE,
    declare=declare_split,
    readings=(FEATURES,),
    options=OPTIONS,
    instead="calibrated-vapvi",
    printed={"E_scale": "1"},
    offline=AGENT,
    instance=INSTANCE,
    conformance=conformance.SPLIT,
    rate=DP_VAPVI_RATE,
)

UNSPLIT = Algorithm(
    name="dp-vapvi-unsplit",
    title="DP-VAPVI: offline value iteration with linear features, the same users in both halves",
    source="Qiao & Wang 2022, arXiv:2206.00810, Algorithm 2 as in section 5",
    paper=OFFLINE,
    declare=declare_unsplit,
    readings=(FEATURES,),
    options=OPTIONS,
    instead="calibrated-vapvi",
    printed={"E_scale": "1"},
    offline=AGENT,
    instance=INSTANCE,
    conformance=conformance.UNSPLIT,
    rate=DP_VAPVI_RATE,
)

__all__ = ["SPLIT", "UNSPLIT"]
