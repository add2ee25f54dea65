"""Matrix mechanisms: correlated noise on a stream, A·G ≈ B(C·G + Z); and contributions of random size.

The release is C·G + Z, with Z independent Gaussian noise; everything else is post-processing. For a lower triangular C
the contributions may depend on earlier outputs (Denisov, McMahan, Rush, Smith & Thakurta 2022).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from privcheck.accounting.engine.allocated_encoded import encoded_allocation_law
from privcheck.accounting.engine.encoders import EncoderSensitivity, Order, bandwidth, encoder_sensitivity
from privcheck.accounting.engine.laws import UNIT, Floats, GaussianLaw, as_floats
from privcheck.accounting.engine.mixtures import MixtureLaw
from privcheck.accounting.events.base import PRESENT, Event, Piece, event, ratio, under
from privcheck.accounting.events.sampling import poisson_gaussian
from privcheck.accounting.reals import Real, real, whole
from privcheck.errors import ParameterError
from privcheck.terms.unit import RelationName

_UNKNOWN: Final = "no dominating pair is known here for two users of one sample"
_MOST_STEPS: Final = 5_000
_MOST_SHIFT: Final = 100.0  # sensitivity/std of a mixture
_MOST_PARTS: Final = 2_000
_MOST_BINS: Final = 2_000
_NEAR: Final = 1e-4  # largest column of a bin, times Δ/std, below which its draw is left out …
_LOUDEST: Final = 5.0  # … and above which it is
_OFF: Final = 1e-9  # by which probabilities may miss 1


def matrix_sensitivity(
    encoder: ArrayLike, *, participations: Real, separation: Real = 1, order: Order = "any"
) -> EncoderSensitivity:
    """Compute the sensitivity of C·G to one user, with contributions of ℓ2 norm 1.

    Args:
        encoder: (m, n) C; column i is the effect of a contribution to step i.
        participations: k, the largest number of participations of one user.
        separation: b, the least distance between two steps of one user; 1, the least value, gives the largest
            sensitivity.
        order: "any", or "fixed" where the user's steps are i, i + b, i + 2b, …, as in epochs of one order.

    Raises:
        ParameterError: The encoder is not a finite matrix, or a number is out of range.

    >>> from privcheck import accounting as acc
    >>> prefix_sums = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    >>> round(acc.matrix_sensitivity(prefix_sums, participations=2, separation=2).value ** 2, 9)
    10.0
    """
    if order not in ("any", "fixed"):
        raise ParameterError(f"expected order 'any' or 'fixed', got {order!r}", name="order", given=order)
    k, apart = whole("participations", participations), whole("separation", separation)
    return encoder_sensitivity(_matrix(encoder), participations=k, separation=apart, order=order)


def matrix_gaussian(
    *,
    encoder: ArrayLike,
    std: Real,
    sensitivity: Real,
    participations: Real,
    separation: Real = 1,
    order: Order = "any",
    count: Real = 1,
) -> Event:
    """Event of C·G + Z: a matrix mechanism with Gaussian noise, for all steps together.

    It is one Gaussian release, with the sensitivity of the encoder times the norm of one contribution.

    Args:
        encoder: (m, n) C, one column per step; lower triangular where contributions depend on earlier outputs.
        std: Standard deviation of every entry of Z.
        sensitivity: ℓ2 norm of the change of one contribution under the declared relation: under adding or removing a
            user its norm, under replacing one twice that.
        participations: k, the largest number of steps to which one user contributes.
        separation: b, the least distance between two of these steps; 1, the least value, costs most.
        order: "any", or "fixed" where the steps are i, i + b, i + 2b, …
        count: Number of such mechanisms.

    Raises:
        ParameterError: The encoder is not a finite matrix, or a number is out of range.

    >>> from privcheck import accounting as acc
    >>> event = acc.matrix_gaussian(encoder=[[1, 0], [0.5, 1]], std=3, sensitivity=1, participations=1)
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 4)
    1.6347
    """
    matrix, spread, moved = _matrix(encoder), real("std", std), real("sensitivity", sensitivity, strict=False)
    encoded = matrix_sensitivity(matrix, participations=participations, separation=separation, order=order)
    relative = ratio("matrix_gaussian", encoded.value * moved, spread)
    given = {"rows": matrix.shape[0], "steps": matrix.shape[1], "encoder": encoded.value, "std": spread}
    pieces: list[tuple[Piece, int]] = [(GaussianLaw(relative * relative), 1)] if relative > 0 else []
    note = "" if encoded.exact else "encoder bounded, not attained"
    return event("matrix_gaussian", pieces, count, note, **given, sensitivity=moved, relation=None)


@under(*PRESENT, otherwise=_UNKNOWN)
def matrix_poisson_gaussian(
    *,
    encoder: ArrayLike,
    std: Real,
    rate: Real,
    separation: Real,
    relation: RelationName,
    sensitivity: Real = 1,
    count: Real = 1,
) -> Event:
    """Event of C·G + Z for a banded C, with users in b groups and each group sampled in every b-th step.

    Lemma banded-groups: For a C of b bands and users in b groups, the steps of one group are separate Gaussian
    releases, each on a Poisson sample. Source: Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta & Xu 2023.
    Proof: columns b steps apart have no row in common.

    The l-th of them is charged at the largest column among all groups, which is exact where that is one group's.

    Args:
        encoder: (m, n) C, lower triangular, of bandwidth at most b.
        std: Standard deviation of every entry of Z.
        rate: Probability of sampling each user of a group in its steps.
        separation: b, the number of groups, assigned independently of the data.
        relation: "add-remove" or "zero-out".
        sensitivity: Largest ℓ2 norm of one contribution.
        count: Number of such mechanisms.

    Raises:
        ParameterError: The encoder is not lower triangular or not of that bandwidth, or a number is out of range.

    >>> from privcheck import accounting as acc
    >>> event = acc.matrix_poisson_gaussian(
    ...     encoder=[[1, 0], [0.5, 1]], std=3, rate=0.1, separation=2, relation="zero-out"
    ... )
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 4)
    0.2785
    """
    matrix, moved = _matrix(encoder), real("sensitivity", sensitivity, strict=False)
    spread, b = real("std", std), whole("separation", separation)
    if np.any(np.triu(matrix, 1)):
        message = "expected a lower triangular encoder: no step may show up in the rows before it"
        raise ParameterError(f"{message}; got entries above the diagonal", name="encoder", given=matrix.shape)
    if bandwidth(matrix) > b:
        message = f"expected an encoder of bandwidth {b} at most, got {bandwidth(matrix)}"
        raise ParameterError(f"{message}: sampling is not amplified across bands", name="encoder", given=matrix.shape)
    norms = [math.hypot(*column) * (1 + 1e-15 * len(column)) for column in matrix.T.tolist()]
    largest = [max(norms[i : i + b]) for i in range(0, len(norms), b)]
    pieces: Counter[Piece] = Counter()
    notes = set()
    for norm, times in Counter(largest).items():
        single = poisson_gaussian(std=spread, rate=rate, sensitivity=norm * moved, relation=relation)
        notes.add(single.note)
        for piece, multiplicity in single.pieces:
            pieces[piece] += times * multiplicity
    groups = [sorted(norms[i::b]) for i in range(min(b, len(norms)))]
    if sorted(largest) not in groups:
        notes.add("largest column of all groups, step by step")
    note = "; ".join(sorted(notes - {""}))
    given = {"steps": len(norms), "encoder": max(norms), "std": spread, "rate": real("rate", rate), "separation": b}
    return event(
        "matrix_poisson_gaussian", list(pieces.items()), count, note, **given, sensitivity=moved, relation=relation
    )


@under(*PRESENT, otherwise=_UNKNOWN)
def matrix_random_allocation(
    *,
    encoder: ArrayLike,
    std: Real,
    bins: Real,
    relation: RelationName,
    separation: Real = 1,
    sensitivity: Real = 1,
    count: Real = 1,
) -> Event:
    """Event of C·G + Z with balls in bins: each user takes part in the steps of one of b bins, each equally likely.

    A user's bin is drawn uniformly, independently of all other users and of the data, kept for all epochs, and secret.
    With one group of users an epoch has b steps, and bin i those of number i, i + b, i + 2b, … With g groups, assigned
    independently of the data, it has g·b, and bin i of group j the steps j + g·i of every epoch.

    The pair is the mean of b Gaussians, with the sums of a bin's columns of |C| as means, against the noise [lemma
    encoded-allocation]. It also holds for contributions that depend on outputs released before all rows that encode
    them: with a lower triangular C those of earlier steps. Where the means of all bins are orthogonal and of one norm,
    as with a C of g bands, it is that of `random_allocation`. Otherwise both bounds are those of cascades that are near
    it: with a square root of 2 to 16 bands and one group 2 % to twice apart, most where ε is about 1.

    Args:
        encoder: (m, n) C, n a multiple of g·b: columns of zeros for steps that are left out. No row is released before
            the contributions that it encodes.
        std: Standard deviation of every entry of Z.
        bins: b, bins of a user, in every epoch.
        relation: "add-remove" or "zero-out".
        separation: g, distance of neighbouring bins of a user in steps, and number of groups; 1 for one group.
        sensitivity: Largest ℓ2 norm of one contribution.
        count: Number of such mechanisms, each with a new draw.

    Raises:
        ParameterError: The encoder is not a finite matrix of whole epochs, or a number is out of range.

    >>> from privcheck import accounting as acc
    >>> event = acc.matrix_random_allocation(encoder=[[1, 0], [0.5, 1]], std=3, bins=2, relation="zero-out")
    >>> figure = acc.compose(event).epsilon(delta=1e-6)
    >>> round(figure.lower, 2), round(figure.upper, 2)
    (1.3, 1.36)
    """
    matrix, moved = _matrix(encoder), real("sensitivity", sensitivity, strict=False)
    spread, b, g = real("std", std), whole("bins", bins, most=_MOST_BINS), whole("separation", separation)
    if matrix.shape[1] % (g * b):
        message = f"expected an encoder of whole epochs of {g * b} steps, got {matrix.shape[1]} columns"
        remedy = "add columns of zeros for steps that are left out"
        raise ParameterError(f"{message}; {remedy}", name="encoder", given=matrix.shape)
    shift = ratio("matrix_random_allocation", moved, spread)
    # (rows, groups, bins) sums over the epochs
    means = np.abs(matrix).reshape(len(matrix), -1, b, g).sum(axis=1).transpose(0, 2, 1)
    up = 1 + 4 * UNIT * (len(matrix) + matrix.shape[1])
    with np.errstate(over="ignore"):  # hardly any noise: the bins count as known below, and ε has no bound
        grams = as_floats([means[:, j].T @ means[:, j] for j in range(g)]) * shift * shift
    largest = np.array([np.max(_circular(gram, d)) for d in range(b) for gram in grams]).reshape(b, g).max(axis=1) * up
    longest = math.sqrt(float(largest[0]))
    notes, pieces = list[str](), list[tuple[Piece, int]]()
    if not (b > 1 and _NEAR <= longest <= _LOUDEST):
        if longest > 0:
            pieces = [(GaussianLaw(float(largest[0])), 1)]
        notes = ["the random bin counts as known"] if b > 1 and longest > 0 else []
    else:
        worst = grams[int(np.argmax([np.trace(gram) for gram in grams]))]
        pieces = [(encoded_allocation_law(as_floats(largest), as_floats(worst / up)), 1)]
        if np.any(matrix < 0):
            notes.append("entries of the encoder count without their signs")
    given = {"steps": matrix.shape[1], "encoder": longest / shift if shift else 0.0, "std": spread, "bins": b}
    return event(
        "matrix_random_allocation",
        pieces,
        count,
        "; ".join(notes),
        **given,
        separation=g,
        sensitivity=moved,
        relation=relation,
    )


def _circular(gram: Floats, apart: int) -> Floats:
    """(b,) inner products of each bin with the bin so far after it on the circle."""
    i = np.arange(len(gram))
    return as_floats(gram[i, (i + apart) % len(gram)])


@under(*PRESENT, otherwise=_UNKNOWN)
def mixture_of_gaussians(
    *, std: Real, sensitivities: Sequence[Real], probabilities: Sequence[Real], relation: RelationName, count: Real = 1
) -> Event:
    """Gaussian noise on a contribution of random size: Σpᵢ N(sᵢ, σ²) against N(0, σ²), both directions.

    P has the user in the direction "remove". It is the pair of matrix mechanisms on random batches, and of sampling
    with several contributions (Choquette-Choo, Ganesh, Steinke & Thakurta 2024; their MMCC).

    Args:
        std: σ.
        sensitivities: sᵢ, at least 0.
        probabilities: pᵢ, with sum 1.
        relation: "add-remove" or "zero-out": without the user nothing is contributed.
        count: Number of rounds, each with a new draw.

    Raises:
        ParameterError: A number is out of range, or the two lists have different lengths.

    >>> from privcheck import accounting as acc
    >>> event = acc.mixture_of_gaussians(
    ...     std=2, sensitivities=[0, 1], probabilities=[0.9, 0.1], relation="add-remove"
    ... )
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 4)
    0.4909
    """
    spread = real("std", std)
    sizes = [real("sensitivities", s, strict=False) for s in _list("sensitivities", sensitivities)]
    chances = [real("probabilities", p, strict=False, most=1) for p in _list("probabilities", probabilities)]
    if len(sizes) != len(chances) or not 0 < len(sizes) <= _MOST_PARTS:
        message = f"expected as many probabilities as sensitivities, 1 to {_MOST_PARTS}"
        raise ParameterError(f"{message}, got {len(chances)} and {len(sizes)}", name="probabilities", given=chances)
    total = math.fsum(chances)
    if abs(total - 1) > _OFF:
        message = f"expected probabilities that add up to 1, got {total!r}"
        raise ParameterError(message, name="probabilities", given=probabilities)
    parts: dict[float, float] = {}
    for size, chance in zip(sizes, chances, strict=True):
        if chance > 0:
            shift = ratio("mixture_of_gaussians", size, spread)
            parts[shift] = parts.get(shift, 0.0) + chance / total
    shifts = tuple(sorted(parts))
    if shifts[-1] > _MOST_SHIFT:
        message = f"expected sensitivity/std of at most {_MOST_SHIFT:g}, got {shifts[-1]:g}: the noise is too small"
        raise ParameterError(message, name="std", given=std)
    law: Piece = MixtureLaw(shifts, tuple(parts[s] for s in shifts))
    if len(shifts) == 1:
        law = GaussianLaw(shifts[0] ** 2)
    shown = ", ".join(f"{s * spread:g}: {parts[s]:g}" for s in shifts)
    pieces: list[tuple[Piece, int]] = [(law, 1)] if shifts[-1] > 0 else []
    return event("mixture_of_gaussians", pieces, count, std=spread, parts=shown, relation=relation)


def _matrix(encoder: ArrayLike) -> Floats:
    try:
        matrix = as_floats(encoder)
    except (TypeError, ValueError):
        raise ParameterError(
            f"expected encoder as a matrix of numbers, got {encoder!r}", name="encoder", given=encoder
        ) from None
    if matrix.ndim != 2 or 0 in matrix.shape or not np.isfinite(matrix).all() or matrix.shape[1] > _MOST_STEPS:
        message = f"expected encoder as a finite matrix with a column for each of 1 to {_MOST_STEPS} steps"
        raise ParameterError(f"{message}, got shape {matrix.shape}", name="encoder", given=encoder)
    largest = float(np.max(np.abs(matrix)))
    if not (1e-100 < largest < 1e100):
        message = f"expected entries of the encoder between 1e-100 and 1e100 in absolute terms, got {largest:g}"
        raise ParameterError(message, name="encoder", given=encoder)
    return matrix


def _list(name: str, values: object) -> list[object]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ParameterError(f"expected {name} as a list of numbers, got {values!r}", name=name, given=values)
    return list(values)
