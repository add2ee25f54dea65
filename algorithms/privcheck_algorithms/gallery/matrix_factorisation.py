"""Matrix factorisation mechanisms: correlated noise on a stream of gradients, with a square root as encoder.

The square root of the matrix of prefix sums (Fichtenberger, Henzinger & Upadhyay 2023; Henzinger, Upadhyay & Upadhyay
2023) is the factorisation with the best constant known for one participation. Cut to b bands (Kalinin & Lampert 2024)
its columns b steps apart have no row in common, so that several participations add up in squares, and amplification by
Poisson sampling applies (Choquette-Choo et al. 2023), or by balls in bins, each user in one step of their group in
every epoch (Choquette-Choo et al. 2025). Without groups the steps of neighbouring bins are encoded in common rows, and
the noise that would do for steps that share none is too little.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import MatrixMechanism, banded_square_root, square_root
from privcheck.declare.relations import AddRemoveOne, ZeroOut
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import delta, epsilon, expression, symbol
from privcheck_algorithms.papers import GALLERY

EPSILON = Parameter(name="epsilon", default="2", kind="positive", meaning="ε that is claimed")
DELTA = Parameter(name="delta", default="1/100000", kind="probability", meaning="δ that is claimed")
CLAIM = Claim(ApproxDP(epsilon, delta), source="as its users state it; Denisov et al. 2022, Theorem 2.1")
TITLE = "Matrix factorisation: gradients with noise that the square root of prefix sums correlates"
SOURCE = "Henzinger, Upadhyay & Upadhyay 2023, Almost Tight Error Bounds on Differentially Private Continual Counting"
BANDED_TITLE = "Banded matrix factorisation: a square root cut to b bands, users in b groups, each Poisson sampled"
BANDED_SOURCE = "Choquette-Choo et al. 2023, (Amplified) Banded Matrix Factorization"
SAMPLING = Reading(
    name="sampling",
    ways=("poisson", "none", "bins", "bins-as-independent"),
    meaning="poisson: each step samples the users of its group; none: users are in up to `epochs` steps, b apart; "
    "bins: each user is in one step of their group in every epoch, drawn once; bins-as-independent: in one of all "
    "steps, with the noise of steps that share no row",
)


def declare_matrix_factorisation(_: Mapping[str, str]) -> Declaration:
    """Square root over all epochs in one order: each user is in the same step of every epoch."""
    epochs, steps = symbol("epochs", "count"), symbol("steps", "count")
    return Declaration(
        name="matrix-factorisation",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=ZeroOut("user", trajectories=epochs),
        releases=(
            MatrixMechanism(
                "gradients",
                encoder=square_root(epochs * steps),
                noise_multiplier=symbol("noise_multiplier", "positive"),
                participations=epochs,
                separation=steps,
            ),
        ),
        claim=CLAIM,
        parameters=(
            EPSILON,
            DELTA,
            Parameter(name="epochs", default=1, kind="count", meaning="how often each user's example is visited"),
            Parameter(name="steps", default=512, kind="count", meaning="steps of an epoch"),
            _multiplier("4"),
        ),
    )


def declare_banded(readings: Mapping[str, str]) -> Declaration:
    """Banded square root, with users in sampled groups, in bins, or b steps apart."""
    if readings.get("sampling", "").startswith("bins"):
        return _declare_bins(grouped=readings["sampling"] == "bins")
    bands, steps, epochs = (symbol(name, "count") for name in ("bands", "steps", "epochs"))
    multiplier = symbol("noise_multiplier", "positive")
    encoder = banded_square_root(steps, bands)
    fixed = readings.get("sampling") == "none"
    own = Parameter(name="rate", default="1/50", kind="probability", meaning="probability of being in a step's batch")
    mechanism = MatrixMechanism(
        "gradients", encoder=encoder, noise_multiplier=multiplier, separation=bands, rate=symbol("rate", "positive")
    )
    if fixed:
        own = Parameter(name="epochs", default=4, kind="count", meaning="how often each user's example is visited")
        mechanism = MatrixMechanism(
            "gradients", encoder=encoder, noise_multiplier=multiplier, participations=epochs, separation=bands
        )
    return Declaration(
        name="banded-matrix-factorisation",
        title=BANDED_TITLE,
        source=BANDED_SOURCE,
        origin=Origin(kind="printed", text=BANDED_SOURCE),
        relation=ZeroOut("user", trajectories=epochs) if fixed else AddRemoveOne("user"),
        releases=(mechanism,),
        claim=CLAIM,
        parameters=(
            EPSILON,
            DELTA,
            own,
            Parameter(name="steps", default=512, kind="count", meaning="steps of training"),
            Parameter(name="bands", default=16, kind="count", meaning="b, bands of the encoder, and groups of users"),
            _multiplier("6" if fixed else "6/5"),
        ),
    )


def _declare_bins(*, grouped: bool) -> Declaration:
    """Banded square root with balls in bins, of users in as many groups as it has bands, or in one group."""
    bands, bins, epochs = (symbol(name, "count") for name in ("bands", "bins", "epochs"))
    groups = bands if grouped else expression(1)
    return Declaration(
        name="banded-matrix-factorisation",
        title=BANDED_TITLE,
        source=BANDED_SOURCE,
        origin=Origin(kind="printed", text=BANDED_SOURCE),
        relation=AddRemoveOne("user"),
        releases=(
            MatrixMechanism(
                "gradients",
                encoder=banded_square_root(epochs * bins * groups, bands),
                noise_multiplier=symbol("noise_multiplier", "positive"),
                separation=groups,
                bins=bins,
            ),
        ),
        claim=CLAIM,
        parameters=(
            EPSILON,
            DELTA,
            Parameter(name="epochs", default=2 if grouped else 1, kind="count", meaning="visits of each user"),
            Parameter(name="bins", default=16 if grouped else 32, kind="count", meaning="steps of a group in an epoch"),
            Parameter(name="bands", default=16, kind="count", meaning="b, bands of the encoder"),
            _multiplier("2" if grouped else "5/4"),
        ),
    )


def _multiplier(default: str) -> Parameter:
    return Parameter(name="noise_multiplier", default=default, kind="positive", meaning="std of the noise over C")


MATRIX_FACTORISATION = Algorithm(
    name="matrix-factorisation", title=TITLE, source=SOURCE, paper=GALLERY, declare=declare_matrix_factorisation
)
BANDED = Algorithm(
    name="banded-matrix-factorisation", title=BANDED_TITLE, source=BANDED_SOURCE, paper=GALLERY,
    declare=declare_banded, readings=(SAMPLING,),
)  # fmt: skip
