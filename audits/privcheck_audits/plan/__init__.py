"""Audit plans, one an algorithm: which pair is attacked, with which score, and what the bound is compared with."""

from privcheck_audits.plan.any_declaration import ANY
from privcheck_audits.policy.dp_apvi import DP_APVI, DP_APVI_LAPLACE
from privcheck_audits.policy.linear import (
    DP_LSVI_UCB_PP,
    DP_LSVI_UCB_PP_AS_PRINTED,
    DP_VAPVI,
    DP_VAPVI_UNSPLIT,
    LUYO_LSVI_UCB,
    NGO_LSVI_UCB,
    PRIVATE_LINOPT_PO,
    PRIVATE_LINOPT_VI,
    PUBLISHED_LSVI_UCB_PP,
)
from privcheck_audits.policy.online_views import (
    CALIBRATED_UCB_VI,
    DP_UCBVI_CENTRAL,
    DP_UCBVI_LOCAL,
    LDP_OBI,
    PRIVATE_UCB_PO_CENTRAL,
    PRIVATE_UCB_PO_LOCAL,
    PRIVATE_UCB_VI_CALIBRATED,
    PRIVATE_UCB_VI_CENTRAL,
    PRIVATE_UCB_VI_LOCAL,
    PUCB,
)
from privcheck_audits.shuffled.view import SDP_PE, SDP_PE_AS_PRINTED

__all__ = [
    "ANY",
    "CALIBRATED_UCB_VI",
    "DP_APVI",
    "DP_APVI_LAPLACE",
    "DP_LSVI_UCB_PP",
    "DP_LSVI_UCB_PP_AS_PRINTED",
    "DP_UCBVI_CENTRAL",
    "DP_UCBVI_LOCAL",
    "DP_VAPVI",
    "DP_VAPVI_UNSPLIT",
    "LDP_OBI",
    "LUYO_LSVI_UCB",
    "NGO_LSVI_UCB",
    "PRIVATE_LINOPT_PO",
    "PRIVATE_LINOPT_VI",
    "PRIVATE_UCB_PO_CENTRAL",
    "PRIVATE_UCB_PO_LOCAL",
    "PRIVATE_UCB_VI_CALIBRATED",
    "PRIVATE_UCB_VI_CENTRAL",
    "PRIVATE_UCB_VI_LOCAL",
    "PUBLISHED_LSVI_UCB_PP",
    "PUCB",
    "SDP_PE",
    "SDP_PE_AS_PRINTED",
]
