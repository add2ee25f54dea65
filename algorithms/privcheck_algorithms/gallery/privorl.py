"""PrivORL (Gong, Liu, Li & Wang 2025), as its published code fine-tunes on the sensitive dataset.

*PrivORL-J* clips the mean gradient of a trajectory to C and adds noise of std 1·C to the sum over a batch, whatever
ε its user asks for: `noise_multiplier` is a constant, `target_epsilon` names a folder, and no accountant is called.
The dataset is doubled and then repeated 25 times, so that each trajectory has 50 copies, clipped one by one. Batches
are cut from random orders of all copies, in which a trajectory may be several times. The data are scaled by their exact
minima and maxima, so that no bound on the whole is known; what is known is a pair of neighbours that leaves them alone.

*PrivORL-N* gives its target to Opacus, for one transition, and runs the steps that Opacus accounts for. Its scaling is
not the sensitive data's: the checkpoint that is loaded (`elucidated_diffusion.py`, code lines 463–470) replaces it by
that of the public data. It trains on 80 % of the data, chosen by a fixed seed and the number of transitions
(`utils.py`, code line 54): one more would exchange many others, so that the number is public here. What it logs is not
declared: the loss of every batch (code line 650), and the means and stds of the data (`norm.py`, code lines 57–58).

Files and lines are of the repository at its commit 0afae79; of the paper itself only the abstract was available.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, GaussianNoise
from privcheck.declare.procedures import Cost, Facts, KnownPair
from privcheck.declare.procedures.mixtures import Mixture, SampledRounds
from privcheck.declare.relations import Relation, ZeroOut
from privcheck.declare.schedules import Poisson
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import ClippedSums
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError, ParameterError
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.parameters import Condition
from privcheck.terms.symbols import INFINITE, Expr, d, delta, epsilon, minimum, symbol
from privcheck_algorithms.papers import GALLERY

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_CODE: Final = "github.com/2019ChenGong/PrivORL, commit 0afae7921542ecb3a07ff558e04195fdfbb1230d"
_PAPER: Final = "Gong, Liu, Li & Wang 2025, arXiv:2512.07342, published code"
_UNKNOWN: Final = "the scaling by minima and maxima depends on every trajectory, and no bound on its loss is known"

_BATCH: Final = 32  # PrivORL-J/config/locomotion.py, code line 78
_FRAGMENTS: Final = 32  # of a trajectory each time it is drawn: PrivORL-J/scripts/training_v1.py, code line 40
_POSSIBLE: Final = 1024 - 32 + 1  # pieces padded to code line 56 of the config, fragments of --horizon 32
_PLANNED: Final = 400_000  # fragments of a run: PrivORL-J/scripts/training_v1.py, code line 62

# No fewer than a dataset can have, as fewer trajectories reveal more: 10⁶ transitions in pieces of 1 024, and 202
# episodes, whose 202 000 transitions make 198 pieces if none of them ends in a terminal state.
_TRAJECTORIES: Final = {"maze2d-umaze-dense-v1": 977, "halfcheetah-medium-replay-v2": 202}
DATASET: Final = Reading(
    name="dataset",
    ways=tuple(_TRAJECTORIES),
    meaning="the sensitive dataset, of those that the README lists: it sets how many trajectories there are",
)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a random order of all copies, cut into batches, and its end.

    Attributes:
        batches: Number of batches that are used.
        drawn: Number of copies in them.
    """

    batches: int
    drawn: int


def run_passes(copies: int) -> Iterator[Pass]:
    """Yield the passes of PrivORL-J's fine-tuning, of a dataset of so many copies in all.

    A pass of `training_v1.py` (code lines 215–232) ends when its fragments reach the number planned for it (code lines
    218–219) or the copies are used up (`utils/training_v1.py`, code lines 456–567).
    """
    length = math.ceil(copies / _BATCH)
    left = _PLANNED
    for _ in range(math.ceil(_PLANNED / (length * _POSSIBLE))):
        wanted = min(length * _POSSIBLE, left)
        batches = min(length, math.ceil(wanted / (_BATCH * _FRAGMENTS)))
        drawn = min(copies, batches * _BATCH)
        yield Pass(batches=batches, drawn=drawn)
        left -= drawn * _FRAGMENTS
        if left <= 0:
            return


def count_copies(of_one: int, others: int, drawn: int) -> tuple[float, ...]:
    """Probabilities that the first `drawn` of a random order hold 0, 1, … of one trajectory's copies: hypergeometric.

    Args:
        of_one: Copies of the trajectory.
        others: Copies of all other trajectories.
        drawn: Number of copies in the batches of the pass.
    """
    ways = math.comb(of_one + others, of_one)  # places of the trajectory's copies in the order
    return tuple(
        float(Fraction(math.comb(drawn, k) * math.comb(of_one + others - drawn, of_one - k), ways))
        for k in range(of_one + 1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedBatches:
    """Noisy sums of clipped gradients over batches of copies, of data that are scaled by their own limits.

    Attributes:
        name: Name, unique in the declaration.
        trajectories: Number of trajectories.
        copies: Copies of each.
        spread: Std of the noise on a coordinate of a batch's sum, over C.
        users: As in a `Release`.
        source: File and lines.
    """

    name: str
    trajectories: Expr
    copies: Expr
    spread: Expr
    users: str = ""
    source: str = ""

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=(
                f"sums of gradients clipped to C, plus Gaussian noise of std {self.spread}·C, over batches of {_BATCH} "
                f"from random orders of all trajectories, each repeated {self.copies} times; the data are "
                "scaled by their limits"
            ),
            output="the noisy gradient of every batch",
            latex=r"\textstyle\sum_{\mathrm{batch}} \mathrm{clip}(g) + N\left(0,\ ("
            + self.spread.latex()
            + r"C)^2 I\right)",
            law="gaussian",
            spread=self.spread,
            conditions=(
                Condition(what="the noise multiplier", of=self.spread, domain="positive"),
                Condition(what="the trajectories", of=self.trajectories, domain="count"),
                Condition(what="the copies", of=self.copies, domain="count"),
            ),
            symbols=self.spread.symbols | self.trajectories.symbols | self.copies.symbols,
            schedule=f"after every batch, until {_PLANNED} fragments are used",
            source=self.source,
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """The noise multiplier, rounded up."""
        return self.spread.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> CopiedBatches:
        """Copy with `factor` times the noise."""
        return CopiedBatches(
            name=self.name, trajectories=self.trajectories, copies=self.copies, spread=self.spread * factor,
            users=self.users, source=self.source,
        )  # fmt: skip

    def cost(self, relation: Relation) -> Cost:
        """Cost with no finite ε or ρ.

        Raises:
            DeclarationError: The relation is another than leaving out one trajectory, with the number of them public.
        """
        if relation != ZeroOut("trajectory"):
            message = f"{self.name}: its pair of neighbours is one of {ZeroOut('trajectory').words!r}"
            raise DeclarationError(f"{message}, got {relation.words!r}; declare ZeroOut('trajectory')")
        moved = minimum(self.copies, _BATCH)
        return Cost(
            sensitivity=Sensitivity(
                l1=INFINITE, l2=moved, linf=moved, reason="as many copies as fit into a batch, in units of C"
            ),
            charged=moved, rho=INFINITE, pure=None, mu_squared=None, theorem=_UNKNOWN,
        )  # fmt: skip

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """An event without a guarantee, as no bound on the loss is known."""
        from privcheck.accounting.events import non_private

        self.cost(relation)
        return (non_private(),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """A trajectory with a gradient of norm C in a fixed direction, or with none; all others have none.

        The outcome is the sum, along that direction, of all noisy sums of the run: K + N(0, Tσ²) against N(0, Tσ²),
        with K the number of its copies in the T batches used. What a batch held stays secret. The code divides by the
        norm plus 10⁻⁶: a long gradient comes as close to C as one likes, and the loss to the one computed.
        """
        self.cost(relation)
        number, each = (int(x.number(values)) for x in (self.trajectories, self.copies))
        weights, batches = np.ones(1), 0
        for one in run_passes(number * each):
            weights = np.convolve(weights, count_copies(each, (number - 1) * each, one.drawn))
            batches += one.batches
        # a wider noise reveals less: rounding up keeps the loss below the truth
        noise = GaussianNoise(scale=math.nextafter(self.std(values) * math.sqrt(batches), math.inf))
        made = []
        for shifts, told in (((1.0, 0.0), "only in D"), ((0.0, 1.0), "only in D′")):
            total = Mixture(noise=noise, weights=tuple(weights.tolist()), shifts=shifts)
            made.append(
                KnownPair(
                    words=f"one trajectory's gradient has norm C, {told}; others have none, and set the limits",
                    data=("present", "absent") if shifts[0] else ("absent", "present"),
                    outcomes=total.outcomes(),
                    sampler=SampledRounds(mixture=total, rounds=1),
                )
            )
        return tuple(made)


J_TITLE: Final = "PrivORL-J as its published code fine-tunes: a constant noise, and 50 copies of every trajectory"
N_TITLE: Final = "PrivORL-N as its published code fine-tunes: DP-SGD by Opacus, for one transition"
_DELTA: Final = Parameter(name="delta", default="1/1000000", kind="probability", meaning="target_delta")


def privorl_j(readings: Mapping[str, str]) -> Declaration:
    """PrivORL-J's fine-tuning, with the ε that its user asks for as the claim."""
    trajectories = _TRAJECTORIES[readings.get("dataset", DATASET.ways[0])]
    return Declaration(
        name="published-privorl-j",
        title=J_TITLE,
        source=_PAPER,
        origin=Origin(
            kind="published code",
            text=f"{_CODE}, PrivORL-J/diffuser/utils/training_v1.py, code lines 456–567 (clipping 515–524, noise "
            "533–538); PrivORL-J/config/locomotion.py, code lines 50, 56, 78 and 100–103; "
            "PrivORL-J/scripts/training_v1.py, code lines 62, 64, 94–96, 167, 208, 215–232 and 241–245; "
            "PrivORL-J/diffuser/datasets/sequence_v1.py, code lines 258, 428–429 and 459–472; training_v2.py "
            "and sequence_v2.py do the same",
        ),
        relation=ZeroOut("trajectory"),
        releases=(
            CopiedBatches(
                name="gradients",
                trajectories=symbol("trajectories", "count"),
                copies=symbol("copies", "count"),
                spread=symbol("noise_multiplier", "positive"),
                source="code lines 456–567 of PrivORL-J/diffuser/utils/training_v1.py",
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="target_epsilon, target_delta, code line 208 of training_v1.py"),
        parameters=(
            Parameter(name="epsilon", default=10, kind="positive", meaning="target_epsilon; the README's example"),
            _DELTA,
            Parameter(name="noise_multiplier", default=1, kind="positive", meaning="std of the noise over C, constant"),
            Parameter(name="trajectories", default=trajectories, kind="count", meaning="of the sensitive dataset"),
            Parameter(name="copies", default=50, kind="count", meaning="of each trajectory: 2·25"),
        ),
    )  # fmt: skip


_USUAL: Final = {"epsilon": Fraction(10), "rate": Fraction(1, 6250), "rounds": Fraction(31_250)}
_ORDERS: Final = (*(1 + x / 10 for x in range(1, 100)), *range(12, 64))  # of Rényi divergences, Opacus's
_TOLERANCE: Final = 0.01  # by which the ε that it reaches may be below the target
_LARGEST: Final = 1e6


def _search_as_opacus(values: Mapping[str, Fraction]) -> Fraction:
    """Noise multiplier that `opacus.accountants.utils.get_noise_multiplier` returns, given dp_accounting's divergences.

    Raises:
        ParameterError: No multiplier up to 10⁶ reaches the target.
    """
    if values["delta"] == _DELTA.check(_DELTA.default) and all(values[name] == one for name, one in _USUAL.items()):
        return values["noise_multiplier"]
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    target, failure = float(values["epsilon"]), float(values["delta"])

    def reached(multiplier: float) -> float:
        accountant = RdpAccountant(orders=_ORDERS)
        step = dp.PoissonSampledDpEvent(float(values["rate"]), dp.GaussianDpEvent(multiplier))
        accountant.compose(dp.SelfComposedDpEvent(step, int(values["rounds"])))
        # 0 is by a conversion that Opacus lacks: there no noise is enough for such a target
        return float(accountant.get_epsilon(failure)) or math.inf

    low, high = 0.0, 20.0
    while (spent := reached(high)) > target:
        high *= 2
        if high > _LARGEST:
            message = f"expected an ε that noise of std {_LARGEST:.0e}·C reaches, got {target}"
            raise ParameterError(f"{message}; set a larger epsilon", name="epsilon", given=values["epsilon"])
    while target - spent > _TOLERANCE:
        middle = (low + high) / 2
        found = reached(middle)
        if found < target:
            high, spent = middle, found
        else:
            low = middle
    return Fraction(high)


def privorl_n(_readings: Mapping[str, str]) -> Declaration:
    """PrivORL-N's fine-tuning at the noise that Opacus 1.4 finds for the target."""
    C, multiplier = symbol("C", "positive"), symbol("noise_multiplier", "positive")
    return Declaration(
        name="published-privorl-n",
        title=N_TITLE,
        source=_PAPER,
        origin=Origin(
            kind="published code",
            text=f"{_CODE}, synther/diffusion/elucidated_diffusion.py, code lines 317, 369 and 612–683; "
            "synther/training/train_diffuser.py, code lines 126–132; config/resmlp_denoiser.gin; requirements.txt",
        ),
        relation=ZeroOut("user"),
        releases=(
            Release(
                "gradients",
                ClippedSums(dimension=d, norm=C),
                Gaussian(variance=(multiplier * C) ** 2),
                schedule=Poisson(rate=symbol("rate", "positive"), rounds=symbol("rounds", "count")),
                source="code lines 618–626 of synther/diffusion/elucidated_diffusion.py",
            ),
        ),
        claim=Claim(
            ApproxDP(epsilon, delta), source="dp_epsilon and dp_delta, code lines 128–129 of train_diffuser.py"
        ),
        parameters=(
            Parameter(name="epsilon", default=_USUAL["epsilon"], kind="positive", meaning="dp_epsilon, its default"),
            _DELTA,
            Parameter(
                name="noise_multiplier",
                default="0.3896331787109375",
                kind="positive",
                meaning="std of the noise over C; from the other values as Opacus 1.4 finds it, by Rényi divergences",
                follows=_search_as_opacus,
            ),
            Parameter(
                name="rate",
                default=_USUAL["rate"],
                kind="positive",
                meaning="probability of a transition to be in a batch: 1/⌈n/128⌉, n 80 % of 10⁶ (finetuning_rate)",
            ),
            Parameter(
                name="rounds", default=_USUAL["rounds"], kind="count", meaning="batches: finetune_epochs 5, over rate"
            ),
            Parameter(name="C", default=1, kind="positive", meaning="dp_max_grad_norm"),
            Parameter(name="d", default=10, kind="count", meaning="parameters of the model"),
        ),
    )


PRIVORL_J = Algorithm(
    name="published-privorl-j", title=J_TITLE, source=_PAPER, paper=GALLERY, declare=privorl_j, readings=(DATASET,)
)
PRIVORL_N = Algorithm(name="published-privorl-n", title=N_TITLE, source=_PAPER, paper=GALLERY, declare=privorl_n)
