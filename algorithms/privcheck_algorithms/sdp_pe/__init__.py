"""SDP-PE (Bai et al. 2024): policy elimination in the shuffle model, as proved, as printed, and without privacy."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from privcheck.declare.declaration import Parameter
from privcheck.runtime.registry import Algorithm, AuditInstance
from privcheck.runtime.results import World
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_algorithms.papers import SDP_PE_RATE, SHUFFLE
from privcheck_algorithms.sdp_pe import conformance
from privcheck_algorithms.sdp_pe.agent import CONSTANTS, OPTIONS, POLICIES, player
from privcheck_algorithms.sdp_pe.declaration import REMAINDER, declare_apart, declare_as_printed, declare_calibrated


def make_audit_world(sizes: Mapping[str, int]) -> World:
    """Random model, the same at every step, of at most 3 steps and states: few policies, few messages.

    Args:
        sizes: H, S and A, by name.
    """
    H, S, A = min(sizes["H"], 3), min(sizes["S"], 3), sizes["A"]
    mdp = random_mdp(S=S, A=A, H=H, seed=1, stationary=True)
    return World(name="random", description=f"a random model of {S} states and {H} steps", mdp=mdp)


# nothing is taken for noise, and everything but the best is eliminated: policies follow the noisy tables closely
_CLOSELY = {name: Fraction(0) for name in ("width", "noise_width", "cut")}
_PRINTED = tuple(replace(one, default=Fraction(1)) if one.name == "width" else one for one in OPTIONS)
_CONSTANTS = {"constants": "printed", "width": "1"}
_TWIN_DIFFERS = {
    "constants=printed": "It lacks more than noise: the bound E of Lemma 10's proof, by which counts are too rare and "
    "policies are eliminated, is at least 12 ln(2·counters/δ) with any noise, and 0 in policy elimination."
}
# at ε = 30 some 130 noise bits a counter, so that every message is sent
_INSTANCE = AuditInstance(world=make_audit_world, options=_CLOSELY, values={"epsilon": Fraction(30)})

APART = Algorithm(
    name="sdp-pe",
    title="SDP-PE: policy elimination from shuffled counts, every bit a message",
    source="Bai et al. 2024, arXiv:2411.11647, Algorithms 1–3, section V",
    paper=SHUFFLE,
    declare=declare_apart,
    readings=(REMAINDER, POLICIES, CONSTANTS),
    options=OPTIONS,
    instead="shuffled-ucb-vi",
    printed=_CONSTANTS,
    online=player,
    twin="policy-elimination",
    twin_differs=_TWIN_DIFFERS,
    instance=_INSTANCE,
    conformance=conformance.APART,
    rate=SDP_PE_RATE,
)

AS_PRINTED = Algorithm(
    name="sdp-pe-as-printed",
    title="SDP-PE: policy elimination from shuffled counts, one integer message a user and counter",
    source="Bai et al. 2024, arXiv:2411.11647, section V",
    paper=SHUFFLE,
    elsewhere=({"K": "200000"},),  # batches so large that an integer shows its sender's bit
    declare=declare_as_printed,
    readings=(REMAINDER, POLICIES, replace(CONSTANTS, ways=("printed", "scaled"))),
    options=_PRINTED,
    instead="shuffled-ucb-vi",
    online=player,
    twin="policy-elimination",
    twin_differs=_TWIN_DIFFERS,
    instance=_INSTANCE,
    conformance=conformance.AS_PRINTED,
    rate=SDP_PE_RATE,
)

CALIBRATED = Algorithm(
    name="sdp-pe-calibrated",
    title="SDP-PE with the least noise that the exact curve allows for the same claim",
    source="Bai et al. 2024, arXiv:2411.11647, Algorithms 1–3; noise of this package",
    declare=declare_calibrated,
    readings=(REMAINDER, POLICIES, CONSTANTS),
    options=OPTIONS,
    instead="shuffled-ucb-vi",
    printed=_CONSTANTS,
    online=player,
    twin="policy-elimination",
    twin_differs=_TWIN_DIFFERS,
    instance=AuditInstance(world=make_audit_world, options=_CLOSELY),
    rate=SDP_PE_RATE,
)

POLICY_ELIMINATION = Algorithm(
    name="policy-elimination",
    title="Policy elimination in stages of crude and fine exploration, not private",
    source="Bai et al. 2024, arXiv:2411.11647, Algorithms 1–3 without a privatizer",
    declare=None,
    readings=(REMAINDER, POLICIES, CONSTANTS),
    options=(
        Parameter(name="K", default=20_000, kind="count", meaning="episodes"),
        *(one for one in OPTIONS if one.name in {"width", "failure", "cut"}),
    ),
    printed=_CONSTANTS,
    online=player,
)

__all__ = ["APART", "AS_PRINTED", "CALIBRATED", "POLICY_ELIMINATION"]
