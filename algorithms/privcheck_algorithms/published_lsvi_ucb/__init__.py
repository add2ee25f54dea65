"""The published experiment code of Sahu 2025, declared as what it does."""

from dataclasses import replace
from fractions import Fraction

from privcheck.registry import Algorithm
from privcheck_algorithms.dp_lsvi_ucb import ONE_DRAW, OPTIONS
from privcheck_algorithms.dp_lsvi_ucb.agent import DpLsviUcb
from privcheck_algorithms.dp_lsvi_ucb.declaration import CLAIM
from privcheck_algorithms.papers import LINEAR
from privcheck_algorithms.published_lsvi_ucb.declaration import declare_ngo, declare_published

_LONGER = {"noise_ridge": Fraction(36), "noise_bonus": Fraction(42, 5)}  # 3² and 3 times that of features of norm 1

PUBLISHED = Algorithm(
    name="published-lsvi-ucb-pp",
    title="DP-LSVI-UCB++ as its published experiment code runs it",
    source="Sahu 2025, arXiv:2504.09339, published experiment code",
    paper=LINEAR,
    declare=declare_published,
    readings=(CLAIM,),
    options=OPTIONS,
    instead="calibrated-lsvi-ucb",
    printed={"doubt": "1"},
    online=DpLsviUcb(name="published-lsvi-ucb-pp", weighted=False),
    instance=replace(ONE_DRAW, options={**ONE_DRAW.options, **_LONGER}),
    twin="lsvi-ucb-pp",
)

PUBLISHED_NGO = Algorithm(
    name="published-ngo-lsvi-ucb",
    title="LSVI-UCB of Ngo et al. as Sahu's published experiment code runs it",
    source="Sahu 2025, arXiv:2504.09339, published experiment code",
    paper=LINEAR,
    declare=declare_ngo,
)

__all__ = ["PUBLISHED", "PUBLISHED_NGO"]
