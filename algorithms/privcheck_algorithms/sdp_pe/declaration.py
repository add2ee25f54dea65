"""Releases of SDP-PE (Bai et al. 2024, Algorithms 1–3 and section V): shuffled counts, once per batch of users.

A user is one episode. Stage b has 3·L_b of them: L_b in crude exploration, divided over the steps h, for which only
step h's visits and transitions are counted (Algorithm 2, lines 6–8), and 2·L_b in fine exploration, for which visits,
transitions and rewards of every step are counted (Algorithm 3, lines 2–4). Every user is in one stage and in one of the
two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from privcheck.declare.declaration import L1, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import ShuffledBits
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin, public
from privcheck.declare.statistics import OneStepEach, RewardBits, TransitionCounts, VisitCounts
from privcheck.runtime.registry import Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import A, Expr, H, S, beta, epsilon, log, n, symbol
from privcheck_algorithms.papers import COROLLARY_11, LEMMA_10
from privcheck_algorithms.privatizers.declaration import LeastNoise

MU = symbol("mu", "positive")

PARAMETERS = (
    Parameter(name="H", default=6, kind="count", meaning="steps of an episode"),
    Parameter(name="S", default=4, kind="count", meaning="states, X in the paper"),
    Parameter(name="A", default=2, kind="count", meaning="actions"),
    Parameter(name="K", default=20_000, kind="count", meaning="episodes"),
    Parameter(name="epsilon", default="1", kind="positive", meaning="ε of the claim, nats"),
    Parameter(name="beta", default="1/100000", kind="probability", meaning="the claim's failure probability β"),
)
PRECISION = Parameter(
    name="mu",
    default="0.268",
    kind="positive",
    meaning="of sdp-pe-calibrated: μ if the noise bits of the 6H counters that a user moves were Gaussian; for another "
    "ε or β the largest that keeps the claim",
)
REMAINDER = Reading(
    name="remainder",
    ways=("last", "dropped"),
    meaning="the K − 3·(L₁ + … + L_{b−1}) users who do not fill a stage (Algorithm 1, lines 2–3): last: a stage of "
    "their own; dropped: they send nothing",
)

_CRUDE, _FINE = "crude exploration", "fine exploration"
_TITLE = "SDP-PE: policy elimination from shuffled counts, "
_NAMES = {
    "bits": ("sdp-pe", _TITLE + "every bit a message"),
    "integers": ("sdp-pe-as-printed", _TITLE + "one integer message a user and counter"),
    "calibrated": ("sdp-pe-calibrated", _TITLE + "with the least noise that the exact curve allows"),
}


def stages(episodes: int, *, remainder: str = "last") -> tuple[int, ...]:
    """Stage lengths L_1, L_2, …: 2^b episodes each, three times in every stage, as long as episodes last.

    Algorithm 1's line 3 takes the sum up to b, which contains the L_b that it defines; meant is the sum up to b − 1.
    (K − 3Σ)/3 is rounded down: up to two episodes are left over and send nothing.

    Args:
        episodes: K.
        remainder: "last" or "dropped", for episodes that do not fill a stage.

    >>> stages(20_000)[-2:], stages(3), stages(2)
    ((2048, 2572), (1,), ())
    """
    lengths: list[int] = []
    left = episodes // 3
    while left > 0:
        size = 2 ** (len(lengths) + 1)
        if left < size and remainder == "dropped":
            break
        lengths.append(min(size, left))
        left -= lengths[-1]
    return tuple(lengths)


def declare_apart(readings: Mapping[str, str]) -> Declaration:
    """SDP-PE with every bit a separate message, as in Cheu et al. 2019, which the proof analyses."""
    return _declaration(readings, "bits")


def declare_as_printed(readings: Mapping[str, str]) -> Declaration:
    """SDP-PE as printed in section V: one integer message z = bit + Σy per user and counter."""
    return _declaration(readings, "integers")


def declare_calibrated(readings: Mapping[str, str]) -> Declaration:
    """SDP-PE with ⌈24H/μ²⌉ fair bits per counter, allocated publicly: the exact curve checks the claim."""
    return _declaration(readings, "bits", mu=MU)


def _origin(messages: Literal["bits", "integers"], *, calibrated: bool) -> Origin:
    if calibrated:
        return Origin(kind="own", text="README of sdp_pe: Bai et al.'s protocol with the least noise")
    text = "Bai et al. 2024, arXiv:2411.11647v3, Algorithms 1–3 and section V"
    if messages == "integers":
        return Origin(kind="printed", text=f"{text}, with the constant 96 of Lemma 10's proof for the O(·) of τ")
    changed = (
        "every bit is a separate message, as in Cheu et al. 2019: section V sends one integer a user and counter, "
        "which the proof's sum does not describe"
    )
    return Origin(kind="repaired", text=text, changed=changed)


def _declaration(
    readings: Mapping[str, str], messages: Literal["bits", "integers"], *, mu: Expr | None = None
) -> Declaration:
    remainder = readings.get("remainder", "last")

    def crude(values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Batch sizes ⌊L_b/H⌋ and ⌈L_b/H⌉ of all stages: L/H need not be whole, so the users are divided evenly."""
        steps = int(values["H"])
        sizes = {q for L in stages(int(values["K"]), remainder=remainder) for q in (L // steps, -(-L // steps))}
        return tuple(sorted(sizes - {0}))

    def fine(values: Mapping[str, Fraction]) -> tuple[int, ...]:
        return tuple(sorted({2 * L for L in stages(int(values["K"]), remainder=remainder)}))

    small = epsilon / (3 * H)  # ε′, section V
    rare = beta / (H * S * A)  # β′, ibid.
    # τ = O(ln(1/β′)/ε′²); the proof needs √(6 ln(2/β′)/τ) = ε′/4 (Lemma 10's proof)
    published = 96 * log(2 / rare) / small**2
    noise = ShuffledBits(
        users=n, threshold=published if mu is None else 24 * H / mu**2, messages=messages, dealt=mu is not None
    )
    least = LeastNoise(
        name="mu", declare=declare_calibrated, readings=tuple(sorted(readings.items())), usual=PARAMETERS
    )
    name, title = _NAMES["calibrated" if mu is not None else messages]
    third = ApproxDP(epsilon / 3, beta)  # Lemma 10's proof: (ε/3, β) a table
    by_step = Batches(size="⌊L_b/H⌋ or ⌈L_b/H⌉ users a step, L_b = 2^b", sizes=crude)
    whole = Batches(size="2·L_b users, L_b = 2^b", sizes=fine)
    return Declaration(
        name=name,
        title=title,
        source="Bai et al. 2024, arXiv:2411.11647, Algorithms 1–3, section V"
        + ("" if mu is None else "; noise of this package"),
        relation=ReplaceOne("trajectory"),
        releases=(
            *(
                Release(
                    name,
                    statistic,
                    noise,
                    stated=L1(H),  # "one user difference only results in at most H differences", Lemma 10's proof
                    source="Algorithm 3, lines 3–4; proof of Lemma 10",
                    schedule=whole,
                    users=_FINE,
                    budget=third,
                )
                for name, statistic in (
                    ("visits", VisitCounts(H, S, A)),
                    ("transitions", TransitionCounts(H, S, A)),
                    ("rewards", RewardBits(H, S, A)),
                )
            ),
            Release(
                "crude visits",
                OneStepEach(table=VisitCounts(H, S, A)),
                noise,
                source="Algorithm 2, lines 6–8 (174)",
                schedule=by_step,
                users=_CRUDE,
                budget=third,
            ),
            Release(
                "crude transitions",
                OneStepEach(table=TransitionCounts(H, S, A)),
                noise,
                source="Algorithm 2, lines 6–8 (174)",
                schedule=by_step,
                users=_CRUDE,
                budget=third,
            ),
        ),
        claim=Claim(
            ApproxDP(epsilon, beta),
            source="Corollary 11; Lemma 10",
            composition="basic",
            statements=(LEMMA_10, COROLLARY_11) if mu is None else (),
        ),
        origin=_origin(messages, calibrated=mu is not None),
        parameters=PARAMETERS if mu is None else (*PARAMETERS, replace(PRECISION, follows=least)),
        model="shuffle",
        partitions=(
            tuple(
                public(group, why="a user's number says in which batch of a stage it is") for group in (_FINE, _CRUDE)
            ),
        ),
    )
