"""Audit plans, one an algorithm: which pair is attacked, with which score, and what the bound is compared with."""

from audits.plans.anything import ANY
from audits.plans.dp_apvi import DP_APVI, DP_APVI_LAPLACE

__all__ = ["ANY", "DP_APVI", "DP_APVI_LAPLACE"]
