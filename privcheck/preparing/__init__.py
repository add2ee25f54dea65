"""From a raw table to trajectories that agents may learn from, chunk by chunk; every change is said."""

from privcheck.preparing.codebooks import Codebook, draft_codebook, read_codebook, read_labels
from privcheck.preparing.plan import PreparationPlan
from privcheck.preparing.stream import Prepared, prepare

__all__ = [
    "Codebook",
    "PreparationPlan",
    "Prepared",
    "draft_codebook",
    "prepare",
    "read_codebook",
    "read_labels",
]
