"""All specimens for auditors of black boxes: functions with claims that are known to be true or false."""

from __future__ import annotations

from mutants.additive import ADDITIVE
from mutants.aggregates import AGGREGATES
from mutants.budgets import BUDGETS
from mutants.choices import CHOICES
from mutants.counting import COUNTING
from mutants.hidden import HIDDEN
from mutants.local import LOCAL
from mutants.noises import NOISES
from mutants.published import AS_PUBLISHED
from mutants.released import RELEASED
from mutants.selection import SELECTION
from mutants.specimen import Specimen
from mutants.training import TRAINING

CLASSIC: tuple[Specimen, ...] = (*ADDITIVE, *SELECTION, *COUNTING, *HIDDEN)
REPORTED: tuple[Specimen, ...] = (*TRAINING, *AGGREGATES, *BUDGETS, *AS_PUBLISHED, *RELEASED)  # each with a twin
LITERATURE: tuple[Specimen, ...] = (*CHOICES, *LOCAL, *NOISES)  # each with its exact law in mutants.laws
CATALOGUE: tuple[Specimen, ...] = (*CLASSIC, *REPORTED, *LITERATURE)
# broken ones that 1 000 runs with seed 0 do not find
FOUND_LATER = frozenset(
    {
        "laplace at half scale, ε = 1/10",
        "gaussian at half std",
        "gaussian, std for variance",
        "gaussian, zCDP, std for variance",
        "tells once in 100",
        "δ spent twice",
        "another law once in 200",
        "sparse vector 3",
        "sparse vector, no noise on the threshold",
        "noisy max, too little gumbel noise",
        "exponential mechanism without the 2",
        "exponential mechanism, sensitivity halved",
        "tree, a level too few",
        "sampled sum, amplified too much",
        "median, sensitivity halved",
        "200 numbers at half std",
        "variance in one direction",
        "thresholded histogram, low threshold",
        "poisson noise",
        "student noise",
        "500 labels",
        "step of a random walk",
        "tells once in a thousand",
        "one sample for all steps",
        "Laplace's threshold for Gaussian noise",
        "bounded noise without its normaliser",
        "redrawn until not negative",
        "synthetic rows with a record",
        "budget split over one query too few",
        "filter looks before it adds",
        "sparse vector, threshold redrawn for each query",
        "permute and flip charged as exponential",
        "exploration by exact visits",
        "threshold released too",
        "exception after five draws",
        "None once in a hundred",
        "sparse vector with a gap, noise for monotone queries",
        "sparse vector with gaps below",
        "sparse vector, far answers free",
        "sparse vector, three answers, noise for one",
        "sparse vector with the value compared",
        "base-two exponential mechanism, rate rounded up",
        "smooth sensitivity, shift and dilation at ε each",
        "best of five candidates, paid once",
        "lies by a modulus",
        "gaussian, ε = 6, classical std",
        "geometric, magnitude of three bits",
        "laplace, uniform of twelve bits",
        "truncated laplace, too narrow",
        "bootstrapped sum",
        "every second record, amplified",
        "mean over the realised batch",
        "normal of three uniforms",
    }
)


def specimen(name: str) -> Specimen:
    """Returns the specimen of that name.

    Raises:
        KeyError: There is none.
    """
    return {each.name: each for each in CATALOGUE}[name]
