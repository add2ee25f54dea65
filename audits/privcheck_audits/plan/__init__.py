"""Audit plans, one an algorithm: which pair is attacked, with which score, and what the bound is compared with.

A plan is loaded when it is asked for: what the plans share lives in this package too, and their rooms import it.
"""

from importlib import import_module

_ROOMS = ("plan.any_declaration", "policy.dp_apvi", "policy.linear", "policy.online_views", "shuffled.view")

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


def __getattr__(name: str) -> object:
    """Returns a plan, loading its room."""
    for room in _ROOMS if name in __all__ else ():
        plan: object = getattr(import_module(f"privcheck_audits.{room}"), name, None)
        if plan is not None:
            return plan
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
