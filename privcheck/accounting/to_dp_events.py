"""To the events of dp-accounting, by the table in `privcheck.accounting.dp_events`.

Events that 0.6.0 does not have yet are written where the installed version has them, else by what it has, or refused.
"""

from __future__ import annotations

import math
from typing import Any, Final

from privcheck.accounting.curve import Curve
from privcheck.accounting.engine.bounded import BoundedRange
from privcheck.accounting.engine.discrete import AtomicLaw, DiscreteGaussian, response_law
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import DIRECTIONS, GaussianLaw, LostLaw, ZcdpLaw
from privcheck.accounting.engine.mixtures import MixtureLaw
from privcheck.accounting.engine.orders import RenyiLaw
from privcheck.accounting.engine.sampled import SampledGaussian
from privcheck.accounting.engine.subsampled import sampled_law
from privcheck.accounting.events import Event, Piece
from privcheck.accounting.events.base import REPLACING
from privcheck.accounting.repeating import PoissonBound, Tangent
from privcheck.errors import ParameterError

_UP: Final = 1 + 4e-16
_SAMPLED: Final = sampled_law(((LaplaceLaw(1.0), 1),), 0.5).build


def to_dp_relation(what: Event | Curve) -> Any:
    """Get dp-accounting's `NeighboringRelation` for the accountant that reads `to_dp_event(what)`.

    Events of dp-accounting name no relation, its accountants do. Where the caller has applied one, in Δ or in ε, the
    accountant must not change the noise multiplier, as is so under `ADD_OR_REMOVE_ONE`.

    Raises:
        ParameterError: The event is priced for replacing a user, under which dp-accounting's accountants disagree
            (0.6.0).

    >>> from privcheck import accounting as acc
    >>> acc.to_dp_relation(acc.poisson_gaussian(std=1, rate=0.1, relation="zero-out")).name
    'REPLACE_SPECIAL'
    """
    import dp_accounting as dp

    relation = _check(what).relation
    if relation in REPLACING:
        message = f"priced under {relation}: {what!s:.200}; dp-accounting's accountants disagree under REPLACE_ONE"
        raise ParameterError(f"{message}: account for it here, where its curve is known", name="what", given=what)
    return (
        dp.NeighboringRelation.REPLACE_SPECIAL if relation == "zero-out" else dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    )


def to_dp_event(what: Event | Curve) -> Any:
    """Convert an event, or a composition, to dp-accounting, for accountants under `to_dp_relation(what)`.

    The result has the same privacy curve: a tree of Gaussian nodes becomes Gaussian events. dp-accounting 0.6.0 has no
    event for a bare guarantee, and none for some mechanisms; where it is installed, an ε-DP mechanism becomes the
    discrete Laplace noise with the two losses ±ε, permute-and-flip Laplace noise, discrete Gaussian noise its zCDP.

    Raises:
        ParameterError: dp-accounting has no such event, the curve has several branches (`parallel`), or the event is
            priced for replacing a user.
    """
    import dp_accounting as dp

    to_dp_relation(what)

    if isinstance(what, Curve):
        if len(what.branches) != 1:
            message = (
                f"dp-accounting has no parallel composition over disjoint users; convert each of {len(what.branches)}"
            )
            raise ParameterError(f"{message} branches alone", name="what", given=what)
        return dp.ComposedDpEvent([to_dp_event(e) for e in what.branches[0]])
    event = _single(dp, what)
    return dp.SelfComposedDpEvent(event, what.count) if what.count > 1 else event


def _check(what: object) -> Event | Curve:
    if not isinstance(what, Event | Curve):
        raise ParameterError(f"expected an event or a curve, got {what!r}", name="what", given=what)
    return what


def _single(dp: Any, what: Event) -> Any:  # noqa: PLR0911 - one return an event kind
    """Convert one release: by its kind where dp-accounting has it, else law by law."""
    if not what.pieces:
        return dp.NoOpDpEvent()
    get, kinds = what.parameter, dp.dp_event
    if what.kind == "non_private":
        return dp.NonPrivateDpEvent()
    if what.kind in ("gaussian", "laplace"):
        made = dp.GaussianDpEvent if what.kind == "gaussian" else dp.LaplaceDpEvent
        return made(float(get("std" if what.kind == "gaussian" else "scale") / get("sensitivity")))
    if what.kind == "discrete_laplace":
        return kinds.DiscreteLaplaceDpEvent(float(1.0 / get("scale")), int(get("sensitivity")))
    if what.kind == "randomized_response":
        m = int(get("categories"))
        kept = math.exp(-get("epsilon"))  # of e^ε : 1, without overflow
        return kinds.RandomizedResponseDpEvent(float(m * kept / (1 + (m - 1) * kept)), m)
    if what.kind == "truncated_poisson_gaussian" and what.relation == "add-remove":
        size, most, std = int(get("users")) - 1, int(get("most")), get("std") / get("sensitivity")
        return kinds.TruncatedSubsampledGaussianDpEvent(size, float(get("rate")), most, float(std))
    if what.kind == "discrete_gaussian":
        return _discrete_gaussian(dp, get("std"), get("sensitivity"))
    if what.kind in ("pure", "approximate") and hasattr(kinds, "EpsilonDeltaDpEvent"):
        return kinds.EpsilonDeltaDpEvent(get("epsilon"), get("delta") if what.kind == "approximate" else 0.0)
    if what.kind == "permute_and_flip" and hasattr(kinds, "PermuteAndFlipDpEvent"):
        return kinds.PermuteAndFlipDpEvent(get("epsilon") / 2 if get("monotone") else get("epsilon"))
    if what.kind == "random_allocation" and hasattr(kinds, "RandomAllocationDpEvent"):
        noise = dp.GaussianDpEvent(float(get("std") / get("sensitivity")))
        return kinds.RandomAllocationDpEvent(noise, int(get("participations")), int(get("rounds")))
    if what.kind == "repeat_and_select":
        return _repeat(dp, what)
    return _compose(dp, [(_of_law(dp, what, piece), times) for piece, times in what.pieces])


def _compose(dp: Any, parts: list[tuple[Any, int]]) -> Any:
    composed = [dp.SelfComposedDpEvent(event, times) if times > 1 else event for event, times in parts]
    return composed[0] if len(composed) == 1 else dp.ComposedDpEvent(composed)


def _repeat(dp: Any, what: Event) -> Any:
    law = what.pieces[0][0]
    assert isinstance(law, RenyiLaw)
    assert isinstance(law.bound, Tangent)
    shape = math.inf if isinstance(law.bound.bound, PoissonBound) else what.parameter("shape")
    return dp.dp_event.RepeatAndSelectDpEvent(to_dp_event(law.bound.bound.run), what.parameter("mean"), shape)


def _discrete_gaussian(dp: Any, sigma: float, moved: float) -> Any:
    """Convert discrete Gaussian noise; a whole sensitivity is that of one integer, any other that of a vector."""
    if hasattr(dp.dp_event, "DiscreteGaussianDpEvent"):
        return dp.dp_event.DiscreteGaussianDpEvent(float(sigma), float(moved), 1 if moved == int(moved) else None)
    return dp.dp_event.ZCDpEvent((moved / sigma) ** 2 / 2 * _UP)


def _of_law(dp: Any, what: Event, piece: Piece) -> Any:  # noqa: PLR0911 - one return a law
    if isinstance(piece, GaussianLaw):
        return dp.GaussianDpEvent(1 / math.sqrt(piece.mu_squared))
    if isinstance(piece, LaplaceLaw):
        return dp.LaplaceDpEvent(1 / piece.step)
    if isinstance(piece, SampledGaussian):
        return dp.PoissonSampledDpEvent(float(piece.rate), dp.GaussianDpEvent(1 / piece.shift))
    if isinstance(piece, MixtureLaw):
        return dp.dp_event.MixtureOfGaussiansDpEvent(1.0, list(piece.shifts), list(piece.weights))
    if isinstance(piece, DiscreteGaussian):
        return _discrete_gaussian(dp, piece.sigma, piece.shift)
    if isinstance(piece, ZcdpLaw):
        return dp.dp_event.ZCDpEvent(float(piece.rho), float(piece.xi))
    if isinstance(piece, AtomicLaw) and piece.build is _SAMPLED:
        base, rate = piece.arguments
        parts = [(_of_law(dp, what, law), times) for law, times in base]
        return dp.PoissonSampledDpEvent(float(rate), _compose(dp, parts))
    if isinstance(piece, AtomicLaw) and piece == response_law(piece.bound, 2):
        if hasattr(dp.dp_event, "EpsilonDeltaDpEvent"):
            return dp.dp_event.EpsilonDeltaDpEvent(float(piece.bound), 0.0)
        return dp.dp_event.DiscreteLaplaceDpEvent(float(piece.bound), 1)
    if isinstance(piece, LostLaw) and hasattr(dp.dp_event, "EpsilonDeltaDpEvent"):
        return dp.dp_event.EpsilonDeltaDpEvent(0.0, piece.delta)
    if isinstance(piece, BoundedRange) and hasattr(dp.dp_event, "ExponentialMechanismDpEvent"):
        return dp.dp_event.ExponentialMechanismDpEvent(piece.span_of_losses)
    raise ParameterError(_unknown(what, piece), name="what", given=what)


def _unknown(what: Event, piece: Piece) -> str:
    message = f"dp-accounting has no event for {what.kind}: {what}"
    if isinstance(piece, LostLaw):
        return f"{message}; take the δ = {piece.delta:g} that is lost outright off its target, and convert the rest"
    largest = piece.largest if not callable(piece.largest) else max(piece.largest(d) for d in DIRECTIONS)  # type: ignore[union-attr] # the others are above
    if 0 < largest < math.inf:
        return f"{message}; pure(epsilon={largest:g}) bounds it and converts, or account for all of it here"
    return f"{message}; account for all of it here, where its curve is known"
