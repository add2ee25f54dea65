"""DP-APVI (Qiao & Wang 2022, Algorithm 1): one agent, declared twice, with Gaussian and with Laplace noise."""

from privcheck.registry import Algorithm, AuditInstance
from privcheck_algorithms.dp_apvi.agent import AGENT, OPTIONS
from privcheck_algorithms.dp_apvi.declaration import REWARDS, gaussian, laplace
from privcheck_algorithms.papers import OFFLINE

GAUSSIAN = Algorithm(
    name="dp-apvi",
    title="DP-APVI: offline value iteration from noisy counts, Gaussian",
    source="Qiao & Wang 2022, arXiv:2206.00810, Algorithm 1",
    paper=OFFLINE,
    declare=gaussian,
    readings=(REWARDS,),
    options=OPTIONS,
    printed={"bonus_scale": "1"},
    offline=AGENT,
    instance=AuditInstance(sizes={"H": 2, "S": 2, "A": 2}),  # where a violation would be visible
)

LAPLACE = Algorithm(
    name="dp-apvi-laplace",
    title="DP-APVI: offline value iteration from noisy counts, Laplace",
    source="Qiao & Wang 2022, arXiv:2206.00810, section 3, Algorithm 1 with the Laplace mechanism",
    paper=OFFLINE,
    declare=laplace,
    readings=(REWARDS,),
    options=OPTIONS,
    printed={"bonus_scale": "1"},
    offline=AGENT,
    instance=AuditInstance(sizes={"H": 1, "S": 2, "A": 2}),
)

__all__ = ["GAUSSIAN", "LAPLACE"]
