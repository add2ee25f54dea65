"""Audit plans, one an algorithm: which pair is attacked, with which score, and what the bound is compared with."""

from audits.plans.anything import ANY
from audits.plans.dp_apvi import DP_APVI, DP_APVI_LAPLACE
from audits.plans.online import (
    CALIBRATED_UCB_VI,
    DP_UCBVI_CENTRAL,
    DP_UCBVI_LOCAL,
    LDP_OBI,
    PRIVATE_UCB_PO_CENTRAL,
    PRIVATE_UCB_PO_LOCAL,
    PRIVATE_UCB_VI_CENTRAL,
    PRIVATE_UCB_VI_LOCAL,
    PUCB,
)

__all__ = [
    "ANY",
    "CALIBRATED_UCB_VI",
    "DP_APVI",
    "DP_APVI_LAPLACE",
    "DP_UCBVI_CENTRAL",
    "DP_UCBVI_LOCAL",
    "LDP_OBI",
    "PRIVATE_UCB_PO_CENTRAL",
    "PRIVATE_UCB_PO_LOCAL",
    "PRIVATE_UCB_VI_CENTRAL",
    "PRIVATE_UCB_VI_LOCAL",
    "PUCB",
]
