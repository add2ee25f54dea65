"""DP-LSVI-UCB++ (Sahu 2025, Algorithm 1), declared twice: with fresh noise, and with the one draw that is printed."""

from fractions import Fraction

from privcheck.registry import Algorithm, AuditInstance
from privcheck_algorithms.dp_lsvi_ucb.agent import DpLsviUcb
from privcheck_algorithms.dp_lsvi_ucb.declaration import CLAIM, declare_as_printed, declare_fresh
from privcheck_algorithms.linear.audit_world import audit_world
from privcheck_algorithms.linear.lsvi_player import CLOSELY, FLOOR, GROWTH, NOISE_BONUS, NOISE_RIDGE
from privcheck_algorithms.linear.weighted_player import BONUS, DOUBT, RIDGE
from privcheck_algorithms.papers import LINEAR

OPTIONS = (BONUS, NOISE_BONUS, RIDGE, NOISE_RIDGE, FLOOR, GROWTH, DOUBT)

# one step: noise is smallest beside what a user moves, and the bonus follows the Gram matrices, which is all they move
INSTANCE = AuditInstance(  # of ridges and bonuses tried, those under which most is seen of fresh noise
    sizes={"H": 1, "K": 4, "d": 2, "S": 24},
    options={**CLOSELY, "noise_ridge": Fraction(1), "noise_bonus": Fraction(1, 2)},
    world=audit_world,
)

FRESH = Algorithm(
    name="dp-lsvi-ucb-pp",
    title="DP-LSVI-UCB++: optimistic weighted regression in linear MDPs, fresh noise",
    source="Sahu 2025, arXiv:2504.09339, Algorithm 1 with the releases of Theorem A.1",
    paper=LINEAR,
    declare=declare_fresh,
    readings=(CLAIM,),
    options=OPTIONS,
    instead="calibrated-lsvi-ucb",
    printed={"doubt": "1"},
    online=DpLsviUcb(name="dp-lsvi-ucb-pp"),
    instance=INSTANCE,
    twin="lsvi-ucb-pp",
)

ONE_DRAW = AuditInstance(  # so many marks that one user moves the policy by some, where outputs share their noise
    sizes={**INSTANCE.sizes, "S": 204},
    options={**CLOSELY, "noise_ridge": Fraction(4), "noise_bonus": Fraction(14, 5)},
    world=audit_world,
)

AS_PRINTED = Algorithm(
    name="dp-lsvi-ucb-pp-as-printed",
    title="DP-LSVI-UCB++ as printed: one draw of noise for all episodes",
    source="Sahu 2025, arXiv:2504.09339, Algorithm 1",
    paper=LINEAR,
    declare=declare_as_printed,
    readings=(CLAIM,),
    options=OPTIONS,
    instead="calibrated-lsvi-ucb",
    printed={"doubt": "1"},
    online=DpLsviUcb(name="dp-lsvi-ucb-pp-as-printed"),
    instance=ONE_DRAW,
    twin="lsvi-ucb-pp",
)

__all__ = ["AS_PRINTED", "FRESH", "ONE_DRAW", "OPTIONS"]
